"""Rights of one identity that stand in several places, put together: a policy that one stack gives to another's role, a boundary named by its ARN alone.

Two rights that are harmless apart may be an escalation together, so the rules must see them on one subject.  Joins only where it is certain whose they are:
two accounts may have roles of one name.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.iam.read.becoming import is_home, together
from planner.model.offer import Cloud
from planner.model.policy import Audited, AwsPolicy, PolicyKind, Statement

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.model.policy import Subject

_Key = tuple[Cloud, str]
_ANYTHING = Statement(sid="NotRead", actions=("*",), resources=("*",))


def filled(audited: Audited) -> Audited:
    """Boundaries that are only named, with their statements where another source has them: what a role can really do."""
    return _with_boundaries(audited, {p.name: p for s in audited.subjects for p in s.policies if p.statements})


def opened(audited: Audited) -> Audited:
    """Boundaries that are only named hold nothing back: for a comparison, which tells a change of a shared one once, where it stands."""
    return _with_boundaries(audited, {})


def _with_boundaries(audited: Audited, texts: Mapping[str, AwsPolicy]) -> Audited:
    """What is not known may let everything through: no finding may be missed for it."""

    def of(policy: AwsPolicy) -> AwsPolicy:
        if policy.kind is not PolicyKind.BOUNDARY or policy.statements:
            return policy
        return replace(policy, statements=texts[policy.name].statements if policy.name in texts else (_ANYTHING,))

    subjects = (
        replace(s, policies=tuple(map(of, s.policies))) if s.of_kind(PolicyKind.BOUNDARY) else s
        for s in audited.subjects
    )
    return replace(audited, subjects=tuple(subjects))


def without_unknown(audited: Audited) -> Audited:
    """As `filled`, with nothing said of what is not known: for a comparison with what really is there."""
    texts = {p.name: p for s in audited.subjects for p in s.policies if p.statements}
    known = (
        replace(
            s,
            policies=tuple(
                replace(texts[p.name], kind=p.kind) if p.name in texts and not p.statements else p for p in s.policies
            ),
        )
        for s in audited.subjects
    )
    return replace(audited, subjects=tuple(known))


def connected(audited: Audited) -> Audited:
    """What other sources give a role, as the role's own."""
    subjects = audited.subjects
    homes: defaultdict[_Key, list[Subject]] = defaultdict(list)
    for subject in subjects:
        if is_home(subject):  # also where its trust could not be read
            homes[_key(subject)].append(subject)
    given: defaultdict[tuple[str, str], list[Subject]] = defaultdict(list)
    left: list[Subject] = []
    for subject in subjects:
        apart = subject.cloud is Cloud.AWS and not is_home(subject) and not subject.keys
        where = [home for home in homes.get(_key(subject), ()) if together(subject, home)] if apart else []
        if len(where) == 1:
            given[where[0].origin, where[0].name].append(subject)
        else:
            left.append(subject)
    return replace(audited, subjects=tuple(_with(s, given.get((s.origin, s.name), [])) for s in left))


def _key(subject: Subject) -> _Key:
    return (subject.cloud, subject.name)


def _with(subject: Subject, others: list[Subject]) -> Subject:
    if not others:
        return subject
    policies = dict.fromkeys((*subject.policies, *(policy for other in others for policy in other.policies)))
    return replace(subject, policies=tuple(policies))
