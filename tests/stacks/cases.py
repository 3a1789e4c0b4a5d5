"""One job on every cloud, bought and joined in every way that the cloud has: the inputs of the contract, the mutants and the golden jobs.

Rights are what `planner.iam` makes of the job's grants, so that the contract is held against what is really written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from types import ModuleType
from typing import Any

from planner.iam import aws, azure, gcp, nebius
from planner.iam.grants import grants_for
from planner.iam.paths import data_paths
from planner.model.offer import CapacityType, Cloud, Fabric
from planner.model.project import OwnNetwork, Project, Target
from planner.model.stack import AccessInput, ComputeInput, NetworkInput, NodeTemplate, PolicyDocument, StackInput
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
from tests.stacks import azure_inputs, gcp_inputs, inputs, nebius_inputs

Document = dict[str, Any]
ON_DEMAND, SPOT, RESERVED = CapacityType.ON_DEMAND, CapacityType.SPOT, CapacityType.RESERVED
JOB = "llama3-8b-sft"
MODULES: dict[Cloud, ModuleType] = {
    Cloud.AWS: inputs,
    Cloud.GCP: gcp_inputs,
    Cloud.AZURE: azure_inputs,
    Cloud.NEBIUS: nebius_inputs,
}
ACCOUNTS = {
    Cloud.AWS: "123456789012",
    Cloud.GCP: gcp_inputs.ACCOUNT,
    Cloud.AZURE: azure_inputs.ACCOUNT,
    Cloud.NEBIUS: nebius_inputs.PROJECT,
}
#: cloud -> store, bucket of data, bucket of checkpoints, store of secrets, name of a secret
PLACES = {
    Cloud.AWS: (Store.S3, "acme-corpus", "acme-ckpt", "aws-secretsmanager", "acme/hf"),
    Cloud.GCP: (Store.GCS, "acme-corpus", "acme-ckpt", "gcp-secretmanager", "hf-token"),
    Cloud.AZURE: (Store.AZURE_BLOB, "acmedata/corpus", "acmeckpt/runs", "azure-keyvault", "acme-vault/hf-token"),
    Cloud.NEBIUS: (Store.NEBIUS, "acme-corpus", "acme-ckpt", "nebius-mysterybox", "mbsec-e00acme/hf"),
}
KEYS = {
    Cloud.AWS: "arn:aws:kms:us-east-1:123456789012:key/0f1e2d3c-0000-4000-8000-000000000000",
    Cloud.GCP: "projects/acme-keys/locations/us-central1/keyRings/r/cryptoKeys/disks",
    Cloud.AZURE: f"/subscriptions/{ACCOUNTS[Cloud.AZURE]}/resourceGroups/k/providers/Microsoft.Compute/diskEncryptionSets/d",
}
RESERVATIONS = {
    Cloud.AWS: "cr-0123456789abcdef0",
    Cloud.GCP: "acme-h100",
    Cloud.AZURE: azure_inputs.RESERVATION,
    Cloud.NEBIUS: "capacityblockgroup-e00acme",
}
#: tags that a job file may hold and no cloud takes as they are: Terraform's own signs, other scripts, two keys that differ in case, the longest
AWKWARD = (
    ("cost/center", "R&D <42%>"),
    ("Owner", "Zoë ${user} %{if}"),
    ("owner", "second"),
    ("e-mail @night", "x" * 256),
)
#: without: people have no way into a node there that opens no port
WITH_SESSION = (Cloud.AWS, Cloud.GCP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One placement and its three stacks."""

    name: str
    network: NetworkInput
    access: AccessInput
    compute: ComputeInput

    @property
    def cloud(self) -> Cloud:
        return self.network.cloud

    @property
    def template(self) -> NodeTemplate:
        """What the nodes of this placement are."""
        return next(t for t in self.access.templates if t.key == self.compute.template_key)

    @property
    def workload(self) -> Workload:
        return self.access.workload

    @property
    def inputs(self) -> tuple[StackInput, ...]:
        return (self.network, self.access, self.compute)

    def __str__(self) -> str:
        return f"{self.cloud.value}-{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A case and its Terraform JSON."""

    case: Case
    net: Document
    acc: Document
    cmp: Document

    @property
    def documents(self) -> dict[str, Document]:
        return {"net": self.net, "acc": self.acc, "cmp": self.cmp}


def workload(cloud: Cloud, template: NodeTemplate, **changes: Any) -> Workload:
    """The job with data, checkpoints and a secret in that cloud."""
    store, data, checkpoints, secrets, secret = PLACES[cloud]
    gpu = GpuOption(count=template.gpu_count, model="H100")
    made = Workload(
        name=JOB,
        resources=Resources(accelerators=(gpu,), nodes=template.nodes),
        work=Work(hours=24, model="H100", count=template.gpu_count, nodes=template.nodes),
        run='torchrun train.py --epochs "${EPOCHS}"',
        image=Image(ref="ghcr.io/acme/train:1.4", digest="sha256:" + "a" * 64),
        env=(("EPOCHS", "3"),),
        secrets=(SecretRef(env="HF_TOKEN", store=secrets, path=secret),),
        data=(Dataset(at=ObjectPrefix(store=store, bucket=data, prefix="llama/"), size_bytes=500 * 10**9, reads=3),),
        checkpoint=CheckpointPolicy(
            at=ObjectPrefix(store=store, bucket=checkpoints, prefix="runs/llama/"),
            size_bytes=96 * 10**9,
            every_hours=0.5,
        ),
        session=template.session,
    )
    return replace(made, **changes)


def rights(
    job: Workload, cloud: Cloud, region: str, key: str | None
) -> tuple[tuple[PolicyDocument, ...], tuple[str, ...]]:
    """Policies and snippets as the planner writes them."""
    account = ACCOUNTS[cloud]
    target = Target(name="prod", cloud=cloud, account=account, tenant=nebius_inputs.TENANT)
    grants = grants_for(job, target, cloud)
    match cloud:
        case Cloud.AWS:
            return aws.policies(grants, account=account, region=region, kms_key_arn=key), ()
        case Cloud.GCP:
            made = gcp.policies(grants, account=account, region=region)
            return made, gcp.snippets(grants, account=account, kms_key=key)
        case Cloud.AZURE:
            made = azure.policies(grants, account=account, region=region)
            return made, azure.snippets(grants, account=account, region=region)
        case Cloud.NEBIUS:
            group = nebius.group_name("acme", job.name, "prod", region)
            made = nebius.policies(grants, account=account, region=region, group=group)
            return made, nebius.snippets(grants, group=group, tenant=target.tenant)


def case(
    name: str,
    cloud: Cloud,
    template: NodeTemplate,
    capacity: CapacityType,
    *,
    own: OwnNetwork | None = None,
    key: str | None = None,
    tags: tuple[tuple[str, str], ...] = (),
    job: Workload | None = None,
    in_group: bool = False,
    capacity_block: bool = False,
) -> Case:
    """A placement of the job on nodes of one template."""
    net, acc, cmp = MODULES[cloud].everything()
    job = job or workload(cloud, template)
    policies, snippets = rights(job, cloud, net.region, key)
    target = Target(name="prod", cloud=cloud, account=ACCOUNTS[cloud])
    paths = data_paths(job, Project(), target, cloud)
    common: dict[str, Any] = {"workload": job, "data_paths": paths, "kms_key_arn": key}
    node = {} if cloud is Cloud.AWS else {**common, "node": template}
    return Case(
        name=name,
        network=replace(net, account=ACCOUNTS[cloud], own=own, tags=(*net.tags, *tags)),
        access=replace(
            acc,
            **common,
            account=ACCOUNTS[cloud],
            name=f"acc-{job.name}-{net.target}-{net.region}",
            tags=_named(acc.tags, job.name) + tags,
            policies=policies,
            snippets=snippets,
            templates=(template,),
            head_address=template.addresses[0] if template.addresses else None,
        ),
        compute=replace(
            cmp,
            account=ACCOUNTS[cloud],
            name=f"cmp-{job.name}-g3",
            job=job.name,
            tags=_named(cmp.tags, job.name) + tags,
            zone=template.zone,
            instance_type=template.instance_type,
            capacity=capacity,
            reservation=RESERVATIONS[cloud] if capacity is RESERVED else "",
            nodes=template.nodes,
            template_key=template.key,
            cluster=template.cluster,
            addresses=template.addresses,
            in_group=in_group,
            capacity_block=capacity_block,
            **node,
        ),
    )


def _named(tags: tuple[tuple[str, str], ...], job: str) -> tuple[tuple[str, str], ...]:
    return tuple((key, job if key == "skyplan:job" else value) for key, value in tags)


def single(cloud: Cloud, **changes: Any) -> NodeTemplate:
    """One node without a fabric."""
    match cloud:
        case Cloud.AWS:
            return inputs.plain_template(nodes=1, addresses=(), **changes)
        case Cloud.GCP:
            return gcp_inputs.single(**changes)
        case Cloud.AZURE:
            return azure_inputs.single(**changes)
        case Cloud.NEBIUS:
            return nebius_inputs.plain_template(**{"stop_after_hours": None, **changes})


def fabrics(cloud: Cloud) -> dict[Fabric, NodeTemplate]:
    """Two nodes on every fabric of the cloud."""
    match cloud:
        case Cloud.AWS:
            plain = inputs.plain_template(nodes=2, cluster=True)
            return {Fabric.EFA: inputs.efa_template(nodes=2), Fabric.ETHERNET: plain}
        case Cloud.GCP:
            return {fabric: gcp_inputs.template(fabric) for fabric in gcp_inputs.ON_FABRIC}
        case Cloud.AZURE:
            return {Fabric.INFINIBAND: azure_inputs.infiniband(), Fabric.ETHERNET: azure_inputs.ethernet()}
        case Cloud.NEBIUS:
            plain = nebius_inputs.template(fabric=Fabric.ETHERNET, fabric_name="", cluster=False)
            return {Fabric.INFINIBAND: nebius_inputs.template(), Fabric.ETHERNET: plain}


def own_network(cloud: Cloud) -> OwnNetwork:
    """A network that is there already."""
    net = MODULES[cloud].network()
    zones = tuple((zone, f"subnet-{number}") for number, (zone, _) in enumerate(net.zones, start=1))
    groups = ("sg-0123456789abcdef0",) if cloud in {Cloud.AWS, Cloud.NEBIUS} else ()
    return OwnNetwork(region=net.region, vpc_id="network-of-the-user", subnets=zones, security_group_ids=groups)


def cases(cloud: Cloud) -> Iterator[Case]:
    """Every case of the contract on one cloud."""
    one = single(cloud)
    for capacity in CapacityType:
        yield case(f"single-{capacity.value}", cloud, one, capacity)
    for fabric, template in fabrics(cloud).items():
        for capacity in CapacityType:
            yield case(f"{fabric.value}-{capacity.value}", cloud, template, capacity)
        yield case(f"{fabric.value}-in-group", cloud, template, RESERVED, in_group=True)
    yield case("own-network", cloud, one, ON_DEMAND, own=own_network(cloud))
    yield case("hard-end", cloud, single(cloud, stop_after_hours=1.5), SPOT)
    yield case("data-elsewhere", cloud, one, ON_DEMAND, job=elsewhere(cloud, one))
    yield case("awkward-tags", cloud, one, ON_DEMAND, tags=AWKWARD)
    if cloud in KEYS:
        yield case("own-key", cloud, one, ON_DEMAND, key=KEYS[cloud])
    if cloud in WITH_SESSION:
        yield case("session", cloud, single(cloud, session=True), ON_DEMAND)
    if cloud in {Cloud.AWS, Cloud.GCP}:
        yield case("capacity-block", cloud, one, RESERVED, capacity_block=True)


def elsewhere(cloud: Cloud, template: NodeTemplate) -> Workload:
    """The job with its data and its secret in another cloud; only its checkpoints are in this one."""
    there = Cloud.GCP if cloud is not Cloud.GCP else Cloud.AWS
    other = workload(there, template)
    return workload(cloud, template, data=other.data, secrets=other.secrets)


@cache
def every() -> tuple[Case, ...]:
    """All cases of all clouds."""
    return tuple(made for cloud in Cloud for made in cases(cloud))
