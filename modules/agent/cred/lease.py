"""A data credential as this node holds it: for which prefix, from when until when by this node's own clock.  In memory only; its text shows no secret."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

SHAPES = ("aws", "gcp", "azure", "nebius")
"""A lease's secret stands under one of these, as docs/node-protocol.md has it."""


@dataclass(frozen=True)
class Wanted:
    """A grant of the plan that this node keeps a lease of.  `grant` is its name in paths, files and profiles."""

    grant: str
    uri: str
    access: str


@dataclass(frozen=True)
class Lease:
    """What the broker answered.  Seconds since 1970."""

    id: str
    uri: str
    access: str
    begins: float
    ends: float
    shape: str
    secret: Mapping[str, str] = field(repr=False)
    document: Mapping[str, Any] = field(repr=False)

    def left(self, now: float) -> float:
        """Seconds of life."""
        return self.ends - now

    @property
    def ends_text(self) -> str:
        """As SDKs read it."""
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.ends))


def read(document: Mapping[str, Any], asked_at: float) -> Lease:
    """A broker's answer to what was asked at this node's `asked_at`.  Raises ValueError; the message holds none of the answer.

    The broker's clock is not this node's: what counts is how long the lease is, from the moment it was asked for.
    """
    try:
        life = _seconds(document["expires_at"]) - _seconds(document["issued_at"])
        shape = next(name for name in SHAPES if document.get(name))
        secret = {str(name): str(value) for name, value in document[shape].items() if value}
        lease = Lease(
            id=str(document["id"]),
            uri=str(document["uri"]),
            access=str(document["access"]),
            begins=asked_at,
            ends=asked_at + life,
            shape=shape,
            secret=secret,
            document=document,
        )
    except (KeyError, TypeError, AttributeError, StopIteration, ValueError) as error:
        raise ValueError(f"the broker's answer is no lease: {type(error).__name__}") from None
    if life <= 0 or not secret:
        raise ValueError("the broker's answer is no lease: it is empty or over")
    return lease


def _seconds(text: str) -> float:
    """Of an ISO time in UTC: `fromisoformat` takes no Z before Python 3.11."""
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))  # noqa: FURB162
    if moment.tzinfo is None:
        raise ValueError
    return moment.timestamp()
