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


def expected(past: Past, pools: int, now_hours: float, rule: Rule = DEFAULT) -> Expected:
    """What to expect of each pool."""
    changes = len(past.pool)
    if not changes:
        return _defaults(pools, rule)
    ended = np.zeros(changes, dtype=np.bool_)
    ended[:-1] = past.pool[1:] == past.pool[:-1]
    until = np.full(changes, now_hours)
    until[:-1] = np.where(ended[:-1], past.at_hours[1:], now_hours)
    hours = until - past.at_hours
    last = np.flatnonzero(~ended)
    there, age = np.ones(pools, dtype=np.bool_), np.zeros(pools)
    there[past.pool[last]], age[past.pool[last]] = past.available[last], hours[last]
    up, away = past.available, ~past.available
    lasts = _rates(past.pool[up], hours[up], ended[up], pools=pools, default=rule.lifetime_hours, rule=rule)
    stays = _rates(past.pool[away], hours[away], ended[away], pools=pools, default=rule.return_hours, rule=rule)
    usual = rule.lifetime_hours + rule.return_hours
    seen_up = np.bincount(past.pool[up], weights=hours[up], minlength=pools)
    seen = np.bincount(past.pool, weights=hours, minlength=pools)
    return Expected(
        lifetime_hours=_rest(lasts, np.where(there, age, 0.0), rule.longest_hours),
        return_hours=np.where(there, 0.0, _rest(stays, age, rule.longest_return_hours)),
        known=np.bincount(past.pool, minlength=pools) > 0,
        fresh_hours=_rest(lasts, np.zeros(pools), rule.longest_hours),
        outage_hours=_rest(stays, np.zeros(pools), rule.longest_return_hours),
        up_share=(seen_up + rule.prior_events * rule.lifetime_hours) / (seen + rule.prior_events * usual),
    )


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


def _rates(pool: Indices, hours: Floats, ended: Flags, *, pools: int, default: float, rule: Rule) -> Floats:
    """[pools, ages] endings per hour."""
    ages = len(_FROM)
    at_age = np.clip(hours[:, None], _FROM, _UNTIL) - _FROM
    cell = pool[:, None] * ages + np.arange(ages)
    exposed = np.bincount(cell.ravel(), weights=at_age.ravel(), minlength=pools * ages).reshape(pools, ages)
    last = np.searchsorted(_UNTIL, hours[ended], side="left")
    ends = np.bincount(pool[ended] * ages + last, minlength=pools * ages).reshape(pools, ages)
    common = (ends.sum(axis=0) + rule.prior_of_all) / (exposed.sum(axis=0) + rule.prior_of_all * default)
    rates: Floats = (ends + rule.prior_events) / (exposed + rule.prior_events / common)
    return rates


def _rest(rates: Floats, age: Floats, longest: float) -> Floats:
    """Expected hours from that age on, up to the longest that is counted."""
    since = age[:, None]
    within = np.maximum(np.minimum(_UNTIL, since + longest) - np.maximum(_FROM, since), 0.0)
    survive = np.exp(-rates * within)
    alive = np.ones_like(survive)
    np.cumprod(survive[:, :-1], axis=1, out=alive[:, 1:])
    rest: Floats = (alive * (1.0 - survive) / rates).sum(axis=1)
    return rest


def steady(changes: Floats, seen_hours: float, rule: Rule = DEFAULT) -> Floats:
    """Hours that a present price is expected to last, by how often it changed notably (`Rule.notable`) in the hours that were seen; one horizon counts as seen besides."""
    lasts: Floats = (seen_hours + rule.horizon_hours) / (changes + 1.0)
    return lasts
