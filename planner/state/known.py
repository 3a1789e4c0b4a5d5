"""What a batch of reports is judged by, read at once: its runs, how far its streams were taken, who has its seats, what its nodes are asked.

Decides the order of locks (`guards`: runs, then streams), and on PostgreSQL that all but the runs is read once they are locked: whoever gives a seat away or fences a
run locks it alone, so what is read then holds until the end of the transaction.  Each statement answers with one row: in SQLite's driver each would be a step.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from sqlalchemy import Connection, TextClause, text

from planner.model.runtime import NodeRequest, Seat
from planner.state import tables
from planner.state.bulk import find, numbered_by_json, numbered_one_by_one
from planner.state.guards import Row, RunKey

REQUESTS: Final = 16
"""The newest that a node is told: it has seen what is older."""
_RUN: Final = ("job", "generation")
_SEAT: Final = ("job", "generation", "rank")
_STREAM: Final = (*_SEAT, "stream")
_JUDGED: Final = ("status", "fenced_at", "nodes")
_ASKED: Final = ("id", "word", "reason", "deadline", "at")

Stream = tuple[str, int, int, str]
SeatKey = tuple[str, int, int]


@dataclass(slots=True, kw_only=True)
class Known:
    """`holders`: instance id and hash of the key of the machine that has a stream's seat."""

    runs: Mapping[RunKey, Row]
    through: dict[Stream, int]
    holders: Mapping[Stream, tuple[str, str]]
    requests: Mapping[RunKey, tuple[NodeRequest, ...]]


def known(
    connection: Connection, project: str, runs: Sequence[RunKey], streams: Sequence[Stream], *, alone: bool
) -> Known:
    """Runs locked against being fenced or ended, or `alone` against everybody; streams against everybody.  All keys are sorted."""
    named = {"of_project": project, "runs": json.dumps(runs), "streams": json.dumps(streams)}
    if connection.dialect.name == "postgresql":
        locked = connection.execute(_locked(alone=alone), {"of_project": project, "runs": named["runs"]}).scalar_one()
        found = [locked, *connection.execute(_at_once(), named).one()]
    else:
        found = [json.loads(part) for part in connection.exec_driver_sql(_in_one(), named).one()]
    of_runs, of_streams, of_seats, of_requests = (part or () for part in found)
    return Known(
        runs={runs[n]: dict(zip(_JUDGED, values, strict=True)) for n, *values in of_runs},
        through={streams[n]: through for n, through in of_streams},
        holders={streams[n]: (instance_id, key_sha256) for n, instance_id, key_sha256 in of_seats},
        requests=_requests(runs, of_requests),
    )


def requests(connection: Connection, project: str, seat: Seat) -> tuple[NodeRequest, ...]:
    """What the seat's generation is asked to do, oldest first."""
    rows = find(connection, tables.request, project, _RUN, [(seat.job, seat.generation)])
    asked = sorted((NodeRequest(**{name: row[name] for name in _ASKED}) for row in rows), key=lambda r: r.id)
    return tuple(asked[-REQUESTS:])


def _requests(runs: Sequence[RunKey], rows: Sequence[list[Any]]) -> dict[RunKey, tuple[NodeRequest, ...]]:
    found: dict[RunKey, list[NodeRequest]] = {}
    for n, *values in sorted(rows, key=lambda row: row[1]):
        key = runs[int(n)]
        found.setdefault(key, []).append(NodeRequest(**dict(zip(_ASKED, values, strict=True))))
    return {key: tuple(asked[-REQUESTS:]) for key, asked in found.items()}


@cache
def _in_one() -> str:
    parts = (
        numbered_by_json(tables.run, _RUN, _JUDGED, "runs"),
        numbered_by_json(tables.delivery, _STREAM, ("through",), "streams"),
        numbered_by_json(tables.seat, _SEAT, ("instance_id", "key_sha256"), "streams"),
        numbered_by_json(tables.request, _RUN, _ASKED, "runs"),
    )
    return f"SELECT {', '.join(f'({part})' for part in parts)}"


@cache
def _locked(*, alone: bool) -> TextClause:
    return text(numbered_one_by_one(tables.run, _RUN, _JUDGED, "runs", "UPDATE" if alone else "SHARE"))


@cache
def _at_once() -> TextClause:
    parts = (
        numbered_one_by_one(tables.delivery, _STREAM, ("through",), "streams", "UPDATE"),
        numbered_one_by_one(tables.seat, _SEAT, ("instance_id", "key_sha256"), "streams"),
        numbered_one_by_one(tables.request, _RUN, _ASKED, "runs"),
    )
    return text(f"SELECT {', '.join(f'({part})' for part in parts)}")
