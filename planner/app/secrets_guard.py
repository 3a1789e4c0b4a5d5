"""Nothing that looks like a secret leaves with a plan: rule 504, at the one moment where it can still be kept in.

`apply` asks before it launches: the plan, then what each candidate's stacks are made of, then each stack's Terraform as it is written; `comment` before it posts.  Refuses, and changes
nothing; what a secret looks like is `planner.iam.secrets`' business.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from planner.iam.secrets import scan_document, scan_text
from planner.model.diagnostic import Diagnostic, ordered
from planner.model.digest import set_only
from planner.model.errors import InputError
from planner.model.plan import to_document

if TYPE_CHECKING:
    from planner.model.plan import PlacementPlan
    from planner.model.policy import Leak
    from planner.model.stack import StackInput, StackSet

_HINT = "give a reference under `secrets` instead, such as secret://aws-secretsmanager/NAME; then change this secret, it was in a file"
_HINT_TEXT = "it was posted nowhere; find out which file it comes from, give a reference there, then change this secret"
_ESCAPED = re.compile(r"\\([\\`*_\[\]|~])")
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


def refuse_text(text: str, *, origin: str) -> None:
    """Raises InputError (SKY-IAM-504) where Markdown holds what looks like a secret, as it is written or as it is read."""
    shown = text.replace("[secret]", "$masked")  # what our own renderers cut out is none
    read = html.unescape(_ESCAPED.sub(r"\1", text)).replace("\u200b", "").replace("[secret]", "$masked")
    leaks = (*scan_text(shown, origin=origin), *scan_text(read, origin=origin))
    _refuse(dict.fromkeys(leaks), _HINT_TEXT)


def guarded(synth: Synth) -> Synth:
    """The same stacks, each looked at once it is written."""

    def looked_at(given: StackInput) -> Mapping[str, Any]:
        document = synth(given)
        _refuse(scan_document(document, origin=given.name))
        return document

    return looked_at


def _refuse(leaks: Iterable[Leak], hint: str = _HINT) -> None:
    problems = [
        Diagnostic(code="SKY-IAM-504", summary=f"{leak.origin}: {leak.kind}: {leak.shown}", hint=hint) for leak in leaks
    ]
    if problems:
        raise InputError(ordered(problems))
