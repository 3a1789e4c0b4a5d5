"""Nothing that looks like a secret leaves with a plan: rule 504, at the one moment where it can still be kept in.

`apply` asks before it launches: the plan, then what each candidate's stacks are made of, then each stack's Terraform as it is written.  Refuses, and changes
nothing; what a secret looks like is `planner.iam.secrets`' business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from planner.iam.secrets import scan_document
from planner.model.diagnostic import Diagnostic, ordered
from planner.model.digest import set_only
from planner.model.errors import InputError
from planner.model.plan import to_document

if TYPE_CHECKING:
    from planner.model.plan import PlacementPlan
    from planner.model.policy import Leak
    from planner.model.stack import StackInput, StackSet

_HINT = "give a reference under `secrets` instead, such as secret://aws-secretsmanager/NAME; then change this secret, it was in a file"
Synth = Callable[["StackInput"], Mapping[str, Any]]


def refuse_plan(plan: PlacementPlan) -> None:
    """Raises InputError (SKY-IAM-504) where the plan holds what looks like a secret."""
    _refuse(scan_document(to_document(plan), origin=f"plan {plan.name}"))


def refuse_stacks(sets: Sequence[StackSet]) -> None:
    """Raises InputError (SKY-IAM-504).  Before anything of the candidate is applied: its network too."""
    found: list[Leak] = []
    for one in sets:
        for stack in filter(None, (one.network, one.addresses, one.access, one.compute)):
            found += scan_document(set_only(stack), origin=stack.name)
    _refuse(found)


def guarded(synth: Synth) -> Synth:
    """The same stacks, each looked at once it is written."""

    def looked_at(given: StackInput) -> Mapping[str, Any]:
        document = synth(given)
        _refuse(scan_document(document, origin=given.name))
        return document

    return looked_at


def _refuse(leaks: Iterable[Leak]) -> None:
    problems = [
        Diagnostic(code="SKY-IAM-504", summary=f"{leak.origin}: {leak.kind}: {leak.shown}", hint=_HINT)
        for leak in leaks
    ]
    if problems:
        raise InputError(ordered(problems))
