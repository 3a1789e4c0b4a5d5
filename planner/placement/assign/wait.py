"""Why a job has no place although it could have one: the sentence, its numbers, and whom it waits behind.

A job waits for what bars every place it could have on an empty market.  Where one kind of scarcity bars them all, the reason is that; where it is one here and
another there, it is several of them.  The numbers are those of the place that would cost it least.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.model.fleet import Waiting
from planner.placement.cost import TICKS_PER_USD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from planner.model.ledger import Holding
    from planner.model.workload import Workload
    from planner.placement.assign.kinds import Kind
    from planner.placement.assign.rows import Scarce
    from planner.placement.assign.turns import Gang

CODES = {
    "pool": "SKY-REJ-207",
    "quota": "SKY-REJ-205",
    "network": "SKY-REJ-212",
    "apart": "SKY-REJ-216",
    "budget": "SKY-REJ-218",
}
GANG, SEVERAL = "SKY-REJ-217", "SKY-REJ-219"
WORDS = {
    "pool": "full pools",
    "quota": "quotas",
    "network": "quotas of networks",
    "apart": "anti-affinity",
    "budget": "budgets",
}
BEHIND = 3


class Waits:
    """Of one finished assignment.  `holders`: everything held, by the ledger and by the call; `priority` of the call's jobs by name."""

    def __init__(
        self, scarce: Scarce, free: NDArray[np.int64], holders: Sequence[Holding], priority: Mapping[str, int]
    ) -> None:
        self._scarce, self._free, self._priority = scarce, free, priority
        self._by_row: dict[int, list[Holding]] = {}
        for h in holders:
            for row, amount in scarce.uses_of(h):
                if amount:
                    self._by_row.setdefault(row, []).append(h)
        self._told: dict[int, tuple[str, str, tuple[str, ...]]] = {}

    def of(self, job: Workload, kind: Kind, gang: Gang | None, members: int) -> Waiting:
        """Why it waits.  `members`: how many of its gang could be placed at its turn, were the others not needed."""
        code, text, behind = self._why(kind)
        if gang is not None:
            together = f"at least {gang.least} jobs of gang {gang.group} must be placed together, and there is room for {members}"
            code, text = GANG, f"{together}; {text}" if text else together
        return Waiting(job=job.name, priority=job.priority, team=job.team, code=code, text=text, behind=behind)

    def _why(self, kind: Kind) -> tuple[str, str, tuple[str, ...]]:
        if kind.number not in self._told:
            self._told[kind.number] = self._look(kind)
        return self._told[kind.number]

    def _look(self, kind: Kind) -> tuple[str, str, tuple[str, ...]]:
        at = kind.first
        if not len(at):
            nodes = kind.shape.workload.resources.nodes
            return SEVERAL, f"needs {nodes} nodes in two clouds, and what is held leaves no two that could serve it", ()
        barred: dict[str, NDArray[np.bool_]] = {}
        rows: dict[str, NDArray[np.int32]] = {}
        for column in kind.columns:
            over = column.amounts[at] > np.maximum(self._free[column.rows[at]], 0)
            for row in np.unique(column.rows[at][over]).tolist():
                subject = self._scarce.subject(row)
                hit = over & (column.rows[at] == row)
                if subject not in barred:
                    barred[subject], rows[subject] = np.zeros(len(at), dtype=bool), np.full(len(at), -1, dtype=np.int32)
                barred[subject] |= hit
                rows[subject][hit] = row
        counts = {s: int(hit.sum()) for s, hit in barred.items()}
        if not any(counts.values()):
            return SEVERAL, "", ()
        whole = [s for s in CODES if counts.get(s) == len(at)]
        # the cheapest place that anything bars, and the first of what bars it
        place = min(int(np.flatnonzero(hit)[0]) for hit in barred.values() if hit.any())
        subject = whole[0] if whole else next(s for s in CODES if s in barred and barred[s][place])
        row = int(rows[subject][place])
        text = self._numbers(kind, subject, row, int(at[place]), everywhere=bool(whole))
        code = CODES[subject]
        if not whole:
            each = ", ".join(f"{counts[s]} by {WORDS[s]}" for s in CODES if s in counts)
            code, text = SEVERAL, f"of {len(at)} offers that could serve it are barred: {each}; the cheapest: {text}"
        return code, text, self._behind(row)

    def _behind(self, row: int) -> tuple[str, ...]:
        names = {h.job for h in self._by_row.get(row, ())}
        return tuple(sorted(names, key=lambda n: (-self._priority.get(n, 0), n))[:BEHIND])

    def _numbers(self, kind: Kind, subject: str, row: int, position: int, *, everywhere: bool) -> str:
        """Of one place; `everywhere` the same bars all others."""
        scarce, cap = self._scarce, int(self._scarce.caps[row])
        nodes = kind.shape.workload.resources.nodes
        held = self._by_row.get(row, ())
        needs = f"needs {nodes} node{'s' if nodes > 1 else ''}"
        match subject:
            case "pool":
                many = len(np.unique(kind.columns[0].rows[kind.first]))
                used = sum(h.nodes for h in held)
                where = f"{scarce.offers.pool_id(row)} has {cap}, of which {used} are held"
                return f"{needs} of a pool; {where}" + (
                    f", and {many - 1} more are as full" if everywhere and many > 1 else ""
                )
            case "quota":
                unit, words = scarce.quota_at(row)
                word = {"gpus": "GPUs", "vcpus": "vCPUs"}.get(unit, unit)
                need = next(int(c.amounts[position]) for c in kind.columns if int(c.rows[position]) == row)
                used = sum({"nodes": h.nodes, "gpus": h.gpus, "vcpus": h.vcpus}[unit] for h in held)
                asked = needs if unit == "nodes" else f"{needs}, {need} {word}"
                allowed = f"{cap} node{'' if cap == 1 else 's'}" if unit == "nodes" else f"{cap} {word}"
                return f"{asked}; the quota of {words} allows {allowed}, of which {used} are held"
            case "network":
                return (
                    f"{needs} with networks of their own; the quota of networks in {scarce.network_at(row)} is used up"
                )
            case "apart":
                group = scarce.group_at(row)
                by = scarce.apart[group].value
                where = f"every {by} that could serve it" if everywhere else f"that {by}"
                return f"{needs} apart from the others of group {group}, and {where} has one of them"
            case _:
                budget, unit = scarce.budget_at(row)
                hourly = unit == "hour"
                usd = kind.shape.hourly if hourly else kind.shape.total
                need = int(usd[kind.first].min() if everywhere else usd[position]) / TICKS_PER_USD
                used = sum(h.usd_per_hour_ticks if hourly else h.usd_total_ticks for h in held) / TICKS_PER_USD
                per, whose = "/h" if hourly else " in total", ", ".join(budget.teams)
                limit = cap / TICKS_PER_USD
                return f"needs ${need:.2f}{per}{' at least' if everywhere else ''}; the budget of teams {whose} is ${limit:.2f}{per}, of which ${used:.2f} are taken"
