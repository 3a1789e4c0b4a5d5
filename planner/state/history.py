"""Prices and availability as they were observed, and moves of jobs as they were decided.  Observations only grow; a move goes on by compare-and-swap.

Decides nothing about markets: what a series, a pool or a move's document means is for who writes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select, update

from planner.model.diagnostic import Diagnostic
from planner.model.errors import StateConflict
from planner.model.record import stamp
from planner.state import bulk, tables
from planner.state.engine import open_engine
from planner.state.transactions import reading, writing

if TYPE_CHECKING:
    from sqlalchemy import Engine

MICRO = 1_000_000
BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class PricePoint:
    """A price that was observed: of a series (an offer's id), in millionths of a USD."""

    series: str
    observed_at: str
    micro_usd: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AvailabilityPoint:
    """What was observed of a pool, in one word of the source's."""

    pool: str
    observed_at: str
    source: str
    word: str
    detail: str = ""


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

    @classmethod
    def open(cls, url: str, project: str, *, upgrade: bool = True) -> History:
        """Connect, and migrate where `upgrade`.  Raises MissingPart, InputError."""
        return cls(open_engine(url, upgrade=upgrade), project)

    def close(self) -> None:
        """Let the database go."""
        self._engine.dispose()

    def observe(self, prices: Sequence[PricePoint] = (), availability: Sequence[AvailabilityPoint] = ()) -> None:
        """Note observations; one that is known already stays as it is."""
        price_rows = [{n: getattr(p, n) for n in ("series", "observed_at", "micro_usd", "source")} for p in prices]
        seen = [{n: getattr(a, n) for n in ("pool", "observed_at", "source", "word", "detail")} for a in availability]
        with writing(self._engine) as connection:
            for table, rows in ((tables.price, price_rows), (tables.availability, seen)):
                for at in range(0, len(rows), BATCH):
                    bulk.put(connection, table, rows[at : at + BATCH], bulk.IGNORE)

    def prices(self, series: str, *, since: str = "", until: str = "9999") -> tuple[PricePoint, ...]:
        """A series from `since` on and before `until`, oldest first."""
        c = tables.price.c
        query = select(tables.price).where(c.series == series, c.observed_at >= since, c.observed_at < until)
        with reading(self._engine) as connection:
            return tuple(PricePoint(**row) for row in connection.execute(query.order_by(c.observed_at)).mappings())

    def availability(self, pool: str, *, since: str = "") -> tuple[AvailabilityPoint, ...]:
        """What was observed of a pool from `since` on, oldest first."""
        c = tables.availability.c
        query = select(tables.availability).where(c.pool == pool, c.observed_at >= since)
        with reading(self._engine) as connection:
            found = connection.execute(query.order_by(c.observed_at, c.source)).mappings()
            return tuple(AvailabilityPoint(**row) for row in found)

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
