"""Market x targets: the offers as columns, priced as this project pays for them.

Decides the total order of offers (cloud, target, region, zone, instance type, capacity), their pools, and their price after overrides and
reservations.  Judges nothing: see `feasible`.  Built once per (market, project) and read by every job of a call.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from planner.model.market import BLOCKING, UNKNOWN_PRICE, Mark, Market
from planner.model.offer import CAPACITY_ORDER, CapacityType, InstanceType, Region, offer_id, pool_id
from planner.model.project import PriceOverride, Project, Reservation, Target
from planner.placement.egress import TariffTable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Columns = dict[str, NDArray[Any]]

_S = TypeVar("_S", bound=np.generic)

RESERVED = CAPACITY_ORDER.index(CapacityType.RESERVED)
_PRICE_MARKS = ~(Mark.NONE | Mark.OPT_IN_ZONE | Mark.ZONE_UNCONFIRMED)
"""What a price from skyplan.yaml settles: everything but doubts about the place."""


@dataclass(frozen=True, eq=False)
class Offers:
    """One entry per offer.  `row` points into the market; `pair` into (pair_type, pair_region), the distinct type x region cells.

    overridden[i] is True where a price comes from skyplan.yaml; reservation[i] is a position in `reservations` or -1.
    """

    market: Market
    targets: tuple[Target, ...]
    reservations: tuple[Reservation, ...]
    row: NDArray[np.int32]
    target_ix: NDArray[np.int16]
    type_ix: NDArray[np.int32]
    region_ix: NDArray[np.int32]
    zone_ix: NDArray[np.int32]
    capacity: NDArray[np.int8]
    price_micros: NDArray[np.int64]
    marks: NDArray[np.int32]
    overridden: NDArray[np.bool_]
    reservation: NDArray[np.int16]
    pair: NDArray[np.int32]
    pair_type: NDArray[np.int32]
    pair_region: NDArray[np.int32]
    pool: NDArray[np.int32]
    pool_first: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.row)

    @cached_property
    def tariffs(self) -> TariffTable:
        """The traffic tariffs of the market."""
        return TariffTable(self.market.links.tariffs)

    def kind(self, i: int) -> InstanceType:
        """The instance type of offer `i`."""
        return self.market.types[int(self.type_ix[i])]

    def region(self, i: int) -> Region:
        """The region of offer `i`."""
        return self.market.regions[int(self.region_ix[i])]

    def zone(self, i: int) -> str:
        """The zone of offer `i`, "" where prices and pools are regional."""
        return self.market.zones[int(self.zone_ix[i])]

    def sold_as(self, i: int) -> CapacityType:
        """The capacity type of offer `i`."""
        return CAPACITY_ORDER[int(self.capacity[i])]

    def target(self, i: int) -> Target:
        """The target of offer `i`."""
        return self.targets[int(self.target_ix[i])]

    def reserved(self, i: int) -> Reservation | None:
        """The reservation that offer `i` stands for, if any."""
        position = int(self.reservation[i])
        return self.reservations[position] if position >= 0 else None

    def offer_id(self, i: int) -> str:
        """The readable id of offer `i`."""
        t = self.target(i)
        return offer_id(
            cloud=t.cloud.value,
            target=t.name,
            region=self.region(i).name,
            zone=self.zone(i),
            instance_type=self.kind(i).name,
            capacity=self.sold_as(i).value,
        )

    def pool_id(self, pool: int) -> str:
        """The readable id of a pool."""
        i = int(self.pool_first[pool])
        t = self.target(i)
        return pool_id(
            cloud=t.cloud.value,
            target=t.name,
            region=self.region(i).name,
            zone=self.zone(i),
            hardware=self.kind(i).hardware,
            capacity=self.sold_as(i).value,
        )

    @cached_property
    def pool_index(self) -> dict[str, int]:
        """Pool id -> position."""
        return {self.pool_id(p): p for p in range(len(self.pool_first))}


def matching(patterns: tuple[str, ...], names: Iterable[str]) -> NDArray[np.bool_]:
    """Which names match one of the globs; no pattern matches all."""
    return np.array([not patterns or any(fnmatchcase(n, p) for p in patterns) for n in names], dtype=bool)


def offers_of(market: Market, project: Project, *, as_of: str) -> Offers:
    """Every offer of the market on every target, with the project's prices.  `as_of` decides which reservations are open."""
    order = {c: i for i, c in enumerate(sorted({t.cloud.value for t in market.types}))}
    targets = tuple(sorted(project.targets, key=lambda t: (order.get(t.cloud.value, 99), t.name)))
    cloud_of_type = np.array([order[t.cloud.value] for t in market.types], dtype=np.int16)
    rows: list[NDArray[np.int32]] = []
    owners: list[NDArray[np.int16]] = []
    row_cloud = cloud_of_type[market.type_ix]
    for k, target in enumerate(targets):
        mine = row_cloud == order.get(target.cloud.value, 99)
        if target.regions:
            mine &= matching(target.regions, (r.name for r in market.regions))[market.region_ix]
        found = np.flatnonzero(mine).astype(np.int32)
        rows.append(found)
        owners.append(np.full(len(found), k, dtype=np.int16))
    row = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int32)
    owner = np.concatenate(owners) if owners else np.zeros(0, dtype=np.int16)
    whole = len(row) == len(market) and bool(np.all(row[:-1] < row[1:]))

    def pick(column: NDArray[_S]) -> NDArray[_S]:
        return column if whole else column[row]

    price, overridden = _override(market, project.prices, row, pick(market.price_micros))
    marks = pick(market.marks)
    if overridden.any():
        marks = np.where(overridden, marks & ~int(_PRICE_MARKS), marks).astype(np.int32)
    marks = _opted_in(market, targets, row, owner, marks)
    columns: Columns = {
        "row": row,
        "target_ix": owner,
        "type_ix": pick(market.type_ix),
        "region_ix": pick(market.region_ix),
        "zone_ix": pick(market.zone_ix),
        "capacity": pick(market.capacity),
        "price_micros": price,
        "marks": marks,
        "overridden": overridden,
        "reservation": np.full(len(row), -1, dtype=np.int16),
    }
    open_now = tuple(r for r in project.reserved if r.starts <= as_of < r.expires)
    if open_now:
        columns = _reserve(market, targets, open_now, columns)
    return _index(market, targets, open_now, columns)


def _override(
    market: Market, overrides: tuple[PriceOverride, ...], row: NDArray[np.int32], price: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The last matching override wins; a discount off an unknown price stays unknown."""
    touched = np.zeros(len(row), dtype=bool)
    if not overrides:
        return price, touched
    price = price.copy()
    type_ix, region_ix, capacity = market.type_ix[row], market.region_ix[row], market.capacity[row]
    listed = price.copy()
    for o in overrides:
        types = matching(o.instance_types, (t.name for t in market.types))
        if o.clouds:
            types &= np.array([t.cloud.value in o.clouds for t in market.types])
        hit = types[type_ix] & matching(o.regions, (r.name for r in market.regions))[region_ix]
        if o.capacity:
            hit &= capacity == CAPACITY_ORDER.index(CapacityType(o.capacity))
        if o.usd_per_hour is not None:
            price[hit] = round(o.usd_per_hour * 1e6)
        elif o.discount is not None:
            hit &= listed != UNKNOWN_PRICE
            price[hit] = np.rint(listed[hit] * (1 - o.discount)).astype(np.int64)
        touched |= hit & (o.usd_per_hour is not None)
    return price, touched


def _opted_in(
    market: Market,
    targets: tuple[Target, ...],
    row: NDArray[np.int32],
    owner: NDArray[np.int16],
    marks: NDArray[np.int32],
) -> NDArray[np.int32]:
    """Zones, and regions that need opting in as a whole, lose their mark where a target lists them under `opt_in_zones`."""
    for k, target in enumerate(targets):
        if target.opt_in_zones:
            zones = matching(target.opt_in_zones, (z or "-" for z in market.zones))
            regions = matching(target.opt_in_zones, (r.name for r in market.regions))
            mine = (owner == k) & (zones[market.zone_ix[row]] | regions[market.region_ix[row]])
            marks = np.where(mine, marks & ~int(Mark.OPT_IN_ZONE), marks).astype(np.int32)
    return marks


def _reserve(
    market: Market,
    targets: tuple[Target, ...],
    open_now: tuple[Reservation, ...],
    columns: Columns,
) -> Columns:
    """One more offer per open reservation, at marginal price 0: the money is spent either way."""
    types = {(t.cloud.value, t.name): i for i, t in enumerate(market.types)}
    zones = {z: i for i, z in enumerate(market.zones)}
    extra: list[dict[str, int]] = []
    for j, r in enumerate(open_now):
        # a name may stand once per cloud: the instance type tells which is meant
        owner = next(
            (k for k, t in enumerate(targets) if t.name == r.target and (t.cloud.value, r.instance_type) in types), None
        )
        if owner is None or r.zone not in zones:
            continue
        cloud = targets[owner].cloud.value
        kind, region = types[(cloud, r.instance_type)], market.region_index.get((cloud, r.region))
        if region is None:
            continue
        like = np.flatnonzero((market.type_ix == kind) & (market.region_ix == region))
        if not len(like):
            continue
        extra.append(
            {
                "row": int(like[0]),
                "target_ix": owner,
                "type_ix": kind,
                "region_ix": region,
                "zone_ix": zones[r.zone],
                "capacity": RESERVED,
                "price_micros": 0,
                "marks": 0,
                "overridden": 1,
                "reservation": j,
            }
        )
    if not extra:
        return columns
    joined = {k: np.concatenate([v, np.array([e[k] for e in extra]).astype(v.dtype)]) for k, v in columns.items()}
    keys = ("capacity", "type_ix", "zone_ix", "region_ix", "target_ix")
    order = np.lexsort(tuple(joined[k] for k in keys))
    return {k: v[order] for k, v in joined.items()}


def _index(
    market: Market,
    targets: tuple[Target, ...],
    open_now: tuple[Reservation, ...],
    columns: Columns,
) -> Offers:
    """Number the distinct type x region cells and the pools."""
    c: dict[str, NDArray[np.int64]] = {k: v.astype(np.int64) for k, v in columns.items() if k != "overridden"}
    n_regions, n_zones = max(len(market.regions), 1), max(len(market.zones), 1)
    cell = c["type_ix"] * n_regions + c["region_ix"]
    cells, pair = _number(cell, max(len(market.types), 1) * n_regions)
    names = {h: i for i, h in enumerate(sorted({t.hardware for t in market.types}))}
    hardware = np.array([names[t.hardware] for t in market.types], dtype=np.int64)
    place = c["region_ix"] * n_zones + c["zone_ix"]
    key = (place * max(len(names), 1) + hardware[c["type_ix"]]) * len(CAPACITY_ORDER) + c["capacity"]
    key = key * max(len(targets), 1) + c["target_ix"]
    _, first, pool = np.unique(key, return_index=True, return_inverse=True)
    return Offers(
        market=market,
        targets=targets,
        reservations=open_now,
        pair=pair,
        pair_type=(cells // n_regions).astype(np.int32),
        pair_region=(cells % n_regions).astype(np.int32),
        pool=pool.astype(np.int32),
        pool_first=first.astype(np.int32),
        **columns,
    )


def _number(cell: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The distinct values of `cell` (all below `size`) in order, and each entry's position among them."""
    present = np.zeros(size, dtype=bool)
    present[cell] = True
    cells = np.flatnonzero(present)
    position = np.zeros(size, dtype=np.int32)
    position[cells] = np.arange(len(cells), dtype=np.int32)
    return cells, position[cell]


def blocked(marks: int) -> Mark:
    """The marks among `marks` that keep an offer out."""
    return Mark(marks) & BLOCKING
