"""Where a job that does not run should start, or whether it should wait or bridge on demand, by what each is expected to cost to the end.

One step of looking ahead: the first place is taken at its present price and for what it is expected to last at its age, what follows comes from the tables of
`planner.migration.ahead`.  The safety net and voluntary moves are `planner.migration.decide`'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.migration.ahead import NEVER, Ahead, ahead
from planner.migration.pools import ROAMS, Field, Sets, field_of, sets_of

if TYPE_CHECKING:
    from planner.migration.constants import Rule
    from planner.migration.options import Floats, Options, Situation

EPSILON = 1e-9
THIRDS = (0.189, 0.712, 2.099)
"""Means of the thirds of an exponential time of mean 1: the first place may go at once, and may last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """USD to the end: of the best start, of waiting, of going on demand now (or on); NEVER where there is none.  `second`: of the next best start; `starts`: of each, best first."""

    start: int | None
    start_usd: float
    second: int | None
    wait: int | None
    wait_usd: float
    on_demand_usd: float
    starts: tuple[tuple[int, float], ...] = ()


def prospect(situation: Situation, options: Options, rule: Rule, fallback: int | None) -> Prospect | None:
    """None where there is no spot pool to speak of.  A job that runs on demand is one that has no start to pay for there."""
    field = field_of(situation, options, rule, fallback)
    if field is None:
        return None
    sets = sets_of(field, rule)
    tables = _tables(field, sets)
    starts = _starts(options, field, sets, tables)
    order = np.argsort(starts, kind="stable")
    good = [int(field.index[at]) for at in order[:2] if starts[at] < NEVER / 2]
    home = np.flatnonzero(options.region[field.index] == situation.home)
    here = int(field.region[home[0]]) if len(home) else None
    runs = situation.running is not None and situation.running == fallback
    wait, wait_usd, on_demand = _waits(options, field, sets, tables, here=here, runs=runs)
    return Prospect(
        start=good[0] if good else None,
        start_usd=float(starts[order[0]]),
        second=good[1] if len(good) > 1 else None,
        wait=wait,
        wait_usd=wait_usd,
        on_demand_usd=on_demand,
        starts=tuple((int(field.index[at]), float(starts[at])) for at in order if starts[at] < NEVER / 2),
    )


def to_end(situation: Situation, options: Options, rule: Rule, fallback: int | None) -> Floats | None:
    """USD to the end of each option that is looked at, inf of the others: of what runs, to run on until it is lost; of others, to go there now."""
    field = field_of(situation, options, rule, fallback)
    if field is None:
        return None
    sets = sets_of(field, rule)
    found = np.full(len(options.names), np.inf)
    found[field.index] = _starts(options, field, sets, _tables(field, sets))
    return found


def _tables(field: Field, sets: Sets) -> Ahead:
    time, work = (int(np.ceil(hours / field.step_hours)) + 2 for hours in (field.time_hours, field.need_hours))
    # where nothing is faster than the reference, slack does not grow
    slow = float(field.pace.max()) <= 1.0 + EPSILON
    return ahead(sets.settled, time, work, max(time - work + 4, 1) if slow else None)


def _starts(options: Options, field: Field, sets: Sets, tables: Ahead) -> Floats:
    """Of starting on each pool now."""
    index = field.index
    stop, rate = options.stop_hours[index][:, None], options.usd_per_hour[index][:, None]
    lasts = options.lifetime_hours[index][:, None] * np.array(THIRDS)
    pace = field.pace[:, None]
    lives = lasts >= stop
    runs = np.where(lives, np.clip(lasts - stop, 0.0, field.need_hours / pace), 0.0)
    time = field.time_hours - stop - runs
    work = np.where(runs * pace >= field.need_hours - EPSILON, 0.0, field.need_hours - runs * pace)
    after = _settled(field, sets, tables, time, work)
    after = np.where(work > 0, after, np.where(time + EPSILON < 0, NEVER, 0.0))
    cost = options.start_usd[index] + (rate * runs + after).mean(axis=1)
    found: Floats = np.where(options.available[index] & np.isfinite(cost), np.minimum(cost, NEVER), NEVER)
    return found


def _settled(field: Field, sets: Sets, tables: Ahead, time: Floats, work: Floats) -> Floats:
    """[pools, …] of going on as well as can be after the first place is lost, with the data in that pool's region."""
    count, h = int(field.region.max()) + 1, field.step_hours
    by_region = np.full((count, *time.shape), NEVER)
    roaming = np.full(time.shape, NEVER)
    for at, region in enumerate(sets.region):
        still = tables.still(at, time / h, work / h)
        into = roaming if region == ROAMS else by_region[region]
        np.minimum(into, still, out=into)
    across = field.across_usd[field.region].T
    best = (by_region + across[:, :, None]).min(axis=0)
    found: Floats = np.minimum(best, roaming)
    return found


def _waits(
    options: Options, field: Field, sets: Sets, tables: Ahead, *, here: int | None, runs: bool
) -> tuple[int | None, float, float]:
    """For what to wait, its cost, and that of going on demand (or on) until something is back."""
    h, need = field.step_hours, np.array([field.need_hours / field.step_hours])
    fall = 0.0 if runs else field.fall_hours
    paid = 0.0 if runs or field.fallback is None else float(options.start_usd[field.fallback])
    on_demand = paid + field.on_demand_usd * field.need_hours
    best, wait = NEVER, None
    there, back = options.available[field.index], options.return_hours[field.index]
    for at, members in enumerate(sets.members):
        if there[members].any():
            continue
        first = int(members[np.argmin(back[members])])
        region = sets.region[at]
        if region in {ROAMS, here} or here is None:
            then = float(tables.bridging(at, np.array([(field.time_hours - fall) / h]), need)[0])
            on_demand = min(on_demand, paid + then)
        # it has been away for some time already, and what has been away stays away
        later = (back[first] / field.outage_hours[first] - 1.0) * min(field.outage_hours[first], sets.away_hours[at])
        least = min(field.need_hours + field.net_hours, field.time_hours)
        time = min(max(field.time_hours - later, least), field.time_hours)
        carry = float(field.carry_usd[members].min()) if region not in {ROAMS, here} else 0.0
        cost = carry + float(tables.still(at, np.array([time / h]), need)[0])
        if cost < best:
            best, wait = cost, int(field.index[first])
    return wait, best, on_demand if field.fallback is not None else NEVER
