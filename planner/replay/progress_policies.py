"""Uniform Progress (Can't Be Late, NSDI 2024), from its description: progress is to keep up with time x work / deadline.

Ahead, it waits for spot; behind, it goes on demand; from there it goes back to spot only where it is ahead by more than a changeover.  Spot that runs is kept.
(Published with two changeovers; the numbers of the notes of 2026-11 come out with one, to the decimal.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.replay.policies import EveryZone, cheapest_spot, cheapest_zone, on_demand_at_home
from planner.replay.simulate import NOWHERE

if TYPE_CHECKING:
    from planner.replay.market import Market
    from planner.replay.simulate import Choose, Seen


def ahead_ticks(market: Market, seen: Seen) -> float:
    """Ticks of work done beyond what uniform progress asks for by now."""
    done = market.work - seen.work
    return done - (seen.tick - seen.begin) * market.work / market.deadline


def _choose(market: Market, seen: Seen, spot: int) -> int:
    """`spot` is the place that it would take, or NOWHERE."""
    if NOWHERE < seen.place < market.zones:
        return seen.place
    ahead = ahead_ticks(market, seen)
    if seen.place != NOWHERE:
        return spot if spot != NOWHERE and ahead > int(market.start_ticks[-1].max()) else seen.place
    if spot != NOWHERE:
        return spot
    return NOWHERE if ahead >= 0 else on_demand_at_home(market, seen)


@dataclass(frozen=True, slots=True)
class UniformProgress(EveryZone):
    """As published: the spot of one zone, the one whose price is lowest when the window begins.  Its first on-demand node is wherever that is cheapest."""

    name: str = "uniform-progress"

    def begin(self, market: Market, begin: int) -> Choose:
        """Remembers its zone."""
        zone = cheapest_zone(market, begin)

        def choose(seen: Seen) -> int:
            return _choose(market, seen, zone if market.up[seen.tick, zone] else NOWHERE)

        return choose


@dataclass(frozen=True, slots=True)
class UniformProgressFailover(EveryZone):
    """The same over all zones: the cheapest that is up."""

    name: str = "uniform-progress-failover"

    def begin(self, market: Market, begin: int) -> Choose:  # noqa: ARG002 - the protocol's signature
        """Nothing is remembered."""
        return lambda seen: _choose(market, seen, cheapest_spot(market, seen.tick))
