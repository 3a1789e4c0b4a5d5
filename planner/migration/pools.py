"""Which pools a job that does not run is looked at with, and as which sets it could settle on them: what `planner.migration.ahead` makes tables of.

A set is the cheapest pools of one region, or of all: on two of them the job goes on where on one it waits, at a higher price.  Pools of a region go away together more
than by chance.  Hours of work are hours on the reference place; a place that is slower costs more of its hours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.migration.ahead import FINE, FINE_USD, Settled, rounded

if TYPE_CHECKING:
    from planner.migration.constants import Rule
    from planner.migration.options import Floats, Indices, Options, Situation

SHORTEST_HOURS = 1.0 / 60.0
ROAMS = -1
WORTH = (0.0, 0.3, 1.0)
"""What an hour of waiting may be worth, of an hour on demand: which sets are worth tables."""
DEAR = 4.0
"""Without a place on demand a late job is reckoned as if there were one at this many times the dearest price: it waits for spot, and not for long."""


@dataclass(frozen=True, eq=False)
class Field:
    """What is looked at.  Columns have one entry per pool looked at; hours are the reference place's.

    index          the pools, as options
    fallback       the place on demand; None where there is none
    step_hours     of the tables
    time_hours     until the deadline, or until patience ends; need_hours: of work
    net_hours      slack below which it goes on demand
    pace           work done per hour, of the reference place's
    fresh_hours, outage_hours, up_share, carry_usd   as in Options, or made up; carry_usd: of the checkpoint to the pool
    stop_hours     of a start within a region, and of one across
    across_usd     [regions, regions] as they are numbered in `region`
    """

    index: Indices
    fallback: int | None
    step_hours: float
    time_hours: float
    need_hours: float
    net_hours: float
    on_demand_usd: float
    fall_hours: float
    pace: Floats
    region: Indices
    usual_usd: Floats
    fresh_hours: Floats
    outage_hours: Floats
    up_share: Floats
    carry_usd: Floats
    stop_hours: tuple[float, float]
    across_usd: Floats


def field_of(situation: Situation, options: Options, rule: Rule, fallback: int | None) -> Field | None:
    """None where there is no pool to look at."""
    reference = (
        float(options.work_rate[fallback]) if fallback is not None else float(options.work_rate.max(initial=1.0))
    )
    need = situation.work_hours / reference
    index = _looked_at(situation, options, rule, need)
    if not len(index):
        return None
    fresh, outage, share = _habits(options, index, rule)
    stops = options.stop_hours[index]
    fall = float(options.stop_hours[fallback]) if fallback is not None else float(stops.min())
    several = len(np.unique(options.region[index])) > 1
    # where nothing is saved yet the way of a checkpoint is not known: as long again as a start
    across = float(stops.max()) * (2.0 if several and situation.home < 0 else 1.0)
    longest = max(across, fall)
    time = situation.deadline_hours if np.isfinite(situation.deadline_hours) else need * (1.0 + rule.patience)
    # more slack than this is never used up
    time = min(time, 2.0 * need + 2.0 * rule.longest_hours)
    if fallback is None:
        # nothing is sure: late or not, it goes on
        time = max(time, need + (rule.net_changeovers + 2.0) * longest)
    step = max(float(min(stops[stops > 0].min(initial=longest), fall or longest)), SHORTEST_HOURS)
    while time / step > rule.steps:
        step *= 2.0
    region = np.unique(options.region[index], return_inverse=True)[1].astype(np.int32)
    pace = options.work_rate[index] / reference
    carry = np.maximum(options.start_usd[index] - options.usd_per_hour[index] * stops, 0.0)
    usual = options.usual_usd_per_hour[index]
    dear = DEAR * float(max(usual.max(), options.usd_per_hour[index].max()))
    return Field(
        index=index,
        fallback=fallback,
        step_hours=step,
        time_hours=time,
        need_hours=need,
        net_hours=rule.net_changeovers * longest,
        on_demand_usd=float(options.usd_per_hour[fallback]) if fallback is not None else dear,
        fall_hours=fall,
        pace=pace,
        region=region,
        usual_usd=usual,
        fresh_hours=fresh,
        outage_hours=outage,
        up_share=share,
        carry_usd=carry,
        stop_hours=(float(stops.min()), across),
        across_usd=_across(options, index, region, carry),
    )


def _looked_at(situation: Situation, options: Options, rule: Rule, need: float) -> Indices:
    """The best few by what an hour of work costs there with its share of the start; half of the seats are for where the data is."""
    lasting = np.maximum(np.minimum(options.lifetime_hours, need), SHORTEST_HOURS)
    known = np.where(np.isfinite(options.usual_usd_per_hour), options.usual_usd_per_hour, options.usd_per_hour)
    rate = (known + options.start_usd / lasting) / options.work_rate
    spots = np.flatnonzero(options.spot & options.allowed & np.isfinite(rate))
    order = spots[np.argsort(rate[spots], kind="stable")]
    if len(order) > rule.looked_at:
        near = order[options.region[order] == situation.home][: rule.looked_at // 2]
        order = np.concatenate([near, order[~np.isin(order, near)]])[: rule.looked_at]
    return np.sort(order).astype(np.int32)


def _habits(options: Options, index: Indices, rule: Rule) -> tuple[Floats, Floats, Floats]:
    """How long the pools last once they are back, stay away, and their share of the time."""
    fresh = options.fresh_hours[index] if options.fresh_hours is not None else options.lifetime_hours[index]
    fresh = np.clip(fresh, SHORTEST_HOURS, rule.longest_hours)
    if options.outage_hours is not None:
        outage = options.outage_hours[index]
    else:
        outage = np.where(options.return_hours[index] > 0, options.return_hours[index], rule.return_hours)
    outage = np.maximum(outage, SHORTEST_HOURS)
    share = options.up_share[index] if options.up_share is not None else fresh / (fresh + outage)
    return fresh, outage, np.clip(share, 0.001, 0.999)


def _across(options: Options, index: Indices, region: Indices, carry: Floats) -> Floats:
    """What carrying the checkpoint costs from region to region; as much as the dearest from here where that is not told."""
    count = int(region.max()) + 1
    if options.apart_usd is None:
        found = np.full((count, count), float(carry.max()))
    else:
        numbers = np.unique(options.region[index])
        found = options.apart_usd[np.ix_(numbers, numbers)].astype(np.float64)
    np.fill_diagonal(found, 0.0)
    return found


@dataclass(frozen=True, eq=False)
class Sets:
    """The sets, as tables know them; of each its region or ROAMS, its members among the pools looked at, and how long it stays away as a whole, in hours."""

    settled: tuple[Settled, ...]
    region: tuple[int, ...]
    members: tuple[Indices, ...]
    away_hours: tuple[float, ...]


def sets_of(field: Field, rule: Rule) -> Sets:
    """For each region, and for all together where there are several: the best of cheapest one, two, … for each of some prices of time."""
    count = int(field.region.max()) + 1
    order = np.argsort(field.usual_usd / field.pace, kind="stable").astype(np.int32)
    found: list[tuple[Settled, int, Indices, float]] = []
    for region in range(count):
        found += _best(field, rule, order[field.region[order] == region], region)
    if count > 1:
        found += _best(field, rule, order, ROAMS)
    settled, regions, members, away = zip(*found, strict=True)
    return Sets(settled, regions, members, away)


def _best(field: Field, rule: Rule, order: Indices, region: int) -> list[tuple[Settled, int, Indices, float]]:
    """Among the sets of the first, the first two, … of these pools those that are best where time is worth nothing, something, much."""
    share, gone = field.up_share[order], _gone(field, rule, order)
    used = -np.diff(gone, prepend=1.0)
    weight = np.cumsum(used)
    usd = np.cumsum(used * field.usual_usd[order] / field.pace[order]) / weight
    lasts = np.cumsum(used * field.fresh_hours[order]) / weight
    away = np.maximum(lasts * gone / (1.0 - gone), field.step_hours / 2)
    roams = region == ROAMS
    stop, paid = field.stop_hours[roams], float(field.across_usd.max()) if roams else 0.0
    start = (paid + usd * stop) / np.maximum(np.minimum(lasts, field.need_hours), field.step_hours)
    idle = np.maximum(field.on_demand_usd - usd, 0.0) * away / lasts
    picked = range(len(share))
    if len(share) > len(WORTH):
        picked = sorted({int(np.argmin(usd + start + worth * idle)) for worth in WORTH})
    h = field.step_hours
    steps = [max(1, int(np.ceil(hours / h - 1e-6))) for hours in (stop, field.fall_hours)]
    return [
        (
            Settled(
                usd=rounded(float(usd[k]) * h, FINE_USD),
                on_demand_usd=rounded(field.on_demand_usd * h, FINE_USD),
                lasts=rounded(float(lasts[k]) / h, FINE),
                away=rounded(float(away[k]) / h, FINE),
                start=steps[0],
                start_usd=rounded(paid, FINE_USD),
                fall=steps[1],
                net=int(np.ceil(field.net_hours / h - 1e-6)),
            ),
            region,
            order[: k + 1],
            float(away[k]),
        )
        for k in picked
    ]


def _gone(field: Field, rule: Rule, order: Indices) -> Floats:
    """Share of the time in which the first, the first two, … are all away."""
    apart, least = np.ones(int(field.region.max()) + 1), np.ones(int(field.region.max()) + 1)
    out = np.empty(len(order))
    for at, pool in enumerate(order):
        away, where = 1.0 - field.up_share[pool], field.region[pool]
        apart[where] *= away
        least[where] = min(least[where], away)
        regions = rule.together * least + (1.0 - rule.together) * apart
        out[at] = rule.together_apart * regions.min() + (1.0 - rule.together_apart) * regions.prod()
    return np.minimum.accumulate(out)
