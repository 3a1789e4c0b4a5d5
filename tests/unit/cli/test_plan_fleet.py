"""`skyplan plan` of many jobs: the example fleet says what docs/fleets.md says of it, and exit codes, files and JSON are as they are told."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from planner.cli.entry import call
from planner.spec.schema_plan import plans_schema

pytest.importorskip("highspy", reason="the example's figures are the solver's (extra `fleet`)")

ROOT = Path(__file__).parents[3]
Run = Callable[..., tuple[int, str, str]]
WAITS = "segmenter"
"""Which job of the example waits: its team has the larger share of the nodes already."""


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def runs(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = call(list(arguments))
        out, err = capfd.readouterr()
        return code, out, err

    return runs


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The example's job files, in a folder of its own that is worked in."""
    shutil.copytree(ROOT / "examples" / "fleet", tmp_path / "fleet")
    monkeypatch.chdir(tmp_path / "fleet")
    return [str(path) for path in sorted(Path("jobs").glob("*.yaml"))]


def document(run: Run, *arguments: str) -> dict[str, Any]:
    code, out, _ = run("plan", *arguments, "--offline", "--json")
    assert code == 0
    return json.loads(out)


def test_the_example_contends_and_one_job_waits(run: Run, example: list[str]) -> None:
    code, out, err = run("plan", *example, "--offline")
    assert code == 0, "who only waits is no error of its file"
    assert out.startswith("fleet  14 of 15 jobs placed, 1 waits\n")
    assert "warning: segmenter waits for room [SKY-APPLY-360]" in err
    assert "    . segmenter  priority 0, team vision\n" in out
    assert "[SKY-REJ-205]\n        before it: " in out
    for told in ("    total ", "    bound ", "  pools: ", "  budgets", "  waiting: 1 (SKY-REJ-205 1)"):
        assert told in out
    table = [line for line in out.splitlines() if line.startswith(("+  ", ".  "))]
    assert len(table) == 15, "a line a job, as there are more than ten"
    assert "runners-up" not in out


def test_what_the_example_says_holds(run: Run, example: list[str]) -> None:
    said = document(run, *example)
    jsonschema.Draft202012Validator(plans_schema()).validate(said)
    assert said["format_version"] == "1.1"
    fleet, plans = said["fleet"], {p["job"]["name"]: p for p in said["plans"]}
    assert (fleet["jobs"], fleet["placed"], [w["job"] for w in fleet["waiting"]]) == (15, 14, [WAITS])
    places = {name: p["ranked"][0] for name, p in plans.items() if p["ranked"]}
    assert len({places[f"judge-{one}"]["zone"] for one in "abc"}) == 3, "apart by zone"
    assert sum(name.startswith("trial-") for name in places) == 6, "the gang is whole"
    eight = [p for p in places.values() if p["instance_type"].startswith("p4d")]
    assert len(eight) == 3, "the quota"
    used: dict[str, int] = {}
    for p in places.values():
        used[p["pool"]] = used.get(p["pool"], 0) + p["nodes"]
    assert max(used.values()) == 2, "pool_cap_nodes, and it binds"
    assert {u["pool"]: u["planned"] for u in fleet["pools"] if u["planned"]} == used
    for use in fleet["budgets"]:
        assert float(use["held_usd"]) + float(use["planned_usd"]) <= float(use["limit_usd"])
    assert float(fleet["bound_usd"]) <= float(fleet["total_usd"])
    # by priority and name alone segmenter would have a place and another team's job none
    assert fleet["one_by_one_usd"] is None or float(fleet["one_by_one_usd"]) >= float(fleet["total_usd"])


def test_naming_one_shows_it_in_full_and_explain_shows_all(run: Run, example: list[str]) -> None:
    _, out, _ = run("plan", *example, "--offline", "--show", "judge-b", "--show", WAITS)
    assert "+ judge-b  aws:prod us-east-1" in out
    assert out.count("  runners-up") == 1
    assert ". segmenter  waits\n\n  why\n" in out
    _, out, _ = run("plan", *example, "--offline", "--explain")
    assert [line[0] for line in out.splitlines() if line[:2] in {"+ ", ". "}].count("+") == 14
    assert out.count("\n  why\n") == 15
    code, _, err = run("plan", *example, "--offline", "--show", "juge-b")
    assert code == 1
    assert "no job `juge-b` among those that are planned; did you mean `judge-" in err


def test_few_jobs_are_told_in_full_after_the_fleet_and_one_without_it(run: Run, example: list[str]) -> None:
    _, out, _ = run("plan", "jobs/judges.yaml", "--offline")
    assert out.startswith("fleet  3 of 3 jobs placed\n")
    assert out.count("  runners-up") == 3
    single = Path("jobs/judges.yaml").read_text().split("---")[0].replace("anti_affinity", "# ")
    Path("one.yaml").write_text(single)
    _, out, _ = run("plan", "one.yaml", "--offline")
    assert out.startswith("+ judge-a")
    assert "fleet" not in out.splitlines()[0]


def test_files_are_written_for_who_waits_too_and_apply_refuses_that_one(run: Run, example: list[str]) -> None:
    code, _, err = run("plan", *example, "--offline", "--out", "plans")
    assert code == 0
    assert "wrote 15 plans to plans" in err
    first = {path.name: path.read_bytes() for path in Path("plans").iterdir()}
    assert len(first) == 15
    code, _, err = run("plan", *example, "--offline", "--out", "plans")
    assert "left 15 plans in plans as they are" in err
    assert "wrote" not in err
    assert (code, {path.name: path.read_bytes() for path in Path("plans").iterdir()}) == (0, first)
    code, _, err = run("apply", f"plans/{WAITS}.plan.json", "--auto-approve")
    assert code == 1
    assert "`segmenter` waits: " in err
    assert "SKY-APPLY-360" in err


def test_explain_says_why_a_job_waits(run: Run, example: list[str]) -> None:
    run("plan", *example, "--offline", "--out", "plans")
    text = Path("jobs/training.yaml").read_text()
    (own,) = [one for one in text.split("---\n") if f"name: {WAITS}" in one]
    Path("waiting.yaml").write_text(own)
    code, out, _ = run("explain", "waiting.yaml", "--offline")
    assert code == 0
    assert "  waits: " in out
    assert "[SKY-REJ-205]" in out
    code, out, _ = run("explain", "waiting.yaml", "--offline", "--json")
    assert code == 0
    assert json.loads(out)["jobs"][0]["waits"].endswith("[SKY-REJ-205]")


def test_the_exit_code_tells_changes_and_what_cannot_be_placed(run: Run, example: list[str]) -> None:
    assert run("plan", *example, "--offline", "--detailed-exitcode")[0] == 2
    run("plan", *example, "--offline", "--out", "plans")
    assert run("plan", *example, "--offline", "--detailed-exitcode")[0] == 0
    lost = (
        Path("jobs/judges.yaml")
        .read_text()
        .split("---")[0]
        .replace("judge-a", "lost")
        .replace("accelerators: L4:1}", "accelerators: L4:1, memory: 9TB}")
    )
    Path("lost.yaml").write_text(lost)
    code, out, err = run("plan", *example, "lost.yaml", "--offline")
    assert code == 1
    assert "error: no feasible placement for lost\n  hint: --show NAME counts the reasons" in err
    assert "!  lost" in out


def test_what_jobs_say_against_each_other_is_told_at_its_line_before_anything_is_written(
    run: Run, example: list[str]
) -> None:
    path = Path("jobs/sweep.yaml")
    lines = path.read_text().splitlines()
    at = max(k for k, line in enumerate(lines) if "least: 6" in line)
    lines[at] = lines[at].replace("least: 6", "least: 5")
    path.write_text("\n".join(lines) + "\n")
    code, out, err = run("plan", *example, "--offline", "--out", "plans")
    assert (code, out, Path("plans").exists()) == (1, "", False)
    assert f"jobs/sweep.yaml:{at + 1}" in err
    assert "SKY-SPEC-113" in err
    code, _, err = run("plan", "jobs/training.yaml", "jobs/sweep.yaml", "--offline")
    assert code == 1


def test_the_plans_that_are_named_stand_wherever_the_new_ones_are_written(run: Run, example: list[str]) -> None:
    """`--out` alone is the folder of both; where `--plans` names another, what stands there is held, and its jobs stay."""
    run("plan", *example, "--offline", "--out", "plans")
    (taken, *_), (code, out, _) = (
        run("plan", "jobs/batch.yaml", "--offline", "--json", *more)
        for more in (["--out", "alone"], ["--plans", "plans", "--out", "beside"])
    )
    assert (taken, code) == (0, 0)
    held = {(use["kind"], *use["teams"]): use["held_usd"] for use in json.loads(out)["fleet"]["budgets"]}
    assert float(held["per_hour", "*"]) > 10, "what the other plans take of the budget"
    alone = json.loads(run("plan", "jobs/batch.yaml", "--offline", "--json", "--out", "alone")[1])
    assert {float(use["held_usd"]) for use in alone["fleet"]["budgets"]} == {0.0}
    # and nobody moves for being written elsewhere
    code, _, _ = run("plan", *example, "--offline", "--plans", "plans", "--out", "again", "--detailed-exitcode")
    assert code == 0
    for path in Path("plans").glob("*.plan.json"):
        assert (Path("again") / path.name).read_bytes() == path.read_bytes()
