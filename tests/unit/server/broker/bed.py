"""A job with an approved plan on each cloud, its nodes' identities as their stacks name them, and a record that can lie."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from planner.app.compose import access_name, network_name
from planner.app.mint import Asking, Broker
from planner.app.mint_keys import BoundKeys
from planner.app.mint_nodes import NodeNames
from planner.app.mint_plans import ApprovedPlans
from planner.app.mint_rules import Wanted
from planner.app.rights import grants_digest, placement_grants, placement_paths
from planner.clouds.mint.fake import FakeMinters
from planner.model.offer import Cloud
from planner.model.plan import Placement, PlacementPlan, PlanStatus, to_document
from planner.model.project import ControlPlane, Project, Target
from planner.model.record import Run
from planner.model.runtime import CredentialIssue, NodeIdentity, Refusal, Refused, Seat
from planner.model.server import KnownPrincipal
from planner.model.workload import CheckpointPolicy, Constraints, Dataset, ObjectPrefix, Output, Store, Workload
from planner.spec.normal import workload_document
from tests import builders

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SUBSCRIPTION = "0b1f6471-1bf0-4dda-aec3-cb9272f09590"
ACCOUNTS = {Cloud.AWS: "123456789012", Cloud.GCP: "acme-ml", Cloud.AZURE: SUBSCRIPTION, Cloud.NEBIUS: "project-e00"}
KEY_ID = "arn:aws:kms:us-east-1:123456789012:key/1"
TARGETS = tuple(
    Target(
        name="prod",
        cloud=c,
        account=ACCOUNTS[c],
        broker_role=f"broker-{c.value}",
        kms_key_arn=KEY_ID if c is Cloud.AWS else None,
    )
    for c in Cloud
)
PROJECT = Project(
    name="acme",
    targets=TARGETS,
    default_targets=False,
    control_plane=ControlPlane(url="https://plane.example.com", broker="https://broker.example.com"),
)
REGION = {Cloud.AWS: "us-east-1", Cloud.GCP: "us-central1", Cloud.AZURE: "eastus", Cloud.NEBIUS: "eu-north1"}
KEY = "k" * 64


def at(store: Store, prefix: str) -> ObjectPrefix:
    return ObjectPrefix(
        store=store, bucket="acct/all" if store is Store.AZURE_BLOB else "all", prefix=prefix, region="eu-north1"
    )


def workload(store: Store, name: str = "train", **changes: Any) -> Workload:
    given: dict[str, Any] = {
        "data": (Dataset(at=at(store, "corpus/"), size_bytes=1),),
        "checkpoint": CheckpointPolicy(at=at(store, "ckpt/"), size_bytes=1, every_hours=1.0),
        "output": Output(at=at(store, "out/"), size_bytes=1),
        "constraints": Constraints(stop_after_hours=24.0),
        **changes,
    }
    return builders.workload(name, **given)


def placement(cloud: Cloud, **changes: Any) -> Placement:
    given: dict[str, Any] = {
        "rank": 1,
        "offer_id": f"{cloud.value}/prod/{REGION[cloud]}/z/t/spot",
        "pool": "p",
        "target": "prod",
        "cloud": cloud.value,
        "region": REGION[cloud],
        "zone": "z",
        "instance_type": "t",
        "capacity": "spot",
        "nodes": 2,
        "gpu": "H100",
        "gpu_count": 8,
        "gpu_memory_gib": Decimal(80),
        "topology": "",
        "lower_bound": False,
        "terms": (),
        "caveats": (),
        "differs": (),
        "addresses": (),
        "placement_id": "p0123456789",
        "grants_digest": "",
        "price_as_of": "2026-11-01",
        "price_source": "catalog",
        **{n: Decimal(10) for n in ("node_usd_per_hour", "usd_per_hour", "total_usd", "compute_hours", "finish_hours")},
        **changes,
    }
    return Placement(**given)


def plan(cloud: Cloud, job: Workload, project: Project = PROJECT) -> PlacementPlan:
    bare = placement(cloud)
    grants = placement_grants(job, bare, project)
    return PlacementPlan(
        job=workload_document(job),
        inputs={"job": {"file": "jobs/job.yaml", "digest": "sha256:0"}},
        ranked=(placement(cloud, grants_digest=grants_digest(grants)),),
        rejected=(),
        notes=(),
        grants={grants_digest(grants): grants},
        stacks=(),
        status=PlanStatus(complete=True, applyable=True, errored=False),
        access={f"{cloud.value}:prod": placement_paths(job, bare, project)},
    )


def write(folder: Path, made: PlacementPlan, name: str = "") -> Path:
    path = folder / f"{name or made.name}.plan.json"
    path.write_text(json.dumps(to_document(made)))
    return path


def node(cloud: Cloud, job: str = "train", machine: int = 0) -> NodeIdentity:
    """The identity that the job's access stack makes, on a machine, as a verifier tells it.  Spelled out, not computed by the code under test."""
    from modules.azure.names import resource_name
    from modules.gcp.names import account_id

    stack = access_name(job, placement(cloud))
    account = ACCOUNTS[cloud]
    match cloud:
        case Cloud.AWS:
            return NodeIdentity(
                scheme="aws-sts",
                cloud="aws",
                account=account,
                instance_id=f"i-{machine:017x}",
                principal=f"arn:aws:iam::{account}:role/skyplan-acme-{stack}",
            )
        case Cloud.GCP:
            return NodeIdentity(
                scheme="gcp-jwt",
                cloud="gcp",
                account=account,
                instance_id=f"node-{machine}",
                where="us-central1-a",
                principal=f"{account_id('acme', stack, job)}@{account}.iam.gserviceaccount.com",
            )
        case Cloud.AZURE:
            group = resource_name("acme", network_name(placement(cloud)), limit=90)
            path = f"/subscriptions/{account}/resourcegroups/{group}/providers/Microsoft.ManagedIdentity"
            return NodeIdentity(
                scheme="azure-jwt",
                cloud="azure",
                account=account,
                instance_id=f"node-{machine}",
                principal=f"{path}/userAssignedIdentities/{resource_name('acme', stack, limit=128)}",
            )
        case Cloud.NEBIUS:
            return NodeIdentity(scheme="nebius-jwt", cloud="nebius", principal=f"serviceaccount-e00{job}")


def recorded(cloud: Cloud, machine: int = 0) -> str:
    """What Terraform calls that machine."""
    match cloud:
        case Cloud.AWS:
            return f"i-{machine:017x}"
        case Cloud.GCP:
            return f"projects/acme-ml/zones/us-central1-a/instances/node-{machine}"
        case Cloud.AZURE:
            return f"/subscriptions/{SUBSCRIPTION}/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/node-{machine}"
        case Cloud.NEBIUS:
            return f"computeinstance-e00{machine}"


@dataclass
class Ledger:
    """The record.  Every field may be set to a lie."""

    digest: str = ""
    machines: dict[Seat, str] = field(default_factory=dict)
    keys: dict[Seat, str] = field(default_factory=dict)
    refusals: dict[str, Refusal] = field(default_factory=dict)
    issues: list[CredentialIssue] = field(default_factory=list)
    down: Exception | None = None
    started_at: str = "2026-11-30T11:00:00.000000Z"
    checks: int = 0
    after_check: Any = None

    def check(self, seat: Seat) -> None:
        self.checks += 1
        if word := self.refusals.get(seat.run):
            raise Refused(word, f"{seat.run} is {word}")
        if self.after_check:
            self.after_check(self)

    def machine(self, seat: Seat) -> str | None:
        return self.machines.get(seat)

    def holder(self, seat: Seat) -> tuple[str, str] | None:
        return (self.machines.get(seat, ""), self.keys[seat]) if seat in self.keys else None

    def run(self, seat: Seat) -> Run | None:
        if not self.digest:
            return None
        names = ("placement_id", "offer_id", "cloud", "target", "region", "zone", "pool", "instance_type", "capacity")
        return Run(
            job=seat.job,
            generation=seat.generation,
            plan_digest=self.digest,
            rank=1,
            **dict.fromkeys(names, ""),
            nodes=2,
            gpus=16,
            vcpus=2,
            addresses=(),
            usd_per_hour=Decimal(20),
            started_at=self.started_at,
        )

    def issue(self, issue: CredentialIssue, at: datetime) -> None:
        if self.down:
            raise self.down
        self.issues.append(issue)


@dataclass
class Bed:
    """A broker of one approved plan."""

    folder: Path
    cloud: Cloud = Cloud.AWS
    store: Store = Store.S3
    project: Project = PROJECT
    told: list[str] = field(default_factory=list)
    changes: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.plan = plan(self.cloud, workload(self.store, **self.changes), self.project)
        write(self.folder, self.plan)
        self.ledger = Ledger(digest=self.plan.digest)
        self.minters = FakeMinters()
        self.broker = Broker(
            project="acme",
            plans=ApprovedPlans(folder=self.folder, tell=self.told.append),
            nodes=NodeNames(
                project=self.project,
                principals=(KnownPrincipal(job="train", target="prod", principal="serviceaccount-e00train"),)
                if self.cloud is Cloud.NEBIUS
                else (),
            ),
            ledger=self.ledger,
            minters=self.minters,
            keys=BoundKeys(),
        )

    @property
    def orders(self):
        return self.minters.one.orders

    def uri(self, prefix: str) -> str:
        return at(self.store, prefix).uri

    def join(self, seat: Seat, key: str = KEY) -> None:
        self.ledger.machines[seat] = recorded(self.cloud, seat.rank)
        self.ledger.keys[seat] = key

    def ask(self, uri: str, access: str, *, seat: Seat | None = None, now: datetime = NOW, **change: Any):
        seat = seat or Seat(job="train", generation=3, rank=0)
        given: dict[str, Any] = {
            "wanted": Wanted(seat=seat, uri=uri, access=access),
            "who": node(self.cloud, machine=seat.rank),
            "key_sha256": KEY,
            "proof_sha256": f"proof-{seat}-{KEY}",
            **change,
        }
        return self.broker.lease(Asking(**given), now)
