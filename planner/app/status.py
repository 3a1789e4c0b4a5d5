"""What runs, as the record has it.  Asks no cloud: `sync` does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planner.model.migration import DOING, MigrationStatus
from planner.model.record import HOLDING, Attempt, Node, NodeStatus, Run, RunStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.state.history import Move
    from planner.state.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """One job: its newest run that matters, its nodes, how many launches it took, what is unfinished, and its move while one is under way."""

    job: str
    run: Run | None
    nodes: tuple[Node, ...]
    attempts: tuple[Attempt, ...]
    first_applied_at: str
    move: Move | None = None

    @property
    def alive(self) -> int:
        """Nodes running."""
        return sum(n.status is NodeStatus.RUNNING for n in self.nodes)

    @property
    def lost(self) -> int:
        """Nodes lost."""
        return sum(n.status is NodeStatus.LOST for n in self.nodes)

    @property
    def unfinished(self) -> bool:
        """Whether an apply or destroy is at work, or died."""
        return any(a.outcome is None for a in self.attempts)


def status(record: Record, jobs: Sequence[str] = ()) -> tuple[JobStatus, ...]:
    """The named jobs, or all."""
    runs, attempts, moves = record.runs(), record.attempts(), record.open_moves()
    out: list[JobStatus] = []
    for job in record.jobs():
        if jobs and job.name not in jobs:
            continue
        run = shown([r for r in runs if r.job == job.name])
        out.append(
            JobStatus(
                job=job.name,
                run=run,
                nodes=record.nodes(job.name, run.generation) if run else (),
                attempts=tuple(a for a in attempts if a.job == job.name),
                first_applied_at=job.first_applied_at,
                move=moves.get(job.name),
            )
        )
    return tuple(out)


def shown(runs: Sequence[Run]) -> Run | None:
    """The one that holds capacity, else the newest.  Of two that a move has side by side: the older one, until it is fenced."""
    holding = [r for r in runs if r.status in HOLDING or r.status is RunStatus.LOST]
    computing = [r for r in holding if r.status in {RunStatus.RUNNING, RunStatus.DEGRADED} and not r.fenced_at]
    if len(holding) > 1 and computing and holding[-1].cut is None:
        return computing[0]
    return holding[-1] if holding else (runs[-1] if runs else None)


def document(status: JobStatus) -> dict[str, Any]:
    """JSON-ready."""
    launches = [a for a in status.attempts if a.generation is not None and a.action == "apply"]
    return {
        "job": status.job,
        "first_applied_at": status.first_applied_at,
        "unfinished": status.unfinished,
        "move": move_document(status.move) if status.move else None,
        "run": run_document(status.run, status.nodes) if status.run else None,
        "attempts": [attempt_document(a) for a in launches],
    }


def move_document(move: Move) -> dict[str, Any]:
    """A move, JSON-ready, less its diff and plan."""
    plain = ("id", "reason", "status", "from_generation", "to_generation", "at")
    asked = move.document.get("asked", {})
    return {
        **{name: getattr(move, name) for name in plain},
        "doing": DOING[MigrationStatus(move.status)],
        "asked_at_step": asked.get("step"),
        "saved_step": move.document.get("saved"),
    }


def move_line(move: Move) -> str:
    """A move in a line."""
    to = f" to {move.job}-g{move.to_generation}" if move.to_generation else ""
    way = f"move {move.id} ({move.reason}) from {move.job}-g{move.from_generation}{to}"
    since = f"since {move.at[:19]}Z; `skyplan migrate --job {move.job}` goes on if nobody does"
    return f"{move.job}: {way}: {move.status}: {DOING[MigrationStatus(move.status)]}, {since}"


def run_document(run: Run, nodes: Sequence[Node]) -> dict[str, Any]:
    """A run and its nodes, JSON-ready."""
    plain = (
        "generation",
        "plan_digest",
        "rank",
        "placement_id",
        "offer_id",
        "cloud",
        "target",
        "region",
        "zone",
        "pool",
    )
    return {
        **{name: getattr(run, name) for name in (*plain, "instance_type", "capacity", "started_at", "ended_at")},
        "id": run.id,
        "status": run.status.value,
        "usd_per_hour": f"{run.usd_per_hour:.4f}",
        "nodes_wanted": run.nodes,
        "nodes": [_node_document(run, n) for n in nodes],
    }


def _node_document(run: Run, n: Node) -> dict[str, Any]:
    place = run.part_of(n.rank)
    return {
        "rank": n.rank,
        "instance_id": n.instance_id,
        "address": n.address,
        "status": n.status.value,
        "at": n.at,
        **{name: getattr(place, name) for name in ("cloud", "target", "region", "zone", "instance_type")},
    }


def attempt_document(a: Attempt) -> dict[str, Any]:
    """A launch attempt, JSON-ready, less the provider's own words."""
    return {
        "stack": a.stack,
        "generation": a.generation,
        "at": a.at,
        "outcome": a.outcome.value if a.outcome else None,
        "kind": a.kind,
        "code": a.code,
        "scope": a.scope,
    }
