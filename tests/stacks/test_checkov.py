"""Checkov's opinion of the golden stacks, where Checkov is installed: every failed check is one that checkov.yaml skips, on the resources meant there.

Checkov is no dependency (300 MB): CONTRIBUTING.md says how to have it beside.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.stacks import golden_jobs
from tests.stacks.golden_jobs import golden_file

CONFIG = Path(__file__).with_name("checkov.yaml")
NODE = r"(resource\.node|aws_instance\.node\[.*)"
FABRIC = r"resource\.fabric-[\w-]+"
#: check -> (stacks, resources) on which checkov.yaml's reason holds; its own names for instances of `for_each` come with line numbers
ACCEPTED: dict[str, tuple[str, str]] = {
    "CKV_AWS_8": (r"aws/.*/cmp/", NODE),
    "CKV_AWS_79": (r"aws/.*/cmp/", NODE),
    "CKV_AWS_135": (r"aws/.*/cmp/", NODE),
    "CKV_AWS_126": (r"aws/.*/cmp/", NODE),
    "CKV2_AWS_41": (r"aws/.*/cmp/", NODE),
    "CKV2_AWS_5": (r"aws/.*/acc/", r"aws_security_group\.nodes"),
    "CKV2_AWS_11": (r"aws/.*/net/", r"aws_vpc\.net"),
    "CKV2_AWS_12": (r"aws/.*/net/", r"aws_vpc\.net"),
    "CKV_AWS_111": (r"aws/session/acc/", r"data\.session"),
    "CKV_AWS_356": (r"aws/session/acc/", r"data\.session"),
    "CKV2_AZURE_31": (r"azure/.*/net/", r"azurerm_subnet\.(nodes|public)\[.*"),
    "CKV2_GCP_18": (r"gcp/.*/(net|acc)/", r"google_compute_network\.(net|fabric-roce-[\w-]+)"),
    "CKV_GCP_26": (r"gcp/.*/acc/", FABRIC),
    "CKV_GCP_74": (r"gcp/.*/acc/", FABRIC),
    "CKV_GCP_38": (r"gcp/.*/cmp/", NODE),
}


def test_every_skip_has_a_reason_and_a_place():
    text = CONFIG.read_text(encoding="utf-8")
    skipped = yaml.safe_load(text)["skip-check"]
    assert sorted(skipped) == sorted(ACCEPTED)
    assert len(set(skipped)) == len(skipped)
    reasons = dict.fromkeys(skipped, "")
    said = ""
    for line in text.partition("skip-check:")[2].splitlines():
        if comment := re.match(r"\s+# (.*)", line):
            said += comment[1]
        elif check := re.match(r"\s+- (\w+)", line):
            reasons[check[1]], said = said, ""
    assert not [check for check, reason in reasons.items() if ":" not in reason or len(reason) < 40]


@pytest.mark.xdist_group("checkov")
def test_checkov_finds_nothing_that_is_not_accounted_for(tmp_path):
    checkov = shutil.which("checkov")
    if checkov is None:
        pytest.skip("no `checkov` on PATH: see CONTRIBUTING.md")
    for job in golden_jobs.every():
        for stack, document in json.loads(golden_file(job).read_text(encoding="utf-8")).items():
            folder = tmp_path / job.cloud.value / job.name / stack
            folder.mkdir(parents=True)
            (folder / "cdk.tf.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
    # not the configuration file: it would hide what its reasons are not about
    settings = ["--framework", "terraform_json", "--skip-download", "--compact", "--quiet", "--output", "json"]
    done = subprocess.run(
        [checkov, "--directory", str(tmp_path), *settings, "--config-file", str(_empty(tmp_path))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    found = json.loads(done.stdout)
    assert found["summary"]["parsing_errors"] == 0
    assert found["summary"]["passed"] > 1500
    failed = [(f["check_id"], f["file_path"], f["resource"]) for f in found["results"]["failed_checks"]]
    strangers = [one for one in failed if not _accepted(*one)]
    assert strangers == []
    assert {check for check, _, _ in failed} == set(ACCEPTED), "a skip that nothing needs is a hole"


def _accepted(check: str, path: str, resource: str) -> bool:
    stacks, resources = ACCEPTED.get(check, (r"(?!)", ""))
    return re.search(stacks, path) is not None and re.fullmatch(resources, resource) is not None


def _empty(folder: Path) -> Path:
    path = folder / "none.yaml"
    path.write_text("compact: true\n", encoding="utf-8")
    return path
