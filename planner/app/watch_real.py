"""What a watch does for real: the clouds' feeds, the record, Terraform.  Wires what `watch_market` is given; decides nothing."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from planner.app import replan_given, wire
from planner.app.migrate import Migrated, Order, Waits, migrate
from planner.app.replan import Sources, replan
from planner.app.watch_market import Acts, StoppableClock
from planner.model.errors import LeaseHeld
from planner.model.migration import CLOSED
from planner.model.record import LIVE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from planner.app.replan import Replanned
    from planner.app.replan_diff import Proposal
    from planner.app.replan_given import Asked, Open
    from planner.app.review import Setting
    from planner.model.diagnostic import Diagnostic


def acts(asked: Asked, setting: Setting, opened: Open, stop: threading.Event, *, clouds: bool, apply: bool) -> Acts:
    """`clouds`: ask them for prices and for nodes; `apply`: carry moves out."""
    real = _Real(asked, setting, opened, stop)
    return Acts(
        decide=real.decide,
        refresh=real.refresh if clouds else None,
        look=real.look if clouds else None,
        unfinished=real.unfinished,
        carry_out=real.carry_out if apply else None,
    )


class _Real:
    def __init__(self, asked: Asked, setting: Setting, opened: Open, stop: threading.Event) -> None:
        self._asked, self._setting, self._open, self._stop = asked, setting, opened, stop
        self._synth = replan_given.synth_if_there()

    def decide(self, now: datetime, only_ready: bool) -> Replanned:
        request, _ = replan_given.request_of(self._asked, now, only_ready=only_ready)
        # today's prices, by which a move is judged again before it begins
        self._setting = replace(self._setting, market=request.read.market, project=request.read.project)
        opened = self._open
        return replan(
            request,
            Sources(record=opened.record, told=opened.told, history=opened.history, synth=self._synth),
            now,
        )

    def refresh(self, now: datetime) -> tuple[Mapping[str, Any], Sequence[Diagnostic]]:
        from planner.app.refresh import Asked, refresh, totals  # noqa: PLC0415 - only where clouds are asked
        from planner.clouds.feeds.choose import RealFeeds  # noqa: PLC0415

        given = self._setting
        done = refresh(Asked(now=now), given.project, given.market, RealFeeds(), self._open.history)
        return totals(done), done.warnings

    def look(self) -> Sequence[str]:
        """A job that somebody works on is left to them, and to the next round."""
        from planner.app.sync import sync  # noqa: PLC0415 - only where clouds are asked

        ports = wire.ports(self._setting.project, self._setting.market, _quiet)
        lost: list[str] = []
        try:
            for job in sorted({r.job for r in self._open.record.runs() if r.status in LIVE}):
                with suppress(LeaseHeld):
                    lost += [f"{run} r{rank:02d}" for run, rank in sync(job, ports).lost]
        finally:
            ports.record.close()
        return lost

    def unfinished(self) -> Sequence[str]:
        return sorted({m.job for m in self._open.record.moves() if m.status not in CLOSED})

    def carry_out(self, job: str, proposal: Proposal | None) -> Migrated:
        """By a thread: with a record of its own."""
        from planner.app import migrate_review  # noqa: PLC0415 - only where moves are carried out

        ports = wire.ports(self._setting.project, self._setting.market, _quiet)
        nodes = wire.runtime(self._setting.project)
        clock = StoppableClock(self._stop)
        try:
            order = Order(job=job)
            if proposal is not None:
                order = migrate_review.review(proposal.diff, proposal.plan, self._setting, clock.now(), waits=Waits())
            return migrate(order, replace(ports, clock=clock), nodes)
        finally:
            nodes.close()
            ports.record.close()


def _quiet(stack: str, text: str) -> None:
    """Terraform's lines: what comes of them is told when the move ends."""
