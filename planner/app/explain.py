"""Why this, why not that: the fate of the offers a person asks about."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from planner.placement.explain import Verdict, verdict

if TYPE_CHECKING:
    from planner.app.plan import Planned
    from planner.model.plan import PlacementPlan
    from planner.placement.explain import Context

_SOONEST = 5
"""Offers that are told of a job that waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`matched` offers in all; `verdicts` of the nearest: feasible ones in order, then those with the fewest reasons.

    waits   why the job waits, planned now; "" where it does not
    waited  why it waits by its standing plan, which may have been made with others; "" where it does not
    """

    plan: PlacementPlan
    pattern: str | None
    matched: int
    verdicts: tuple[Verdict, ...]
    waits: str = ""
    waited: str = ""


def answer(planned: Planned, pattern: str | None, limit: int) -> Answer:
    """The fate of offers that match `pattern`; without one, of the ranked ones, and of a job that waits of those that it would get the soonest."""
    context = planned.placed.context
    if pattern:
        found = _matching(context, pattern)
    elif planned.waits:
        found, limit = np.arange(len(context.offers)), min(limit, _SOONEST)
    else:
        found = np.asarray(context.ranking.best)
    splits = _splits(planned.plan, pattern)
    verdicts = [*splits, *(verdict(context, int(i)) for i in _nearest(context, found, limit))]
    verdicts.sort(key=lambda v: (v.position is None, v.position or 0, len(v.rejections), v.total_usd or 0, v.offer_id))
    matched = len(found) + len(splits)
    return Answer(
        plan=planned.plan,
        pattern=pattern,
        matched=matched,
        verdicts=tuple(verdicts[:limit]),
        waits=planned.plan.waits,
        waited=planned.waited,
    )


def _splits(plan: PlacementPlan, pattern: str | None) -> list[Verdict]:
    """The ranked placements over several clouds, which are no single offer."""
    return [
        Verdict(
            offer_id=p.offer_id,
            rejections=(),
            position=p.rank,
            total_usd=float(p.total_usd),
            finish_hours=float(p.finish_hours),
        )
        for p in plan.ranked
        if p.parts and (pattern is None or fnmatchcase(p.offer_id, f"*{pattern.strip('*')}*"))
    ]


def _matching(context: Context, pattern: str) -> np.ndarray:
    """By offer id, instance type, region or cloud; a plain word also matches as a part of the id."""
    offers = context.offers
    market = offers.market
    names = [t.name for t in market.types]
    by_type = np.array([fnmatchcase(n, pattern) for n in names])[offers.type_ix]
    by_region = np.array([fnmatchcase(r.name, pattern) for r in market.regions])[offers.region_ix]
    by_cloud = np.array([t.cloud.value == pattern for t in market.types])[offers.type_ix]
    hit = by_type | by_region | by_cloud
    if not hit.any():
        whole = pattern if any(c in pattern for c in "*?[") else f"*{pattern}*"
        hit = np.array([fnmatchcase(offers.offer_id(i), whole) for i in range(len(offers))], dtype=bool)
    return np.flatnonzero(hit)


def _nearest(context: Context, found: np.ndarray, limit: int) -> np.ndarray:
    """The most interesting ones: feasible before rejected, then by total, then by order."""
    scores, bits = context.ranking.judged.scores, context.ranking.bits
    total = np.full(len(context.offers), np.iinfo(np.int64).max)
    total[scores.index] = scores.total
    order = np.lexsort((found, total[found], bits[found] != 0))
    return found[order[:limit]]
