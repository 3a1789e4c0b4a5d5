"""Price rows as columns: references resolved, region-wide prices spread over the region's zones, sorted, one row per offer.

Decides nothing about belief: a price that is no positive number becomes unknown (-1) and is noted for `check`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

import numpy as np

from planner.model.market import UNKNOWN_PRICE
from planner.model.offer import CAPACITY_ORDER, InstanceType, Region

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from catalog.table import Table

ANY_ZONE = "*"
MOST_USD = 1e6
"""No node costs a million USD per hour; beyond lies what the columns cannot hold."""
_EPOCH = date(1970, 1, 1)
_CAPACITY = {c.value: i for i, c in enumerate(CAPACITY_ORDER)}


@dataclass(frozen=True, eq=False)
class Prices:
    """One entry per offer, sorted by (cloud, region, zone, instance type, capacity).

    line       line in prices.csv
    bad        the cell held no positive number
    spread     known for the region only, stands for one of its zones
    doubted    the file says derived or unverified
    other      USD micros of a second source, -1 where there is none
    """

    zones: tuple[str, ...]
    sources: tuple[str, ...]
    type_ix: NDArray[np.int32]
    region_ix: NDArray[np.int32]
    zone_ix: NDArray[np.int32]
    capacity: NDArray[np.int8]
    micros: NDArray[np.int64]
    other: NDArray[np.int64]
    day: NDArray[np.int32]
    source_ix: NDArray[np.int16]
    line: NDArray[np.int32]
    bad: NDArray[np.bool_]
    spread: NDArray[np.bool_]
    doubted: NDArray[np.bool_]


def day_of(text: str) -> int:
    """Days since 1970-01-01 of `2026`, `2026-05` or `2026-05-20`; a month or year counts from its first day.  Raises ValueError."""
    parts = [int(p) for p in text.split("-")]
    return (date(*[*parts, 1, 1][:3]) - _EPOCH).days


def micros_of(text: str) -> int:
    """USD as millionths, -1 for what is no number of at least a millionth and at most MOST_USD."""
    try:
        value = float(text)
    except ValueError:
        return UNKNOWN_PRICE
    return (round(value * 1e6) if 0 < value <= MOST_USD else 0) or UNKNOWN_PRICE


def read_prices(table: Table, types: Sequence[InstanceType], regions: Sequence[Region]) -> Prices:
    """All rows.  Dangling references and repeated rows are problems of the file."""
    type_at = {(t.cloud.value, t.name): i for i, t in enumerate(types)}
    region_at = {(r.cloud.value, r.name): i for i, r in enumerate(regions)}
    zones: dict[str, int] = {}
    sources: dict[str, int] = {}
    days: dict[str, int] = {}
    seen: dict[tuple[int, int, str, int], int] = {}
    out: list[tuple[int, int, str, int, int, int, int, int, int, bool, bool, bool]] = []
    for k, row in enumerate(table.rows):
        cloud, region_name, zone, name, capacity_name, usd, as_of, source, other, _, trust = row
        kind, place, capacity = (
            type_at.get((cloud, name)),
            region_at.get((cloud, region_name)),
            _CAPACITY.get(capacity_name),
        )
        if kind is None or place is None or capacity is None:
            table.wrong(
                k + 2,
                f"{cloud} {region_name} {name} {capacity_name}: type, region or capacity is not known",
                "SKY-CAT-110",
            )
            continue
        if as_of not in days:
            try:
                days[as_of] = day_of(as_of)
            except (ValueError, OverflowError):
                table.wrong(k + 2, f"`as_of` is `{as_of}`, expected a date")
                continue
        micros = micros_of(usd)
        second = micros_of(other) if other else UNKNOWN_PRICE
        from_source = sources.setdefault(source, len(sources))
        spread = zone == ANY_ZONE
        for one in (regions[place].zones or ("",)) if spread else (zone,):
            key = (kind, place, one, capacity)
            if key in seen:
                table.wrong(
                    k + 2, f"{name} {region_name} {one} {capacity_name} stands at line {seen[key]} too", "SKY-CAT-107"
                )
                continue
            seen[key] = k + 2
            out.append(
                (
                    place,
                    kind,
                    one,
                    capacity,
                    micros,
                    second,
                    days[as_of],
                    from_source,
                    k + 2,
                    micros < 0,
                    spread,
                    bool(trust),
                )
            )
    zones = {z: i for i, z in enumerate(("", *sorted({o[2] for o in out} - {""})))}
    out.sort(key=lambda o: (o[0], zones[o[2]], o[1], o[3]))
    columns = list(zip(*out, strict=True)) if out else [()] * 12
    return Prices(
        zones=tuple(zones),
        sources=tuple(sources),
        type_ix=np.array(columns[1], dtype=np.int32),
        region_ix=np.array(columns[0], dtype=np.int32),
        zone_ix=np.array([zones[z] for z in columns[2]], dtype=np.int32),
        capacity=np.array(columns[3], dtype=np.int8),
        micros=np.array(columns[4], dtype=np.int64),
        other=np.array(columns[5], dtype=np.int64),
        day=np.array(columns[6], dtype=np.int32),
        source_ix=np.array(columns[7], dtype=np.int16),
        line=np.array(columns[8], dtype=np.int32),
        bad=np.array(columns[9], dtype=bool),
        spread=np.array(columns[10], dtype=bool),
        doubted=np.array(columns[11], dtype=bool),
    )
