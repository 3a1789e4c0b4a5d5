"""One job against what everybody else holds: today's ranking, with its words.

This is how a job is placed that may be split or that runs already, and how any job's fate is told when somebody asks "why not that".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.placement.assign.rows import Scarce
from planner.placement.describe import placement
from planner.placement.explain import Context
from planner.placement.feasible import Reject
from planner.placement.rank import rank
from planner.placement.room import room
from planner.placement.split import may_split, splits, woven
from planner.placement.split_words import split_placement
from planner.placement.standing import with_standing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from planner.model.ledger import Ledger
    from planner.model.plan import Placement
    from planner.model.project import Project
    from planner.model.workload import Workload
    from planner.placement.crowd import CoolDown
    from planner.placement.offers import Offers
    from planner.placement.rank import Judged, Unusable
    from planner.placement.split import Splits
    from planner.placement.standing import Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What all jobs of a call stand on."""

    offers: Offers
    project: Project
    cool: dict[str, CoolDown]
    unusable: Mapping[str, Unusable]
    standing: Mapping[str, Standing]
    top: int


def own_bits(
    offers: Offers, project: Project, ledger: Ledger, job: Workload, judged: Judged
) -> NDArray[np.int32] | None:
    """APART and FUNDS per offer; None where the job has neither groups nor budgets."""
    if not project.budgets and not job.anti_affinity:
        return None
    scarce, s = Scarce(offers, project, ledger, job.anti_affinity), judged.scores
    bits = np.zeros(len(offers), dtype=np.int32)
    for column in scarce.budget_columns(job, len(s.index), s.usd_per_hour, s.total):
        bits[s.index[column.amounts > np.maximum(scarce.free[column.rows], 0)]] |= Reject.FUNDS
    for column in scarce.apart_columns(job, s.index):
        bits[s.index[column.amounts > np.maximum(scarce.free[column.rows], 0)]] |= Reject.APART
    return bits


def context_of(ground: Ground, job: Workload, judged: Judged, ledger: Ledger, choice: int | None = None) -> Context:
    """The job's ranking against `ledger`, and its splits where it may have any.  `choice`: the offer that an assignment of many gave it."""
    offers, unusable = ground.offers, ground.unusable.get(job.name)
    mine, stands = judged, None
    if job.name in ground.standing:
        mine, stands = with_standing(offers, mine, ground.standing[job.name])
    ranking = rank(
        offers,
        job,
        mine,
        project=ground.project,
        ledger=ledger,
        cool=ground.cool,
        unusable=unusable,
        top=ground.top,
        standing=stands,
        own=own_bits(offers, ground.project, ledger, job, mine),
        choice=choice,
    )
    found = None
    if may_split(job):
        most = room(offers, job, project=ground.project, ledger=ledger, cool=ground.cool, unusable=unusable)
        found = splits(offers, job, judged, most, cool=ground.cool)
        if found is not None:
            _own_of_splits(ground, job, ledger, found)
    return Context(
        offers=offers,
        workload=job,
        ranking=ranking,
        cool=ground.cool,
        splits=found,
        ledger=ledger,
        project=ground.project,
    )


def _own_of_splits(ground: Ground, job: Workload, ledger: Ledger, found: Splits) -> None:
    """APART and FUNDS of splits: any part too near, or the whole too dear."""
    if not ground.project.budgets and not job.anti_affinity:
        return
    scarce, s = Scarce(ground.offers, ground.project, ledger, job.anti_affinity), found.scores
    for column in scarce.budget_columns(job, len(s.total), s.usd_per_hour, s.total):
        found.bits[column.amounts > np.maximum(scarce.free[column.rows], 0)] |= Reject.FUNDS
    for part in range(s.index.shape[1]):
        for column in scarce.apart_columns(job, s.index[:, part]):
            found.bits[column.amounts > np.maximum(scarce.free[column.rows], 0)] |= Reject.APART


def ranked(context: Context, top: int) -> tuple[Placement, ...]:
    """The ranked set of a context, splits among the single places."""
    offers, job, ranking, found = context.offers, context.workload, context.ranking, context.splits
    s, cells = ranking.judged.scores, ranking.judged.cells
    singles = ((int(s.total[at]), float(s.finish_hours[at])) for at in ranking.at)
    return tuple(
        split_placement(offers, job, cells, found, k, rank=rank)
        if found is not None and split
        else placement(offers, job, ranking.judged, int(ranking.at[k]), rank=rank)
        for rank, (split, k) in enumerate(woven(singles, found, top))
    )
