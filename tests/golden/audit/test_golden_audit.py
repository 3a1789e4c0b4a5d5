"""Audits byte for byte, and the plans of every golden job without a finding.

A case is a folder of Terraform JSON, perhaps skyplan.yaml, and `base/` to hold it against; expected are report.txt, report.json and report.md.
`pytest tests/golden/audit --update-golden` writes them anew.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from planner.cli.entry import call

HERE = Path(__file__).parent
CASES = sorted(path.parent for path in HERE.glob("*/iam.tf.json")) + sorted(
    p.parent.parent for p in HERE.glob("*/base/*.tf.json")
)
PLANS = sorted(path.parent for path in (HERE.parent / "cases").glob("*/plan.json"))
NAMES = {"table": "report.txt", "json": "report.json", "markdown": "report.md"}


@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)
def test_golden_audit(case: Path, tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(case)
    outputs = [w for name, file in NAMES.items() for w in ("--format", name, "--output", str(tmp_path / file))]
    base = ["iam", "--base", "base"] if (case / "base").is_dir() else ["iam.tf.json"]
    code = call(["audit", *base, *outputs])
    assert code == (1 if "users" in case.name else 2)  # one has an expired suppression
    for file in NAMES.values():
        got = (tmp_path / file).read_bytes()
        if pytestconfig.getoption("--update-golden"):
            (case / file).write_bytes(got)
        assert got.decode() == (case / file).read_text(), f"{case.name}/{file}; --update-golden rewrites it"


@pytest.mark.parametrize("case", PLANS, ids=lambda p: p.name)
def test_skyplans_own_plans_have_no_finding(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("job.yaml", "skyplan.yaml"):
        if (case / name).exists():
            shutil.copy(case / name, tmp_path)
    (tmp_path / "plans").mkdir()
    for plan in json.loads((case / "plan.json").read_text())["plans"]:
        (tmp_path / "plans" / f"{plan['job']['name']}.plan.json").write_text(json.dumps(plan))
    monkeypatch.chdir(tmp_path)
    code = call(["audit", "--fail-on", "info", "--json"])
    said = capsys.readouterr()
    report = json.loads(said.out)
    assert (code, report["findings"]) == (0, []), said.err
    placed = any(plan["ranked"] for plan in json.loads((case / "plan.json").read_text())["plans"])
    assert bool(report["identities"]) is placed
