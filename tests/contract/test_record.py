"""The record on SQLite and on PostgreSQL: leases, fences, one transaction per transition, what planning reads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from planner.model.errors import InputError, LeaseHeld, StateConflict
from planner.model.project import Backend
from planner.model.record import Action, Lease, Node, NodeStatus, Outcome, RunStatus, Stack, StackStatus
from planner.state import engine, tables
from planner.state.record import EVERY_PROJECT, Record
from tests.contract.beds import RUN as A_RUN

NOW = datetime(2026, 7, 30, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
RUN = replace(A_RUN, addresses=("10.1.0.4", "10.1.0.5"))
STACK = Stack(
    name="cmp-train-g1",
    kind="compute",
    job="train",
    cloud="aws",
    target="prod",
    region="us-east-1",
    generation=1,
    backend=Backend(kind="s3", settings=(("bucket", "b"),)),
    document={"resource": {"x": 1}},
    variables={"subnet_id": "s"},
)
NODES = tuple(Node(rank=k, instance_id=f"i-{k}", address=f"10.1.0.{k + 4}") for k in range(2))


@pytest.fixture
def record(database: str) -> Iterator[Record]:
    made = Record.open(database, "acme")
    yield made
    made.close()


def lease(record: Record, name: str = "train", holder: str = "me", at: datetime = NOW) -> Lease:
    return record.take_lease(name, holder, at, MINUTE)


def test_a_launch_from_intent_to_nodes(record: Record) -> None:
    writer = record.writer(lease(record))
    run = writer.issue(RUN, NOW)
    assert (run.id, run.status, run.usd_per_hour, run.addresses) == (
        "train-g1",
        RunStatus.STARTING,
        RUN.usd_per_hour,
        RUN.addresses,
    )
    intent = writer.intend(STACK, Action.APPLY, NOW, scope=run.pool)
    assert [a.stack for a in record.unfinished("train")] == ["cmp-train-g1"]
    assert record.stacks("train") == (replace(STACK, at="2026-07-30T12:00:00.000000Z", version=1),)
    writer.launched(intent, 1, NODES, NOW + MINUTE / 2)
    assert record.runs("train")[0].status is RunStatus.RUNNING
    assert [n.instance_id for n in record.nodes("train", 1)] == ["i-0", "i-1"]
    assert not record.unfinished("train")
    assert record.running() == (("train", "p0123456789"),)
    assert [h.gpus for h in record.holdings()] == [16]
    assert record.stack("cmp-train-g1").status is StackStatus.APPLIED  # pyright: ignore[reportOptionalMemberAccess]


def test_a_refusal_is_remembered_and_what_ended_is_not_held(record: Record) -> None:
    writer = record.writer(lease(record))
    writer.issue(RUN, NOW)
    intent = writer.intend(STACK, Action.APPLY, NOW, scope=RUN.pool)
    writer.refused(
        intent, NOW, code="InsufficientInstanceCapacity", kind="capacity", scope=RUN.pool, detail="whole text"
    )
    writer.run_status(1, RunStatus.FAILED, NOW, "refused")
    (failure,) = record.memory().failures
    assert (failure.scope, failure.code, failure.kind) == (RUN.pool, "InsufficientInstanceCapacity", "capacity")
    assert datetime.fromisoformat(failure.at) == NOW
    assert not record.holdings()
    assert record.attempts("train")[0].outcome is Outcome.REFUSED
    assert record.attempts("train")[0].detail == "whole text"


def test_what_is_held_and_refused_counts_for_every_project(record: Record, database: str) -> None:
    record.writer(lease(record)).issue(RUN, NOW)
    other, every = Record.open(database, "other"), Record.open(database, EVERY_PROJECT, upgrade=False)
    assert not other.jobs()
    assert len(every.holdings()) == 1
    other.close()
    every.close()


def test_generations_rise_by_one_per_launch_and_foreign_ones_may_skip(record: Record) -> None:
    writer = record.writer(lease(record))
    assert [writer.issue(RUN, NOW).generation for _ in range(3)] == [1, 2, 3]
    assert writer.issue(RUN, NOW, generation=7).generation == 7
    with pytest.raises(StateConflict):
        writer.issue(RUN, NOW, generation=5)
    assert [r.generation for r in record.runs("train")] == [1, 2, 3, 7]


WRITES: list[Callable[..., object]] = [
    lambda w: w.issue(RUN, NOW),
    lambda w: w.intend(STACK, Action.APPLY, NOW),
    lambda w: w.run_status(1, RunStatus.FAILED, NOW, ""),
    lambda w: w.seen(1, NODES, RunStatus.DEGRADED, NOW, ""),
    lambda w: w.adopt(STACK, NOW),
    lambda w: w.event(1, NOW, "x", "y"),
    lambda w: w.done(1, StackStatus.GONE, NOW),
    lambda w: w.abandoned(1, NOW, ""),
    lambda w: w.launched(1, 1, NODES, NOW),
    lambda w: w.refused(1, NOW, code="", kind="", scope="", detail=""),
]


@pytest.mark.parametrize("write", WRITES)
def test_a_writer_of_an_older_generation_is_refused_and_writes_nothing(
    record: Record, write: Callable[..., object]
) -> None:
    held = lease(record)
    old = record.writer(held)
    old.issue(RUN, NOW)
    old.intend(STACK, Action.APPLY, NOW)
    record.writer(held).issue(RUN, NOW)
    before = (record.runs(), record.attempts(), record.events("train"), record.stacks())
    with pytest.raises(StateConflict, match="fenced"):
        write(old)
    assert (record.runs(), record.attempts(), record.events("train"), record.stacks()) == before


@pytest.mark.parametrize("write", WRITES)
def test_a_writer_whose_lease_was_taken_over_is_refused(record: Record, write: Callable[..., object]) -> None:
    old = record.writer(lease(record))
    old.issue(RUN, NOW)
    old.intend(STACK, Action.APPLY, NOW)
    lease(record, holder="another", at=NOW + 2 * MINUTE)
    with pytest.raises(StateConflict, match="taken over"):
        write(old)


def test_a_lease_is_refused_until_it_is_given_back_runs_out_or_its_holder_is_gone(record: Record) -> None:
    first = lease(record)
    with pytest.raises(LeaseHeld) as caught:
        lease(record, holder="you")
    assert caught.value.diagnostics[0].code == "SKY-APPLY-305"
    assert "me" in str(caught.value)
    second = record.take_lease("train", "you", NOW, MINUTE, gone=lambda holder: holder == "me")
    assert second.token == first.token + 1
    with pytest.raises(StateConflict):
        record.release(first, NOW)
    with pytest.raises(StateConflict):
        record.renew(first, NOW, MINUTE)
    record.renew(second, NOW + MINUTE / 2, MINUTE)
    with pytest.raises(LeaseHeld):
        lease(record, at=NOW + MINUTE)
    record.release(second, NOW + MINUTE)
    assert lease(record, at=NOW + MINUTE).token == 3


def test_of_many_that_ask_at_once_one_gets_the_lease(database: str) -> None:
    Record.open(database, "acme").close()
    start = threading.Barrier(6)

    def ask(k: int) -> bool:
        record = Record.open(database, "acme")
        try:
            start.wait(30)
            lease(record, holder=f"h{k}")
        except LeaseHeld:
            return False
        finally:
            record.close()
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(ask, range(6))) == 1


def test_two_that_open_an_empty_database_at_once_both_find_it_made(database: str) -> None:
    start = threading.Barrier(2)

    def first(_: int) -> int:
        start.wait(30)
        record = Record.open(database, "acme")
        try:
            return len(record.jobs())
        finally:
            record.close()

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(first, range(2))) == [0, 0]


def test_nodes_only_grow_and_the_newest_row_counts(record: Record) -> None:
    writer = record.writer(lease(record))
    writer.issue(RUN, NOW)
    writer.launched(writer.intend(STACK, Action.APPLY, NOW), 1, NODES, NOW)
    writer.seen(1, [replace(NODES[1], status=NodeStatus.LOST)], RunStatus.DEGRADED, NOW + MINUTE / 2, "r01 lost")
    assert [n.status for n in record.nodes("train", 1)] == [NodeStatus.RUNNING, NodeStatus.LOST]
    assert record.runs()[0].ended_at is None
    writer.seen(1, [], RunStatus.ENDED, NOW + MINUTE / 2, "destroyed")
    assert record.runs()[0].ended_at


def test_an_attempt_ends_once(record: Record) -> None:
    writer = record.writer(lease(record))
    intent = writer.intend(STACK, Action.APPLY, NOW)
    writer.done(intent, StackStatus.APPLIED, NOW)
    with pytest.raises(Exception, match=r"(?i)unique"):
        writer.done(intent, StackStatus.GONE, NOW)
    assert [s.status for s in record.stacks()] == [StackStatus.APPLIED]


def test_the_migrations_make_the_tables_as_they_are_written_down(database: str) -> None:
    opened = engine.open_engine(database)
    with opened.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), tables.metadata) == []
    opened.dispose()


def test_head_is_the_newest_migration() -> None:
    folder = Path(engine.__file__).parent / "migrations"
    assert ScriptDirectory(str(folder)).get_current_head() == engine.HEAD


def test_reading_makes_no_record_and_a_newer_one_is_refused(database: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        Record.open(database, "acme", upgrade=False)
    assert caught.value.diagnostics[0].code == "SKY-APPLY-319"
    assert not (tmp_path / "folder").exists()
    opened = engine.open_engine(database)
    with opened.connect().execution_options(writes=True) as connection, connection.begin():
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    opened.dispose()
    with pytest.raises(InputError, match="newer"):
        Record.open(database, "acme")


def test_a_record_of_the_first_schema_is_brought_up_to_date_with_all_that_it_holds(database: str) -> None:
    from alembic import command
    from alembic.config import Config

    old = engine._engine(database, make=True, connections=0)
    with old.connect().execution_options(writes=True) as connection, connection.begin():
        config = Config()
        config.set_main_option("script_location", str(Path(engine.__file__).parent / "migrations"))
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        key = "'acme', 'train'"
        connection.exec_driver_sql(f"INSERT INTO job VALUES ({key}, 1, '2026-07-30T12:00:00.000000Z', 1)")
        texts = ", ".join(["'aws'"] * 7)
        connection.exec_driver_sql(
            f"INSERT INTO run VALUES ({key}, 1, 'd', 1, 'p', 'o', {texts}, 1, 8, 192, '[]', '2.0000', 'running',"
            " '2026-07-30T12:00:00.000000Z', NULL, NULL, NULL, 1)"
        )
    old.dispose()
    record = Record.open(database, "acme")
    try:
        (run,) = record.runs()
        assert (run.generation, run.stop_after_hours, run.budget_usd) == (1, None, None)
        made = record.writer(lease(record)).issue(replace(RUN, stop_after_hours=1.5, budget_usd=Decimal("20.5")), NOW)
        assert (made.stop_after_hours, made.budget_usd) == (1.5, Decimal("20.5"))
    finally:
        record.close()
