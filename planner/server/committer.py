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


Told = Callable[[Delivered | Exception], None]


@dataclass(slots=True, eq=False)
class _Waiting:
    report: Report
    size: int
    loop: asyncio.AbstractEventLoop
    until: float
    tell: Told | None  # None once it was told


class Committer:
    """Starts its thread with the first report; `stop` writes what waits and ends it."""

    def __init__(self, deliver: Deliver, clock: Callable[[], datetime], metrics: Metrics, log: Log) -> None:
        self._deliver = deliver
        self._clock = clock
        self._metrics = metrics
        self._log = log
        self._changed = threading.Condition(threading.Lock())
        self._queue: deque[_Waiting] = deque()
        self._bytes = 0
        self._idle = False  # the thread waits
        self._waking = False  # it is about to be woken
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._pending: dict[_Waiting, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def submit(self, report: Report, size: int) -> Delivered:
        """What became of it.  `size`: bytes it takes while it waits.  Raises Busy."""
        future: asyncio.Future[Delivered] = asyncio.get_running_loop().create_future()

        def tell(result: Delivered | Exception) -> None:
            if future.done():  # its caller has gone
                return
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

        self.put(report, size, tell)
        return await future

    def put(self, report: Report, size: int, tell: Told) -> None:
        """The same for who does not wait: `tell` is called once, in the event loop that this is called in.  Raises Busy."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(report, size, loop, loop.time() + PATIENCE_SECONDS, tell)
        with self._changed:
            if self._stopped:
                raise Busy("the server is stopping")
            if self._bytes + size > MAX_WAITING_BYTES:
                raise Busy("too many reports are waiting")
            self._bytes += size
            self._queue.append(waiting)
            wake, self._waking = not self._waking, True
        if wake:
            # not at once: what else has arrived is read first, and goes with it
            loop.call_soon(self._wake)
        # one timer for all: a timer for each report costs more than all else here
        self._pending[waiting] = None
        if self._timer is None:
            self._timer = loop.call_later(PATIENCE_SECONDS / 10, self._tick, loop)

    def _wake(self) -> None:
        with self._changed:
            self._waking = False
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="committer", daemon=True)
                self._thread.start()
            elif self._idle and self._queue:
                self._changed.notify()

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        """Tell whoever has waited too long."""
        now = loop.time()
        late: list[_Waiting] = []
        for waiting in self._pending:
            if waiting.until > now:
                break
            late.append(waiting)
        for waiting in late:
            self._tell(waiting, Busy("the database is slow"))
        self._timer = loop.call_later(PATIENCE_SECONDS / 10, self._tick, loop) if self._pending else None

    def _tell(self, waiting: _Waiting, result: Delivered | Exception) -> None:
        tell, waiting.tell = waiting.tell, None
        if tell is None:
            return
        self._pending.pop(waiting, None)
        try:
            tell(result)
        except Exception as error:  # noqa: BLE001 - the others are to be told too
            self._log.error(error)

    def stop(self) -> None:
        """Write what waits, then end.  Blocks."""
        with self._changed:
            self._stopped = True
            if self._thread is None and self._queue:
                self._thread = threading.Thread(target=self._work, name="committer", daemon=True)
                self._thread.start()
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
                self._idle = True
                self._changed.wait()
            self._idle = False
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
                loop.call_soon_threadsafe(self._answer, answers)
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

    def _answer(self, answers: list[tuple[_Waiting, Delivered | Exception]]) -> None:
        for waiting, result in answers:
            self._tell(waiting, result)
