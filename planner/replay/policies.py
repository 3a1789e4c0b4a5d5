"""The policies that ours is measured against, those without a memory of prices.  Each is its rule alone: the simulator carries it out and holds the safety net.

Sources of the rules: notes of 2026-11 after Can't Be Late (NSDI 2024) and SkyNomad (arXiv 2601.06520); nothing of their code was read or taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.replay.simulate import NOWHERE

if TYPE_CHECKING:
    from planner.replay.market import Market
    from planner.replay.simulate import Choose, Seen


def cheapest_spot(market: Market, tick: int) -> int:
    """The cheapest spot place that is up, the first of equals; NOWHERE where none is."""
    prices = market.usd[tick, : market.zones]
    best = int(np.argmin(prices))
    return best if np.isfinite(prices[best]) else NOWHERE


def cheapest_zone(market: Market, tick: int) -> int:
    """The zone with the lowest spot price, whether it can be had or not; the first of equals."""
    prices = market.trace.spot_usd_h[tick]
    return int(np.argmin(np.where(np.isnan(prices), np.inf, prices)))


def on_demand_at_home(market: Market, seen: Seen) -> int:
    """On demand where the checkpoint is, else the cheapest; NOWHERE where there is none."""
    prices = market.usd[seen.tick, market.zones :]
    there = np.flatnonzero((market.region[market.zones :] == seen.home) & np.isfinite(prices))
    chosen = int(there[0]) if len(there) else int(np.argmin(prices))
    return market.zones + chosen if np.isfinite(prices[chosen]) else NOWHERE


class EveryZone:
    """Uses all zones."""

    def field(self, market: Market, begin: int) -> tuple[str, ...]:  # noqa: ARG002 - the protocol's signature
        """All."""
        return market.names[: market.zones]


class OneZone:
    """Stays in the zone whose price was lowest when the window began, whether it could be had then or not."""

    def field(self, market: Market, begin: int) -> tuple[str, ...]:
        """That one."""
        return (market.names[cheapest_zone(market, begin)],)


@dataclass(frozen=True, slots=True)
class OnDemand(EveryZone):
    """Never spot."""

    name: str = "on-demand"

    def begin(self, market: Market, begin: int) -> Choose:  # noqa: ARG002 - the protocol's signature
        """The cheapest region's, from the first tick on."""
        return lambda seen: seen.place if seen.place != NOWHERE else on_demand_at_home(market, seen)


@dataclass(frozen=True, slots=True)
class NeverMove(OneZone):
    """Runs whenever its zone can be had, and waits otherwise."""

    name: str = "never-move"

    def begin(self, market: Market, begin: int) -> Choose:  # noqa: ARG002 - the protocol's signature
        """One zone."""
        return lambda seen: cheapest_spot(market, seen.tick)


@dataclass(frozen=True, slots=True)
class Failover(EveryZone):
    """Moves only when it is taken back: to the zone that is cheapest then, whatever the move costs."""

    name: str = "failover"

    def begin(self, market: Market, begin: int) -> Choose:  # noqa: ARG002 - the protocol's signature
        """Nothing is remembered."""
        return lambda seen: seen.place if seen.place != NOWHERE else cheapest_spot(market, seen.tick)


@dataclass(frozen=True, slots=True)
class AlwaysCheapest(EveryZone):
    """Follows every price, whatever the move costs."""

    name: str = "always-cheapest"

    def begin(self, market: Market, begin: int) -> Choose:  # noqa: ARG002 - the protocol's signature
        """Nothing is remembered."""

        def choose(seen: Seen) -> int:
            best = cheapest_spot(market, seen.tick)
            if best == NOWHERE:
                return seen.place
            prices = market.usd[seen.tick]
            return seen.place if seen.place != NOWHERE and prices[seen.place] <= prices[best] else best

        return choose
