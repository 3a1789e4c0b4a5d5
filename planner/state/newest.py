"""The two ends of what many runs told, in a few queries: first and newest step, newest checkpoint, newest notice of each.

Reads only.  Each is a look into an index, however many rows a run has; a thousand jobs are looked at together, since a loop over them would take seconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Table, select, text

from planner.model.record import Event
from planner.model.runtime import Checkpoint, Progress
from planner.state import rows, tables
from planner.state.engine import open_engine
from planner.state.told import progress_from
from planner.state.transactions import reading

if TYPE_CHECKING:
    from sqlalchemy import Engine

    Key = tuple[str, int]

CHUNK = 500
"""Ids per query: far below SQLite's 32,766 variables."""
_RANK = (
    "(SELECT MIN(low.rank) FROM progress AS low"
    " WHERE low.project = :project AND low.job = {job} AND low.generation = {generation})"
)
_OF_RANK = (
    "FROM progress AS found WHERE found.project = :project AND found.job = {job}"
    " AND found.generation = {generation} AND found.rank = " + _RANK
)
_ENDS = "(SELECT MIN(found.id) " + _OF_RANK + "), (SELECT MAX(found.id) " + _OF_RANK + ")"
#: by step, then by which the record learnt of last: what a resume would choose
_BEST = "(SELECT id FROM checkpoint WHERE project = :project AND job = {job} ORDER BY step DESC, id DESC LIMIT 1)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """What a run's lowest rank told first and last."""

    first: Progress
    last: Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """By (job, generation) or by job; what told nothing is missing."""

    ends: Mapping[tuple[str, int], Ends] = field(default_factory=dict[tuple[str, int], Ends])
    checkpoints: Mapping[str, Checkpoint] = field(default_factory=dict[str, Checkpoint])
    notices: Mapping[tuple[str, int], Event] = field(default_factory=dict[tuple[str, int], Event])


class Looker:
    """One project's part of the database."""

    def __init__(self, engine: Engine, project: str) -> None:
        self._engine = engine
        self._project = project

    @classmethod
    def open(cls, url: str, project: str) -> Looker:
        """Connect.  Raises MissingPart, InputError."""
        return cls(open_engine(url, upgrade=False), project)

    def close(self) -> None:
        """Let the database go."""
        self._engine.dispose()

    def newest(self, runs: Sequence[tuple[str, int]]) -> Newest:
        """Of these runs, each (job, generation); checkpoints of their jobs, whichever generation wrote them."""
        keys = sorted(set(runs))
        jobs = sorted({job for job, _ in keys})
        with reading(self._engine) as connection:
            return Newest(
                ends=self._ends(connection, keys),
                checkpoints=self._checkpoints(connection, jobs),
                notices=self._notices(connection, keys),
            )

    def _ends(self, connection: Connection, keys: Sequence[Key]) -> dict[Key, Ends]:
        found = self._look(connection, _ENDS, keys)
        ids = [n for _, *both in found for n in both if n is not None]
        told = {row["id"]: progress_from(row) for row in _rows(connection, tables.progress, ids)}
        return {key: Ends(first=told[a], last=told[b]) for key, a, b in found if a is not None}

    def _checkpoints(self, connection: Connection, jobs: Sequence[str]) -> dict[str, Checkpoint]:
        found = self._look(connection, _BEST, [(job, 0) for job in jobs])
        ids = [n for _, n in found if n is not None]
        names = ("job", "generation", "step", "uri", "digest", "mac", "bytes", "at", "source")
        made = [Checkpoint(**{n: row[n] for n in names}) for row in _rows(connection, tables.checkpoint, ids)]
        return {one.job: one for one in made}

    def _notices(self, connection: Connection, keys: Sequence[Key]) -> dict[Key, Event]:
        c = tables.event.c
        wanted = set(keys)
        out: dict[Key, Event] = {}
        jobs = sorted({job for job, _ in keys})
        for at in range(0, len(jobs), CHUNK):
            mine = (c.project == self._project, c.job.in_(jobs[at : at + CHUNK]), c.kind == "notice")
            for row in connection.execute(select(tables.event).where(*mine).order_by(c.id)).mappings():
                event = rows.event_from(dict(row))
                if (key := (event.job, event.generation or 0)) in wanted:
                    out[key] = event
        return out

    def _look(self, connection: Connection, columns: str, keys: Sequence[Key]) -> list[tuple[Any, ...]]:
        """Each key with the values of `columns`, in which {job} and {generation} stand for the key's."""
        if not keys:
            return []
        if connection.dialect.name == "postgresql":
            job, generation = "(wanted.value ->> 0)", "CAST(wanted.value ->> 1 AS integer)"
            source = "json_array_elements(CAST(:keys AS json)) AS wanted"
        else:
            job, generation = "json_extract(wanted.value, '$[0]')", "json_extract(wanted.value, '$[1]')"
            source = "json_each(:keys) AS wanted"
        filled = columns.format(job=job, generation=generation)
        query = text(f"SELECT {job}, {generation}, {filled} FROM {source}")  # noqa: S608 - our own words
        found = connection.execute(query, {"project": self._project, "keys": json.dumps(keys)})
        return [((row[0], row[1]), *row[2:]) for row in found]


def _rows(connection: Connection, table: Table, ids: Sequence[int]) -> list[Mapping[Any, Any]]:
    out: list[Mapping[Any, Any]] = []
    for at in range(0, len(ids), CHUNK):
        query = select(table).where(table.c.id.in_(ids[at : at + CHUNK]))
        out += connection.execute(query).mappings().all()
    return out
