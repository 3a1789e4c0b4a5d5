"""Whether a diff may still be carried out: it must be of what runs now, and of the plan it was made from.  Reads only; every reason is gathered before one is raised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.app.over import past_its_end
from planner.app.watching import cost
from planner.migration.document import to_document as diff_document
from planner.model.diagnostic import Diagnostic, ordered
from planner.model.errors import StalePlan
from planner.model.migration import MigrationReason
from planner.model.record import RunStatus
from planner.state.moves import OVER, own_end

if TYPE_CHECKING:
    from decimal import Decimal

    from planner.app.migrate_places import Places
    from planner.app.ports import Ports
    from planner.model.migration import MigrationDiff
    from planner.model.record import Run
    from planner.state.history import Move

#: what computes, or may
WORKS = (RunStatus.RUNNING, RunStatus.DEGRADED)
#: moves whose checkpoint must be durable before anything is given up
VOLUNTARY = (MigrationReason.SAVING, MigrationReason.DRIFT, MigrationReason.DEADLINE, MigrationReason.QUOTA)


def judge(diff: MigrationDiff, places: Places, ports: Ports) -> None:
    """Raises StalePlan: SKY-MOVE-422 (stale), 423 (not of this plan), 408 (nowhere prepared)."""
    found = [*_of_the_plan(diff, places, ports), *_of_the_record(diff, ports)]
    if diff.reason in VOLUNTARY and places.workload.checkpoint is None:
        summary = f"`{diff.job}` has no checkpoint policy: a voluntary move would begin it anew"
        found.append(Diagnostic(code="SKY-MOVE-425", summary=summary, hint="add `checkpoint` to the job"))
    if found:
        raise StalePlan(ordered(found))
    against = [(p, why) for p, why in places.open(ports, ports.record.runs(diff.job)) if why]
    if len(against) == len(places.to):
        codes = {p.offer_id: "SKY-MOVE-422" if p.offer_id in places.barred else "SKY-MOVE-408" for p in places.to}
        raise StalePlan([Diagnostic(code=codes[p.offer_id], summary=f"{p.offer_id}: {why}") for p, why in against])


def standing(runs: tuple[Run, ...]) -> Run | None:
    """What runs or ran last: a launch that was refused is none."""
    launched = [r for r in runs if r.status not in {RunStatus.FAILED, RunStatus.STARTING}]
    return launched[-1] if launched else None


def finished(ports: Ports, run: Run) -> bool:
    """Whether the job came to its end on a run, well or with an error; not where the cloud took its nodes."""
    if run.status not in OVER:
        return False
    told = ((e.kind, e.text) for e in ports.record.events(run.job) if e.generation == run.generation)
    return own_end(told) or bool(past_its_end(run, ports.clock.now()))


def budget_left(ports: Ports, run: Run) -> Decimal | None:
    """What is left of a run's `max_usd_total` for the next; None where there is no such sum."""
    if run.budget_usd is None:
        return None
    spent = cost((run,), {run.generation: ports.record.nodes(run.job, run.generation)}, ports.clock.now())
    return run.budget_usd - spent.usd


def same_move(ports: Ports, diff: MigrationDiff) -> Move | None:
    """The newest move of the job, where it is this diff's."""
    last = next(reversed(ports.record.moves(diff.job)), None)
    return last if last is not None and last.document.get("diff") == diff_document(diff) else None


def new_run(ports: Ports, move: Move) -> Run | None:
    """What a move has launched last."""
    return next((r for r in ports.record.runs(move.job) if r.generation == move.to_generation), None)


def _of_the_plan(diff: MigrationDiff, places: Places, ports: Ports) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    if diff.project != ports.project.name:
        found.append(_stale(f"the diff is of project `{diff.project}`, this is `{ports.project.name}`"))
    if places.plan.name != diff.job or places.plan.digest != diff.plan_digest:
        found.append(
            _stale(f"the plan of `{diff.job}` is not the one that the diff was made from ({diff.plan_digest})")
        )
        return found
    ranked = {(p.offer_id, p.placement_id) for p in places.plan.ranked}
    found += [
        Diagnostic(code="SKY-MOVE-423", summary=f"{p.offer_id} is not in the plan that the diff names")
        for p in diff.to
        if (p.offer_id, p.placement_id) not in ranked
    ]
    if not diff.to:
        found.append(Diagnostic(code="SKY-MOVE-423", summary="the diff names no place to go to"))
    return found


def _of_the_record(diff: MigrationDiff, ports: Ports) -> list[Diagnostic]:
    run = standing(ports.record.runs(diff.job))
    if run is None or (run.generation, run.placement_id) != (diff.standing.generation, diff.standing.placement_id):
        now = f"{run.id} on {run.offer_id}" if run else "nothing"
        return [_stale(f"the diff moves {diff.job}-g{diff.standing.generation}; the record has {now}")]
    if run.status is RunStatus.ENDED or finished(ports, run):
        return [_stale(f"{run.id} is {run.status.value}: there is nothing to move")]
    left = budget_left(ports, run)
    if left is not None and left <= 0:
        return [_stale(f"{run.id} has spent its budget of ${run.budget_usd:,.2f}: nothing is left to move with")]
    if diff.reason in VOLUNTARY and run.status is not RunStatus.RUNNING:
        return [_stale(f"{run.id} is {run.status.value} by now: it is a recovery, no voluntary move")]
    if diff.reason is MigrationReason.RECOVERY and run.status is RunStatus.RUNNING:
        return [_stale(f"{run.id} runs: there is nothing to recover")]
    return []


def _stale(summary: str) -> Diagnostic:
    return Diagnostic(code="SKY-MOVE-422", summary=summary)
