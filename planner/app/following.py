"""Output and events of a job as they come: what is there, then what is new, until the job is over.  Reads the record only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.app.status import shown
from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError
from planner.model.record import HOLDING, RunStatus

if TYPE_CHECKING:
    from planner.app.ports import Clock
    from planner.model.record import Event, Run
    from planner.model.runtime import LogChunk
    from planner.state.record import Record
    from planner.state.runtime import Runtime

LOOK_SECONDS = 1.0
AT_ONCE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where it is read."""

    record: Record
    told: Runtime
    clock: Clock


def logs(
    source: Source, job: str, *, generation: int | None = None, rank: int | None = None, last: int = AT_ONCE
) -> tuple[LogChunk, ...]:
    """The last chunks of a run's output (default: of the run that `status` shows).  Raises InputError (323)."""
    run = run_of(source.record, job, generation)
    rank_of(run, rank)
    return source.told.logs(job, run.generation, rank=rank, limit=last)


def follow_logs(
    source: Source, job: str, *, generation: int | None = None, rank: int | None = None, last: int = AT_ONCE
) -> Iterator[tuple[LogChunk, ...]]:
    """What is there, then what comes.  Without a generation it goes on with the next run of the job; ends when the run is over and all of it was read."""
    run = run_of(source.record, job, generation)
    rank_of(run, rank)
    after = 0
    while True:
        over = _over(run)  # looked at before reading: what was told until then is read whole
        chunks = source.told.logs(job, run.generation, rank=rank, after=after, limit=AT_ONCE if after else last)
        if chunks:
            after = chunks[-1].id
            yield chunks
            continue
        now = run_of(source.record, job, generation)
        if now.generation != run.generation:
            after = 0
        elif over:
            return
        elif not _over(now):
            source.clock.sleep(LOOK_SECONDS)
        run = now


def _over(run: Run) -> bool:
    return run.status not in HOLDING or run.status is RunStatus.EXITED


def events(source: Source, job: str, *, last: int = AT_ONCE) -> tuple[Event, ...]:
    """The last events.  Raises InputError (323)."""
    _known(source.record, job)
    return tuple(event for _, event in source.told.events(job, limit=last))


def follow_events(source: Source, job: str, *, last: int = AT_ONCE) -> Iterator[tuple[Event, ...]]:
    """What is there, then what comes; without end."""
    _known(source.record, job)
    after = 0
    while True:
        found = source.told.events(job, after=after, limit=AT_ONCE if after else last)
        if found:
            after = found[-1][0]
            yield tuple(event for _, event in found)
        else:
            source.clock.sleep(LOOK_SECONDS)


def run_of(record: Record, job: str, generation: int | None) -> Run:
    """The run of a generation, or the one that `status` shows.  Raises InputError (323)."""
    _known(record, job)
    runs = record.runs(job)
    found = shown(runs) if generation is None else next((r for r in runs if r.generation == generation), None)
    if found is None:
        which = "no run yet" if generation is None else f"no generation {generation}"
        raise InputError([Diagnostic(code="SKY-APPLY-323", summary=f"the job `{job}` has {which}")])
    return found


def rank_of(run: Run, rank: int | None) -> None:
    """Raises InputError (323) where the run has no such rank."""
    if rank is None or rank < run.nodes:
        return
    ranks = "one node, rank 0" if run.nodes == 1 else f"{run.nodes} nodes, ranks 0 to {run.nodes - 1}"
    raise InputError([Diagnostic(code="SKY-APPLY-323", summary=f"{run.id} has {ranks}: there is no rank {rank}")])


def _known(record: Record, job: str) -> None:
    if record.job(job) is None:
        raise InputError([Diagnostic(code="SKY-APPLY-323", summary=f"no job `{job}` was ever applied")])
