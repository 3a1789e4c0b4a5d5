"""Asking again what a cloud was too busy for: how often, and how long between.

Waits are drawn evenly from nothing up to a limit that doubles ("full jitter"), so that feeds that were throttled together do not come back together.  What the
cloud itself asks for (`Retry-After`) is waited instead; where it asks for longer than is bearable, asking ends at once.
Decides by the error's kind alone: `Unavailable` and `Busy` are asked again, a refusal is not.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from planner.model.errors import CloudError, Unavailable

T = TypeVar("T")


class Busy(Exception):
    """The cloud says how long to wait; `error` is what is told when asking ends."""

    def __init__(self, error: CloudError, after_seconds: float) -> None:
        super().__init__(str(error))
        self.error = error
        self.after_seconds = after_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """How a call is repeated.  The clock and the dice are given, so that tests wait for nothing.

    attempts        calls in all
    weary_attempts  calls in all after one was asked in vain to the end, until any is answered: a cloud that is not there has dozens of regions
    base_seconds    the limit of the first wait
    most_seconds    the limit of any drawn wait
    bear_seconds    the longest wait that a cloud may ask for
    draw            evenly from 0 to 1
    """

    attempts: int = 6
    weary_attempts: int = 2
    base_seconds: float = 0.5
    most_seconds: float = 20.0
    bear_seconds: float = 90.0
    pause: Callable[[float], None] = time.sleep
    draw: Callable[[], float] = random.random
    _weary: threading.Event = field(default_factory=threading.Event, init=False, repr=False, compare=False)

    def ask(self, call: Callable[[], T]) -> T:
        """The answer.  Raises CloudError: the last one, or one that asking again does not help."""
        left = min(self.attempts, self.weary_attempts) if self._weary.is_set() else self.attempts
        span = self.base_seconds
        while True:
            left -= 1
            try:
                answer = call()
            except Busy as busy:
                if left <= 0 or busy.after_seconds > self.bear_seconds:
                    self._weary.set()
                    raise busy.error from busy
                self.pause(max(busy.after_seconds, 0.0))
            except Unavailable:
                if left <= 0:
                    self._weary.set()
                    raise
                self.pause(self.draw() * min(self.most_seconds, span))
            else:
                self._weary.clear()
                return answer
            span *= 2
