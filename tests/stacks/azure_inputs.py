"""Real-looking stack inputs on Azure: one job on InfiniBand nodes, on nodes without it and on one node; on demand, spot and reserved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.iam.azure import policies
from planner.model.grants import Grant, Identity, Permission
from planner.model.offer import CapacityType, Cloud, Fabric
from planner.model.project import Backend
from planner.model.stack import AccessInput, ComputeInput, DataPath, NetworkInput, NodeTemplate, Reach
from planner.model.workload import (
    CheckpointPolicy,
    Dataset,
    GpuOption,
    Image,
    ObjectPrefix,
    Resources,
    SecretRef,
    Store,
    Work,
    Workload,
)

TAGS = (("skyplan:project", "acme"), ("skyplan:managed", "true"), ("Team", "LLM research"))
JOB_TAGS = (
    ("skyplan:project", "acme"),
    ("skyplan:job", "llama3-8b-sft"),
    ("skyplan:managed", "true"),
    ("Team", "LLM research"),
)
ACCOUNT = "11111111-2222-3333-4444-555555555555"
TENANT = "99999999-8888-7777-6666-555555555555"
REGION = "eastus"
BASE: dict[str, Any] = {
    "project": "acme",
    "cloud": Cloud.AZURE,
    "target": "prod",
    "region": REGION,
    "account": ACCOUNT,
    "role_arn": None,
    "backend": Backend(),
    "provider_version": ">= 4.55, < 5",
    "tenant": TENANT,
}
ZONES = (("", "10.84.0.0/20"),)
RESERVATION = (
    f"/subscriptions/{ACCOUNT}/resourceGroups/reserved/providers/Microsoft.Compute/capacityReservationGroups/h100"
)
GRANTS = (
    Grant(
        identity=Identity.NODE_DATA,
        permission=Permission.READ_OBJECTS,
        resource="az://acmedata/corpus/llama/",
        reason="training data",
    ),
    Grant(
        identity=Identity.NODE_CHECKPOINT,
        permission=Permission.WRITE_CHECKPOINTS,
        resource="az://acmeckpt/runs/llama/",
        reason="checkpoints, written and read back",
    ),
    Grant(
        identity=Identity.NODE_DATA,
        permission=Permission.READ_SECRET,
        resource="azure-keyvault://acme-vault/hf-token",
        reason="environment variable HF_TOKEN",
    ),
)
PATHS = (
    DataPath(uri="az://acmedata/corpus/llama/", write=False, reach=Reach.PLATFORM, detail="the nodes' identity"),
    DataPath(uri="az://acmeckpt/runs/llama/", write=True, reach=Reach.PLATFORM, detail="the nodes' identity"),
)
IMAGE = "microsoft-dsvm:ubuntu-hpc:2204:22.04.2026080501"
ADDRESSES = ("10.84.0.10", "10.84.0.11")


def workload(nodes: int = 2, **changes: Any) -> Workload:
    """A job with a secret, an environment, data and checkpoints."""
    made = Workload(
        name="llama3-8b-sft",
        resources=Resources(accelerators=(GpuOption(count=8, model="H100"),), nodes=nodes),
        work=Work(hours=24, model="H100", count=8, nodes=nodes),
        run='torchrun train.py --epochs "${EPOCHS}"',
        image=Image(ref="ghcr.io/acme/train:1.4", digest="sha256:" + "a" * 64),
        env=(("EPOCHS", "3"),),
        secrets=(SecretRef(env="HF_TOKEN", store="azure-keyvault", path="acme-vault/hf-token"),),
        data=(
            Dataset(
                at=ObjectPrefix(store=Store.AZURE_BLOB, bucket="acmedata/corpus", prefix="llama/", region=REGION),
                size_bytes=500 * 10**9,
                reads=3,
            ),
        ),
        checkpoint=CheckpointPolicy(
            at=ObjectPrefix(store=Store.AZURE_BLOB, bucket="acmeckpt/runs", prefix="llama/", region=REGION),
            size_bytes=96 * 10**9,
            every_hours=0.5,
        ),
    )
    return replace(made, **changes)


def network(**changes: Any) -> NetworkInput:
    """A network with one subnet for the region."""
    made = NetworkInput(
        **BASE, name="net-prod-eastus", tags=TAGS, cidr="10.84.0.0/16", nat_cidr="10.84.240.0/24", zones=ZONES
    )
    return replace(made, **changes)


def infiniband(**changes: Any) -> NodeTemplate:
    """Two H100 nodes on InfiniBand."""
    made = NodeTemplate(
        key="Standard_ND96isr_H100_v5/",
        instance_type="Standard_ND96isr_H100_v5",
        zone="",
        gpu_count=8,
        nvme=True,
        fabric=Fabric.INFINIBAND,
        efa_interfaces=0,
        machine_image=IMAGE,
        disk_gb=200,
        cluster=True,
        addresses=ADDRESSES,
        nodes=2,
    )
    return replace(made, **changes)


def ethernet(**changes: Any) -> NodeTemplate:
    """Two A100 nodes without a fabric, in a zone."""
    made = infiniband(
        key="Standard_NC96ads_A100_v4/2",
        instance_type="Standard_NC96ads_A100_v4",
        zone="2",
        gpu_count=4,
        fabric=Fabric.ETHERNET,
    )
    return replace(made, **changes)


def single(**changes: Any) -> NodeTemplate:
    """One node, whose address the cloud chooses."""
    made = infiniband(
        key="Standard_NC4as_T4_v3/",
        instance_type="Standard_NC4as_T4_v3",
        gpu_count=1,
        fabric=Fabric.ETHERNET,
        cluster=False,
        addresses=(),
        nodes=1,
    )
    return replace(made, **changes)


def access(**changes: Any) -> AccessInput:
    """A template of each kind."""
    made = AccessInput(
        **BASE,
        name="acc-llama3-8b-sft-prod-eastus",
        tags=JOB_TAGS,
        workload=workload(),
        policies=policies(GRANTS, account=ACCOUNT, region=REGION),
        permissions_boundary=None,
        kms_key_arn=None,
        templates=(infiniband(), ethernet(), single()),
        head_address=ADDRESSES[0],
        agent_url=None,
        agent_sha256=None,
        data_paths=PATHS,
    )
    return replace(made, **changes)


def compute(node: NodeTemplate | None = None, **changes: Any) -> ComputeInput:
    """The nodes of one template in generation 3, on spot capacity."""
    node = node or infiniband()
    made = ComputeInput(
        **BASE,
        name="cmp-llama3-8b-sft-g3",
        tags=(*JOB_TAGS, ("skyplan:generation", "3")),
        job="llama3-8b-sft",
        generation=3,
        plan_id="p0123456789",
        zone=node.zone,
        instance_type=node.instance_type,
        capacity=CapacityType.SPOT,
        reservation="",
        nodes=node.nodes,
        template_key=node.key,
        cluster=node.cluster,
        addresses=node.addresses,
        node=node,
        workload=workload(node.nodes),
        data_paths=PATHS,
    )
    return replace(made, **changes)


def on_demand(node: NodeTemplate | None = None, **changes: Any) -> ComputeInput:
    """The same on demand."""
    return compute(node, capacity=CapacityType.ON_DEMAND, **changes)


def reserved(node: NodeTemplate | None = None, **changes: Any) -> ComputeInput:
    """The same in a capacity reservation group."""
    return compute(node, capacity=CapacityType.RESERVED, reservation=RESERVATION, **changes)


def everything() -> tuple[NetworkInput, AccessInput, ComputeInput]:
    """One of each."""
    return network(), access(), compute()
