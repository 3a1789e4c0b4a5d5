"""Fifteen jobs and the best placement that the planner finds for each of them on each cloud, as stacks.

Each job asks for one more thing; on a cloud that has no way to give it (a session, a key of the user's own) the job is left out there.  Data,
checkpoints and secrets are in the cloud that is planned for, as a job's nodes must be able to read them.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from catalog.load import load_market
from planner.app import inputs, plan, synth
from planner.model.offer import CapacityType, Cloud
from planner.model.project import ControlPlane, OwnNetwork, Project, Reservation, Target
from planner.model.stack import AccessInput, ComputeInput, NetworkInput
from planner.model.workload import Constraints, GpuOption, Resources, SecretRef, Work, Workload
from planner.placement.address import zone_cidrs
from tests.stacks import cases, nebius_inputs
from tests.stacks.cases import Case

AS_OF = "2026-11-01T00:00:00Z"
NOW = datetime(2026, 11, 1, tzinfo=UTC)
GENERATION = 1
GOLDEN = Path(__file__).with_name("golden") / "jobs"
#: one GPU, by cloud: what is cheap there
ONE = {Cloud.AWS: "L4", Cloud.GCP: "L4", Cloud.AZURE: "T4", Cloud.NEBIUS: "H100"}
#: cloud -> fabric -> (instance type that has it, GPU, GPUs)
JOINED: dict[Cloud, dict[str, tuple[str, str, int]]] = {
    Cloud.AWS: {"efa": ("p5.48xlarge", "H100", 8), "ethernet": ("g5.xlarge", "A10G", 1)},
    Cloud.GCP: {
        "tcpx": ("a3-highgpu-8g", "H100", 8),
        "tcpxo": ("a3-megagpu-8g", "H100", 8),
        "roce": ("a3-ultragpu-8g", "H200", 8),
        "ethernet": ("a2-ultragpu-8g", "A100-80GB", 8),
    },
    Cloud.AZURE: {
        "infiniband": ("Standard_ND96isr_H100_v5", "H100", 8),
        "ethernet": ("Standard_NC24ads_A100_v4", "A100-80GB-PCIe", 1),
    },
    Cloud.NEBIUS: {
        "infiniband": ("gpu-h100-sxm_8gpu-128vcpu-1600gb", "H100", 8),
        "ethernet": ("gpu-h100-sxm_1gpu-16vcpu-200gb", "H100", 1),
    },
}
#: a type that a reservation is for, and its place
RESERVED: dict[Cloud, tuple[str, str, int, str, str]] = {
    Cloud.AWS: ("p5.48xlarge", "H100", 8, "us-east-1", "use1-az1"),
    Cloud.GCP: ("a3-highgpu-8g", "H100", 8, "us-central1", "us-central1-a"),
    Cloud.AZURE: ("Standard_ND96isr_H100_v5", "H100", 8, "eastus", ""),
    Cloud.NEBIUS: ("gpu-h100-sxm_8gpu-128vcpu-1600gb", "H100", 8, "eu-north1", ""),
}
ROLES = {
    Cloud.AWS: ("arn:aws:iam::123456789012:role/deployer", "arn:aws:iam::123456789012:role/orchestrator"),
    Cloud.GCP: ("deployer@acme-ml.iam.gserviceaccount.com", "orchestrator@acme-ml.iam.gserviceaccount.com"),
    Cloud.AZURE: (None, None),
    Cloud.NEBIUS: (None, None),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One workload on one cloud, under the settings that it is planned with."""

    name: str
    cloud: Cloud
    workload: Workload
    project: Project

    def __str__(self) -> str:
        return f"{self.cloud.value}-{self.name}"


#: who mints, by the cloud's own names
BROKERS = {
    Cloud.AWS: "arn:aws:iam::123456789012:role/skyplan-foundation/acme/skyplan-acme-broker",
    Cloud.GCP: "skyplan-acme-broker@acme-ml.iam.gserviceaccount.com",
    Cloud.AZURE: "22222222-0000-4000-8000-000000000000",
    Cloud.NEBIUS: "serviceaccount-e00broker",
}
BOUNDARY = "arn:aws:iam::123456789012:policy/skyplan-foundation/acme/skyplan-acme-node-boundary"


def _workload(cloud: Cloud, gpu: str, count: int, capacity: CapacityType, **changes: Any) -> Workload:
    nodes = changes.pop("nodes", 1)
    template = replace(cases.single(cloud), gpu_count=count, nodes=nodes)
    made = cases.workload(cloud, template)
    resources = Resources(accelerators=(GpuOption(count=count, model=gpu),), nodes=nodes, capacity=(capacity,))
    work = Work(hours=24, model=gpu, count=count, nodes=nodes)
    return replace(made, resources=resources, work=work, secrets=(), **changes)


def _project(cloud: Cloud, **changes: Any) -> Project:
    deployer, orchestrator = ROLES[cloud]
    target = Target(
        name="prod",
        cloud=cloud,
        account=cases.ACCOUNTS[cloud],
        deployer_role=deployer,
        orchestrator_role=orchestrator,
        tenant=nebius_inputs.TENANT if cloud in {Cloud.AZURE, Cloud.NEBIUS} else None,
    )
    reserved, tags = changes.pop("reserved", ()), changes.pop("tags", ())
    return Project(
        name="acme", targets=(replace(target, **changes),), default_targets=False, reserved=reserved, tags=tags
    )


def _controlled(cloud: Cloud, *beside: Cloud, broker: bool = True) -> Project:
    """Under a control plane; `beside`: clouds in which nothing is launched, and whose stores are reached by the broker."""
    bounds = {Cloud.AWS: BOUNDARY}
    here = _project(cloud, broker_role=BROKERS[cloud], permissions_boundary=bounds.get(cloud))
    there = [
        _project(one, broker_role=BROKERS[one], permissions_boundary=bounds.get(one), regions=("nowhere",))
        for one in beside
    ]
    azure = cloud is Cloud.AZURE
    control = ControlPlane(
        url="https://plane.example.com",
        broker="https://broker.example.com" if broker else None,
        azure_audience="api://skyplan" if azure else None,
        azure_broker_audience="api://skyplan-broker" if azure and broker else None,
    )
    return replace(
        here,
        targets=(*here.targets, *(target for project in there for target in project.targets)),
        agent_url="https://plane.example.com/agent.pyz",
        agent_sha256="a" * 64,
        control_plane=control,
    )


def _jobs(cloud: Cloud) -> Iterator[tuple[str, Workload, Project]]:
    on_demand, spot = CapacityType.ON_DEMAND, CapacityType.SPOT
    plain, one = _project(cloud), ONE[cloud]
    yield "spot", _workload(cloud, one, 1, spot), plain
    yield "on-demand", _workload(cloud, one, 1, on_demand), plain
    yield "reserved", *_reserved(cloud)
    for fabric, (kind, gpu, count) in JOINED[cloud].items():
        narrow = Constraints(instance_types=(kind,))
        # the catalog knows no on-demand price of A3 Ultra
        bought = spot if fabric == "roce" else on_demand
        yield f"two-nodes-{fabric}", _workload(cloud, gpu, count, bought, nodes=2, constraints=narrow), plain
    if cloud in cases.WITH_SESSION:
        yield "session", _workload(cloud, one, 1, on_demand, session=True), plain
    made = _workload(cloud, one, 1, on_demand)
    (data,) = made.data
    _, _, _, store, path = cases.PLACES[cloud]
    if cloud is not Cloud.NEBIUS:  # its nodes have no credentials for a store or a secret in this version (SKY-REJ-215)
        yield "mount", replace(made, data=(replace(data, mount="/data"),)), plain
        # what the smallest type's local disk holds
        copied = replace(data, copy_to="/scratch/corpus", size_bytes=100 * 10**9)
        yield "copy", replace(made, data=(copied,)), plain
        yield "secrets", replace(made, secrets=(SecretRef(env="HF_TOKEN", store=store, path=path),)), plain
    if cloud in cases.KEYS:
        yield "own-key", made, _project(cloud, kms_key_arn=cases.KEYS[cloud])
    yield "own-network", made, _project(cloud, networks=_own(cloud))
    yield "awkward-tags", replace(made, tags=cases.AWKWARD[:2]), _project(cloud, tags=cases.AWKWARD[2:])
    yield "hard-end", replace(made, constraints=Constraints(stop_after_hours=36.0)), plain
    yield "agent", made, _controlled(cloud, broker=False)
    yield "broker", made, _controlled(cloud)
    away = Cloud.GCP if cloud is Cloud.AWS else Cloud.AWS
    store, bucket, _, _, _ = cases.PLACES[away]
    other = replace(data.at, store=store, bucket=bucket)
    yield "broker-elsewhere", replace(made, data=(replace(data, at=other),)), _controlled(cloud, away)


def _reserved(cloud: Cloud) -> tuple[Workload, Project]:
    kind, gpu, count, region, zone = RESERVED[cloud]
    held = Reservation(
        target="prod",
        region=region,
        zone=zone,
        instance_type=kind,
        nodes=1,
        id=cases.RESERVATIONS[cloud],
        starts="2026-10-01T00:00:00Z",
        expires="2027-10-01T00:00:00Z",
    )
    return _workload(cloud, gpu, count, CapacityType.RESERVED), _project(cloud, reserved=(held,))


def _own(cloud: Cloud) -> tuple[OwnNetwork, ...]:
    """A network in every region of the cloud, so that it does not decide where the job runs."""
    groups = ("sg-0123456789abcdef0",) if cloud in {Cloud.AWS, Cloud.NEBIUS} else ()
    return tuple(
        OwnNetwork(
            region=region.name,
            vpc_id=f"network-{region.name}",
            subnets=tuple((zone, f"subnet-{zone or region.name}") for zone, _ in zone_cidrs(region)),
            security_group_ids=groups,
        )
        for region in market().regions
        if region.cloud is cloud
    )


@cache
def market() -> Any:
    return load_market()


@cache
def every() -> tuple[Job, ...]:
    """All jobs on all clouds."""
    return tuple(
        Job(name=name, cloud=cloud, workload=workload, project=project)
        for cloud in Cloud
        for name, workload, project in _jobs(cloud)
    )


@cache
def _best(name: str) -> Case:
    return _placed(next(job for job in every() if str(job) == name))


def best(job: Job) -> Case:
    """The stacks of the job's best placement, planned once."""
    return _best(str(job))


def grouped() -> list[Any]:
    """All jobs as parameters; those of one cloud stay in one worker, which plans each once."""
    return [
        pytest.param(job, marks=pytest.mark.xdist_group(f"golden-jobs-{job.cloud.value}"), id=str(job))
        for job in every()
    ]


def _placed(job: Job) -> Case:
    """The stacks of the job's best placement.  Raises AssertionError where there is none: then a golden file is missing too."""
    read = inputs.Inputs(
        jobs=(inputs.Job(workload=job.workload, file=f"{job.name}.yaml"),),
        project=job.project,
        project_file=None,
        market=market(),
        warnings=(),
    )
    (planned,) = plan.run_on(read, plan.Request(job_files=(), offline=True, as_of=AS_OF), NOW).planned
    assert planned.plan.ranked, f"{job}: {planned.plan.rejected}"
    network, access, compute = synth.inputs_of(planned.plan, job.workload, job.project, read.market, GENERATION)
    assert isinstance(network, NetworkInput)
    assert isinstance(access, AccessInput)
    assert isinstance(compute, ComputeInput)
    return Case(name=job.name, network=network, access=access, compute=compute)


USER_DATA = "(user data: tests/unit/modules)"
PLAN_ID = "(plan id)"


def golden_form(rendered: cases.Rendered) -> cases.Rendered:
    """The same without what nodes boot and the plan's id, which change with every word of an input."""
    acc, cmp = copy.deepcopy(rendered.acc), copy.deepcopy(rendered.cmp)
    for template in acc.get("resource", {}).get("aws_launch_template", {}).values():
        template["user_data"] = USER_DATA
    for kind, field in (
        ("azurerm_linux_virtual_machine", "custom_data"),
        ("nebius_compute_v1_instance", "cloud_init_user_data"),
    ):
        if kind in cmp.get("resource", {}):
            cmp["resource"][kind]["node"][field] = USER_DATA
    if "google_compute_instance" in cmp.get("resource", {}):
        cmp["resource"]["google_compute_instance"]["node"]["metadata"]["user-data"] = USER_DATA
    cmp["output"]["plan_id"]["value"] = PLAN_ID
    return replace(rendered, case=golden_case(rendered.case), acc=acc, cmp=cmp)


def golden_case(case: Case) -> Case:
    """The case that a golden file's stacks are of."""
    return replace(case, compute=replace(case.compute, plan_id=PLAN_ID))


def golden_file(job: Job) -> Path:
    return GOLDEN / job.cloud.value / f"{job.name}.json"


@cache
def golden(job_name: str) -> cases.Rendered:
    """What lies in the golden file of a job, with the case that it is of."""
    job = next(job for job in every() if str(job) == job_name)
    return cases.Rendered(case=golden_case(best(job)), **json.loads(golden_file(job).read_text(encoding="utf-8")))
