"""Replanning's figures: `python benchmarks/replan.py [--jobs N]`.  Makes a record of its own, in a folder that it removes; judges nothing.

A thousand jobs of twenty shapes run on what their plans rank 10th, each with its steps, checkpoint and prepared places in SQLite, over the whole packaged catalog.  Twice:
with prices as they are in the plans, and with one offer per shape at a third of its price, so that many want to move and pools fill up.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

from sqlalchemy import insert

from planner.app.inputs import Inputs, Job, load_market
from planner.app.plan import Request as PlanRequest
from planner.app.plan import run_on
from planner.app.replan import Replanned, Request, Sources, replan
from planner.model.ledger import AvailabilityMemory
from planner.model.market import Market
from planner.model.offer import CapacityType
from planner.model.plan import PlacementPlan
from planner.model.project import Project, default_targets
from planner.model.record import stamp
from planner.model.workload import CheckpointPolicy, GpuOption, ObjectPrefix, Resources, Store, Work, Workload
from planner.state import tables
from planner.state.engine import open_engine, sqlite_url
from planner.state.newest import Looker
from planner.state.record import Record

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
MODELS = (("A100-80GB", 8), ("H100", 8), ("A100", 8), ("L4", 1), ("V100", 8))
RANK = 9
"""What runs is the 10th of its plan."""


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
    for name, plan in plans.items():
        p = plan.ranked[min(RANK, len(plan.ranked) - 1)]
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
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    market, project = load_market(), Project(name="acme", targets=default_targets())
    of_shape = plans_of(market, project)
    plans: dict[str, PlacementPlan] = {}
    for n in range(given.jobs):
        plan, name = of_shape[n % len(of_shape)], f"job-{n:05d}"
        plans[name] = replace(plan, job={**plan.job, "name": name})
    folder = Path(tempfile.mkdtemp(prefix="skyplan-bench-"))
    try:
        url = sqlite_url(folder / "record.sqlite")
        fill(url, plans)
        record, told = Record.open(url, "acme"), Looker.open(url, "acme")
        print(f"{given.jobs} jobs of {len(of_shape)} shapes, {len(market):,} offers; load {os.getloadavg()[0]:.1f}")
        for what, prices in (("as planned", market), ("one offer per shape at a third", cheaper(market, of_shape))):
            request = Request(
                read=Inputs(jobs=(), project=project, project_file=None, market=prices, warnings=()),
                plans=plans,
                holdings=record.holdings(),
                memory=AvailabilityMemory(()),
            )
            wall, busy, found = spent(lambda: replan(request, Sources(record=record, told=told), NOW), given.repeats)  # noqa: B023 - called at once
            codes = {c: sum(k.code == c for k in found.kept) for c in sorted({k.code for k in found.kept})}
            print(f"{what}: {wall:.2f} s, of CPU {busy:.2f} s; {len(found.diffs)} move, stay: {codes}")
        record.close()
        told.close()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"peak memory {peak:.0f} MiB")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
