"""The history: prices and capacity as they were observed, kept for good, and moves of jobs as they were decided.

Observations only grow (`history_write` says what is new, `history_read` what stands); a move goes on by compare-and-swap.  Decides nothing about markets: what a
pool or a move's document means is for who writes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import event, insert, select, update
from sqlalchemy.exc import DisconnectionError

from planner.model.diagnostic import Diagnostic
from planner.model.errors import StateConflict
from planner.model.readings import CapacityReading, PriceReading, QuotaReading
from planner.model.record import stamp
from planner.state import history_keep, history_quotas, history_read, tables
from planner.state.engine import open_engine
from planner.state.history_values import EPOCH, PriceWindow, Quota, Quotes, Recorded, Seen, Steps, Stored, us, when
from planner.state.history_write import Recording
from planner.state.transactions import reading, writing

if TYPE_CHECKING:
    from sqlalchemy import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A job's move from a generation to another.  `to_generation` None: not issued yet."""

    id: int
    job: str
    from_generation: int
    to_generation: int | None
    reason: str
    status: str
    document: Mapping[str, Any] = field(default_factory=dict[str, Any])
    at: str = ""
    version: int = 1


class History:
    """One project's moves, and the observations that all projects share."""

    def __init__(self, engine: Engine, project: str) -> None:
        self._engine = engine
        self._project = project
        self._lines: dict[tuple[str, str], int] = {}
        event.listen(engine, "connect", self._forget)

    @classmethod
    def open(cls, url: str, project: str, *, upgrade: bool = True, make: bool = True) -> History:
        """Connect, and migrate where `upgrade`; `make` where there is none.  Raises MissingPart, InputError."""
        engine = open_engine(url, upgrade=upgrade, make=make, connections=1)
        if engine.dialect.name == "sqlite":
            _only_of_this_file(engine)
        return cls(engine, project)

    def _forget(self, _connection: Any, _record: Any) -> None:
        """Another connection may be to another record."""
        self._lines = {}

    def close(self) -> None:
        """Let the database go."""
        self._engine.dispose()

    # prices and capacity

    def record(
        self, readings: Iterable[PriceReading | CapacityReading], *, now: datetime, live: bool = True
    ) -> Recorded:
        """Keep what is new in readings, all of them or (where one raises, or we die) none.  Raises Unavailable.

        `live`: what the source says now, so that a price counts as confirmed at `now`, whenever it was set.  Otherwise it is recorded history:
        it counts as known at its own time.
        """
        with writing(self._engine) as connection:
            lines = dict(self._lines)  # numbers that are given count once the transaction is done
            done = Recording(connection, lines, now=now, live=live).take(readings)
        self._lines = lines
        return done

    def as_of(self, at: datetime | None = None, series: Sequence[str] | None = None) -> Quotes:
        """Prices of those series, or all: as of `at`, by what was known then; now where None.  Raises Unavailable."""
        with reading(self._engine) as connection:
            return history_read.quotes(connection, None if at is None else us(at), series)

    def newest(self) -> datetime | None:
        """By when all that is kept was known: the moment of the newest observation.  None without one."""
        with reading(self._engine) as connection:
            found = history_read.newest(connection)
        return when(found) if found else None

    def changes(self, series: Sequence[str], since: datetime, until: datetime) -> dict[str, Steps]:
        """By series, its prices over that time; the first is the one that held at `since`.  One without any is left out."""
        with reading(self._engine) as connection:
            return history_read.changes(connection, series, us(since), us(until))

    def window(self, series: str, since: datetime, until: datetime) -> PriceWindow | None:
        """Its least, median and greatest price over that time, and how much it varied; None without a price."""
        steps = self.changes([series], since, until).get(series)
        return history_read.window(steps) if steps else None

    def capacity_as_of(self, at: datetime, series: Sequence[str] | None = None) -> dict[str, Seen]:
        """By series, what was seen last, by what was known at `at`."""
        with reading(self._engine) as connection:
            return history_read.capacity(connection, us(at), series)

    def capacity_changes(self, series: Sequence[str], since: datetime, until: datetime) -> dict[str, tuple[Seen, ...]]:
        """By series, what was seen over that time, oldest first, after the last word before it."""
        with reading(self._engine) as connection:
            return history_read.capacity_changes(connection, series, us(since), us(until))

    def failures(self, since: datetime, at: datetime, series: Sequence[str] | None = None) -> tuple[Seen, ...]:
        """What was refused or taken back from `since` to `at`, oldest first; a failure that lasts is told once an hour."""
        with reading(self._engine) as connection:
            return history_read.failures(connection, us(since), us(at), series)

    def last_failure(self, series: str | Sequence[str], at: datetime) -> Seen | None:
        """The newest failure of a series, or of all series of a pool, by what was known at `at`."""
        names = [series] if isinstance(series, str) else list(series)
        found = self.failures(EPOCH, at, names)
        return found[-1] if found else None

    def record_quotas(self, target: str, quotas: Iterable[QuotaReading]) -> Recorded:
        """Keep what is new in a target's quotas."""
        with writing(self._engine) as connection:
            return history_quotas.record(connection, self._project, target, quotas)

    def quotas(self, target: str | None = None, at: datetime | None = None) -> tuple[Quota, ...]:
        """The project's quotas as they were last read, until `at`."""
        with reading(self._engine) as connection:
            return history_quotas.read(connection, self._project, target, at)

    def stored(self) -> Stored:
        """How much there is."""
        with reading(self._engine) as connection:
            return history_keep.stored(connection)

    def compact(self, keep_since: datetime, every: timedelta | None, *, dry: bool = False) -> int:
        """Thin what is older than `keep_since` to one change per `every` and series, or remove it; the price that holds at `keep_since`, and the newest of each series, stay.
        Returns how many rows went; where it is `dry`, how many would, and they stay.
        """
        return history_keep.compact(self._engine, us(keep_since), every, dry=dry)

    # moves

    def decide(
        self, job: str, from_generation: int, reason: str, document: Mapping[str, Any], at: datetime, *, status: str
    ) -> Move:
        """Note a move before its first act."""
        values: dict[str, Any] = {
            "project": self._project,
            "job": job,
            "from_generation": from_generation,
            "to_generation": None,
            "reason": reason,
            "status": status,
            "document": json.dumps(dict(document), sort_keys=True),
            "at": stamp(at),
            "version": 1,
        }
        with writing(self._engine) as connection:
            row = connection.execute(insert(tables.migration).values(**values).returning(tables.migration)).mappings()
            return _move(row.one())

    def go_on(self, move: Move, status: str, at: datetime, *, to_generation: int | None = None) -> Move:
        """The move's next status.  Raises StateConflict where somebody else moved it on meanwhile."""
        c = tables.migration.c
        values = {
            "status": status,
            "at": stamp(at),
            "version": move.version + 1,
            "to_generation": to_generation if to_generation is not None else move.to_generation,
        }
        mine = (c.project == self._project, c.id == move.id, c.version == move.version)
        with writing(self._engine) as connection:
            query = update(tables.migration).where(*mine).values(**values).returning(tables.migration)
            row = connection.execute(query).mappings().first()
            if row is None:
                summary = f"move {move.id} of `{move.job}` was taken on by another process"
                raise StateConflict([Diagnostic(code="SKY-APPLY-320", summary=summary)])
            return _move(row)

    def moves(self, job: str | None = None) -> tuple[Move, ...]:
        """Moves of a job, or all, oldest first."""
        c = tables.migration.c
        query = select(tables.migration).where(c.project == self._project)
        if job is not None:
            query = query.where(c.job == job)
        with reading(self._engine) as connection:
            return tuple(map(_move, connection.execute(query.order_by(c.id)).mappings()))


def _move(row: Mapping[Any, Any]) -> Move:
    names = ("id", "job", "from_generation", "to_generation", "reason", "status", "at", "version")
    return Move(document=json.loads(row["document"]), **{name: row[name] for name in names})


def _only_of_this_file(engine: Engine) -> None:
    """A connection is kept (opening one takes longer than a price), but not past its file: a record that is put in its place is the one that is then used."""
    path = engine.url.database or ""

    def made(_connection: Any, record: Any) -> None:
        record.info["file"] = _identity(path)

    def taken(_connection: Any, record: Any, _proxy: Any) -> None:
        if record.info.get("file") != _identity(path):
            raise DisconnectionError("another file lies in its place")

    event.listen(engine, "connect", made)
    event.listen(engine, "checkout", taken)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
