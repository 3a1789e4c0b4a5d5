"""A move and its two runs while they are waited for: what the record says, what the clouds say, and when waiting is over.

Decides when there is nothing more to wait for.  A database or a cloud that does not answer for a while is waited for like everything else.  Moves nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from planner.app.migrate_judge import WORKS, finished, new_run
from planner.app.migrate_order import Stop
from planner.app.over import exit_of
from planner.app.sync import look
from planner.model.errors import CloudError, Unavailable
from planner.model.record import Run, RunStatus

if TYPE_CHECKING:
    from planner.app.ports import Ports
    from planner.state.history import Move
    from planner.state.runtime import Runtime
    from planner.state.writer import Writer

TICK_SECONDS = 2.0
REST_SECONDS = 15.0
LOOK_SECONDS = 30.0
"""So often while it waits the clouds are asked whether the nodes are there."""


class Watched:
    """A move that is waited for.  `_move` is what is known of it."""

    def __init__(self, ports: Ports, nodes: Runtime, writer: Writer, move: Move) -> None:
        self._ports, self._nodes, self._writer, self._move = ports, nodes, writer, move

    def _until(self, what: Callable[[], bool], until: datetime) -> bool:
        """Wait for it; False when the time is over.  Raises Stop where the old job has ended before the cut, or the new nodes are gone."""
        clock, away = self._ports.clock, False
        looked = clock.now()
        while True:
            now = clock.now()
            try:
                if what():
                    return True
                if now >= until:
                    return False
                if now >= looked + timedelta(seconds=LOOK_SECONDS):
                    looked = now
                    self._look()
                self._not_over()
                away = False
            except Unavailable as error:
                if now >= until:
                    raise
                if not away:
                    self._ports.tell("", f"waiting: {error}")
                away = True
            clock.sleep(TICK_SECONDS)

    def _look(self) -> bool:
        """Ask the clouds who is there; whether the old run has lost nodes, as far as they answer."""
        lost: set[int] = set()
        for run in (self._old(), self._new()):
            if run is not None and run.status in WORKS:
                try:
                    if look(run, self._ports, self._writer)[0]:
                        lost.add(run.generation)
                except CloudError as error:
                    self._ports.tell("", f"{run.id}: not known whether its nodes are there: {error}")
        return self._move.from_generation in lost

    def _not_over(self) -> None:
        old, new = self._old(), self._new()
        before = not self._cut_over()
        if before and finished(self._ports, old):
            words = f"the job has ended on {old.id}: there is nothing to move"
            raise Stop("SKY-MOVE-420", words, revert=True, finished=True)
        gone = {RunStatus.LOST, RunStatus.DEGRADED, RunStatus.ENDED, *([RunStatus.EXITED] if before else [])}
        if new is not None and new.status in gone:
            words = f"{new.id} is {new.status.value}"
            if before:
                raise Stop("SKY-MOVE-420", words, revert=True)
            raise Stop("SKY-MOVE-421", f"{words}, and made no progress", over=True)

    def _rest(self) -> None:
        """The nodes of a job that has ended have their time to put away what is left, as `reap` gives it to them."""
        ports = self._ports

        def settled() -> bool:
            run = self._old()
            end = exit_of(run, ports.record.events(run.job), self._nodes.seen(run.job, run.generation))
            return end is None or end.settled(ports.clock.now())

        while not settled():
            ports.clock.sleep(REST_SECONDS)

    def _cut_over(self) -> bool:
        new = self._new()
        return self._old().fenced_at is not None or (new is not None and new.cut is not None)

    def _old(self) -> Run:
        return next(r for r in self._ports.record.runs(self._move.job) if r.generation == self._move.from_generation)

    def _new(self) -> Run | None:
        return new_run(self._ports, self._move)
