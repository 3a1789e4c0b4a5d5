"""Rule 606, the check: rights of skyplan's own identities that no planned operation needs.  Knows no operation itself: `Audited.needs` names them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from planner.iam.audit.find import names_action, of_right, of_statement, statements, who
from planner.iam.audit.grown import listed
from planner.iam.audit.guards import left
from planner.iam.audit.lines import without, written
from planner.iam.audit.patterns import includes_action
from planner.model.finding import Finding
from planner.model.policy import Audited, Statement, Subject

Needs = Mapping[str, str]


def unused(audited: Audited) -> Iterator[Finding]:
    """606."""
    for subject in audited.subjects:
        needs = audited.needs.get((subject.identity, subject.cloud)) if subject.identity else None
        if needs is None:
            continue
        yield from _statements(subject, needs)
        yield from _bindings(subject, needs)
        yield from _assignments(subject, needs)
        for permit in subject.permits:
            if permit.role not in needs:
                fix = f"drop the permit of {permit.role}"
                yield of_right(subject, permit, _words(subject, (permit.role,)), action=permit.role, fix=fix)


def _statements(subject: Subject, needs: Needs) -> Iterator[Finding]:
    for policy, statement in statements(subject):
        idle = tuple(one for one in statement.actions if not any(names_action(one, need) for need in needs))
        idle = tuple(one for one in idle if _left(subject, statement, one))
        if statement.effect == "Allow" and idle:
            fix = without(statement, idle)
            message = _words(subject, idle)
            yield of_statement(subject, (policy, statement), message, action=", ".join(idle), fix=fix)


def _left(subject: Subject, statement: Statement, action: str) -> bool:
    return any(left(subject, statement, action, one) for one in statement.resources or ("*",))


def _bindings(subject: Subject, needs: Needs) -> Iterator[Finding]:
    for binding in subject.bindings:
        idle = tuple(one for one in binding.permissions if one not in needs)
        if idle:
            kept = replace(binding, permissions=tuple(one for one in binding.permissions if one in needs))
            fix = f"write instead:\n{written(kept)}" if kept.permissions else f"drop {binding.role}"
            yield of_right(subject, binding, _words(subject, idle), action=", ".join(idle), fix=fix)


def _assignments(subject: Subject, needs: Needs) -> Iterator[Finding]:
    for assignment in subject.assignments:
        every = (*assignment.actions, *assignment.data_actions)
        idle = tuple(one for one in every if not any(includes_action(one, need) for need in needs))
        if idle:
            kept = replace(
                assignment,
                actions=tuple(one for one in assignment.actions if one not in idle),
                data_actions=tuple(one for one in assignment.data_actions if one not in idle),
            )
            some = kept.actions or kept.data_actions
            fix = f"write instead:\n{written(kept)}" if some else f"drop {assignment.role}"
            yield of_right(subject, assignment, _words(subject, idle), action=", ".join(idle), fix=fix)


def _words(subject: Subject, idle: tuple[str, ...]) -> str:
    return f"no planned operation of {who(subject)} needs {listed(idle)}"
