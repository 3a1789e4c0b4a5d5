"""Walking what is audited: whose statements give an action, and a finding about one of them.  Judges nothing: what is allowed in the end says `witness`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from planner.iam.audit.lines import compact
from planner.iam.audit.patterns import includes_action
from planner.model.finding import Finding, Level
from planner.model.grants import Identity
from planner.model.offer import Cloud
from planner.model.policy import (
    Audited,
    AwsPolicy,
    Permit,
    PolicyKind,
    RoleAssignment,
    RoleBinding,
    Statement,
    Subject,
)

NODES = frozenset({Identity.NODE_DATA, Identity.NODE_CHECKPOINT})
#: a policy and one statement of it
Held = tuple[AwsPolicy, Statement]


def subjects(audited: Audited, cloud: Cloud) -> Iterator[Subject]:
    """Who holds rights in that cloud."""
    return (subject for subject in audited.subjects if subject.cloud is cloud)


def who(subject: Subject) -> str:
    """The word skyplan has for it, or its own name."""
    return subject.identity.value if subject.identity else subject.name


def names_action(pattern: str, action: str) -> bool:
    """A pattern of actions takes in this one."""
    return _names((pattern,), action.lower())


def gives(statement: Statement, action: str) -> bool:
    """Its actions take in this one, by name, by wildcard or because it is not excluded."""
    if statement.not_actions:
        return not _names(statement.not_actions, action.lower())
    return _names(statement.actions, action.lower())


def _names(patterns: tuple[str, ...], action: str) -> bool:
    exact, wild = _sorted_out(patterns)
    return action in exact or (bool(wild) and any(includes_action(pattern, action) for pattern in wild))


@lru_cache(maxsize=16384)
def _sorted_out(patterns: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Exact names in lower case, the most of them, and those with wildcards: an audit asks for many actions and meets few."""
    wild = tuple(one for one in patterns if "*" in one or "?" in one)
    return frozenset(one.lower() for one in patterns if one not in wild), wild


def statements(subject: Subject, kind: PolicyKind = PolicyKind.IDENTITY) -> Iterator[Held]:
    """All statements of its policies of that kind."""
    return (
        (policy, statement) for policy in subject.policies if policy.kind is kind for statement in policy.statements
    )


def allowing(subject: Subject, action: str, kind: PolicyKind = PolicyKind.IDENTITY) -> list[Held]:
    """The Allow statements that give the action, in order, whatever stands against it elsewhere."""
    exact, wild = _index(subject, kind)
    found = [*exact.get(action.lower(), ()), *((at, held) for at, held in wild if gives(held[1], action))]
    return (
        [held for _, held in sorted(found, key=lambda one: one[0])] if len(found) > 1 else [held for _, held in found]
    )


_Placed = tuple[int, Held]
_Index = tuple[dict[str, list[_Placed]], list[_Placed]]
#: by the identity of a subject, which is kept with it so that no other takes its id: an audit asks each for some hundred actions
_INDEXES: dict[tuple[int, PolicyKind], tuple[Subject, _Index]] = {}
_MOST_INDEXES = 8192


def _index(subject: Subject, kind: PolicyKind) -> _Index:
    """Its Allow statements by the actions that they name, and those with a wildcard or an exclusion."""
    known = _INDEXES.get((id(subject), kind))
    if known is not None and known[0] is subject:
        return known[1]
    exact: dict[str, list[_Placed]] = {}
    wild: list[_Placed] = []
    for at, held in enumerate(statements(subject, kind)):
        if held[1].effect == "Allow":
            names, patterns = _sorted_out(held[1].actions)
            if patterns or held[1].not_actions:
                wild.append((at, held))
            else:
                for name in names:
                    exact.setdefault(name, []).append((at, held))
    if len(_INDEXES) >= _MOST_INDEXES:
        _INDEXES.clear()
    _INDEXES[id(subject), kind] = (subject, (exact, wild))
    return exact, wild


def denying(subject: Subject, action: str) -> list[Statement]:
    """The Deny statements of any of its policies that name the action."""
    return [
        statement
        for policy in subject.policies
        if policy.kind not in {PolicyKind.TRUST, PolicyKind.RESOURCE}
        for statement in policy.statements
        if statement.effect == "Deny" and gives(statement, action)
    ]


def label(policy: AwsPolicy, statement: Statement) -> str:
    """`node-data/Read1`, or by its place where it has no Sid."""
    name = statement.sid or f"statement {policy.statements.index(statement) + 1}"
    return f"{policy.name}/{name}"


def of_statement(
    subject: Subject,
    held: Held,
    message: str,
    *,
    action: str = "",
    resource: str = "",
    fix: str = "",
    also: tuple[Held, ...] = (),
) -> Finding:
    """About one statement, or one with others that it is dangerous together with (`also`)."""
    policy, statement = held
    shown = dict.fromkeys(compact(one) for one in (statement, *(other for _, other in also)))
    return of_subject(
        subject,
        message,
        grant=label(policy, statement),
        action=action,
        resource=resource,
        evidence="\n".join(shown),
        fix=fix,
        location=statement.location or policy.location or subject.location,
    )


def of_right(
    subject: Subject,
    right: RoleBinding | RoleAssignment | Permit,
    message: str,
    *,
    action: str = "",
    fix: str = "",
) -> Finding:
    """About one role that is given on one thing."""
    place = right.scope if isinstance(right, RoleAssignment) else right.on
    return of_subject(
        subject,
        message,
        grant=right.role,
        action=action,
        resource=place,
        evidence=compact(right),
        fix=fix,
        location=right.location or subject.location,
    )


def of_subject(subject: Subject, message: str, **fields: object) -> Finding:
    """About a subject.  Rule and level are the registry's to stamp on."""
    made = Finding(
        rule="",
        level=Level.INFO,
        cloud=subject.cloud.value,
        identity=who(subject),
        origin=subject.origin,
        message=message,
    )
    return replace(made, **fields)  # type: ignore[arg-type]
