"""Where a job could run during a recorded market, with what starting and moving costs there, in ticks.  Builds columns; decides nothing.

The model (Can't Be Late, SkyNomad): a start or a move makes no progress for ceil((cold start + transfer of the checkpoint) / tick) ticks, which are billed at the
destination's price; between regions the checkpoint's egress is paid once; inside a region nothing is transferred; on-demand can always be had.
A preemption loses nothing but the restart: checkpoints are continuous.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from planner.replay.trace import HOUR_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.replay.links import Links
    from planner.replay.trace import Flags, Floats, Indices, Trace

_EPSILON = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The job of a replay.  `round_start` turns ticks of a start into whole ones: up, unless numbers of others are reproduced."""

    work_hours: float = 24.0
    deadline_hours: float = 36.0
    cold_minutes: float = 10.0
    checkpoint_gb: float = 50.0
    round_start: Callable[[float], int] = math.ceil


@dataclass(frozen=True, eq=False, kw_only=True)
class Market:
    """Places are the zones' spot pools, then on-demand once per region.

    names           per place
    zones           how many of them are spot
    regions         names of regions, in a total order
    region          per place, its region's number
    usd             [ticks, places] per hour; inf where it cannot be had
    up              [ticks, places]
    start_ticks     [regions + 1, places] ticks without progress, by the region that holds the checkpoint; the last row: nothing is held yet
    egress_usd      [regions + 1, places] paid once, likewise
    stop_hours      [regions + 1, places] the same hours before rounding
    tick_hours      hours per tick
    work, deadline  the job, in ticks
    memo            what was worked out of it and never changes, by whoever did
    """

    names: tuple[str, ...]
    zones: int
    regions: tuple[str, ...]
    region: Indices
    usd: Floats
    up: Flags
    start_ticks: Indices
    egress_usd: Floats
    stop_hours: Floats
    tick_hours: float
    work: int
    deadline: int
    terms: Terms
    trace: Trace
    memo: dict[object, object] = field(default_factory=dict[object, object], repr=False)

    @cached_property
    def changeover(self) -> int:
        """The longest start, in ticks: what the safety net reckons with."""
        return int(self.start_ticks.max())

    @property
    def on_demand(self) -> range:
        """The places on demand."""
        return range(self.zones, len(self.names))

    def only(self, zones: tuple[str, ...]) -> Market:
        """With those zones alone, and on-demand in their regions."""
        spot = [k for k in range(self.zones) if self.names[k] in zones]
        regions = sorted({int(self.region[k]) for k in spot})
        kept = [*spot, *(self.zones + r for r in regions)]
        rows = [*regions, len(self.regions)]
        renumbered = np.full(len(self.regions), -1, dtype=np.int32)
        renumbered[regions] = np.arange(len(regions))
        return replace(
            self,
            names=tuple(self.names[k] for k in kept),
            zones=len(spot),
            regions=tuple(self.regions[r] for r in regions),
            region=renumbered[self.region[kept]],
            usd=self.usd[:, kept],
            up=self.up[:, kept],
            start_ticks=self.start_ticks[np.ix_(rows, kept)],
            egress_usd=self.egress_usd[np.ix_(rows, kept)],
            stop_hours=self.stop_hours[np.ix_(rows, kept)],
            trace=self.trace.only(zones),
            memo={},
        )


def market_of(trace: Trace, terms: Terms, links: Links) -> Market:
    """The market of a trace, for one job.  `links` counts the regions in the order of `regions_of`."""
    regions = regions_of(trace)
    zone_region = np.array([regions.index(r) for r in trace.regions], dtype=np.int32)
    tick_hours = trace.gap_s / HOUR_S
    on_demand = np.full((trace.ticks, len(regions)), np.inf)
    known = np.where(np.isnan(trace.on_demand_usd_h), np.inf, trace.on_demand_usd_h)
    for k in range(len(regions)):
        on_demand[:, k] = known[:, zone_region == k].min(axis=1)
    spot = np.where(trace.usable, trace.spot_usd_h, np.inf)
    usd = np.concatenate([spot, on_demand], axis=1)
    region = np.concatenate([zone_region, np.arange(len(regions), dtype=np.int32)])
    work = max(1, math.ceil(terms.work_hours / tick_hours - _EPSILON))
    deadline = math.floor(terms.deadline_hours / tick_hours + _EPSILON)
    # of a start after which the job cannot be done in time it does not matter by how much: memory goes by the longest
    longest = max(1, deadline - work + 1)
    between = terms.checkpoint_gb * 8 / links.gbps / HOUR_S
    np.fill_diagonal(between, 0.0)
    paid = terms.checkpoint_gb * links.usd_per_gb
    np.fill_diagonal(paid, 0.0)
    cold = terms.cold_minutes / 60
    stop = np.concatenate([cold + between, np.full((1, len(regions)), cold)])[:, region]
    paid = np.concatenate([paid, np.zeros((1, len(regions)))])[:, region]
    return Market(
        names=(*trace.zones, *(f"{r} on demand" for r in regions)),
        zones=len(trace.zones),
        regions=regions,
        region=region,
        usd=usd,
        up=np.isfinite(usd),
        start_ticks=np.array(
            [[min(longest, _ticks(min(h / tick_hours, longest), terms)) for h in row] for row in stop], dtype=np.int32
        ),
        egress_usd=paid,
        stop_hours=stop,
        tick_hours=tick_hours,
        work=work,
        deadline=deadline,
        terms=terms,
        trace=trace,
    )


def regions_of(trace: Trace) -> tuple[str, ...]:
    """The regions of a trace, each once, in a total order."""
    return tuple(sorted(set(trace.regions)))


def _ticks(exact: float, terms: Terms) -> int:
    return max(0, terms.round_start(round(exact, 9)))
