"""Many jobs in one assignment (R12, R21): who gets which place, who waits, why, and what stays."""

from __future__ import annotations

import sys
from dataclasses import replace
from decimal import Decimal

import pytest

from planner.model.fleet import Waiting
from planner.model.ledger import AvailabilityMemory, Holding, Ledger
from planner.model.market import Market
from planner.model.offer import CapacityType, Cloud
from planner.model.project import Budget, Project, Quota, Target
from planner.model.workload import AntiAffinity, Apart, Gang, Workload
from planner.placement.explain import verdict
from planner.placement.fleet import Fleet, Policy, holdings, ledger_digest, plan, plan_fleet
from planner.placement.standing import Standing
from tests import builders as b

EAST, WEST = b.region("us-east-1"), b.region("us-west-2", net_index=2)
P4DE, P5 = b.instance_type("p4de.24xlarge"), b.instance_type("p5.48xlarge", gpu="H100")
OD, SPOT = CapacityType.ON_DEMAND, CapacityType.SPOT
NOTHING = Ledger()
AWS = Target(name="default", cloud=Cloud.AWS)
A, B, C = "us-east-1-a", "us-east-1-b", "us-west-2-a"


def market(*prices: tuple[str, float]) -> Market:
    """One p4de offer per zone."""
    return b.market([(P4DE, WEST if zone.startswith("us-west") else EAST, zone, OD, usd) for zone, usd in prices])


def job(name: str, nodes: int = 1, hours: float = 10.0, **changes) -> Workload:
    found = b.workload(name, resources={"nodes": nodes, **changes.pop("resources", {})}, **changes)
    return replace(found, work=replace(found.work, hours=hours, nodes=nodes))


def fleet(m: Market, *jobs: Workload, ledger: Ledger = NOTHING, project: Project | None = None, **policy) -> Fleet:
    given = Policy(project=project or b.project(AWS), memory=AvailabilityMemory(), as_of=m.as_of, **policy)
    return plan_fleet(jobs, m, ledger, given)


def zones(found: Fleet) -> dict[str, str]:
    return {p.workload.name: p.ranked[0].zone if p.ranked else "" for p in found.placed}


def waiting(found: Fleet) -> dict[str, Waiting]:
    return {p.workload.name: p.waiting for p in found.placed if p.waiting}


# two kinds that want one place: `any` may take both types at a small difference, `only` needs the one
BOTH = [b.GpuOption(model="A100-80GB", count=8), b.GpuOption(model="H100", count=8)]


def contended() -> tuple[Market, tuple[Workload, ...], Project]:
    """One by one, `a-any` takes the p4de that saves it 1, and `b-only` is left with a far dearer one."""
    m = b.market([(P4DE, EAST, A, OD, 20.0), (P4DE, EAST, B, OD, 90.0), (P5, EAST, A, OD, 64.0)])
    either = job("a-any", resources={"accelerators": tuple(BOTH)})
    return m, (either, job("b-only")), b.project(AWS, pool_cap_nodes=1)


def test_together_jobs_cost_less_than_one_by_one() -> None:
    m, jobs, project = contended()
    found = fleet(m, *jobs, project=project)
    s = found.summary
    assert s.method.startswith("HiGHS ")
    assert s.one_by_one_usd is not None
    assert s.bound_usd is not None
    assert s.bound_usd <= s.total_usd < s.one_by_one_usd
    assert [p.ranked[0].instance_type for p in found.placed] == ["p5.48xlarge", "p4de.24xlarge"]
    assert any(
        "one by one it would be aws:default/us-east-1/us-east-1-a/p4de.24xlarge/on_demand" in n
        for n in found.placed[0].notes
    )
    # every fallback is told against what the other holds
    assert "aws:default/us-east-1/us-east-1-a/p4de.24xlarge/on_demand" not in {
        p.offer_id for p in found.placed[0].ranked
    }


def test_without_the_solver_one_by_one_stands_and_says_what_would_look_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    m, jobs, project = contended()
    found = fleet(m, *jobs, project=project)
    assert found.summary.method == "one by one"
    assert found.summary.total_usd == found.summary.one_by_one_usd
    assert found.summary.bound_usd is None
    assert [p.ranked[0].zone for p in found.placed] == [A, B]
    assert all(any("extra `fleet`" in n for n in p.notes) for p in found.placed)


def test_the_solver_says_nothing_on_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    m, jobs, project = contended()
    assert fleet(m, *jobs, project=project).summary.method.startswith("HiGHS")
    assert capfd.readouterr() == ("", "")


def test_where_nobody_contends_no_solver_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.placement.told.solver", lambda: pytest.fail("nobody contends"))
    found = fleet(market((A, 20.0), (B, 21.0)), job("a"), job("b"))
    assert (zones(found), found.summary.method) == ({"a": A, "b": A}, "one by one")
    assert found.summary.total_usd == found.summary.one_by_one_usd == found.summary.bound_usd


def test_who_waits_says_for_what_and_behind_whom() -> None:
    found = fleet(market((A, 20.0)), job("a", 2), job("b", 2), job("c", 2))
    assert zones(found) == {"a": A, "b": A, "c": ""}
    (one,) = found.summary.waiting
    assert (one.job, one.code, one.behind) == ("c", "SKY-REJ-207", ("a", "b"))
    assert one.text == "needs 2 nodes of a pool; aws:default/us-east-1-a/p4de/on_demand has 4, of which 4 are held"
    assert found.placed[2].notes == (f"waits: {one.text}",)
    assert (found.summary.jobs, found.summary.placed) == (3, 2)
    (pool,) = found.summary.pools
    assert (pool.held, pool.planned, pool.cap) == (0, 4, 4)


def test_what_has_no_place_on_an_empty_market_does_not_wait() -> None:
    narrow = b.project(AWS, pool_cap_nodes=2)
    found = fleet(market((A, 20.0)), job("a"), job("b", 3), project=narrow)
    assert (zones(found), waiting(found)) == ({"a": A, "b": ""}, {})


def test_a_job_of_more_nodes_than_the_guess_has_an_empty_pool_to_itself() -> None:
    m = market((A, 20.0), (B, 25.0))
    found = fleet(m, job("a", 8), job("b"), job("c"))
    assert zones(found) == {"a": A, "b": B, "c": B}
    assert zones(fleet(m, job("a"), job("b", 8), job("c", 8))) == {"a": B, "b": A, "c": ""}


def test_a_higher_class_never_waits_for_a_lower_one() -> None:
    m = market((A, 20.0))
    found = fleet(m, job("low", 4), job("high", 4, priority=5))
    assert zones(found) == {"high": A, "low": ""}
    assert waiting(found)["low"].behind == ("high",)


def test_when_there_is_not_enough_turns_go_to_the_team_with_the_fewest_gpus() -> None:
    jobs = [job(f"{t}-{n}", team=t) for t, many in (("ants", 6), ("bees", 2)) for n in range(many)]
    found = fleet(market((A, 20.0)), *jobs)
    assert {n for n, z in zones(found).items() if z} == {"ants-0", "ants-1", "bees-0", "bees-1"}
    # with room for all the order of names decides as ever
    assert waiting(fleet(market((A, 20.0), (B, 21.0)), *jobs)) == {}


def test_a_team_s_large_job_has_its_turn_before_small_ones_fill_the_pool() -> None:
    jobs = [job("ants-large", 4, team="ants"), *(job(f"bees-{n}", team="bees") for n in range(6))]
    found = fleet(market((A, 20.0)), *jobs)
    assert {n for n, z in zones(found).items() if z} == {"ants-large"}
    later = [job("zebras-large", 4, team="zebras"), *(job(f"bees-{n}", team="bees") for n in range(6))]
    assert waiting(fleet(market((A, 20.0)), *later))["zebras-large"].code == "SKY-REJ-207"


def test_a_job_that_may_move_makes_room_for_one_that_may_not() -> None:
    """`a` takes the only p4de though it may have a p5; moved, it lets `b` in."""
    m = b.market([(P4DE, EAST, A, OD, 20.0), (P5, EAST, A, OD, 64.0)])
    either = job("a", resources={"accelerators": tuple(BOTH)})
    found = fleet(m, either, job("b"), project=b.project(AWS, pool_cap_nodes=1))
    assert waiting(found) == {}
    assert found.summary.one_by_one_usd is None
    assert [p.ranked[0].instance_type for p in found.placed] == ["p5.48xlarge", "p4de.24xlarge"]


@pytest.mark.parametrize(
    ("quota", "code", "words"),
    [
        (
            {"max_nodes": 1},
            "SKY-REJ-205",
            "needs 1 node; the quota of p4* in us-east-1 of target default allows 1 node, of which 1 are held",
        ),
        (
            {"max_gpus": 12},
            "SKY-REJ-205",
            "needs 1 node, 8 GPUs; the quota of p4* in us-east-1 of target default allows 12 GPUs, of which 8 are held",
        ),
    ],
)
def test_a_quota_that_is_used_up_is_told_with_its_numbers(quota: dict[str, int], code: str, words: str) -> None:
    target = replace(AWS, quotas=(Quota(instance_types=("p4*",), **quota),))
    (one,) = fleet(market((A, 20.0)), job("a"), job("b"), project=b.project(target)).summary.waiting
    assert (one.job, one.code, one.text, one.behind) == ("b", code, words, ("a",))


def test_a_budget_holds_for_its_teams_and_counts_what_runs() -> None:
    m = market((A, 20.0))
    project = b.project(AWS, budgets=(Budget(teams=("vision",), usd_per_hour=50.0),))
    jobs = [job("a", team="vision"), job("b", team="vision"), job("c", team="vision"), job("d", team="nlp")]
    found = fleet(m, *jobs, project=project)
    assert {n for n, z in zones(found).items() if z} == {"a", "b", "d"}
    one = waiting(found)["c"]
    assert one.code == "SKY-REJ-218"
    assert one.text == "needs $20.00/h at least; the budget of teams vision is $50.00/h, of which $40.00 are taken"
    (use,) = found.summary.budgets
    assert (use.held_usd, use.planned_usd, use.limit_usd) == (0, 40, 50)
    running = holdings(found.placed[0].ranked[0], m, workload=job("old", team="vision"))
    later = fleet(m, *jobs[:2], project=project, ledger=Ledger(running))
    assert {n for n, z in zones(later).items() if z} == {"a"}
    alone = fleet(m, jobs[0], project=project, ledger=Ledger((*running, *(replace(h, job="older") for h in running))))
    assert alone.placed[0].waiting is not None
    (rejected,) = alone.placed[0].rejected
    assert rejected.code == "SKY-REJ-218"
    assert rejected.examples[0].endswith("needs $20.00/h; of the budget of teams vision $10.00 of $50.00 is left")


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        (Apart.POOL, {"a": A, "b": B, "c": C}),
        (Apart.ZONE, {"a": A, "b": B, "c": C}),
        (Apart.REGION, {"a": A, "b": C, "c": ""}),
        (Apart.CLOUD, {"a": A, "b": "", "c": ""}),
    ],
)
def test_jobs_of_a_group_lie_apart(by: Apart, expected: dict[str, str]) -> None:
    m = market((A, 20.0), (B, 21.0), (C, 22.0))
    apart = (AntiAffinity(group="eval", by=by),)
    found = fleet(m, *(job(n, anti_affinity=apart) for n in "abc"))
    assert zones(found) == expected
    for one in found.summary.waiting:
        assert one.code == "SKY-REJ-216"
        assert f"every {by.value} that could serve it has one of them" in one.text


def test_a_job_lies_apart_from_what_the_ledger_holds_of_its_group() -> None:
    m = market((A, 20.0), (B, 21.0))
    apart = (AntiAffinity(group="eval"),)
    held = holdings(fleet(m, job("old")).placed[0].ranked[0], m, workload=job("old", anti_affinity=apart))
    found = fleet(m, job("a", anti_affinity=apart), ledger=Ledger(held))
    assert zones(found) == {"a": B}
    (rejected,) = found.placed[0].rejected
    assert (rejected.code, rejected.examples[0].partition(": ")[2]) == (
        "SKY-REJ-216",
        "old of group eval lies in the same zone (us-east-1)",
    )
    assert zones(fleet(m, job("a"), ledger=Ledger(held))) == {"a": A}


def test_a_place_without_a_zone_may_be_any_zone_of_its_region() -> None:
    m = b.market([(P4DE, EAST, "", OD, 20.0), (P4DE, EAST, A, SPOT, 21.0), (P4DE, EAST, B, SPOT, 22.0)])
    apart = (AntiAffinity(group="eval"),)
    both = {"capacity": (OD, SPOT)}
    found = fleet(m, job("a", resources=both, anti_affinity=apart), job("b", resources=both, anti_affinity=apart))
    assert set(zones(found).values()) == {A, B}


def test_a_gang_is_placed_together_or_not_at_all_and_its_room_is_given_back() -> None:
    m, gang = market((A, 20.0)), Gang(group="sweep", least=3)
    sweep = [job(f"sweep-{n}", 2, gang=gang) for n in range(3)]
    found = fleet(m, *sweep, job("z", 4))
    assert zones(found) == {"sweep-0": "", "sweep-1": "", "sweep-2": "", "z": A}
    assert {w.code for w in found.summary.waiting} == {"SKY-REJ-217"}
    assert found.summary.waiting[0].text.startswith(
        "at least 3 jobs of gang sweep must be placed together, and there is room for 2; "
    )
    wider = market((A, 20.0), (B, 21.0))
    assert zones(fleet(wider, *sweep, job("z", 4))) == {"sweep-0": A, "sweep-1": A, "sweep-2": B, "z": ""}
    held = holdings(fleet(wider, job("old")).placed[0].ranked[0], wider, workload=job("old", gang=gang))
    assert [bool(z) for z in zones(fleet(wider, *sweep[:2], ledger=Ledger(held))).values()] == [True, True]
    assert fleet(wider, sweep[0]).placed[0].waiting is not None
    runs = {"sweep-0": Standing(offer_id="aws:default/us-east-1/us-east-1-a/p4de.24xlarge/on_demand")}
    assert fleet(wider, sweep[0], standing=runs).placed[0].ranked


def test_a_job_stays_where_it_was_unless_a_move_saves_a_percent() -> None:
    m = market((A, 20.0), (B, 20.1), (C, 25.0))
    ids = {z: f"aws:default/{z[:-2]}/{z}/p4de.24xlarge/on_demand" for z in (A, B, C)}
    found = fleet(m, job("a"), job("b"), earlier={"a": ids[B], "b": ids[C]})
    assert zones(found) == {"a": B, "b": A}
    kept = found.placed[0].kept
    assert kept is not None
    assert (kept.offer_id, kept.better_offer_id) == (ids[B], ids[A])
    assert Decimal(0) < kept.saving_usd < found.placed[0].ranked[0].total_usd / 100
    assert found.summary.kept == (kept,)
    assert any(n.startswith("stays where its earlier plan put it") for n in found.placed[0].notes)
    assert found.placed[1].kept is None
    assert not any("runner-up" in n for n in found.placed[0].notes)


def test_one_changed_job_moves_nobody_else_and_as_few_as_it_takes_where_it_finds_no_room() -> None:
    m = market((A, 20.0), (B, 20.05), (C, 20.1))
    jobs = [job(f"j{n}", 2) for n in range(5)]
    first = fleet(m, *jobs)
    assert zones(first) == {"j0": A, "j1": A, "j2": B, "j3": B, "j4": C}
    earlier = {p.workload.name: p.ranked[0].offer_id for p in first.placed if p.workload.name != "j0"}
    for changed, expected in ((job("j0", 2, hours=50.0), {"j0": A, "j1": A}), (job("j0", 4), {"j0": A, "j1": C})):
        again = fleet(m, changed, *jobs[1:], earlier=earlier)
        assert zones(again) == zones(first) | expected


def test_an_earlier_place_gives_way_to_a_higher_class() -> None:
    m = market((A, 20.0))
    found = fleet(
        m,
        job("low", 4),
        job("high", 4, priority=1),
        earlier={"low": "aws:default/us-east-1/us-east-1-a/p4de.24xlarge/on_demand"},
    )
    assert zones(found) == {"high": A, "low": ""}


def test_what_runs_is_placed_at_its_turn_and_others_around_it() -> None:
    m = market((A, 20.0), (B, 21.0))
    runs = {"b": Standing(offer_id="aws:default/us-east-1/us-east-1-b/p4de.24xlarge/on_demand", usd_per_hour=5.0)}
    found = fleet(m, job("a", 4), job("b", 4), job("c"), standing=runs)
    assert zones(found) == {"a": A, "b": B, "c": ""}
    assert waiting(found)["c"].behind == ("a",)


def test_why_not_that_is_told_against_what_everybody_else_holds() -> None:
    m, jobs, project = contended()
    found = fleet(m, *jobs, project=project)
    context = found.placed[0].context
    told = [verdict(context, i) for i in range(len(context.offers))]
    assert [v.position for v in told if v.offer_id == found.placed[0].ranked[0].offer_id] == [0]
    (full,) = [v for v in told if v.offer_id.endswith("us-east-1-a/p4de.24xlarge/on_demand")]
    assert [r.code for r in full.rejections] == ["SKY-REJ-207"]


def test_the_ledger_s_digest_of_one_job_is_that_of_what_others_hold() -> None:
    m = market((A, 20.0))
    (one,) = plan([job("a")], m, Ledger(), Policy(project=b.project(AWS), memory=AvailabilityMemory(), as_of=m.as_of))
    assert one.ledger_digest == ledger_digest(Ledger())
    two = fleet(m, job("a"), job("b"))
    assert two.placed[0].ledger_digest == two.placed[1].ledger_digest != one.ledger_digest
    held = Holding(
        job="x", pool="p", instance_type="t", region="r", target="d", capacity="spot", nodes=1, gpus=8, vcpus=1
    )
    assert ledger_digest(Ledger((held,))) != ledger_digest(Ledger((replace(held, team="red", usd_total_ticks=1),)))


def test_nothing_is_a_fleet_of_none() -> None:
    found = fleet(market((A, 20.0)))
    assert (found.placed, found.summary.total_usd) == ((), 0)


def test_each_job_advances_the_bar_once() -> None:
    m, seen = market((A, 20.0)), []
    policy = Policy(project=b.project(AWS), memory=AvailabilityMemory(), as_of=m.as_of)
    plan_fleet([job("a"), job("b"), job("c", 9)], m, Ledger(), policy, None, lambda: seen.append(1))
    assert len(seen) == 3
