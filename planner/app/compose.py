"""From a placement to the stacks it needs: the one place where grants, images, addresses and settings meet as frozen inputs.

Decides names, tags and digests of stacks.  Builds no construct (that is `stacks`) and runs nothing.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from planner.iam import aws, azure, gcp, nebius
from planner.iam.grants import grants_for
from planner.iam.paths import data_paths
from planner.model.digest import digest
from planner.model.offer import CapacityType, Cloud, Fabric, InstanceType, Region
from planner.model.plan import Placement, StackRef
from planner.model.stack import AccessInput, ComputeInput, NetworkInput, NodeTemplate, StackSet
from planner.placement.address import nat_cidr, region_cidr, zone_cidrs
from planner.placement.cost import disk_gb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.grants import Grant
    from planner.model.market import Market
    from planner.model.project import OwnNetwork, Project, Reservation, Target
    from planner.model.reach import DataPath
    from planner.model.stack import PolicyDocument
    from planner.model.workload import Workload

#: what is tested: the versions whose schemas are shipped; AWS is applied with 5.100.0 too (docs/decisions/0009)
DEFAULT_PROVIDER_VERSIONS = {
    Cloud.AWS: ">= 5.100.0, < 7.0.0",
    Cloud.GCP: ">= 6.50.0, < 7.0.0",
    Cloud.AZURE: ">= 4.55.0, < 5.0.0",
    Cloud.NEBIUS: ">= 0.6.32, < 0.7.0",
}


def instance_type(market: Market, placement: Placement) -> InstanceType:
    """The placement's instance type.  Raises StopIteration where the catalog has lost it."""
    return next(t for t in market.types if t.cloud.value == placement.cloud and t.name == placement.instance_type)


def region_of(market: Market, placement: Placement) -> Region:
    """The placement's region."""
    return market.regions[market.region_index[(placement.cloud, placement.region)]]


def target_of(project: Project, placement: Placement) -> Target:
    """The placement's target."""
    return next(t for t in project.targets if t.name == placement.target and t.cloud.value == placement.cloud)


def own_network(target: Target, region: str) -> OwnNetwork | None:
    """The user's own network in that region, if the target brings one."""
    return next((n for n in target.networks if n.region == region), None)


def placement_grants(workload: Workload, placement: Placement, project: Project) -> tuple[Grant, ...]:
    """What the nodes of this placement may do with data."""
    return grants_for(workload, target_of(project, placement), Cloud(placement.cloud), project)


def placement_paths(workload: Workload, placement: Placement, project: Project) -> tuple[DataPath, ...]:
    """How the nodes of this placement reach each store."""
    return data_paths(workload, project, target_of(project, placement), Cloud(placement.cloud))


def hard_end_hours(workload: Workload, usd_per_hour: float | None) -> float | None:
    """After how many hours the nodes end themselves, whatever the job does; None where neither a time nor a sum limits them.

    `usd_per_hour` of all nodes; None leaves the sum out, as in a placement's id, which holds no price.
    """
    limits = workload.constraints
    ends = [limits.stop_after_hours] if limits.stop_after_hours is not None else []
    if limits.max_usd_total is not None and usd_per_hour:
        ends.append(limits.max_usd_total / usd_per_hour)
    return round(min(ends), 2) if ends else None


def grants_digest(grants: Sequence[Grant]) -> str:
    """Digest of grants in order."""
    return digest([g.document() for g in grants])


def _base(kind: str, name: str, workload: Workload | None, placement: Placement, project: Project) -> dict[str, Any]:
    target, cloud = target_of(project, placement), Cloud(placement.cloud)
    tags = {"skyplan:project": project.name}
    if workload is not None:
        tags["skyplan:job"] = workload.name
    tags["skyplan:managed"] = "true"
    theirs = dict(project.tags) | (dict(workload.tags) if workload is not None else {})
    role = target.orchestrator_role if kind == "compute" else target.deployer_role
    return {
        "name": name,
        "project": project.name,
        "cloud": cloud,
        "target": target.name,
        "region": placement.region,
        "account": target.account,
        "role_arn": role,
        "backend": project.backend,
        "provider_version": dict(project.provider_versions).get(cloud.value, DEFAULT_PROVIDER_VERSIONS.get(cloud, "")),
        "tags": (*tags.items(), *((k, v) for k, v in sorted(theirs.items()) if k not in tags)),
        "resource_group": target.resource_group,
        "tenant": target.tenant,
    }


def network_name(placement: Placement) -> str:
    """`net-TARGET-REGION`."""
    return f"net-{placement.target}-{placement.region}"


def access_name(job: str, placement: Placement) -> str:
    """`acc-NAME-TARGET-REGION`."""
    return f"acc-{job}-{placement.target}-{placement.region}"


def compute_name(job: str, generation: int | str) -> str:
    """`cmp-NAME-gN`."""
    return f"cmp-{job}-g{generation}"


def _network(placement: Placement, project: Project, market: Market) -> NetworkInput:
    region = region_of(market, placement)
    return NetworkInput(
        **_base("network", network_name(placement), None, placement, project),
        cidr=region_cidr(region),
        nat_cidr=nat_cidr(region),
        zones=zone_cidrs(region),
        own=own_network(target_of(project, placement), placement.region),
    )


def _template(
    workload: Workload, placement: Placement, project: Project, market: Market, *, priced: bool
) -> NodeTemplate:
    t = instance_type(market, placement)
    cloud = Cloud(placement.cloud)
    many = workload.resources.nodes > 1 and not workload_tunnels(placement)
    fabric = t.fabric if many and placement.nodes > 1 else Fabric.ETHERNET
    return NodeTemplate(
        key=template_key(placement),
        instance_type=t.name,
        zone=placement.zone,
        gpu_count=t.gpu_count,
        nvme=bool(t.nvme_gb),
        fabric=fabric,
        efa_interfaces=t.efa_interfaces if fabric is Fabric.EFA else 0,
        machine_image=import_module(f"modules.{cloud.value}.images").machine_image(
            t, placement.region, project.images
        ),
        disk_gb=disk_gb(workload, market),
        cluster=placement.nodes > 1 and t.placement,
        addresses=placement.addresses,
        nodes=placement.nodes,
        fabric_name=_fabric_name(cloud, t.name, placement.region) if fabric is Fabric.INFINIBAND else "",
        stop_after_hours=hard_end_hours(workload, float(placement.usd_per_hour) if priced else None),
        session=workload.session,
        first_rank=placement.first_rank,
    )


def workload_tunnels(placement: Placement) -> bool:
    """Whether this is a part of a job that lies in several clouds."""
    return bool(placement.tunnel_addresses)


def _fabric_name(cloud: Cloud, instance_type: str, region: str) -> str:
    """Nebius: which InfiniBand fabric the region has for the platform; "" elsewhere, and where none is known."""
    if cloud is not Cloud.NEBIUS:
        return ""
    platform = instance_type.split("_", 1)[0]
    return import_module("modules.nebius.fabrics").fabric_name(platform, region) or ""


def template_key(placement: Placement) -> str:
    """`INSTANCE_TYPE/ZONE`."""
    return f"{placement.instance_type}/{placement.zone}"


def _policies(
    workload: Workload, placement: Placement, project: Project
) -> tuple[tuple[PolicyDocument, ...], tuple[str, ...]]:
    """What the nodes may do in the cloud's own shape, and what owners of stores have to allow themselves."""
    target, region = target_of(project, placement), placement.region
    account, grants = target.account, placement_grants(workload, placement, project)
    match Cloud(placement.cloud):
        case Cloud.AWS:
            return aws.policies(grants, account=account, region=region, kms_key_arn=target.kms_key_arn), ()
        case Cloud.GCP:
            return (
                gcp.policies(grants, account=account, region=region),
                gcp.snippets(grants, account=account, kms_key=target.kms_key_arn),
            )
        case Cloud.AZURE:
            return (
                azure.policies(grants, account=account, region=region),
                azure.snippets(grants, account=account, region=region),
            )
        case Cloud.NEBIUS:
            group = nebius.group_name(project.name, workload.name, target.name, region)
            return (
                nebius.policies(grants, account=account, region=region, group=group),
                nebius.snippets(grants, group=group, tenant=target.tenant),
            )


def _access(
    workload: Workload,
    placement: Placement,
    siblings: Sequence[Placement],
    project: Project,
    market: Market,
    *,
    priced: bool = True,
) -> AccessInput:
    """`siblings`: placements of the ranked set in the same target and region, whose templates stand ready for failing over."""
    target = target_of(project, placement)
    templates = {
        template_key(p): _template(workload, p, project, market, priced=priced) for p in (*siblings, placement)
    }
    documents, snippets = _policies(workload, placement, project)
    return AccessInput(
        **_base("access", access_name(workload.name, placement), workload, placement, project),
        workload=workload,
        policies=documents,
        permissions_boundary=target.permissions_boundary,
        kms_key_arn=target.kms_key_arn,
        templates=tuple(templates[key] for key in sorted(templates)),
        head_address=placement.addresses[0] if placement.addresses else None,
        agent_url=project.agent_url,
        agent_sha256=project.agent_sha256,
        data_paths=placement_paths(workload, placement, project),
        snippets=snippets,
    )


def reservation_of(project: Project, placement: Placement) -> Reservation | None:
    """The reservation that a placement uses."""
    return next((r for r in project.reserved if r.id == placement.reservation and r.target == placement.target), None)


def _compute(
    workload: Workload,
    placement: Placement,
    project: Project,
    market: Market,
    generation: int,
    *,
    priced: bool = True,
) -> ComputeInput:
    base = _base("compute", compute_name(workload.name, generation), workload, placement, project)
    base["tags"] = (*base["tags"][:3], ("skyplan:generation", str(generation)), *base["tags"][3:])
    reserved = reservation_of(project, placement)
    # AWS has launch templates; elsewhere the node itself says what it boots
    whole = Cloud(placement.cloud) is not Cloud.AWS
    return ComputeInput(
        **base,
        job=workload.name,
        generation=generation,
        plan_id=placement.placement_id,
        zone=placement.zone,
        instance_type=placement.instance_type,
        capacity=CapacityType(placement.capacity),
        reservation=placement.reservation,
        nodes=placement.nodes,
        template_key=template_key(placement),
        cluster=placement.nodes > 1 and instance_type(market, placement).placement,
        addresses=placement.addresses,
        first_rank=placement.first_rank,
        node=_template(workload, placement, project, market, priced=priced) if whole else None,
        workload=workload if whole else None,
        data_paths=placement_paths(workload, placement, project) if whole else (),
        kms_key_arn=target_of(project, placement).kms_key_arn if whole else None,
        in_group=reserved is not None and reserved.in_group,
        capacity_block=reserved is not None and reserved.capacity_block,
    )


def stack_inputs(
    ranked: Sequence[Placement],
    placement: Placement,
    workload: Workload,
    project: Project,
    market: Market,
    *,
    generation: int | None,
) -> StackSet:
    """The three inputs of one ranked placement.  `generation` None leaves it open (0), as in a plan's digests."""
    siblings = [
        p for p in ranked if (p.cloud, p.target, p.region) == (placement.cloud, placement.target, placement.region)
    ]
    return StackSet(
        network=_network(placement, project, market),
        access=_access(workload, placement, siblings, project, market),
        compute=_compute(workload, placement, project, market, generation or 0),
    )


def placement_id(workload: Workload, placement: Placement, project: Project, market: Market) -> str:
    """`p` + 10 hex: what this placement's stacks are made of; no price, score, runner-up, date, generation or version of skyplan."""
    bare = replace(placement, placement_id="", rank=0)
    parts = [
        asdict(_network(bare, project, market)),
        asdict(_access(workload, bare, (), project, market, priced=False)),
        asdict(_compute(workload, bare, project, market, 0, priced=False)),
    ]
    return "p" + digest(parts).removeprefix("sha256:")[:10]


def stack_refs(stacks: StackSet) -> tuple[StackRef, ...]:
    """Names and digests for the plan, with the generation left open."""
    open_name = compute_name(stacks.compute.job, "N")
    return (
        StackRef(kind="network", name=stacks.network.name, digest=digest(asdict(stacks.network))),
        StackRef(kind="access", name=stacks.access.name, digest=digest(asdict(stacks.access))),
        StackRef(kind="compute", name=open_name, digest=digest(asdict(replace(stacks.compute, name=open_name)))),
    )
