"""Why not there, for what is the job's own affair: whom it must be apart from, and its team's budget.

Sentences with their numbers; decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.model.workload import WIDTH, Apart
from planner.placement.assign.rows import covers
from planner.placement.cost import TICKS_PER_USD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.ledger import Holding, Ledger
    from planner.model.project import Project
    from planner.model.workload import Workload
    from planner.placement.offers import Offers


def apart_words(o: Offers, workload: Workload, ledger: Ledger, i: int) -> str:
    """Who of a group of the job's lies too near offer `i`."""
    for mine in workload.anti_affinity:
        group = [(h, Apart(by)) for h in ledger.holdings for g, by in h.apart if g == mine.group]
        by = max((mine.by, *(b for _, b in group)), key=lambda b: WIDTH[b])
        for h, _ in group:
            if _near(o, i, h, by):
                place = h.pool if by is Apart.POOL else h.region if by is not Apart.CLOUD else h.pool.partition(":")[0]
                return f"{h.job} of group {mine.group} lies in the same {by.value} ({place})"
    return "a job of the same group lies there"


def _near(o: Offers, i: int, h: Holding, by: Apart) -> bool:
    cloud, region = o.kind(i).cloud.value, o.region(i).name
    if by is Apart.POOL:
        return o.pool_id(int(o.pool[i])) == h.pool
    if h.pool.partition(":")[0] != cloud or by is Apart.CLOUD:
        return h.pool.partition(":")[0] == cloud
    if h.region != region or by is Apart.REGION:
        return h.region == region
    where = h.pool.split("/")[1]
    return not o.zone(i) or where in {region, o.zone(i)}


@dataclass(frozen=True, slots=True)
class Fund:
    """One limit of a budget that the job counts to, and the ticks that others have taken of it; `hourly` or in total."""

    teams: tuple[str, ...]
    hourly: bool
    limit: int
    used: int


def funds_of(project: Project, workload: Workload, ledger: Ledger) -> tuple[Fund, ...]:
    """The limits that the job's team counts to, with what `ledger` takes of them."""
    out: list[Fund] = []
    for budget in project.budgets:
        if not covers(budget, workload.team):
            continue
        held = [h for h in ledger.holdings if covers(budget, h.team)]
        for limit, hourly in ((budget.usd_per_hour, True), (budget.usd_total, False)):
            if limit is not None:
                used = sum(h.usd_per_hour_ticks if hourly else h.usd_total_ticks for h in held)
                out.append(Fund(budget.teams, hourly, round(limit * TICKS_PER_USD), used))
    return tuple(out)


def funds_words(funds: Sequence[Fund], hourly: int, total: int) -> str:
    """Which budgets have too little left for so many ticks per hour and in total."""
    parts: list[str] = []
    for fund in funds:
        need, per = (hourly, "/h") if fund.hourly else (total, " in total")
        if need and fund.used + need > fund.limit:
            left, limit = max(fund.limit - fund.used, 0) / TICKS_PER_USD, fund.limit / TICKS_PER_USD
            whose = ", ".join(fund.teams)
            parts.append(
                f"needs ${need / TICKS_PER_USD:.2f}{per}; of the budget of teams {whose} ${left:.2f} of ${limit:.2f} is left"
            )
    return "; ".join(parts)
