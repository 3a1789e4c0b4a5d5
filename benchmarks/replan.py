"""Replanning's figures: `python benchmarks/replan.py [--jobs N] [--offers N]`.  Makes a record of its own, in a folder that it removes; judges nothing.

A thousand jobs of twenty shapes run on what their plans rank first to tenth, each with its steps, checkpoint and prepared places in SQLite, over a made-up market of 8,000 offers
(`--offers 0`: the packaged catalog), the price of each known to the history with some changes of the last month.  Twice: with prices as they are in the plans, and with
one offer per shape at a third of its price, so that many want to move and pools fill up.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any

import synthetic
from sqlalchemy import insert

from planner.app.inputs import Inputs, Job, load_market
from planner.app.plan import Request as PlanRequest
from planner.app.plan import run_on
from planner.app.replan import Replanned, Request, Sources, replan
from planner.model.ledger import AvailabilityMemory
from planner.model.market import Market
from planner.model.offer import CAPACITY_ORDER, CapacityType
from planner.model.plan import PlacementPlan
from planner.model.project import Project, default_targets
from planner.model.readings import CapacityReading, CapacityWord, PriceReading
from planner.model.record import stamp
from planner.model.workload import CheckpointPolicy, GpuOption, ObjectPrefix, Resources, Store, Work, Workload
from planner.state import tables
from planner.state.engine import open_engine, sqlite_url
from planner.state.history import History
from planner.state.newest import Looker
from planner.state.record import Record

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SHAPES = 20
MODELS = (("A100-80GB", 8), ("H100", 8), ("A100", 8), ("L4", 1), ("V100", 8))
RANKS = 10
"""What runs is the first of its plan, or the second, … the tenth, one shape after the other."""
CHANGES = 6
"""Of each price within the month."""


def shapes() -> list[Workload]:
    """Twenty: five GPUs, two checkpoint places, two sizes of checkpoint."""
    out: list[Workload] = []
    for model, count in MODELS:
        for region in ("us-east-1", "eu-west-1"):
            for gigabytes in (5, 100):
                at = ObjectPrefix(store=Store.S3, bucket="ckpt", prefix="x/", region=region)
                out.append(
                    Workload(
                        name="job",
                        resources=Resources(
                            accelerators=(GpuOption(model=model, count=count),),
                            capacity=(CapacityType.SPOT, CapacityType.ON_DEMAND),
                        ),
                        work=Work(hours=300.0, model=model, count=count, nodes=1),
                        run="python train.py",
                        checkpoint=CheckpointPolicy(at=at, size_bytes=gigabytes * 10**9, every_hours=0.5),
                    )
                )
    return out


def plans_of(market: Market, project: Project) -> list[PlacementPlan]:
    """One per shape."""
    found: list[PlacementPlan] = []
    for shape in shapes():
        read = Inputs(
            jobs=(Job(workload=shape, file="job.yaml"),), project=project, project_file=None, market=market, warnings=()
        )
        (one,) = run_on(read, PlanRequest(job_files=(), offline=True), NOW).planned
        found.append(one.plan)
    return found


def fill(url: str, plans: dict[str, PlacementPlan]) -> None:
    """Jobs, runs, steps, checkpoints and prepared places."""
    engine = open_engine(url)
    base: dict[str, Any] = {"project": "acme"}
    began = stamp(NOW - timedelta(hours=30))
    jobs, runs, steps, checkpoints, stacks = [], [], [], [], []
    for number, (name, plan) in enumerate(plans.items()):
        p = plan.ranked[min(number // SHAPES % RANKS, len(plan.ranked) - 1)]
        jobs.append({**base, "name": name, "generation": 1, "first_applied_at": began, "version": 1})
        run = {
            **base,
            "job": name,
            "generation": 1,
            "plan_digest": "sha256:x",
            "gpus": p.gpu_count,
            "vcpus": 96,
            "addresses": "[]",
            "usd_per_hour": f"{p.usd_per_hour:.4f}",
            "status": "running",
            "started_at": began,
            "version": 1,
        }
        places = (
            "rank",
            "placement_id",
            "offer_id",
            "cloud",
            "target",
            "region",
            "zone",
            "pool",
            "instance_type",
            "capacity",
            "nodes",
        )
        runs.append(run | {n: getattr(p, n) for n in places})
        seat = {**base, "job": name, "generation": 1, "rank": 0, "metrics": "{}"}
        steps += [
            {**seat, "step": 100 * k, "at": stamp(NOW - timedelta(hours=29 - k)), "loss": None, "rate": None}
            for k in range(29)
        ]
        uri = f"s3://ckpt/x/{name}/step"
        checkpoints.append(
            {
                **base,
                "job": name,
                "generation": 1,
                "step": 2790,
                "uri": uri,
                "digest": "d",
                "mac": "m",
                "bytes": 1,
                "at": began,
                "source": "report",
            }
        )
        stack = {
            **base,
            "cloud": p.cloud,
            "target": p.target,
            "region": p.region,
            "generation": None,
            "backend": "{}",
            "document": "{}",
            "variables": "{}",
            "status": "applied",
            "at": began,
            "version": 1,
        }
        stacks.append({**stack, "name": f"acc-{name}", "kind": "access", "job": name, "backend": rows_backend()})
    with engine.begin() as connection:
        for table, found in (
            (tables.job, jobs),
            (tables.run, runs),
            (tables.progress, steps),
            (tables.checkpoint, checkpoints),
            (tables.stack, stacks),
        ):
            connection.execute(insert(table), found)
    engine.dispose()


def readings(market: Market) -> Iterator[PriceReading | CapacityReading]:
    """Every price with its changes, a few percent each; every spot pool away for some hours, twice in the month."""
    for i, (type_ix, region_ix, zone_ix, kind, micros) in enumerate(
        zip(
            *(c.tolist() for c in (market.type_ix, market.region_ix, market.zone_ix, market.capacity)),
            market.price_micros.tolist(),
            strict=True,
        )
    ):
        where = {
            "cloud": market.types[type_ix].cloud.value,
            "region": market.regions[region_ix].name,
            "zone": market.zones[zone_ix],
            "instance_type": market.types[type_ix].name,
            "capacity": CAPACITY_ORDER[kind].value,
            "source": "made up",
        }
        for k in range(CHANGES):
            at = stamp(NOW - timedelta(days=29 - 4.5 * k, minutes=i % 60))
            price = micros if k == CHANGES - 1 else micros + (k * 7 + i) % 5 * micros // 100
            yield PriceReading(usd_per_hour=Decimal(price).scaleb(-6), observed_at=at, **where)
        if kind:
            for days, word in (
                (20, "available"),
                (15, "reclaimed"),
                (14.8, "available"),
                (5, "none"),
                (4.9, "available"),
            ):
                at = stamp(NOW - timedelta(days=days, minutes=i % 60))
                yield CapacityReading(word=CapacityWord(word), observed_at=at, **where)


def rows_backend() -> str:
    """A backend as the record writes it."""
    return '{"kind": "local", "settings": {}}'


def spent(act: Callable[[], Replanned], repeats: int) -> tuple[float, float, Replanned]:
    """Median of wall-clock and of CPU seconds, and what came of it."""
    took: list[float] = []
    worked: list[float] = []
    found = act()  # the first imports what it needs
    for _ in range(repeats):
        began, busy = time.perf_counter(), time.process_time()
        found = act()
        took.append(time.perf_counter() - began)
        worked.append(time.process_time() - busy)
    return median(took), median(worked), found


def cheaper(market: Market, plans: list[PlacementPlan]) -> Market:
    """The last ranked spot offer of every shape at a third."""
    from planner.placement.offers import offers_of
    from planner.placement.standing import position

    offers = offers_of(market, Project(name="acme", targets=default_targets()), as_of=market.as_of)
    price = market.price_micros.copy()
    for plan in plans:
        last = next((p for p in reversed(plan.ranked) if p.capacity == "spot"), None)
        at = position(offers, last.offer_id) if last else None
        if at is not None:
            price[int(offers.row[at])] //= 3
    return replace(market, price_micros=price)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--offers", type=int, default=8000, help="0: the packaged catalog")
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    market = synthetic.market(given.offers) if given.offers else load_market()
    project = Project(name="acme", targets=default_targets())
    of_shape = plans_of(market, project)
    plans: dict[str, PlacementPlan] = {}
    for n in range(given.jobs):
        plan, name = of_shape[n % len(of_shape)], f"job-{n:05d}"
        plans[name] = replace(plan, job={**plan.job, "name": name})
    folder = Path(tempfile.mkdtemp(prefix="skyplan-bench-"))
    try:
        url = sqlite_url(folder / "record.sqlite")
        fill(url, plans)
        record, told, history = Record.open(url, "acme"), Looker.open(url, "acme"), History.open(url, "acme")
        history.record(readings(market), now=NOW, live=False)
        known = len(history.as_of().series)
        print(
            f"{given.jobs} jobs of {len(of_shape)} shapes, {len(market):,} offers, {known:,} series with"
            f" {history.stored().prices:,} prices; load {os.getloadavg()[0]:.1f}"
        )
        sources = Sources(record=record, told=told, history=history)
        for what, prices in (("as planned", market), ("one offer per shape at a third", cheaper(market, of_shape))):
            request = Request(
                read=Inputs(jobs=(), project=project, project_file=None, market=prices, warnings=()),
                plans=plans,
                holdings=record.holdings(),
                memory=AvailabilityMemory(()),
            )
            wall, busy, found = spent(lambda: replan(request, sources, NOW), given.repeats)  # noqa: B023 - called at once
            codes = {c: sum(k.code == c for k in found.kept) for c in sorted({k.code for k in found.kept})}
            print(f"{what}: {wall:.2f} s, of CPU {busy:.2f} s; {len(found.diffs)} move, stay: {codes}")
        for one in (record, told, history):
            one.close()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"peak memory {peak:.0f} MiB")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
