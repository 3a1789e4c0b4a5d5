"""What could be known of a market at a tick: lifetimes, returns and usual prices from its rows up to then.  One view for all policies that look back.

Lifetimes are `planner.migration.lifetimes`', the very function that replanning asks.  What a tick's view says never changes, so it is worked out once a market.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.migration.constants import AGES_HOURS
from planner.migration.lifetimes import Tally, age_of, at_ages, outlook, steady

if TYPE_CHECKING:
    from planner.migration.constants import Rule
    from planner.replay.market import Market
    from planner.replay.trace import Floats, Indices

USUAL_HOURS = 72.0
"""The window of the usual price (notes of 2026-11: the amortised rate over 72 h of history)."""
BLOCK = 64
"""Ticks whose views are made at once."""


@dataclass(frozen=True, eq=False, slots=True)
class View:
    """Per place, at one tick.

    price_usd_h                    the last that was seen, whether it can be had or not
    usual_usd_h                    the median over USUAL_HOURS of what was seen while it could be had, made once an hour: a price at which it is not to be had costs nobody anything
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


class Observed:
    """The views of a market, tick by tick; made in blocks of ticks, as asked for."""

    def __init__(self, market: Market, rule: Rule) -> None:
        self._market, self._rule = market, rule
        self._spells = _Spells(market)
        self._prices = _prices(market)
        self._changes = _notable(self._prices, rule.notable)
        self._had = np.where(market.up, self._prices, np.inf)
        self._views: dict[int, View] = {}
        self._usual: dict[int, Floats] = {}

    def at(self, tick: int) -> View:
        """What is known when that tick begins."""
        found = self._views.get(tick)
        if found is None:
            first = tick - tick % BLOCK
            self._make(first, min(first + BLOCK, len(self._prices)))
            found = self._views[tick]
        return found

    def _make(self, begin: int, end: int) -> None:
        market, ticks = self._market, np.arange(begin, end)
        found = outlook(self._spells.tally(begin, end), self._rule)
        shape = len(ticks), len(market.names) - market.zones
        first = np.maximum(0, ticks + 1 - round(USUAL_HOURS / market.tick_hours))
        seen = np.asarray((ticks - first)[:, None] * market.tick_hours, dtype=np.float64)
        lasting = steady(self._changes[begin:end] - self._changes[first], seen, self._rule)
        always = np.full(shape, np.inf), np.zeros(shape), np.ones(shape)
        columns = [
            np.concatenate([of_spot, always[of]], axis=1)
            for of_spot, of in (
                (found.lifetime_hours, 0),
                (found.return_hours, 1),
                (found.fresh_hours, 0),
                (found.outage_hours, 1),
                (found.up_share, 2),
            )
        ]
        for at, tick in enumerate(ticks.tolist()):
            lifetime, back, fresh, outage, share = (column[at] for column in columns)
            self._views[tick] = View(
                price_usd_h=self._prices[tick],
                usual_usd_h=self._usual_at(tick),
                lifetime_hours=lifetime,
                return_hours=back,
                fresh_hours=fresh,
                outage_hours=outage,
                up_share=share,
                steady_hours=lasting[at],
            )

    def _usual_at(self, tick: int) -> Floats:
        """As it was at the last full hour: a median of days does not hang on minutes."""
        each = max(1, round(1.0 / self._market.tick_hours))
        tick -= tick % each
        if tick not in self._usual:
            seen = slice(max(0, tick + 1 - round(USUAL_HOURS / self._market.tick_hours)), tick + 1)
            self._usual[tick] = _median(self._had[seen], self._prices[seen])
        return self._usual[tick]


def observed_of(market: Market, rule: Rule) -> Observed:
    """The views of a market, shared by all windows and policies."""
    made = market.memo.get((Observed, rule))
    if made is None:
        made = market.memo[Observed, rule] = Observed(market, rule)
    assert isinstance(made, Observed)  # noqa: S101 - for the type checker
    return made


class _Spells:
    """All spells of availability of the spot pools, summed as far as each change, by pool and then by time."""

    def __init__(self, market: Market) -> None:
        up = market.up[:, : market.zones]
        changed = np.ones_like(up)
        changed[1:] = up[1:] != up[:-1]
        self.up, self.tick_hours = up, market.tick_hours
        pool, tick = np.nonzero(changed.T)
        self.at_hours = tick * market.tick_hours
        firsts = np.searchsorted(pool, np.arange(market.zones)).astype(np.int32)
        # which change a pool was at in each tick
        self.change = np.cumsum(changed, axis=0, dtype=np.int32) - 1 + firsts
        hours = np.zeros(len(pool))
        hours[1:] = np.where(pool[1:] == pool[:-1], self.at_hours[1:] - self.at_hours[:-1], 0.0)
        spent, ends = at_ages(hours), np.zeros((len(pool), len(AGES_HOURS)))
        over = np.flatnonzero(hours > 0)
        ends[over, age_of(hours[over])] = 1.0
        was_up = ~up[tick, pool][:, None]
        self.sums = [_within(sums, firsts) for sums in (spent * was_up, ends * was_up, spent * ~was_up, ends * ~was_up)]

    def tally(self, begin: int, end: int) -> Tally:
        """Of these ticks."""
        change, up = self.change[begin:end], self.up[begin:end]
        age = np.arange(begin, end)[:, None] * self.tick_hours - self.at_hours[change]
        up_hours, up_ends, away_hours, away_ends = (sums[change] for sums in self.sums)
        now, there = at_ages(age), up[:, :, None]
        return Tally(
            available=up,
            age_hours=age,
            up_hours=up_hours + now * there,
            up_ends=up_ends,
            away_hours=away_hours + now * ~there,
            away_ends=away_ends,
            known=np.ones(up.shape, dtype=np.bool_),
        )


def _within(values: Floats, firsts: Indices) -> Floats:
    """Running sums that begin anew with each pool."""
    for part in np.split(values, firsts[1:]):
        np.cumsum(part, axis=0, out=part)
    return values


def _median(had: Floats, prices: Floats) -> Floats:
    """Per place, over the ticks in which it could be had; over all where it never could."""
    many = np.isfinite(had).sum(axis=0)
    ordered = np.sort(np.where(many > 0, had, prices), axis=0)
    many = np.where(many > 0, many, len(had))
    middle = np.stack([(many - 1) // 2, many // 2])
    found: Floats = np.take_along_axis(ordered, middle, axis=0).mean(axis=0)
    return found


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
