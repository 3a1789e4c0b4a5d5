"""A move beside what else may happen: the job's own end, nodes that the cloud takes, a record or a cloud that does not answer, other commands, clocks, budgets."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from planner.app import migrate_watched
from planner.app.destroy import destroy
from planner.app.lease import held, myself
from planner.app.migrate import Migrated
from planner.app.reap import reap
from planner.app.sync import sync
from planner.model.diagnostic import Diagnostic
from planner.model.errors import CloudError, LeaseHeld, StalePlan, StateConflict, Unavailable
from planner.model.migration import MigrationReason, MigrationStatus
from planner.model.record import RunStatus
from planner.model.runtime import Kind, Refused, Seat
from planner.state.moves import taken
from planner.state.writer import Writer
from tests.unit.app.moving import JOB, MoveClock, MoveWorld
from tests.unit.app.world import NOW

OLD, NEW = (Seat(job=JOB, generation=generation, rank=0) for generation in (1, 2))
BY_SIGNAL = {"word": "stopping", "text": "the agent got SIGTERM"}
Meanwhile = Callable[[], object]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[MoveWorld]:
    made = MoveWorld(tmp_path / "world")
    yield made
    made.close()


@pytest.fixture
def meanwhile(world: MoveWorld, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Meanwhile], None]:
    """(status, what): what happens once while the orchestrator waits with its move in that status."""
    plans: list[tuple[str, Meanwhile]] = []
    sleep = MoveClock.sleep

    def sleeps(clock: MoveClock, seconds: float) -> None:
        move = world.record.open_move(JOB)
        if plans and move is not None and move.status == plans[0][0]:
            plans.pop(0)[1]()
        sleep(clock, seconds)

    monkeypatch.setattr(MoveClock, "sleep", sleeps)
    return lambda status, what: plans.append((status, what))


def ended(world: MoveWorld, found: Migrated | None) -> None:
    assert found is not None
    assert (found.status, [d.code for d in found.problems]) == (MigrationStatus.REVERTED, ["SKY-MOVE-420"])
    assert runs(world) == {1: RunStatus.ENDED, 2: RunStatus.FAILED}
    assert world.generations() == {}
    assert 2 not in world.nodes.step, "a job that has ended is not begun again"
    assert world.record.open_move(JOB) is None
    assert not [s for s in world.record.stacks(JOB) if s.kind == "compute"]


def runs(world: MoveWorld) -> dict[int, RunStatus]:
    return {r.generation: r.status for r in world.record.runs(JOB)}


# the job's own end


@pytest.mark.parametrize("code", [0, 1])
def test_a_job_that_ends_with_its_last_checkpoint_is_not_begun_again(world: MoveWorld, code: int) -> None:
    """The checkpoint that was asked for is durable, and the job over, before the orchestrator looks."""
    world.half_way()
    world.nodes.saves = True
    world.nodes.save(OLD, world.at)
    world.nodes.ends(1, code)
    ended(world, world.migrate(None))


def test_a_job_that_ends_as_its_new_nodes_are_released_is_not_begun_again(
    world: MoveWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Writer.go_on

    def released(self: Writer, *given: Any, **named: Any) -> Any:
        done = before(self, *given, **named)
        if named.get("status") == "saved":
            world.nodes.ends(1)
            with pytest.raises(Refused, match="the job has ended on generation 1"):
                world.runtime.begin_cut(NEW, world.at)
        return done

    monkeypatch.setattr(Writer, "go_on", released)
    ended(world, world.migrate(world.diff()))


def test_a_job_that_ends_while_new_nodes_are_launched_is_not_begun_again(world: MoveWorld) -> None:
    diff, tell = world.diff(), world.said

    class Says(list[str]):
        def append(self, text: str) -> None:
            if "launching" in text:
                world.nodes.ends(1)
            super().append(text)

    world.said = Says(tell)
    ended(world, world.migrate(diff))


@pytest.mark.parametrize("status", ["launched", "saved"])
def test_a_job_that_the_clouds_shutdown_ends_goes_on_elsewhere(
    world: MoveWorld, meanwhile: Callable[[str, Meanwhile], None], status: str
) -> None:
    """The agent stops the job at its machine's end, and it exits as any job does."""
    world.nodes.saves = status == "saved"
    world.nodes.notice(1, world.at + timedelta(seconds=110))
    newest = max(c.step for c in world.nodes.store)

    def shut_down() -> None:
        world.nodes._tell(OLD, world.at, Kind.EVENT, BY_SIGNAL)
        world.nodes.ends(1, 143)

    if status == "launched":
        meanwhile(status, shut_down)
    else:
        shut_down()
    found = world.migrate(world.diff(MigrationReason.INTERRUPTION))
    assert found is not None
    assert found.status is MigrationStatus.RETIRED
    assert world.nodes.cuts[2] >= newest
    assert world.generations() == {2: 2}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([], False),
        ([("exit", "r00: the job ended with code 1")], False),
        ([("notice", "r00: spot")], False),
        ([("notice", "r00: spot"), ("exit", "r00: the job ended with code 143")], True),
        ([("notice", "r00: spot"), ("node-stopping", "r00: the agent got SIGTERM")], True),
        ([("node-stopping", "r00: the agent got SIGTERM"), ("exit", "r00: the job ended with code 143")], False),
        (
            [("notice", "r00: spot"), ("node-stopping", "r00: the hard end is at 12"), ("exit", "r00: code 124")],
            False,
        ),
    ],
)
def test_whose_end_it_was(told: list[tuple[str, str]], expected: bool) -> None:
    assert taken(told) is expected


def test_new_nodes_that_give_up_before_the_cut_turn_it_back_at_once(
    world: MoveWorld, meanwhile: Callable[[str, Meanwhile], None]
) -> None:
    world.nodes.saves = False
    meanwhile("launched", lambda: world.nodes.ends(2, 1))
    began = world.at
    found = world.migrate(world.diff())
    assert found is not None
    assert (found.status, [d.code for d in found.problems]) == (MigrationStatus.REVERTED, ["SKY-MOVE-420"])
    assert world.at - began < timedelta(seconds=50)
    assert world.generations() == {1: 2}
    assert runs(world)[1] is RunStatus.RUNNING


# what comes late


def test_a_checkpoint_that_comes_after_the_move_was_given_up_is_the_old_runs(world: MoveWorld) -> None:
    world.nodes.saves = False
    diff = world.diff()
    found = world.migrate(diff)
    assert found is not None
    assert [d.code for d in found.problems] == ["SKY-MOVE-425"]
    world.nodes.saves = True
    world.nodes.save(OLD, world.at)
    assert world.record.open_move(JOB) is None
    with pytest.raises(Refused):
        world.runtime.begin_cut(NEW, world.at)
    world.works(2)
    again = world.migrate(diff)
    assert again is not None
    assert (again.status, again.run.generation if again.run else 0) == (MigrationStatus.RETIRED, 3)
    assert world.nodes.cuts[3] == max(c.step for c in world.nodes.store if c.generation == 1)


def test_the_end_of_a_run_that_was_lost_is_no_end_of_the_job(world: MoveWorld) -> None:
    world.cloud.machines.clear()
    world.live(lambda ports: sync(JOB, ports))
    world.nodes.fatal = "saved"
    assert world.migrate(world.diff(MigrationReason.RECOVERY)) is None
    world.nodes.fatal = ""

    def close(ports: Any) -> None:
        with held(ports, JOB, wait_seconds=0) as lease:
            ports.record.writer(lease).run_status(1, RunStatus.ENDED, ports.clock.now(), "all its nodes were lost")

    world.live(close)
    assert world.record.open_move(JOB) is not None
    found = world.migrate(None)
    assert found is not None
    assert found.status is MigrationStatus.RETIRED
    assert world.generations() == {2: 2}


def test_a_run_that_is_ended_at_its_hard_end_is_not_gone_on_with(world: MoveWorld) -> None:
    world.half_way()
    spend(world, "1")
    world.at += timedelta(hours=1)
    assert world.live(lambda ports: reap(ports, heard=world.runtime.seen))[0].ended
    assert runs(world)[1] is RunStatus.ENDED
    ended(world, world.migrate(None))


# who does not answer


@pytest.mark.parametrize("status", ["launched", "saved", "cut_over"])
def test_a_record_that_is_away_for_a_while_is_waited_for(
    world: MoveWorld, meanwhile: Callable[[str, Meanwhile], None], monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    away = [3]
    runs_of = type(world.record).runs

    def answers(self: Any, *given: Any) -> Any:
        if away[0] < 3:
            away[0] += 1
            raise Unavailable([Diagnostic(code="SKY-APPLY-319", summary="the record does not answer")])
        return runs_of(self, *given)

    if status == "launched":
        world.nodes.saves = False

        def gone() -> None:
            away[0] = 0
            world.nodes.saves = True
    else:
        world.nodes.silent.add(2)

        def gone() -> None:
            away[0] = 0
            world.nodes.silent.clear()

    tick = world.nodes.tick
    monkeypatch.setattr(world.nodes, "tick", lambda at: tick(at) if away[0] == 3 else None)
    monkeypatch.setattr(type(world.record), "runs", answers)
    if status == "saved":
        begun = world.nodes._begun
        monkeypatch.setattr(world.nodes, "_begun", lambda g, at: bool(world.nodes.silent.clear()) or begun(g, at))
    meanwhile(status, gone)
    found = world.migrate(world.diff())
    assert found is not None
    assert found.status is MigrationStatus.RETIRED
    assert away == [3]


def test_a_cloud_that_does_not_list_its_machines_stops_no_move(
    world: MoveWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def throttled(*_: object) -> None:
        raise CloudError([Diagnostic(code="SKY-APPLY-313", summary="RequestLimitExceeded")])

    monkeypatch.setattr(migrate_watched, "look", throttled)
    world.nodes.saves = False
    found = world.migrate(world.diff())
    assert found is not None
    assert [d.code for d in found.problems] == ["SKY-MOVE-425"]
    assert any("RequestLimitExceeded" in line for line in world.said)


# who else is at work


@pytest.mark.parametrize("status", ["launched", "saved", "cut_over"])
def test_whoever_was_taken_over_does_nothing_more(
    world: MoveWorld, meanwhile: Callable[[str, Meanwhile], None], status: str
) -> None:
    """Its machine slept, its lease went, and another process has finished the move."""
    others: list[Migrated | None] = []
    count: list[int] = []

    def another() -> None:
        world.nodes.saves = True
        world.nodes.silent.clear()
        others.append(world.migrate(None))
        count.append(len(world.log))

    world.nodes.saves = status != "launched"
    if status == "cut_over":
        world.nodes.silent.add(2)
    meanwhile(status, another)
    with pytest.raises(StateConflict):
        world.migrate(world.diff())
    (other,) = others
    assert other is not None
    assert other.status is MigrationStatus.RETIRED
    assert world.log[count[0] :] == []
    assert world.generations() == {2: 2}


def test_nobody_else_works_on_the_job_while_it_moves(
    world: MoveWorld, meanwhile: Callable[[str, Meanwhile], None]
) -> None:
    refused: list[str] = []
    before: list[dict[int, int]] = []
    live = world.live

    def lives(use: Callable[[Any], Any], dies_at: int | None = None) -> tuple[Any, int]:
        return live(lambda ports: use(replace(ports, holder=myself())), dies_at)

    world.live = lives  # type: ignore[method-assign]

    def others() -> None:
        before.append(world.generations())
        commands: dict[str, Meanwhile] = {
            "migrate": lambda: world.migrate(None),
            "apply": lambda: world.apply(nodes=2),
            "destroy": lambda: world.live(lambda ports: destroy(JOB, ports)),
            "sync": lambda: world.live(lambda ports: sync(JOB, ports)),
        }
        for name, command in commands.items():
            with pytest.raises(LeaseHeld):
                command()
            refused.append(name)
        reaped = world.live(lambda ports: reap(ports, heard=world.runtime.seen))[0]
        assert not reaped.ended
        before.append(world.generations())
        world.nodes.saves = True

    world.nodes.saves = False
    meanwhile("launched", others)
    found = world.migrate(world.diff())
    assert found is not None
    assert found.status is MigrationStatus.RETIRED
    assert refused == ["migrate", "apply", "destroy", "sync"]
    assert before == [{1: 2, 2: 2}] * 2


# clocks and sums


def test_another_machines_clock_lengthens_no_wait(world: MoveWorld) -> None:
    """Who asked for the checkpoint was an hour ahead, and died; the next waits as long as it may by its own clock."""
    world.at += timedelta(hours=1)
    world.half_way()
    world.at -= timedelta(hours=1)
    began = world.at
    found = world.migrate(None)
    assert found is not None
    assert [d.code for d in found.problems] == ["SKY-MOVE-425"]
    assert world.at - began < timedelta(seconds=120)


def test_a_move_spends_what_is_left_of_the_sum(world: MoveWorld) -> None:
    spend(world, "100")
    world.at = NOW + timedelta(hours=2)
    found = world.migrate(world.diff())
    assert found is not None
    assert found.run is not None
    # two nodes of $10 an hour each, for two hours less the seconds before the launch
    assert Decimal(60) <= (found.run.budget_usd or 0) <= Decimal("60.20"), found.run.budget_usd


def test_with_nothing_left_there_is_no_move(world: MoveWorld) -> None:
    spend(world, "10")
    world.at = NOW + timedelta(hours=2)
    with pytest.raises(StalePlan, match="spent its budget"):
        world.migrate(world.diff())


def spend(world: MoveWorld, usd: str) -> None:
    database = sqlite3.connect(world.path)
    with database:
        database.execute("UPDATE run SET budget_usd = ? WHERE generation = 1", (usd,))
    database.close()


# --revert


def test_what_is_done_cannot_be_given_up(world: MoveWorld) -> None:
    diff = world.diff()
    world.migrate(diff)
    found = world.migrate(diff, revert=True)
    assert found is not None
    assert (found.status, found.changed) == (MigrationStatus.RETIRED, False)
    assert [d.code for d in found.problems] == ["SKY-MOVE-421"]
    assert world.generations() == {2: 2}


def test_what_was_given_up_stays_so(world: MoveWorld) -> None:
    diff = world.half_way()
    world.migrate(None, revert=True)
    again = world.migrate(diff, revert=True)
    assert again is not None
    assert (again.status, again.problems) == (MigrationStatus.REVERTED, ())
    assert world.generations() == {1: 2}


@pytest.mark.parametrize("status", ["cut_over", "verified"])
def test_there_is_no_way_back_for_a_job_that_makes_no_cut(world: MoveWorld, status: str) -> None:
    """Without checkpoints nobody fences: the new nodes compute as soon as they are there."""
    world.half_way()

    def forward(ports: Any) -> None:
        with held(ports, JOB, wait_seconds=0) as lease:
            writer = ports.record.writer(lease)
            move = writer.go_on(ports.record.open_move(JOB), ports.clock.now(), status=status)
            assert writer.give_up(move, ports.clock.now(), "asked") is None

    world.live(forward)
    found = world.migrate(None, revert=True)
    assert found is not None
    assert [d.code for d in found.problems] == ["SKY-MOVE-420", "SKY-MOVE-421"]
    assert world.generations() == {1: 2, 2: 2}
