"""Brings the spool's items to the control plane, whenever it answers: a thread that joins, reports and waits.  Nothing it meets harms the job.

Growing, random pauses between attempts, at least as long as a Retry-After asks.  A report that is `malformed` is cut in halves until the one item is found that
the other side cannot take; that one is left out and told, for it must not hold up all after it.  `fenced` and `ended` are handed on and end this thread.
"""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING, Any, cast

from .errors import Away, Denied

if TYPE_CHECKING:
    from collections.abc import Callable

    from .client import Joined, Plane
    from .spool import Spool

MOST_ITEMS = 500
MOST_BYTES = 200 * 1024
"""Of lines in the spool; the report around them is smaller than the 256 KiB that are taken."""
IDLE_SECONDS = 30.0
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0


class Reporter:
    """`requests` and `final` are called from this thread."""

    def __init__(
        self,
        plane: Plane,
        spool: Spool,
        *,
        requests: Callable[[list[Any]], None],
        final: Callable[[str, str], None],
        told: Callable[[str], None],
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._plane, self._spool = plane, spool
        self._requests, self._final, self._told, self._draw = requests, final, told, draw
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._failures = 0
        self._words = ""
        self._most = MOST_ITEMS
        self._sent = 0
        self._thread = threading.Thread(target=self._run, name="reports", daemon=True)
        self.first = threading.Event()
        """Joined, or told that the run is over."""
        self.over = ""
        self._greeted: Joined | None = None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """There is something to report."""
        self._wake.set()

    def drain(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Wait until all is delivered, or the time or the run is over, or `until`; whether it is delivered."""
        ends = time.monotonic() + seconds
        while not self._spool.empty and not self.over and time.monotonic() < ends and not until():
            self.wake()
            time.sleep(0.05)
        return self._spool.empty

    def stop(self) -> None:
        """End, after the exchange that is under way."""
        self._ended.set()
        self._wake.set()

    def step(self) -> float:
        """One exchange; for how long to wait then.  The wait may be cut short by `wake` only while nothing failed."""
        try:
            more = self._exchange()
        except Away as away:
            return self._failed(str(away), away.retry_after)
        except Denied as denied:
            if denied.final:
                self.over = denied.word
                self.first.set()
                self._final(denied.word, str(denied))
                return 0.0
            if denied.word == "malformed" and self._left_out(denied):
                return 0.0
            return self._failed(f"{denied.code} {denied}".strip(), None)
        except Exception as error:  # noqa: BLE001 - a disk that is full, a token file that is gone: a thread that ended would be silent for good
            return self._failed(f"{type(error).__name__}: {error}", None)
        self._failures, self._words = 0, ""
        return 0.0 if more else IDLE_SECONDS

    def _exchange(self) -> bool:
        self._sent = 0
        joined = self._plane.keep()
        if joined is not self._greeted:
            self._greeted = joined
            if joined.stream == self._spool.stream:
                self._spool.taken(joined.through)
            self.first.set()
        items = self._spool.batch(self._most, MOST_BYTES)
        if not items:
            return False
        self._sent = len(items)
        reply = self._plane.report(self._spool.stream, items)
        through = reply.get("through")
        if type(through) is not int or through < items[0]["seq"]:
            raise Away("the control plane answered a report without taking it")
        self._spool.taken(through)
        if len(items) == self._most:
            self._most = min(self._most * 2, MOST_ITEMS)
        requests = reply.get("requests")
        if isinstance(requests, list) and requests:
            self._requests(cast("list[Any]", requests))
        return len(items) >= self._most or through < items[-1]["seq"]

    def _left_out(self, denied: Denied) -> bool:
        """Whether there is something to try at once: fewer items, or the ones after the item that cannot be taken."""
        if not self._sent:
            return False  # it was not a report
        if self._sent > 1:
            self._most = self._sent // 2
            return True
        items = self._spool.batch(1, MOST_BYTES)
        self._told(f"a report was left out, the control plane cannot take it: {items[0]['kind']}: {denied}")
        self._spool.taken(items[0]["seq"])
        return True

    def _failed(self, words: str, retry_after: float | None) -> float:
        self._failures += 1
        if words != self._words:  # once, not every minute for days
            self._words = words
            self._told(f"SKY-RUN-510: {words}" if not words.startswith("SKY-") else words)
        longest = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(self._failures - 1, 10))
        pause = longest * (0.5 + self._draw() / 2)
        return pause if retry_after is None else max(pause, retry_after * (1 + self._draw() / 4))

    def _run(self) -> None:
        while not self._ended.is_set() and not self.over:
            pause = self.step()
            if self._failures:
                self._ended.wait(pause)  # being woken does not make the control plane answer sooner
            elif pause:
                self._wake.wait(pause)
                self._wake.clear()
