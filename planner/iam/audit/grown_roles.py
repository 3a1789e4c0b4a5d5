"""What a role of Google's or Azure's gives beyond those that a base has: permissions, place or condition.  The counterpart of `grown` for roles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from planner.iam.audit.covers import covers_assignment, covers_binding, holds, holds_actions, in_scope, within
from planner.iam.audit.grown import listed
from planner.iam.audit.lines import written
from planner.iam.roles import permissions_of, role_of
from planner.model.offer import Cloud
from planner.model.policy import RoleAssignment, RoleBinding


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleGrowth:
    """One difference."""

    action: str
    message: str
    fix: str


def binding_growth(binding: RoleBinding, held: Sequence[RoleBinding]) -> Iterator[RoleGrowth]:
    """Permission by permission where the role lists them."""
    if any(covers_binding(have, binding, _known) for have in held):
        return
    permissions = binding.permissions or tuple(sorted(_known(binding.role)))
    parts = [replace(binding, permissions=(one,)) for one in permissions] or [binding]
    over = [part for part in parts if not any(covers_binding(have, part, _known) for have in held)]
    if not over:
        return
    missing = tuple(one for part in over for one in part.permissions)
    same = [have for have in held if all(holds(have, part, _known) for part in over)]
    on = [have for have in same if within(binding.on, have.on)]
    what = listed(missing) if missing and len(over) < len(parts) else binding.role
    if on:
        message = (
            f"{what} on {binding.on} is granted on a weaker condition: {_change(on[0].condition, binding.condition)}"
        )
        fix = f"write instead:\n{written(replace(binding, condition=on[0].condition))}"
    elif same:
        message = f"{what} now reaches {binding.on}; the base stops at {listed([have.on for have in same])}"
        fix = f"write instead:\n{written(replace(binding, on=same[0].on, condition=same[0].condition))}"
    else:
        shown = f" ({listed(missing)})" if missing not in {(), ("*",)} and what == binding.role else ""
        when = f", where {binding.condition}" if binding.condition else ""
        message = f"adds {what}{shown} on {binding.on}{when}"
        kept = tuple(one for one in binding.permissions if one not in missing)
        fix = f"write instead:\n{written(replace(binding, permissions=kept))}" if kept else f"drop {binding.role}"
    yield RoleGrowth(action=", ".join(missing), message=message, fix=fix)


def _known(role: str) -> frozenset[str]:
    return permissions_of(Cloud.GCP, role)


def assignment_growth(assignment: RoleAssignment, held: Sequence[RoleAssignment]) -> Iterator[RoleGrowth]:
    """Action by action where the role lists them."""
    held = [_opened(have) for have in held]
    parts = _parts(_opened(assignment))
    over = [part for part in parts if not any(covers_assignment(have, part) for have in held)]
    if not over:
        return
    missing = tuple(one for part in over for one in (*part.actions, *part.data_actions))
    same = [have for have in held if all(holds_actions(have, part) for part in over)]
    on = [have for have in same if in_scope(assignment.scope, have.scope)]
    what = listed(missing) if missing and len(over) < len(parts) else assignment.role
    if on:
        message = f"{what} at {assignment.scope} is granted on a weaker condition: {_change(on[0].condition, assignment.condition)}"
        fix = f"write instead:\n{written(replace(assignment, condition=on[0].condition))}"
    elif same:
        message = f"{what} now reaches {assignment.scope}; the base stops at {listed([have.scope for have in same])}"
        fix = f"write instead:\n{written(replace(assignment, scope=same[0].scope, condition=same[0].condition))}"
    else:
        shown = f" ({listed(missing)})" if missing not in {(), ("*",)} and what == assignment.role else ""
        when = f", where {assignment.condition}" if assignment.condition else ""
        message = f"adds {what}{shown} at {assignment.scope}{when}"
        kept = replace(
            assignment,
            actions=tuple(one for one in assignment.actions if one not in missing),
            data_actions=tuple(one for one in assignment.data_actions if one not in missing),
        )
        some = kept.actions or kept.data_actions
        fix = f"write instead:\n{written(kept)}" if some else f"drop the assignment of {assignment.role}"
    yield RoleGrowth(action=", ".join(missing), message=message, fix=fix)


def _opened(assignment: RoleAssignment) -> RoleAssignment:
    """A built-in role with what it holds, where that is known."""
    if any((assignment.actions, assignment.not_actions, assignment.data_actions, assignment.not_data_actions)):
        return assignment
    role = role_of(Cloud.AZURE, assignment.role)
    if role is None:
        return assignment
    return replace(assignment, actions=role.actions, not_actions=role.not_actions, data_actions=role.data_actions)


def _parts(assignment: RoleAssignment) -> list[RoleAssignment]:
    """One action at a time; a built-in role that is not known, whole."""
    actions = [replace(assignment, actions=(one,), data_actions=()) for one in assignment.actions]
    data = [replace(assignment, actions=(), data_actions=(one,)) for one in assignment.data_actions]
    return [*actions, *data] or [assignment]


def _change(before: str, now: str) -> str:
    return f"`{before}` became `{now}`" if now else f"`{before}` was dropped"
