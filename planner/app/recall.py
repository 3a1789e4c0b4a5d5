"""What planning reads of the record: what runs hold, what failed, what runs.  Writes nothing, and creates no record."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from planner.app.inputs import Known
from planner.app.wire import database_url
from planner.model.offer import pool_id
from planner.model.record import HOLDING, stamp
from planner.state.record import EVERY_PROJECT, Record

if TYPE_CHECKING:
    from planner.model.ledger import Holding
    from planner.model.market import Market
    from planner.model.record import Run, RunPart


def known(project: str, market: Market, at: datetime | None = None) -> Known:
    """What all projects in the database hold and saw fail, for they share the clouds' capacity; what runs of this one.  Holdings are those of `at`, if it is given."""
    everyone = Record.open(database_url(), EVERY_PROJECT, upgrade=False)
    try:
        runs, memory = everyone.runs(), everyone.memory()
    finally:
        everyone.close()
    mine = Record.open(database_url(), project, upgrade=False)
    try:
        holdings = sorted(h for run in runs if _holds(run, at) for h in holdings_of(run, market))
        return Known(holdings=tuple(holdings), memory=memory, running=mine.running())
    finally:
        mine.close()


def _holds(run: Run, at: datetime | None) -> bool:
    """Whether it holds capacity, or did at a moment that lies behind: how it stood then is told by when it began and ended."""
    if at is None:
        return run.status in HOLDING
    then = stamp(at)
    return run.started_at <= then and (run.status in HOLDING or (run.ended_at is not None and run.ended_at > then))


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
