"""Where each job stands, from the record alone: its run, how far it is, what is left, from which checkpoint it would go on, when it must be done.

Decides how work that is left is counted, and says which of two ways it was; whether the job moves is not decided here.  Asks no cloud and no node.

  steps   a job that tells `total_steps` beside its steps: the share of them that is left, of its hours of work
  clock   else: its hours of work less those that its productive hours were worth, each by the speed of the place it ran in; steps done twice count once
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING, Final, Protocol

from planner.model.migration import CLOSED, MigrationReason, MigrationStatus
from planner.model.record import Action, Outcome, Run, RunStatus, StackStatus, moment

if TYPE_CHECKING:
    from planner.model.record import Attempt, Event, Job, Stack
    from planner.model.runtime import Checkpoint
    from planner.model.workload import Workload
    from planner.state.history import Move
    from planner.state.newest import Ends, Newest

TOTAL_STEPS: Final = "total_steps"
"""The metric by which a job tells how many steps it takes in all."""
LEAST_SHARE: Final = 0.02
"""A job that outlasts its hours of work has at least this share of them left: it runs, so it is not done.  A guess, told in the diff."""
ACQUIRE_HOURS: Final = (2.0 / 60.0, 10.0 / 60.0)
"""Observed launches count within these bounds (issue 6: 2-10 minutes)."""
FEWEST_LAUNCHES: Final = 3
"""Fewer say nothing about a cloud."""
VOLUNTARY: Final = frozenset({MigrationReason.SAVING, MigrationReason.DRIFT})
TAKEN: Final = frozenset({MigrationReason.INTERRUPTION, MigrationReason.RECOVERY})
REACHED: Final = frozenset(
    {MigrationStatus.CUT_OVER.value, MigrationStatus.VERIFIED.value, MigrationStatus.RETIRED.value}
)
#: of such runs the job's process or its launch is the news, not the market
_LAUNCHED = frozenset(RunStatus) - {RunStatus.STARTING, RunStatus.FAILED}


class Reads(Protocol):
    """What is read of the record, as `planner.state.record.Record` gives it."""

    def jobs(self) -> tuple[Job, ...]:
        """All jobs."""
        ...

    def runs(self, job: str | None = None) -> tuple[Run, ...]:
        """By job and generation."""
        ...

    def moves(self, job: str | None = None) -> tuple[Move, ...]:
        """Oldest first."""
        ...

    def attempts(self, job: str | None = None) -> tuple[Attempt, ...]:
        """Oldest first."""
        ...

    def stacks(self, job: str | None = None) -> tuple[Stack, ...]:
        """What may hold resources."""
        ...

    def events(self, job: str) -> tuple[Event, ...]:
        """Oldest first."""
        ...


class Looks(Protocol):
    """What nodes told, as `planner.state.newest.Looker` gives it."""

    def newest(self, runs: Sequence[tuple[str, int]]) -> Newest:
        """The two ends of each run."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the record has of one job.

    runs       that were launched, oldest first; the last is what runs, or ran last
    starting   a launch is under way
    ends       of each generation that told steps
    notice     the cloud will take nodes of the last run
    taken      the last run has exited because the cloud took its nodes, not because the job came to its end
    """

    job: Job
    runs: tuple[Run, ...]
    starting: bool
    ends: Mapping[int, Ends]
    checkpoint: Checkpoint | None
    notice: Event | None
    moves: tuple[Move, ...]
    taken: bool = False

    @property
    def run(self) -> Run:
        """The newest run."""
        return self.runs[-1]

    @property
    def step(self) -> int | None:
        """Of the newest run that told any: after a loss it may be behind what an older one had reached."""
        return self.ends[max(self.ends)].last.step if self.ends else None

    @property
    def open_move(self) -> Move | None:
        """A move that is under way."""
        return next((m for m in self.moves if m.status not in CLOSED), None)

    def moved(self, reasons: frozenset[MigrationReason]) -> tuple[Move, ...]:
        """Moves for these reasons that got as far as the cut-over."""
        return tuple(m for m in self.moves if m.status in REACHED and m.reason in reasons)

    def deadline_hours(self, workload: Workload, now: datetime) -> float:
        """Until its deadline, which runs from the first apply; inf where it has none."""
        if workload.constraints.deadline_hours is None:
            return float("inf")
        ends = moment(self.job.first_applied_at) + timedelta(hours=workload.constraints.deadline_hours)
        return (ends - now).total_seconds() / 3600

    def since_move_hours(self, now: datetime) -> float:
        """Since its last voluntary move; inf where there was none."""
        last = max((m.at for m in self.moved(VOLUNTARY)), default=None)
        return (now - moment(last)).total_seconds() / 3600 if last else float("inf")

    def left_pools(self, now: datetime, cool_down_hours: float) -> frozenset[str]:
        """Pools that it left of its own will so lately that going back would be A, B, A."""
        pools = {r.generation: r.pool for r in self.runs}
        since = now - timedelta(hours=cool_down_hours)
        found = (m.from_generation for m in self.moved(VOLUNTARY) if moment(m.at) > since)
        return frozenset(pools[g] for g in found if g in pools)


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """Work that is left, in hours on the job's reference hardware.

    work_hours  from its newest step on
    redo_hours  what a resume from its newest checkpoint does again
    counted     `steps` or `clock`, see above
    words       for the diff
    """

    work_hours: float
    redo_hours: float
    counted: str
    words: str


def look(record: Reads, told: Looks, names: Sequence[str] = ()) -> tuple[Seen, ...]:
    """The named jobs, or all, that were launched and that nobody ended; by name."""
    wanted = set(names)
    runs: dict[str, list[Run]] = {}
    for run in record.runs():
        runs.setdefault(run.job, []).append(run)
    moves: dict[str, list[Move]] = {}
    for move in record.moves():
        moves.setdefault(move.job, []).append(move)
    jobs = [j for j in record.jobs() if not wanted or j.name in wanted]
    launched = {j.name: [r for r in runs.get(j.name, ()) if r.status in _LAUNCHED] for j in jobs}
    jobs = [j for j in jobs if launched[j.name] and launched[j.name][-1].status is not RunStatus.ENDED]
    newest = told.newest([(j.name, r.generation) for j in jobs for r in launched[j.name]])
    out: list[Seen] = []
    for job in jobs:
        mine = launched[job.name]
        ends = {r.generation: found for r in mine if (found := newest.ends.get((job.name, r.generation)))}
        out.append(
            Seen(
                job=job,
                runs=tuple(mine),
                starting=runs[job.name][-1].status is RunStatus.STARTING,
                ends=ends,
                checkpoint=newest.checkpoints.get(job.name),
                notice=(notice := newest.notices.get((job.name, mine[-1].generation))),
                taken=notice is not None and _taken(record, mine[-1]),
                moves=tuple(moves.get(job.name, ())),
            )
        )
    return tuple(out)


def _taken(record: Reads, run: Run) -> bool:
    """An agent that its machine's end stops ends the job too, which then exits like any other."""
    from planner.state.moves import own_end  # noqa: PLC0415 - sqlalchemy; only of a run that exited after a notice

    if run.status is not RunStatus.EXITED:
        return False
    return not own_end((e.kind, e.text) for e in record.events(run.job) if e.generation == run.generation)


def left(seen: Seen, workload: Workload, rate_of: Callable[[Run], float], now: datetime) -> Left:
    """`rate_of`: reference hours done per hour where a run is."""
    whole = workload.work.hours
    total = _total_steps(seen)
    if total and seen.step is not None:
        done = whole * min(1.0, seen.step / total)
        saved = whole * min(1.0, (seen.checkpoint.step if seen.checkpoint else 0) / total)
        counted, words = "steps", f"step {seen.step:,} of {total:,}"
    else:
        done, per_step = _by_clock(seen, rate_of, now)
        saved = _saved_by_clock(seen, workload, done, per_step, rate_of)
        counted, words = "clock", f"{done:.2f} h of work by the clock"
    work = whole - done
    if work < LEAST_SHARE * whole:
        work = LEAST_SHARE * whole
        words += f", more than its {whole:g} h: {LEAST_SHARE:.0%} of them are taken to be left"
    redo = max(0.0, done - saved) if workload.checkpoint else done
    return Left(work_hours=work, redo_hours=redo, counted=counted, words=words)


def _total_steps(seen: Seen) -> int | None:
    for generation in sorted(seen.ends, reverse=True):
        total = seen.ends[generation].last.metrics.get(TOTAL_STEPS)
        if total is not None and total >= 1:
            return int(total)
    return None


def _by_clock(seen: Seen, rate_of: Callable[[Run], float], now: datetime) -> tuple[float, float]:
    """Reference hours done, and of them per step in the newest run that told steps (0 where none did)."""
    done, per_step, highest = 0.0, 0.0, 0
    for run in seen.runs:
        rate, ends = rate_of(run), seen.ends.get(run.generation)
        if ends is None:
            if not seen.ends:  # bare: nodes tell nothing, the clock is all there is
                until = moment(run.ended_at) if run.ended_at else now
                done += rate * max(0.0, (until - moment(run.started_at)).total_seconds() / 3600)
            continue
        hours = max(0.0, (moment(ends.last.at) - moment(ends.first.at)).total_seconds() / 3600)
        steps = ends.last.step - ends.first.step
        if steps > 0:
            per_step = rate * hours / steps
            done += per_step * max(0, ends.last.step - max(ends.first.step, highest))
        highest = max(highest, ends.last.step)
    behind = per_step * max(0, highest - (seen.step or 0))
    return max(0.0, done - behind), per_step


def _saved_by_clock(
    seen: Seen, workload: Workload, done: float, per_step: float, rate_of: Callable[[Run], float]
) -> float:
    if seen.checkpoint is not None and seen.step is not None:
        return done - per_step * max(0, seen.step - seen.checkpoint.step)
    if not seen.ends and workload.checkpoint:
        # bare: the record knows of no checkpoint, and at worst it is as old as they are apart
        return done - min(done, workload.checkpoint.every_hours * rate_of(seen.run))
    return 0.0


def acquire_hours(attempts: Sequence[Attempt], clouds: Mapping[str, str]) -> dict[str, float]:
    """By cloud, the median of what launches took, within bounds; a cloud with few launches is left out.  `clouds`: of each compute stack."""
    took: dict[str, list[float]] = {}
    for a in attempts:
        if a.outcome is Outcome.DONE and a.action is Action.APPLY and a.generation and a.ended_at and a.stack in clouds:
            hours = (moment(a.ended_at) - moment(a.at)).total_seconds() / 3600
            took.setdefault(clouds[a.stack], []).append(hours)
    low, high = ACQUIRE_HOURS
    return {cloud: min(max(median(found), low), high) for cloud, found in took.items() if len(found) >= FEWEST_LAUNCHES}


def prepared_places(stacks: Sequence[Stack]) -> frozenset[tuple[str, str, str, str]]:
    """(job, cloud, target, region) where network and access of the job both stand."""
    networks = {
        (s.cloud, s.target, s.region) for s in stacks if s.kind == "network" and s.status is StackStatus.APPLIED
    }
    return frozenset(
        (s.job, *place)
        for s in stacks
        if s.kind == "access" and s.job and s.status is StackStatus.APPLIED
        if (place := (s.cloud, s.target, s.region)) in networks
    )
