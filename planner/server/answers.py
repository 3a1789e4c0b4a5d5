"""Refusals as HTTP answers: word, status, code.  The one table that all routes answer by (docs/node-protocol.md)."""

from __future__ import annotations

import json
import random
from typing import Final

from planner.model.runtime import Refusal, Refused

JSON: Final = b"application/json"
#: word -> (status, code): `Refusal`, and what the server itself says
TABLE: Final[dict[str, tuple[int, str]]] = {
    Refusal.MALFORMED: (400, "SKY-RUN-526"),
    Refusal.UNKNOWN: (401, "SKY-RUN-516"),
    Refusal.IDENTITY: (403, "SKY-RUN-516"),
    Refusal.REPLAYED: (403, "SKY-RUN-516"),
    Refusal.FENCED: (409, "SKY-RUN-509"),
    Refusal.KEY: (409, "SKY-RUN-516"),
    Refusal.ENDED: (410, "SKY-RUN-509"),
    Refusal.EARLY: (425, "SKY-RUN-510"),
    "unsigned": (401, "SKY-RUN-521"),
    "denied": (403, "SKY-RUN-521"),
    "not-found": (404, "SKY-RUN-526"),
    "wrong-method": (405, "SKY-RUN-526"),
    "slow": (408, "SKY-RUN-510"),
    "no-length": (411, "SKY-RUN-526"),
    "too-large": (413, "SKY-RUN-526"),
    "too-many": (429, "SKY-RUN-510"),
    "failed": (500, "SKY-RUN-510"),
    "busy": (503, "SKY-RUN-510"),
}
RETRIED: Final = ("too-many", "busy", Refusal.EARLY)


class Busy(Exception):
    """The database, or what stands before it, cannot take this now: 503.  Its words are for people and hold nothing of the request."""


class TooMany(Exception):
    """429.  `after_seconds`: when it may be tried again."""

    def __init__(self, after_seconds: float) -> None:
        super().__init__("too many requests")
        self.after_seconds = after_seconds


class Answered(Exception):
    """Ends a request with a word of the table."""

    def __init__(self, word: str, reason: str) -> None:
        super().__init__(f"{word}: {reason}")
        self.word = word
        self.reason = reason


def word_of(error: Exception) -> tuple[str, str]:
    """(word, reason) of an exception that routes raise."""
    match error:
        case Refused():
            return error.word, error.reason
        case Answered():
            return error.word, error.reason
        case TooMany():
            return "too-many", "more requests than are allowed; wait as long as Retry-After says"
        case Busy():
            return "busy", str(error)
        case _:
            return "failed", "the server made an error; its log names it"


def status_of(word: str) -> int:
    """The HTTP status of a word."""
    return TABLE[word][0]


def document(word: str, reason: str) -> dict[str, str]:
    """The body of a refusal."""
    return {"error": str(word), "code": TABLE[word][1], "reason": reason}


def encoded(word: str, reason: str) -> bytes:
    """The same as bytes."""
    return json.dumps(document(word, reason)).encode()


def retry_after(word: str, at_least: float = 0.0) -> str | None:
    """Seconds after which it is worth trying again, spread so that thousands of agents do not come back at once; None where it is no use."""
    if word not in RETRIED:
        return None
    return str(max(1, round(at_least)) + random.randrange(5))  # noqa: S311 - spreads load, keeps no secret
