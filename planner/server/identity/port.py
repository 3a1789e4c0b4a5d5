"""How a platform's words about a machine are judged: one `Verifier` a scheme, and the one way out that they have to a platform's own servers.

Decides how a refusal reads: what is wrong, never the proof's own text.  Not which machine a seat needs: that is the record's and the broker's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NoReturn, Protocol

from planner.model.diagnostic import Diagnostic
from planner.model.errors import Unavailable
from planner.model.runtime import NodeIdentity, Refusal, Refused

SKEW_SECONDS: Final = 60
"""How far a platform's clock and ours may be apart."""


class Verifier(Protocol):
    """Judges one scheme."""

    def verify(self, value: Any, now: datetime) -> NodeIdentity:
        """Who the machine is, by the proof's `value`, whatever its type.

        Raises Refused (identity) where the proof does not hold; Unavailable where the platform could not be asked: not the node's fault, it tries again.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request to a platform."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back, whatever its status."""

    status: int
    body: bytes


class Fetch(Protocol):
    """Asks: https, no redirects, bounded in time and size.  Raises Unavailable where there is no answer."""

    def __call__(self, asked: Asked) -> Answer:
        """The answer."""
        ...


def refuse(reason: str) -> NoReturn:
    """The proof does not hold.  `reason` holds nothing of it but names that are no secret."""
    raise Refused(Refusal.IDENTITY, reason)


def unavailable(what: str) -> Unavailable:
    """The platform could not be asked."""
    return Unavailable([Diagnostic(code="SKY-RUN-516", summary=what)])
