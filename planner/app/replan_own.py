"""What keeps a job that runs from a place for its own sake: whom its groups keep it apart from, and what its team's budgets have left.

The same sums as a plan has (`planner.placement.assign.rows`), of the rest of the job's work.  Who moves holds two places until the old one is given back: others
keep apart from both, and budgets count the new one, for the old one ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.placement.assign.rows import Scarce
from planner.placement.cost import TICKS_PER_USD
from planner.placement.feasible import Reject

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from planner.migration.costing import Shape
    from planner.model.ledger import Holding, Ledger
    from planner.model.project import Project
    from planner.model.workload import AntiAffinity, Workload
    from planner.placement.offers import Offers


class Own:
    """For one call: rows are made once per set of groups, until a move takes room."""

    def __init__(self, offers: Offers, project: Project) -> None:
        self._offers, self._project = offers, project
        self._leaving: list[Holding] = []
        self._rows: dict[tuple[AntiAffinity, ...], Scarce] = {}

    def leaves(self, held: Iterable[Holding]) -> None:
        """These places are given up for others."""
        self._leaving += held
        self._rows.clear()

    def bits(self, workload: Workload, shape: Shape, running: int, hours: float, ledger: Ledger) -> NDArray[np.int32]:
        """APART and FUNDS per candidate, never of the one that it stands on.  `hours`: reference hours that are left."""
        out = np.zeros(len(shape), dtype=np.int32)
        if not self._project.budgets and not workload.anti_affinity:
            return out
        if workload.anti_affinity not in self._rows:
            self._rows[workload.anti_affinity] = Scarce(self._offers, self._project, ledger, workload.anti_affinity)
        scarce = self._rows[workload.anti_affinity]
        mine = [h for h in ledger.holdings if h.job == workload.name]
        leaving = [h for h in self._leaving if h.job != workload.name]
        total = shape.usd_per_hour * hours / shape.work_rate
        hourly, whole = (np.rint(usd * TICKS_PER_USD).astype(np.int64) for usd in (shape.price_usd_per_hour, total))
        free = _left(scarce, [*mine, *leaving])
        for column in scarce.budget_columns(workload, len(shape), hourly, whole):
            out[column.amounts > free[column.rows]] |= Reject.FUNDS
        sold = np.flatnonzero(shape.at >= 0)
        free = _left(scarce, mine)
        for column in scarce.apart_columns(workload, shape.at[sold]):
            out[sold[column.amounts > free[column.rows]]] |= Reject.APART
        out[running] = 0
        return out


def _left(scarce: Scarce, without: Sequence[Holding]) -> NDArray[np.int64]:
    return np.maximum(scarce.free + scarce.used_by(without), 0)
