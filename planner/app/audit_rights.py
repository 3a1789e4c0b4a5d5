"""Rights of every cloud as rows with one form: what is explained, and what a change is told by.  Evaluates nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.iam.read.becoming import bounds_of, place_of
from planner.model.audit_report import Right
from planner.model.grants import Identity
from planner.model.policy import PolicyKind

if TYPE_CHECKING:
    from planner.model.policy import AwsPolicy, Subject

ATTACHED = "attached; what a policy that is managed elsewhere allows is not in this document"
_NODES = (Identity.NODE_DATA, Identity.NODE_CHECKPOINT)


def label(subject: Subject) -> str:
    """The word skyplan has for it, else its own name."""
    return subject.identity.value if subject.identity else subject.name


def rights_of(subject: Subject, *, limits: bool = True) -> Iterator[Right]:
    """One row per action (AWS, Azure, a custom role of Google's) or role.

    limits  rows also for what is denied and for what boundaries let through: dropping one of them widens
    """
    for policy in subject.policies:
        if policy.kind is PolicyKind.IDENTITY or (limits and policy.kind is not PolicyKind.TRUST):
            yield from _aws(subject, policy, limits=limits)
    for b in subject.bindings:
        bounds = (b.condition,) if b.condition else ()
        for action in b.permissions or (b.role,):
            yield _right(subject, b.role, action, (b.on,), bounds)
    for a in subject.assignments:
        without = tuple(f"not {one}" for one in (*a.not_actions, *a.not_data_actions))
        bounds = ((a.condition,) if a.condition else ()) + without
        for action in (*a.actions, *a.data_actions) or (a.role,):
            yield _right(subject, a.role, action, (a.scope,), bounds)
    for p in subject.permits:
        bounds = (("paths " + ", ".join(p.paths),) if p.paths else ()) + (("anonymous",) if p.anonymous else ())
        yield _right(subject, p.role, p.role, (p.on,), bounds)


def _aws(subject: Subject, policy: AwsPolicy, *, limits: bool) -> Iterator[Right]:
    if policy.kind is PolicyKind.IDENTITY and policy.name.startswith("arn:") and not policy.statements:
        right = _right(subject, short(policy.name), f"all of {policy.name}", (), ())
        yield replace(right, reason=ATTACHED)
    for number, s in enumerate(policy.statements, start=1):
        if s.effect != "Allow" and not limits:
            continue
        grant = f"{short(policy.name)}/{s.sid or f'statement {number}'}"
        actions = s.actions or tuple(f"all but {one}" for one in s.not_actions)
        resources = s.resources or tuple(f"all but {one}" for one in s.not_resources)
        for action in actions:
            said = action if s.effect == "Allow" else f"denied {action}"
            if policy.kind is not PolicyKind.IDENTITY:
                said = f"{policy.kind.value} {said}"
            yield _right(subject, grant, said, resources, bounds_of(s))


def limits_of(subject: Subject) -> Iterator[str]:
    """Boundaries by name, and each Deny in words."""
    for policy in subject.policies:
        if policy.kind in {PolicyKind.BOUNDARY, PolicyKind.SESSION}:
            yield f"within the {policy.kind.value} {short(policy.name)}"
        elif policy.kind is PolicyKind.IDENTITY:
            for s in policy.statements:
                if s.effect != "Allow":
                    actions = s.actions or (f"all but {', '.join(s.not_actions)}",)
                    on = s.resources or (f"all but {', '.join(s.not_resources)}",)
                    bounds = f" if {' and '.join(bounds_of(s))}" if s.tests else ""
                    yield f"never {', '.join(actions)} on {', '.join(on)}{bounds}"


def short(name: str) -> str:
    """A managed policy's ARN says where it is; its last part says which."""
    return name.rsplit("/", 1)[-1] if name.startswith("arn:") else name


def _right(subject: Subject, grant: str, action: str, resources: tuple[str, ...], bounds: tuple[str, ...]) -> Right:
    return Right(
        cloud=subject.cloud.value,
        subject=subject.name,
        place=place_of(subject),
        grant=grant,
        action=action,
        resources=resources,
        bounds=bounds,
    )


def boundary_rights(policy: AwsPolicy, subject: Subject) -> Iterator[Right]:
    """What a boundary lets through, and what it denies."""
    for right in _aws(subject, replace(policy, kind=PolicyKind.IDENTITY), limits=True):
        yield replace(right, subject=short(policy.name))


def node_part(right: Right) -> Identity:
    """Of a node's role, which of the two identities the right belongs to: its policies are named by them."""
    writes = Identity.NODE_CHECKPOINT.value in right.grant
    return Identity.NODE_CHECKPOINT if writes else Identity.NODE_DATA


def is_node(subject: Subject) -> bool:
    """A node's."""
    return subject.identity in _NODES
