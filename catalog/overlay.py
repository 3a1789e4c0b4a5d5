"""Newer prices laid over a market, with the check's marks made anew where they could have changed.

Decides that a price which was observed replaces the catalog's doubts about its own row (a bad, implausible or unconfirmed figure) and is judged by the same rules; rows
without a newer price keep their marks, but for their age and for spot against on-demand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from catalog import check, files
from catalog.prices import Prices
from planner.model.diagnostic import ordered
from planner.model.errors import InputError
from planner.model.market import UNKNOWN_PRICE, Mark, Market

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.model.diagnostic import Diagnostic

_AGING = int(Mark.STALE | Mark.SPOT_NOT_CHEAPER)


@dataclass(frozen=True, eq=False, kw_only=True)
class Layer:
    """What was observed, one entry per offer that it says a price of.

    row        in the market
    least      what the cheapest of several sources says, in micro-USD
    day        days since 1970-01-01 on which it was seen last
    source     position in `sources`
    zonal      told of the very zone; False: of its region
    withdrawn  rows of the market that are not sold any more
    """

    row: NDArray[np.int64]
    micros: NDArray[np.int64]
    least: NDArray[np.int64]
    day: NDArray[np.int64]
    source: NDArray[np.int64]
    zonal: NDArray[np.bool_]
    sources: Sequence[str]
    withdrawn: NDArray[np.int64]


def overlaid(market: Market, layer: Layer, *, as_of: str, as_of_day: int, digest: str, folder: Path | None) -> Market:
    """The market with the layer's prices, ages counted at `as_of_day`.  `folder`: the catalog that it was loaded from.  Raises InputError."""
    micros, day, source = market.price_micros.copy(), market.price_day.copy(), market.source_ix.copy()
    micros[layer.row], day[layer.row] = layer.micros, layer.day
    source[layer.row] = len(market.sources) + layer.source
    told = np.zeros(len(market), dtype=bool)
    told[layer.row] = True
    region_wide = (market.marks & int(Mark.ZONE_UNCONFIRMED)) != 0
    region_wide[layer.row] &= ~layer.zonal
    prices = Prices(
        zones=market.zones,
        sources=(*market.sources, *layer.sources),
        type_ix=market.type_ix,
        region_ix=market.region_ix,
        zone_ix=market.zone_ix,
        capacity=market.capacity,
        micros=micros,
        other=np.full(len(market), UNKNOWN_PRICE, dtype=np.int64),
        day=day,
        source_ix=source,
        line=np.zeros(len(market), dtype=np.int32),
        bad=(micros == UNKNOWN_PRICE) & ((market.marks & int(Mark.BAD_VALUE)) != 0),
        spread=region_wide,
        doubted=~told & ((market.marks & int(Mark.UNVERIFIED)) != 0),
    )
    prices.other[layer.row] = np.where(layer.least == layer.micros, UNKNOWN_PRICE, layer.least)
    fresh = check.marks(_facts(market, prices, as_of_day, folder))
    marks = np.where(told, fresh, (market.marks & ~_AGING) | (fresh & (_AGING | int(Mark.UNVERIFIED))))
    marks[layer.withdrawn] |= int(Mark.NOT_SOLD)
    columns = {"price_micros": micros, "price_day": day, "source_ix": source, "marks": marks.astype(np.int32)}
    for column in columns.values():
        column.flags.writeable = False
    return replace(market, **columns, sources=prices.sources, as_of=as_of, digest=digest)


def _facts(market: Market, prices: Prices, as_of_day: int, folder: Path | None) -> check.Facts:
    problems: list[Diagnostic] = []
    gpus = files.read_gpus(files.open_table(folder or files.PACKAGED, "gpus.csv", problems))
    places = files.read_regions(files.open_table(folder or files.PACKAGED, "regions.csv", problems))
    if problems:
        raise InputError(ordered(problems))
    return check.Facts(
        prices=prices,
        types=market.types,
        regions=market.regions,
        local_zones=places.local_zones,
        gpus=gpus,
        figures=market.figures,
        as_of_day=as_of_day,
    )
