"""Each reason to move, and each term that keeps a job where it is (R09, R17, R18, R19)."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from planner.migration.document import to_document
from planner.model.ledger import Failure
from planner.model.migration import MigrationReason
from planner.model.offer import CapacityType
from planner.model.project import Budget, MigrationSettings, Project
from planner.model.readings import QuotaReading
from planner.model.record import Event, RunStatus, StackStatus, stamp
from planner.model.workload import AntiAffinity, Apart, Workload
from planner.state.history_values import Quota
from planner.state.newest import Ends
from tests.builders import checkpoints, limits, project
from tests.unit.app.replanning import (
    HOUR,
    JOB,
    NOW,
    OTHER,
    SPOT,
    Bench,
    checkpoint,
    figures,
    market_of,
    move,
    offer,
    planned,
    pool,
    progress,
    run_of,
    stack,
)

REFUSED = "InsufficientInstanceCapacity"
CHEAP_WEST = {"market": market_of(10, 5), "at_planning": market_of()}


def failed(where: str, hours_ago: float = 0.1, capacity: Any = SPOT) -> Failure:
    return Failure(scope=pool(where, capacity), code=REFUSED, kind="capacity", at=stamp(NOW - hours_ago * HOUR))


# moves for money


def test_a_price_that_fell_elsewhere_is_worth_a_move_and_the_terms_add_up() -> None:
    (diff,) = Bench(**CHEAP_WEST).replan().diffs
    assert (diff.reason, diff.code) == (MigrationReason.SAVING, "SKY-MOVE-413")
    assert diff.to[0].offer_id == offer("us-west-2")
    terms = figures(diff.terms)
    assert terms["net"] == sum(usd for name, usd in terms.items() if name != "net")
    assert terms["saving"] > 0
    assert all(usd < 0 for name, usd in terms.items() if name not in {"saving", "net"})
    assert {"acquisition", "setup", "checkpoint_load", "checkpoint_egress", "double_running"} <= set(terms)
    assert terms["net"] >= diff.numbers["threshold_usd"]
    assert diff.standing.usd_per_hour == 10
    assert (diff.standing.step, diff.standing.checkpoint_step) == (400, 390)
    assert (diff.reviewed, diff.prepared) == (True, True)


@pytest.mark.parametrize(
    ("west", "code"),
    [(10.0, "SKY-MOVE-406"), (12.0, "SKY-MOVE-406"), (8.4, "SKY-MOVE-401"), (float("nan"), "SKY-MOVE-406")],
)
def test_where_the_saving_is_too_small_the_failing_term_is_told(west: float, code: str) -> None:
    given = market_of(10, 10) if west != west else market_of(10, west)  # noqa: PLR0124 - not a number: the same price
    found = Bench(market=given, at_planning=market_of()).replan()
    assert found.diffs == ()
    (kept,) = found.kept
    assert kept.code == code
    if code == "SKY-MOVE-401":
        assert kept.best == offer("us-west-2")
        assert "are asked" in kept.text
        assert kept.numbers["gain_usd"] < kept.numbers["threshold_usd"]


def test_the_projects_own_threshold_holds() -> None:
    strict = project(migration=MigrationSettings(threshold_hours=4.0))
    (kept,) = Bench(**CHEAP_WEST, project=strict).replan().kept
    assert kept.code == "SKY-MOVE-401"


def test_it_cools_down_after_a_move_and_then_moves() -> None:
    bench = Bench(**CHEAP_WEST)
    bench.told.moves_ = [move("saving", hours_ago=0.5, from_generation=9)]
    (kept,) = bench.replan().kept
    assert (kept.code, kept.text) == ("SKY-MOVE-402", "it moved 0.50 h ago")
    bench.told.moves_ = [move("saving", hours_ago=1.5, from_generation=9)]
    assert bench.replan().diffs
    bench.told.moves_ = [move("saving", status="reverted", hours_ago=0.5, from_generation=9)]
    assert bench.replan().diffs, "a move that was given up is none"


def test_never_to_a_pool_that_refused_us_lately() -> None:
    (kept,) = Bench(**CHEAP_WEST, memory=(failed("us-west-2"),)).replan().kept
    assert (kept.code, kept.best) == ("SKY-MOVE-403", offer("us-west-2"))
    assert Bench(**CHEAP_WEST, memory=(failed("us-west-2", hours_ago=1.5),)).replan().diffs


def test_never_to_a_pool_that_took_our_nodes_back_lately() -> None:
    bench = Bench(**CHEAP_WEST)
    lost = replace(run_of(bench.plan, offer("us-west-2")), status=RunStatus.ENDED)
    bench.told.runs_ = [lost, replace(bench.run, generation=2)]
    bench.told.moves_ = [move("recovery", hours_ago=0.3, from_generation=1)]
    (kept,) = bench.replan().kept
    assert (kept.code, kept.best) == ("SKY-MOVE-403", offer("us-west-2"))


def test_an_interconnect_sensitive_job_never_changes_its_topology() -> None:
    given = {"market": market_of(10, 10, other_east=3.0), "at_planning": market_of(other_east=10.0)}
    assert Bench(**given).replan().diffs[0].to[0].instance_type == OTHER.name
    sensitive = replace(JOB, resources=replace(JOB.resources, interconnect_sensitive=True))
    (kept,) = Bench(**given, job=sensitive).replan().kept
    assert (kept.code, kept.best) == ("SKY-MOVE-404", offer(kind=OTHER))


def test_no_move_to_spot_that_leaves_too_little_slack() -> None:
    dear = {"market": market_of(10, 5), "runs_on": offer(capacity=CapacityType.ON_DEMAND)}
    tight, roomy = (replace(JOB, constraints=limits(deadline_hours=hours)) for hours in (24.5, 30.0))
    (kept,) = Bench(**dear, job=tight).replan().kept
    assert Bench(**dear, job=roomy).replan().diffs
    assert kept.code == "SKY-MOVE-405"


def test_a_place_without_room_is_told() -> None:
    crowded = project(pool_cap_nodes=1)
    bench = Bench(**CHEAP_WEST, project=crowded)
    request = bench.request()
    others = replace(bench.run.holding, job="other", pool=pool("us-west-2"), region="us-west-2")
    from planner.app.replan import Sources, replan

    found = replan(
        replace(request, holdings=(*request.holdings, others)), Sources(record=bench.told, told=bench.told), NOW
    )
    assert [(k.code, k.best) for k in found.kept] == [("SKY-MOVE-412", offer("us-west-2"))]


def test_a_job_without_checkpoints_stays() -> None:
    bench = Bench(**CHEAP_WEST, job=replace(JOB, checkpoint=None))
    bench.told.checkpoints = {}
    (kept,) = bench.replan().kept
    assert kept.code in {"SKY-MOVE-401", "SKY-MOVE-406"}


def test_a_bare_job_would_do_again_what_its_newest_checkpoint_lacks() -> None:
    told, bare = Bench(**CHEAP_WEST), Bench(**CHEAP_WEST)
    bare.told.ends, bare.told.checkpoints = {}, {}
    assert "lost_work" not in figures(told.replan().diffs[0].terms)
    assert figures(bare.replan().diffs[0].terms)["lost_work"] < 0


# what may be done unattended


def test_the_reviewed_plan_bounds_what_may_be_done_unattended() -> None:
    given = {"market": market_of(10, 10, north=4.0), "at_planning": market_of()}
    (open_,) = Bench(**given).replan().proposals
    assert (open_.diff.reviewed, open_.new_plan) == (False, True)
    assert open_.diff.to[0].region == "us-north-1"
    assert open_.diff.plan_digest == open_.plan.digest
    assert {(p.offer_id, p.placement_id) for p in open_.diff.to} <= {
        (p.offer_id, p.placement_id) for p in open_.plan.ranked
    }
    assert open_.plan.inputs["remaining"]["run"] == "train-g1"
    (kept,) = Bench(**given).replan(only_ready=True).kept
    assert (kept.code, kept.best) == ("SKY-MOVE-407", offer("us-north-1"))


def test_unattended_it_goes_to_what_is_reviewed_though_more_could_be_saved_elsewhere() -> None:
    given = {"market": market_of(10, 5, north=1.0), "at_planning": market_of()}
    assert Bench(**given).replan().diffs[0].to[0].region == "us-north-1"
    assert Bench(**given).replan(only_ready=True).diffs[0].to[0].region == "us-west-2"


def test_an_unprepared_place_is_said_to_be() -> None:
    bench = Bench(**CHEAP_WEST)
    bench.told.stacks_ = [s for s in bench.told.stacks_ if s.region != "us-west-2"]
    (diff,) = bench.replan().diffs
    assert (diff.reviewed, diff.prepared) == (True, False)
    (kept,) = bench.replan(only_ready=True).kept
    assert kept.code == "SKY-MOVE-408"
    bench.told.stacks_ += [stack("network", "us-west-2"), stack("access", "us-west-2", status=StackStatus.TOUCHED)]
    assert bench.replan(only_ready=True).diffs == (), "half made is not made"


# what needs no saving


@pytest.mark.parametrize("status", [RunStatus.LOST, RunStatus.DEGRADED])
def test_lost_nodes_are_placed_again_elsewhere_with_egress_counted(status: RunStatus) -> None:
    bench = Bench(market=market_of(10, 10))
    bench.replace_run(status=status)
    (diff,) = bench.replan().diffs
    assert (diff.reason, diff.code) == (MigrationReason.RECOVERY, "SKY-MOVE-418")
    assert diff.to[0].offer_id == offer("us-west-2")
    assert pool() not in {p.pool for p in diff.to}
    terms = figures(diff.terms)
    assert terms["checkpoint_egress"] < 0
    assert "saving" not in terms
    assert diff.stop_minutes > 10, "acquire, set up, load: nothing computes meanwhile"
    assert diff.numbers["work_hours"] == Decimal("20.1000"), "ten steps since the checkpoint are done again"


def test_it_waits_where_its_data_is_while_there_is_slack_and_pools_elsewhere_cost_more() -> None:
    patient = replace(JOB, constraints=limits(deadline_hours=60.0))
    bench = Bench(market=market_of(10, 28, on_demand=40), job=patient)
    bench.replace_run(status=RunStatus.LOST)
    (kept,) = bench.replan().kept
    assert (kept.code, kept.best) == ("SKY-MOVE-411", offer())
    bench = Bench(market=market_of(10, 28, on_demand=40))
    bench.replace_run(status=RunStatus.LOST)
    assert bench.replan().diffs, "without a deadline slack is no measure of patience"
    job = replace(JOB, constraints=limits(deadline_hours=25.0))
    bench = Bench(market=market_of(10, 28, on_demand=40), at_planning=market_of(10, 28, on_demand=40), job=job)
    bench.replace_run(status=RunStatus.LOST)
    (diff,) = bench.replan().diffs
    assert diff.to, "without slack it does not wait"


def test_a_notice_needs_no_saving() -> None:
    bench = Bench(market=market_of(10, 11))
    notice = Event(job="train", generation=1, at=stamp(NOW), kind="notice", text="r00: spot until X (SKY-RUN-518)")
    bench.told.notices = {("train", 1): notice}
    (diff,) = bench.replan().diffs
    assert (diff.reason, diff.to[0].offer_id) == (MigrationReason.INTERRUPTION, offer("us-west-2"))
    assert "SKY-RUN-518" in diff.text
    assert [s.key for s in diff.steps][:2] == ["ask", "launch"]


def test_a_job_that_ended_because_the_cloud_took_its_nodes_is_placed_again() -> None:
    """The agent stops the job at its machine's end, and the job exits like any other."""

    def told(kind: str, text: str) -> Event:
        return Event(job="train", generation=1, at=stamp(NOW), kind=kind, text=text)

    bench = Bench(market=market_of(10, 11))
    notice = told("notice", "r00: spot until X (SKY-RUN-518)")
    bench.told.notices = {("train", 1): notice}
    bench.replace_run(status=RunStatus.EXITED)
    end = [told("exit", "r00: code 143"), told("exited", "train-g1 exited with code 143")]
    bench.told.events_ = [notice, told("node-stopping", "r00: the agent got SIGTERM"), *end]
    (diff,) = bench.replan().diffs
    assert diff.reason is MigrationReason.RECOVERY
    assert "the cloud took nodes of train-g1 back" in diff.text
    # a job that came to its end by itself after the notice is over
    bench.told.events_ = [notice, told("node-stopping", "r00: it was done"), *end]
    assert bench.replan().diffs == ()


def test_reclaimed_nodes_go_first_where_they_may_go_at_once() -> None:
    given = {"market": market_of(10, 11, north=4.0), "at_planning": market_of()}
    bench = Bench(**given)
    bench.replace_run(status=RunStatus.LOST)
    (diff,) = bench.replan().diffs
    assert (diff.to[0].region, diff.reviewed, diff.prepared) == ("us-west-2", True, True)
    assert "us-north-1" in diff.runner_up


def test_on_demand_as_soon_as_the_deadline_leaves_no_slack() -> None:
    job = replace(JOB, constraints=limits(deadline_hours=24.3))
    bench = Bench(market=market_of(10, 10), job=job)
    (diff,) = bench.replan().diffs
    assert diff.to[0].capacity == "on_demand"
    assert (diff.reason, diff.code) == (MigrationReason.DEADLINE, "SKY-MOVE-415")


def test_the_safety_net_keeps_the_topology_and_else_the_miss_is_forecast() -> None:
    job = replace(
        JOB,
        resources=replace(JOB.resources, interconnect_sensitive=True, capacity=(SPOT,)),
        constraints=limits(deadline_hours=23.0),
    )
    roomy = replace(job, constraints=limits(deadline_hours=40.0))
    bench = Bench(market=market_of(10, 10, other_east=9.9), job=roomy)
    bench.plan = replace(bench.plan, job={**bench.plan.job, "constraints": {"deadline_hours": 23}})
    (kept,) = bench.replan().kept
    assert kept.code == "SKY-MOVE-410"
    assert "will be missed" in kept.text


class OneQuota:
    """A history that knows of a quota and of nothing else."""

    def __init__(self, limit: float) -> None:
        self._limit = limit

    def changes(self, *_: Any) -> dict[str, Any]:
        return {}

    def capacity_changes(self, *_: Any) -> dict[str, Any]:
        return {}

    def failures(self, *_: Any) -> tuple[Any, ...]:
        return ()

    def quotas(self, target: str | None = None, at: Any = None) -> tuple[Quota, ...]:
        reading = QuotaReading(
            cloud="aws",
            region="us-east-1",
            name="L-7212CCBC",
            capacity="spot",
            unit="vcpus",
            limit=self._limit,
            used=None,
            observed_at=stamp(NOW),
            source="test",
            instance_types=("p4*",),
        )
        return (Quota(target=target or "default", reading=reading),)


def test_a_quota_that_was_withdrawn_moves_the_job_and_one_that_suffices_does_not() -> None:
    (diff,) = Bench(market=market_of(10, 11), history=OneQuota(0)).replan().diffs
    assert (diff.reason, diff.to[0].offer_id) == (MigrationReason.QUOTA, offer("us-west-2"))
    assert "L-7212CCBC" in diff.text
    assert Bench(market=market_of(10, 11), history=OneQuota(96)).replan().diffs == ()


def test_what_is_not_what_the_reviewed_plan_says_is_brought_there() -> None:
    bench = Bench(market=market_of(10, 11))
    bench.replace_run(placement_id="p0000000000")
    (diff,) = bench.replan().diffs
    assert diff.reason is MigrationReason.DRIFT
    assert diff.to[0].offer_id == offer(), "the same offer, made anew"
    assert "p0000000000" in diff.text
    assert figures(diff.terms)["net"] < 0


def test_a_plan_that_ranks_another_place_first_is_no_drift() -> None:
    bench = Bench(market=market_of(10, 10), runs_on=offer(), at_planning=market_of(10, 5))
    assert bench.plan.choice.offer_id == offer("us-west-2")
    assert bench.replan().diffs == ()
    # nor is one that lists what runs no more, where it would be made of the same
    bench.plan = replace(bench.plan, ranked=tuple(p for p in bench.plan.ranked if p.offer_id != offer()))
    assert bench.replan().diffs == ()


# who is left alone


def test_a_job_under_way_ended_or_unknown() -> None:
    bench = Bench(**CHEAP_WEST)
    bench.told.moves_ = [move("saving", status="launched")]
    assert [k.code for k in bench.replan().kept] == ["SKY-MOVE-419"]
    bench.told.moves_ = []
    bench.told.runs_ = [bench.run, replace(bench.run, generation=2, status=RunStatus.STARTING)]
    assert [k.code for k in bench.replan().kept] == ["SKY-MOVE-419"]
    for status in (RunStatus.EXITED, RunStatus.ENDED):
        bench.replace_run(status=status)
        found = bench.replan()
        assert (found.diffs, found.kept) == ((), ())
    bench.replace_run(status=RunStatus.RUNNING)
    bench.plan = replace(bench.plan, job={**bench.plan.job, "name": "other"})
    assert [k.code for k in bench.replan().kept] == ["SKY-MOVE-407"]


def test_jobs_do_not_all_run_to_the_same_pool() -> None:
    from planner.app.replan import Sources, replan

    bench = Bench(**CHEAP_WEST)
    request, names = bench.request(), [f"train-{n}" for n in range(6)]
    plans = {name: planned(market_of(), replace(JOB, name=name)) for name in names}
    bench.told.runs_ = [run_of(plans[name], offer()) for name in names]
    bench.told.jobs_ = [replace(bench.told.jobs_[0], name=name) for name in names]
    bench.told.ends = {
        (name, 1): Ends(first=progress(0, 4.0, job=name), last=progress(400, 0.0, job=name)) for name in names
    }
    bench.told.checkpoints = {name: checkpoint(390, job=name) for name in names}
    request = replace(request, plans=plans, holdings=tuple(r.holding for r in bench.told.runs_))
    found = replan(request, Sources(record=bench.told, told=bench.told), NOW)
    assert [d.job for d in found.diffs] == names[:4], "the pool's cap is four nodes"
    assert [k.code for k in found.kept] == ["SKY-MOVE-412", "SKY-MOVE-412"]


def test_the_same_values_give_the_same_bytes_and_what_stacks_change_is_told() -> None:
    bench = Bench(**CHEAP_WEST)
    old = stack("compute", "us-east-1", generation=1, name="cmp-train-g1")
    bench.told.stacks_.append(replace(old, document={"resource": {"aws_instance": {"node": {}}}}))

    def synth(given: Any) -> dict[str, Any]:
        return {"resource": {"aws_instance": {"node": {"zone": given.zone}}, "aws_ebs": {"disk": {}}}}

    (first,), (again,) = bench.replan(synth=synth).diffs, bench.replan(synth=synth).diffs
    assert to_document(first) == to_document(again)
    assert first.resources_added == ("cmp-train-gN: aws_ebs.disk", "cmp-train-gN: aws_instance.node")
    assert first.resources_removed == ("cmp-train-g1: aws_instance.node",)
    assert (first.grants_added, first.grants_removed) == ((), ())


def test_steps_tell_the_work_that_is_left_where_the_job_says_how_many_there_are() -> None:
    bench = Bench(**CHEAP_WEST)
    bench.told.ends = {("train", 1): Ends(first=progress(0, 4.0), last=progress(400, 0.0, total_steps=1600))}
    (diff,) = bench.replan().diffs
    assert diff.numbers["work_hours"] == 18
    assert (diff.inputs["counted_by"], diff.inputs["work_left"]) == ("steps", "step 400 of 1,600")


def test_a_bucket_whose_place_is_not_known_keeps_the_job_in_its_region() -> None:
    nowhere = replace(JOB, checkpoint=checkpoints(10.0, 0.5, region_name=None))
    (kept,) = Bench(**CHEAP_WEST, job=nowhere).replan().kept
    assert (kept.code, kept.best) == ("SKY-MOVE-409", offer("us-west-2"))
    assert figures(kept.terms)["checkpoint_egress"] is None, "unknown is never 0"


def test_what_the_market_has_lost_or_lies_in_several_clouds_is_priced_as_it_was_launched() -> None:
    for offer_id in (offer("us-gone-1"), f"{offer()} x1 + {offer('us-west-2')} x1"):
        bench = Bench(**CHEAP_WEST)
        bench.replace_run(offer_id=offer_id, pool="aws:default/gone/p4de/spot", usd_per_hour=Decimal(14))
        (diff,) = bench.replan().diffs
        assert diff.to[0].offer_id == offer("us-west-2")
        assert diff.standing.usd_per_hour == 14
        assert diff.standing.offer_id == offer_id


def test_a_diff_is_what_migrate_will_take() -> None:
    for given in (CHEAP_WEST, {"market": market_of(10, 10, north=4.0), "at_planning": market_of()}):
        bench = Bench(**given)
        (one,) = bench.replan().proposals
        plan = one.plan if one.new_plan else bench.plan
        assert plan.digest == one.diff.plan_digest
        assert {(p.offer_id, p.placement_id) for p in one.diff.to} <= {
            (p.offer_id, p.placement_id) for p in plan.ranked
        }
        standing = (one.diff.standing.generation, one.diff.standing.placement_id)
        assert standing == (bench.run.generation, bench.run.placement_id)


RED = replace(JOB, team="red", anti_affinity=(AntiAffinity(group="eval", by=Apart.REGION),))


@pytest.mark.parametrize(
    ("budget", "theirs", "barred"),
    [
        (Budget(teams=("red",), usd_per_hour=12.0), {"usd_per_hour_ticks": 80_000}, True),
        (Budget(teams=("red",), usd_per_hour=13.0), {"usd_per_hour_ticks": 80_000}, False),
        (Budget(teams=("blue",), usd_per_hour=12.0), {"usd_per_hour_ticks": 80_000}, False),
        (Budget(teams=("red",), usd_total=300.0), {"usd_total_ticks": 2_500_000}, True),
        (Budget(teams=("red",), usd_total=900.0), {"usd_total_ticks": 2_500_000}, False),
        (None, {"apart": (("eval", "region"),)}, True),
        (None, {"apart": (("other", "region"),)}, False),
    ],
)
def test_it_moves_neither_over_a_budget_nor_beside_its_group(budget: Any, theirs: dict[str, Any], barred: bool) -> None:
    """West at $5/h saves; another of the team, or of the group, stands there already.  What the job itself costs where it is counts against nobody."""
    from planner.app.replan import Sources, replan

    bench = Bench(**CHEAP_WEST, job=RED, project=project(budgets=(budget,) if budget else ()))
    request = bench.request()
    other = replace(bench.run.holding, job="other", pool=pool("us-west-2"), region="us-west-2", team="red", **theirs)
    found = replan(
        replace(request, holdings=(*request.holdings, other)), Sources(record=bench.told, told=bench.told), NOW
    )
    if barred:
        assert [(k.code, k.best) for k in found.kept] == [("SKY-MOVE-412", offer("us-west-2"))]
    else:
        assert [d.to[0].offer_id for d in found.diffs] == [offer("us-west-2")]


def test_of_a_group_one_moves_and_a_budget_counts_where_jobs_will_be() -> None:
    """Two in the dear region, one place in the cheap one: of a group that shares no region one goes; of a team whose budget the moves lower both do."""
    from planner.app.replan import Sources, replan

    def both(job: Workload, given: Project) -> list[str]:
        bench = Bench(**CHEAP_WEST, job=job, project=given)
        names = ["train-0", "train-1"]
        plans = {name: planned(market_of(), replace(job, name=name), of=given) for name in names}
        bench.told.runs_ = [run_of(plans[name], offer()) for name in names]
        bench.told.jobs_ = [replace(bench.told.jobs_[0], name=name) for name in names]
        bench.told.ends = {(n, 1): Ends(first=progress(0, 4.0, job=n), last=progress(400, 0.0, job=n)) for n in names}
        bench.told.checkpoints = {name: checkpoint(390, job=name) for name in names}
        held = tuple(
            replace(
                r.holding,
                team=job.team,
                usd_per_hour_ticks=100_000,
                apart=tuple((a.group, a.by.value) for a in job.anti_affinity),
            )
            for r in bench.told.runs_
        )
        request = replace(bench.request(), plans=plans, holdings=held)
        return [d.job for d in replan(request, Sources(record=bench.told, told=bench.told), NOW).diffs]

    assert both(RED, project()) == ["train-0"]
    budget = Budget(teams=("red",), usd_per_hour=20.0)
    assert both(replace(RED, anti_affinity=()), project(budgets=(budget,))) == ["train-0", "train-1"]
