"""Takes reports: many of them in one transaction, each item exactly once.

Decides by `delivery` what is new: an item counts if its number is beyond how far its stream was taken, and that moves in the same transaction.
A report that is refused takes nothing and leaves the others alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, cast

from sqlalchemy import Connection, delete, func, insert, select, update

from planner.model.record import RunStatus, stamp
from planner.model.runtime import Delivered, Item, Kind, NodeRequest, Refused, Report, Seat
from planner.state import tables
from planner.state.bulk import IGNORE, find, look, put
from planner.state.guards import Row, RunKey, refusal, runs
from planner.state.reports import Reader, Rows, Values, shape_problem
from planner.state.seats import manifest_key

LOG_KEPT = 1024 * 1024
"""Characters of log kept per rank."""
LOG_SLACK = 64 * 1024
"""Old chunks are looked for each time that this much came."""
REQUESTS = 16
"""The newest that a node is told: it has seen what is older."""
#: statuses that a job's own end moves on; `lost` too: a node that comes back and says that it ended is no longer lost
_ENDS_FROM = (RunStatus.STARTING, RunStatus.RUNNING, RunStatus.DEGRADED, RunStatus.LOST)
_MOVE = (
    "ON CONFLICT (project, job, generation, rank, stream) DO UPDATE SET through = excluded.through, at = excluded.at"
)
#: what a report does not say stays as it was
_HEAR = """ON CONFLICT (project, job, generation, rank) DO UPDATE SET at = excluded.at, logged = seen.logged + excluded.logged,
gpu_memory_mib = coalesce(excluded.gpu_memory_mib, seen.gpu_memory_mib), exit_code = coalesce(excluded.exit_code, seen.exit_code),
gpu_utilization_percent = coalesce(excluded.gpu_utilization_percent, seen.gpu_utilization_percent)"""

Stream = tuple[str, int, int, str]


@dataclass(slots=True)
class _Batch:
    """One transaction's work."""

    connection: Connection
    project: str
    at: str
    runs: dict[RunKey, Row]
    through: dict[Stream, int] = field(default_factory=dict[Stream, int])
    moved: set[Stream] = field(default_factory=set[Stream])
    rows: Rows = field(default_factory=Rows)
    heard: set[Seat] = field(default_factory=set[Seat])


def deliver(connection: Connection, project: str, reports: Sequence[Report], at: datetime) -> tuple[Delivered, ...]:
    """What became of each report, in order."""
    refused: list[Refused | None] = [shape_problem(report) for report in reports]
    ending = any(item.kind is Kind.EXIT for report in reports for item in report.items)
    keys = [(r.seat.job, r.seat.generation) for r in reports]
    batch = _Batch(connection, project, stamp(at), runs(connection, project, keys, alone=ending))
    for k, report in enumerate(reports):
        refused[k] = refused[k] or refusal(batch.runs.get(keys[k]), report.seat)
    _streams(batch, [report for report, no in zip(reports, refused, strict=True) if no is None])
    reader = Reader(project=project, at=at, key=_Keys(connection, project))
    for k, report in enumerate(reports):
        refused[k] = refused[k] or _take(batch, report, reader)
    _write(batch)
    requests = _requests(connection, project, {key for key, no in zip(keys, refused, strict=True) if no is None})
    return tuple(
        Delivered(refused=no)
        if no
        else Delivered(through=batch.through[_stream(report)], requests=requests.get(key, ()))
        for report, key, no in zip(reports, keys, refused, strict=True)
    )


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


def _stream(report: Report) -> Stream:
    return (report.seat.job, report.seat.generation, report.seat.rank, report.stream)


def _take(batch: _Batch, report: Report, reader: Reader) -> Refused | None:
    stream = _stream(report)
    through = batch.through[stream]
    new: list[Item] = [item for item in report.items if item.seq > through]
    mine = Rows()
    try:
        reader.read(report.seat, new, mine)
    except Refused as error:
        return error
    rows = batch.rows
    rows.progress += mine.progress
    rows.checkpoint += mine.checkpoint
    rows.event += mine.event
    rows.log += mine.log
    rows.exited |= mine.exited
    for seat, values in mine.seen.items():
        rows.seen.setdefault(seat, {}).update(values)
    batch.heard.add(report.seat)
    batch.moved.add(stream)
    if new:
        batch.through[stream] = new[-1].seq
    return None


def _streams(batch: _Batch, reports: Sequence[Report]) -> None:
    """How far each stream was taken, locked.  A new stream gets its row first, so that it too can be locked."""
    wanted = sorted({_stream(report) for report in reports})
    batch.through |= _through(batch, wanted)
    fresh = [stream for stream in wanted if stream not in batch.through]
    if fresh:
        values = [{"project": batch.project, **_of(stream), "through": 0, "at": batch.at} for stream in fresh]
        put(batch.connection, tables.delivery, values, IGNORE)
        batch.through |= _through(batch, fresh)


def _through(batch: _Batch, wanted: Sequence[Stream]) -> dict[Stream, int]:
    names = ("job", "generation", "rank", "stream")
    found = look(batch.connection, tables.delivery, batch.project, names, wanted, column="through", lock="UPDATE")
    return cast("dict[Stream, int]", found)


def _of(stream: Stream) -> Values:
    job, generation, rank, name = stream
    return {"job": job, "generation": generation, "rank": rank, "stream": name}


def _write(batch: _Batch) -> None:
    connection, rows = batch.connection, batch.rows
    moved = [
        {"project": batch.project, **_of(stream), "through": batch.through[stream], "at": batch.at}
        for stream in sorted(batch.moved)
    ]
    put(connection, tables.delivery, moved, _MOVE)
    if rows.log:
        _log(batch)
    _seen(batch)
    put(connection, tables.progress, rows.progress)
    # the same checkpoint told twice, by two streams, is one
    put(connection, tables.checkpoint, sorted(rows.checkpoint, key=lambda r: (r["job"], r["uri"])), IGNORE)
    put(connection, tables.event, rows.event)
    for key in sorted({(seat.job, seat.generation) for seat in rows.exited}):
        _exited(batch, key)


def _seen(batch: _Batch) -> None:
    if not batch.heard:
        return
    blank: Values = {"gpu_memory_mib": None, "gpu_utilization_percent": None, "exit_code": None, "logged": 0}
    told = batch.rows.seen
    values = [
        {"project": batch.project, "job": s.job, "generation": s.generation, "rank": s.rank, "at": batch.at, **blank}
        | told.get(s, {})
        for s in sorted(batch.heard)
    ]
    put(batch.connection, tables.seen, values, _HEAR)


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
    put(connection, tables.log, batch.rows.log)


def _exited(batch: _Batch, key: RunKey) -> None:
    """Where every rank's job has ended, well or not, the run has: nobody starts it again there."""
    job, generation = key
    run = batch.runs[key]
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


def _requests(connection: Connection, project: str, keys: set[RunKey]) -> dict[RunKey, tuple[NodeRequest, ...]]:
    found: dict[RunKey, tuple[NodeRequest, ...]] = {}
    rows = find(connection, tables.request, project, ("job", "generation"), sorted(keys))
    for row in sorted(rows, key=lambda r: r["id"]):
        key = (row["job"], row["generation"])
        found[key] = (*found.get(key, ()), request_from(row))[-REQUESTS:]
    return found


def requests(connection: Connection, project: str, seat: Seat) -> tuple[NodeRequest, ...]:
    """What the seat's generation is asked to do, oldest first."""
    key = (seat.job, seat.generation)
    return _requests(connection, project, {key}).get(key, ())


def request_from(row: Any) -> NodeRequest:
    """A `request` row."""
    return NodeRequest(id=row["id"], word=row["word"], reason=row["reason"], deadline=row["deadline"], at=row["at"])
