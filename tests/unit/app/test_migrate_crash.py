"""A move killed at every step: whoever goes on comes to the same end, with exactly one generation's machines, and no saved step is lost.

Every sweep is dealt into SHARDS, so that one of each is run always and the rest in the long run.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.app.destroy import destroy
from planner.app.sync import sync
from planner.model.errors import InputError, StalePlan
from planner.model.migration import MigrationReason, MigrationStatus
from planner.model.record import RunStatus
from tests.unit.app.moving import JOB, MoveWorld

CAPACITY = ("capacity", "InsufficientInstanceCapacity")
SHARDS = 24


def dealt(always: int) -> pytest.MarkDecorator:
    """`shard`: one always, the others in the long run."""
    rest = [pytest.param(k, marks=pytest.mark.full) for k in range(SHARDS) if k != always]
    return pytest.mark.parametrize("shard", [always, *rest])


def worlds(folder: Path, shard: int, steps: int) -> Iterator[tuple[int, MoveWorld]]:
    """A world for each step of the shard, with the step to die at."""
    for n in range(shard, steps, SHARDS):
        world = MoveWorld(folder / str(n))
        try:
            yield n, world
        finally:
            world.close()


def steps_of_move(folder: Path, reason: MigrationReason = MigrationReason.SAVING, *, refuse: bool = False) -> int:
    world = MoveWorld(folder / "dry")
    if refuse:
        world.refusals, world.refuse_after = {"us-west-2-a": CAPACITY}, 1
    _, steps = world.stepped(world.diff(reason))
    world.close()
    return steps


def one_is_left(world: MoveWorld, region: str) -> int:
    """Two machines, all of one generation, and record, states and stacks know just these."""
    (run,) = [r for r in world.record.runs(JOB) if r.status is RunStatus.RUNNING]
    assert world.generations() == {run.generation: 2}
    assert run.region == region
    name = f"cmp-{run.id}"
    assert {n.instance_id for n in world.record.nodes(JOB, run.generation)} == set(world.cloud.machines)
    assert set(world.states[name].values()) == set(world.cloud.machines)
    assert [s for s in world.states if s.startswith("cmp-")] == [name]
    assert [s.name for s in world.record.stacks(JOB) if s.kind == "compute"] == [name]
    assert [h.nodes for h in world.record.holdings()] == [2]
    assert not world.record.unfinished(JOB)
    assert world.record.open_move(JOB) is None
    return run.generation


def nothing_is_lost(world: MoveWorld, generation: int) -> None:
    """It resumed at the newest checkpoint of the run before, and works."""
    saved = [c.step for c in world.nodes.store if c.generation < generation]
    assert world.nodes.cuts[generation] == max(saved)
    assert world.nodes.step[generation] > max(saved)


def moved(world: MoveWorld) -> None:
    generation = one_is_left(world, "us-west-2")
    nothing_is_lost(world, generation)
    assert [m.status for m in world.record.moves(JOB)] == [MigrationStatus.RETIRED]


@dealt(5)
def test_a_move_killed_at_any_step_is_finished_by_the_next(tmp_path: Path, shard: int) -> None:
    for n, world in worlds(tmp_path, shard, steps_of_move(tmp_path)):
        diff = world.diff()
        assert world.migrate(diff, dies_at=n) is None
        world.works(2)
        world.migrate(diff)
        moved(world)


@dealt(2)
def test_a_move_that_fails_over_and_is_killed_at_any_step_is_finished_by_the_next(tmp_path: Path, shard: int) -> None:
    for n, world in worlds(tmp_path, shard, steps_of_move(tmp_path, refuse=True)):
        world.refusals, world.refuse_after = {"us-west-2-a": CAPACITY}, 1
        diff = world.diff()
        assert world.migrate(diff, dies_at=n) is None
        world.migrate(diff)
        moved(world)


@dealt(7)
def test_what_is_killed_at_any_step_is_given_up_or_goes_on_as_a_person_says(tmp_path: Path, shard: int) -> None:
    for n, world in worlds(tmp_path, shard, steps_of_move(tmp_path)):
        diff = world.diff()
        world.migrate(diff, dies_at=n)
        if world.record.open_move(JOB) is None:
            continue
        world.works(2)
        found = world.migrate(None, revert=True)
        assert found is not None
        if found.status is MigrationStatus.REVERTED:
            assert one_is_left(world, "us-east-1") == 1
            before = world.nodes.step[1]
            world.works(2)
            assert world.nodes.step[1] == before + 2
        else:
            world.migrate(None)
            moved(world)


@dealt(9)
def test_a_revert_killed_at_any_step_is_finished_by_whoever_comes_next(tmp_path: Path, shard: int) -> None:
    dry = MoveWorld(tmp_path / "dry")
    dry.half_way()
    _, steps = dry.stepped(None, revert=True)
    dry.close()
    for n, world in worlds(tmp_path, shard, steps):
        world.half_way()
        assert world.migrate(None, dies_at=n, revert=True) is None
        world.works(2)
        if world.record.open_move(JOB):
            world.migrate(None, revert=True)
        elif n % 2:
            world.migrate(None)
        else:
            assert world.apply(nodes=2) is not None, "apply takes up what is left too"
        assert one_is_left(world, "us-east-1") == 1


@dealt(3)
def test_a_move_killed_at_any_step_can_be_destroyed_at_once(tmp_path: Path, shard: int) -> None:
    for n, world in worlds(tmp_path, shard, steps_of_move(tmp_path)):
        world.migrate(world.diff(), dies_at=n)
        world.live(lambda ports: destroy(JOB, ports))
        assert world.generations() == {}
        assert not world.states
        assert not world.record.stacks()
        assert not world.record.holdings()
        assert world.record.open_move(JOB) is None
        with pytest.raises((InputError, StalePlan)):
            world.migrate(world.diff(text="another"))


@dealt(1)
def test_sync_and_apply_between_a_kill_and_the_next_change_nothing(tmp_path: Path, shard: int) -> None:
    for n, world in worlds(tmp_path, shard, steps_of_move(tmp_path)):
        diff = world.diff()
        world.migrate(diff, dies_at=n)
        before = world.generations()
        world.live(lambda ports: sync(JOB, ports))
        if world.record.open_move(JOB):
            with pytest.raises(StalePlan):
                world.apply(nodes=2)
        assert world.generations() == before
        world.migrate(diff)
        moved(world)


@pytest.mark.parametrize("reason", [MigrationReason.INTERRUPTION, MigrationReason.RECOVERY])
@dealt(6)
def test_a_recovery_killed_at_any_step_is_finished_by_the_next(
    tmp_path: Path, shard: int, reason: MigrationReason
) -> None:
    def taken(world: MoveWorld) -> None:
        if reason is MigrationReason.RECOVERY:
            world.cloud.machines.clear()
            world.live(lambda ports: sync(JOB, ports))

    dry = MoveWorld(tmp_path / "dry")
    taken(dry)
    _, steps = dry.stepped(dry.diff(reason))
    dry.close()
    for n, world in worlds(tmp_path, shard, steps):
        taken(world)
        diff = world.diff(reason)
        assert world.migrate(diff, dies_at=n) is None
        world.migrate(diff)
        moved(world)


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_killed_again_and_again_it_still_converges(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    world = MoveWorld(tmp_path_factory.mktemp("w"))
    diff = world.diff()
    for dies_at in data.draw(st.lists(st.integers(0, 260), min_size=1, max_size=4)):
        world.migrate(diff, dies_at=dies_at)
        if data.draw(st.booleans()):
            world.live(lambda ports: sync(JOB, ports))
        world.works(data.draw(st.integers(0, 3)))
    world.migrate(diff)
    moved(world)
    world.close()
