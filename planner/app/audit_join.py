"""Rights of one identity that stand in several places, put together: a policy that one stack gives to another's role, a boundary named by its ARN alone.

Two rights that are harmless apart may be an escalation together, so the rules must see them on one subject.  Joins only where it is certain whose they are:
two accounts may have roles of one name.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.model.offer import Cloud
from planner.model.policy import Audited, AwsPolicy, PolicyKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.model.policy import Subject

_Key = tuple[Cloud, str]


def connected(audited: Audited) -> Audited:
    """With what belongs together together."""
    texts = _texts(audited)
    subjects = [_filled(subject, texts) for subject in audited.subjects]
    homes: defaultdict[_Key, list[Subject]] = defaultdict(list)
    for subject in subjects:
        if subject.of_kind(PolicyKind.TRUST):
            homes[_key(subject)].append(subject)
    given: defaultdict[_Key, list[Subject]] = defaultdict(list)
    left: list[Subject] = []
    for subject in subjects:
        apart = subject.cloud is Cloud.AWS and not subject.of_kind(PolicyKind.TRUST) and not subject.keys
        if apart and len(homes.get(_key(subject), ())) == 1:
            given[_key(subject)].append(subject)
        else:
            left.append(subject)
    return replace(audited, subjects=tuple(_with(s, given[_key(s)]) if _key(s) in given else s for s in left))


def _key(subject: Subject) -> _Key:
    return (subject.cloud, subject.name)


def _with(subject: Subject, others: list[Subject]) -> Subject:
    policies = dict.fromkeys((*subject.policies, *(policy for other in others for policy in other.policies)))
    return replace(subject, policies=tuple(policies))


def _texts(audited: Audited) -> Mapping[str, AwsPolicy]:
    """Managed policies by ARN, where what they say is known."""
    return {p.name: p for s in audited.subjects for p in s.policies if p.name.startswith("arn:") and p.statements}


def _filled(subject: Subject, texts: Mapping[str, AwsPolicy]) -> Subject:
    """A policy that is only named, with its statements where another source has them."""
    if all(policy.statements or policy.name not in texts for policy in subject.policies):
        return subject
    policies = (
        p if p.statements or p.name not in texts else replace(texts[p.name], kind=p.kind) for p in subject.policies
    )
    return replace(subject, policies=tuple(policies))
