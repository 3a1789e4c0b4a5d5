"""What nodes told, read back: progress, checkpoints, logs, events, credential issues.  Reads only."""

from __future__ import annotations

import json

from sqlalchemy import Connection, func, select

from planner.model.record import Event
from planner.model.runtime import Checkpoint, CredentialIssue, LogChunk, NodeSeen, Progress, Seat
from planner.state import rows, tables
from planner.state.bulk import CHUNK
from planner.state.guards import Row


def progress(
    connection: Connection, project: str, job: str, *, generation: int | None, rank: int | None, limit: int
) -> tuple[Progress, ...]:
    """Steps of one rank (each generation's first that told any, if none is given), oldest first; thinned evenly, the newest always among them."""
    c = tables.progress.c
    mine = [c.project == project, c.job == job, *([c.generation == generation] if generation is not None else [])]
    first = select(c.generation, func.min(c.rank)).where(*mine)
    if rank is not None:
        first = first.where(c.rank == rank)
    out: list[Progress] = []
    groups = connection.execute(first.group_by(c.generation).order_by(c.generation)).all()
    share = max(1, limit // max(1, len(groups)))
    for number, lowest in groups:
        wanted = [c.project == project, c.job == job, c.generation == number, c.rank == lowest]
        # numbers alone come out of the index; rows are read of those that are shown
        numbers = connection.execute(select(c.id).where(*wanted).order_by(c.id.desc())).scalars().all()
        shown = numbers[:: max(1, -(-len(numbers) // share))][::-1]
        for start in range(0, len(shown), CHUNK):
            query = select(tables.progress).where(c.id.in_(shown[start : start + CHUNK])).order_by(c.id)
            out += [progress_from(row) for row in connection.execute(query).mappings()]
    return tuple(out)


def newest(connection: Connection, project: str, job: str) -> Progress | None:
    """The newest generation's newest step, of its lowest rank."""
    found = recent(connection, project, job, generation=None, limit=1)
    return found[-1] if found else None


def recent(
    connection: Connection, project: str, job: str, *, generation: int | None, limit: int
) -> tuple[Progress, ...]:
    """The newest steps of a generation (default: of the newest that told any), of its lowest rank, oldest first.  By the index, however many there are."""
    c = tables.progress.c
    mine = [c.project == project, c.job == job]
    # one end of the index at a time: both at once would sort all of a job's steps
    number = generation or connection.execute(select(func.max(c.generation)).where(*mine)).scalar()
    lowest = connection.execute(select(func.min(c.rank)).where(*mine, c.generation == number)).scalar()
    if number is None or lowest is None:
        return ()
    query = select(tables.progress).where(*mine, c.generation == number, c.rank == lowest)
    newest_first = connection.execute(query.order_by(c.id.desc()).limit(limit)).mappings().all()
    return tuple(map(progress_from, reversed(newest_first)))


def checkpoints(connection: Connection, project: str, job: str, *, limit: int) -> tuple[Checkpoint, ...]:
    """The newest, in the order in which the record learnt of them."""
    query = select(tables.checkpoint).filter_by(project=project, job=job)
    found = connection.execute(query.order_by(tables.checkpoint.c.id.desc()).limit(limit)).mappings().all()
    names = ("job", "generation", "step", "uri", "digest", "mac", "bytes", "at", "source")
    return tuple(Checkpoint(**{name: row[name] for name in names}) for row in reversed(found))


def seen(connection: Connection, project: str, job: str, generation: int) -> tuple[NodeSeen, ...]:
    """When each rank was last heard of, by rank."""
    mine = {"project": project, "job": job, "generation": generation}
    query = select(tables.seat.c.rank, tables.seat.c.instance_id).filter_by(**mine)
    machines = {row.rank: row.instance_id for row in connection.execute(query)}
    found = connection.execute(select(tables.seen).filter_by(**mine).order_by(tables.seen.c.rank)).mappings()
    return tuple(
        NodeSeen(
            seat=seat_of(row),
            at=row["at"],
            instance_id=machines.get(row["rank"], ""),
            gpu_memory_mib=row["gpu_memory_mib"],
            gpu_utilization_percent=row["gpu_utilization_percent"],
            exit_code=row["exit_code"],
        )
        for row in found
    )


def logs(
    connection: Connection, project: str, job: str, generation: int, *, rank: int | None, after: int, limit: int
) -> tuple[LogChunk, ...]:
    """Chunks after one; the newest `limit` where `after` is 0."""
    c = tables.log.c
    query = select(tables.log).filter_by(project=project, job=job, generation=generation)
    if rank is not None:
        query = query.where(c.rank == rank)
    if after:
        found = connection.execute(query.where(c.id > after).order_by(c.id).limit(limit)).mappings().all()
    else:
        found = [*reversed(connection.execute(query.order_by(c.id.desc()).limit(limit)).mappings().all())]
    return tuple(LogChunk(id=row["id"], seat=seat_of(row), at=row["at"], text=row["text"]) for row in found)


def events(connection: Connection, project: str, job: str, *, after: int, limit: int) -> tuple[tuple[int, Event], ...]:
    """Events after one, oldest first; the newest `limit` where `after` is 0."""
    c = tables.event.c
    query = select(tables.event).filter_by(project=project, job=job)
    if after:
        found = connection.execute(query.where(c.id > after).order_by(c.id).limit(limit)).mappings().all()
    else:
        found = [*reversed(connection.execute(query.order_by(c.id.desc()).limit(limit)).mappings().all())]
    return tuple((row["id"], rows.event_from(dict(row))) for row in found)


def issues(connection: Connection, project: str, job: str | None, limit: int) -> tuple[CredentialIssue, ...]:
    """Leases given out, newest first."""
    query = select(tables.credential).filter_by(project=project)
    if job is not None:
        query = query.filter_by(job=job)
    names = ("store", "uri", "access", "identity", "issued_at", "expires_at")
    found = connection.execute(query.order_by(tables.credential.c.id.desc()).limit(limit)).mappings()
    return tuple(
        CredentialIssue(id=row["lease"], seat=seat_of(row), **{name: row[name] for name in names}) for row in found
    )


def seat_of(row: Row) -> Seat:
    """A row's seat."""
    return Seat(job=row["job"], generation=row["generation"], rank=row["rank"])


def progress_from(row: Row) -> Progress:
    """A `progress` row."""
    plain = {name: row[name] for name in ("step", "at", "loss", "rate")}
    return Progress(seat=seat_of(row), metrics=json.loads(row["metrics"]), **plain)
