"""What is wrong in the data: every rule marks offers, and nothing marked as blocking ever wins (planner.model.market.BLOCKING).

Rules judge figures against each other and against bands in gpus.csv; they know no job and no project.  Vectorised, since every load runs them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.model.codes import CODES
from planner.model.diagnostic import Diagnostic, Location, Severity
from planner.model.market import MARK_CODES, UNKNOWN_PRICE, Figure, Mark
from planner.model.offer import CAPACITY_ORDER, CapacityType, InstanceType, Region

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from catalog.files import Gpu
    from catalog.prices import Prices

ON_DEMAND, SPOT = CAPACITY_ORDER.index(CapacityType.ON_DEMAND), CAPACITY_ORDER.index(CapacityType.SPOT)
FLAT_REGIONS = 3
"""The same price to the millionth in this many regions, on at least two continents, where the cloud's other regions differ, is another product's price.
(GCP H100 at $4.20076 per GPU stood in seven regions of three continents; the list price is twice that.)"""
FLAT_AREAS = 2
FLAT_BELOW = 0.75
"""…and it is at least a quarter below the median of the type's other regions: clouds do have honest ties, but not at a discount."""


@dataclass(frozen=True, eq=False)
class Facts:
    """What the rules read."""

    prices: Prices
    types: Sequence[InstanceType]
    regions: Sequence[Region]
    local_zones: frozenset[str]
    gpus: dict[str, Gpu]
    figures: dict[str, Figure]
    as_of_day: int


def marks(f: Facts) -> NDArray[np.int32]:
    """Mark bits per offer."""
    p = f.prices
    out = np.zeros(len(p.micros), dtype=np.int32)
    spot, listed = p.capacity == SPOT, p.capacity == ON_DEMAND
    out[p.bad] |= Mark.BAD_VALUE
    out[_implausible(f, spot) | _below_trusted(f, listed)] |= Mark.IMPLAUSIBLE
    dear, suspect = _spot_not_cheaper(f, spot, listed)
    out[dear] |= Mark.SPOT_NOT_CHEAPER
    out[suspect] |= Mark.UNVERIFIED
    out[_flat(f, listed)] |= Mark.FLAT
    closed = np.array([z in f.local_zones for z in p.zones])[p.zone_ix]
    closed |= np.array([r.opt_in for r in f.regions])[p.region_ix]
    out[closed] |= Mark.OPT_IN_ZONE
    ttl = np.array([f.figures["price_ttl_hours.on_demand"].value, f.figures["price_ttl_hours.spot"].value, np.inf])
    out[(f.as_of_day - p.day) * 24.0 > ttl[p.capacity]] |= Mark.STALE
    out[_disagree(f)] |= Mark.SOURCES_DISAGREE
    out[listed & ~np.array([t.od_sold for t in f.types])[p.type_ix]] |= Mark.NOT_SOLD
    out[p.spread] |= Mark.ZONE_UNCONFIRMED
    out[p.doubted] |= Mark.UNVERIFIED
    return out


def _implausible(f: Facts, spot: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Outside the band of USD per GPU-hour of its model."""
    p = f.prices
    low_od = np.array([f.gpus[t.gpu].od_min_usd * t.gpu_count for t in f.types])[p.type_ix]
    low_spot = np.array([f.gpus[t.gpu].spot_min_usd * t.gpu_count for t in f.types])[p.type_ix]
    high = np.array([f.gpus[t.gpu].od_max_usd * t.gpu_count for t in f.types])[p.type_ix]
    usd = p.micros / 1e6
    return (p.micros != UNKNOWN_PRICE) & ((usd < np.where(spot, low_spot, low_od)) | (usd > high))


def _below_trusted(f: Facts, listed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Unverified on-demand prices well below the cheapest verified one per GPU of the same cloud and model.

    Host and GPU prices that stem from two lists vary by region with the host, so neither the band nor the flat rule sees a GPU price that is
    another product's (a3-edgegpu-8g at $43.07, while every verified 8 x H100 of that cloud costs $88 and more).
    """
    p = f.prices
    names = {key: i for i, key in enumerate(sorted({(t.cloud.value, t.gpu) for t in f.types}))}
    model = np.array([names[t.cloud.value, t.gpu] for t in f.types], dtype=np.int64)[p.type_ix]
    per_gpu = p.micros / np.array([t.gpu_count for t in f.types], dtype=np.int64)[p.type_ix]
    priced = listed & (p.micros > 0)
    trusted = priced & ~p.doubted
    cheapest = np.full(len(names), np.inf)
    np.minimum.at(cheapest, model[trusted], per_gpu[trusted])
    floor = np.where(np.isfinite(cheapest), cheapest * f.figures["below_trusted"].value, 0.0)
    return priced & p.doubted & (per_gpu < floor[model])


def _spot_not_cheaper(
    f: Facts, spot: NDArray[np.bool_], listed: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Spot offers at or above on-demand of the same place; and on-demand offers that a spot price exceeds, which are doubtful then."""
    p = f.prices
    place = (p.type_ix.astype(np.int64) * len(f.regions) + p.region_ix) * len(p.zones) + p.zone_ix
    dear, suspect = np.zeros(len(place), dtype=bool), np.zeros(len(place), dtype=bool)
    od = np.flatnonzero(listed & (p.micros > 0))
    if not len(od):
        return dear, suspect
    od = od[np.argsort(place[od], kind="stable")]
    s = np.flatnonzero(spot & (p.micros > 0))
    at = np.minimum(np.searchsorted(place[od], place[s]), len(od) - 1)
    found = place[od][at] == place[s]
    s, o = s[found], od[at[found]]
    dear[s[p.micros[s] >= p.micros[o]]] = True
    suspect[o[p.micros[s] > p.micros[o]]] = True
    return dear, suspect


def _flat(f: Facts, listed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """On-demand prices flat over continents and well below the type's other regions."""
    p = f.prices
    out = np.zeros(len(p.micros), dtype=bool)
    area = {a: i for i, a in enumerate(sorted({r.area for r in f.regions}))}
    area_of = np.array([area[r.area] for r in f.regions])
    index = np.flatnonzero(listed & (p.micros > 0))
    index = index[np.argsort(p.type_ix[index], kind="stable")]
    for group in np.split(index, np.flatnonzero(np.diff(p.type_ix[index])) + 1):
        values, inverse, counts = np.unique(p.micros[group], return_inverse=True, return_counts=True)
        if len(values) < FLAT_AREAS:
            continue
        for v in np.flatnonzero(counts >= FLAT_REGIONS):
            same = group[inverse == v]
            regions = np.unique(p.region_ix[same])
            if len(regions) < FLAT_REGIONS or len(np.unique(area_of[regions])) < FLAT_AREAS:
                continue
            if values[v] < FLAT_BELOW * np.median(p.micros[group[inverse != v]]):
                out[same] = True
    return out


def _disagree(f: Facts) -> NDArray[np.bool_]:
    """Two sources differ by more than the tolerance."""
    p = f.prices
    both = (p.other > 0) & (p.micros > 0)
    gap = np.abs(p.micros - p.other) / np.maximum(np.minimum(p.micros, p.other), 1)
    return both & (gap > f.figures["disagreement"].value)


def findings(f: Facts, found: NDArray[np.int32]) -> tuple[Diagnostic, ...]:
    """Every mark as a warning at its line of prices.csv; a region-wide row is told once."""
    p = f.prices
    out: dict[tuple[int, str], Diagnostic] = {}
    for i in np.flatnonzero(found):
        t, region = f.types[int(p.type_ix[i])], f.regions[int(p.region_ix[i])]
        place = p.zones[int(p.zone_ix[i])] if not p.spread[i] and p.zone_ix[i] else region.name
        price = "unknown" if p.micros[i] < 0 else f"${p.micros[i] / 1e6:.4f}/h"
        for mark in Mark:
            if mark is not Mark.NONE and int(found[i]) & mark:
                code = MARK_CODES[mark]
                words = f"{t.name} {place} {CAPACITY_ORDER[int(p.capacity[i])].value} {price}: {CODES[code].meaning}"
                at = Location("prices.csv", int(p.line[i]))
                out.setdefault(
                    (int(p.line[i]), code),
                    Diagnostic(code=code, summary=words, location=at, severity=Severity.WARNING),
                )
    return tuple(sorted(out.values(), key=Diagnostic.sort_key))


def counts(found: Sequence[Diagnostic]) -> dict[str, int]:
    """Findings by code."""
    return dict(sorted(Counter(d.code for d in found).items()))
