"""What planning reads of the record: what runs hold, what failed, what runs.  Writes nothing, and creates no record."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from planner.app.inputs import Known
from planner.app.inputs import holdings_of as planned_holdings
from planner.app.wire import database_url
from planner.model.offer import pool_id
from planner.model.record import HOLDING, stamp
from planner.placement.cost import TICKS_PER_USD
from planner.spec.normal import workload_from_document
from planner.state.record import EVERY_PROJECT, Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.app.standing_plans import StandingPlan
    from planner.model.ledger import Holding
    from planner.model.market import Market
    from planner.model.record import Run, RunPart


def known(
    project: str, market: Market, at: datetime | None = None, plans: Mapping[str, StandingPlan] | None = None
) -> Known:
    """What all projects in the database hold and saw fail, for they share the clouds' capacity; what runs of this one.  Holdings are those of `at`, if it is given.

    What runs of this project has its team, its groups and its money too: budgets and groups are a project's own.  `plans` say what a rate alone does not.
    """
    everyone = Record.open(database_url(), EVERY_PROJECT, upgrade=False)
    try:
        runs, memory = everyone.runs(), everyone.memory()
    finally:
        everyone.close()
    mine = Record.open(database_url(), project, upgrade=False)
    try:
        ours = set(mine.runs())
        holdings = sorted(
            h
            for run in runs
            if _holds(run, at)
            for h in (_with_money(run, market, (plans or {}).get(run.job)) if run in ours else holdings_of(run, market))
        )
        return Known(holdings=tuple(holdings), memory=memory, running=mine.running())
    finally:
        mine.close()


def _holds(run: Run, at: datetime | None) -> bool:
    """Whether it holds capacity, or did at a moment that lies behind: how it stood then is told by when it began and ended."""
    if at is None:
        return run.status in HOLDING
    then = stamp(at)
    return run.started_at <= then and (run.status in HOLDING or (run.ended_at is not None and run.ended_at > then))


def _with_money(run: Run, market: Market, standing: StandingPlan | None) -> tuple[Holding, ...]:
    """What a run of this project holds, with whose it is and what it costs.

    Its total is what its plan expects of that place; without a plan, its hard end in money, or nothing where it has none: its rate counts all the same.
    """
    job = workload_from_document(standing.plan.job) if standing else None
    # nothing where the catalog has lost a type
    planned = planned_holdings([standing.plan], market) if standing else ()
    if standing and planned and standing.plan.choice.offer_id == run.offer_id:
        return planned
    total = standing.totals.get(run.offer_id) if standing else None
    if total is None:
        total = run.budget_usd or Decimal(0)
    found = holdings_of(run, market)
    nodes = sum(h.nodes for h in found)
    out: list[Holding] = []
    for h in found:
        share = Fraction(h.nodes, nodes) if nodes else Fraction(1)
        out.append(
            replace(
                h,
                usd_per_hour_ticks=round(Fraction(run.usd_per_hour) * TICKS_PER_USD * share),
                usd_total_ticks=round(Fraction(total) * TICKS_PER_USD * share),
                team=job.team if job else "",
                apart=tuple(sorted((a.group, a.by.value) for a in job.anti_affinity)) if job else (),
                gang=job.gang.group if job and job.gang else "",
            )
        )
    return tuple(out)


def holdings_of(run: Run, market: Market) -> tuple[Holding, ...]:
    """What a run holds: of one pool, or of one per cloud.  As one where the catalog has lost a part's type: better too much than nothing."""
    parts = run.parts
    if len(parts) == 1:
        return (run.holding,)
    found = tuple(_holding(run, part, market) for part in parts)
    return tuple(h for h in found if h) if all(found) else (run.holding,)


def _holding(run: Run, part: RunPart, market: Market) -> Holding | None:
    t = next((t for t in market.types if (t.cloud.value, t.name) == (part.cloud, part.instance_type)), None)
    if t is None:
        return None
    pool = pool_id(
        cloud=part.cloud,
        target=part.target,
        region=part.region,
        zone=part.zone,
        hardware=t.hardware,
        capacity=part.capacity,
    )
    return replace(
        run.holding,
        pool=pool,
        instance_type=part.instance_type,
        region=part.region,
        target=part.target,
        capacity=part.capacity,
        nodes=part.nodes,
        gpus=part.nodes * t.gpu_count,
        vcpus=part.nodes * t.vcpus,
    )
