"""What the history leads to expect of a job's candidates: how long pools last, when they return, what they usually cost; and which quotas were withdrawn.

Decides over how much of the past it looks.  Nothing after `now` counts, so that a past replan can be made again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from itertools import pairwise
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


@dataclass(frozen=True, slots=True)
class Habit:
    """Of one price: what a node usually costs, how often that changed notably, and since when it was observed (microseconds)."""

    usual_usd: float
    changes: int
    first: int


@dataclass(slots=True)
class Told:
    """What the history said of series over one span, kept as long as a round: shapes share most of them."""

    history: Remembers
    now: datetime
    rule: Rule
    _prices: dict[str, Habit | None] = field(default_factory=dict[str, "Habit | None"])
    _words: dict[str, tuple[tuple[float, bool], ...]] = field(
        default_factory=dict[str, "tuple[tuple[float, bool], ...]"]
    )

    def prices(self, series: Sequence[str]) -> list[Habit | None]:
        """Of each; None where nothing was observed."""
        new = [name for name in dict.fromkeys(series) if name not in self._prices]
        if new:
            found = self.history.changes(new, self.now - LOOK_BACK, self.now)
            self._prices |= {n: _habit(found[n], self.now, self.rule) if n in found else None for n in new}
        return [self._prices[name] for name in series]

    def words(self, series: Sequence[str]) -> list[tuple[tuple[float, bool], ...]]:
        """Of each, when (hours) it came to be there or away."""
        new = [name for name in dict.fromkeys(series) if name not in self._words]
        if new:
            found = self.history.capacity_changes(new, self.now - LOOK_BACK, self.now)
            self._words |= {name: _there_or_away(found.get(name, ())) for name in new}
        return [self._words[name] for name in series]


def outlook_of(shape: Shape, told: Told | None, now: datetime, rule: Rule) -> tuple[Outlook, bool]:
    """Of each candidate; and whether anything at all was known of how long its pools last."""
    found = default_outlook(shape, rule)
    if told is None or not len(shape):
        return found, False
    series = [series_of_offer(name) for name in shape.names]
    prices = told.prices(series)
    found = replace(found, usual_usd_per_hour=_usual(shape, prices), steady_hours=_steady(prices, rule, now))
    spots = np.flatnonzero(shape.spot).tolist()
    past = _past(zip(spots, told.words([series[at] for at in spots]), strict=True))
    if not len(past.pool):
        return found, False
    learnt = expected(past, len(series), now.timestamp() / 3600, rule)
    known, sure = learnt.known & shape.spot, ~shape.spot
    return (
        replace(
            found,
            lifetime_hours=np.where(known, learnt.lifetime_hours, found.lifetime_hours),
            return_hours=np.where(known & (learnt.return_hours > 0), learnt.return_hours, found.return_hours),
            # on demand nothing is taken back
            fresh_hours=np.where(sure, np.inf, learnt.fresh_hours),
            outage_hours=learnt.outage_hours,
            up_share=np.where(sure, 1.0, learnt.up_share),
        ),
        bool(known.any()),
    )


def _usual(shape: Shape, prices: Sequence[Habit | None]) -> Floats:
    """What an hour usually costs; besides the nodes' price it costs what it does now."""
    usual, nodes = shape.usd_per_hour.copy(), shape.workload.resources.nodes
    at = [k for k, habit in enumerate(prices) if habit is not None]
    told = np.array([habit.usual_usd for habit in prices if habit is not None])
    usual[at] += told * nodes - shape.price_usd_per_hour[at]
    return usual


def _steady(prices: Sequence[Habit | None], rule: Rule, now: datetime) -> Floats | None:
    """How long the present price of each is expected to last, by how often it changed notably while it was observed; None where nothing was."""
    if not any(prices):
        return None
    changes = np.array([habit.changes if habit else 0 for habit in prices], dtype=np.float64)
    first = min(habit.first for habit in prices if habit)
    return steady(changes, max(now.timestamp() - first / 1e6, 3600.0) / 3600, rule)


def _habit(steps: Steps, now: datetime, rule: Rule) -> Habit:
    """Plain numbers: most prices have few steps, and there are thousands of them."""
    at, micro = [*steps.at.tolist(), int(now.timestamp() * 1e6)], steps.micro_usd.tolist()
    lasted = [max(b - a, 0) for a, b in pairwise(at)]
    changes = sum(abs(b - a) > rule.notable * a for a, b in pairwise(micro))
    return Habit(usual_usd=_typical(micro, lasted) / 1e6, changes=changes, first=at[0])


def _typical(micro: Sequence[int], lasted: Sequence[int]) -> float:
    """The median over time."""
    half, past, order = sum(lasted) / 2, 0, sorted(range(len(micro)), key=micro.__getitem__)
    for k in order:
        past += lasted[k]
        if past >= half:
            return float(micro[k])
    return float(micro[order[-1]])


def _there_or_away(words: Sequence[Seen]) -> tuple[tuple[float, bool], ...]:
    """Changes between there and away; words that say nothing of capacity are passed over."""
    out: list[tuple[float, bool]] = []
    before: bool | None = None
    for one in words:
        if one.word is CapacityWord.OFFERED or (one.word not in AWAY) is before:
            continue
        before = one.word not in AWAY
        out.append((moment(one.at).timestamp() / 3600, before))
    return tuple(out)


def _past(seen: Iterable[tuple[int, Sequence[tuple[float, bool]]]]) -> Past:
    pool, at, there = list[int](), list[float](), list[bool]()
    for number, changes in seen:
        pool += [number] * len(changes)
        at += [hours for hours, _ in changes]
        there += [is_there for _, is_there in changes]
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
