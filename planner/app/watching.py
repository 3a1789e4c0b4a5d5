"""How a job fares: its run and nodes, how far it is and how fast, what it cost so far, where it was before.  For people, the page and `status`.

Decides what is shown and how it is counted, and changes nothing.  Reads the record only: no cloud and no node is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Protocol

from planner.app.status import JobStatus, status
from planner.model.record import NodeStatus, Run, RunStatus, moment, stamp
from planner.model.runtime import Checkpoint, Cut, NodeSeen, Progress

if TYPE_CHECKING:
    from planner.model.record import Node
    from planner.state.record import Record

POINTS: Final = 400
"""Of a plot: as many as it has pixels across, about."""
RATE_POINTS: Final = 20
"""Where a job tells no rate, it is reckoned over so many of its newest steps."""
#: what the nodes' prices leave out; shown wherever the sum is
LEFT_OUT: Final = (
    "disks, addresses and NAT, egress, storage and taxes are not in it; prices are those of the plan that was applied"
)


class Told(Protocol):
    """What nodes told, as `planner.state.runtime.Runtime` gives it."""

    def progress(self, job: str, *, generation: int | None = None, limit: int = 2000) -> tuple[Progress, ...]:
        """Rank 0 first, thinned evenly."""
        ...

    def recent(self, job: str, *, generation: int | None = None, limit: int = 20) -> tuple[Progress, ...]:
        """The newest of one generation (default: the newest), oldest first."""
        ...

    def checkpoints(self, job: str, *, limit: int = 200) -> tuple[Checkpoint, ...]:
        """Newest first or last: sorted here."""
        ...

    def seen(self, job: str, generation: int) -> tuple[NodeSeen, ...]:
        """When its nodes were last heard of."""
        ...

    def cut(self, job: str, generation: int) -> Cut | None:
        """From where a generation started."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLine:
    """What the nodes of one run cost.  `counting`: some of them still do."""

    run: str
    nodes: int
    what: str
    node_hours: float
    usd_per_node_hour: Decimal
    usd: Decimal
    counting: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """So far: every run of the job, from its launch to the end of each node."""

    lines: tuple[CostLine, ...]
    usd: Decimal
    as_of: str
    left_out: str = LEFT_OUT


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """From one run to the next.

    last_step     the newest step that the older one told, None where it told none
    resumed_step  where the newer one went on; None: from the beginning, or not known yet (`known`)
    """

    before: Run
    after: Run
    last_step: int | None
    resumed_step: int | None
    known: bool

    @property
    def elsewhere(self) -> bool:
        """Other machines in another place, or of another kind; else the same anew."""
        return self.before.offer_id != self.after.offer_id

    @property
    def repeated_steps(self) -> int | None:
        """How many steps were done twice; None where that is not known."""
        if self.last_step is None or not self.known:
            return None
        return max(0, self.last_step - (self.resumed_step or 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """One job, whole.

    rate    steps per second: as the job told, else reckoned; None where there is neither
    series  steps of each generation's lowest rank, oldest first
    """

    status: JobStatus
    now: str
    runs: tuple[Run, ...]
    seen: tuple[NodeSeen, ...]
    newest: Progress | None
    rate: float | None
    series: tuple[Progress, ...]
    cost: Cost
    moves: tuple[Move, ...]
    checkpoints: tuple[Checkpoint, ...]

    @property
    def job(self) -> str:
        """Its name."""
        return self.status.job

    @property
    def heard_seconds(self) -> float | None:
        """Since the last sign of life of any node of its run; None where none was ever heard."""
        last = max((s.at for s in self.seen), default=None)
        return max(0.0, (moment(self.now) - moment(last)).total_seconds()) if last else None

    @property
    def exit_code(self) -> int | None:
        """Of a job that has ended on every node of its run: 0, or a node's own code where one ended with an error; None while it may run."""
        run, codes = self.status.run, [s.exit_code for s in self.seen if s.exit_code is not None]
        if run is None or len(codes) < run.nodes:
            return None
        return next((code for code in codes if code), 0)

    def seen_of(self, rank: int) -> NodeSeen | None:
        """What was last heard of a rank."""
        return next((s for s in self.seen if s.seat.rank == rank), None)


def view(
    record: Record, told: Told, jobs: Sequence[str], now: datetime, *, points: int = POINTS, checkpoints: int = 50
) -> tuple[JobView, ...]:
    """The named jobs, or all where none is named; those that the record does not know are left out."""
    return tuple(_view(record, told, one, now, (points, checkpoints)) for one in status(record, jobs))


def _view(record: Record, told: Told, found: JobStatus, now: datetime, most: tuple[int, int]) -> JobView:
    points, checkpoints = most
    runs = record.runs(found.job)
    recent = told.recent(found.job, limit=RATE_POINTS)
    series = lowest_rank(told.progress(found.job, limit=points)) if points else ()
    return JobView(
        status=found,
        now=stamp(now),
        runs=runs,
        seen=told.seen(found.job, found.run.generation) if found.run else (),
        newest=recent[-1] if recent else None,
        rate=rate_of(recent),
        series=series,
        cost=cost(runs, {r.generation: record.nodes(r.job, r.generation) for r in runs}, now),
        moves=moves(runs, told),
        checkpoints=tuple(
            sorted(told.checkpoints(found.job, limit=checkpoints), key=lambda c: (c.at, c.step), reverse=True)
        ),
    )


def lowest_rank(series: Sequence[Progress]) -> tuple[Progress, ...]:
    """Of each generation the steps of its lowest rank that tells any: all ranks take the same ones.  By generation and time."""
    first: dict[int, int] = {}
    for p in series:
        first[p.seat.generation] = min(p.seat.rank, first.get(p.seat.generation, p.seat.rank))
    mine = [p for p in series if p.seat.rank == first[p.seat.generation]]
    return tuple(sorted(mine, key=lambda p: (p.seat.generation, p.at, p.step)))


def rate_of(recent: Sequence[Progress]) -> float | None:
    """Steps per second now: as the job told with its newest step, else reckoned over the newest ones; None where neither can be."""
    if not recent or recent[-1].rate is not None:
        return recent[-1].rate if recent else None
    rates = rates_between([recent[0], recent[-1]])
    return rates[0][1] if rates else None


def rates_between(series: Sequence[Progress]) -> list[tuple[str, float]]:
    """(time, steps per second) from each point to the next of the same generation, where time has passed and steps were made."""
    out: list[tuple[str, float]] = []
    for a, b in pairwise(series):
        seconds = (moment(b.at) - moment(a.at)).total_seconds()
        if a.seat == b.seat and seconds > 0 and b.step >= a.step:
            out.append((b.at, (b.step - a.step) / seconds))
    return out


def cost(runs: Sequence[Run], nodes: dict[int, Sequence[Node]], now: datetime) -> Cost:
    """By node: from the run's launch to when the node was seen to have gone, else until now.  A launch without nodes costs nothing that is known."""
    lines = [line for run in runs if (line := _line(run, nodes.get(run.generation, ()), now)) is not None]
    return Cost(lines=tuple(lines), usd=sum((line.usd for line in lines), Decimal(0)), as_of=stamp(now))


def _line(run: Run, nodes: Sequence[Node], now: datetime) -> CostLine | None:
    if not nodes or not run.nodes:
        return None
    began, seconds, counting = moment(run.started_at), 0.0, False
    for node in nodes:
        gone = node.status is not NodeStatus.RUNNING
        over = run.ended_at if run.status in {RunStatus.ENDED, RunStatus.FAILED} else None
        counting = counting or not (gone or over)
        until = moment(node.at) if gone else moment(over) if over else now
        seconds += max(0.0, (until - began).total_seconds())
    each = run.usd_per_hour / run.nodes
    what = " + ".join(f"{p.nodes} x {p.instance_type} {p.capacity.replace('_', '-')}" for p in run.parts)
    return CostLine(
        run=run.id,
        nodes=len(nodes),
        what=what,
        node_hours=seconds / 3600,
        usd_per_node_hour=each,
        usd=(each * Decimal(str(round(seconds, 3))) / 3600).quantize(Decimal("0.0001")),
        counting=counting,
    )


def moves(runs: Sequence[Run], told: Told) -> tuple[Move, ...]:
    """Between runs that were launched, in their order; refused launches are none."""
    launched = [r for r in runs if r.status not in {RunStatus.FAILED, RunStatus.STARTING}]
    out: list[Move] = []
    for before, after in pairwise(launched):
        last = told.recent(before.job, generation=before.generation, limit=1)
        cut = told.cut(after.job, after.generation)
        out.append(
            Move(
                before=before,
                after=after,
                last_step=max((p.step for p in last), default=None),
                resumed_step=cut.chosen.step if cut and cut.chosen else None,
                known=cut is not None,
            )
        )
    return tuple(out)
