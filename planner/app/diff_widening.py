"""What the head of a placement diff grants and its base does not: the audit's own rule SKY-IAM-605, over the stacks of both sides' choices.

Decides which plans are looked at: those whose stacks or grants are others, and per place one that stands on both sides, so that a network or an identity that is
shared is not told as new.  Finds nothing itself; what cannot be composed is said, never passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.app.audit_join import connected, opened
from planner.app.audit_sources import Around, PlanSource, foundations, merged, stacks_of
from planner.model.diagnostic import Diagnostic, Location, Severity
from planner.model.errors import InputError
from planner.model.policy import Audited

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from planner.app.diff_read import Held, Side
    from planner.model.finding import Finding
    from planner.model.market import Market
    from planner.model.project import Project
    from planner.model.stack import AnyStack


@dataclass(frozen=True, slots=True, kw_only=True)
class Widened:
    """Findings, worst first, and what could not be compared."""

    findings: tuple[Finding, ...] = ()
    told: tuple[Diagnostic, ...] = ()


def widened(
    base: Side, head: Side, projects: Callable[[], tuple[Project, Project]], market: Callable[[], Market], *, same: bool
) -> Widened:
    """`same`: both sides have one skyplan.yaml.  Neither it nor the market is read where no right can be another one."""
    names = {n for n in head.plans if not same or _rights(base.plans.get(n)) != _rights(head.plans[n])}
    if not names:
        return Widened()
    from planner.iam.audit.widening import widening  # noqa: PLC0415 - all rules' modules

    before, after = projects()
    looked_at = {*names, *_witnesses(base, head, names)}
    told: list[Diagnostic] = []
    old = _audited(base, looked_at & base.plans.keys(), Around(project=before, market=market), told, empty=True)
    new = _audited(head, looked_at & head.plans.keys(), Around(project=after, market=market), told, empty=False)
    return Widened(findings=widening(opened(old), opened(new)), told=tuple(told))


def _rights(held: Held | None) -> object:
    """By digest: the stacks that hold rights, and the choice's grants.  Compute launches what the access stack has made."""
    if held is None or not held.plan.ranked:
        return None
    stacks = [s for s in held.plan.stacks if s.kind != "compute"]
    return (stacks, held.plan.choice.grants_digest)


def _witnesses(base: Side, head: Side, names: set[str]) -> Iterable[str]:
    """A plan of each place that stands on both sides."""
    found: dict[tuple[str, str, str], str] = {}
    for name in sorted(head.plans.keys() & base.plans.keys() - names):
        for held in (base.plans[name], head.plans[name]):
            for piece in held.plan.choice.pieces if held.plan.ranked else ():
                found.setdefault((piece.cloud, piece.target, piece.region), name)
    return found.values()


def _audited(side: Side, names: Iterable[str], around: Around, told: list[Diagnostic], *, empty: bool) -> Audited:
    from planner.iam.read.inputs import read_inputs  # noqa: PLC0415 - beside the rules

    sources: list[PlanSource] = []
    lost: dict[str, list[str]] = {}
    for name in sorted(names):
        file = side.plans[name].file
        try:
            plan = side.full(name)
            sources.append(PlanSource(plan=plan, file=file, stacks=stacks_of(plan, around)))
        except InputError as error:
            lost.setdefault(error.diagnostics[0].summary, []).append(file or name)
        except (KeyError, StopIteration, RuntimeError, TypeError, ValueError) as error:
            if isinstance(error, RuntimeError) and not isinstance(error.__cause__, StopIteration):
                raise  # of a generator's StopIteration Python makes one
            why = f"names what is not in the catalog any more: {error.__cause__ or error}".removesuffix(": ")
            lost.setdefault(why, []).append(file or name)
    told += (_lost(side, why, files, empty=empty) for why, files in sorted(lost.items()))
    stacks: dict[str, AnyStack] = {stack.name: stack for source in sources for stack in source.stacks}
    control, unread = foundations(sources, around)
    stacks |= {stack.name: stack for stack in control}
    return connected(merged([read_inputs(list(stacks.values())), Audited(unread=unread)]))


def _lost(side: Side, why: str, files: list[str], *, empty: bool) -> Diagnostic:
    more = f" (and {len(files) - 1} more plans)" if len(files) > 1 else ""
    what = "what it granted counts as nothing" if empty else "whether its rights widen is not known"
    return Diagnostic(
        code="SKY-IAM-902",
        summary=f"in {side.label}: {why}{more}; {what}",
        location=Location(files[0]),
        severity=Severity.WARNING,
    )
