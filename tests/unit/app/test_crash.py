"""Killed at every step: a re-run converges with exactly the nodes asked for, and a destroy leaves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.app.apply import Order, apply
from planner.app.destroy import destroy
from planner.app.sync import sync
from planner.model.record import RunStatus
from tests.unit.app.world import World, planned

CAPACITY = ("capacity", "InsufficientInstanceCapacity")


def steps_of_apply(folder: Path, **refusals: tuple[str, str]) -> int:
    world = World(folder)
    world.refusals, world.refuse_after = {k.replace("_", "-"): v for k, v in refusals.items()}, 2
    plan, work = planned()
    steps = world.count(lambda ports: apply(Order(plan=plan, workload=work, prepare=0), ports))
    world.close()
    return steps


def runs_exactly(world: World, nodes: int) -> None:
    """As many machines as asked for, all of one generation, and the record and the state know just these."""
    machines = {i.id: i.tags["skyplan:generation"] for _, i in world.cloud.machines.values()}
    running = [r for r in world.record.runs("train") if r.status is RunStatus.RUNNING]
    assert len(running) == 1
    known = {n.instance_id for n in world.record.nodes("train", running[0].generation)}
    assert set(machines) == known == set(world.states[f"cmp-train-g{running[0].generation}"].values())
    assert len(machines) == nodes
    assert set(machines.values()) == {str(running[0].generation)}
    assert not world.record.unfinished("train")
    assert not [s for s in world.states if s.startswith("cmp-") and s != f"cmp-train-g{running[0].generation}"]


def nothing_is_left(world: World) -> None:
    assert not world.cloud.machines
    assert not world.states
    assert not world.record.stacks()
    assert not world.record.holdings()


def test_an_apply_killed_at_any_step_is_finished_by_the_next(tmp_path: Path) -> None:
    for n in range(steps_of_apply(tmp_path / "dry")):
        world = World(tmp_path / str(n))
        assert world.apply(n) is None
        world.apply()
        runs_exactly(world, 3)
        world.destroy()
        nothing_is_left(world)
        world.close()


def test_a_failover_killed_at_any_step_is_finished_by_the_next(tmp_path: Path) -> None:
    refusals = {"us-east-1-a": CAPACITY}
    for n in range(steps_of_apply(tmp_path / "dry", us_east_1_a=CAPACITY)):
        world = World(tmp_path / str(n))
        world.refusals, world.refuse_after = refusals, 2
        assert world.apply(n) is None
        world.apply()
        runs_exactly(world, 3)
        world.destroy()
        nothing_is_left(world)
        world.close()


def test_an_apply_killed_at_any_step_can_be_destroyed_at_once(tmp_path: Path) -> None:
    for n in range(1, steps_of_apply(tmp_path / "dry")):
        world = World(tmp_path / str(n))
        world.apply(n)
        if world.record.job("train") is not None:
            world.destroy()
        nothing_is_left(world)
        world.close()


def test_a_destroy_killed_at_any_step_is_finished_by_the_next(tmp_path: Path) -> None:
    dry = World(tmp_path / "dry")
    dry.apply()
    steps = dry.count(lambda ports: destroy("train", ports))
    dry.close()
    for n in range(steps):
        world = World(tmp_path / str(n))
        world.apply()
        assert world.destroy(n) is None
        world.destroy()
        nothing_is_left(world)
        world.close()


def test_a_killed_launch_keeps_the_machines_it_got(tmp_path: Path) -> None:
    kept = 0
    for n in range(steps_of_apply(tmp_path / "dry")):
        world = World(tmp_path / str(n))
        world.apply(n)
        before = set(world.cloud.machines)
        world.apply()
        assert before <= set(world.cloud.machines)
        kept += bool(before)
        world.close()
    assert kept >= 3


def test_sync_after_a_kill_ends_no_node_and_apply_goes_on(tmp_path: Path) -> None:
    for n in range(1, steps_of_apply(tmp_path / "dry")):
        world = World(tmp_path / str(n))
        world.apply(n)
        if world.record.job("train") is not None:
            before = set(world.cloud.machines)
            world.live(lambda ports: sync("train", ports))
            assert before <= set(world.cloud.machines)
        world.apply()
        runs_exactly(world, 3)
        world.close()


def test_another_plan_after_a_kill_undoes_the_half_made_launch(tmp_path: Path) -> None:
    for n in range(steps_of_apply(tmp_path / "dry")):
        world = World(tmp_path / str(n))
        world.apply(n)
        if [r for r in world.record.runs("train") if r.status is RunStatus.RUNNING]:
            world.destroy()
        world.apply(nodes=2)
        runs_exactly(world, 2)
        world.close()


def test_an_apply_after_a_destroy_killed_at_any_step_launches_anew(tmp_path: Path) -> None:
    dry = World(tmp_path / "dry")
    dry.apply()
    steps = dry.count(lambda ports: destroy("train", ports))
    dry.close()
    for n in range(1, steps):
        world = World(tmp_path / str(n))
        world.apply()
        world.destroy(n)
        world.apply(again=True)
        runs_exactly(world, 3)
        world.close()


def test_a_destroy_killed_twice_is_finished_by_the_next_apply(tmp_path: Path) -> None:
    """The second kill comes after the first one's intent was closed and before its own was written."""
    for first in range(3, 8):
        for second in range(1, 7):
            world = World(tmp_path / f"{first}-{second}")
            world.apply()
            world.destroy(first)
            world.destroy(second)
            world.apply(again=True)
            runs_exactly(world, 3)
            world.close()


@pytest.mark.parametrize("end", ["apply", "destroy"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_killed_again_and_again_it_still_converges(
    end: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    world = World(tmp_path_factory.mktemp("w"))
    if data.draw(st.booleans()):
        world.refusals, world.refuse_after = {"us-east-1-a": CAPACITY}, data.draw(st.integers(0, 2))
    ran = False
    for _ in range(data.draw(st.integers(1, 4))):
        dies_at = data.draw(st.integers(0, 60))
        if data.draw(st.booleans()) or world.record.job("train") is None:
            ran = world.apply(dies_at, again=True) is not None or ran
        else:
            world.destroy(dies_at)
    if end == "apply":
        world.apply(again=True)
        runs_exactly(world, 3)
    if world.record.job("train") is not None:
        world.destroy()
    nothing_is_left(world)
    world.close()
