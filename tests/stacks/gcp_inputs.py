"""Real-looking stack inputs on GCP: one job on every fabric of the cloud, on one node, on demand, spot and reserved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.iam import gcp as iam
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
ACCOUNT = "acme-ml"
REGION = "us-central1"
BASE: dict[str, Any] = {
    "project": "acme",
    "cloud": Cloud.GCP,
    "target": "prod",
    "region": REGION,
    "account": ACCOUNT,
    "role_arn": None,
    "backend": Backend(),
    "provider_version": ">= 6.50, < 8",
}
ZONES = (("us-central1-a", "10.42.0.0/20"), ("us-central1-b", "10.42.16.0/20"))
GRANTS = (
    Grant(
        identity=Identity.NODE_DATA,
        permission=Permission.READ_OBJECTS,
        resource="gs://acme-corpus/llama/",
        reason="training data",
    ),
    Grant(
        identity=Identity.NODE_CHECKPOINT,
        permission=Permission.WRITE_CHECKPOINTS,
        resource="gs://acme-ckpt/llama/",
        reason="checkpoints, written and read back",
    ),
    Grant(
        identity=Identity.NODE_DATA,
        permission=Permission.READ_SECRET,
        resource="gcp-secretmanager://hf-token",
        reason="environment variable HF_TOKEN",
    ),
)
PATHS = (
    DataPath(
        uri="gs://acme-corpus/llama/",
        write=False,
        reach=Reach.PLATFORM,
        detail="the nodes' service account, as objectViewer of the managed folder",
    ),
    DataPath(
        uri="gs://acme-ckpt/llama/",
        write=True,
        reach=Reach.PLATFORM,
        detail="the nodes' service account, as objectCreator and objectViewer of the managed folder",
    ),
)
OPEN_IMAGE = "projects/ubuntu-os-accelerator-images/global/images/family/ubuntu-accelerator-2204-amd64-with-nvidia-580"
#: fabric -> (machine type, zone)
ON_FABRIC = {
    Fabric.TCPX: ("a3-highgpu-8g", "us-central1-a"),
    Fabric.TCPXO: ("a3-megagpu-8g", "us-central1-a"),
    Fabric.ROCE: ("a3-ultragpu-8g", "us-central1-b"),
    Fabric.ETHERNET: ("a2-ultragpu-8g", "us-central1-a"),
}
ADDRESSES = ("10.42.0.10", "10.42.0.11")


def workload(nodes: int = 2, **changes: Any) -> Workload:
    """A job with a secret, an environment, data and checkpoints."""
    made = Workload(
        name="llama3-8b-sft",
        resources=Resources(accelerators=(GpuOption(count=8, model="H100"),), nodes=nodes),
        work=Work(hours=24, model="H100", count=8, nodes=nodes),
        run='torchrun train.py --epochs "${EPOCHS}"',
        image=Image(ref="ghcr.io/acme/train:1.4", digest="sha256:" + "a" * 64),
        env=(("EPOCHS", "3"),),
        secrets=(SecretRef(env="HF_TOKEN", store="gcp-secretmanager", path="hf-token"),),
        data=(
            Dataset(
                at=ObjectPrefix(store=Store.GCS, bucket="acme-corpus", prefix="llama/", region=REGION),
                size_bytes=500 * 10**9,
                reads=3,
            ),
        ),
        checkpoint=CheckpointPolicy(
            at=ObjectPrefix(store=Store.GCS, bucket="acme-ckpt", prefix="llama/", region=REGION),
            size_bytes=96 * 10**9,
            every_hours=0.5,
        ),
    )
    return replace(made, **changes)


def network(**changes: Any) -> NetworkInput:
    """A network of two zones."""
    made = NetworkInput(
        **BASE, name="net-prod-us-central1", tags=TAGS, cidr="10.42.0.0/16", nat_cidr="10.42.255.0/28", zones=ZONES
    )
    return replace(made, **changes)


def template(fabric: Fabric = Fabric.TCPXO, **changes: Any) -> NodeTemplate:
    """Two nodes on a fabric, put close together."""
    instance_type, zone = ON_FABRIC[fabric]
    made = NodeTemplate(
        key=f"{instance_type}/{zone}",
        instance_type=instance_type,
        zone=zone,
        gpu_count=8,
        nvme=True,
        fabric=fabric,
        efa_interfaces=0,
        machine_image=OPEN_IMAGE,
        disk_gb=200,
        cluster=True,
        addresses=ADDRESSES,
        nodes=2,
    )
    return replace(made, **changes)


def single(instance_type: str = "g2-standard-24", **changes: Any) -> NodeTemplate:
    """One node, whose address the cloud chooses."""
    made = template(
        key=f"{instance_type}/us-central1-a",
        instance_type=instance_type,
        zone="us-central1-a",
        gpu_count=2,
        fabric=Fabric.ETHERNET,
        cluster=False,
        addresses=(),
        nodes=1,
    )
    return replace(made, **changes)


def access(**changes: Any) -> AccessInput:
    """A template on every fabric and a pinned image on a single node."""
    templates = (
        *(template(fabric) for fabric in ON_FABRIC),
        single(machine_image="projects/acme-ml/global/images/train-v7"),
    )
    made = AccessInput(
        **BASE,
        name="acc-llama3-8b-sft-prod-us-central1",
        tags=JOB_TAGS,
        workload=workload(),
        policies=iam.policies(GRANTS, account=ACCOUNT, region=REGION),
        permissions_boundary=None,
        kms_key_arn=None,
        templates=templates,
        head_address=ADDRESSES[0],
        agent_url=None,
        agent_sha256=None,
        data_paths=PATHS,
        snippets=iam.snippets(GRANTS, account=ACCOUNT),
    )
    return replace(made, **changes)


def compute(node: NodeTemplate | None = None, **changes: Any) -> ComputeInput:
    """The nodes of one template in generation 3, on spot capacity."""
    node = node or template()
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


def reserved(node: NodeTemplate | None = None, **changes: Any) -> ComputeInput:
    """The same in a reservation."""
    return compute(node, capacity=CapacityType.RESERVED, reservation="acme-h100", **changes)


def on_demand(node: NodeTemplate | None = None, **changes: Any) -> ComputeInput:
    """The same on demand."""
    return compute(node, capacity=CapacityType.ON_DEMAND, **changes)


def everything() -> tuple[NetworkInput, AccessInput, ComputeInput]:
    """One of each."""
    return network(), access(), compute()
