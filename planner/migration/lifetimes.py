"""How long pools last and stay away, from what was observed of them: change points in, one figure per pool out.

Vectorised over all pools; the replay of a trace and the replanning of real jobs both ask it.  Observations after `now` must not be in what is given:
nothing here looks ahead.  What nothing is known of gets the rule's defaults.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.migration.constants import DEFAULT, Rule

if TYPE_CHECKING:
    from planner.migration.options import Flags, Floats, Indices


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
    """Per pool: hours it is expected to last from now, hours until it returns if it is away (0 if not), and whether anything was seen of it."""

    lifetime_hours: Floats
    return_hours: Floats
    known: Flags


def expected(past: Past, pools: int, now_hours: float, rule: Rule = DEFAULT) -> Expected:
    """Means of what was observed, drawn towards those of all pools together where little was."""
    until = np.full(len(past.pool), now_hours)
    same = past.pool[1:] == past.pool[:-1]
    until[:-1] = np.where(same, past.at_hours[1:], now_hours)
    hours = until - past.at_hours
    ended = np.zeros(len(past.pool), dtype=np.bool_)
    ended[:-1] = same
    up, away = past.available, ~past.available
    last = np.flatnonzero(~ended)
    state = np.ones(pools, dtype=np.bool_)
    state[past.pool[last]] = past.available[last]
    known = np.bincount(past.pool, minlength=pools) > 0
    lifetime = _mean(past.pool[up], hours[up], ended[up], pools=pools, default=rule.lifetime_hours, rule=rule)
    back = _mean(past.pool[away], hours[away], ended[away], pools=pools, default=rule.return_hours, rule=rule)
    return Expected(lifetime_hours=lifetime, return_hours=np.where(state, 0.0, back), known=known)


def _mean(pool: Indices, hours: Floats, ended: Flags, *, pools: int, default: float, rule: Rule) -> Floats:
    """Hours per ending, with `prior_events` endings of the pool of all, and one of the default."""
    total = np.bincount(pool, weights=hours, minlength=pools)
    ends = np.bincount(pool[ended], minlength=pools)
    common = (total.sum() + default) / (ends.sum() + 1.0)
    mean: Floats = (total + rule.prior_events * common) / (ends + rule.prior_events)
    return mean
