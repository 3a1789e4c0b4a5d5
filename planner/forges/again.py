"""How long a forge is waited for.  Clock, dice and sleep are given, so that tests wait for nothing.

Waits are drawn evenly from nothing up to a limit that doubles ("full jitter").  What the forge itself asks for (`Retry-After`, GitHub's `x-ratelimit-reset`) is
waited instead, where it is bearable: a pipeline that sleeps for an hour costs more than a comment.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How a call is repeated.

    attempts        calls in all
    base_seconds    the limit of the first wait
    most_seconds    the limit of any drawn wait
    bear_seconds    the longest wait that a forge may ask for
    now             seconds since 1970
    draw            evenly from 0 to 1
    """

    attempts: int = 5
    base_seconds: float = 1.0
    most_seconds: float = 30.0
    bear_seconds: float = 90.0
    now: Callable[[], float] = time.time
    pause: Callable[[float], None] = time.sleep
    draw: Callable[[], float] = random.random

    def wait(self, attempt: int, asked: float | None = None) -> bool:
        """Before the call after `attempt` (from 1).  False, at once, where there is none or the forge asks for too long."""
        if attempt >= self.attempts or (asked is not None and asked > self.bear_seconds):
            return False
        limit = min(self.most_seconds, self.base_seconds * 2 ** (attempt - 1))
        self.pause(limit * self.draw() if asked is None else max(asked, 0.0) + self.draw())
        return True

    def asked(self, headers: Mapping[str, str]) -> float | None:
        """Seconds that the answer's headers ask for; None where they ask for none."""
        after = headers.get("Retry-After", "").strip()
        if after.isascii() and after.isdigit():
            return float(after[:9])
        if after:
            try:
                return max(0.0, parsedate_to_datetime(after).timestamp() - self.now())
            except (ValueError, OverflowError):
                return None
        reset = headers.get("x-ratelimit-reset", headers.get("RateLimit-Reset", "")).strip()
        left = headers.get("x-ratelimit-remaining", headers.get("RateLimit-Remaining", "")).strip()
        if left == "0" and reset.isascii() and reset.isdigit():
            return max(0.0, float(reset[:12]) - self.now())
        return None
