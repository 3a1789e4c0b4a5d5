"""The least that a window can cost, knowing all of it beforehand: exact dynamic programming over (tick, work left, place or region, mode).  No policy may beat it.

Backwards in time.  A job runs at a place, or stands still with its checkpoint in a region (or with none yet).  From standing still it may start anywhere, may give a
start up half-way (its checkpoint has moved by then), or wait; from running it may go on or stop, and to stop and start at once is to move.  Memory is bounded by the
longest start: only that many ticks are kept, unless the way itself is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from planner.replay.market import Market
    from planner.replay.simulate import Run
    from planner.replay.trace import Floats

ROUNDING_USD = 1e-6


class OptimumBeaten(AssertionError):
    """A run that cost less than the least possible: the simulator or the optimum is wrong, and no number of either can be trusted."""


@dataclass(frozen=True, eq=False, slots=True)
class _Values:
    """[place, work left] and [region or none, work left]: what is still to be paid at a tick."""

    running: Floats
    still: Floats


def optimum_usd(market: Market, begin: int = 0) -> float:
    """The least cost of the window that begins at that tick; inf where nothing finishes in time."""
    ticks = min(market.deadline, len(market.usd) - begin)
    steps = _Steps(market, begin, ticks)
    ahead: dict[int, _Values] = {ticks: steps.last()}
    for tick in range(ticks - 1, -1, -1):
        ahead[tick] = steps.before(ahead, tick)
        ahead.pop(tick + steps.longest, None)
    return float(ahead[0].still[-1, market.work])


def hold(run: Run, least_usd: float) -> None:
    """Raise OptimumBeaten where a finished run cost less."""
    if not run.late and run.cost_usd < least_usd - ROUNDING_USD:
        raise OptimumBeaten(f"{run.policy}, tick {run.begin}: ${run.cost_usd:.4f} < ${least_usd:.4f}")


class _Steps:
    """From the values after a tick to those of the tick.  Places are sorted by region: inside one they are alike in what a start takes."""

    def __init__(self, market: Market, begin: int, ticks: int) -> None:
        order = np.argsort(market.region, kind="stable")
        self.usd = market.usd[begin : begin + ticks, order] * market.tick_hours
        self.region = market.region[order]
        self.firsts = np.searchsorted(self.region, np.arange(len(market.regions)))
        self.start_ticks = market.start_ticks[:, order][:, self.firsts]
        self.egress_usd = market.egress_usd[:, order][:, self.firsts]
        self.ticks, self.work = ticks, market.work
        self.starts = int(market.start_ticks.max())
        self.longest = max(1, self.starts)

    def last(self) -> _Values:
        """At the deadline: nothing is to be paid by what is done, and nothing else is allowed."""
        done = np.full(self.work + 1, np.inf)
        done[0] = 0.0
        return _Values(np.tile(done, (len(self.region), 1)), np.tile(done, (len(self.start_ticks), 1)))

    def before(self, ahead: dict[int, _Values], tick: int) -> _Values:
        """The values of `tick`."""
        following = ahead[tick + 1]
        run_on = np.empty_like(following.running)
        run_on[:, 0] = 0.0
        np.add(self.usd[tick][:, None], following.running[:, :-1], out=run_on[:, 1:])
        still = following.still.copy()
        reached = np.full((self.starts + 1, self.firsts.size, self.work + 1), np.inf)
        reached[0] = np.minimum.reduceat(run_on, self.firsts)
        rent = np.zeros(len(self.region))
        for length in range(1, min(self.starts, self.ticks - tick) + 1):
            rent = rent + self.usd[tick + length - 1]
            after = ahead[tick + length]
            reached[length] = np.minimum.reduceat(rent[:, None] + after.running, self.firsts)
            if length < self.starts:
                self._given_up(still, np.minimum.reduceat(rent, self.firsts), after, length)
        arrived = reached[self.start_ticks, np.arange(self.firsts.size)]
        arrived += self.egress_usd[:, :, None]
        np.minimum(still, arrived.min(axis=1), out=still)
        still[:, 0] = 0.0
        return _Values(np.minimum(run_on, still[self.region]), still)

    def _given_up(self, still: Floats, rent: Floats, after: _Values, length: int) -> None:
        """A start that is left after `length` ticks: paid for, and its checkpoint is there."""
        paid = np.where(self.start_ticks > length, self.egress_usd + rent, np.inf)
        there = paid[:, :, None] + after.still[None, :-1]
        np.minimum(still, there.min(axis=1), out=still)
