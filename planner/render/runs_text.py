"""Runs and their nodes for people.  Decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.record import NodeStatus, Outcome, RunStatus
from planner.render.text import columns, usd

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.record import Attempt, Node, Run, RunPart
    from planner.render.text import Paint

STYLES = {
    RunStatus.RUNNING: "green",
    RunStatus.STARTING: "cyan",
    RunStatus.DEGRADED: "yellow",
    RunStatus.LOST: "red",
    RunStatus.FAILED: "red",
    RunStatus.ENDED: "dim",
}


def run_lines(run: Run, nodes: Sequence[Node], paint: Paint) -> list[str]:
    """A run, then a line per node; of a job in several clouds each with its place."""
    head = f"{paint(run.id, 'bold')}  {paint(run.status.value, STYLES[run.status])}"
    where = "  +  ".join(
        f"{part.nodes} x {_what(part)}  {' '.join(filter(None, (f'{part.cloud}:{part.target}', part.region, part.zone)))}"
        for part in run.parts
    )
    out = [f"{head}  {where}  {usd(run.usd_per_hour)}/h  rank {run.rank}  {run.placement_id}"]
    split = len(run.parts) > 1
    rows = [
        (
            f"r{n.rank:02d}",
            *([_region(run.part_of(n.rank))] if split else []),
            n.instance_id,
            n.address or "-",
            n.status.value,
            n.at[:19] + "Z",
        )
        for n in nodes
    ]
    return out + columns(rows, indent="    ")


def _what(part: RunPart) -> str:
    return f"{part.instance_type} {part.capacity.replace('_', '-')}"


def _region(part: RunPart) -> str:
    return f"{part.cloud} {part.region}"


def _where(part: RunPart) -> str:
    return f"{part.cloud} {part.zone or part.region}"


def status_lines(rows: Sequence[tuple[str, Run | None, Sequence[Node], Sequence[Attempt]]], paint: Paint) -> list[str]:
    """A table of jobs: (name, run, nodes, attempts)."""
    head = ("JOB", "RUN", "STATUS", "NODES", "WHERE", "WHAT", "USD/H", "RANK", "SINCE", "ATTEMPTS")
    table: list[tuple[str, ...]] = [head]
    for name, run, nodes, attempts in rows:
        launches = [a for a in attempts if a.generation is not None and a.action == "apply"]
        refused = sum(a.outcome is Outcome.REFUSED for a in launches)
        tries = f"{len(launches)}" + (f" ({refused} refused)" if refused else "")
        if run is None:
            table.append((name, "-", "none", "-", "-", "-", "-", "-", "-", tries))
            continue
        alive, lost = (sum(n.status is s for n in nodes) for s in (NodeStatus.RUNNING, NodeStatus.LOST))
        count = f"{alive}/{run.nodes}" + (f" ({lost} lost)" if lost else "")
        what = " + ".join(map(_what, run.parts))
        where = " + ".join(map(_where, run.parts))
        since = f"{run.started_at[:19]}Z"
        table.append(
            (name, run.id, run.status.value, count, where, what, usd(run.usd_per_hour), str(run.rank), since, tries)
        )
    lines = columns(table, right=frozenset({6, 7}))
    notes = [
        f"{name}: unfinished: {a.action.value} {a.stack} since {a.at[:19]}Z; `skyplan apply` or `skyplan destroy` goes on"
        for name, _, _, attempts in rows
        for a in attempts
        if a.outcome is None
    ]
    return [paint(lines[0], "dim"), *lines[1:], *notes]
