"""Small markets made by hand: a word of a few ticks per zone, `.` not available and a digit its price."""

from __future__ import annotations

import numpy as np

from planner.replay.links import links_of
from planner.replay.market import Market, Terms, market_of, regions_of
from planner.replay.trace import Trace


def trace(
    zones: dict[str, str], *, regions: dict[str, str] | None = None, on_demand: float = 10.0, gap_s: float = 600.0
) -> Trace:
    names = tuple(sorted(zones))
    up = np.array([[c != "." for c in zones[z]] for z in names]).T
    spot = np.array([[np.nan if c == "." else float(c) for c in zones[z]] for z in names]).T
    return Trace(
        zones=names,
        regions=tuple((regions or {}).get(z, z[:-1]) for z in names),
        available=up,
        spot_usd_h=spot,
        on_demand_usd_h=np.full(up.shape, on_demand),
        gap_s=gap_s,
        name="made",
    )


def market(
    zones: dict[str, str], *, work: int, deadline: int, gb: float = 0.0, cold: int = 1, on_demand: float = 10.0
) -> Market:
    """Work, deadline and cold start in ticks of 10 minutes."""
    made = trace(zones, on_demand=on_demand)
    terms = Terms(work_hours=work / 6, deadline_hours=deadline / 6, cold_minutes=10.0 * cold, checkpoint_gb=gb)
    return market_of(made, terms, links_of(regions_of(made)))
