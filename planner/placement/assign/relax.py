"""The linear relaxation: the least that any assignment of these jobs can cost, and how many of each kind lie where in it.

Solved by column generation.  A column is a kind on a candidate; the model begins with those that the assignment at hand uses and each kind's cheapest, and
takes in, round by round, what the prices of scarce rows make worth it: all candidates are priced as arrays, never put into the model.  HiGHS, simplex, one thread,
no limit of time: the same inputs give the same answer.

Any prices give a bound that holds (Lagrange): what all would cost where each kind pays for the scarce, less what the scarce is worth; so the bound stands
where a limit of rounds ended the search, and where floats are a little off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.placement.assign.kinds import fitting
from planner.placement.cost import TICKS_PER_USD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

    from numpy.typing import NDArray

    from planner.placement.assign.kinds import Kind

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

ROUNDS = 60
"""Column generation stops here at the latest; the bound holds all the same."""
CLOSE = 2e-4
"""It stops sooner where bound and relaxation differ by less than this share: a fiftieth of what is promised (1 %)."""
SPARE = 6
"""Cheapest candidates of a kind in the model from the start, beside as many as its jobs could fill."""
BATCH = 8
"""Columns that a kind may add in one round."""
BEST = 2
"""As many of them are its best ones at these prices."""
SPREAD = 32
"""The others are one in so many of the next best: were they the best too, all kinds would add the same places, which cost more once all ask for them."""


@dataclass(frozen=True, eq=False)
class Relaxed:
    """`values` per (kind, position) above zero; `prices` per row in USD; `bound` in ticks."""

    values: dict[tuple[int, int], float]
    prices: Floats
    bound: int


@dataclass(slots=True)
class Demand:
    """How many jobs of a kind must be placed, and the candidates that have room at all."""

    kind: Kind
    count: int
    open: Ints
    usd: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.usd = self.kind.shape.total[self.open] / TICKS_PER_USD

    def priced(self, prices: Floats, stop: int) -> Floats:
        """USD and the price of what is used, of the cheapest `stop` candidates."""
        out, at = self.usd[:stop].copy(), self.open[:stop]
        for column in self.kind.columns:
            out += prices[column.rows[at]] * column.amounts[at]
        return out


def demands(kinds: Mapping[int, Kind], counts: Mapping[int, int], free: Ints) -> list[Demand]:
    """Of the kinds that have jobs to place, in order."""
    return [
        Demand(kinds[k], n, np.flatnonzero(fitting(kinds[k].columns, free))) for k, n in sorted(counts.items()) if n
    ]


class Relaxation:
    """The model.  Rows: one per kind, and the scarce ones as columns come to use them."""

    def __init__(self, highspy: ModuleType, wanted: Sequence[Demand], free: Ints) -> None:
        self._highs, self.wanted, self.free = highspy, wanted, free
        self.model = quiet(highspy)
        counts = np.array([d.count for d in wanted], dtype=np.float64)
        self._add_rows(counts, counts)
        self.columns: list[tuple[int, int]] = []
        self._known: list[set[int]] = [set() for _ in wanted]
        self._row_of = np.full(len(free), -1, dtype=np.int64)
        self._rows: list[int] = []

    def _add_rows(self, low: Floats, high: Floats) -> None:
        none = np.zeros(0, dtype=np.int32)
        self.model.addRows(len(low), low, high, 0, np.zeros(len(low), dtype=np.int32), none, np.zeros(0))

    def add(self, found: Sequence[tuple[int, int]]) -> int:
        """Take in columns, (demand, number among its open candidates) each, that are not there yet.  How many were new."""
        new = [(d, p) for d, p in found if p not in self._known[d]]
        if not new:
            return 0
        starts, index, values, cost = list[int](), list[int](), list[float](), list[float]()
        fresh: list[int] = []
        base = len(self.wanted) + len(self._rows)
        for d, p in new:
            self._known[d].add(p)
            demand = self.wanted[d]
            at = int(demand.open[p])
            starts.append(len(index))
            index.append(d)
            values.append(1.0)
            cost.append(float(demand.usd[p]))
            used: dict[int, int] = {}
            for column in demand.kind.columns:
                row, amount = int(column.rows[at]), int(column.amounts[at])
                # a row that all jobs of the call together could not fill needs no place in the model
                if amount and self.free[row] < PLENTY_USED:
                    used[row] = used.get(row, 0) + amount
            for row, amount in used.items():
                if self._row_of[row] < 0:
                    self._row_of[row] = base + len(fresh)
                    fresh.append(row)
                index.append(int(self._row_of[row]))
                # scaled to the row's own size: one job of four nodes in a pool of four is 1
                values.append(amount / max(1, int(self.free[row])))
        if fresh:
            self._rows += fresh
            limit = np.where(self.free[fresh] > 0, 1.0, 0.0)
            self._add_rows(np.full(len(fresh), -self._highs.kHighsInf), limit)
        self.columns += new
        self.model.addCols(
            len(new),
            np.array(cost),
            np.zeros(len(new)),
            np.full(len(new), self._highs.kHighsInf),
            len(index),
            np.array(starts, dtype=np.int32),
            np.array(index, dtype=np.int32),
            np.array(values),
        )
        return len(new)

    def solve(self, seed: Sequence[tuple[int, int]], *, holds: bool = True, rounds: int = ROUNDS) -> Relaxed | None:
        """To the optimum or near it; `seed` are columns to begin with.  None where HiGHS gives up.

        holds   they have an assignment that holds; else jobs may go without for a price that none would pay, and do where there is none
        """
        self.add(seed)
        if not holds:
            self._go_without()
        self.add(
            [(d, p) for d, demand in enumerate(self.wanted) for p in range(min(self._begin(demand), len(demand.open)))]
        )
        best, answer = -math.inf, None
        for _ in range(rounds):
            self.model.run()
            if self.model.getModelStatus() != self._highs.HighsModelStatus.kOptimal:
                return None
            solution = self.model.getSolution()
            value = self.model.getInfo().objective_function_value
            dual = np.array(solution.row_dual)
            prices = np.zeros(len(self.free))
            if self._rows:
                rows = np.array(self._rows)
                prices[rows] = np.maximum(-dual[len(self.wanted) :], 0.0) / np.maximum(self.free[rows], 1)
            bound, found = self._price(prices, dual)
            best = max(best, bound)
            answer = Relaxed(self._values(np.array(solution.col_value)), prices, math.ceil(best * TICKS_PER_USD - 0.5))
            if value - best <= CLOSE * abs(value) or not self.add(found):
                break
        return answer

    def _go_without(self) -> None:
        many = len(self.wanted)
        cost = WITHOUT * max((float(d.usd[-1]) for d in self.wanted if len(d.usd)), default=1.0)
        self.columns += [(-1, -1)] * many
        high = np.full(many, self._highs.kHighsInf)
        number = np.arange(many, dtype=np.int32)
        self.model.addCols(many, np.full(many, cost), np.zeros(many), high, many, number, number, np.ones(many))

    def _begin(self, demand: Demand) -> int:
        return demand.count + SPARE

    def _price(self, prices: Floats, dual: Floats) -> tuple[float, list[tuple[int, int]]]:
        """The bound that these prices give, and the columns worth taking in."""
        bound = -float(prices @ np.maximum(np.where(prices > 0, self.free, 0), 0))
        found: list[tuple[int, int]] = []
        for d, demand in enumerate(self.wanted):
            pays = float(dual[d])
            # prices are never negative, so who costs more than the kind pays now is no candidate
            stop = int(np.searchsorted(demand.usd, pays + 1e-9, side="right"))
            stop = max(stop, 1)
            cost = demand.priced(prices, stop)
            least = float(cost.min())
            bound += demand.count * min(least, pays)
            worth = np.flatnonzero(cost < pays - 1e-7 * max(1.0, abs(pays)))
            if len(worth) > BATCH:
                worth = _spread(worth[np.argsort(cost[worth], kind="stable")], d)
            found += [(d, int(p)) for p in worth]
        return bound, found

    def _values(self, values: Floats) -> dict[tuple[int, int], float]:
        out: dict[tuple[int, int], float] = {}
        for c in np.flatnonzero(values > DUST).tolist():
            d, p = self.columns[c]
            if d < 0:
                continue
            demand = self.wanted[d]
            out[demand.kind.number, int(demand.open[p])] = float(values[c])
        return out


WITHOUT = 10.0
"""A kind that goes without a place in the model pays so many times what any place costs."""
PLENTY_USED = 1 << 59
DUST = 1e-7
"""Below this a value of the relaxation is the solver's own imprecision."""


def _spread(worth: Ints, number: int) -> Ints:
    """A few of these, best first: the best, and some of the next best, others for each `number`."""
    others = worth[BEST : BEST + (BATCH - BEST) * SPREAD]
    step = max(1, len(others) // (BATCH - BEST))
    return np.concatenate([worth[:BEST], others[number % step :: step][: BATCH - BEST]])


def quiet(highspy: ModuleType) -> Any:
    """A model that says nothing and does the same everywhere."""

    class Quiet(highspy.Highs):
        def enableCallbacks(self) -> None:  # noqa: N802 - HiGHS's name
            # the constructor calls this, and greets on standard output unless it is told not to before
            self.setOptionValue("output_flag", False)
            super().enableCallbacks()  # pyright: ignore[reportUnknownMemberType] - a module that may be missing

    model = Quiet()
    for option, value in (("threads", 1), ("parallel", "off"), ("random_seed", 0)):
        model.setOptionValue(option, value)
    return model
