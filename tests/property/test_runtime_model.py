"""Record, nodes and store under crashes: no checkpoint is lost, no job owned twice, and every generation starts from the newest valid file at its cut.

The record is the real one; the rest is `tests.contract.crash_world`, whose planted faults these very runs must find.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from sqlalchemy import event

from planner.state.record import Record
from planner.state.runtime import Runtime
from tests.contract.crash_world import BUGS, FATES, WORDS, Broken, Crashing, Step, World, schedule

QUICK = 25
ALL = 1000
_JOBS = itertools.count()


class Ground:
    """One database for all worlds, each a job of its own; nothing here is about power cuts, so it need not reach the disk."""

    def __init__(self, folder: Path) -> None:
        url = f"sqlite:///{folder / 'record.sqlite'}"
        self.record, self.runtime = Record.open(url, "acme"), Crashing.open(url, "acme", connections=1)
        for engine in (self.record._engine, self.runtime._engine):
            event.listen(engine, "connect", lambda c, _: c.execute("PRAGMA synchronous = OFF"))

    def world(self, bug: str = "") -> World:
        assert isinstance(self.runtime, Crashing)
        return World(self.record, self.runtime, f"train-{next(_JOBS)}", bug)

    def close(self) -> None:
        self.record.close()
        self.runtime.close()


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    folder = tmp_path_factory.mktemp("model")
    made = Ground(folder)
    yield made
    made.close()
    shutil.rmtree(folder, ignore_errors=True)


def run(world: World, seed: int) -> World:
    for step in schedule(seed):
        world.apply(step)
    world.settle()
    return world


def test_random_crash_schedules_break_no_promise(ground: Ground) -> None:
    worlds = [run(ground.world(), seed) for seed in range(QUICK)]
    # they must have been through something, or they say nothing
    assert sum(len(w.machines) for w in worlds) > 4 * QUICK
    assert sum(w.refusals for w in worlds) > QUICK
    assert sum(1 for w in worlds for step in w.starts.values() if step) > QUICK
    assert any(it.forged for w in worlds for it in w.store.values())


@pytest.mark.full
def test_a_thousand_random_crash_schedules_break_no_promise(ground: Ground) -> None:
    for seed in range(ALL):
        run(ground.world(), seed)


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_fault_is_found(ground: Ground, bug: str) -> None:
    found = 0
    for seed in range(QUICK):
        try:
            run(ground.world(bug), seed)
        except Broken:
            found += 1
    assert found >= 3


@pytest.mark.parametrize("bug", ["", *(pytest.param(bug, marks=pytest.mark.full) for bug in BUGS)])
def test_hypothesis_looks_for_what_breaks_a_promise(ground: Ground, bug: str) -> None:
    class Story(RuleBasedStateMachine):
        @initialize()
        def start(self) -> None:
            self.world = ground.world(bug)

        @rule(
            word=st.sampled_from(sorted(set(WORDS))),
            fate=st.sampled_from(sorted(set(FATES))),
            number=st.integers(0, 999),
        )
        def happens(self, word: str, fate: str, number: int) -> None:
            self.world.apply(Step(word, fate, number))

        @rule(steps=st.integers(1, 12))
        def goes_well_for_a_while(self, steps: int) -> None:
            for _ in range(steps):
                self.world.apply(Step("agent"))

        def teardown(self) -> None:
            if hasattr(self, "world"):
                self.world.settle()

    examples = settings.default.max_examples if settings.default else 25
    wanted = settings(
        max_examples=examples if not bug else max(examples, 300),
        stateful_step_count=90 if bug else 40,  # as long as a schedule: a fault may need a whole life to show
        suppress_health_check=list(HealthCheck),
        # that a planted fault is found is what is asked; its shortest story takes minutes
        phases=[Phase.generate] if bug else list(Phase),
        report_multiple_bugs=False,
        deadline=None,
        database=None,
        print_blob=False,
    )
    if bug:
        with pytest.raises(Broken):
            run_state_machine_as_test(Story, settings=wanted)
    else:
        run_state_machine_as_test(Story, settings=wanted)


def test_a_real_runtime_has_no_way_to_die_on_purpose() -> None:
    assert not hasattr(Runtime, "fate")
