"""Who may become whom, in one form for every cloud: trust policies (AWS), rights over a service account (Google), federated credentials (Azure, Nebius).

Reads what the readers found and judges nothing: whether a door is too wide is the rules' business.  Names alone do not say who is meant, since two
accounts may have identities of one name: where both origins tell their target, it has to be the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from planner.model.offer import Cloud
from planner.model.policy import Audited, PolicyKind, RoleBinding, Statement, Subject

#: predefined roles by which one acts as a service account, and what a custom one needs for it
_ROLES = frozenset(
    f"roles/iam.{name}"
    for name in ("workloadIdentityUser", "serviceAccountTokenCreator", "serviceAccountUser", "serviceAccountKeyAdmin")
)
_PERMISSIONS = frozenset(
    f"iam.serviceAccounts.{name}" for name in ("getAccessToken", "actAs", "signJwt", "signBlob", "implicitDelegation")
)
_ACCESS = re.compile(r"acc-.+?--(aws|gcp|azure|nebius)-(.+)")
_FOUNDATION = re.compile(r"fnd-(aws|gcp|azure|nebius)-(.+)")
_REGION = r"-[a-z]+[0-9]*(-[a-z0-9]+)*"


_MADE = re.compile(
    r"(?:^|\.)(?:aws_iam_(?:role|user|group)|google_service_account|azurerm_user_assigned_identity|"
    r"nebius_iam_v1_(?:service_account|group))\."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """One way to become an identity: whose (`Service ec2.amazonaws.com`), and under what conditions.

    holder  the one that it is for, where that is known here too
    """

    kind: str
    name: str
    bounds: tuple[str, ...] = ()
    holder: Subject | None = field(default=None, compare=False)

    def __str__(self) -> str:
        """`Federated X if …`."""
        return f"{self.kind} {self.name}" + (f" if {' and '.join(self.bounds)}" if self.bounds else "")


def doors(subject: Subject, audited: Audited) -> tuple[Door, ...]:
    """All ways to become it, each once."""
    return tuple(dict.fromkeys((*_trusted(subject, audited), *_bound(subject, audited), *_federated(subject, audited))))


def bounds_of(statement: Statement) -> tuple[str, ...]:
    """`ec2:InstanceType StringLike p5*`."""
    return tuple(f"{t.key} {t.operator} {', '.join(t.values)}" for t in statement.tests)


def place_of(subject: Subject) -> str:
    """Where it is: the stack or file, or the account of an ARN."""
    first = subject.origin.split(" ", 1)[0]
    parts = first.split(":")
    return f"account {parts[4]}" if first.startswith("arn:") and len(parts) > 4 and parts[4] else first  # noqa: PLR2004


def is_boundary(subject: Subject) -> bool:
    """Nobody, but a limit for others: a policy that stands by itself and gives nothing."""
    someone = subject.identity or is_home(subject) or subject.keys
    return not someone and bool(subject.policies) and all(p.kind is PolicyKind.BOUNDARY for p in subject.policies)


def is_door_only(subject: Subject) -> bool:
    """Someone from elsewhere, a workload or its pool, that is known here by what it may become and nothing else."""
    if subject.cloud is not Cloud.GCP or subject.identity is not None or not subject.bindings or subject.keys:
        return False
    return subject.name.startswith(("principal:", "principalSet:")) and all(map(_opens, subject.bindings))


def is_home(subject: Subject) -> bool:
    """Made where it was found, not only given a right there."""
    return bool(subject.of_kind(PolicyKind.TRUST)) or _MADE.search(subject.origin.rpartition(" ")[2]) is not None


def together(one: Subject, other: Subject) -> bool:
    """Whether both may be in one account: of one cloud and, where both say it, of one target."""
    if one.cloud is not other.cloud:
        return False
    here, there = (subject.origin.split(" ", 1)[0] for subject in (one, other))
    if here == there:
        return True
    places = [(_FOUNDATION.fullmatch(place), _ACCESS.fullmatch(place)) for place in (here, there)]
    (own, own_access), (its, its_access) = places
    if own and its:
        return False
    if own and its_access:
        return _of_target(own[2], its_access[2])
    if its and own_access:
        return _of_target(its[2], own_access[2])
    return True


def _of_target(target: str, place: str) -> bool:
    """`prod` of `prod-us-east-1`."""
    return place.startswith(target) and re.fullmatch(_REGION, place[len(target) :]) is not None


def _trusted(subject: Subject, audited: Audited) -> Iterator[Door]:
    for policy in subject.of_kind(PolicyKind.TRUST):
        for s in policy.statements:
            for kind, name in s.principals if s.effect == "Allow" else ():
                known = (o for o in audited.subjects if kind == "AWS" and names(name, o, _label(subject)))
                holder = next((o for o in known if together(subject, o)), None)
                yield Door(kind=kind, name=name, bounds=bounds_of(s), holder=holder)


def names(text: str, subject: Subject, label: str = "") -> bool:
    """Whether an ARN or a full name is that identity's; or a reference, of the document with that label, to the block that makes it."""
    if "${" in text:
        return label == _label(subject) and f"{{{subject.origin.partition(' ')[2]}." in text
    last = text.rsplit("/", 1)[-1]
    if subject.cloud is Cloud.GCP:
        return "serviceAccounts/" in text and last.split("@", 1)[0] == subject.name.split("@", 1)[0]
    return last == subject.name


def _label(subject: Subject) -> str:
    return subject.origin.partition(" ")[0]


def _opens(binding: RoleBinding) -> bool:
    on_account = "serviceAccounts/" in binding.on or "google_service_account." in binding.on
    return on_account and (binding.role in _ROLES or bool(_PERMISSIONS.intersection(binding.permissions)))


def _bound(subject: Subject, audited: Audited) -> Iterator[Door]:
    for other in audited.subjects if subject.cloud is Cloud.GCP else ():
        for binding in other.bindings:
            if _opens(binding) and names(binding.on, subject, _label(other)) and together(subject, other):
                bounds = (f"by {binding.role}", *((binding.condition,) if binding.condition else ()))
                kind, _, name = binding.member.partition(":")
                yield Door(kind=kind, name=name, bounds=bounds, holder=None if is_door_only(other) else other)


def _federated(subject: Subject, audited: Audited) -> Iterator[Door]:
    for provider in audited.providers:
        if provider.cloud is subject.cloud and provider.opens == subject.origin:
            audience = f"audience {', '.join(provider.audiences)}" if provider.audiences else ""
            bounds = tuple(filter(None, (provider.condition, audience)))
            yield Door(kind="token of", name=provider.issuer, bounds=bounds)
