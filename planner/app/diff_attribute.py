"""Which input moved a job: one after the other is let in, each time every changed job is planned anew, and what then is another is that input's share.

The order is fixed: first the prices (and skyplan itself) with the old job and the old project, then the project, then the job.  What is left between the last of these
plans and the head's own is `others`: what else holds pools, or prices that the head's plan was not made with.  The shares add up to the whole.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.app import inputs
from planner.app.diff_change import total_of
from planner.app.diff_replan import planned, read_jobs
from planner.model.change import Action, Cause, difference
from planner.model.diagnostic import Diagnostic, Location, Severity
from planner.spec.limits import narrow
from planner.spec.normal import workload_from_document

if TYPE_CHECKING:
    from planner.app.diff_read import Held, Side
    from planner.app.diff_replan import Ground, Setting
    from planner.model.change import Change
    from planner.model.plan import PlacementPlan

_OTHERS = "others"


def attributed(
    changes: tuple[Change, ...], sides: tuple[Side, Side], settings: tuple[Setting, Setting], ground: Ground
) -> tuple[tuple[Change, ...], tuple[Diagnostic, ...]]:
    """The changes with their causes; warnings of plans whose job cannot be read back."""
    base, head = sides
    told: list[Diagnostic] = []
    jobs: dict[str, tuple[inputs.Job, inputs.Job]] = {}
    for c in changes:
        if c.before is None or c.after is None or (c.action is Action.KEEP and not c.other_figures):
            continue
        try:
            jobs[c.job] = (_job(base.plans[c.job]), _job(head.plans[c.job]))
        except (KeyError, TypeError, ValueError) as error:
            summary = f"job `{c.job}` cannot be planned again from its plans, and its change is not told apart: {error}"
            at = Location(head.plans[c.job].file)
            told.append(Diagnostic(code="SKY-APPLY-301", summary=summary, location=at, severity=Severity.WARNING))
    rest = [[held.plan for name, held in sorted(side.plans.items()) if name not in jobs] for side in sides]
    old, new = settings
    stations = (
        ([pair[0] for pair in jobs.values()], rest[0], old),
        (_within(new, base, [pair[0] for pair in jobs.values()], ground), rest[0], new),
        ([pair[1] for pair in jobs.values()], rest[1], new),
    )
    runs = [{p.name: p for p in planned(ask, others, s.project, s.file, ground)} for ask, others, s in stations]
    out = tuple(
        replace(c, causes=_causes(base.plans[c.job], head.plans[c.job], [run[c.job] for run in runs]))
        if c.job in jobs
        else c
        for c in changes
    )
    return out, tuple(told)


def _job(held: Held) -> inputs.Job:
    return inputs.Job(workload=workload_from_document(held.plan.job), file=str(held.plan.inputs["job"]["file"]))


def _within(new: Setting, base: Side, jobs: list[inputs.Job], ground: Ground) -> list[inputs.Job]:
    """The base's jobs in the head's project: from their files where there are any, since what a plan holds is narrowed to the base's project already."""
    told: list[Diagnostic] = []
    read = read_jobs(base, new.project, new.file, ground.market, told).jobs
    if any(d.severity is Severity.ERROR for d in told):
        read = {}
    return [read.get(job.workload.name) or replace(job, workload=narrow(job.workload, new.project)[0]) for job in jobs]


def _causes(before: Held, after: Held, between: list[PlacementPlan]) -> tuple[Cause, ...]:
    names = (_market_or_skyplan(before, after), "project", "job", _OTHERS)
    stations = [before.plan, *between, after.plan]
    out: list[Cause] = []
    for what, one, other in zip(names, stations, stations[1:], strict=False):
        total = difference(total_of(one), total_of(other))
        moved = _id(one) != _id(other)
        if moved or total.usd != 0:
            out.append(Cause(what=what, moved=moved, total=total, text=_words(what, one, other)))
    return tuple(out)


def _market_or_skyplan(before: Held, after: Held) -> str:
    """Both at once cannot be told apart: the old scoring is not there any more."""
    return "market" if before.plan.inputs.get("method") == after.plan.inputs.get("method") else "skyplan"


def _id(plan: PlacementPlan) -> str:
    return plan.choice.placement_id if plan.ranked else ""


def _words(what: str, one: PlacementPlan, other: PlacementPlan) -> str:
    place = other.choice.offer_id if other.ranked else "nowhere"
    was = one.choice.offer_id if one.ranked else "nowhere"
    usd = total_of(other).usd - total_of(one).usd
    amount = f"{'-' if usd < 0 else '+'}${abs(usd):,.2f}"
    known = not (total_of(one).at_least or total_of(other).at_least)
    cost = amount if known else "by how much in USD is unknown"
    note = {
        "skyplan": " (skyplan's scoring changed; a change of prices is in it)",
        _OTHERS: " (what else holds pools, or the prices that the head's plan was made with)",
    }.get(what, "")
    if was == place:
        return (
            f"{'made of other things in the same place' if _id(one) != _id(other) else 'the same place'}, {cost}{note}"
        )
    return f"from {was} to {place}, {cost}{note}"
