"""How long pools last and stay away, from what was observed of them: change points in, one figure per pool out.

Vectorised over all pools; the replay of a trace and the replanning of real jobs both ask it.  Observations after `now` must not be in what is given:
nothing here looks ahead.  What nothing is known of gets the rule's defaults.

Endings come at a rate that hangs on how long it has lasted already: constant within each of a few ages, endings over hours observed at that age.  A pool's own rate is
drawn to that of all pools by a few endings, and theirs to the default by one: a gamma prior, so that little history is little evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.migration.constants import AGES_HOURS, DEFAULT, Rule

if TYPE_CHECKING:
    from planner.migration.options import Flags, Floats, Indices

_FROM = np.array(AGES_HOURS)
_UNTIL = np.append(_FROM[1:], np.inf)


@dataclass(frozen=True, eq=False)
class Past:
    """Changes of availability up to now, sorted by pool and then by time.

    pool       of each change, from 0
    at_hours   when, on any one clock
    available  since then
    """

    pool: Indices
    at_hours: Floats
    available: Flags


@dataclass(frozen=True, eq=False)
class Expected:
    """Per pool; the columns of `Options` of the same names, and whether anything was seen of it.

    lifetime_hours  from now, given how long it has lasted; of what is away: once it is back
    return_hours    from now, given how long it has been away; 0 of what is there
    """

    lifetime_hours: Floats
    return_hours: Floats
    known: Flags
    fresh_hours: Floats
    outage_hours: Floats
    up_share: Floats


@dataclass(frozen=True, eq=False)
class Tally:
    """What was observed up to some moment: [..., pools], and [..., pools, ages] for hours at each age and endings at it.  Leading axes are moments.

    available, age_hours  of each pool now, and since when
    up_hours, up_ends     of what could be had; away_hours, away_ends: of what could not
    known                 anything was seen of it
    """

    available: Flags
    age_hours: Floats
    up_hours: Floats
    up_ends: Floats
    away_hours: Floats
    away_ends: Floats
    known: Flags


def expected(past: Past, pools: int, now_hours: float, rule: Rule = DEFAULT) -> Expected:
    """What to expect of each pool."""
    return outlook(_tally(past, pools, now_hours), rule) if len(past.pool) else _defaults(pools, rule)


def _defaults(pools: int, rule: Rule) -> Expected:
    lasts, away = np.full(pools, rule.lifetime_hours), np.full(pools, rule.return_hours)
    return Expected(
        lifetime_hours=lasts,
        return_hours=np.zeros(pools),
        known=np.zeros(pools, dtype=np.bool_),
        fresh_hours=lasts,
        outage_hours=away,
        up_share=lasts / (lasts + away),
    )


def outlook(tally: Tally, rule: Rule = DEFAULT) -> Expected:
    """What to expect of each pool, at each moment of a tally."""
    lasts = _rates(tally.up_hours, tally.up_ends, default=rule.lifetime_hours, rule=rule)
    stays = _rates(tally.away_hours, tally.away_ends, default=rule.return_hours, rule=rule)
    there, age = tally.available, tally.age_hours
    usual = rule.lifetime_hours + rule.return_hours
    seen_up = tally.up_hours.sum(axis=-1)
    seen = seen_up + tally.away_hours.sum(axis=-1)
    known, fresh = tally.known, np.zeros_like(age)
    return Expected(
        lifetime_hours=_rest(lasts, np.where(there, age, 0.0), rule.longest_hours),
        return_hours=np.where(there, 0.0, _rest(stays, age, rule.longest_return_hours)),
        known=known,
        fresh_hours=_rest(lasts, fresh, rule.longest_hours),
        outage_hours=_rest(stays, fresh, rule.longest_return_hours),
        up_share=(seen_up + rule.prior_events * rule.lifetime_hours) / (seen + rule.prior_events * usual),
    )


def at_ages(hours: Floats) -> Floats:
    """[..., ages] how much of so many hours was spent at each age."""
    found: Floats = np.clip(hours[..., None], _FROM, _UNTIL) - _FROM
    return found


def age_of(hours: Floats) -> Indices:
    """At which age something ended that lasted so long."""
    found: Indices = np.searchsorted(_UNTIL, hours, side="left").astype(np.int32)
    return found


def _tally(past: Past, pools: int, now_hours: float) -> Tally:
    changes, ages = len(past.pool), len(_FROM)
    ended = np.zeros(changes, dtype=np.bool_)
    ended[:-1] = past.pool[1:] == past.pool[:-1]
    until = np.full(changes, now_hours)
    until[:-1] = np.where(ended[:-1], past.at_hours[1:], now_hours)
    hours = until - past.at_hours
    last = np.flatnonzero(~ended)
    there, age = np.ones(pools, dtype=np.bool_), np.zeros(pools)
    there[past.pool[last]], age[past.pool[last]] = past.available[last], hours[last]

    def summed(chosen: Flags) -> tuple[Floats, Floats]:
        cell = past.pool[chosen][:, None] * ages + np.arange(ages)
        spent = np.bincount(cell.ravel(), weights=at_ages(hours[chosen]).ravel(), minlength=pools * ages)
        over = chosen & ended
        ends = np.bincount(past.pool[over] * ages + age_of(hours[over]), minlength=pools * ages)
        shaped: tuple[Floats, Floats] = (
            spent.reshape(pools, ages).astype(np.float64),
            ends.reshape(pools, ages).astype(np.float64),
        )
        return shaped

    (up_hours, up_ends), (away_hours, away_ends) = summed(past.available), summed(~past.available)
    return Tally(
        available=there,
        age_hours=age,
        up_hours=up_hours,
        up_ends=up_ends,
        away_hours=away_hours,
        away_ends=away_ends,
        known=np.bincount(past.pool, minlength=pools) > 0,
    )


def _rates(exposed: Floats, ends: Floats, *, default: float, rule: Rule) -> Floats:
    """[..., pools, ages] endings per hour."""
    common = (ends.sum(axis=-2) + rule.prior_of_all) / (exposed.sum(axis=-2) + rule.prior_of_all * default)
    rates: Floats = (ends + rule.prior_events) / (exposed + rule.prior_events / common[..., None, :])
    return rates


def _rest(rates: Floats, age: Floats, longest: float) -> Floats:
    """Expected hours from that age on, up to the longest that is counted."""
    since = age[..., None]
    within = np.maximum(np.minimum(_UNTIL, since + longest) - np.maximum(_FROM, since), 0.0)
    survive = np.exp(-rates * within)
    alive = np.ones_like(survive)
    np.cumprod(survive[..., :-1], axis=-1, out=alive[..., 1:])
    rest: Floats = (alive * (1.0 - survive) / rates).sum(axis=-1)
    return rest


def steady(changes: Floats, seen_hours: Floats | float, rule: Rule = DEFAULT) -> Floats:
    """Hours that a present price is expected to last, by how often it changed notably (`Rule.notable`) in the hours that were seen; one horizon counts as seen besides."""
    lasts: Floats = (seen_hours + rule.horizon_hours) / (changes + 1.0)
    return lasts
