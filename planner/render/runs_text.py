"""Runs and their nodes for people.  Decides nothing."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from planner.model.record import NodeStatus, Outcome, RunStatus
from planner.render.text import columns, usd

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planner.model.record import Attempt, Node, Run, RunPart
    from planner.render.text import Paint

STYLES = {
    RunStatus.RUNNING: "green",
    RunStatus.STARTING: "cyan",
    RunStatus.DEGRADED: "yellow",
    RunStatus.EXITED: "green",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """How far a job is: what its nodes told, None where they told nothing; `heard_seconds` since the last sign of life; `exit_code` of a job that ended."""

    step: int | None = None
    loss: float | None = None
    steps_per_second: float | None = None
    heard_seconds: float | None = None
    usd_so_far: Decimal | None = None
    exit_code: int | None = None


def told_cells(told: Told) -> tuple[str, ...]:
    """STEP, LOSS, STEPS/S, HEARD, SO FAR."""
    return (
        "-" if told.step is None else f"{told.step:,}",
        "-" if told.loss is None else f"{told.loss:.4g}",
        "-" if told.steps_per_second is None else f"{told.steps_per_second:.3g}",
        "-" if told.heard_seconds is None else f"{age(told.heard_seconds)} ago",
        "-" if told.usd_so_far is None else usd(told.usd_so_far),
    )


def age(seconds: float) -> str:
    """`12 s`, `5 min`, `3.2 h`, `4 d`."""
    for limit, size, unit in ((120, 1, "s"), (7200, 60, "min")):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} d"  # noqa: PLR2004 - two days


def status_lines(
    rows: Sequence[tuple[str, Run | None, Sequence[Node], Sequence[Attempt]]],
    paint: Paint,
    told: Mapping[str, Told] | None = None,
) -> list[str]:
    """A table of jobs: (name, run, nodes, attempts); with `told`, by name, how far each is."""
    head = ("JOB", "RUN", "STATUS", "NODES", "WHERE", "WHAT", "USD/H", "RANK", "SINCE", "ATTEMPTS")
    more = ("STEP", "LOSS", "STEPS/S", "HEARD", "SO FAR") if told is not None else ()
    table: list[tuple[str, ...]] = [(*head, *more)]
    for name, run, nodes, attempts in rows:
        launches = [a for a in attempts if a.generation is not None and a.action == "apply"]
        refused = sum(a.outcome is Outcome.REFUSED for a in launches)
        tries = f"{len(launches)}" + (f" ({refused} refused)" if refused else "")
        far = told_cells(told.get(name, Told())) if told is not None else ()
        if run is None:
            table.append((name, "-", "none", "-", "-", "-", "-", "-", "-", tries, *far))
            continue
        alive, lost = (sum(n.status is s for n in nodes) for s in (NodeStatus.RUNNING, NodeStatus.LOST))
        count = f"{alive}/{run.nodes}" + (f" ({lost} lost)" if lost else "")
        what = " + ".join(map(_what, run.parts))
        where = " + ".join(map(_where, run.parts))
        since = f"{run.started_at[:19]}Z"
        price = usd(run.usd_per_hour)
        code = told[name].exit_code if told and name in told else None
        state = f"{run.status.value} with code {code}" if code else run.status.value
        row = (name, run.id, state, count, where, what, price, str(run.rank), since, tries)
        table.append((*row, *far))
    lines = columns(table, right=frozenset({6, 7, 10, 11, 12, 13, 14}))
    notes = [
        f"{name}: unfinished: {a.action.value} {a.stack} since {a.at[:19]}Z; `skyplan apply` or `skyplan destroy` goes on"
        for name, _, _, attempts in rows
        for a in attempts
        if a.outcome is None
    ]
    return [paint(lines[0], "dim"), *lines[1:], *notes]
