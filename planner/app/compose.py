"""From a placement to the stacks it needs: the one place where grants, images, addresses and settings meet as frozen inputs.

Decides names, tags and digests of stacks.  Builds no construct (that is `stacks`) and runs nothing.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from planner.iam.aws import policies
from planner.iam.grants import grants_for
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
    from planner.model.project import OwnNetwork, Project, Target
    from planner.model.workload import Workload

DEFAULT_PROVIDER_VERSIONS = {
    # what is tested: applied with 5.100.0, checked against the schema of 6.25.0 (docs/decisions/0009)
    Cloud.AWS: ">= 5.100.0, < 7.0.0",
}
CLOUDS_WITH_STACKS = frozenset(DEFAULT_PROVIDER_VERSIONS)


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
    return grants_for(workload, target_of(project, placement), Cloud(placement.cloud))


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


def _template(workload: Workload, placement: Placement, project: Project, market: Market) -> NodeTemplate:
    from modules.aws.images import machine_image  # noqa: PLC0415 - only where stacks are made

    t = instance_type(market, placement)
    many = placement.nodes > 1
    return NodeTemplate(
        key=template_key(placement),
        instance_type=t.name,
        zone=placement.zone,
        gpu_count=t.gpu_count,
        nvme=bool(t.nvme_gb),
        fabric=t.fabric if many else Fabric.ETHERNET,
        efa_interfaces=t.efa_interfaces if many else 0,
        machine_image=machine_image(t, placement.region, project.images),
        disk_gb=disk_gb(workload, market),
        cluster=many and t.placement,
        addresses=placement.addresses,
    )


def template_key(placement: Placement) -> str:
    """`INSTANCE_TYPE/ZONE`."""
    return f"{placement.instance_type}/{placement.zone}"


def _access(
    workload: Workload, placement: Placement, siblings: Sequence[Placement], project: Project, market: Market
) -> AccessInput:
    """`siblings`: placements of the ranked set in the same target and region, whose launch templates stand ready for failing over."""
    target = target_of(project, placement)
    templates = {template_key(p): _template(workload, p, project, market) for p in (*siblings, placement)}
    grants = placement_grants(workload, placement, project)
    return AccessInput(
        **_base("access", access_name(workload.name, placement), workload, placement, project),
        workload=workload,
        policies=policies(grants, account=target.account, region=placement.region, kms_key_arn=target.kms_key_arn),
        permissions_boundary=target.permissions_boundary,
        kms_key_arn=target.kms_key_arn,
        templates=tuple(templates[key] for key in sorted(templates)),
        head_address=placement.addresses[0] if placement.addresses else None,
        agent_url=project.agent_url,
        agent_sha256=project.agent_sha256,
    )


def _compute(
    workload: Workload, placement: Placement, project: Project, market: Market, generation: int
) -> ComputeInput:
    base = _base("compute", compute_name(workload.name, generation), workload, placement, project)
    base["tags"] = (*base["tags"][:3], ("skyplan:generation", str(generation)), *base["tags"][3:])
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
    if Cloud(placement.cloud) in CLOUDS_WITH_STACKS:
        bare = replace(placement, placement_id="", rank=0)
        parts = [
            asdict(_network(bare, project, market)),
            asdict(_access(workload, bare, (), project, market)),
            asdict(_compute(workload, bare, project, market, 0)),
        ]
    else:
        keep = ("target", "cloud", "region", "zone", "instance_type", "capacity", "nodes", "addresses", "reservation")
        parts = [{k: getattr(placement, k) for k in keep}, asdict(workload), project.name, dict(project.tags)]
    return "p" + digest(parts).removeprefix("sha256:")[:10]


def stack_refs(stacks: StackSet) -> tuple[StackRef, ...]:
    """Names and digests for the plan, with the generation left open."""
    open_name = compute_name(stacks.compute.job, "N")
    return (
        StackRef(kind="network", name=stacks.network.name, digest=digest(asdict(stacks.network))),
        StackRef(kind="access", name=stacks.access.name, digest=digest(asdict(stacks.access))),
        StackRef(kind="compute", name=open_name, digest=digest(asdict(replace(stacks.compute, name=open_name)))),
    )
