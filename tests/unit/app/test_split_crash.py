"""A job in two clouds, killed at every step: a re-run converges with exactly its nodes in both, and a destroy leaves nothing.

Every sweep is dealt into SHARDS, so that one of each is run always and the rest in the long run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from planner.app.apply import Order, apply
from planner.app.destroy import destroy
from planner.app.sync import sync
from planner.model.record import RunStatus
from tests.unit.app.split import SplitWorld, planned

CAPACITY = ("capacity", "ZONE_RESOURCE_POOL_EXHAUSTED")
SHARDS = 16
Make = Callable[[int], SplitWorld]


def dealt(always: int) -> pytest.MarkDecorator:
    """`shard`: one always, the others in the long run."""
    rest = [pytest.param(k, marks=pytest.mark.full) for k in range(SHARDS) if k != always]
    return pytest.mark.parametrize("shard", [always, *rest])


@pytest.fixture
def make(tmp_path: Path) -> Make:
    return lambda n: SplitWorld(tmp_path / str(n))


def worlds(make: Make, shard: int, steps: int) -> Iterator[tuple[int, SplitWorld]]:
    """A world for each step of the shard, with the step to die at."""
    for n in range(shard, steps, SHARDS):
        world = make(n)
        try:
            yield n, world
        finally:
            world.close()


def refuse(world: SplitWorld) -> None:
    """The second part gets one machine and no more; the next split would run."""
    world.refusals, world.refuse_after = {"us-east4-a": CAPACITY}, 1


def steps_of_apply(world: SplitWorld) -> int:
    plan, work = planned()
    steps = world.count(lambda ports: apply(Order(plan=plan, workload=work, prepare=0), ports))
    world.close()
    return steps


def steps_of_destroy(world: SplitWorld) -> int:
    world.apply()
    steps = world.count(lambda ports: destroy("train", ports))
    world.close()
    return steps


def runs_exactly(world: SplitWorld, other: str = "us-east4") -> None:
    """Two machines in each cloud, every rank once, all of one generation; the record, the states and the peers file know just these."""
    (run,) = [r for r in world.record.runs("train") if r.status is RunStatus.RUNNING]
    alive = {one: (region, i.rank, i.tags["skyplan:generation"]) for one, (region, i) in world.cloud.machines.items()}
    generation = str(run.generation)
    places = {"r00": "us-east-1", "r01": "us-east-1", "r02": other, "r03": other}
    assert sorted(alive.values()) == sorted((place, rank, generation) for rank, place in places.items())
    known = {n.instance_id: n.rank for n in world.record.nodes("train", run.generation)}
    assert known == {one: int(rank[1:]) for one, (_, rank, _) in alive.items()}
    parts = {f"cmp-{run.id}-aws", f"cmp-{run.id}-gcp"}
    assert {s for s in world.states if s.startswith("cmp-")} == parts
    assert {s.name for s in world.record.stacks("train") if s.kind == "compute"} == parts
    assert sorted(s for s in world.states if s.startswith("adr-")) == [
        "adr-train--aws-prod-us-east-1",
        f"adr-train--gcp-prod-{other}",
    ]
    mine = [s for s in world.record.stacks("train") if s.kind == "access" and s.region in {other, "us-east-1"}]
    everyone = ["198.51.100.10", "198.51.100.11", "203.0.113.12", "203.0.113.13"]
    assert [s.variables["peer_endpoints"] for s in mine] == [everyone, everyone]
    assert f"rendezvous/{run.id}.json" in world.kept
    assert not world.record.unfinished("train")


def nothing_is_left(world: SplitWorld) -> None:
    assert not world.cloud.machines
    assert not world.states
    assert not world.record.stacks()
    assert not world.record.holdings()
    assert not world.record.unfinished("train")


@dealt(3)
def test_an_apply_killed_at_any_step_is_begun_anew_by_the_next(make: Make, shard: int) -> None:
    for n, world in worlds(make, shard, steps_of_apply(make(-1))):
        assert world.apply(n) is None
        world.apply()
        runs_exactly(world)
        world.destroy()
        nothing_is_left(world)


@dealt(7)
def test_a_failover_killed_at_any_step_is_finished_by_the_next(make: Make, shard: int) -> None:
    dry = make(-1)
    refuse(dry)
    for n, world in worlds(make, shard, steps_of_apply(dry)):
        refuse(world)
        assert world.apply(n) is None
        world.apply()
        runs_exactly(world, "us-central1")
        world.destroy()
        nothing_is_left(world)


@dealt(5)
def test_an_apply_killed_at_any_step_can_be_destroyed_at_once(make: Make, shard: int) -> None:
    for n, world in worlds(make, shard, steps_of_apply(make(-1))):
        world.apply(n)
        if world.record.job("train") is not None:
            world.destroy()
        nothing_is_left(world)


@dealt(9)
def test_sync_after_a_kill_ends_no_node_and_apply_begins_anew(make: Make, shard: int) -> None:
    for n, world in worlds(make, shard, steps_of_apply(make(-1))):
        world.apply(n)
        if world.record.job("train") is not None:
            before = set(world.cloud.machines)
            world.live(lambda ports: sync("train", ports))
            assert set(world.cloud.machines) == before
        world.apply()
        runs_exactly(world)


@dealt(4)
def test_a_destroy_killed_at_any_step_is_finished_by_the_next(make: Make, shard: int) -> None:
    for n, world in worlds(make, shard, steps_of_destroy(make(-1))):
        world.apply()
        assert world.destroy(n) is None
        world.destroy()
        nothing_is_left(world)


@dealt(8)
def test_an_apply_after_a_destroy_killed_at_any_step_launches_anew(make: Make, shard: int) -> None:
    for n, world in worlds(make, shard, steps_of_destroy(make(-1))):
        world.apply()
        world.destroy(n)
        world.apply(again=True)
        runs_exactly(world)


@dealt(6)
def test_killed_while_it_cleans_up_it_still_converges(make: Make, shard: int) -> None:
    """The second process dies while it undoes what the first one left, or in its own launch."""
    for n, world in worlds(make, shard, steps_of_apply(make(-1))):
        world.apply(n)
        world.apply(5 + n % 40)
        world.apply()
        runs_exactly(world)
        world.destroy(n % 30)
        world.destroy()
        nothing_is_left(world)
