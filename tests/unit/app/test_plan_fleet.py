"""Fleets as the app plans them: what is kept in mind of plans that stand, who waits and what its plan file says, and that nothing is written anew without need."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from planner.app import inputs
from planner.app.explain import answer
from planner.app.files import write_plans
from planner.app.inputs import read_plan
from planner.app.plan import Request, Result, run_on
from planner.app.review import Setting, review
from planner.app.standing_plans import standing_choices
from planner.model.digest import pretty
from planner.model.errors import InputError, StalePlan
from planner.model.market import Market
from planner.model.offer import CapacityType
from planner.model.plan import to_document
from planner.model.project import Budget, Project, Reservation
from planner.model.workload import AntiAffinity, Apart, CheckpointPolicy, Gang, Workload
from planner.render.explain_text import lines
from planner.render.text import Paint
from tests import builders as b
from tests.unit.app.world import NOW, PROJECT, small_market


def planned(
    jobs: Sequence[Workload],
    *,
    market: Market | None = None,
    project: Project | None = None,
    plans: Path | None = None,
    texts: dict[str, str] | None = None,
    now: datetime = NOW,
    as_of: str | None = None,
) -> Result:
    read = inputs.Inputs(
        jobs=tuple(inputs.Job(workload=j, file=f"{j.name}.yaml") for j in jobs),
        project=project or b.project(),
        project_file=None,
        market=market or small_market(),
        warnings=(),
        texts=texts or {},
    )
    return run_on(read, Request(job_files=(), plans_folder=plans, offline=True, as_of=as_of), now)


def written(result: Result, folder: Path) -> dict[str, bytes]:
    write_plans([p.plan for p in result.planned], folder)
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.plan.json"))}


def fleet(count: int) -> list[Workload]:
    """Jobs with prefixes of their own, some of several nodes."""
    out: list[Workload] = []
    for k in range(count):
        at = b.bucket(f"ckpt-{k % 3}", None if k % 5 == 0 else "us-east-1")
        mine = CheckpointPolicy(at=replace(at, prefix=f"job-{k}/"), size_bytes=10**9, every_hours=0.5)
        out.append(b.workload(f"job-{k:02}", checkpoint=mine, resources={"nodes": 1 + (k % 4 == 0)}))
    return out


def test_every_job_names_its_own_stores_although_jobs_alike_are_judged_once() -> None:
    jobs = fleet(6)
    for one in planned(jobs).planned:
        said = {c.text for p in one.plan.ranked for c in p.caveats if c.code == "SKY-SPEC-114"}
        mine = one.placed.workload.checkpoint
        assert mine is not None
        expected = {f"checkpoint {mine.at.uri}: region unknown, so its egress is not in the total"}
        assert said == (expected if mine.at.region is None else set())
        assert "\0" not in pretty(to_document(one.plan)).decode()


def test_planned_again_a_fleet_has_the_same_bytes(tmp_path: Path) -> None:
    jobs = fleet(12)
    first = written(planned(jobs, plans=tmp_path), tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    again = planned(jobs, plans=tmp_path)
    assert written(again, tmp_path) == first
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before, "and no file was touched"
    assert not any(p.changed for p in again.planned)
    assert planned(list(reversed(jobs)), plans=tmp_path).fleet == again.fleet


@pytest.mark.parametrize(
    ("change", "cap"),
    [({"run": "python other.py"}, 4), ({"priority": 9}, 4), ({"resources": {"nodes": 3}}, 100)],
    ids=["command", "priority", "nodes, with room"],
)
def test_one_changed_job_of_fifty_leaves_the_other_files_as_they_are(
    tmp_path: Path, change: dict[str, Any], cap: int
) -> None:
    market, project = wide_market(), b.project(pool_cap_nodes=cap)
    jobs = fleet(50)
    first = written(planned(jobs, market=market, project=project, plans=tmp_path), tmp_path)
    assert len(first) == 50
    changed = [b.workload(j.name, checkpoint=j.checkpoint, **change) if j.name == "job-07" else j for j in jobs]
    second = written(planned(changed, market=market, project=project, plans=tmp_path), tmp_path)
    assert {name for name in first if first[name] != second[name]} == {"job-07.plan.json"}


def test_where_the_others_must_make_room_the_files_of_those_that_move_are_written_and_no_other(tmp_path: Path) -> None:
    market = wide_market()
    jobs = fleet(50)
    before = planned(jobs, market=market, plans=tmp_path)
    first = written(before, tmp_path)
    standing = standing_choices(tmp_path)
    changed = [replace(j, resources=replace(j.resources, nodes=3)) if j.name == "job-07" else j for j in jobs]
    after = planned(changed, market=market, plans=tmp_path)
    second = written(after, tmp_path)
    stood = {p.plan.name: p.plan.choice.offer_id for p in before.planned}
    moved = {p.plan.name for p in after.planned if p.plan.choice.offer_id != stood[p.plan.name]}
    wider = {p.plan.name for p in after.planned if len(p.placed.ranked) > len(standing[p.plan.name].totals)}
    assert {name.removesuffix(".plan.json") for name in first if first[name] != second[name]} <= (
        moved | {"job-07"} | wider
    )
    assert len(moved) < 10


def test_a_clock_that_goes_on_writes_no_file_anew_until_they_are_old(tmp_path: Path) -> None:
    bought = Reservation(
        target="default",
        region="us-east-1",
        zone="us-east-1-a",
        instance_type="p4de.24xlarge",
        nodes=1,
        id="cr-1",
        starts="2020-01-01",
        expires="2021-01-01",
    )
    project = b.project(reserved=(bought,))  # what opens and expires is looked at by the clock
    jobs = fleet(6)
    first = written(planned(jobs, project=project, plans=tmp_path), tmp_path)
    assert written(planned(jobs, project=project, plans=tmp_path, now=NOW + timedelta(days=6)), tmp_path) == first
    old = written(planned(jobs, project=project, plans=tmp_path, now=NOW + timedelta(days=8)), tmp_path)
    assert not any(old[name] == first[name] for name in first)
    asked = written(planned(jobs, project=project, plans=tmp_path, as_of="2026-08-01"), tmp_path)
    assert not any(asked[name] == old[name] for name in old), "a moment that is asked for is the plan's"


def test_a_job_that_leaves_and_one_that_comes_write_no_other_file_anew(tmp_path: Path) -> None:
    market = wide_market()
    jobs = fleet(20)
    first = written(planned(jobs[:19], market=market, plans=tmp_path), tmp_path)
    second = written(planned(jobs[1:], market=market, plans=tmp_path), tmp_path)
    assert {name for name in first if first[name] != second[name]} == set()
    assert set(second) - set(first) == {"job-19.plan.json"}


def test_a_place_that_saves_enough_is_taken_all_the_same(tmp_path: Path) -> None:
    jobs = fleet(4)
    written(planned(jobs, plans=tmp_path), tmp_path)
    cheaper = small_market()
    prices = cheaper.price_micros.copy()
    west = [i for i, ix in enumerate(cheaper.region_ix) if cheaper.regions[ix].name == "us-west-2"]
    prices[west] //= 10
    result = planned(jobs, market=replace(cheaper, price_micros=prices), plans=tmp_path)
    assert any(p.plan.choice.region == "us-west-2" for p in result.planned)


def test_alone_a_job_gets_its_best_place_whatever_its_plan_says(tmp_path: Path) -> None:
    market = small_market()
    jobs = [b.workload("aa"), b.workload("bb")]
    both = planned(jobs, market=market, plans=tmp_path)
    written(both, tmp_path)
    (alone,) = planned(jobs[:1], market=market, plans=tmp_path).planned
    assert alone.plan.choice.rank == 0
    assert alone.placed.kept is None


def test_new_addresses_leave_those_of_plans_that_stand_alone(tmp_path: Path) -> None:
    market = wide_market()
    jobs = [b.workload(f"pair-{k:02}", resources={"nodes": 2}) for k in range(30)]
    written(planned(jobs[10:], market=market, plans=tmp_path), tmp_path)
    result = planned(jobs, market=market, plans=tmp_path)
    held = [(p.plan.choice.region, p.plan.choice.zone, a) for p in result.planned for a in p.plan.choice.addresses]
    assert len(held) == len(set(held)) == 60


# who waits


def full_house(count: int = 40, **more: object) -> list[Workload]:
    """More than the small market's pools hold."""
    return [b.workload(f"job-{k:02}", **more) for k in range(count)]


def test_who_waits_says_why_in_its_plan_and_apply_refuses_it_with_the_reason(tmp_path: Path) -> None:
    result = planned(full_house(), plans=tmp_path)
    waiting = [p for p in result.planned if p.waits]
    assert waiting
    assert {p.plan.name for p in waiting} == {w.job for w in result.fleet.waiting}
    assert result.fleet.placed == 40 - len(waiting)
    written(result, tmp_path)
    for one in waiting:
        plan = read_plan(tmp_path / f"{one.plan.name}.plan.json")
        assert (plan.ranked, plan.status.complete, plan.status.applyable) == ((), False, False)
        assert plan.waits.endswith("[SKY-REJ-207]")
        assert sum(note.startswith("waits: ") for note in plan.notes) == 1
    with pytest.raises((StalePlan, InputError)) as refused:
        review(waiting[0].plan, Setting(market=small_market(), project=PROJECT), (), NOW, saved=True)
    assert [d.code for d in refused.value.diagnostics] == ["SKY-APPLY-360"]
    assert waiting[0].plan.waits in refused.value.diagnostics[0].summary


def test_a_plan_of_a_waiting_job_holds_nothing_and_stays_as_it_is(tmp_path: Path) -> None:
    first = written(planned(full_house(), plans=tmp_path), tmp_path)
    assert written(planned(full_house(), plans=tmp_path), tmp_path) == first
    standing = standing_choices(tmp_path)
    late = [s.plan for s in standing.values() if s.plan.waits]
    assert late
    assert inputs.holdings_of(late, small_market()) == ()


def test_a_job_that_waited_gets_the_place_that_became_free(tmp_path: Path) -> None:
    jobs = full_house()
    result = planned(jobs, plans=tmp_path)
    written(result, tmp_path)
    late = next(p.plan.name for p in result.planned if p.waits)
    gone = next(p.plan.name for p in result.planned if not p.waits)
    (tmp_path / f"{gone}.plan.json").unlink()
    (one,) = planned([j for j in jobs if j.name == late], plans=tmp_path).planned
    assert one.plan.ranked
    assert one.waited.endswith("[SKY-REJ-207]"), "by its plan file it waits"
    said = "\n".join(lines(answer(one, None, 3), Paint(on=False)))
    assert "planned alone it has a place; by its plan file it waits: " in said


def test_explain_says_why_a_job_waits_and_what_it_would_get_the_soonest(tmp_path: Path) -> None:
    jobs = full_house()
    result = planned(jobs, plans=tmp_path)
    written(result, tmp_path)
    late = next(p.plan.name for p in result.planned if p.waits)
    (one,) = planned([j for j in jobs if j.name == late], plans=tmp_path).planned
    told = answer(one, None, 20)
    assert told.waits.endswith("[SKY-REJ-207]")
    assert 0 < len(told.verdicts) <= 5
    assert all([r.code for r in v.rejections] == ["SKY-REJ-207"] for v in told.verdicts)
    assert f"  waits: {told.waits}" in lines(told, Paint(on=False))


@pytest.mark.parametrize(
    ("project", "more", "code"),
    [
        (b.project(budgets=(Budget(teams=("vision",), usd_per_hour=15.0),)), {"team": "vision"}, "SKY-REJ-218"),
        (b.project(), {"anti_affinity": (AntiAffinity(group="g", by=Apart.CLOUD),)}, "SKY-REJ-216"),
    ],
)
def test_budgets_and_groups_make_wait(project: Project, more: dict[str, object], code: str) -> None:
    result = planned(full_house(3, **more), project=project)
    assert {w.code for w in result.fleet.waiting} == {code}
    assert all(p.plan.waits.endswith(f"[{code}]") for p in result.planned if p.waits)


def test_what_stands_counts_to_budgets_and_gangs(tmp_path: Path) -> None:
    gang = Gang(group="sweep", least=3)
    jobs = full_house(3, gang=gang, team="nlp")
    text = {f"{j.name}.yaml": f"name: {j.name}\ngang: {{group: sweep, least: 3}}\n" for j in jobs}
    with pytest.raises(InputError) as error:
        planned(jobs[:1], plans=tmp_path, texts=text)
    assert [(d.code, str(d.location)) for d in error.value.diagnostics] == [("SKY-SPEC-113", "job-00.yaml:2")]
    written(planned(jobs, plans=tmp_path), tmp_path)
    (one,) = planned(jobs[:1], plans=tmp_path, texts=text).planned
    assert one.plan.ranked, "two of its gang have places already"
    spent = sum(
        (s.plan.choice.usd_per_hour for s in standing_choices(tmp_path).values() if s.plan.name != "job-00"), Decimal(0)
    )
    tight = b.project(budgets=(Budget(teams=("nlp",), usd_per_hour=float(spent) + 1.0),))
    (late,) = planned(jobs[:1], plans=tmp_path, texts=text, project=tight).planned
    assert late.plan.waits.endswith("[SKY-REJ-218]")


def test_of_a_gang_that_waits_each_job_says_why(tmp_path: Path) -> None:
    gang = Gang(group="sweep", least=20)
    jobs = full_house(20, gang=gang)
    result = planned(jobs, plans=tmp_path)
    assert (result.fleet.placed, {w.code for w in result.fleet.waiting}) == (0, {"SKY-REJ-217"})
    written(result, tmp_path)
    (one,) = planned(jobs[:1], plans=tmp_path).planned
    assert one.plan.waits.endswith("[SKY-REJ-217]")
    assert answer(one, None, 20).waits == one.plan.waits


def test_infeasible_is_not_waiting_and_writes_no_file(tmp_path: Path) -> None:
    impossible = b.workload("impossible", resources={"min_vcpus": 100_000})
    result = planned([impossible, b.workload("possible")])
    lost = next(p for p in result.planned if p.plan.name == "impossible")
    assert (lost.waits, lost.plan.waits, lost.plan.ranked) == (False, "", ())
    assert set(written(result, tmp_path)) == {"possible.plan.json"}


def test_a_standing_plan_is_read_as_far_as_planning_needs_it_and_checked_whole(tmp_path: Path) -> None:
    result = planned(fleet(3))
    written(result, tmp_path)
    standing = standing_choices(tmp_path)
    for one in result.planned:
        held = standing[one.plan.name]
        assert held.plan.choice.placement_id == one.plan.choice.placement_id
        assert held.totals == {p.offer_id: p.total_usd for p in one.plan.ranked}
        assert to_document(held.whole()) == to_document(one.plan)
    path = tmp_path / "job-00.plan.json"
    document = json.loads(path.read_text())
    document["notes"] = ["edited"]
    path.write_bytes(pretty(document))
    with pytest.raises(InputError) as error:
        standing_choices(tmp_path)
    assert [d.code for d in error.value.diagnostics] == ["SKY-APPLY-301"]


def wide_market() -> Market:
    """Twenty zones' pools, each with a price of its own."""
    kind = b.instance_type()
    regions = [b.region(f"us-east-{k}", net_index=k) for k in range(1, 21)]
    return b.market([(kind, at, at.zones[0], CapacityType.ON_DEMAND, 20.0 + k / 10) for k, at in enumerate(regions)])
