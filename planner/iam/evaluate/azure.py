"""Whether Azure role assignments allow an action at a scope: one assignment is enough, and its condition has to be true.

`not_actions` take away from their own role only; they deny nothing that another assignment gives.  An assignment reaches everything below its scope;
`ancestors` names scopes above the subscription (management groups), which no resource id says.  A condition that is not understood, or that asks for an
attribute that the request does not carry, lets nothing through, and neither does a built-in role that is not known (`planner.iam.roles`).  Deny assignments are not here.  Never held against live Azure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from planner.iam.evaluate.abac import AbacError, Asked, read
from planner.iam.evaluate.patterns import actions
from planner.iam.evaluate.verdict import Decision, Verdict
from planner.iam.roles import role_of
from planner.model.offer import Cloud
from planner.model.policy import RoleAssignment


def judge(
    assignments: Sequence[RoleAssignment],
    action: str,
    scope: str,
    *,
    data: bool = False,
    attributes: Mapping[str, str | tuple[str, ...]] | None = None,
    sub_operation: str = "",
    ancestors: Collection[str] = (),
) -> Verdict:
    """The verdict for one principal's assignments.

    data            a data action (what is in a blob) rather than one of management
    attributes      as a condition names them, without `@`: {"Resource[Microsoft.Storage/…/blobs:path]": "a/b"}
    sub_operation   `Blob.List` of a read that lists
    """
    carried = {key.lower(): (value,) if isinstance(value, str) else value for key, value in (attributes or {}).items()}
    asked = Asked(action=action, sub_operation=sub_operation, attributes=carried)
    missing: list[str] = []
    for assignment in assignments:
        if not reaches(assignment.scope, scope, ancestors):
            continue
        title = f"{assignment.role} at {assignment.scope}"
        role = _role(assignment)
        if role is None:
            missing.append(f"{title}: what the role holds is not known")
            continue
        if not _gives(role, action, data):
            continue
        try:
            answer = not assignment.condition or read(assignment.condition)(asked)
        except AbacError as error:
            missing.append(f"{title}: the condition is not understood ({error})")
            continue
        if answer:
            return Verdict(Decision.ALLOW, title)
        if answer is None:
            missing.append(f"{title}: the condition asks for what the request does not carry")
    return Verdict(Decision.IMPLICIT_DENY, "; ".join(["no assignment allows it", *missing]))


def reaches(scope: str, resource: str, ancestors: Collection[str] = ()) -> bool:
    """Whether an assignment at `scope` holds for the resource: Azure compares ids part by part, in any case of letters."""
    above = _parts(scope)
    below = _parts(resource)
    return (bool(scope) and below[: len(above)] == above) or above in [_parts(one) for one in ancestors]


def _parts(scope: str) -> list[str]:
    return [part for part in scope.lower().split("/") if part]


def _role(assignment: RoleAssignment) -> RoleAssignment | None:
    """The assignment with the actions of its role, where that is a built-in one."""
    if assignment.actions or assignment.data_actions:
        return assignment
    held = role_of(Cloud.AZURE, assignment.role)
    if held is None:
        return None
    return replace(assignment, actions=held.actions, not_actions=held.not_actions, data_actions=held.data_actions)


def _gives(role: RoleAssignment, action: str, data: bool) -> bool:
    given = role.data_actions if data else role.actions
    taken = role.not_data_actions if data else role.not_actions
    return actions(given).fullmatch(action) is not None and actions(taken).fullmatch(action) is None
