"""Plans of real-looking jobs from the packaged prices, byte for byte.  A change here is a change of what users see: review it as they would.

A case is a folder with job.yaml, perhaps skyplan.yaml and plans/; expected are plan.json (the plan file) and plan.txt (the table).
`pytest tests/golden --update-golden` writes them anew.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CASES = sorted(p.parent for p in (Path(__file__).parent / "cases").glob("*/job.yaml"))


def skyplan(case: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", "from planner.cli.entry import run; run()", "plan", "job.yaml", *arguments]
    return subprocess.run(command, cwd=case, capture_output=True, check=False, timeout=60)


@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)
def test_golden_plan(case: Path, pytestconfig: pytest.Config) -> None:
    text, document = skyplan(case), skyplan(case, "--json")
    assert b"Traceback" not in text.stderr
    plans = json.loads(document.stdout)["plans"]
    assert text.returncode == document.returncode == (0 if all(p["ranked"] for p in plans) else 1)
    got = {"plan.txt": text.stdout, "plan.json": document.stdout}
    if pytestconfig.getoption("--update-golden"):
        for name, data in got.items():
            (case / name).write_bytes(data)
    for name, data in got.items():
        assert data.decode() == (case / name).read_text(), f"{case.name}/{name}; --update-golden rewrites it"


def choice(name: str) -> dict[str, object]:
    plans = json.loads((Path(__file__).parent / "cases" / name / "plan.json").read_text())["plans"]
    return plans[0]["ranked"][0] if plans[0]["ranked"] else {}


def test_r12_locality_flips_the_choice() -> None:
    assert (choice("a100-80-data-in-s3")["cloud"], choice("a100-80-data-in-gcs")["cloud"]) == ("aws", "gcp")


def test_r10_multi_node_stays_in_one_place_with_addresses() -> None:
    best = choice("h100x8-4-nodes")
    assert best["nodes"] == len(best["addresses"]) == 4  # type: ignore[arg-type]


def test_capacity_paid_for_wins_and_the_quota_bars_the_other_target() -> None:
    best = choice("project-limits")
    assert (best["capacity"], best["reservation"], best["node_usd_per_hour"]) == ("reserved", "cr-0123", "0.0000")


def test_r21_a_pool_held_by_a_standing_plan_is_left_to_it() -> None:
    folder = Path(__file__).parent / "cases" / "pool-held-by-others"
    standing = json.loads((folder / "plans" / "early.plan.json").read_text())
    assert choice("pool-held-by-others")["pool"] != standing["ranked"][0]["pool"]


def test_plan_files_stay_small() -> None:
    for case in CASES:
        for plan in json.loads((case / "plan.json").read_text())["plans"]:
            assert len(json.dumps(plan, indent=2)) < 64 * 1024
            assert len(plan["ranked"]) <= 20
