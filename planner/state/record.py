"""The record as its readers see it, and the leases under which it is written.

Every method is one transaction, and raises Unavailable where the database cannot serve now.  Writing goes through `Writer` (see `planner.state.writer`), which a lease is needed for.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select, update

from planner.model.diagnostic import Diagnostic
from planner.model.errors import LeaseHeld, StateConflict
from planner.model.ledger import AvailabilityMemory, Failure, Holding
from planner.model.migration import CLOSED
from planner.model.record import (
    HOLDING,
    LIVE,
    Attempt,
    Event,
    Job,
    Lease,
    Node,
    Outcome,
    Run,
    Stack,
    StackStatus,
    moment,
    stamp,
)
from planner.state import rows, tables
from planner.state.engine import open_engine
from planner.state.moves import move_from
from planner.state.transactions import reading, writing
from planner.state.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import ColumnElement, Engine, Table

    from planner.state.history import Move

REMEMBERED_KINDS = ("capacity", "quota", "unknown")
EVERY_PROJECT = "*"
"""A record opened with it reads all projects, and is for reading only."""


class Record:
    """One project's part of the database."""

    def __init__(self, engine: Engine, project: str) -> None:
        self._engine = engine
        self._project = project

    @classmethod
    def open(cls, url: str, project: str, *, upgrade: bool = True, make: bool = True) -> Record:
        """Connect, and migrate where `upgrade`; `make` where there is none.  Raises MissingPart, InputError."""
        return cls(open_engine(url, upgrade=upgrade, make=make), project)

    def close(self) -> None:
        """Let the database go."""
        self._engine.dispose()

    # reading

    def job(self, name: str) -> Job | None:
        """The job, if it was ever applied."""
        found = self._rows(tables.job, tables.job.c.name == name)
        return rows.job_from(found[0]) if found else None

    def jobs(self) -> tuple[Job, ...]:
        """All jobs, by name."""
        return tuple(sorted(map(rows.job_from, self._rows(tables.job)), key=lambda j: j.name))

    def runs(self, job: str | None = None) -> tuple[Run, ...]:
        """Runs of a job, or all; by job and generation."""
        wanted = (tables.run.c.job == job,) if job is not None else ()
        return tuple(sorted(map(rows.run_from, self._rows(tables.run, *wanted)), key=lambda r: (r.job, r.generation)))

    def nodes(self, job: str, generation: int) -> tuple[Node, ...]:
        """Every rank's newest row, by rank."""
        c = tables.node.c
        newest = {
            row["rank"]: rows.node_from(row)
            for row in self._rows(tables.node, c.job == job, c.generation == generation)
        }
        return tuple(newest[rank] for rank in sorted(newest))

    def attempts(self, job: str | None = None) -> tuple[Attempt, ...]:
        """Attempts with their results, oldest first."""
        wanted = (tables.attempt.c.job == job,) if job is not None else ()
        found = self._rows(tables.attempt, *wanted)
        results = {row["intent"]: row for row in found if row["intent"] is not None}
        return tuple(rows.attempt_from(row, results.get(row["id"])) for row in found if row["intent"] is None)

    def unfinished(self, job: str) -> tuple[Attempt, ...]:
        """Intents without a result, oldest first."""
        return tuple(a for a in self.attempts(job) if a.outcome is None)

    def stacks(self, job: str | None = None) -> tuple[Stack, ...]:
        """Stacks that may hold resources, of a job or all; by name."""
        c = tables.stack.c
        wanted = (c.status != StackStatus.GONE, *((c.job == job,) if job is not None else ()))
        return tuple(sorted(map(rows.stack_from, self._rows(tables.stack, *wanted)), key=lambda s: s.name))

    def stack(self, name: str) -> Stack | None:
        """A stack by name, whatever its status."""
        found = self._rows(tables.stack, tables.stack.c.name == name)
        return rows.stack_from(found[0]) if found else None

    def events(self, job: str) -> tuple[Event, ...]:
        """What happened to a job, oldest first."""
        return tuple(map(rows.event_from, self._rows(tables.event, tables.event.c.job == job)))

    def moves(self, job: str | None = None) -> tuple[Move, ...]:
        """Moves of a job, or all, oldest first."""
        wanted = (tables.migration.c.job == job,) if job is not None else ()
        return tuple(map(move_from, self._rows(tables.migration, *wanted)))

    def open_move(self, job: str) -> Move | None:
        """The move of a job that is under way, if there is one."""
        return next((m for m in self.moves(job) if m.status not in CLOSED), None)

    def open_moves(self) -> dict[str, Move]:
        """All that are under way, by job."""
        found = self._rows(tables.migration, tables.migration.c.status.not_in(CLOSED))
        return {move.job: move for move in map(move_from, found)}

    def memory(self) -> AvailabilityMemory:
        """Launches that a cloud refused."""
        failures = {
            Failure(scope=a.scope, code=a.code, kind=a.kind, at=a.ended_at or a.at)
            for a in self.attempts()
            if a.outcome is Outcome.REFUSED and a.kind in REMEMBERED_KINDS and a.scope
        }
        return AvailabilityMemory(tuple(sorted(failures)))

    def holdings(self) -> tuple[Holding, ...]:
        """What runs that start or run hold of their pools."""
        return tuple(sorted(run.holding for run in self.runs() if run.status in HOLDING))

    def running(self) -> tuple[tuple[str, str], ...]:
        """(job, placement id) of what runs."""
        return tuple((run.job, run.placement_id) for run in self.runs() if run.status in LIVE)

    # leases

    def take_lease(
        self, name: str, holder: str, at: datetime, length: timedelta, *, gone: Callable[[str], bool] = lambda _: False
    ) -> Lease:
        """The lease, if it is free, run out, or `gone(holder)` knows its holder to be dead.  Raises LeaseHeld (SKY-APPLY-305)."""
        key = {"project": self._project, "name": name}
        with writing(self._engine) as connection:
            query = select(tables.lease).filter_by(**key).with_for_update()
            row = connection.execute(query).mappings().first()
            token = row["token"] + 1 if row else 1
            if row and row["holder"] and moment(row["expires_at"]) > at and not gone(row["holder"]):
                raise LeaseHeld([_held(name, row["holder"], row["heartbeat_at"])])
            until = stamp(at + length)
            values = {"holder": holder, "token": token, "heartbeat_at": stamp(at), "expires_at": until}
            if row is None:
                from sqlalchemy.exc import IntegrityError  # noqa: PLC0415 - beside its use

                try:
                    connection.execute(insert(tables.lease).values(**key, **values, version=1))
                except IntegrityError as error:
                    # PostgreSQL: another process inserted the row between our look and our write
                    summary = f"another process has just taken `{name}`"
                    raise LeaseHeld([Diagnostic(code="SKY-APPLY-305", summary=summary)]) from error
            else:
                self._swap(connection, tables.lease, key, row["version"], values)
        return Lease(name=name, holder=holder, token=token, expires_at=until)

    def renew(self, lease: Lease, at: datetime, length: timedelta) -> None:
        """A sign of life.  Raises StateConflict where somebody took the lease over."""
        self._lease(lease, {"heartbeat_at": stamp(at), "expires_at": stamp(at + length)})

    def release(self, lease: Lease, at: datetime) -> None:
        """Give it back.  Raises StateConflict where somebody took it over."""
        self._lease(lease, {"holder": None, "heartbeat_at": stamp(at), "expires_at": stamp(at)})

    def writer(self, lease: Lease) -> Writer:
        """The hand that may write about the lease's job."""
        return Writer(self._engine, self._project, lease)

    def _lease(self, lease: Lease, values: dict[str, Any]) -> None:
        key = {"project": self._project, "name": lease.name}
        with writing(self._engine) as connection:
            query = update(tables.lease).filter_by(**key, token=lease.token, holder=lease.holder)
            done = connection.execute(query.values(**values, version=tables.lease.c.version + 1))
            if done.rowcount != 1:
                raise StateConflict([_taken(lease)])

    def _swap(self, connection: Any, table: Table, key: dict[str, Any], version: int, values: dict[str, Any]) -> None:
        query = update(table).filter_by(**key, version=version).values(**values, version=version + 1)
        if connection.execute(query).rowcount != 1:
            raise StateConflict([Diagnostic(code="SKY-APPLY-320", summary=f"`{table.name}` changed meanwhile")])

    def _rows(self, table: Table, *wanted: ColumnElement[bool]) -> list[Mapping[str, Any]]:
        mine = () if self._project == EVERY_PROJECT else (table.c.project == self._project,)
        query = select(table).where(*mine, *wanted)
        if "id" in table.c:
            query = query.order_by(table.c.id)
        with reading(self._engine) as connection:
            return [dict(row) for row in connection.execute(query).mappings()]


def _held(name: str, holder: str, heartbeat: str) -> Diagnostic:
    holder = holder.split("#", maxsplit=1)[0]
    summary = f"`{name}` is being worked on by {holder} (last sign of life {heartbeat[:19]}Z)"
    return Diagnostic(code="SKY-APPLY-305", summary=summary)


def _taken(lease: Lease) -> Diagnostic:
    return Diagnostic(code="SKY-APPLY-320", summary=f"the lease on `{lease.name}` was taken over by another process")
