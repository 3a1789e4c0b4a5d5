"""The only entry to placement: `plan(jobs, market, ledger, policy)`.  One job is a fleet of one.

Jobs are taken in order (priority, then name), so their order in the call changes nothing; each choice is added to the ledger before the next job is ranked,
so identical jobs spread over pools instead of piling on one.  Pure: no clock, no file, no cloud; replanning calls this too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from planner.model.digest import digest
from planner.model.fleet import FleetSummary
from planner.model.ledger import AvailabilityMemory, Holding, Ledger
from planner.placement.cost import TICKS_PER_USD
from planner.placement.crowd import cool_downs
from planner.placement.describe import placement
from planner.placement.explain import Context, notes, rejected_counts
from planner.placement.offers import offers_of
from planner.placement.rank import RANKED, Judged, Unusable, judge, rank
from planner.placement.room import room
from planner.placement.split import may_split, splits, woven
from planner.placement.split_words import split_notes, split_placement
from planner.placement.standing import Standing, with_standing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from planner.model.fleet import Kept, Waiting
    from planner.model.market import Market
    from planner.model.plan import Placement, RejectedCount
    from planner.model.project import Project
    from planner.model.workload import Workload
    from planner.placement.offers import Offers


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What bends a plan besides jobs and market: the project's limits and prices, recent failures, the moment, how many to rank.

    unusable  by job, what its nodes could not run on; the reasons are the app's (images, secrets), the placement only obeys
    standing  by job, what it runs on: a candidate without start-up, at its current rate
    earlier   by job, the offer that its earlier plan chose: it stays there unless another saves enough
    """

    project: Project
    memory: AvailabilityMemory
    as_of: str
    top: int = RANKED
    unusable: Mapping[str, Unusable] = field(default_factory=dict[str, Unusable])
    standing: Mapping[str, Standing] = field(default_factory=dict[str, Standing])
    earlier: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One job's outcome.  `ranked` is empty where nothing is feasible, and where the job waits; `context` answers "why not that".

    ledger          what others than the jobs of the call hold
    ledger_digest   of that, and of what all jobs of the call take where they are several: for `inputs`
    waiting         the job could have a place on an empty market, and has none now
    kept            it stays where its earlier plan put it, although another place would be a little cheaper
    """

    workload: Workload
    ranked: tuple[Placement, ...]
    rejected: tuple[RejectedCount, ...]
    notes: tuple[str, ...]
    ledger: Ledger
    ledger_digest: str
    context: Context
    waiting: Waiting | None = None
    kept: Kept | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """All jobs of a call, in the order they were taken, and what there is to say about them together."""

    placed: tuple[Placed, ...]
    summary: FleetSummary


def moment(as_of: str) -> datetime:
    """An ISO date or time as an aware datetime, UTC where it does not say."""
    at = datetime.fromisoformat(as_of)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def plan(
    jobs: Sequence[Workload], market: Market, ledger: Ledger, policy: Policy, offers: Offers | None = None
) -> tuple[Placed, ...]:
    """As `plan_fleet`, of which it returns the jobs."""
    return plan_fleet(jobs, market, ledger, policy, offers).placed


def plan_fleet(  # noqa: PLR0917 - as `plan`, which has five
    jobs: Sequence[Workload],
    market: Market,
    ledger: Ledger,
    policy: Policy,
    offers: Offers | None = None,
    advance: Callable[[], object] | None = None,
) -> Fleet:
    """Place every job.  The result is in the order jobs were taken: higher priority first, then by name.

    `advance` is called once per job that is done, for a progress bar.
    `ledger` is what others hold; holdings of the jobs themselves are set aside first, as they are planned anew.
    `offers`: what `offers_of` makes of the same market, project and moment, where the caller has it already.
    """
    offers = offers or offers_of(market, policy.project, as_of=policy.as_of)
    cool = cool_downs(policy.memory, moment(policy.as_of))
    ledger = ledger.without(frozenset(j.name for j in jobs))
    judged: dict[Workload, Judged] = {}
    out: list[Placed] = []
    for job in sorted(jobs, key=lambda j: (-j.priority, j.name)):
        alike = replace(job, name="", tags=(), env=(), priority=0)
        if alike not in judged:
            judged[alike] = judge(offers, job)
        mine, stands = judged[alike], None
        if job.name in policy.standing:
            mine, stands = with_standing(offers, mine, policy.standing[job.name])
        ranking = rank(
            offers,
            job,
            mine,
            project=policy.project,
            ledger=ledger,
            cool=cool,
            unusable=policy.unusable.get(job.name),
            top=policy.top,
            standing=stands,
        )
        found = None
        if may_split(job):
            unusable = policy.unusable.get(job.name)
            most = room(offers, job, project=policy.project, ledger=ledger, cool=cool, unusable=unusable)
            found = splits(offers, job, judged[alike], most, cool=cool)
        context = Context(offers=offers, workload=job, ranking=ranking, cool=cool, splits=found)
        placed = _describe(context, ledger, policy.top)
        out.append(placed)
        if placed.ranked:
            for held in holdings(placed.ranked[0], market, workload=job):
                ledger = ledger.plus(held)
        if advance is not None:
            advance()
    total = sum((p.ranked[0].total_usd for p in out if p.ranked), Decimal(0))
    summary = FleetSummary(
        jobs=len(out),
        placed=sum(bool(p.ranked) for p in out),
        method="one by one",
        total_usd=total,
        one_by_one_usd=total,
        bound_usd=None,
    )
    return Fleet(placed=tuple(out), summary=summary)


def _describe(context: Context, ledger: Ledger, top: int) -> Placed:
    offers, job, ranking, found = context.offers, context.workload, context.ranking, context.splits
    s, cells = ranking.judged.scores, ranking.judged.cells
    singles = ((int(s.total[at]), float(s.finish_hours[at])) for at in ranking.at)
    ranked = tuple(
        split_placement(offers, job, cells, found, k, rank=rank)
        if found is not None and split
        else replace(placement(offers, job, ranking, k), rank=rank)
        for rank, (split, k) in enumerate(woven(singles, found, top))
    )
    return Placed(
        workload=job,
        ranked=ranked,
        rejected=rejected_counts(offers, job, ranking, context.cool),
        notes=split_notes(context, ranked) if may_split(job) else notes(offers, ranking, ranked),
        ledger=ledger,
        ledger_digest=ledger_digest(ledger),
        context=context,
    )


def holdings(p: Placement, market: Market, *, workload: Workload) -> tuple[Holding, ...]:
    """What a placement of `workload` holds: of one pool, or of one per part; what it costs in total goes by the parts' rates, all of it told."""
    pieces = p.pieces
    hourly = [int(piece.usd_per_hour * TICKS_PER_USD) for piece in pieces]
    total, out = int(p.total_usd * TICKS_PER_USD), list[Holding]()
    for k, piece in enumerate(pieces):
        t = next(t for t in market.types if t.cloud.value == piece.cloud and t.name == piece.instance_type)
        before, upto, every = sum(hourly[:k]), sum(hourly[: k + 1]), sum(hourly)
        part = total * upto // every - total * before // every if every else total if k == 0 else 0
        out.append(
            Holding(
                job=workload.name,
                pool=piece.pool,
                instance_type=piece.instance_type,
                region=piece.region,
                target=piece.target,
                capacity=piece.capacity,
                nodes=piece.nodes,
                gpus=piece.nodes * t.gpu_count,
                vcpus=piece.nodes * t.vcpus,
                addresses=piece.addresses,
                usd_per_hour_ticks=hourly[k],
                usd_total_ticks=part,
                team=workload.team,
                apart=tuple(sorted((a.group, a.by.value) for a in workload.anti_affinity)),
                gang=workload.gang.group if workload.gang else "",
            )
        )
    return tuple(out)


def ledger_digest(ledger: Ledger) -> str:
    """Digest of the holdings, for `inputs`."""
    return digest([[h.job, h.pool, h.instance_type, h.nodes, list(h.addresses)] for h in ledger.holdings])


def memory_digest(memory: AvailabilityMemory) -> str:
    """Digest of the failures, for `inputs`."""
    return digest([[f.scope, f.code, f.kind, f.at] for f in memory.failures])
