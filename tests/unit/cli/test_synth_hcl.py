"""R21: `skyplan synth --format hcl` as it is called: which folders stand afterwards, and which are never taken away."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.cli.entry import call
from stacks.hcl import HEADER

JOB = """\
name: {name}
resources: {{accelerators: "T4:1"}}
work: {{hours: 2, on: "T4:1"}}
run: python train.py
constraints: {{clouds: [aws], instance_types: [g4dn.xlarge], regions: [us-east-1], stop_after: 4h}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("cdktf", reason="no CDK is installed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs").mkdir()
    for name in ("train", "other"):
        (tmp_path / "jobs" / f"{name}.yaml").write_text(JOB.format(name=name))
    assert call(["plan", "jobs/train.yaml", "jobs/other.yaml", "--out", "plans"]) == 0
    return tmp_path


def folders(of: Path) -> set[str]:
    return {p.parent.name for p in of.glob("*/main.tf") if p.read_text().startswith(HEADER)}


def test_what_stands_after_each_call(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    terraform = folder / "terraform"
    assert call(["synth", "--format", "hcl"]) == 0
    first = folders(terraform)
    assert {"cmp-train-g1", "cmp-other-g1"} <= first
    assert len([name for name in first if name.startswith("acc-")]) == 2
    data = {p: p.read_bytes() for p in terraform.rglob("*.tf")}
    assert call(["synth", "--format", "hcl", "--root"]) == 0
    assert folders(terraform) == {*first, "job-train", "job-other"}, "the forms stand side by side"
    assert {p: p.read_bytes() for p in data} == data

    (folder / "plans" / "other.plan.json").unlink()
    assert call(["synth", "plans/train.plan.json", "--format", "hcl"]) == 0
    assert folders(terraform) >= first, "one plan is named: the others are none of its business"
    capsys.readouterr()
    assert call(["synth", "--format", "hcl", "--generation", "2"]) == 0
    told = capsys.readouterr().err
    left = folders(terraform)
    assert {"cmp-train-g1", "cmp-train-g2"} <= left, "an earlier generation may run"
    assert "cmp-other-g1" not in left
    assert "job-other" in left
    assert f"{Path('terraform') / 'cmp-other-g1'}: nothing planned is in it any more" in told


def test_root_goes_with_hcl_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["synth", "--root"]) == 1
    assert "--format hcl" in capsys.readouterr().err
    assert not (folder / "cdktf.out").exists()
