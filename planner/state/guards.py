"""What every write of a node passes: its run is locked, and neither unknown, fenced nor ended.

Decides the order of locks (runs by key, then streams, then seats), so that servers that share a PostgreSQL never wait for each other in a circle.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.dialects import postgresql, sqlite

from planner.model.record import RunStatus
from planner.model.runtime import Refusal, Refused, Seat
from planner.state import tables
from planner.state.bulk import find

OVER = (RunStatus.FAILED, RunStatus.ENDED)
_PLAIN = re.compile(r"[\x20-\x7e]{0,1000}", re.ASCII)
MOST = 2**31
UNWRITABLE = re.compile(r"[\x00\ud800-\udfff]")

Row = Mapping[Any, Any]
RunKey = tuple[str, int]


def writable(text: str, limit: int) -> str:
    """Text as both databases take it: PostgreSQL refuses NUL, neither takes half a surrogate pair."""
    return UNWRITABLE.sub("\ufffd", text[:limit])


def plain(*texts: str) -> None:
    """Raises Refused (malformed) for a name that no honest node sends and a database may not take."""
    if not all(_PLAIN.fullmatch(text) for text in texts):
        raise Refused(Refusal.MALFORMED, "a name is not of printable ASCII, or too long")


def upsert(connection: Connection, table: Any) -> Any:
    """An insert that can say ON CONFLICT, in the database's own dialect."""
    return (postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert)(table)


def runs(connection: Connection, project: str, keys: Iterable[RunKey], *, alone: bool = False) -> dict[RunKey, Row]:
    """The runs, locked: against being fenced or ended, or `alone` against everybody."""
    lock = "UPDATE" if alone else "SHARE"
    found = find(connection, tables.run, project, ("job", "generation"), sorted(set(keys)), lock=lock)
    return {(row["job"], row["generation"]): row for row in found}


def run_of(connection: Connection, project: str, seat: Seat, *, alone: bool = False) -> Row:
    """The seat's run, locked.  Raises Refused."""
    key = (seat.job, seat.generation)
    _possible(seat)
    row = runs(connection, project, [key], alone=alone).get(key)
    if refused := refusal(row, seat):
        raise refused
    assert row is not None  # noqa: S101 - an unknown run is refused
    return row


def refusal(row: Row | None, seat: Seat) -> Refused | None:
    """Why a run's nodes may not write any more."""
    if row is None:
        return Refused(Refusal.UNKNOWN, f"the record has no run {seat.run}")
    if row["fenced_at"] is not None:
        return Refused(
            Refusal.FENCED, f"{seat.run} was fenced at {row['fenced_at']}: a newer generation has taken over"
        )
    if row["status"] in OVER:
        return Refused(Refusal.ENDED, f"{seat.run} is {row['status']}")
    if not 0 <= seat.rank < row["nodes"]:
        return Refused(Refusal.UNKNOWN, f"{seat.run} has no rank {seat.rank}")
    return None


def _possible(seat: Seat) -> None:
    plain(seat.job)
    if not 0 < seat.generation < MOST:
        raise Refused(Refusal.UNKNOWN, f"no generation {seat.generation} was issued")


def judged(connection: Connection, project: str, seat: Seat) -> Row:
    """The seat's run, read without a lock.  Raises Refused as `run_of`."""
    _possible(seat)
    query = select(tables.run).filter_by(project=project, job=seat.job, generation=seat.generation)
    row = connection.execute(query).mappings().first()
    if refused := refusal(row, seat):
        raise refused
    assert row is not None  # noqa: S101 - an unknown run is refused
    return row
