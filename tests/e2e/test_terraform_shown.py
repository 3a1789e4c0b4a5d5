"""The audit of a user's own root by the real Terraform: what its plan shows, what its state shows, and what was recorded of both.

`tests/unit/iam/read/test_terraform_shown.py` goes by the recorded; here is held that Terraform still says the same.  AWS is emulated.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from planner.iam.audit.registry import run
from planner.iam.read.terraform import read_terraform
from tests.emulators.aws import Aws
from tests.emulators.terraform import Terraform
from tests.unit.iam.read.test_terraform_shown import load, rights, without_the_dynamic

ROOT = Path(__file__).parent / "terraform_root"


def found(document: dict[str, Any]) -> set[tuple[str, str]]:
    return {(finding.rule, finding.identity) for finding in run(read_terraform(document, file="x"))}


@pytest.mark.terraform
def test_plan_and_state_of_the_real_terraform_are_read(terraform: Terraform, aws: Aws, tmp_path: Path) -> None:
    folder = shutil.copytree(ROOT, tmp_path / "root")
    terraform.ok(folder, "init", "-no-color")
    terraform.ok(folder, "plan", "-no-color", "-out", "p")
    plan: dict[str, Any] = json.loads(terraform.ok(folder, "show", "-json", "p"))
    terraform.ok(folder, "apply", "-no-color", "p")
    state: dict[str, Any] = json.loads(terraform.ok(folder, "show", "-json"))
    stored: dict[str, Any] = json.loads((folder / "terraform.tfstate").read_text(encoding="utf-8"))

    assert rights(read_terraform(plan, file="p")) == rights(read_terraform(load("plan"), file="p"))
    held = [rights(read_terraform(one, file="s")) for one in (state, stored, load("state"))]
    assert held[0] == held[1] == held[2]
    assert without_the_dynamic(rights(read_terraform(plan, file="p"))) == without_the_dynamic(held[0])
    assert {("SKY-IAM-401", "each-one"), ("SKY-IAM-201", "counted-1"), ("SKY-IAM-208", "counted-0")} <= found(plan)
    assert {rule for rule, _ in found(state)} - {rule for rule, _ in found(plan)} == set()
