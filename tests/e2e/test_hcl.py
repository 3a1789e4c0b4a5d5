"""R21: what a team that commits HCL gets, with the real Terraform and AWS provider against an emulated AWS: the same plan as from JSON, and a job that runs and goes.

Neither skyplan nor Node has a part in it once the files are written.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.workspace import Workspace
from tests.emulators.aws import Aws
from tests.emulators.terraform import Terraform

pytestmark = pytest.mark.terraform


@pytest.fixture
def workspace(tmp_path: Path, aws: Aws, terraform: Terraform) -> Workspace:
    made = Workspace(tmp_path / "repo", aws, terraform)
    made.plan()
    return made


def _planned(terraform: Terraform, folder: Path, variables: dict[str, Any]) -> Any:
    (folder / "given.auto.tfvars.json").write_text(json.dumps(variables))
    terraform.ok(folder, "init", "-no-color")
    terraform.ok(folder, "plan", "-no-color", "-out", "made.plan")
    shown = json.loads(terraform.ok(folder, "show", "-json", "made.plan"))
    return {part: shown.get(part) for part in ("variables", "planned_values", "resource_changes", "output_changes")}


def _applied(terraform: Terraform, folder: Path) -> dict[str, Any]:
    terraform.ok(folder, "apply", "-no-color", "-auto-approve")
    return {n: o["value"] for n, o in json.loads(terraform.ok(folder, "output", "-json")).items()}


@pytest.mark.full
def test_the_chain_of_stacks_is_planned_alike_from_json_and_from_hcl(
    workspace: Workspace, terraform: Terraform
) -> None:
    """Network, then access with the network's outputs, then compute with the launch that access hands on: as docs/terraform.md says."""
    workspace.run("synth", "plans/train.plan.json")
    workspace.run("synth", "plans/train.plan.json", "--format", "hcl", "--out", "tf")
    as_json, as_hcl = workspace.folder / "cdktf.out" / "stacks", workspace.folder / "tf"
    names = {kind: next(p.name for p in as_hcl.iterdir() if p.name.startswith(kind)) for kind in ("net", "acc", "cmp")}
    assert sorted(p.name for p in as_json.iterdir()) == sorted(names.values())
    given: dict[str, Any] = {}
    for kind in ("net", "acc", "cmp"):
        folder = as_hcl / names[kind]
        assert _planned(terraform, folder, given) == _planned(terraform, as_json / names[kind], given)
        outputs = _applied(terraform, folder)
        if kind == "net":
            given = {n: outputs[n] for n in ("vpc_id", "subnet_ids", "security_group_ids")}
        elif kind == "acc":
            plan = json.loads((workspace.folder / "plans" / "train.plan.json").read_text())["ranked"][0]
            key = f"{plan['instance_type']}/{plan['zone']}"
            given = outputs["launch"].get(f"{key}/spot", outputs["launch"][key])
    assert len(workspace.nodes()) == 2
    for kind in ("cmp", "acc", "net"):
        terraform.ok(as_hcl / names[kind], "destroy", "-no-color", "-auto-approve")
    assert workspace.aws.leftovers() == []


def test_one_root_module_runs_a_job_and_leaves_nothing(
    workspace: Workspace, terraform: Terraform, tmp_path: Path
) -> None:
    workspace.run("synth", "--format", "hcl", "--root")
    # as a repository that has nothing but the files
    root = tmp_path / "elsewhere"
    shutil.copytree(workspace.folder / "terraform" / "job-train", root)
    terraform.ok(root, "init", "-no-color")
    terraform.ok(root, "validate", "-no-color")
    outputs = _applied(terraform, root)
    assert {n["instance_id"] for n in outputs["nodes"].values()} == workspace.nodes()
    assert len(workspace.nodes()) == 2
    assert terraform.run(root, "plan", "-no-color", "-detailed-exitcode").returncode == 0
    terraform.ok(root, "destroy", "-no-color", "-auto-approve")
    assert workspace.aws.leftovers() == []
