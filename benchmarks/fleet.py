"""Fleets' figures: `python benchmarks/fleet.py [--jobs 1000,3000,10000] [--offers N] [--shapes N] [--json]`.  Judges nothing.

Jobs of up to 500 shapes over a made-up market of 100,000 offers, three times: `plenty`, each shape with half of the market open to it and pools of the guessed four nodes;
`scarce`, the same with quotas of GPUs on one cloud and a budget, so that many rows bind at once; `shortage`, with so few offers that many wait.  Told are the assignment alone
(judging shapes, one by one, relaxation, rounding, checking), the whole of `plan_fleet` with its ranked sets and reasons, the total against the relaxation's bound and
against one by one, and the process's peak memory.  Every size in a process of its own, as memory is never given back.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
import synthetic

from planner.model.ledger import AvailabilityMemory, Ledger
from planner.model.market import Market
from planner.model.offer import CapacityType, Cloud
from planner.model.project import Budget, Project, Quota, Target
from planner.model.workload import CheckpointPolicy, GpuOption, ObjectPrefix, Resources, Store, Work, Workload
from planner.placement.alone import Ground
from planner.placement.fleet import Policy, plan_fleet
from planner.placement.offers import offers_of
from planner.placement.told import assigned

MODELS = (("A100-80GB", 8), ("H100", 8), ("A100", 8), ("L4", 1), ("V100", 8))
NODES = (1, 1, 1, 2, 4, 8)
CASES = ("plenty", "scarce", "shortage")
FEWER = 25
"""In `shortage` there is this part of the offers."""


def market(offers: int) -> Market:
    """As `synthetic.market`, each region with zones of its own, as real ones have: a pool's name says its zone, not its region."""
    made = synthetic.market(offers)
    key = made.region_ix.astype(np.int64) * len(made.zones) + made.zone_ix
    places, zone_ix = np.unique(key, return_inverse=True)
    names = (f"{made.regions[k // len(made.zones)].name}-{made.zones[k % len(made.zones)]}" for k in places.tolist())
    return replace(made, zones=("", *names), zone_ix=(zone_ix + 1).astype(np.int32))


def shapes(many: int) -> list[Workload]:
    """GPUs, nodes, capacity types, lengths, and where and how large checkpoints are; all different."""
    rng = random.Random(20261130)
    out: list[Workload] = []
    for k in range(many):
        model, count = MODELS[k % len(MODELS)]
        at = ObjectPrefix(store=Store.S3, bucket="ckpt", prefix="x/", region=rng.choice(["us-east-1", "eu-west-1"]))
        capacity = rng.choice([(CapacityType.SPOT, CapacityType.ON_DEMAND), (CapacityType.ON_DEMAND,)])
        out.append(
            Workload(
                name="job",
                resources=Resources(
                    accelerators=(GpuOption(model=model, count=count),), nodes=rng.choice(NODES), capacity=capacity
                ),
                work=Work(hours=rng.choice([20.0, 100.0, 300.0]) + k / 100, model=model, count=count, nodes=1),
                run="python train.py",
                checkpoint=CheckpointPolicy(at=at, size_bytes=rng.choice([5, 100]) * 10**9, every_hours=0.5),
            )
        )
    return out


def jobs(many: int, of_shape: list[Workload]) -> list[Workload]:
    """Of seven teams and three priorities, sorted as turns go."""
    found = [
        replace(of_shape[n % len(of_shape)], name=f"job-{n:05d}", team=f"team-{n % 7}", priority=n % 3)
        for n in range(many)
    ]
    return sorted(found, key=lambda j: (-j.priority, j.name))


def project(case: str, many: int) -> Project:
    """`scarce`: per region of AWS so many GPUs of one family, vCPUs of another and spot nodes of all; what all may spend per hour, and one team in total."""
    if case != "scarce":
        return Project(name="acme", targets=tuple(Target(name="default", cloud=c) for c in Cloud))
    quotas = (
        Quota(instance_types=("p*",), max_gpus=max(64, many // 4)),
        Quota(instance_types=("g*",), max_vcpus=max(512, many)),
        Quota(instance_types=("*",), capacity="spot", max_nodes=max(32, many // 8)),
    )
    targets = tuple(Target(name="default", cloud=c, quotas=quotas if c is Cloud.AWS else ()) for c in Cloud)
    budgets = (Budget(usd_per_hour=60.0 * many), Budget(teams=("team-0",), usd_total=280.0 * many))
    return Project(name="acme", targets=targets, budgets=budgets)


def measured(case: str, many: int, offers: int, of_shapes: int) -> dict[str, Any]:
    """One assignment and one plan, in this process."""
    found = market(offers // FEWER if case == "shortage" else offers)
    given = project(case, many)
    wanted = jobs(many, shapes(min(of_shapes, many)))
    policy = Policy(project=given, memory=AvailabilityMemory(), as_of=found.as_of)
    made = offers_of(found, given, as_of=found.as_of)
    ground = Ground(offers=made, project=given, cool={}, unusable={}, standing={}, top=policy.top)
    began, busy = time.perf_counter(), time.process_time()
    _, solved, _ = assigned(ground, wanted, Ledger(), {})
    out: dict[str, Any] = {
        "case": case,
        "jobs": many,
        "shapes": min(of_shapes, many),
        "offers": len(made),
        "assign_s": round(time.perf_counter() - began, 2),
        "assign_cpu_s": round(time.process_time() - busy, 2),
        "assign_peak_mib": peak(),
    }
    del solved
    began, busy = time.perf_counter(), time.process_time()
    fleet = plan_fleet(wanted, found, Ledger(), policy, made)
    out |= {
        "plan_s": round(time.perf_counter() - began, 2),
        "plan_cpu_s": round(time.process_time() - busy, 2),
        "plan_peak_mib": peak(),
        "load": round(os.getloadavg()[0], 1),
        "method": fleet.summary.method,
        "waiting": len(fleet.summary.waiting),
        "total_usd": float(fleet.summary.total_usd),
    }
    for name, usd in (("over_bound", fleet.summary.bound_usd), ("of_one_by_one", fleet.summary.one_by_one_usd)):
        ratio = float(fleet.summary.total_usd / usd) if usd else None
        out[name] = ratio if ratio is None else round(ratio - 1 if name == "over_bound" else ratio, 5)
    return out


def peak() -> int:
    """MiB, of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    """Print the table, or JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", default="1000,3000,10000")
    parser.add_argument("--offers", type=int, default=100_000)
    parser.add_argument("--shapes", type=int, default=500)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", action="store_true", help="measure the first case and size in this process")
    given = parser.parse_args()
    cases, sizes = given.cases.split(","), [int(n) for n in given.jobs.split(",")]
    if given.one:
        print(json.dumps(measured(cases[0], sizes[0], given.offers, given.shapes)))
        return
    found: list[dict[str, Any]] = []
    for case in cases:
        for many in sizes:
            asked = [
                "--one",
                "--cases",
                case,
                "--jobs",
                str(many),
                "--offers",
                str(given.offers),
                "--shapes",
                str(given.shapes),
            ]
            done = subprocess.run([sys.executable, __file__, *asked], capture_output=True, text=True, check=True)
            one = json.loads(done.stdout)
            found.append(one)
            if not given.json:
                bound = "not known" if one["over_bound"] is None else f"{one['over_bound']:.3%} over the bound"
                saved = "" if one["of_one_by_one"] is None else f", {1 - one['of_one_by_one']:.1%} under one by one"
                print(
                    f"{case}: {many} jobs of {one['shapes']} shapes x {one['offers']:,} offers: assignment {one['assign_s']} s"
                    f" (CPU {one['assign_cpu_s']} s, peak {one['assign_peak_mib']} MiB), with its words {one['plan_s']} s"
                    f" (CPU {one['plan_cpu_s']} s, peak {one['plan_peak_mib']} MiB); {one['waiting']} wait; {bound}{saved};"
                    f" {one['method']}; load {one['load']}",
                    flush=True,
                )
    if given.json:
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
