"""Real-looking stack inputs on Nebius: one job on two InfiniBand nodes and on a single-GPU node."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.iam.nebius import group_name, policies, snippets
from planner.model.grants import Grant, Identity, Permission
from planner.model.offer import CapacityType, Cloud, Fabric
from planner.model.project import Backend
from planner.model.stack import AccessInput, ComputeInput, NetworkInput, NodeTemplate
from planner.model.workload import GpuOption, ObjectPrefix, Resources, Store, Work, Workload
from tests.stacks import inputs

PROJECT, TENANT = "project-e00acme", "tenant-e00acme"
BASE: dict[str, Any] = {
    "project": "acme",
    "cloud": Cloud.NEBIUS,
    "target": "prod",
    "region": "eu-north1",
    "account": PROJECT,
    "role_arn": None,
    "backend": Backend(),
    "provider_version": "0.6.32",
    "tenant": TENANT,
}
GROUP = group_name("acme", "llama3-8b-sft", "prod", "eu-north1")
GRANTS = (
    Grant(
        identity=Identity.NODE_DATA,
        permission=Permission.READ_OBJECTS,
        resource="nebius://acme-corpus/llama/",
        reason="training data",
    ),
    Grant(
        identity=Identity.NODE_CHECKPOINT,
        permission=Permission.WRITE_CHECKPOINTS,
        resource="nebius://acme-ckpt/llama/",
        reason="checkpoints, written and read back",
    ),
    Grant(
        identity=Identity.NODE_DATA,
        permission=Permission.READ_SECRET,
        resource="nebius-mysterybox://mbsec-e00acme/hf",
        reason="environment variable HF_TOKEN",
    ),
)
ADDRESSES = ("10.128.0.10", "10.128.0.11")
INFINIBAND = "gpu-h100-sxm_8gpu-128vcpu-1600gb"
SINGLE = "gpu-h100-sxm_1gpu-16vcpu-200gb"


def workload(**changes: Any) -> Workload:
    """Two nodes of eight H100, data and checkpoints in Nebius's own storage, no secret that only AWS has."""
    made = inputs.workload(
        resources=Resources(accelerators=(GpuOption(count=8, model="H100"),), nodes=2),
        work=Work(hours=24, model="H100", count=8, nodes=2),
        secrets=(),
        registry_auth=None,
    )
    (data,), checkpoint = made.data, made.checkpoint
    assert checkpoint is not None
    at = ObjectPrefix(store=Store.NEBIUS, bucket="acme-corpus", prefix="llama/", region="eu-north1")
    made = replace(
        made, data=(replace(data, at=at),), checkpoint=replace(checkpoint, at=replace(at, bucket="acme-ckpt"))
    )
    return replace(made, **changes)


def alone() -> Workload:
    """The same job on one node with one GPU."""
    return workload(
        resources=Resources(accelerators=(GpuOption(count=1, model="H100"),), nodes=1),
        work=Work(hours=24, model="H100", count=1, nodes=1),
    )


def network(**changes: Any) -> NetworkInput:
    """A regional network."""
    made = NetworkInput(
        **BASE,
        name="net-prod-eu-north1",
        tags=inputs.TAGS,
        cidr="10.128.0.0/16",
        nat_cidr="10.128.255.0/28",
        zones=(("", "10.128.0.0/20"),),
    )
    return replace(made, **changes)


def template(**changes: Any) -> NodeTemplate:
    """Two nodes on InfiniBand."""
    made = NodeTemplate(
        key=f"{INFINIBAND}/",
        instance_type=INFINIBAND,
        zone="",
        gpu_count=8,
        nvme=False,
        fabric=Fabric.INFINIBAND,
        fabric_name="fabric-3",
        efa_interfaces=0,
        machine_image="family:ubuntu24.04-cuda13.0",
        disk_gb=200,
        cluster=True,
        addresses=ADDRESSES,
        nodes=2,
        stop_after_hours=36.0,
    )
    return replace(made, **changes)


def plain_template(**changes: Any) -> NodeTemplate:
    """One GPU, no fabric."""
    made = template(
        key=f"{SINGLE}/",
        instance_type=SINGLE,
        gpu_count=1,
        fabric=Fabric.ETHERNET,
        fabric_name="",
        cluster=False,
        addresses=(),
        nodes=1,
    )
    return replace(made, **changes)


def access(**changes: Any) -> AccessInput:
    """Two templates, one service account."""
    made = AccessInput(
        **BASE,
        name="acc-llama3-8b-sft-prod-eu-north1",
        tags=inputs.JOB_TAGS,
        workload=workload(),
        policies=policies(GRANTS, account=PROJECT, region="eu-north1", group=GROUP),
        permissions_boundary=None,
        kms_key_arn=None,
        templates=(template(), plain_template()),
        head_address=None,
        agent_url=None,
        agent_sha256=None,
        snippets=snippets(GRANTS, group=GROUP, tenant=TENANT),
    )
    return replace(made, **changes)


def compute(**changes: Any) -> ComputeInput:
    """Two spot nodes in generation 3."""
    made = ComputeInput(
        **BASE,
        name="cmp-llama3-8b-sft-g3",
        tags=(*inputs.JOB_TAGS, ("skyplan:generation", "3")),
        job="llama3-8b-sft",
        generation=3,
        plan_id="p0123456789",
        zone="",
        instance_type=INFINIBAND,
        capacity=CapacityType.SPOT,
        reservation="",
        nodes=2,
        template_key=f"{INFINIBAND}/",
        cluster=True,
        addresses=ADDRESSES,
        node=template(),
        workload=workload(),
    )
    return replace(made, **changes)


def single(**changes: Any) -> ComputeInput:
    """One on-demand node."""
    made = compute(
        instance_type=SINGLE,
        capacity=CapacityType.ON_DEMAND,
        nodes=1,
        template_key=f"{SINGLE}/",
        cluster=False,
        addresses=(),
        node=plain_template(),
        workload=alone(),
    )
    return replace(made, **changes)


def everything() -> tuple[NetworkInput, AccessInput, ComputeInput]:
    """One of each."""
    return network(), access(), compute()
