"""Who can do what, and why: each permission of an identity with the planned operation that needs it.

Operations come from the tables that the rights are made of, reasons of nodes' rights from the plans' grants.  Says what is known and judges nothing: a
right that nothing needs is rule 606's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from importlib import import_module
from typing import TYPE_CHECKING

from planner.app.audit_rights import boundary_rights, is_node, limits_of, node_part, rights_of, short
from planner.iam.read.becoming import doors, is_boundary, is_door_only, place_of
from planner.model.audit_report import Explanation, Right, Who
from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError
from planner.model.grants import CONTROL_IDENTITIES, Grant, Identity
from planner.model.policy import PolicyKind

if TYPE_CHECKING:
    from planner.app.audit_sources import Gathered
    from planner.model.control import Operation
    from planner.model.policy import Audited, Subject

_ENTRY = "ci"
_GIVES_NOTHING = "a permissions boundary: gives nobody a right, lets these through where another policy gives them"
_NODES = (Identity.NODE_DATA, Identity.NODE_CHECKPOINT)


def explain(name: str, gathered: Gathered) -> Explanation:
    """`name`: one of skyplan's identities, a subject's own name, or a boundary's.  Raises InputError (SKY-IAM-907) where nobody has it."""
    audited = gathered.audited
    asked = Identity(name) if name in set(Identity) else None
    people = [s for s in audited.subjects if not is_boundary(s) and not is_door_only(s)]
    subjects = [s for s in people if s.name == name or (asked is not None and _is(s, asked))]
    subjects = subjects or [s for s in people if name == _ENTRY and _is_entry(s)]
    if not subjects:
        if found := _boundary(name, audited):
            return found
        raise InputError([_nobody(name, asked, people, audited)])
    grants = _grants(gathered)
    rights: set[Right] = set()
    for subject in subjects:
        done = operations_of(subject)
        for right in rights_of(subject, limits=False):
            if asked in _NODES and is_node(subject) and node_part(right) is not asked:
                continue
            rights.add(_with_reasons(right, subject, audited, done, grants))
    who: dict[tuple[str, str, str], Who] = {}
    for subject in subjects:
        key = (subject.cloud.value, subject.name, place_of(subject))
        known = who.get(key) or Who(cloud=key[0], subject=key[1], place=key[2])
        trusted = sorted({*known.trusted, *map(str, doors(subject, audited))})
        limits = sorted({*known.limits, *limits_of(subject)})
        who[key] = replace(known, trusted=tuple(trusted), limits=tuple(limits))
    return Explanation(
        identity=name, rights=tuple(sorted(rights, key=_order)), who=tuple(who[key] for key in sorted(who))
    )


def _boundary(name: str, audited: Audited) -> Explanation | None:
    """A permissions boundary by its name: what it lets through, and whom it bounds."""
    rights: set[Right] = set()
    bounded: dict[tuple[str, str], set[str]] = {}
    for subject in audited.subjects:
        for policy in subject.of_kind(PolicyKind.BOUNDARY):
            if name not in {short(policy.name), policy.name}:
                continue
            held = bounded.setdefault((subject.cloud.value, place_of(subject)), set())
            if not is_boundary(subject):
                held.add(f"bounds {subject.name}")
            rights |= {replace(right, subject=name) for right in boundary_rights(policy, subject)}
    if not bounded:
        return None
    nobody = ("bounds nobody that was read here",)
    who = [
        Who(cloud=cloud, subject=name, place=place, limits=(_GIVES_NOTHING, *(sorted(held) or nobody)))
        for (cloud, place), held in sorted(bounded.items())
    ]
    return Explanation(identity=name, rights=tuple(sorted(rights, key=_order)), who=tuple(who))


def _nobody(name: str, asked: Identity | None, people: Iterable[Subject], audited: Audited) -> Diagnostic:
    known = {s.name for s in people} | {s.identity.value for s in people if s.identity}
    known |= {_ENTRY for s in people if _is_entry(s)}
    known |= {short(p.name) for s in audited.subjects for p in s.of_kind(PolicyKind.BOUNDARY)}
    hint = f"known here: {', '.join(sorted(known))}" if known else "nothing that was read holds rights"
    if asked in CONTROL_IDENTITIES:
        hint += (
            "; skyplan's own identities are known where skyplan.yaml says `foundation.ci` or the target's `foundation`"
        )
    return Diagnostic(code="SKY-IAM-907", summary=f"no identity `{name}` was found", hint=hint)


def _is_entry(subject: Subject) -> bool:
    """The role by which a pipeline becomes the control identities; where clouds need none, there is none."""
    return subject.origin.startswith("fnd-") and subject.origin.endswith(" aws_iam_role.ci")


def _is(subject: Subject, asked: Identity) -> bool:
    return subject.identity is asked or (asked in _NODES and is_node(subject))


def _order(right: Right) -> tuple[str, str, str, str, str, tuple[str, ...]]:
    return (right.cloud, right.subject, right.place, right.grant, right.action, right.resources)


def operations_of(subject: Subject) -> tuple[Operation, ...]:
    """What skyplan does as that identity in that cloud."""
    if subject.identity is None or is_node(subject):
        return ()
    table: Sequence[Operation] = import_module(f"planner.iam.operations.{subject.cloud.value}").OPERATIONS
    return tuple(o for o in table if o.identity is subject.identity)


def _with_reasons(
    right: Right, subject: Subject, audited: Audited, done: Sequence[Operation], grants: Sequence[Grant]
) -> Right:
    if right.reason:
        return right
    if is_node(subject):
        return replace(right, reason=_reason(right, grants))
    needed = dict.fromkeys(said(o) for o in done if any(_takes_in(right.action, a) for a in o.actions))
    used: bool | None = None
    if subject.identity is not None:
        planned = audited.needs.get((subject.identity, subject.cloud))
        if planned is not None:
            used = any(_takes_in(right.action, action) for action in planned)
    return replace(right, needed_by=tuple(needed), used=used)


def said(operation: Operation) -> str:
    """`create aws_instance (compute)`."""
    return f"{operation.step.value} {operation.resource}" + (f" ({operation.stack})" if operation.stack else "")


def _takes_in(pattern: str, action: str) -> bool:
    return fnmatchcase(action.lower(), pattern.lower())


def _grants(gathered: Gathered) -> tuple[Grant, ...]:
    return tuple(dict.fromkeys(g for s in gathered.plans for found in s.plan.grants.values() for g in found))


def _reason(right: Right, grants: Iterable[Grant]) -> str:
    """Of the grant of that identity whose place the right names, the longest first."""
    text = " ".join((*right.resources, *right.bounds, right.grant))
    part = node_part(right)
    best: tuple[int, str] = (0, "")
    for grant in grants:
        place = grant.resource.split("://", 1)[-1].rstrip("/")
        bucket, _, prefix = place.partition("/")
        fits = bucket in text and (not prefix or prefix in text)
        if grant.identity is part and fits:
            best = max(best, (len(place), f"{grant.reason}: {grant.resource}"))
    return best[1]
