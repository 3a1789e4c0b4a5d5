"""Real-looking stack inputs: one job on EFA nodes and on a single-GPU spot node."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.model.offer import CapacityType, Cloud, Fabric
from planner.model.project import Backend
from planner.model.stack import AccessInput, ComputeInput, NetworkInput, NodeTemplate, PolicyDocument
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

TAGS = (("skyplan:project", "acme"), ("skyplan:managed", "true"), ("team", "llm"))
JOB_TAGS = (("skyplan:project", "acme"), ("skyplan:job", "llama3-8b-sft"), ("skyplan:managed", "true"), ("team", "llm"))
BASE: dict[str, Any] = {
    "project": "acme",
    "cloud": Cloud.AWS,
    "target": "prod",
    "region": "us-east-1",
    "account": None,
    "role_arn": None,
    "backend": Backend(),
    "provider_version": ">= 5.100, < 7",
}
ZONES = (("use1-az1", "10.7.0.0/20"), ("use1-az4", "10.7.16.0/20"))
POLICY = PolicyDocument(
    name="data",
    document={
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "ReadObjects1",
                "Effect": "Allow",
                "Action": ["s3:GetObject"],
                "Resource": ["arn:aws:s3:::acme-corpus/llama/*"],
                "Condition": {"StringEquals": {"aws:ResourceAccount": ["123456789012"]}},
            },
            {
                "Sid": "ListPrefix1",
                "Effect": "Allow",
                "Action": ["s3:ListBucket"],
                "Resource": ["arn:aws:s3:::acme-corpus"],
                "Condition": {"StringLike": {"s3:prefix": ["llama/", "llama/*"]}},
            },
        ],
    },
)


def workload(**changes: Any) -> Workload:
    """A job on `nodes` nodes with secrets, an environment, data and checkpoints."""
    made = Workload(
        name="llama3-8b-sft",
        resources=Resources(accelerators=(GpuOption(count=8, model="A100-40GB"),), nodes=2),
        work=Work(hours=24, model="A100-40GB", count=8, nodes=2),
        run="torchrun train.py --epochs $EPOCHS",
        setup="pip install -r requirements.txt",
        image=Image(ref="ghcr.io/acme/train:1.4", digest="sha256:" + "a" * 64),
        env=(("EPOCHS", "3"), ("GREETING", "it's $HOME")),
        secrets=(SecretRef(env="HF_TOKEN", store="aws-secretsmanager", path="acme/hf"),),
        registry_auth=SecretRef(env="REGISTRY", store="aws-secretsmanager", path="acme/ghcr"),
        data=(
            Dataset(
                at=ObjectPrefix(store=Store.S3, bucket="acme-corpus", prefix="llama/", region="us-east-1"),
                size_bytes=500 * 10**9,
                reads=3,
            ),
        ),
        checkpoint=CheckpointPolicy(
            at=ObjectPrefix(store=Store.S3, bucket="acme-ckpt", prefix="llama/", region="us-east-1"),
            size_bytes=96 * 10**9,
            every_hours=0.5,
        ),
    )
    return replace(made, **changes)


def network(**changes: Any) -> NetworkInput:
    """A network of two zones."""
    made = NetworkInput(
        **BASE, name="net-prod-us-east-1", tags=TAGS, cidr="10.7.0.0/16", nat_cidr="10.7.240.0/24", zones=ZONES
    )
    return replace(made, **changes)


def efa_template(**changes: Any) -> NodeTemplate:
    """p4d: four EFA interfaces, cluster placement."""
    made = NodeTemplate(
        key="p4d.24xlarge/use1-az4",
        instance_type="p4d.24xlarge",
        zone="use1-az4",
        gpu_count=8,
        nvme=True,
        fabric=Fabric.EFA,
        efa_interfaces=4,
        machine_image="/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id",
        disk_gb=200,
        cluster=True,
        addresses=("10.7.16.10", "10.7.16.11"),
    )
    return replace(made, **changes)


def plain_template(**changes: Any) -> NodeTemplate:
    """g5: one interface, no fabric."""
    made = efa_template(
        key="g5.xlarge/use1-az1",
        instance_type="g5.xlarge",
        zone="use1-az1",
        gpu_count=1,
        fabric=Fabric.ETHERNET,
        efa_interfaces=0,
        machine_image="ami-0123456789abcdef0",
        cluster=False,
        addresses=("10.7.0.10", "10.7.0.11"),
    )
    return replace(made, **changes)


def access(**changes: Any) -> AccessInput:
    """Two templates, one role."""
    made = AccessInput(
        **BASE,
        name="acc-llama3-8b-sft-prod-us-east-1",
        tags=JOB_TAGS,
        workload=workload(),
        policies=(POLICY,),
        permissions_boundary=None,
        kms_key_arn=None,
        templates=(efa_template(), plain_template()),
        head_address=None,
        agent_url=None,
        agent_sha256=None,
    )
    return replace(made, **changes)


def compute(**changes: Any) -> ComputeInput:
    """Two spot nodes in generation 3."""
    made = ComputeInput(
        **BASE,
        name="cmp-llama3-8b-sft-g3",
        tags=(*JOB_TAGS, ("skyplan:generation", "3")),
        job="llama3-8b-sft",
        generation=3,
        plan_id="p0123456789",
        zone="use1-az4",
        instance_type="p4d.24xlarge",
        capacity=CapacityType.SPOT,
        reservation="",
        nodes=2,
        template_key="p4d.24xlarge/use1-az4",
        cluster=True,
        addresses=("10.7.16.10", "10.7.16.11"),
    )
    return replace(made, **changes)


def everything() -> tuple[NetworkInput, AccessInput, ComputeInput]:
    """One of each."""
    return network(), access(), compute()
