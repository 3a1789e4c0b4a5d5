"""Small assignments to the tick: integer columns, branch and bound.

Only columns that a better assignment than the one at hand could have are asked about: with the relaxation's prices, a column that costs more than its kind pays
by the whole gap between bound and incumbent is in none.  So the answer is the optimum and not one of a few columns; where too many are left, there is none.
Limited by nodes, never by time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.placement.assign.relax import PLENTY_USED, quiet
from planner.placement.cost import TICKS_PER_USD

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from numpy.typing import NDArray

    from planner.placement.assign.relax import Demand, Relaxed

    Ints = NDArray[np.int64]

MOST_COLUMNS = 2500
"""With more the search may take minutes."""
FEW_COLUMNS = 400
"""With more, whether one more job has a place at all is not asked exactly: it may be asked of every kind that waits."""
MOST_NODES = 2000


def within(wanted: Sequence[Demand], relaxed: Relaxed, incumbent: int) -> list[tuple[int, int]] | None:
    """The columns that an assignment cheaper than the incumbent may have, (demand, number among its open candidates); None where they are too many."""
    gap = (incumbent - relaxed.bound) / TICKS_PER_USD
    out: list[tuple[int, int]] = []
    for d, demand in enumerate(wanted):
        cost = demand.priced(relaxed.prices, len(demand.open))
        found = np.flatnonzero(cost <= float(cost.min()) + gap + 1e-6)
        if len(out) + len(found) > MOST_COLUMNS:
            return None
        out += [(d, int(p)) for p in found]
    return out


def every(wanted: Sequence[Demand]) -> list[tuple[int, int]] | None:
    """All columns; None where they are too many."""
    if sum(len(d.open) for d in wanted) > FEW_COLUMNS:
        return None
    return [(d, p) for d, demand in enumerate(wanted) for p in range(len(demand.open))]


def cheapest(
    highspy: ModuleType, wanted: Sequence[Demand], free: Ints, columns: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], int] | None:
    """How many jobs per (kind, position), at the least cost; None where there is no such assignment, or it was not found."""
    model = quiet(highspy)
    for option, value in (("mip_rel_gap", 0.0), ("mip_abs_gap", 0.4 / TICKS_PER_USD), ("mip_max_nodes", MOST_NODES)):
        model.setOptionValue(option, value)
    uses: list[dict[int, int]] = []
    rows: dict[int, int] = {}
    for d, p in columns:
        used: dict[int, int] = {}
        for column in wanted[d].kind.columns:
            row, amount = int(column.rows[wanted[d].open[p]]), int(column.amounts[wanted[d].open[p]])
            if amount and free[row] < PLENTY_USED:
                used[row] = used.get(row, 0) + amount
                rows.setdefault(row, len(wanted) + len(rows))
        uses.append(used)
    counts = np.array([d.count for d in wanted], dtype=np.float64)
    limits = np.array([max(0, int(free[row])) for row in rows], dtype=np.float64)
    low = np.concatenate([counts, np.full(len(rows), -highspy.kHighsInf)])
    none = np.zeros(0, dtype=np.int32)
    n = len(low)
    model.addRows(n, low, np.concatenate([counts, limits]), 0, np.zeros(n, dtype=np.int32), none, np.zeros(0))
    starts, index, values = list[int](), list[int](), list[float]()
    for (d, _), used in zip(columns, uses, strict=True):
        starts.append(len(index))
        index += [d, *(rows[row] for row in used)]
        values += [1.0, *map(float, used.values())]
    cost = np.array([wanted[d].usd[p] for d, p in columns])
    high = np.array([wanted[d].count for d, _ in columns], dtype=np.float64)
    size = len(columns)
    entries = (np.array(starts, dtype=np.int32), np.array(index, dtype=np.int32), np.array(values))
    model.addCols(size, cost, np.zeros(size), high, len(index), *entries)
    whole = np.full(size, int(highspy.HighsVarType.kInteger), dtype=np.uint8)
    model.changeColsIntegrality(size, np.arange(size, dtype=np.int32), whole)
    model.run()
    if model.getInfo().primal_solution_status != 2:  # noqa: PLR2004 - HiGHS: 2 is a feasible point
        return None
    found = np.rint(np.array(model.getSolution().col_value)).astype(int)
    return {
        (wanted[d].kind.number, int(wanted[d].open[p])): int(found[c])
        for c, (d, p) in enumerate(columns)
        if found[c] > 0
    }
