"""A job's moves as rows: decided, taken on by compare-and-swap, given up while the old nodes still compute; and which generations must hold meanwhile.

Decides when a new generation may begin its cut, which fences the older ones: not before the move that launched it is `saved`.  Everything here is part of a
transaction of its caller, who holds the job's lease (`planner.state.writer`) or the job's runs (`planner.state.cuts`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select, update

from planner.model.diagnostic import Diagnostic
from planner.model.errors import StateConflict
from planner.model.migration import CLOSED, MigrationStatus
from planner.model.record import RunStatus
from planner.state import tables
from planner.state.history import Move

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from planner.model.runtime import Seat

HOLDS = (MigrationStatus.PROPOSED, MigrationStatus.LAUNCHED)
"""Until the checkpoint that was asked for is durable, the old nodes compute on and must not be fenced."""
GIVEN_UP = (*HOLDS, MigrationStatus.SAVED)
"""Where there may be a way back.  A job without checkpoints makes no cut: its new nodes compute as soon as they are there."""
OVER = (RunStatus.EXITED, RunStatus.ENDED)
NOTICE, STOPPING, EXIT, EXITED = "notice", "node-stopping", "exit", "exited"
BY_SIGNAL = "the agent got SIG"
"""As the agent words it when its machine is shut down (modules/agent/run.py)."""


def read(connection: Connection, project: str, job: str) -> tuple[Move, ...]:
    """A job's moves, oldest first."""
    query = select(tables.migration).filter_by(project=project, job=job).order_by(tables.migration.c.id)
    return tuple(map(move_from, connection.execute(query).mappings()))


def hold(connection: Connection, project: str, seat: Seat) -> str:
    """Why a generation may not begin its cut yet; "" where it may.  Every generation newer than the one that a move leaves is that move's."""
    for move in read(connection, project, seat.job):
        if move.status in CLOSED or seat.generation <= move.from_generation:
            continue
        if move.status in HOLDS:
            return f"move {move.id} is {move.status}: generation {move.from_generation} computes on until its checkpoint is durable"
        if _finished(connection, project, seat.job, move.from_generation):
            return f"move {move.id} is over: the job has ended on generation {move.from_generation}"
    return ""


def taken(told: Iterable[tuple[str, str]]) -> bool:
    """By (kind, text) of what the nodes of a run that ended told: whether the cloud took them, so that it was not the job's own end.

    A job that the agent stops at its machine's end exits like any other, with a code of its own making.
    """
    events = list(told)
    if not any(kind == NOTICE for kind, _ in events):
        return False
    stops = [text for kind, text in events if kind == STOPPING]
    return any(BY_SIGNAL in text for text in stops) if stops else any(kind == EXIT for kind, _ in events)


def own_end(told: Iterable[tuple[str, str]]) -> bool:
    """By the same, of a run that is over: whether it is because its job exited, and not for the cloud's sake."""
    events = list(told)
    return any(kind == EXITED for kind, _ in events) and not taken(events)


def _finished(connection: Connection, project: str, job: str, generation: int) -> bool:
    """Whether the job came to its end on a generation that nobody has fenced: on no other may it begin again."""
    mine = {"project": project, "job": job, "generation": generation}
    run = connection.execute(select(tables.run.c.status, tables.run.c.fenced_at).filter_by(**mine)).one()
    if run.fenced_at is not None or run.status not in OVER:
        return False
    c = tables.event.c
    told = connection.execute(
        select(c.kind, c.text).filter_by(**mine).where(c.kind.in_((NOTICE, STOPPING, EXIT, EXITED)))
    )
    return own_end((row.kind, row.text) for row in told)


def decide(
    connection: Connection,
    project: str,
    job: str,
    *,
    from_generation: int,
    reason: str,
    document: Mapping[str, Any],
    at: str,
) -> Move:
    """Note a move before its first act.  Raises StateConflict (SKY-MOVE-419) where one is open."""
    for other in read(connection, project, job):
        if other.status not in CLOSED:
            raise StateConflict([under_way(other)])
    values: dict[str, Any] = {
        "project": project,
        "job": job,
        "from_generation": from_generation,
        "to_generation": None,
        "reason": reason,
        "status": MigrationStatus.PROPOSED.value,
        "document": json.dumps(dict(document), sort_keys=True),
        "at": at,
        "version": 1,
    }
    row = connection.execute(insert(tables.migration).values(**values).returning(tables.migration)).mappings()
    return move_from(row.one())


def go_on(connection: Connection, project: str, move: Move, at: str, **changes: Any) -> Move:
    """The move with `status`, `to_generation` or `document` changed.  Raises StateConflict where it was taken on meanwhile."""
    c = tables.migration.c
    if "document" in changes:
        changes["document"] = json.dumps(dict(changes["document"]), sort_keys=True)
    query = update(tables.migration).where(c.project == project, c.id == move.id, c.version == move.version)
    values = {**changes, "at": at, "version": move.version + 1}
    row = connection.execute(query.values(**values).returning(tables.migration)).mappings().first()
    if row is None:
        summary = f"move {move.id} of `{move.job}` was taken on by another process"
        raise StateConflict([Diagnostic(code="SKY-APPLY-320", summary=summary)])
    return move_from(row)


def give_up(connection: Connection, project: str, move: Move, at: str) -> Move | None:
    """Reverted, and the new run `failed`, so that its nodes can never begin their cut; None where they have, or never have to: there is no way back then.

    It locks the job's runs in the order of `cuts.begin`: whichever comes first decides.
    """
    if move.status not in GIVEN_UP:
        return None
    c = tables.run.c
    mine = (c.project == project, c.job == move.job)
    query = select(c.generation, c.fenced_at, c.cut).where(*mine).order_by(c.generation).with_for_update()
    runs = {row.generation: row for row in connection.execute(query)}
    new = runs.get(move.to_generation or 0)
    if runs[move.from_generation].fenced_at is not None or (new is not None and new.cut is not None):
        return None
    reverted = go_on(connection, project, move, at, status=MigrationStatus.REVERTED.value)
    for generation in runs:
        if generation > move.from_generation:
            query_of = update(tables.run).where(*mine, c.generation == generation, c.status != RunStatus.FAILED)
            changed = {"status": RunStatus.FAILED, "ended_at": at, "version": c.version + 1}
            connection.execute(query_of.values(changed))
    return reverted


def under_way(move: Move) -> Diagnostic:
    """What everybody else is told while a move is open."""
    summary = f"move {move.id} of `{move.job}` is {move.status}"
    return Diagnostic(
        code="SKY-MOVE-419",
        summary=summary,
        hint=f"`skyplan migrate --job {move.job}` goes on with it; --revert gives it up while that can be",
    )


def move_from(row: Mapping[Any, Any]) -> Move:
    """A `migration` row."""
    names = ("id", "job", "from_generation", "to_generation", "reason", "status", "at", "version")
    return Move(document=json.loads(row["document"]), **{name: row[name] for name in names})
