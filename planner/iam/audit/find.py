"""Walking what is audited: whose statements give an action, and a finding about one of them.  Judges nothing: what is allowed in the end says `witness`."""

from __future__ import annotations

from collections.abc import Iterator
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
    exact, wild = sorted_out(patterns)
    return action in exact or (bool(wild) and any(includes_action(pattern, action) for pattern in wild))


@lru_cache(maxsize=16384)
def sorted_out(patterns: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Exact names in lower case, the most of them, and those with wildcards: an audit asks for many actions and meets few."""
    wild = tuple(one for one in patterns if "*" in one or "?" in one)
    return frozenset(one.lower() for one in patterns if one not in wild), wild


def statements(subject: Subject, kind: PolicyKind = PolicyKind.IDENTITY) -> Iterator[Held]:
    """All statements of its policies of that kind."""
    return (
        (policy, statement) for policy in subject.policies if policy.kind is kind for statement in policy.statements
    )


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
    return Finding(
        rule="",
        level=Level.INFO,
        cloud=subject.cloud.value,
        identity=who(subject),
        origin=subject.origin,
        message=message,
        **fields,  # type: ignore[arg-type]
    )
