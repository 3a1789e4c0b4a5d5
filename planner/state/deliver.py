"""Takes reports: many of them in one transaction, each item exactly once.

Decides by `delivery` what is new: an item counts if its number is beyond how far its stream was taken, and that moves in the same transaction.
A report that is refused takes nothing and leaves the others alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from planner.model.record import RunStatus
from planner.model.runtime import Delivered, Kind, Refusal, Refused, Report, Seat
from planner.state import tables
from planner.state.bulk import IGNORE, Put, of_dicts, put
from planner.state.guards import RunKey, refusal
from planner.state.known import Known, SeatKey, Stream, known
from planner.state.reports import PROGRESS, Reader, Rows, Values, shape_problem
from planner.state.seats import manifest_key

LOG_KEPT = 1024 * 1024
"""Characters of log kept per rank."""
LOG_SLACK = 64 * 1024
"""Old chunks are looked for each time that this much came."""
#: statuses that a job's own end moves on; `lost` too: a node that comes back and says that it ended is no longer lost
_ENDS_FROM = (RunStatus.STARTING, RunStatus.RUNNING, RunStatus.DEGRADED, RunStatus.LOST)
_MOVE = (
    "ON CONFLICT (project, job, generation, rank, stream) DO UPDATE SET through = excluded.through, at = excluded.at"
)
#: what a report does not say stays as it was
_HEAR = """ON CONFLICT (project, job, generation, rank) DO UPDATE SET at = excluded.at, logged = seen.logged + excluded.logged,
gpu_memory_mib = coalesce(excluded.gpu_memory_mib, seen.gpu_memory_mib), exit_code = coalesce(excluded.exit_code, seen.exit_code),
gpu_utilization_percent = coalesce(excluded.gpu_utilization_percent, seen.gpu_utilization_percent)"""

_DELIVERY = ("project", "job", "generation", "rank", "stream", "through", "at")
_SAID = {"gpu_memory_mib": None, "gpu_utilization_percent": None, "exit_code": None, "logged": 0}
_SEEN = ("project", "job", "generation", "rank", "at", *_SAID)
_SILENT = tuple(_SAID.values())


@dataclass(slots=True)
class _Batch:
    """One transaction's work."""

    connection: Connection
    project: str
    at: str
    known: Known
    reader: Reader
    moved: set[Stream] = field(default_factory=set[Stream])
    rows: Rows = field(default_factory=Rows)
    heard: set[SeatKey] = field(default_factory=set[SeatKey])


def deliver(connection: Connection, project: str, reports: Sequence[Report], at: datetime) -> tuple[Delivered, ...]:
    """What became of each report, in order."""
    refused: list[Refused | None] = [shape_problem(report) for report in reports]
    keys: list[RunKey] = []
    streams: list[Stream] = []
    for report in reports:
        seat = report.seat
        keys.append((seat.job, seat.generation))
        streams.append((seat.job, seat.generation, seat.rank, report.stream))
    told = known(
        connection,
        project,
        sorted(set(keys)),
        sorted({stream for stream, no in zip(streams, refused, strict=True) if no is None}),
        alone=any(item.kind is Kind.EXIT for report in reports for item in report.items),
    )
    for k, report in enumerate(reports):
        refused[k] = refused[k] or refusal(told.runs.get(keys[k]), report.seat) or _displaced(told, report, streams[k])
    reader = Reader(project=project, at=at, key=_Keys(connection, project))
    batch = _Batch(connection, project, reader.arrived, told, reader)
    _begin(batch, {stream for stream, no in zip(streams, refused, strict=True) if no is None})
    for k, report in enumerate(reports):
        if refused[k] is None:
            refused[k] = _take(batch, report, streams[k])
    _write(batch)
    return tuple(
        [
            Delivered(refused=no)
            if no
            else Delivered(through=told.through[stream], requests=told.requests.get(key, ()))
            for stream, key, no in zip(streams, keys, refused, strict=True)
        ]
    )


def _displaced(told: Known, report: Report, stream: Stream) -> Refused | None:
    """Why whoever sends it may not: a session is remembered for a while by a server that did not hear who took its seat."""
    if report.holder is None or told.holders.get(stream) == report.holder:
        return None
    return Refused(Refusal.UNKNOWN, "another machine has taken the seat")


class _Keys:
    """Generations' keys, each read once."""

    def __init__(self, connection: Connection, project: str) -> None:
        self._read = partial(manifest_key, connection, project)
        self._known: dict[RunKey, bytes] = {}

    def __call__(self, job: str, generation: int) -> bytes:
        key = self._known.get((job, generation))
        if key is None:
            key = self._known[job, generation] = self._read(job, generation)
        return key


def _begin(batch: _Batch, streams: set[Stream]) -> None:
    """A new stream gets its row first, so that it too can be locked."""
    through = batch.known.through
    fresh = sorted(streams - through.keys())
    if fresh:
        rows = [(batch.project, *stream, 0, batch.at) for stream in fresh]
        put(batch.connection, Put(table=tables.delivery, names=_DELIVERY, rows=rows, on_conflict=IGNORE))
        through |= known(batch.connection, batch.project, (), fresh, alone=False).through


def _take(batch: _Batch, report: Report, stream: Stream) -> Refused | None:
    through, rows = batch.known.through[stream], batch.rows
    new = [item for item in report.items if item.seq > through]
    try:
        # nearly all that comes
        if all(item.kind is Kind.PROGRESS for item in new):
            rows.progress += batch.reader.progress(report.seat, new)
        else:
            mine = Rows()
            batch.reader.read(report.seat, new, mine)
            _add(rows, mine)
    except Refused as error:
        return error
    batch.heard.add(stream[:3])
    batch.moved.add(stream)
    if new:
        batch.known.through[stream] = new[-1].seq
    return None


def _add(rows: Rows, mine: Rows) -> None:
    rows.progress += mine.progress
    rows.checkpoint += mine.checkpoint
    rows.event += mine.event
    rows.log += mine.log
    rows.exited |= mine.exited
    for seat, values in mine.seen.items():
        rows.seen.setdefault(seat, {}).update(values)


def _write(batch: _Batch) -> None:
    connection, rows, project, at = batch.connection, batch.rows, batch.project, batch.at
    if rows.log:
        _log(batch)
    through = batch.known.through
    moved = [(project, *stream, through[stream], at) for stream in sorted(batch.moved)]
    # the same checkpoint told twice, by two streams, is one
    checkpoints = sorted(rows.checkpoint, key=lambda r: (r["job"], r["uri"]))
    put(
        connection,
        Put(table=tables.delivery, names=_DELIVERY, rows=moved, on_conflict=_MOVE),
        Put(table=tables.seen, names=_SEEN, rows=_seen(batch), on_conflict=_HEAR),
        Put(table=tables.progress, names=PROGRESS, rows=rows.progress),
        of_dicts(tables.checkpoint, checkpoints, IGNORE),
        of_dicts(tables.event, rows.event),
    )
    for key in sorted({(seat.job, seat.generation) for seat in rows.exited}):
        _exited(batch, key)


def _seen(batch: _Batch) -> list[tuple[Any, ...]]:
    project, at = batch.project, batch.at
    said = {(s.job, s.generation, s.rank): tuple((_SAID | values).values()) for s, values in batch.rows.seen.items()}
    return [(project, *seat, at, *said.get(seat, _SILENT)) for seat in sorted(batch.heard)]


def _log(batch: _Batch) -> None:
    """Insert chunks, each with where it ends in all that its rank ever logged, and forget what is too old."""
    connection, c = batch.connection, tables.seen.c
    by_seat: dict[tuple[str, int, int], list[Values]] = {}
    for row in batch.rows.log:
        by_seat.setdefault((row["job"], row["generation"], row["rank"]), []).append(row)
    for (job, generation, rank), chunks in by_seat.items():
        key = {"project": batch.project, "job": job, "generation": generation, "rank": rank}
        start = connection.execute(select(c.logged).filter_by(**key)).scalar() or 0
        end = start
        for chunk in chunks:
            end += len(chunk["text"])
            chunk["ends"] = end
        seat = Seat(job=job, generation=generation, rank=rank)
        batch.rows.seen.setdefault(seat, {})["logged"] = end - start
        if end // LOG_SLACK > start // LOG_SLACK and end > LOG_KEPT:
            old = tables.log.c.ends <= end - LOG_KEPT
            connection.execute(delete(tables.log).filter_by(**key).where(old))
    put(connection, of_dicts(tables.log, batch.rows.log))


def _exited(batch: _Batch, key: RunKey) -> None:
    """Where every rank's job has ended, well or not, the run has: nobody starts it again there."""
    job, generation = key
    run = batch.known.runs[key]
    mine = {"project": batch.project, "job": job, "generation": generation}
    code = tables.seen.c.exit_code
    query = select(func.count(code), func.count(code).filter(code != 0), func.max(func.abs(code))).filter_by(**mine)
    ended, failed, worst = batch.connection.execute(query).one()
    if run["status"] not in _ENDS_FROM or ended < run["nodes"]:
        return
    values: dict[str, Any] = {"status": RunStatus.EXITED, "version": tables.run.c.version + 1}
    batch.connection.execute(update(tables.run).filter_by(**mine).values(**values))
    text = f"the job ended on {run['nodes']} node(s)"
    if failed:
        text += f", on {failed} with an error: code {worst} (SKY-RUN-522)"
    batch.connection.execute(insert(tables.event).values(**mine, at=batch.at, kind="exited", text=text))
