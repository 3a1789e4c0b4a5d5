"""Changes as they were recorded, made into ticks: a value holds until the next row of its zone.  Shared by all readers; knows no file format.

What is not known stays not known, except an on-demand price: those are list prices that change once a year, so a gap is filled from the zone's own rows, then from its
region, then from the whole trace, and the reader says so.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from planner.replay.trace import Trace

if TYPE_CHECKING:
    from datetime import datetime

    from planner.replay.trace import Floats

LONGEST_GAP_S = 600.0
"""Files that do not say how often they looked are cut into ticks of their greatest common divisor, and of this at most."""
_MINUTE_S = 60
MOST_GAP_S = 31_622_400.0
"""A year."""
MOST_CELLS = 20_000_000
"""Ticks times zones: 380 years of one zone, or a year of 380, in ticks of ten minutes; half a gigabyte."""
MOST_USD_H = 1_000_000
"""No node costs a million USD per hour (as in planner.state.history_values)."""
_ZONE_NAMES = (
    re.compile(r"^(?P<region>[a-z]{2}(?:-[a-z]+)+-\d)[a-z]$"),  # us-east-1a
    re.compile(r"^(?P<region>[a-z]+-[a-z]+\d+)-[a-z]$"),  # us-central1-a
    re.compile(r"^(?P<region>.+)-\d$"),  # eastus-1
)


class TooLong(ValueError):
    """More ticks and zones than memory is for: most often a time or a gap that is wrong."""


@dataclass(slots=True)
class Points:
    """Rows of one instance type, in the order of the file.  nan is unknown, and so is a price of 0: nothing is free; `available` may be a count of nodes."""

    zone: list[str] = field(default_factory=list[str])
    region: list[str] = field(default_factory=list[str])
    at_s: list[float] = field(default_factory=list[float])
    available: list[float] = field(default_factory=list[float])
    spot_usd_h: list[float] = field(default_factory=list[float])
    on_demand_usd_h: list[float] = field(default_factory=list[float])

    def add(self, zone: str, region: str, at_s: float, values: tuple[float, float, float]) -> None:
        """One row: available, spot, on demand."""
        self.zone.append(zone)
        self.region.append(region or region_of(zone))
        self.at_s.append(at_s)
        self.available.append(values[0])
        self.spot_usd_h.append(values[1] or math.nan)
        self.on_demand_usd_h.append(values[2] or math.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """What a file says of itself.  `gap_s` and `ticks` 0: it does not say."""

    name: str = ""
    gap_s: float = 0.0
    ticks: int = 0
    start: datetime | None = None
    instance: str = ""
    source: str = ""


def region_of(zone: str) -> str:
    """The region of a zone by its name; the zone itself where the name says nothing."""
    for pattern in _ZONE_NAMES:
        found = pattern.match(zone)
        if found:
            return found["region"]
    return zone


def trace_of(points: Points, heading: Heading) -> Trace:
    """The trace.  A zone without a row yet is not available; one that is lost within a tick is not available in it.  Raises TooLong."""
    at = np.array(points.at_s, dtype=np.float64)
    gap = heading.gap_s or _gap(at)
    named = dict(zip(points.zone, points.region, strict=True))
    zones = tuple(sorted(named))
    length = float(heading.ticks or float(at.max()) / gap + 1)
    if length * len(zones) > MOST_CELLS or gap > MOST_GAP_S:
        raise TooLong(
            f"{length:.4g} ticks of {gap:g} s in {len(zones)} zones: more than can be replayed; is a time wrong?"
        )
    ticks = math.floor(length)
    available = np.zeros((ticks, len(zones)), dtype=np.bool_)
    spot, on_demand = np.full((ticks, len(zones)), np.nan), np.full((ticks, len(zones)), np.nan)
    rows: dict[str, list[int]] = {z: [] for z in zones}
    for k, zone in enumerate(points.zone):
        rows[zone].append(k)
    begins = np.arange(ticks) * gap
    values = tuple(np.array(v) for v in (points.available, points.spot_usd_h, points.on_demand_usd_h))
    for column, zone in enumerate(zones):
        chosen = np.array(rows[zone])[np.argsort(at[rows[zone]], kind="stable")]
        times = at[chosen]
        row = np.searchsorted(times, begins + 1e-6, side="right") - 1
        seen = row >= 0
        have, price, list_price = (v[chosen] for v in values)
        up = np.where(np.isnan(have), ~np.isnan(price), have > 0)
        available[:, column] = seen & up[row]
        spot[seen, column] = _held(price)[row[seen]]
        on_demand[:, column] = _spread(list_price)[np.maximum(row, 0)]
        within = np.floor(times / gap + 1e-9).astype(np.int64)
        off = ~up & (times - within * gap > 1e-6 * gap) & (within < ticks) & (within >= 0)
        available[within[off], column] = False
    regions = tuple(named[z] for z in zones)
    return Trace(
        zones=zones,
        regions=regions,
        available=available,
        spot_usd_h=spot,
        on_demand_usd_h=_from_neighbours(on_demand, regions),
        gap_s=gap,
        start=heading.start,
        name=heading.name,
        instance=heading.instance,
        source=heading.source,
    )


def _gap(at: Floats) -> float:
    """The greatest common divisor of the times in whole seconds, where it is a minute or more; LONGEST_GAP_S at most."""
    common = math.gcd(*{round(x) for x in at.tolist()})
    return float(min(common, LONGEST_GAP_S)) if common >= _MINUTE_S else LONGEST_GAP_S


def _held(values: Floats) -> Floats:
    """Each unknown takes the last known before it."""
    known = ~np.isnan(values)
    last = np.maximum.accumulate(np.where(known, np.arange(len(values)), -1))
    return np.where(last >= 0, values[np.maximum(last, 0)], np.nan)


def _spread(values: Floats) -> Floats:
    """Each unknown takes the last known before it, or the first after it."""
    held = _held(values)
    known = np.flatnonzero(~np.isnan(values))
    return np.where(np.isnan(held), values[known[0]], held) if len(known) else held


def _from_neighbours(on_demand: Floats, regions: tuple[str, ...]) -> Floats:
    """A zone without any on-demand price takes its region's, else the median of all."""
    missing = np.asarray(np.isnan(on_demand).all(axis=0), dtype=np.bool_)
    if not missing.any() or missing.all():
        return on_demand
    filled = on_demand.copy()
    known = ~missing
    same = np.array(regions)
    for column in np.flatnonzero(missing):
        near = known & (same == regions[int(column)])
        filled[:, column] = np.median(on_demand[:, near if near.any() else known], axis=1)
    return filled
