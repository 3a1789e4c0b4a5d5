"""A recorded market: which zone could be had when, at what price, as columns per tick.  Values only: reading files is `reading`'s, judging is nobody's here.

A spot price at or above the on-demand price counts as not available: nobody would take it, and the clouds cap it there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Indices = NDArray[np.int32]

HOUR_S = 3600.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Trace:
    """Ticks of `gap_s` seconds from `start` (None where the file does not say).

    zones               in a total order
    regions             the region of each zone
    available           [ticks, zones] spot can be had, and was seen
    spot_usd_h          [ticks, zones] nan where unknown
    on_demand_usd_h     [ticks, zones] nan where unknown
    name, instance, source   what the file says of itself
    """

    zones: tuple[str, ...]
    regions: tuple[str, ...]
    available: Flags
    spot_usd_h: Floats
    on_demand_usd_h: Floats
    gap_s: float
    start: datetime | None = None
    name: str = ""
    instance: str = ""
    source: str = ""

    @property
    def ticks(self) -> int:
        """How many there are."""
        return len(self.available)

    @property
    def hours(self) -> float:
        """How long it is."""
        return self.ticks * self.gap_s / HOUR_S

    @property
    def usable(self) -> Flags:
        """[ticks, zones]: available, at a known price below on-demand's."""
        dear = self.spot_usd_h >= np.where(np.isnan(self.on_demand_usd_h), np.inf, self.on_demand_usd_h)
        return self.available & ~np.isnan(self.spot_usd_h) & ~dear

    def at_ticks_of(self, tick_s: float) -> Trace:
        """The same market in ticks of `tick_s`: a zone is available in one only if it is through the whole of it; prices are those at its begin."""
        if tick_s == self.gap_s:
            return self
        count = int(self.ticks * self.gap_s / tick_s + 1e-9)
        begin = np.arange(count) * tick_s
        first = np.floor(begin / self.gap_s + 1e-9).astype(np.int64)
        end = np.minimum(np.ceil((begin + tick_s) / self.gap_s - 1e-9).astype(np.int64), self.ticks)
        missing = np.concatenate([np.zeros((1, len(self.zones)), np.int64), np.cumsum(~self.usable, axis=0)])
        return replace(
            self,
            available=(missing[end] - missing[first]) == 0,
            spot_usd_h=self.spot_usd_h[first],
            on_demand_usd_h=self.on_demand_usd_h[first],
            gap_s=tick_s,
        )

    def only(self, zones: Sequence[str]) -> Trace:
        """Those zones, which must be its own."""
        chosen = [k for k, z in enumerate(self.zones) if z in set(zones)]
        return replace(
            self,
            zones=tuple(self.zones[k] for k in chosen),
            regions=tuple(self.regions[k] for k in chosen),
            available=self.available[:, chosen],
            spot_usd_h=self.spot_usd_h[:, chosen],
            on_demand_usd_h=self.on_demand_usd_h[:, chosen],
        )

    def part(self, first: int, end: int) -> Trace:
        """Ticks `first` to before `end`."""
        return replace(
            self,
            available=self.available[first:end],
            spot_usd_h=self.spot_usd_h[first:end],
            on_demand_usd_h=self.on_demand_usd_h[first:end],
            start=None if self.start is None else self.start + timedelta(seconds=first * self.gap_s),
        )
