"""Policies over the windows of a trace, beside the least possible: the figures of the table.  Percent above the optimum is that of the sums over windows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from planner.replay.intervals import Interval, difference
from planner.replay.market import Market, Terms, market_of
from planner.replay.optimum import hold, optimum_usd
from planner.replay.registry import REFERENCE
from planner.replay.simulate import Policy, Run, simulate
from planner.replay.trace import HOUR_S, Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from planner.replay.links import Links
    from planner.replay.trace import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A policy in a cell.  Points are percent points of the optimum, against failover on preemption; None where there is nothing to say."""

    policy: str
    mean_usd: float
    over_percent: float
    over_percent_second_half: float | None
    late: int
    moves: float
    preemptions: float
    on_demand_hours: float
    least_slack_hours: float
    points: float | None
    interval: Interval | None
    runs: tuple[Run, ...] = field(repr=False)

    @property
    def noise(self) -> bool:
        """The difference may be chance, or too little is known to say."""
        return self.interval is None or self.interval.noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A trace and a job: the optimum of each window and a row for each policy.  `impossible` windows are those that nothing finishes; they are left out."""

    trace: Trace
    market: Market
    terms: Terms
    begins: tuple[int, ...]
    least_usd: tuple[float, ...]
    impossible: int
    rows: tuple[Row, ...]

    @property
    def mean_least_usd(self) -> float:
        """The optimum's mean over windows."""
        return sum(self.least_usd) / len(self.least_usd)


def windows(trace: Trace, terms: Terms, every_hours: float) -> tuple[int, ...]:
    """The first ticks of the windows that lie wholly in the trace."""
    deadline = math.floor(terms.deadline_hours * HOUR_S / trace.gap_s + 1e-9)
    step = max(1, round(every_hours * HOUR_S / trace.gap_s))
    return tuple(range(0, trace.ticks - deadline + 1, step))


def cell_of(
    trace: Trace,
    terms: Terms,
    links: Links,
    policies: Sequence[Policy],
    begins: Sequence[int],
    *,
    tell: Callable[[str], None] = lambda _: None,
) -> Cell:
    """All policies in all windows.  Raises OptimumBeaten where one of them costs less than the optimum."""
    market = market_of(trace, terms, links)
    kept: dict[int, float] = {}
    for begin in begins:
        tell(f"{trace.name}: optimum, window at {begin * market.tick_hours:.0f} h")
        least = optimum_usd(market, begin)
        if math.isfinite(least):
            kept[begin] = least
    runs: dict[str, tuple[Run, ...]] = {}
    for policy in policies:
        tell(f"{trace.name}: {policy.name}")
        runs[policy.name] = tuple(simulate(market, policy, begin) for begin in kept)
        for run in runs[policy.name]:
            hold(run, kept[run.begin])
    least_usd = np.array(list(kept.values()))
    reference = np.array([r.cost_usd for r in runs.get(REFERENCE, ())])
    overlap = _overlap(market, tuple(kept))
    rows = tuple(
        _row(name, found, least_usd, reference, overlap=overlap, market=market) for name, found in runs.items() if found
    )
    return Cell(
        trace=trace,
        market=market,
        terms=terms,
        begins=tuple(kept),
        least_usd=tuple(kept.values()),
        impossible=len(begins) - len(kept),
        rows=rows,
    )


def _overlap(market: Market, begins: tuple[int, ...]) -> int:
    """How many windows share a tick with the one before them all."""
    if len(begins) < 2:  # noqa: PLR2004 - one window overlaps nothing
        return 1
    step = min(b - a for a, b in pairwise(begins))
    return max(1, math.ceil(market.deadline / step))


def _row(name: str, runs: tuple[Run, ...], least: Floats, reference: Floats, *, overlap: int, market: Market) -> Row:
    costs = np.array([r.cost_usd for r in runs])
    late_half = np.array([r.begin >= len(market.usd) / 2 for r in runs])
    hours = market.tick_hours / len(runs)
    compared = len(reference) == len(costs) and name != REFERENCE
    return Row(
        policy=name,
        mean_usd=float(costs.mean()),
        over_percent=_over(costs, least),
        over_percent_second_half=_over(costs[late_half], least[late_half]) if late_half.any() else None,
        late=sum(r.late for r in runs),
        moves=sum(r.moves for r in runs) / len(runs),
        preemptions=sum(r.preemptions for r in runs) / len(runs),
        on_demand_hours=sum(r.on_demand for r in runs) * hours,
        least_slack_hours=min(r.slack for r in runs) * market.tick_hours,
        points=float(100 * (costs.sum() - reference.sum()) / least.sum()) if compared else None,
        interval=difference(costs, reference, least, overlap) if compared else None,
        runs=runs,
    )


def _over(costs: Floats, least: Floats) -> float:
    return float(100 * (costs.sum() / least.sum() - 1))
