"""What runs already, as one more candidate: without start-up, at its current rate, and no refusal of new nodes keeps it out.

Decides nothing about moving; it only makes the ranker see what runs as it is.  The scores of all other offers stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.model.offer import CAPACITY_ORDER, CapacityType, offer_name
from planner.placement.cost import TERMS, TICKS_PER_USD, ticks

if TYPE_CHECKING:
    from planner.placement.offers import Offers
    from planner.placement.rank import Judged


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The offer that a job runs on.  `usd_per_hour` of all nodes, where it is not the market's; None = as the market has it."""

    offer_id: str
    usd_per_hour: float | None = None


def position(offers: Offers, offer_id: str) -> int | None:
    """Where an offer stands among the offers; None where the market or the project has lost it, and for a job in several clouds."""
    try:
        name = offer_name(offer_id)
        capacity = CAPACITY_ORDER.index(CapacityType(name.capacity))
    except ValueError:
        return None
    market = offers.market
    region = market.region_index.get((name.cloud, name.region))
    if region is None or name.zone not in market.zones:
        return None
    hit = (
        (offers.region_ix == region) & (offers.capacity == capacity) & (offers.zone_ix == market.zones.index(name.zone))
    )
    for i in np.flatnonzero(hit):
        if offers.kind(int(i)).name == name.instance_type and offers.target(int(i)).name == name.target:
            return int(i)
    return None


def with_standing(offers: Offers, judged: Judged, standing: Standing) -> tuple[Judged, int | None]:
    """The judgement with what runs in its true colours, and its position; unchanged where it is no candidate."""
    i = position(offers, standing.offer_id)
    if i is None:
        return judged, None
    found = np.flatnonzero(judged.scores.index == i)
    if not len(found):
        return judged, None
    at, s = int(found[0]), judged.scores
    pair = int(offers.pair[i])
    acquire, start = float(judged.cells.acquire_hours[pair]), float(judged.cells.start_hours[pair])
    terms = {name: column.copy() for name, column in s.terms.items()}
    terms["startup"][at] = 0
    rate = s.usd_per_hour.copy()
    if standing.usd_per_hour is not None:
        rate[at] = int(ticks(np.array([standing.usd_per_hour]))[0])
        for name, hours in (("compute", s.hours[at]), ("interruptions", s.lost_hours[at])):
            terms[name][at] = int(ticks(np.array([rate[at] / TICKS_PER_USD * hours]))[0])
    total = np.zeros_like(s.total)
    for name in TERMS:
        total += terms[name]
    finish = s.finish_hours.copy()
    finish[at] -= acquire + start
    scores = replace(s, terms=terms, total=total, finish_hours=finish, usd_per_hour=rate)
    return replace(judged, scores=scores, order=np.lexsort((s.index, finish, total))), i
