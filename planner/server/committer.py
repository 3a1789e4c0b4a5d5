"""Group commit: reports that arrive while one transaction is written go into the next one together.

Decides how many reports share a transaction and when there are too many waiting.  A report is answered only after its commit: an agent drops from its
spool what was answered, so nothing that was answered may be lost.  One thread writes: a record has one writer at a time anyway (SQLite), and with
PostgreSQL one is fast enough.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from time import perf_counter
from typing import TYPE_CHECKING, Final

from planner.model.runtime import Delivered, Report, Seat
from planner.server.answers import Busy
from planner.server.trouble import unavailable

if TYPE_CHECKING:
    from planner.server.log import Log
    from planner.server.metrics import Metrics

MAX_REPORTS: Final = 256
MAX_ITEMS: Final = 2000
"""In one transaction, so that it takes some 20 ms."""
MAX_WAITING_BYTES: Final = 32 * 1024 * 1024
"""Bodies that wait; beyond it agents are told to come later."""
PATIENCE_SECONDS: Final = 20.0
"""After it a caller is told that we are busy.  Its report may be written all the same: sending it again changes nothing."""

Deliver = Callable[[Sequence[Report], datetime], Sequence[Delivered]]


@dataclass(slots=True, eq=False)
class _Waiting:
    report: Report
    size: int
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Delivered]


class Committer:
    """Starts its thread with the first report; `stop` writes what waits and ends it."""

    def __init__(self, deliver: Deliver, clock: Callable[[], datetime], metrics: Metrics, log: Log) -> None:
        self._deliver = deliver
        self._clock = clock
        self._metrics = metrics
        self._log = log
        self._changed = threading.Condition()
        self._queue: deque[_Waiting] = deque()
        self._bytes = 0
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._pending: dict[asyncio.Future[Delivered], float] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def submit(self, report: Report, size: int) -> Delivered:
        """What became of it.  `size`: bytes it takes while it waits.  Raises Busy."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Delivered] = loop.create_future()
        waiting = _Waiting(report, size, loop, future)
        with self._changed:
            if self._stopped:
                raise Busy("the server is stopping")
            if self._bytes + size > MAX_WAITING_BYTES:
                raise Busy("too many reports are waiting")
            self._bytes += size
            self._queue.append(waiting)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="committer", daemon=True)
                self._thread.start()
            self._changed.notify()
        # one timer for all: a timer for each report costs more than all else here
        self._pending[future] = loop.time() + PATIENCE_SECONDS
        if self._timer is None:
            self._timer = loop.call_later(PATIENCE_SECONDS / 10, self._tick, loop)
        try:
            return await future
        finally:
            del self._pending[future]

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        """Tell whoever has waited too long."""
        now = loop.time()
        for future, until in self._pending.items():
            if until > now:
                break
            if not future.done():
                future.set_exception(Busy("the database is slow"))
        self._timer = loop.call_later(PATIENCE_SECONDS / 10, self._tick, loop) if self._pending else None

    def stop(self) -> None:
        """Write what waits, then end.  Blocks."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        while batch := self._next():
            self._commit(batch)

    def _next(self) -> list[_Waiting]:
        """Whoever waits, at least one; empty once stopped."""
        with self._changed:
            while not self._queue and not self._stopped:
                self._changed.wait()
            batch: list[_Waiting] = []
            seats: set[Seat] = set()
            items = 0
            while self._queue and len(batch) < MAX_REPORTS:
                one = self._queue[0]
                if batch and (items + len(one.report.items) > MAX_ITEMS or one.report.seat in seats):
                    break
                batch.append(self._queue.popleft())
                seats.add(one.report.seat)
                items += len(one.report.items)
            self._bytes -= sum(w.size for w in batch)
            self._metrics.waiting.set(self._bytes)
            return batch

    def _commit(self, batch: list[_Waiting]) -> None:
        began = perf_counter()
        try:
            results: Sequence[Delivered | Exception] = self._deliver([w.report for w in batch], self._clock())
            self._metrics.items.inc(sum(len(w.report.items) for w in batch))
        except Exception as error:  # noqa: BLE001 - the thread must live on, and each caller must be answered
            results = self._apart(batch, error)
        self._metrics.batch.observe(len(batch))
        self._metrics.commit_seconds.observe(perf_counter() - began)
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[_Waiting, Delivered | Exception]]] = {}
        for waiting, result in zip(batch, results, strict=True):
            by_loop.setdefault(waiting.loop, []).append((waiting, result))
        for loop, answers in by_loop.items():
            try:
                loop.call_soon_threadsafe(_answer, answers)
            except RuntimeError:
                continue  # the loop has ended, and with it whoever waited

    def _apart(self, batch: list[_Waiting], error: Exception) -> list[Delivered | Exception]:
        """One report must not spoil the others': what fails together is tried one by one, unless it is the database that fails."""
        if unavailable(error):
            self._log.line("database", error=type(error).__name__, reports=len(batch))
            return [Busy("the database does not answer") for _ in batch]
        self._log.error(error, reports=len(batch))
        if len(batch) == 1:
            return [error]
        results: list[Delivered | Exception] = []
        for waiting in batch:
            try:
                results += self._deliver([waiting.report], self._clock())
            except Exception as alone:  # noqa: BLE001 - as above
                results += self._apart([waiting], alone)
        return results


def _answer(answers: list[tuple[_Waiting, Delivered | Exception]]) -> None:
    for waiting, result in answers:
        if waiting.future.done():  # its caller has gone
            continue
        if isinstance(result, Exception):
            waiting.future.set_exception(result)
        else:
            waiting.future.set_result(result)
