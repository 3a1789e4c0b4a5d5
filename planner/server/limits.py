"""How often a caller may ask: token buckets, held in this process, bounded in number.

Decides who is over the limit.  With several replicas each counts for itself.  A caller is what the route says: a session, a seat, an address.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from planner.server.answers import TooMany

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

MAX_CALLERS: Final = 65_536
"""The longest unheard is forgotten, and starts with a full bucket again."""


class Limit:
    """`rate` a second for each caller, and `burst` at once."""

    def __init__(
        self, rate: float, burst: float, steady: Callable[[], float], *, max_callers: int = MAX_CALLERS
    ) -> None:
        self._rate = rate
        self._burst = max(1.0, burst)
        self._steady = steady
        self._max_callers = max_callers
        self._left: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def take(self, caller: Hashable) -> None:
        """Count one request.  Raises TooMany."""
        now = self._steady()
        left = self._refilled(caller, now)
        if left < 1:
            raise TooMany((1 - left) / self._rate)
        self._keep(caller, left - 1, now)

    def spend(self, caller: Hashable) -> None:
        """Count one that was let through."""
        now = self._steady()
        self._keep(caller, max(0.0, self._refilled(caller, now) - 1), now)

    def _keep(self, caller: Hashable, left: float, now: float) -> None:
        self._left[caller] = (left, now)
        self._left.move_to_end(caller)
        if len(self._left) > self._max_callers:
            self._left.popitem(last=False)

    def check(self, caller: Hashable) -> None:
        """Would one more be too many?  Counts nothing.  Raises TooMany."""
        left = self._refilled(caller, self._steady())
        if left < 1:
            raise TooMany((1 - left) / self._rate)

    def _refilled(self, caller: Hashable, now: float) -> float:
        found = self._left.get(caller)
        if found is None:
            return self._burst
        left, at = found
        return min(self._burst, left + (now - at) * self._rate)
