"""What a watch does for real: the clouds' feeds, the record, Terraform.  Wires what `watch_market` is given; decides nothing."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from planner.app import inputs, replan_given, wire
from planner.app.migrate import Migrated, Order, Waits, migrate
from planner.app.replan import Sources, replan
from planner.app.watch_market import Acts, StoppableClock
from planner.model.errors import LeaseHeld
from planner.model.migration import CLOSED
from planner.model.record import LIVE, RunStatus
from planner.spec.normal import workload_from_document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from planner.app.refresh import Asked as RefreshAsked
    from planner.app.replan import Replanned
    from planner.app.replan_diff import Proposal
    from planner.app.replan_given import Asked, Open
    from planner.app.review import Setting
    from planner.model.diagnostic import Diagnostic
    from planner.model.project import Project
    from planner.model.workload import Constraints


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a job runs, and what its plan allows besides; None: there is no plan, and it stays."""

    cloud: str
    region: str
    allows: Constraints | None


def asked_for(places: Sequence[Place], project: Project, now: datetime) -> RefreshAsked | None:
    """What is worth asking for: clouds and regions that some job may use, or runs in; None where nothing runs."""
    from planner.app.refresh import Asked  # noqa: PLC0415 - only where clouds are asked

    if not places:
        return None
    every = {t.cloud.value for t in project.targets}
    clouds, regions = set[str](), set[str]()
    for place in places:
        clouds.add(place.cloud)
        regions.add(place.region)
        if place.allows is not None:
            clouds |= set(place.allows.clouds) or every
            regions |= set(place.allows.regions) or {"*"}
    # no cloud left out is written as none given, and so with regions
    return Asked(
        now=now,
        clouds=() if clouds >= every else tuple(sorted(clouds)),
        regions=() if "*" in regions else tuple(sorted(regions)),
    )


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
        from planner.app.refresh import refresh, totals  # noqa: PLC0415 - only where clouds are asked
        from planner.clouds.feeds.choose import RealFeeds  # noqa: PLC0415

        given = self._setting
        wanted = asked_for(self._places(), given.project, now)
        if wanted is None:
            return {}, ()
        feeds = RealFeeds()
        try:
            done = refresh(wanted, given.project, given.market, feeds, self._open.history)
        finally:
            feeds.close()
        return totals(done), done.warnings

    def _places(self) -> Sequence[Place]:
        """Of jobs that could go on: where the plan lets them run, and where they run."""
        plans = inputs.standing_plans(self._asked.plans_folder)
        wanted = set(self._asked.names)
        newest = {r.job: r for r in self._open.record.runs() if not wanted or r.job in wanted}
        found: list[Place] = []
        for run in newest.values():
            if run.status is RunStatus.ENDED:
                continue
            allows = workload_from_document(plans[run.job].job).constraints if run.job in plans else None
            found.append(Place(cloud=run.cloud, region=run.region, allows=allows))
        return found

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
