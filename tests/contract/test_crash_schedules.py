"""The crash schedules of `tests/property/test_runtime_model.py` on both databases, a few of the same seeds."""

from __future__ import annotations

import pytest

from planner.state.record import Record
from tests.contract.beds import PROJECT
from tests.contract.crash_world import Crashing, World, schedule


@pytest.mark.parametrize("seed", range(2))
def test_a_schedule_breaks_no_promise(made: str, seed: int) -> None:
    record, runtime = Record.open(made, PROJECT), Crashing.open(made, PROJECT)
    assert isinstance(runtime, Crashing)
    try:
        world = World(record, runtime, "train")
        for step in schedule(seed):
            world.apply(step)
        world.settle()
        assert world.starts
    finally:
        record.close()
        runtime.close()
