"""Which statements of a subject give or refuse an action, looked up: an audit asks each subject for some hundred actions, and most have nothing to say to most.

Of statements only: whatever stands against one elsewhere says `witness`.  Nothing here outlives its subject's place in the table below, so that a
subject that is built anew is read anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from planner.iam.audit.find import Held, gives, sorted_out, statements, subjects
from planner.model.offer import Cloud
from planner.model.policy import Audited, AwsPolicy, PolicyKind, Statement, Subject

_IN_ACCOUNT: Final = re.compile(r"arn:[^:]*:[^:]*:[^:]*:(\d{12}):")
_WITHOUT_RIGHTS: Final = frozenset({PolicyKind.TRUST, PolicyKind.RESOURCE})
_CAPS: Final = (PolicyKind.BOUNDARY, PolicyKind.SESSION)
#: a statement with its place among the subject's, by which answers are ordered
_Placed = tuple[int, Held]


class _Shelf:
    """Statements by the actions that they name, by the services in which they have wildcards, and those that may give anything."""

    __slots__ = ("_answers", "_anything", "_exact", "_wild")

    def __init__(self, held: Iterator[Held]) -> None:
        self._answers: dict[str, list[Held]] = {}
        self._exact: dict[str, list[_Placed]] = {}
        self._wild: dict[str, list[_Placed]] = {}
        self._anything: list[_Placed] = []
        for placed in enumerate(held):
            self._put(placed)

    def _put(self, placed: _Placed) -> None:
        statement = placed[1][1]
        names, patterns = sorted_out(statement.actions)
        services = {service_of(pattern) for pattern in patterns}
        if statement.not_actions or "" in services:
            self._anything.append(placed)
            return
        for service in services:
            self._wild.setdefault(service, []).append(placed)
        for name in names:
            self._exact.setdefault(name, []).append(placed)

    def giving(self, action: str) -> Sequence[Held]:
        """In their order."""
        known = self._answers.get(action)
        if known is None:
            folded, service = _folded(action)
            exact, wild = self._exact.get(folded), self._wild.get(service)
            if not (exact or wild or self._anything):
                return ()
            found = dict(exact or ())
            for places in (wild or (), self._anything):
                found.update({at: held for at, held in places if at not in found and gives(held[1], folded)})
            known = self._answers[action] = [found[at] for at in sorted(found)]
        return known


@lru_cache(maxsize=16384)
def _folded(action: str) -> tuple[str, str]:
    """In lower case, and the service of it."""
    folded = action.lower()
    return folded, folded.partition(":")[0]


def service_of(pattern: str) -> str:
    """The one service that a pattern of actions is about, in lower case; "" where it may be any."""
    service, colon, _ = pattern.partition(":")
    return service.lower() if colon and not any(one in service for one in "*?$") else ""


class Rights:
    """What is asked of one subject again and again.

    policies  those that decide what it may do
    plain     nothing takes away of what its own policies give: no Deny, boundary or session
    account   which the policies are of, as far as they say: `*` reaches no other, and a Deny may name it; "" where they do not
    """

    __slots__ = ("_allows", "_denies", "_own", "account", "plain", "policies", "subject")

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.policies: tuple[AwsPolicy, ...] = tuple(one for one in subject.policies if one.kind not in _WITHOUT_RIGHTS)
        self._allows = {
            kind: _Shelf(held for held in statements(subject, kind) if held[1].effect == "Allow")
            for kind in {PolicyKind.IDENTITY, *(policy.kind for policy in subject.policies)}
        }
        self._own = self._allows[PolicyKind.IDENTITY]
        self._denies = _Shelf((p, one) for p in self.policies for one in p.statements if one.effect == "Deny")
        self.plain = all(
            policy.kind is PolicyKind.IDENTITY and all(one.effect == "Allow" for one in policy.statements)
            for policy in self.policies
        )
        named = (
            found[1]
            for policy in self.policies
            for statement in policy.statements
            for pattern in (*statement.resources, *statement.not_resources)
            if (found := _IN_ACCOUNT.match(pattern))
        )
        self.account = next(named, "")

    def allowing(self, action: str) -> Sequence[Held]:
        """The Allow statements of its own policies that give the action, in order, whatever stands against it elsewhere."""
        return self._own.giving(action)

    def bounding(self, action: str) -> list[Statement]:
        """What a boundary or a session allows of it."""
        caps = [self._allows[kind] for kind in _CAPS if kind in self._allows]
        return [statement for shelf in caps for _, statement in shelf.giving(action)]

    def denying(self, action: str) -> list[Statement]:
        """The Deny statements of any of its policies that name the action."""
        return [statement for _, statement in self._denies.giving(action)]


#: by the identity of a subject, which is kept with it so that no other takes its id
_KNOWN: Final[dict[int, Rights]] = {}
_MOST_KNOWN: Final = 8192


def rights(subject: Subject) -> Rights:
    """Of the subject; made once."""
    known = _KNOWN.get(id(subject))
    if known is None or known.subject is not subject:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        known = _KNOWN[id(subject)] = Rights(subject)
    return known


def allowing(subject: Subject, *actions: str) -> Sequence[Held]:
    """The Allow statements of its own policies that give the first of the actions that is given at all."""
    own = rights(subject)
    return next((held for action in actions if (held := own.allowing(action))), ())


def having(audited: Audited, *actions: str) -> Iterator[Subject]:
    """Subjects in AWS to whom some policy of theirs gives one of the actions: of the others there is nothing to ask."""
    return (one for one in subjects(audited, Cloud.AWS) if allowing(one, *actions))
