"""The reaper, and an apply over a job that has exited, killed at any moment: the next one ends what is left, and never what lives."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.app.apply import Order, apply
from planner.app.over import GRACE
from planner.app.reap import reap
from planner.model.record import NodeStatus, RunStatus
from tests.unit.app.test_reap import alive, move, pass_over
from tests.unit.app.world import World, planned

STRIDE = 3
"""Every third moment; all of them with --full."""


def exited(folder: Path) -> World:
    """A world with a run that has exited, its nodes still there, and another job that lives."""
    world = World(folder)
    world.apply(name="other", nodes=1)
    world.apply()
    move(world, RunStatus.EXITED)
    world.at += GRACE
    return world


def sweep(folder: Path, steps: int, stride: int, after) -> None:
    for number, dies_at in enumerate(range(0, steps, stride)):
        world = exited(folder / str(number))
        try:
            after(world, dies_at)
        except AssertionError as error:
            raise AssertionError(f"killed at step {dies_at} of {steps}: {error}") from error
        finally:
            world.close()


def killed_reaper(world: World, dies_at: int) -> None:
    world.live(reap, dies_at)
    other = {i.id for _, i in world.cloud.machines.values() if i.tags["skyplan:job"] == "other"}
    assert other == {"i-0001"}
    done = pass_over(world)
    assert done.problems == done.busy == ()
    assert alive(world) == ["i-0001"]
    (run,) = world.record.runs("train")
    assert run.status is RunStatus.ENDED
    assert {n.status for n in world.record.nodes("train", 1)} == {NodeStatus.ENDED}
    assert world.record.runs("other")[0].status is RunStatus.RUNNING


def killed_apply(world: World, dies_at: int) -> None:
    world.apply(dies_at, again=True)
    done = world.apply(again=True)
    assert done is not None
    mine = sorted(i.id for _, i in world.cloud.machines.values() if i.tags["skyplan:job"] == "train")
    assert mine == sorted(n.instance_id for n in done.nodes)
    assert len(mine) == 3
    statuses = [r.status for r in world.record.runs("train")]
    assert statuses.count(RunStatus.RUNNING) == 1
    assert statuses[0] is RunStatus.ENDED
    assert pass_over(world).ended == ()


def lengths(folder: Path) -> tuple[int, int]:
    plan, work = planned()
    order = Order(plan=plan, workload=work, prepare=0, again=True)
    first, second = exited(folder / "reap"), exited(folder / "apply")
    try:
        return first.count(reap), second.count(lambda ports: apply(order, ports))
    finally:
        first.close()
        second.close()


def test_a_killed_reaper_leaves_nothing_to_the_next_but_its_work(tmp_path: Path) -> None:
    sweep(tmp_path, lengths(tmp_path)[0], STRIDE, killed_reaper)


def test_a_killed_apply_over_an_exited_job_leaves_one_run(tmp_path: Path) -> None:
    sweep(tmp_path, lengths(tmp_path)[1], 2 * STRIDE, killed_apply)


@pytest.mark.full
def test_at_every_moment(tmp_path: Path) -> None:
    reaps, applies = lengths(tmp_path)
    sweep(tmp_path / "reaps", reaps, 1, killed_reaper)
    sweep(tmp_path / "applies", applies, 1, killed_apply)
