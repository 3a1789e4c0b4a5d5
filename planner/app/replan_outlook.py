"""What the history leads to expect of a job's candidates: how long pools last, when they return, what they usually cost; and which quotas were withdrawn.

Decides over how much of the past it looks.  Nothing after `now` counts, so that a past replan can be made again.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from planner.app.situation import TAKEN
from planner.migration.costing import Outlook, Shape, default_outlook
from planner.migration.lifetimes import Past, expected, steady
from planner.model.ledger import AvailabilityMemory, Failure
from planner.model.readings import CapacityWord, series_of_offer
from planner.model.record import moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from planner.app.situation import Seen as JobSeen
    from planner.migration.constants import Rule
    from planner.migration.options import Floats
    from planner.model.ledger import Holding
    from planner.state.history_values import Quota, Seen, Steps

LOOK_BACK: Final = timedelta(days=30)
"""Spot markets change their habits within months (notes/spot.md); older outages say little."""
AWAY: Final = frozenset({CapacityWord.NONE, CapacityWord.RECLAIMED, CapacityWord.WITHDRAWN})


class Remembers(Protocol):
    """What is asked of the history, as `planner.state.history.History` gives it."""

    def changes(self, series: Sequence[str], since: datetime, until: datetime) -> Mapping[str, Steps]:
        """Prices over that time."""
        ...

    def capacity_changes(
        self, series: Sequence[str], since: datetime, until: datetime
    ) -> Mapping[str, tuple[Seen, ...]]:
        """What was seen over that time."""
        ...

    def quotas(self, target: str | None = None, at: datetime | None = None) -> tuple[Quota, ...]:
        """As they were last read."""
        ...


def outlook_of(shape: Shape, history: Remembers | None, now: datetime, rule: Rule) -> tuple[Outlook, bool]:
    """Of each candidate; and whether anything at all was known of how long its pools last."""
    found = default_outlook(shape, rule)
    if history is None or not len(shape):
        return found, False
    series = [series_of_offer(name) for name in shape.names]
    since, nodes = now - LOOK_BACK, shape.workload.resources.nodes
    told_prices = history.changes(series, since, now)
    prices = [told_prices.get(name) for name in series]
    found = replace(
        found, usual_usd_per_hour=_usual(shape, prices, nodes, now), steady_hours=_steady(prices, rule, now)
    )
    seen = history.capacity_changes([s for s, spot in zip(series, shape.spot, strict=True) if spot], since, now)
    past = _past([seen.get(name, ()) for name in series])
    if not len(past.pool):
        return found, False
    told = expected(past, len(series), now.timestamp() / 3600, rule)
    known, sure = told.known & shape.spot, ~shape.spot
    return (
        replace(
            found,
            lifetime_hours=np.where(known, told.lifetime_hours, found.lifetime_hours),
            return_hours=np.where(known & (told.return_hours > 0), told.return_hours, found.return_hours),
            # on demand nothing is taken back
            fresh_hours=np.where(sure, np.inf, told.fresh_hours),
            outage_hours=told.outage_hours,
            up_share=np.where(sure, 1.0, told.up_share),
        ),
        bool(known.any()),
    )


def _usual(shape: Shape, prices: Sequence[Steps | None], nodes: int, now: datetime) -> Floats:
    """What an hour usually costs; besides the nodes' price it costs what it does now."""
    usual = shape.usd_per_hour.copy()
    for at, steps in enumerate(prices):
        if steps is not None:
            usual[at] += _typical(steps, now) * nodes - shape.price_usd_per_hour[at]
    return usual


def _steady(prices: Sequence[Steps | None], rule: Rule, now: datetime) -> Floats | None:
    """How long the present price of each is expected to last, by how often it changed notably while it was observed; None where nothing was."""
    told = [steps for steps in prices if steps is not None]
    if not told:
        return None
    changes = np.zeros(len(prices))
    for at, steps in enumerate(prices):
        if steps is not None and len(steps.micro_usd) > 1:
            before = steps.micro_usd[:-1].astype(np.float64)
            changes[at] = np.count_nonzero(np.abs(np.diff(steps.micro_usd)) > rule.notable * before)
    first = min(int(steps.at[0]) for steps in told)
    return steady(changes, max(now.timestamp() - first / 1e6, 3600.0) / 3600, rule)


def _typical(steps: Steps, now: datetime) -> float:
    """The median over time, in USD per hour and node."""
    at = np.append(steps.at, np.int64(now.timestamp() * 1e6))
    lasted = np.maximum(np.diff(at), 0)
    order = np.argsort(steps.micro_usd, kind="stable")
    half = int(np.count_nonzero(np.cumsum(lasted[order]) < lasted.sum() / 2))
    return float(steps.micro_usd[order][min(half, len(order) - 1)]) / 1e6


def _past(seen: Sequence[Sequence[Seen]]) -> Past:
    """Changes between there and away; words that say nothing of capacity are passed over."""
    pool, at, there = list[int](), list[float](), list[bool]()
    for number, words in enumerate(seen):
        before: bool | None = None
        for one in words:
            if one.word is CapacityWord.OFFERED or (one.word not in AWAY) is before:
                continue
            before = one.word not in AWAY
            pool.append(number)
            at.append(moment(one.at).timestamp() / 3600)
            there.append(before)
    return Past(
        pool=np.array(pool, dtype=np.int32),
        at_hours=np.array(at, dtype=np.float64),
        available=np.array(there, dtype=np.bool_),
    )


def memory_of(known: AvailabilityMemory, jobs: Iterable[JobSeen]) -> AvailabilityMemory:
    """What was refused and what feeds saw fail, and the pools that took nodes of our own jobs back."""
    found = set(known.failures)
    for job in jobs:
        pools = {r.generation: r.pool for r in job.runs}
        found |= {
            Failure(scope=pools[move.from_generation], code="reclaimed", kind="capacity", at=move.at)
            for move in job.moved(TAKEN)
            if move.from_generation in pools
        }
    return AvailabilityMemory(tuple(sorted(found)))


def withdrawn(quotas: Sequence[Quota], holdings: Sequence[Holding]) -> dict[str, str]:
    """By job, why the quota that it runs on was withdrawn: the limit is below what runs under it."""
    out: dict[str, str] = {}
    for quota in quotas:
        q = quota.reading
        mine = [
            h
            for h in holdings
            if h.target == quota.target
            and h.pool.startswith(f"{q.cloud}:")
            and h.region == q.region
            and q.capacity in {"", h.capacity}
            and any(fnmatchcase(h.instance_type, pattern) for pattern in q.instance_types)
        ]
        used = sum(h.vcpus if q.unit == "vcpus" else h.gpus for h in mine)
        if mine and used > q.limit:
            why = f"{q.name} of {q.cloud}:{quota.target} in {q.region} is {q.limit:g} {q.unit}, and {used} run under it"
            out |= dict.fromkeys((h.job for h in mine), why)
    return out
