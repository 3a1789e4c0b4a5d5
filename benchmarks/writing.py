"""How long stacks take to write: `python benchmarks/writing.py PART` does one part and says nothing; `figures.py` times it.

Parts: `nodes CLOUD` a job of 64 nodes · `clouds` one job on all four clouds · `jobs` 100 jobs, all planned together.  Each plans from the packaged catalog and
writes Terraform JSON to a temporary folder, through the CDK, as `skyplan apply` does.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from planner.model.offer import CapacityType, Cloud
from planner.model.project import Project, Target
from planner.model.workload import (
    CheckpointPolicy,
    Constraints,
    Dataset,
    GpuOption,
    ObjectPrefix,
    Resources,
    Store,
    Work,
    Workload,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.app.plan import Result
    from planner.model.stack import StackInput

NODES, JOBS = 64, 100
AS_OF = "2026-11-01T00:00:00Z"
NOW = datetime(2026, 11, 1, tzinfo=UTC)
STORES = {Cloud.AWS: Store.S3, Cloud.GCP: Store.GCS, Cloud.AZURE: Store.AZURE_BLOB, Cloud.NEBIUS: Store.NEBIUS}
ACCOUNTS = {
    Cloud.AWS: "123456789012",
    Cloud.GCP: "acme-ml",
    Cloud.AZURE: "11111111-2222-3333-4444-555555555555",
    Cloud.NEBIUS: "project-e00acme",
}
#: a type with a fabric, and one that nearly everybody has
FABRIC = {
    Cloud.AWS: "p5.48xlarge",
    Cloud.GCP: "a3-megagpu-8g",
    Cloud.AZURE: "Standard_ND96isr_H100_v5",
    Cloud.NEBIUS: "gpu-h100-sxm_8gpu-128vcpu-1600gb",
}


def project() -> Project:
    targets = tuple(
        Target(name="prod", cloud=cloud, account=ACCOUNTS[cloud], tenant="tenant-e00acme") for cloud in Cloud
    )
    return Project(name="acme", targets=targets, default_targets=False, pool_cap_nodes=10_000)


def job(name: str, cloud: Cloud, *, nodes: int = 1, kind: str | None = None) -> Workload:
    """H100s with data and checkpoints in the cloud that it runs in."""
    count = 8 if kind else 1
    bucket = "acme/corpus" if cloud is Cloud.AZURE else "acme-corpus"
    at = ObjectPrefix(store=STORES[cloud], bucket=bucket, prefix="llama/")
    gpus = (GpuOption(count=count, model="H100"),) if kind else (GpuOption(count=1, min_memory_gib=16.0),)
    return Workload(
        name=name,
        resources=Resources(accelerators=gpus, nodes=nodes, capacity=(CapacityType.ON_DEMAND,)),
        work=Work(hours=24, model="H100", count=count, nodes=nodes),
        run="torchrun train.py",
        data=(Dataset(at=at, size_bytes=500 * 10**9),),
        checkpoint=CheckpointPolicy(at=replace(at, prefix="runs/"), size_bytes=10**10, every_hours=0.5),
        constraints=Constraints(clouds=(cloud.value,), instance_types=(kind,) if kind else ()),
    )


def planned(jobs: Sequence[Workload]) -> Result:
    from planner.app import inputs, plan

    read = inputs.Inputs(
        jobs=tuple(inputs.Job(workload=one, file=f"{one.name}.yaml") for one in jobs),
        project=project(),
        project_file=None,
        market=inputs.load_market(),
        warnings=(),
    )
    return plan.run_on(read, plan.Request(job_files=(), offline=True, as_of=AS_OF), NOW)


def stacks(jobs: Sequence[Workload]) -> list[StackInput]:
    """The stacks of the best placement of each.  Raises SystemExit where one has none."""
    from planner.app.synth import inputs_of

    result = planned(jobs)
    found: list[StackInput] = []
    for one in result.planned:
        made = inputs_of(one.plan, one.placed.workload, result.inputs.project, result.inputs.market, 1)
        if not made:
            raise SystemExit(f"{one.plan.name}: no placement: {one.plan.rejected}")
        found += made
    return found


def many_nodes(cloud: Cloud) -> list[StackInput]:
    return stacks([job("pretrain", cloud, nodes=NODES, kind=FABRIC[cloud])])


def all_clouds() -> list[StackInput]:
    return stacks([job(f"sft-{cloud.value}", cloud, kind=FABRIC[cloud]) for cloud in Cloud])


def many_jobs() -> list[StackInput]:
    clouds = list(Cloud)
    return stacks([job(f"sweep-{number}", clouds[number % len(clouds)]) for number in range(JOBS)])


def main(arguments: list[str]) -> None:
    from planner.app.synth import write

    made = {"nodes": lambda: many_nodes(Cloud(arguments[1])), "clouds": all_clouds, "jobs": many_jobs}[arguments[0]]()
    with tempfile.TemporaryDirectory() as folder:
        write(made, Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
