"""What could be known of a market at a tick: lifetimes, returns and usual prices from its rows up to then.  One view for all policies that look back.

Lifetimes are `planner.migration.lifetimes`', the very function that replanning asks.  What a tick's view says never changes, so it is worked out once a market.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from planner.migration.lifetimes import Expected, Past, expected, steady

if TYPE_CHECKING:
    from planner.migration.constants import Rule
    from planner.replay.market import Market
    from planner.replay.trace import Floats

USUAL_HOURS = 72.0
"""The window of the usual price (notes of 2026-11: the amortised rate over 72 h of history)."""


@dataclass(frozen=True, eq=False, slots=True)
class View:
    """Per place, at one tick.

    price_usd_h                    the last that was seen, whether it can be had or not
    usual_usd_h                    the median over USUAL_HOURS of what was seen
    the others                     as in Options
    """

    price_usd_h: Floats
    usual_usd_h: Floats
    lifetime_hours: Floats
    return_hours: Floats
    fresh_hours: Floats
    outage_hours: Floats
    up_share: Floats
    steady_hours: Floats


@dataclass(eq=False, slots=True)
class Observed:
    """The views of a market, tick by tick."""

    market: Market
    rule: Rule
    _past: Past = field(init=False)
    _prices: Floats = field(init=False)
    _changes: Floats = field(init=False)
    _views: dict[int, View] = field(init=False, default_factory=dict[int, View])

    def __post_init__(self) -> None:
        self._past = _past(self.market)
        self._prices = _prices(self.market)
        self._changes = _notable(self._prices, self.rule.notable)

    def at(self, tick: int) -> View:
        """What is known when that tick begins."""
        if tick not in self._views:
            self._views[tick] = self._look(tick)
        return self._views[tick]

    def _look(self, tick: int) -> View:
        market = self.market
        hours = tick * market.tick_hours
        known = self._past.at_hours <= hours + 1e-9
        past = Past(self._past.pool[known], self._past.at_hours[known], self._past.available[known])
        found: Expected = expected(past, market.zones, hours, self.rule)
        always = len(market.names) - market.zones
        first = max(0, tick + 1 - round(USUAL_HOURS / market.tick_hours))
        return View(
            price_usd_h=self._prices[tick],
            usual_usd_h=np.median(self._prices[first : tick + 1], axis=0),
            lifetime_hours=np.concatenate([found.lifetime_hours, np.full(always, np.inf)]),
            return_hours=np.concatenate([found.return_hours, np.zeros(always)]),
            fresh_hours=np.concatenate([found.fresh_hours, np.full(always, np.inf)]),
            outage_hours=np.concatenate([found.outage_hours, np.zeros(always)]),
            up_share=np.concatenate([found.up_share, np.ones(always)]),
            steady_hours=steady(
                self._changes[tick] - self._changes[first], (tick - first) * market.tick_hours, self.rule
            ),
        )


def observed_of(market: Market, rule: Rule) -> Observed:
    """The views of a market, shared by all windows and policies."""
    made = market.memo.get((Observed, rule))
    if made is None:
        made = market.memo[Observed, rule] = Observed(market, rule)
    assert isinstance(made, Observed)  # noqa: S101 - for the type checker
    return made


def _past(market: Market) -> Past:
    """All changes of availability of the spot pools, by pool and then by time; the first row of a pool is its first."""
    up = market.up[:, : market.zones]
    changed = np.ones_like(up)
    changed[1:] = up[1:] != up[:-1]
    pool, tick = np.nonzero(changed.T)
    at = np.asarray(tick * market.tick_hours, dtype=np.float64)
    return Past(pool.astype(np.int32), at, up[tick, pool])


def _prices(market: Market) -> Floats:
    """[ticks, places] the last price seen; where none was yet, the cheapest on demand, which it cannot be above.

    All finite: a place that never has a price is never available either, and stands at the dearest seen so far.
    """
    prices = np.concatenate([market.trace.spot_usd_h, market.usd[:, market.zones :]], axis=1)
    known = np.isfinite(prices)
    dearest = np.maximum.accumulate(np.where(known, prices, 0.0).max(axis=1))
    on_demand = np.where(known, prices, np.inf)[:, market.zones :]
    ceiling = np.minimum(on_demand.min(axis=1, initial=np.inf), dearest)
    row = np.maximum.accumulate(np.where(known, np.arange(len(prices))[:, None], -1), axis=0)
    held = np.take_along_axis(prices, np.maximum(row, 0), axis=0)
    return np.where(row >= 0, held, ceiling[:, None])


def _notable(prices: Floats, least: float) -> Floats:
    """[ticks, places] how often a price had changed notably up to a tick."""
    out = np.zeros(prices.shape)
    out[1:] = np.cumsum(np.abs(np.diff(prices, axis=0)) > least * prices[:-1], axis=0)
    return out
