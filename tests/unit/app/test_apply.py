"""Applying on fakes: candidates in order, what is refused, what is remembered, what is left alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from planner.app.apply import Order, apply
from planner.app.destroy import destroy
from planner.app.ready import Ready, make_ready
from planner.app.sync import sync
from planner.model.errors import InputError, LeaseHeld, StalePlan, TerraformError
from planner.model.record import NodeStatus, RunStatus
from tests.unit.app.world import World, planned

CAPACITY = ("capacity", "InsufficientInstanceCapacity")


def alive(world: World, generation: int | None = None) -> list[str]:
    wanted = None if generation is None else str(generation)
    return [i.id for _, i in world.cloud.machines.values() if wanted in (None, i.tags["skyplan:generation"])]


def test_the_choice_runs_and_the_record_knows_its_nodes(world: World) -> None:
    done = world.apply()
    assert done is not None
    assert done.changed
    assert (done.run.id, done.run.status, done.run.rank) == ("train-g1", RunStatus.RUNNING, planned()[0].choice.rank)
    assert [n.instance_id for n in done.nodes] == alive(world) == ["i-0001", "i-0002", "i-0003"]
    assert [h.nodes for h in world.record.holdings()] == [3]
    assert world.record.running() == (("train", planned()[0].choice.placement_id),)


def test_stacks_are_applied_in_order_and_a_network_once(world: World) -> None:
    world.apply()
    assert world.log == ["apply net-aws-prod-us-east-1", "apply acc-train--aws-prod-us-east-1", "apply cmp-train-g1"]


def test_applying_again_what_runs_is_no_change(world: World) -> None:
    world.apply()
    world.log.clear()
    done = world.apply()
    assert done is not None
    assert not done.changed
    assert done.run.id == "train-g1"
    assert len(alive(world)) == 3
    assert not world.log


def test_two_capacity_errors_lead_to_the_third_candidate_and_are_remembered(world: World) -> None:
    world.refusals = {"us-east-1-a": CAPACITY, "us-east-1-b": CAPACITY}
    done = world.apply()
    assert done is not None
    assert (done.run.generation, done.run.zone, done.run.status) == (3, "us-west-2-a", RunStatus.RUNNING)
    assert alive(world) == alive(world, 3)
    ranked = planned()[0].ranked
    assert {(f.scope, f.code, f.kind) for f in world.record.memory().failures} == {
        (p.pool, "InsufficientInstanceCapacity", "capacity") for p in ranked[:2]
    }
    assert [r.status for r in world.record.runs("train")] == [RunStatus.FAILED, RunStatus.FAILED, RunStatus.RUNNING]
    assert sorted(world.states) == [
        "acc-train--aws-prod-us-east-1",
        "acc-train--aws-prod-us-west-2",
        "cmp-train-g3",
        "net-aws-prod-us-east-1",
        "net-aws-prod-us-west-2",
    ]


def test_what_a_refused_launch_half_made_is_ended_before_the_next_one_begins(world: World) -> None:
    world.refusals, world.refuse_after = {"us-east-1-a": CAPACITY}, 2
    world.apply()
    assert alive(world) == alive(world, 2)
    assert world.log.index("destroy cmp-train-g1") < world.log.index("apply cmp-train-g2")


def test_an_unknown_error_is_shown_whole_and_remembered_against_the_offer_alone(world: World) -> None:
    world.refusals = {"us-east-1-a": ("unknown", "SolarFlare")}
    done = world.apply()
    assert done is not None
    assert done.run.zone == "us-east-1-b"
    assert any("Error: api error SolarFlare: words" in line for line in world.said)
    assert [(f.scope, f.kind) for f in world.record.memory().failures] == [(planned()[0].choice.offer_id, "unknown")]
    assert "words" in world.record.attempts("train")[2].detail


def test_a_missing_permission_stops_and_is_no_failure_of_the_pool(world: World) -> None:
    world.refusals = {"us-east-1-a": ("permission", "UnauthorizedOperation")}
    with pytest.raises(TerraformError) as caught:
        world.apply()
    assert caught.value.diagnostics[0].code == "SKY-APPLY-317"
    assert not world.record.memory().failures
    assert not alive(world)


class Until(dict[str, tuple[str, str]]):
    """Refusals that end after so many."""

    def __init__(self, refusals: dict[str, tuple[str, str]], times: int) -> None:
        super().__init__(refusals)
        self._left = times

    def __getitem__(self, key: str) -> tuple[str, str]:
        found = super().__getitem__(key)
        self._left -= 1
        if not self._left:
            self.clear()
        return found


def test_rights_that_were_just_made_are_given_time(world: World) -> None:
    world.refusals = Until({"us-east-1-a": ("permission", "UnauthorizedOperation")}, 3)
    done = world.apply()
    assert done is not None
    assert (done.run.zone, done.run.generation) == ("us-east-1-a", 1)
    assert sum("its rights are new" in line for line in world.said) == 3
    assert not world.record.memory().failures
    assert len(alive(world)) == done.run.nodes


def test_rights_that_have_long_stood_are_not_waited_for(world: World) -> None:
    world.refusals = dict.fromkeys(("us-east-1-a", "us-east-1-b", "us-west-2-a", "us-west-2-b"), CAPACITY)
    with pytest.raises(TerraformError):
        world.apply()
    world.refusals = dict.fromkeys(world.refusals, ("permission", "UnauthorizedOperation"))
    with pytest.raises(TerraformError) as caught:
        world.apply()
    assert caught.value.diagnostics[0].code == "SKY-APPLY-317"
    assert not any("its rights are new" in line for line in world.said)


def test_when_none_is_left_every_refusal_is_told(world: World) -> None:
    world.refusals = dict.fromkeys(("us-east-1-a", "us-east-1-b", "us-west-2-a", "us-west-2-b"), CAPACITY)
    with pytest.raises(TerraformError) as caught:
        world.apply()
    assert [d.code for d in caught.value.diagnostics] == ["SKY-APPLY-311", *["SKY-APPLY-308"] * 4]
    assert not alive(world)
    world.refusals.clear()
    again = world.apply()
    assert again is not None
    assert again.run.generation == 5


def test_a_region_that_cannot_be_prepared_is_passed_over_whole(world: World) -> None:
    world.refusals = {"net-aws-prod-us-east-1": ("quota", "VpcLimitExceeded")}
    done = world.apply()
    assert done is not None
    assert (done.run.generation, done.run.region) == (1, "us-west-2")
    assert world.log.count("apply net-aws-prod-us-east-1") == 1


def test_further_regions_are_made_ready_after_the_launch(world: World) -> None:
    world.apply(prepare=1)
    assert world.log[-2:] == ["apply net-aws-prod-us-west-2", "apply acc-train--aws-prod-us-west-2"]
    assert world.log.index("apply cmp-train-g1") == 2


def test_places_are_made_ready_beside_what_runs_and_nothing_is_launched(world: World) -> None:
    world.apply()
    world.log.clear()
    plan, work = planned()
    west = replace(plan, ranked=tuple(p for p in plan.ranked if p.region == "us-west-2"))
    ready, _ = world.live(lambda ports: make_ready(Order(plan=west, workload=work, prepare=0), ports))
    assert ready == Ready(job="train", places=("aws:prod/us-west-2",), refused=())
    assert world.log == ["apply net-aws-prod-us-west-2", "apply acc-train--aws-prod-us-west-2"]
    assert len(alive(world)) == 3
    assert [r.status for r in world.record.runs("train")] == [RunStatus.RUNNING]


def test_a_place_that_cannot_be_made_ready_is_named_and_the_others_are(world: World) -> None:
    world.refusals = {"net-aws-prod-us-east-1": ("quota", "VpcLimitExceeded")}
    plan, work = planned()
    ready, _ = world.live(lambda ports: make_ready(Order(plan=plan, workload=work, prepare=1), ports))
    assert ready.places == ("aws:prod/us-west-2",)
    ((place, code, why),) = ready.refused
    assert (place, code) == ("aws:prod/us-east-1", "SKY-APPLY-309")
    assert "VpcLimitExceeded" in why
    with pytest.raises(TerraformError):
        world.live(lambda ports: make_ready(Order(plan=plan, workload=work, prepare=0), ports))
    assert not alive(world)


def test_an_offer_whose_price_moved_is_passed_over(world: World) -> None:
    done = world.apply(barred={planned()[0].choice.offer_id: "its price rose"})
    assert done is not None
    assert done.run.zone == "us-east-1-b"


def test_a_plan_that_was_applied_and_destroyed_needs_again(world: World) -> None:
    world.apply()
    world.destroy()
    with pytest.raises(StalePlan) as caught:
        world.apply()
    assert caught.value.diagnostics[0].code == "SKY-APPLY-303"
    done = world.apply(again=True)
    assert done is not None
    assert done.run.id == "train-g2"


def test_another_placement_than_the_running_one_is_refused(world: World) -> None:
    world.apply()
    plan, work = planned()
    other = replace(plan, ranked=plan.ranked[1:])
    with pytest.raises(StalePlan) as caught:
        world.live(lambda ports: apply(Order(plan=other, workload=work, prepare=0), ports))
    assert caught.value.diagnostics[0].code == "SKY-APPLY-324"
    assert len(alive(world)) == 3


def test_a_lost_node_is_noted_and_not_made_again(world: World) -> None:
    world.apply()
    world.cloud.reclaim("i-0002")
    learnt, _ = world.live(lambda ports: sync("train", ports))
    assert learnt.lost == (("train-g1", 1),)
    assert [d.code for d in learnt.warnings] == ["SKY-APPLY-318"]
    assert [n.status for n in world.record.nodes("train", 1)] == [
        NodeStatus.RUNNING,
        NodeStatus.LOST,
        NodeStatus.RUNNING,
    ]
    assert world.record.runs("train")[0].status is RunStatus.DEGRADED
    with pytest.raises(StalePlan) as caught:
        world.apply(again=True)
    assert caught.value.diagnostics[0].code == "SKY-APPLY-318"
    assert len(alive(world)) == 2
    again, _ = world.live(lambda ports: sync("train", ports))
    assert not again.lost


def test_when_every_node_is_lost_the_run_is_lost_and_holds_nothing(world: World) -> None:
    world.apply()
    world.cloud.machines.clear()
    world.live(lambda ports: sync("train", ports))
    assert world.record.runs("train")[0].status is RunStatus.LOST
    assert not world.record.holdings()
    world.destroy()
    assert world.record.runs("train")[0].status is RunStatus.ENDED


def test_two_applies_at_once_one_is_refused(world: World) -> None:
    plan, work = planned()

    def within(ports):
        other = replace(ports, holder=f"{ports.holder.split(' pid')[0]} pid 1#-")
        lease = ports.record.take_lease("train", other.holder, ports.clock.now(), timedelta(minutes=2))
        try:
            return apply(Order(plan=plan, workload=work, prepare=0), ports)
        finally:
            ports.record.release(lease, ports.clock.now())

    with pytest.raises(LeaseHeld) as caught:
        world.live(within)
    assert caught.value.diagnostics[0].code == "SKY-APPLY-305"
    assert not alive(world)


def test_waiting_for_a_lease_outlasts_a_holder_that_shows_no_life(world: World) -> None:
    plan, work = planned()

    def within(ports):
        ports.record.take_lease("train", "elsewhere pid 1#-", ports.clock.now(), timedelta(minutes=2))
        return apply(Order(plan=plan, workload=work, prepare=0, lease_timeout=150), ports)

    done, _ = world.live(within)
    assert done.run.status is RunStatus.RUNNING


def test_destroy_leaves_a_network_that_another_job_uses(world: World) -> None:
    world.apply()
    world.apply(name="other")
    done = world.destroy()
    assert done is not None
    assert done.kept == ("net-aws-prod-us-east-1",)
    assert {i.tags["skyplan:job"] for _, i in world.cloud.machines.values()} == {"other"}
    last = world.destroy(name="other")
    assert last is not None
    assert last.stacks[-1] == "net-aws-prod-us-east-1"
    assert not world.states
    assert not world.cloud.machines


def test_destroy_ends_machines_that_no_state_knows(world: World) -> None:
    world.apply()
    tags = {"skyplan:project": "acme", "skyplan:job": "train", "skyplan:generation": "1"}
    stray = world.cloud.launch("us-east-1", rank="r00", zone="z", instance_type="t", capacity="spot", tags=tags)
    world.destroy()
    assert not world.cloud.machines
    assert any(stray in e.text for e in world.record.events("train"))


def test_destroy_twice_is_no_error_and_an_unknown_job_is(world: World) -> None:
    world.apply()
    world.destroy()
    again = world.destroy()
    assert again is not None
    assert not again.stacks
    with pytest.raises(InputError) as caught:
        world.live(lambda ports: destroy("nobody", ports))
    assert caught.value.diagnostics[0].code == "SKY-APPLY-323"
