"""A job of four nodes that two clouds must share: each target's quota has room for two.  Two splits are ranked, both with their head on AWS."""

from __future__ import annotations

from functools import cache

from planner.app import inputs
from planner.app.plan import Request, run_on
from planner.model.market import Market
from planner.model.offer import CapacityType, Cloud
from planner.model.plan import PlacementPlan
from planner.model.project import Project, Quota, Rendezvous, Target
from planner.model.workload import SecretRef, Workload
from tests import builders as b
from tests.unit.app.world import EAST, NOW, P4DE, World

A2 = b.instance_type("a2-ultragpu-8g", cloud=Cloud.GCP)
VIRGINIA = b.region("us-east4", Cloud.GCP, net_index=3)
IOWA = b.region("us-central1", Cloud.GCP, net_index=4)
QUOTAS = (Quota(instance_types=("*",), max_nodes=2),)
MEETING = Rendezvous(
    url="https://meet.test",
    secrets=(
        ("aws", SecretRef(env="JOIN", store="aws-secretsmanager", path="join")),
        ("gcp", SecretRef(env="JOIN", store="gcp-secretmanager", path="join")),
    ),
)
PROJECT = Project(
    name="acme",
    targets=(
        Target(name="prod", cloud=Cloud.AWS, quotas=QUOTAS),
        Target(name="prod", cloud=Cloud.GCP, account="acme-ml", quotas=QUOTAS),
    ),
    default_targets=False,
    agent_url="https://agent.test/agent.pyz",
    agent_sha256="0" * 64,
    rendezvous=MEETING,
)


@cache
def market() -> Market:
    rows = [(P4DE, EAST, "us-east-1-a", 10.0), (A2, VIRGINIA, "us-east4-a", 11.0), (A2, IOWA, "us-central1-a", 12.0)]
    return b.market([(t, region, zone, CapacityType.ON_DEMAND, usd) for t, region, zone, usd in rows], gbps=8.0)


@cache
def planned(name: str = "train", nodes: int = 4, project: Project = PROJECT) -> tuple[PlacementPlan, Workload]:
    work = b.workload(name, resources={"nodes": nodes}, tunnel=True, sync_bytes=9_000_000, sync_seconds=60.0)
    job = inputs.Job(workload=work, file="jobs/train.yaml")
    read = inputs.Inputs(jobs=(job,), project=project, project_file="skyplan.yaml", market=market(), warnings=())
    plan = run_on(read, Request(job_files=(), offline=True), NOW).planned[0].plan
    assert [[part.cloud for part in p.parts] for p in plan.ranked] == [["aws", "gcp"]] * 2 or nodes < 3
    return plan, work


class SplitWorld(World):
    project = PROJECT
    market = staticmethod(market)
    planned = staticmethod(planned)

    def apply(self, dies_at: int | None = None, *, nodes: int = 4, **given):
        return super().apply(dies_at, nodes=nodes, **given)
