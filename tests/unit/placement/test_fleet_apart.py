"""Jobs of a fleet that are placed by themselves, those in several clouds and those that run (R12, R21): their gangs, their room, their waiting, and what the whole costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.model.ledger import AvailabilityMemory, Holding, Ledger
from planner.model.offer import CapacityType, Cloud
from planner.model.project import Project, Quota, Target
from planner.model.workload import AntiAffinity, Apart, Gang, Workload
from planner.placement import told
from planner.placement.assign.check import wrong
from planner.placement.fleet import Fleet, Policy, holdings, plan_fleet
from planner.placement.offers import offers_of
from planner.placement.standing import Standing
from tests import builders as b
from tests.property.test_fleet_assignment import World, worlds

EAST, IOWA = b.region("us-east-1"), b.region("us-central1", Cloud.GCP, net_index=3)
P4DE, A2 = b.instance_type("p4de.24xlarge"), b.instance_type("a2-ultragpu-8g", cloud=Cloud.GCP)
OD = CapacityType.ON_DEMAND
MARKET = b.market([(P4DE, EAST, "", OD, 30.0), (A2, IOWA, "", OD, 40.0)])
ZONES = b.market([(P4DE, EAST, f"us-east-1-{z}", OD, usd) for z, usd in (("a", 20.0), ("b", 30.0))])
ONE_EACH = b.project(pool_cap_nodes=1)
TUNNEL: dict[str, Any] = {"tunnel": True, "sync_bytes": 100_000_000, "sync_seconds": 600.0}


def job(name: str, nodes: int = 1, **changes: Any) -> Workload:
    return b.workload(name, resources={"nodes": nodes}, **changes)


def fleet(
    market: b.Market, *jobs: Workload, project: Project = ONE_EACH, ledger: Ledger | None = None, **more: Any
) -> Fleet:
    policy = Policy(project=project, memory=AvailabilityMemory(), as_of=market.as_of, **more)
    return plan_fleet(jobs, market, ledger or Ledger(), policy)


def held(market: b.Market, *jobs: Workload) -> Ledger:
    found = fleet(market, *jobs, project=b.project(pool_cap_nodes=9)).placed
    return Ledger(tuple(sorted(h for p in found for h in holdings(p.ranked[0], market, workload=p.workload))))


def waits(found: Fleet) -> dict[str, str]:
    return {w.job: w.code for w in found.summary.waiting}


@pytest.mark.parametrize("solver", [told.solver, lambda: None], ids=["with HiGHS", "without"])
def test_a_gang_with_a_member_in_two_clouds_is_placed_whole_or_not_at_all(
    solver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(told, "solver", solver)
    pair = (job("a", 2, gang=Gang(group="g", least=2), **TUNNEL), job("b", gang=Gang(group="g", least=2)))
    # two pools of one node: the member in two clouds has them both, and the other none
    found = fleet(MARKET, *pair)
    assert found.summary.placed == 0
    assert waits(found) == {"a": "SKY-REJ-217", "b": "SKY-REJ-217"}
    # with two nodes in each both have their place
    assert fleet(MARKET, *pair, project=b.project(pool_cap_nodes=2)).summary.placed == 2


def test_a_job_that_only_two_clouds_can_serve_waits_where_others_have_them() -> None:
    wide = job("wide", 2, **TUNNEL)
    (alone,) = fleet(MARKET, wide).placed
    assert len(alone.ranked[0].parts) == 2
    for found in (
        fleet(MARKET, wide, ledger=held(MARKET, job("other"))),
        fleet(MARKET, job("first", priority=1), wide),
    ):
        assert waits(found) == {"wide": "SKY-REJ-219"}
        assert "needs 2 nodes in two clouds" in found.summary.waiting[0].text
    # one that nothing can serve is no waiting one
    assert not fleet(MARKET, job("third", 3, **TUNNEL)).summary.waiting


def test_what_runs_has_its_place_before_anybody_s_turn() -> None:
    runs = {"z-runs": Standing(offer_id="aws:default/us-east-1/us-east-1-a/p4de.24xlarge/on_demand")}
    found = fleet(ZONES, job("a-new", priority=5), job("z-runs"), standing=runs)
    where = {p.workload.name: p.ranked[0].zone for p in found.placed}
    assert where == {"a-new": "us-east-1-b", "z-runs": "us-east-1-a"}


def test_two_that_run_do_not_move_into_each_other_s_place() -> None:
    at = {
        n: Standing(offer_id=f"aws:default/us-east-1/us-east-1-{z}/p4de.24xlarge/on_demand")
        for n, z in (("x", "b"), ("y", "a"))
    }
    apart = (AntiAffinity(group="g", by=Apart.ZONE),)
    found = fleet(ZONES, *(job(n, anti_affinity=apart) for n in at), standing=at, project=b.project(pool_cap_nodes=4))
    assert {p.workload.name: p.ranked[0].zone for p in found.placed} == {"x": "us-east-1-b", "y": "us-east-1-a"}


@settings(max_examples=100, deadline=None)
@given(worlds(), st.data())
def test_whatever_runs_nobody_is_placed_where_it_has_its_nodes(world: World, data: st.DataObject) -> None:
    roomy = b.project(*(Target(name=t.name, cloud=t.cloud) for t in world.project.targets), pool_cap_nodes=20)
    standing, stands = {}, list[Holding]()
    for w in world.jobs:
        (placed,) = fleet(world.market, w, project=roomy).placed
        if placed.ranked and data.draw(st.booleans()):
            standing[w.name] = Standing(offer_id=data.draw(st.sampled_from(placed.ranked)).offer_id)
    found = world.plan(standing=standing)
    for p in found.placed:
        if p.ranked and p.workload.name in standing and p.ranked[0].offer_id == standing[p.workload.name].offer_id:
            stands += holdings(p.ranked[0], world.market, workload=p.workload)
    stay = {h.job for h in stands}
    new = [
        h
        for p in found.placed
        if p.ranked and p.workload.name not in stay
        for h in holdings(p.ranked[0], world.market, workload=p.workload)
    ]
    offers = offers_of(world.market, world.project, as_of=world.market.as_of)
    assert wrong(offers, world.project, Ledger(tuple(sorted((*world.ledger.holdings, *stands)))), new) == []


def test_one_by_one_is_of_the_same_jobs_by_priority_and_name_also_where_teams_take_turns() -> None:
    """a and b of one team, c of another, two places: turns give a and c one each.  By name a and b would have them, but those are others."""
    found = fleet(ZONES, job("a", team="red"), job("b", team="red"), job("c", team="blue"))
    assert {p.workload.name for p in found.placed if p.ranked} == {"a", "c"}
    assert found.summary.one_by_one_usd == found.summary.total_usd


@settings(max_examples=100, deadline=None)
@given(worlds())
def test_nothing_costs_more_than_the_same_jobs_one_by_one(world: World) -> None:
    # a gang has its turn with its first member, which by hand is another order
    world = replace(world, jobs=tuple(replace(w, gang=None) for w in world.jobs))
    found = world.plan()
    one = found.summary.one_by_one_usd
    assert one is None or found.summary.total_usd <= one
    # by hand: each of those that are placed in its turn, alone against the earlier ones
    ledger, total = world.ledger, found.summary.total_usd * 0
    for w in sorted((p.workload for p in found.placed if p.ranked), key=lambda w: (-w.priority, w.name)):
        (placed,) = fleet(world.market, w, project=world.project, ledger=ledger).placed
        if not placed.ranked:
            assert one is None
            return
        total += placed.ranked[0].total_usd
        for h in holdings(placed.ranked[0], world.market, workload=w):
            ledger = ledger.plus(h)
    assert one == total


def test_the_bound_is_not_told_where_jobs_are_placed_by_themselves() -> None:
    found = fleet(MARKET, job("a"), job("b"), job("wide", 2, priority=1, **TUNNEL), project=b.project(pool_cap_nodes=2))
    assert found.summary.placed == 3
    assert found.summary.bound_usd is None


def test_several_reasons_are_told_with_the_numbers_of_the_cheapest_place() -> None:
    """The cheap zone is full and the dear one has no quota: the pool of the cheap one is what is told."""
    quota = Quota(instance_types=("p4*",), regions=("us-west-2",), max_nodes=1)
    west = b.region("us-west-2", net_index=2)
    market = b.market([(P4DE, EAST, "", OD, 20.0), (P4DE, west, "", OD, 10.0)])
    project = b.project(Target(name="default", cloud=Cloud.AWS, quotas=(quota,)), pool_cap_nodes=1)
    two = b.project(Target(name="default", cloud=Cloud.AWS, quotas=(quota,)), pool_cap_nodes=2)
    found = fleet(market, job("a", 1), job("b", 1), job("c", 1), project=project)
    assert waits(found) == {"c": "SKY-REJ-207"}
    found = fleet(market, job("a", 1), job("b", 2), job("c", 1), project=two)
    (waiting,) = found.summary.waiting
    assert waiting.code == "SKY-REJ-219"
    cheapest = waiting.text.partition("the cheapest: ")[2]
    assert "us-west-2" in cheapest
    # what bars one place is not said of all
    full = fleet(
        market,
        job("a", 2),
        job("b", 1),
        job("c", 1),
        project=b.project(
            Target(name="default", cloud=Cloud.AWS, quotas=(replace(quota, regions=("us-east-1",), max_nodes=1),)),
            pool_cap_nodes=2,
        ),
    )
    (waiting,) = full.summary.waiting
    assert waiting.code == "SKY-REJ-219"
    assert "as full" not in waiting.text


def test_a_member_in_a_zone_that_is_not_sold_any_more_leaves_the_others_free() -> None:
    apart = (AntiAffinity(group="g", by=Apart.ZONE),)
    (elsewhere,) = held(ZONES, job("old", anti_affinity=apart)).holdings
    gone = replace(elsewhere, pool=elsewhere.pool.replace("us-east-1-a", "us-east-1-c"))
    found = fleet(ZONES, *(job(n, anti_affinity=apart) for n in "ab"), ledger=Ledger((gone,)))
    assert sorted(p.ranked[0].zone for p in found.placed if p.ranked) == ["us-east-1-a", "us-east-1-b"]


@pytest.mark.parametrize("solver", [told.solver, lambda: None], ids=["with HiGHS", "without"])
def test_who_waited_has_the_place_that_a_running_job_leaves(solver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two high ones for two zones, of which a running job has one.  It moves to a kind of node that they cannot use, after their turns."""
    monkeypatch.setattr(told, "solver", solver)
    p5 = b.instance_type("p5.48xlarge", gpu="H100")
    rows = [
        (P4DE, EAST, "us-east-1-a", OD, 20.0),
        (P4DE, EAST, "us-east-1-b", OD, 60.0),
        (p5, EAST, "us-east-1-a", OD, 10.0),
    ]
    either = tuple(b.GpuOption(model=m, count=8) for m in ("A100-80GB", "H100"))
    runs = b.workload("runs", resources={"accelerators": either})
    at = {"runs": Standing(offer_id="aws:default/us-east-1/us-east-1-b/p4de.24xlarge/on_demand")}
    found = fleet(b.market(rows), job("x", priority=9), job("y", priority=8), runs, standing=at)
    where = {p.workload.name: (p.ranked[0].instance_type, p.ranked[0].zone) for p in found.placed if p.ranked}
    assert where == {
        "x": ("p4de.24xlarge", "us-east-1-a"),
        "y": ("p4de.24xlarge", "us-east-1-b"),
        "runs": ("p5.48xlarge", "us-east-1-a"),
    }
