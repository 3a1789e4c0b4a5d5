"""The files on disk: golden bytes, the same with both CDKs, the stock CLI's conventions, no machine in them."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stacks import inputs

GOLDEN = Path(__file__).with_name("golden")
ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from pathlib import Path
from stacks.app import synth
from tests.stacks import inputs
synth(inputs.everything(), Path(sys.argv[1]))
"""


@pytest.fixture
def written(render, tmp_path):
    from stacks.app import synth

    return tmp_path, synth(inputs.everything(), tmp_path)


@pytest.mark.parametrize("name", [given.name for given in inputs.everything()])
def test_golden(written, name, request):
    made = (written[0] / "stacks" / name / "cdk.tf.json").read_bytes()
    golden = GOLDEN / f"{name}.tf.json"
    if request.config.getoption("--update-golden", default=False):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_bytes(made)
    assert made.decode() == golden.read_text(encoding="utf-8")


def test_digests_are_those_of_the_files(written):
    for name, path, digest in written[1]:
        assert path.parent.name == name
        assert digest == "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()


def test_nothing_of_this_machine_is_in_the_files(written):
    for path in sorted(written[0].rglob("*.json")):
        text = path.read_text(encoding="utf-8")
        assert str(written[0]) not in text
        assert str(ROOT) not in text
        assert '"overrides"' not in text


def test_the_manifest_is_what_the_stock_cli_reads(written):
    manifest = json.loads((written[0] / "manifest.json").read_bytes())
    assert set(manifest) == {"stacks", "version"}
    for name, stack in manifest["stacks"].items():
        assert stack["name"] == name
        content = json.loads((written[0] / stack["synthesizedStackPath"]).read_bytes())
        assert content["//"]["metadata"]["stackName"] == name
    cdktf = json.loads((ROOT / "cdktf.json").read_bytes())
    assert (cdktf["app"], cdktf["language"]) == ("skyplan synth", "python")


def test_stacks_of_an_earlier_synthesis_go_and_other_folders_stay(written):
    from stacks.app import synth

    folder = written[0]
    (folder / "stacks" / "mine").mkdir()
    synth([inputs.network()], folder)
    assert sorted(path.name for path in (folder / "stacks").iterdir()) == ["mine", "net-prod-us-east-1"]


@pytest.mark.parametrize("name", ["cdktf", "cdktn"])
def test_each_cdk_gives_the_same_bytes(written, name, tmp_path_factory):
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    other = tmp_path_factory.mktemp(name)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(other)],
        cwd=ROOT,
        env={**os.environ, "SKYPLAN_CDK": name},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    mine = {path.relative_to(written[0]): path.read_bytes() for path in written[0].rglob("*.json")}
    assert {path.relative_to(other): path.read_bytes() for path in other.rglob("*.json")} == mine


def test_reading_names_and_variables_starts_no_kernel():
    program = (
        "import sys, stacks.runner, stacks.tool, stacks.wiring, modules.aws.images;"
        "print(sorted({'cdktf', 'cdktn', 'jsii', 'jinja2'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
