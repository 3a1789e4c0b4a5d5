"""Policies that weigh a price against another: the plain price gap, the net gain, and SkyNomad's rule.  After a preemption the first two take the cheapest.

SkyNomad's (arXiv 2601.06520) is our own, from its description: move from a to b where the cost of moving is at most (price a - price b) x (expected lifetime at b - cold
start); with nothing running, a is on-demand, which it would take otherwise; ahead of uniform progress it waits rather than take a place that does not pay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.migration.constants import DEFAULT, Rule
from planner.replay.observed import observed_of
from planner.replay.policies import EveryZone, cheapest_spot, on_demand_at_home
from planner.replay.progress_policies import ahead_ticks
from planner.replay.simulate import NOWHERE

if TYPE_CHECKING:
    from planner.replay.market import Market
    from planner.replay.simulate import Choose, Seen
    from planner.replay.trace import Floats

THRESHOLD_HOURS = 0.5
"""Thirty minutes of compute, at the price that is paid now."""


@dataclass(frozen=True, slots=True)
class PriceGap(EveryZone):
    """Moves where (price here - price there) x remaining runtime is worth 30 minutes of compute, whatever the move costs."""

    name: str = "price-gap"

    def begin(self, market: Market, begin: int) -> Choose:  # noqa: ARG002 - the protocol's signature
        """Nothing is remembered."""

        def choose(seen: Seen) -> int:
            best = cheapest_spot(market, seen.tick)
            if NOWHERE in (seen.place, best):
                return best if seen.place == NOWHERE else seen.place
            here, there = market.usd[seen.tick, [seen.place, best]]
            gap = (here - there) * seen.work * market.tick_hours
            return best if gap >= THRESHOLD_HOURS * here and gap > 0 else seen.place

        return choose


@dataclass(frozen=True, slots=True)
class NetGain(EveryZone):
    """The same, less what the move costs: egress, and the hours without progress at the destination's price."""

    name: str = "net-gain"
    horizon_hours: float = float("inf")

    def begin(self, market: Market, begin: int) -> Choose:  # noqa: ARG002 - the protocol's signature
        """Nothing is remembered."""

        def choose(seen: Seen) -> int:
            if seen.place == NOWHERE:
                return cheapest_spot(market, seen.tick)
            prices = market.usd[seen.tick, : market.zones]
            here = float(market.usd[seen.tick, seen.place])
            hours = min(seen.work * market.tick_hours, self.horizon_hours)
            gain = (here - prices) * hours - _move_usd(market, seen, prices)
            gain[seen.place : seen.place + 1] = -np.inf
            best = int(np.argmax(gain))
            return best if gain[best] >= THRESHOLD_HOURS * here else seen.place

        return choose


@dataclass(frozen=True, slots=True)
class SkyNomad(EveryZone):
    """Gain over the expected lifetime at the destination, from what was observed."""

    name: str = "skynomad"
    rule: Rule = DEFAULT

    def begin(self, market: Market, begin: int) -> Choose:  # noqa: ARG002 - the protocol's signature
        """Looks back over the whole trace so far."""
        observed = observed_of(market, self.rule)

        def choose(seen: Seen) -> int:
            prices = market.usd[seen.tick, : market.zones]
            fallback = on_demand_at_home(market, seen)
            running = seen.place != NOWHERE
            paid = seen.place if running else fallback
            here = float(market.usd[seen.tick, paid]) if paid != NOWHERE else float("inf")
            lasting = (
                observed.at(seen.tick).lifetime_hours[: market.zones] - market.stop_hours[seen.home, : market.zones]
            )
            lasting = np.minimum(lasting, seen.work * market.tick_hours)
            egress = market.egress_usd[seen.home, : market.zones]
            with np.errstate(invalid="ignore"):
                gain = np.where(np.isfinite(prices), (min(here, 1e9) - prices) * lasting - egress, -np.inf)
            if running:
                gain[seen.place : seen.place + 1] = 0.0
            best = int(np.argmax(gain))
            if gain[best] > 0:
                return best
            if running:
                return seen.place
            return NOWHERE if ahead_ticks(market, seen) >= 0 else fallback

        return choose


def _move_usd(market: Market, seen: Seen, prices: Floats) -> Floats:
    places = slice(0, market.zones)
    rent = np.multiply(
        market.stop_hours[seen.home, places], prices, out=np.zeros_like(prices), where=np.isfinite(prices)
    )
    return market.egress_usd[seen.home, places] + rent
