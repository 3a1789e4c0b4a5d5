"""What a job will cost from here on, if it is settled on some pools and goes on as well as can be: tables by exact backward induction.

A set of pools is one thing that is there or away, for exponential times; the job runs on it, waits for it, or bridges on demand and comes back.  Whatever it does, once
its slack is below the safety net it starts on demand and stays there.  Knows no market, no place, no moment: `planner.migration.placing` asks it.

Time and work go in equal steps.  Tables are kept between calls, a bounded number of them, under figures rounded to a few per cent: the same pools are asked about at
every tick of a replay, and by every job of a shape.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Tables = NDArray[np.float32]
    Whole = NDArray[np.int64]
    Floats = NDArray[np.float64]

NEVER = 1e9
"""USD of what cannot be done in time: more than any job costs, and far from where float32 would round it to infinity."""
FINE = 0.12
"""Lifetimes and outages that differ by less are the same to the tables."""
FINE_USD = 0.01
BLOCK = 24
"""Tables are made a little larger than asked for, in blocks, so that the next question finds them."""
ON, BRIDGING, OVER, STILL, THERE = range(5)
"""Running on the set; on demand while it is away, and while it is there; standing still while it is away, and while it is there."""
KEPT_VALUES = 12_000_000
"""float32 values kept at most: 48 MB."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A set of pools as one, in steps and USD.

    usd         per step on it; on_demand_usd on demand
    lasts       expected steps until all of it is taken back; away: until some of it is back
    start       steps of starting on it, start_usd besides them; fall: steps of starting on demand
    net         steps of slack below which it starts on demand for good
    """

    usd: float
    on_demand_usd: float
    lasts: float
    away: float
    start: int
    start_usd: float
    fall: int
    net: int


def rounded(value: float, fine: float) -> float:
    """To the nearest of steps that are each `fine` larger than the last."""
    return exp(round(log(value) / fine) * fine) if value > 0 else 0.0


@dataclass(frozen=True, eq=False, slots=True)
class Kept:
    """Expected USD to the end, by steps of time and of work left, while the set is away: where the job stands still, or runs on demand.  No slack above `most`."""

    still: Tables
    bridging: Tables
    most: int

    def fits(self, time: int, work: int, most: int) -> bool:
        """Whether it answers these."""
        return self.still.shape[0] > time and self.still.shape[1] > work and self.most >= most


class Ahead:
    """The tables of some sets."""

    def __init__(self, tables: Sequence[Kept]) -> None:
        self._tables = tables

    def still(self, at: int, time: Floats, work: Floats) -> Floats:
        """Where it stands still."""
        return _between(self._tables[at].still, self._tables[at].most, time, work)

    def bridging(self, at: int, time: Floats, work: Floats) -> Floats:
        """Where it runs on demand."""
        return _between(self._tables[at].bridging, self._tables[at].most, time, work)


def ahead(sets: Sequence[Settled], time: int, work: int, slack: int | None = None) -> Ahead:
    """Tables for at least that many steps of time, of work, and of slack (None: as much as there is time)."""
    most = time if slack is None else min(slack, time)
    with _LOCK:
        asked = {one for one in sets if one not in _KEPT or not _KEPT[one].fits(time, work, most)}
        if asked:
            made = sorted(asked, key=lambda one: (one.start, repr(one)))
            time, work, most = (-(-steps // BLOCK) * BLOCK for steps in (time, work, most))
            still, bridging = _solve(made, time, work, most)
            for at, one in enumerate(made):
                _KEPT[one] = Kept(still[:, at].copy(), bridging[:, at].copy(), most)
        found = [_KEPT[one] for one in sets]
        for one in sets:
            _KEPT.move_to_end(one)
        held = sum(2 * kept.still.size for kept in _KEPT.values())
        while held > KEPT_VALUES and len(_KEPT) > len(found):
            held -= 2 * _KEPT.popitem(last=False)[1].still.size
    return Ahead(found)


_KEPT: OrderedDict[Settled, Kept] = OrderedDict()
_LOCK = Lock()


def _between(table: Tables, most: int, time: Floats, work: Floats) -> Floats:
    """Linear in slack and in work, between the steps; NEVER where there is less time than work."""
    slack = time - work
    work = np.clip(work, 0.0, table.shape[1] - 1.0)
    w = np.minimum(work.astype(np.int64), table.shape[1] - 2)
    last = np.clip(np.minimum(table.shape[0] - 3 - w, most - 1), 0, None)
    s = np.clip(slack.astype(np.int64), 0, last)
    over, part = np.clip(slack - s, 0.0, 1.0), work - w
    low = table[s + w, w] * (1.0 - part) + table[s + w + 1, w + 1] * part
    high = table[s + w + 1, w] * (1.0 - part) + table[s + w + 2, w + 1] * part
    found: Floats = np.where(slack < 0.0, np.where(work > 0.0, NEVER, 0.0), low * (1.0 - over) + high * over)
    return found


def _column(sets: Sequence[Settled], name: str) -> Any:
    return np.array([[getattr(one, name)] for one in sets], dtype=np.float32)


def _solve(sets: Sequence[Settled], time: int, work: int, most: int) -> tuple[Tables, Tables]:
    """[time, sets, work] where the job stands still, and where it runs on demand, while the set is away.  `sets` are sorted by `start`; no slack above `most`."""
    usd, paid = _column(sets, "usd"), _column(sets, "on_demand_usd")
    lost, back = (-np.expm1(-1.0 / _column(sets, name)) for name in ("lasts", "away"))
    start, fall, net = (_column(sets, name).astype(np.int64) for name in ("start", "fall", "net"))
    spared = np.exp(-start / _column(sets, "lasts")).astype(np.float32)
    begin, switch = _column(sets, "start_usd") + usd * start, paid * fall
    starting, falling = _runs(start[:, 0]), _runs(fall[:, 0])
    nets = [int(net[rows].max()) for rows, _ in starting]
    # what it does, by pairs that change into one another, so that one operation takes a step of several
    values = np.full((time + 1, 5, len(sets), work + 1), NEVER, dtype=np.float32)
    values[:, :, :, 0] = 0.0
    running, standing = slice(ON, STILL), slice(STILL, THERE + 1)
    run_to, stand_to = slice(STILL, ON, -1), slice(THERE, OVER, -1)
    run_share, run_usd = np.stack([lost, back, lost]), np.stack([usd, paid, paid])
    stand_share = np.stack([back, lost])
    for t in range(1, time + 1):
        low, high = max(1, t - most), min(work, t)
        w, before = slice(low, high + 1), slice(low - 1, high)
        last, now = values[t - 1], values[t]
        now[running, :, w] = _mixed(last[running, :, before], last[run_to, :, before], run_share) + run_usd
        over, there = now[OVER], now[THERE]
        for rows, steps in falling:
            end = min(work, t - steps)
            if end >= low:
                to = slice(low, end + 1)
                now[standing, rows, to] = values[t - steps, BRIDGING:STILL, rows, to] + switch[rows]
        for (rows, steps), kept in zip(starting, nets, strict=True):
            # to start on it, and perhaps to lose it meanwhile
            end = min(work, t - kept, t - steps)
            if end >= low:
                to, then = slice(low, end + 1), values[t - steps]
                begun = _mixed(then[STILL, rows, to], then[ON, rows, to], spared[rows])
                begun += begin[rows]
                np.minimum(over[rows, to], begun, out=over[rows, to])
                np.minimum(there[rows, to], begun, out=there[rows, to])
        end = min(work, t - int(net.max()))
        if end >= low:
            to = slice(low, end + 1)
            stands = now[standing, :, to]
            np.minimum(stands, _mixed(last[standing, :, to], last[stand_to, :, to], stand_share), out=stands)
    return values[:, STILL], values[:, BRIDGING]


def _mixed(one: Tables, other: Tables, share: Tables) -> Tables:
    """`one`, but for a share of the other."""
    out = other - one
    out *= share
    out += one
    return out


def _runs(values: Whole) -> list[tuple[slice, int]]:
    """Rows of equal values, as slices."""
    ends = [*(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    return [(slice(a, b), int(values[a])) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
