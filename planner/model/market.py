"""The market as columns: what is for sale, where, at what price, over which links, at one moment.

A Market is a value: built by `catalog` (or from a snapshot), read by `placement`.  It holds no rule and no clock; `as_of` is its newest
observation.  Arrays are read-only.  Rows are sorted by (cloud, region, zone, instance type, capacity), so the row number is a total order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntFlag
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from planner.model.offer import InstanceType, Region

UNKNOWN_PRICE = -1
"""In `price_micros`: no price is known.  Never 0."""


class Mark(IntFlag):
    """What the catalog check found about an offer; shown as a caveat.  BLOCKING marks keep an offer from winning."""

    NONE = 0
    BAD_VALUE = 1  # SKY-CAT-102
    IMPLAUSIBLE = 2  # SKY-CAT-103
    SPOT_NOT_CHEAPER = 4  # SKY-CAT-104
    FLAT = 8  # SKY-CAT-105
    OPT_IN_ZONE = 16  # SKY-CAT-108
    STALE = 32  # SKY-CAT-109, at the market's as_of
    SOURCES_DISAGREE = 64  # SKY-CAT-111
    NOT_SOLD = 128  # SKY-CAT-112
    ZONE_UNCONFIRMED = 256  # SKY-CAT-113
    UNVERIFIED = 512  # SKY-CAT-114


MARK_CODES: dict[Mark, str] = {
    Mark.BAD_VALUE: "SKY-CAT-102",
    Mark.IMPLAUSIBLE: "SKY-CAT-103",
    Mark.SPOT_NOT_CHEAPER: "SKY-CAT-104",
    Mark.FLAT: "SKY-CAT-105",
    Mark.OPT_IN_ZONE: "SKY-CAT-108",
    Mark.STALE: "SKY-CAT-109",
    Mark.SOURCES_DISAGREE: "SKY-CAT-111",
    Mark.NOT_SOLD: "SKY-CAT-112",
    Mark.ZONE_UNCONFIRMED: "SKY-CAT-113",
    Mark.UNVERIFIED: "SKY-CAT-114",
}

#: offers with one of these are rejected (SKY-REJ-213, or 204 for the last three) unless skyplan.yaml overrides price or zone
BLOCKING = Mark.BAD_VALUE | Mark.IMPLAUSIBLE | Mark.SPOT_NOT_CHEAPER | Mark.FLAT | Mark.OPT_IN_ZONE | Mark.NOT_SOLD


@dataclass(frozen=True, slots=True)
class Tier:
    """One step of a tariff: `usd_per_gb` for what lies above `from_gb` (10^9 bytes) up to the next step."""

    from_gb: float
    usd_per_gb: float


@dataclass(frozen=True, slots=True)
class Tariff:
    """A traffic tariff: steps in ascending order, the first at 0 GB.  `source` and `as_of` per figure; `unverified` is shown."""

    steps: tuple[Tier, ...]
    source: str
    as_of: str
    unverified: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its origin."""

    value: float
    unit: str
    source: str
    as_of: str


@dataclass(frozen=True, eq=False)
class Links:
    """Traffic between regions.  Index = position in Market.regions.

    tariff_ix[from, to]   position in `tariffs`
    gbps[from, to]        Gbit/s that one node can be fed over that path; the diagonal is bucket and node in one region
    gbps_estimated        True where no measurement exists and a documented default stands
    rtt_ms[a, b]          milliseconds there and back, symmetric; worked out for pairs of two clouds, the only ones that a tunnel joins
    rtt_estimated         True where no measurement exists and the median of the same two areas stands
    """

    tariffs: tuple[Tariff, ...]
    tariff_ix: NDArray[np.int16]
    gbps: NDArray[np.float64]
    gbps_estimated: NDArray[np.bool_]
    rtt_ms: NDArray[np.float64]
    rtt_estimated: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Market:
    """All offers, for one anonymous target per cloud; `placement` multiplies them by the project's targets.

    The columns have one entry per offer:
      type_ix, region_ix, zone_ix   positions in `types`, `regions`, `zones` (zone 0 is "": prices and pools are regional)
      capacity                      position in CAPACITY_ORDER
      price_micros                  USD per hour and node x 1e6; UNKNOWN_PRICE (-1) where none is known
      price_day                     days since 1970-01-01 of the observation
      interruptions_per_hour        expected interruptions per node-hour (0 for on-demand)
      marks                         Mark bits of the catalog check
      source_ix                     position in `sources`
    """

    types: tuple[InstanceType, ...]
    regions: tuple[Region, ...]
    zones: tuple[str, ...]
    sources: tuple[str, ...]
    type_ix: NDArray[np.int32]
    region_ix: NDArray[np.int32]
    zone_ix: NDArray[np.int32]
    capacity: NDArray[np.int8]
    price_micros: NDArray[np.int64]
    price_day: NDArray[np.int32]
    interruptions_per_hour: NDArray[np.float64]
    marks: NDArray[np.int32]
    source_ix: NDArray[np.int16]
    links: Links
    speeds: dict[str, float]
    """GPU model -> relative training speed of one GPU, A100-80GB = 1 (see catalog/data/gpus.csv for sources)."""
    figures: dict[str, Figure]
    """Named constants with a source: NAT, disk, acquisition time, pull rate ... (see catalog/data/figures.csv)."""
    as_of: str
    """ISO date of the newest observation; the moment at which ages are counted inside a plan."""
    digest: str
    """sha256 of the files this was built from."""
    aliases: dict[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    """Lower-case spelling without spaces, `_` and `-` -> the canonical GPU models it may mean."""

    def __len__(self) -> int:
        return len(self.price_micros)

    @cached_property
    def region_index(self) -> dict[tuple[str, str], int]:
        """(cloud, region name) -> position."""
        return {(r.cloud.value, r.name): i for i, r in enumerate(self.regions)}

    @cached_property
    def type_index(self) -> dict[tuple[str, str], InstanceType]:
        """(cloud, name) -> the instance type."""
        return {(t.cloud.value, t.name): t for t in reversed(self.types)}
