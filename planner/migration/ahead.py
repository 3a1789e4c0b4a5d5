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


class Ahead:
    """The tables of some sets: expected USD to the end, by steps of time and of work left.

    The job stands still, or runs on demand, and the set is away.
    """

    def __init__(self, tables: Sequence[tuple[Tables, Tables]]) -> None:
        self._tables = tables

    def still(self, at: int, time: Floats, work: Floats) -> Floats:
        """Where it stands still."""
        return _between(self._tables[at][0], time, work)

    def bridging(self, at: int, time: Floats, work: Floats) -> Floats:
        """Where it runs on demand."""
        return _between(self._tables[at][1], time, work)


def ahead(sets: Sequence[Settled], time: int, work: int) -> Ahead:
    """Tables for at least that many steps of time and of work."""
    with _LOCK:
        asked = {one for one in sets if not _fits(_KEPT.get(one), time, work)}
        if asked:
            made = sorted(asked, key=lambda one: (one.start, repr(one)))
            still, bridging = _solve(made, -(-time // BLOCK) * BLOCK, -(-work // BLOCK) * BLOCK)
            for at, one in enumerate(made):
                _KEPT[one] = still[:, at].copy(), bridging[:, at].copy()
        found = [_KEPT[one] for one in sets]
        for one in sets:
            _KEPT.move_to_end(one)
        held = sum(2 * table[0].size for table in _KEPT.values())
        while held > KEPT_VALUES and len(_KEPT) > len(found):
            held -= 2 * _KEPT.popitem(last=False)[1][0].size
    return Ahead(found)


_KEPT: OrderedDict[Settled, tuple[Tables, Tables]] = OrderedDict()
_LOCK = Lock()


def _fits(tables: tuple[Tables, Tables] | None, time: int, work: int) -> bool:
    return tables is not None and tables[0].shape[0] > time and tables[0].shape[1] > work


def _between(table: Tables, time: Floats, work: Floats) -> Floats:
    """Linear in slack and in work, between the steps; NEVER where there is less time than work."""
    slack = time - work
    work = np.clip(work, 0.0, table.shape[1] - 1.0)
    w = np.minimum(work.astype(np.int64), table.shape[1] - 2)
    most = np.maximum(table.shape[0] - 3 - w, 0)
    s = np.clip(slack.astype(np.int64), 0, most)
    over, part = np.clip(slack - s, 0.0, 1.0), work - w
    low = table[s + w, w] * (1.0 - part) + table[s + w + 1, w + 1] * part
    high = table[s + w + 1, w] * (1.0 - part) + table[s + w + 2, w + 1] * part
    found: Floats = np.where(slack < 0.0, np.where(work > 0.0, NEVER, 0.0), low * (1.0 - over) + high * over)
    return found


def _column(sets: Sequence[Settled], name: str) -> Any:
    return np.array([[getattr(one, name)] for one in sets], dtype=np.float32)


def _solve(sets: Sequence[Settled], time: int, work: int) -> tuple[Tables, Tables]:
    """[time, sets, work] where the job stands still, and where it runs on demand, while the set is away.  `sets` are sorted by `start`."""
    usd, paid = _column(sets, "usd"), _column(sets, "on_demand_usd")
    lost, back = (-np.expm1(-1.0 / _column(sets, name)) for name in ("lasts", "away"))
    start, fall, net = (_column(sets, name).astype(np.int64) for name in ("start", "fall", "net"))
    spared = np.exp(-start / _column(sets, "lasts")).astype(np.float32)
    begin, switch = _column(sets, "start_usd") + usd * start, paid * fall
    starting, falling = _runs(start[:, 0]), _runs(fall[:, 0])
    # there: standing still though the set is there; on, over: running on it, and on demand while it is there
    still, bridging, there, on, over = (
        np.full((time + 1, len(sets), work + 1), NEVER, dtype=np.float32) for _ in range(5)
    )
    for table in (still, bridging, there, on, over):
        table[:, :, 0] = 0.0
    for t in range(1, time + 1):
        w, before = slice(1, min(work, t) + 1), slice(0, min(work, t))
        on[t, :, w] = usd + _mixed(on[t - 1, :, before], still[t - 1, :, before], lost)
        bridging[t, :, w] = paid + _mixed(bridging[t - 1, :, before], over[t - 1, :, before], back)
        begun = np.full((len(sets), before.stop), NEVER, dtype=np.float32)
        for rows, steps in starting:
            # to start on it, and perhaps to lose it meanwhile
            end = min(work, int(t - net[rows].max()), t - steps)
            if end > 0:
                held = _mixed(still[t - steps, rows, 1 : end + 1], on[t - steps, rows, 1 : end + 1], spared[rows])
                begun[rows, :end] = begin[rows] + held
        stays = paid + _mixed(over[t - 1, :, before], bridging[t - 1, :, before], lost)
        np.minimum(stays, begun, out=over[t, :, w])
        least, least_there = still[t], there[t]
        for rows, steps in falling:
            end = min(work, t - steps)
            if end > 0:
                to = slice(1, end + 1)
                least[rows, to] = switch[rows] + bridging[t - steps, rows, to]
                least_there[rows, to] = switch[rows] + over[t - steps, rows, to]
        np.minimum(least_there[:, w], begun, out=least_there[:, w])
        end = min(work, int(t - net.max()))
        if end > 0:
            to = slice(1, end + 1)
            waits = _mixed(still[t - 1, :, to], there[t - 1, :, to], back)
            np.minimum(least[:, to], waits, out=least[:, to])
            waits = _mixed(there[t - 1, :, to], still[t - 1, :, to], lost)
            np.minimum(least_there[:, to], waits, out=least_there[:, to])
    return still, bridging


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
