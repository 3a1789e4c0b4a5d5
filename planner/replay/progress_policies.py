"""Uniform Progress (Can't Be Late, NSDI 2024), from its description: progress is to keep up with time x work / deadline.

Ahead, it waits for spot; behind, it goes on demand; from there it goes back to spot only where it is ahead by two changeovers.  Spot that runs is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.replay.policies import EveryZone, OneZone, cheapest_spot, on_demand_at_home
from planner.replay.simulate import NOWHERE

if TYPE_CHECKING:
    from planner.replay.market import Market
    from planner.replay.simulate import Choose, Seen

BACK_CHANGEOVERS = 2


def ahead_ticks(market: Market, seen: Seen) -> float:
    """Ticks of work done beyond what uniform progress asks for by now."""
    done = market.work - seen.work
    return done - (seen.tick - seen.begin) * market.work / market.deadline


def _choose(market: Market, seen: Seen) -> int:
    if NOWHERE < seen.place < market.zones:
        return seen.place
    spot = cheapest_spot(market, seen.tick)
    ahead = ahead_ticks(market, seen)
    if seen.place != NOWHERE:
        restart = int(market.start_ticks[-1].max())
        return spot if spot != NOWHERE and ahead >= BACK_CHANGEOVERS * restart else seen.place
    if spot != NOWHERE:
        return spot
    return NOWHERE if ahead >= 0 else on_demand_at_home(market, seen)


@dataclass(frozen=True, slots=True)
class UniformProgress(OneZone):
    """As published: one zone."""

    name: str = "uniform-progress"

    def begin(self, market: Market, begin: int) -> Choose:  # noqa: ARG002 - the protocol's signature
        """Nothing is remembered."""
        return lambda seen: _choose(market, seen)


@dataclass(frozen=True, slots=True)
class UniformProgressFailover(EveryZone):
    """The same over all zones: the cheapest that is up."""

    name: str = "uniform-progress-failover"

    def begin(self, market: Market, begin: int) -> Choose:  # noqa: ARG002 - the protocol's signature
        """Nothing is remembered."""
        return lambda seen: _choose(market, seen)
