"""What went wrong with credentials for others in public (notes on rights, 4), as cases of ours.  Those about policies: tests/unit/iam/audit/test_issues.py."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from planner.clouds.aws import AwsLister
from planner.clouds.port import Where

ROOT = Path(__file__).parents[2]
BOOTS = sorted((ROOT / "tests" / "unit" / "modules" / "golden").glob("*.txt"))
OPERATORS_OWN = {
    "AWS_ACCESS_KEY_ID": "AKIAOPERATORSOWN0000",
    "AWS_SECRET_ACCESS_KEY": "operators-own-secret",
    "AWS_SESSION_TOKEN": "operators-own-token",
    "GOOGLE_APPLICATION_CREDENTIALS": "operators-own.json",
    "AZURE_CLIENT_SECRET": "operators-own-client-secret",
}
#: what shadows a node's own identity, since SDKs look there first
SHADOWS = re.compile(
    r"AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN|PROFILE)=|\.aws/credentials|AZURE_CLIENT_SECRET=|ARM_CLIENT_SECRET=|private_key"
)
JOB = """
name: train
resources: {accelerators: "A100-80GB:8"}
work: {hours: 24, on: "A100-80GB:8"}
run: python train.py
"""


@pytest.mark.parametrize("boot", BOOTS, ids=lambda path: path.stem)
def test_10_nothing_that_a_node_boots_shadows_its_own_identity(boot: Path) -> None:
    """skypilot#2820: the operator's credentials were copied to nodes, where they went before the role."""
    assert not SHADOWS.search(boot.read_text(encoding="utf-8"))


def skyplan(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "GOOGLE_", "ARM_", "AZURE_", "NEBIUS_"))}
    return subprocess.run(
        [sys.executable, "-c", "from planner.cli.entry import run; run()", *arguments],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_10_stacks_are_the_same_whatever_the_operator_holds(tmp_path: Path) -> None:
    """skypilot#2820 again, at its source: what is written for nodes knows nothing of who writes it."""
    (tmp_path / "job.yaml").write_text(JOB)
    assert skyplan(tmp_path, "plan", "job.yaml", "--out", "plans").returncode == 0
    found = []
    for number, environment in enumerate(({}, OPERATORS_OWN)):
        done = skyplan(tmp_path, "synth", "--out", f"out{number}", **environment)
        assert done.returncode == 0, done.stderr
        found.append({p.parent.name: p.read_text() for p in (tmp_path / f"out{number}").glob("stacks/*/cdk.tf.json")})
    assert len(found[0]) == 3
    assert found[0] == found[1]
    assert not [value for value in OPERATORS_OWN.values() if value in json.dumps(found)]


def test_11_each_lister_has_a_session_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """skypilot#7774: a server kept the session that it was started with, and so never saw refreshed credentials."""
    where = Where(cloud="aws", target="prod", region="us-east-1")
    seen = []
    for key in ("AKIABEFORE", "AKIAAFTER"):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
        for name in ("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_CA_BUNDLE"):
            monkeypatch.delenv(name, raising=False)
        client = AwsLister(where)._ec2
        seen.append(client._request_signer._credentials.access_key)
        client.close()
    assert seen == ["AKIABEFORE", "AKIAAFTER"]


def test_12_planning_needs_no_credentials_and_no_working_ones(tmp_path: Path) -> None:
    """skypilot#3967, #4189: an expired login, or one missing right, ended the whole command.  The catalog is a file, for every cloud."""
    (tmp_path / "job.yaml").write_text(JOB)
    broken = {
        "AWS_PROFILE": "gone",
        "AWS_CONFIG_FILE": str(tmp_path / "none"),
        "GOOGLE_APPLICATION_CREDENTIALS": "none",
    }
    plain = skyplan(tmp_path, "plan", "job.yaml", "--json")
    done = skyplan(tmp_path, "plan", "job.yaml", "--json", **broken)
    assert (plain.returncode, done.returncode) == (0, 0), done.stderr
    assert plain.stdout == done.stdout
    assert len({one["cloud"] for one in json.loads(done.stdout)["plans"][0]["ranked"]}) > 1
