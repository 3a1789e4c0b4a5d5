"""One policy, one window of a recorded market, tick by tick: what it costs and whether it is done in time.  Carries out; the policy decides.

Every policy runs inside the same safety net (Can't Be Late, NSDI 2024): once the time left is less than work left + 2 x changeover, what runs on spot runs on until
it is taken back, nothing moves, and whatever stands still goes on demand and stays there.  A policy sees prices and availability of this tick and before, never later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.replay.market import Market

NOWHERE = -1


@dataclass(slots=True, kw_only=True)
class Seen:
    """What a policy sees at a tick.  `place` and `home` are NOWHERE where nothing runs and nothing is saved yet; times are in ticks.

    tick            of the market: rows up to it, and it, may be looked at
    begin           the window's first tick
    place           where it runs, or starts
    starting        ticks of start-up still to come
    home            the region that holds the checkpoint
    work            ticks of work left
    left            ticks until the deadline
    since_move      ticks since the last voluntary move; -1 where there was none
    lost            the place that was taken back in this tick, or NOWHERE
    """

    tick: int
    begin: int
    place: int
    starting: int
    home: int
    work: int
    left: int
    since_move: int
    lost: int


Choose = Callable[[Seen], int]
"""Where to be in this tick: a place that is up, or NOWHERE to stand still."""


class Policy(Protocol):
    """A rule with a name.  `begin` is called once a window: what it returns may remember."""

    @property
    def name(self) -> str:
        """As the table and `--policy` call it."""
        ...

    def field(self, market: Market, begin: int) -> tuple[str, ...]:
        """The zones that it uses in this window; all of them for most."""
        ...

    def begin(self, market: Market, begin: int) -> Choose:
        """For one window, whose first tick is `begin`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What came of a window.  Ticks: `spot` + `on_demand` are billed, `starting` of them made no progress; `work_left` > 0 is a missed deadline."""

    policy: str
    begin: int
    cost_usd: float
    egress_usd: float
    spot: int
    on_demand: int
    starting: int
    work_left: int
    slack: int
    moves: int
    preemptions: int
    places: tuple[str, ...] = field(repr=False)
    path: NDArray[np.int32] = field(repr=False, compare=False)

    @property
    def late(self) -> bool:
        """The deadline was missed."""
        return self.work_left > 0


class _Job:
    """The job as it goes through the market."""

    def __init__(self, market: Market) -> None:
        self.market = market
        self.place, self.home, self.starting = NOWHERE, NOWHERE, 0
        self.work, self.since_move = market.work, -1
        self.rent = self.egress = 0.0
        self.spot = self.on_demand = self.starts = self.moves = self.preemptions = 0

    def taken_back(self, tick: int) -> int:
        """Where its node was lost in this tick, or NOWHERE."""
        lost = self.place
        if lost == NOWHERE or self.market.up[tick, lost]:
            return NOWHERE
        self.place, self.starting = NOWHERE, 0
        self.preemptions += 1
        return lost

    def go(self, place: int, tick: int) -> None:
        """Start there.  The checkpoint goes with it, and is paid, at once."""
        market = self.market
        if place == self.place:
            return
        if place != NOWHERE and not market.up[tick, place]:
            raise ValueError(f"{market.names[place]} cannot be had in tick {tick}")
        if self.place != NOWHERE:
            self.moves += 1
            self.since_move = 0
        self.place, self.starting = place, 0
        if place == NOWHERE:
            return
        self.starting = int(market.start_ticks[self.home, place])
        self.egress += float(market.egress_usd[self.home, place])
        self.home = int(market.region[place])

    def tick(self, tick: int) -> None:
        """Run through it."""
        if self.since_move >= 0:
            self.since_move += 1
        if self.place == NOWHERE:
            return
        self.rent += float(self.market.usd[tick, self.place])
        if self.place < self.market.zones:
            self.spot += 1
        else:
            self.on_demand += 1
        if self.starting:
            self.starting -= 1
            self.starts += 1
        else:
            self.work -= 1


def simulate(market: Market, policy: Policy, begin: int = 0) -> Run:
    """The run of a policy through the window that begins at that tick and ends at the job's deadline."""
    zones = policy.field(market, begin)
    if len(zones) < market.zones:
        market = market.only(zones)
    choose, job = policy.begin(market, begin), _Job(market)
    ticks = min(market.deadline, len(market.usd) - begin)
    path = np.full(ticks, NOWHERE, dtype=np.int32)
    slack = max(2 * market.changeover, 1)  # where a start takes no tick, standing still for one may not be too much
    for k in range(ticks):
        if not job.work:
            ticks = k
            break
        tick = begin + k
        lost = job.taken_back(tick)
        left = market.deadline - k
        if left < job.work + slack:
            place = _net(market, job, tick)
        else:
            place = choose(
                Seen(
                    tick=tick,
                    begin=begin,
                    place=job.place,
                    starting=job.starting,
                    home=job.home,
                    work=job.work,
                    left=left,
                    since_move=job.since_move,
                    lost=lost,
                )
            )
        job.go(place, tick)
        path[k] = job.place
        job.tick(tick)
    return Run(
        policy=policy.name,
        begin=begin,
        cost_usd=job.rent * market.tick_hours + job.egress,
        egress_usd=job.egress,
        spot=job.spot,
        on_demand=job.on_demand,
        starting=job.starts,
        work_left=job.work,
        slack=market.deadline - ticks if not job.work else 0,
        moves=job.moves,
        preemptions=job.preemptions,
        places=market.names,
        path=path[:ticks],
    )


def _net(market: Market, job: _Job, tick: int) -> int:
    """What runs runs on; what stands still goes on demand where its checkpoint is, else where that is cheapest, else on any spot there is."""
    if job.place != NOWHERE:
        return job.place
    prices = market.usd[tick] * market.tick_hours
    whole = prices * (job.work + market.start_ticks[job.home]) + market.egress_usd[job.home]
    on_demand = np.arange(market.zones, len(market.names))
    at_home = [p for p in on_demand if int(market.region[p]) == job.home and market.up[tick, p]]
    if at_home:
        return int(at_home[0])
    for places in (on_demand, np.arange(market.zones)):
        if len(places) and np.isfinite(whole[places]).any():
            return int(places[np.argmin(whole[places])])
    return NOWHERE
