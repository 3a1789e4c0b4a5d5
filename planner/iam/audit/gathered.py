"""What one change makes wider in many statements, told once: a region that is added reaches every right of an identity, and is one decision.

Only what is wider in the very same way is told together (`Growth.change`); what is new, or different in any value, stays a finding of its own.
Compares nothing: that is `grown`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from planner.iam.audit.find import Held, label, of_statement
from planner.iam.audit.grown import Growth, listed
from planner.model.finding import Finding
from planner.model.policy import Subject

#: a statement, and one way in which it is wider
Grown = tuple[Held, Growth]


def told(subject: Subject, found: Iterable[Grown]) -> Iterator[Finding]:
    """One finding for each change, in the order in which they are first seen."""
    groups: dict[object, list[Grown]] = {}
    for number, (held, growth) in enumerate(found):
        groups.setdefault(growth.change or number, []).append((held, growth))
    for group in groups.values():
        held, growth = group[0]
        if len(group) == 1:
            yield of_statement(
                subject, held, growth.message, action=growth.action, resource=growth.resource, fix=growth.fix
            )
        else:
            yield _together(subject, group)


def _together(subject: Subject, group: list[Grown]) -> Finding:
    """Its fingerprint is of the policies, actions and resources that the change reaches: one more of them is to be looked at again."""
    first = group[0][0]
    change = group[0][1].change
    actions = sorted({action for _, growth in group for action in growth.action.split(", ")})
    resources = sorted({resource for _, growth in group for resource in growth.resource.split(", ") if resource})
    statements = {label(*held): None for held, _ in group}
    made = of_statement(
        subject,
        first,
        f"one change makes {_number(len(actions), 'action')} in {_number(len(statements), 'statement')} wider ({listed(actions)}): {change}",
        action=", ".join(actions),
        resource=", ".join(resources),
        fix="\n".join(
            [
                f"in each of these statements take it back, or have it reviewed: {change}",
                *(f"  {one}" for one in statements),
            ]
        ),
    )
    return replace(
        made,
        grant=", ".join(sorted({policy.name for (policy, _), _ in group})),
        evidence="\n".join(
            f"{label(*held)}: {growth.action}{f' on {growth.resource}' if growth.resource else ''}"
            for held, growth in group
        ),
    )


def _number(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
