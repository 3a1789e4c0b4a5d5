"""From a placement to the stacks it needs: the one place where rights, images, addresses and settings meet as frozen inputs.

Decides names, tags and ids of stacks.  Builds no construct (that is `stacks`) and runs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from planner.app.lookup import (
    DEFAULT_PROVIDER_VERSIONS,
    instance_type,
    own_network,
    region_of,
    reservation_of,
    target_of,
)
from planner.app.rights import JobRights
from planner.model.digest import digest_bytes
from planner.model.offer import CapacityType, Cloud, Fabric
from planner.model.plan import Placement, StackRef
from planner.model.set_text import SetText
from planner.model.stack import (
    AccessInput,
    AddressInput,
    ComputeInput,
    NetworkInput,
    NodeAgent,
    NodeTemplate,
    StackSet,
    Tunnel,
    rank_key,
)
from planner.placement.address import nat_cidr, region_cidr, zone_cidrs
from planner.placement.cost import disk_gb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.market import Market
    from planner.model.project import Project
    from planner.model.workload import Workload

#: WireGuard over the smallest network on the way: Google's default of 1,460 bytes less WireGuard's 80
TUNNEL_MTU = 1380


def hard_end_hours(workload: Workload, usd_per_hour: float | None) -> float | None:
    """After how many hours the nodes end themselves, whatever the job does; None where neither a time nor a sum limits them.

    `usd_per_hour` of all nodes; None leaves the sum out, as in a placement's id, which holds no price.
    """
    limits = workload.constraints
    ends = [limits.stop_after_hours] if limits.stop_after_hours is not None else []
    if limits.max_usd_total is not None and usd_per_hour:
        ends.append(limits.max_usd_total / usd_per_hour)
    return round(min(ends), 2) if ends else None


def _base(kind: str, name: str, workload: Workload | None, placement: Placement, project: Project) -> dict[str, Any]:
    target, cloud = target_of(project, placement), Cloud(placement.cloud)
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
        "tags": _tags(workload, project),
        "resource_group": target.resource_group,
        "tenant": target.tenant,
    }


def _tags(workload: Workload | None, project: Project) -> tuple[tuple[str, str], ...]:
    tags = {"skyplan:project": project.name}
    if workload is not None:
        tags["skyplan:job"] = workload.name
    tags["skyplan:managed"] = "true"
    theirs = dict(project.tags) | (dict(workload.tags) if workload is not None else {})
    return (*tags.items(), *((k, v) for k, v in sorted(theirs.items()) if k not in tags))


class Place(Protocol):
    """Where nodes stand: a placement, or a part of a run."""

    @property
    def cloud(self) -> str: ...  # noqa: D102 - the names say it
    @property
    def target(self) -> str: ...  # noqa: D102
    @property
    def region(self) -> str: ...  # noqa: D102


def place_name(placement: Place) -> str:
    """`CLOUD-TARGET-REGION`: targets of two clouds may share a name, and Google and Nebius share names of regions."""
    return f"{placement.cloud}-{placement.target}-{placement.region}"


def network_name(placement: Place) -> str:
    """`net-CLOUD-TARGET-REGION`."""
    return f"net-{place_name(placement)}"


def access_name(job: str, placement: Place) -> str:
    """`acc-NAME--CLOUD-TARGET-REGION`.  No job has `--` in its name, so that `a` on target `aws-b` and `a-aws` on `b` stay apart."""
    return f"acc-{job}--{place_name(placement)}"


def compute_name(job: str, generation: int | str, part: str = "") -> str:
    """`cmp-NAME-gN`; of a job in several clouds `cmp-NAME-gN-CLOUD`."""
    return f"cmp-{job}-g{generation}" + (f"-{part}" if part else "")


class Networks:
    """The networks that stacks of many jobs share, by cloud, target and region, each with its text."""

    def __init__(self, project: Project, market: Market) -> None:
        self._project, self._market = project, market
        self._known: dict[tuple[str, str, str], tuple[NetworkInput, str]] = {}

    def at(self, placement: Placement) -> tuple[NetworkInput, str]:
        """The input, and what a digest is made of."""
        key = (placement.cloud, placement.target, placement.region)
        if key not in self._known:
            made = _network(placement, self._project, self._market)
            self._known[key] = made, SetText().text(made)
        return self._known[key]


class Drawn:
    """What the stacks of one job's placements share: worked out, and written for digests, once.

    workload  as stacks know it: of whom its nodes are kept apart, and whose budget it is, nothing is made
    """

    def __init__(self, workload: Workload, project: Project, market: Market, networks: Networks | None = None) -> None:
        self.workload = replace(workload, team="", anti_affinity=(), gang=None)
        self.project, self.market = project, market
        self.rights = JobRights(self.workload, project)
        self.networks = networks or Networks(project, market)
        self.texts = SetText()
        self._bases: dict[tuple[str, str, int, str, str, str], dict[str, Any]] = {}

    def base(self, kind: str, name: str, placement: Placement, generation: int = 0) -> dict[str, Any]:
        """What every stack has, of a stack of this job; `generation` of a compute stack."""
        key = (kind, name, generation, placement.cloud, placement.target, placement.region)
        if key not in self._bases:
            made = _base(kind, name, self.workload, placement, self.project)
            if kind == "compute":
                made["tags"] = (*made["tags"][:3], ("skyplan:generation", str(generation)), *made["tags"][3:])
            self._bases[key] = made
        return self._bases[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    """What all stacks of one placement share.

    usd_per_hour  of all nodes; None leaves prices out, as a placement's id does
    endpoints     reserved public addresses by rank key, once a tunnel has them
    """

    drawn: Drawn
    usd_per_hour: float | None = None
    endpoints: Mapping[str, str] = field(default_factory=dict[str, str])
    templates: dict[int, tuple[Placement, NodeTemplate]] = field(
        default_factory=dict[int, "tuple[Placement, NodeTemplate]"]
    )

    def template(self, placement: Placement) -> NodeTemplate:
        """What the placement's nodes are: of clouds without launch templates both its stacks say it."""
        known = self.templates.get(id(placement))
        if known is None:
            known = self.templates[id(placement)] = placement, _template(placement, self)
        return known[1]

    @property
    def workload(self) -> Workload:
        """The job, as stacks know it."""
        return self.drawn.workload

    @property
    def project(self) -> Project:
        """Whose settings hold."""
        return self.drawn.project

    @property
    def market(self) -> Market:
        """Types and regions."""
        return self.drawn.market


def _network(placement: Placement, project: Project, market: Market) -> NetworkInput:
    region = region_of(market, placement)
    return NetworkInput(
        **_base("network", network_name(placement), None, placement, project),
        cidr=region_cidr(region),
        nat_cidr=nat_cidr(region),
        zones=zone_cidrs(region),
        own=own_network(target_of(project, placement), placement.region),
    )


def _template(placement: Placement, setting: _Setting) -> NodeTemplate:
    workload, market = setting.workload, setting.market
    t = instance_type(market, placement)
    cloud = Cloud(placement.cloud)
    tunnel = _tunnel(placement, setting)
    # through a tunnel everything is TCP, between the nodes of one part too: one network for all ranks
    fabric = t.fabric if placement.nodes > 1 and tunnel is None else Fabric.ETHERNET
    return NodeTemplate(
        key=template_key(placement),
        instance_type=t.name,
        zone=placement.zone,
        gpu_count=t.gpu_count,
        nvme=bool(t.nvme_gb),
        fabric=fabric,
        efa_interfaces=t.efa_interfaces if fabric is Fabric.EFA else 0,
        machine_image=_images(cloud).machine_image(t, placement.region, setting.project.images),
        disk_gb=disk_gb(workload, market),
        cluster=placement.nodes > 1 and t.placement,
        addresses=placement.addresses,
        nodes=placement.nodes,
        fabric_name=_fabric_name(cloud, t.name, placement.region) if fabric is Fabric.INFINIBAND else "",
        stop_after_hours=hard_end_hours(workload, setting.usd_per_hour),
        session=workload.session,
        tunnel=tunnel,
        first_rank=placement.first_rank,
    )


def _tunnel(placement: Placement, setting: _Setting) -> Tunnel | None:
    """Of a part of a job that lies in several clouds."""
    if not placement.tunnel_addresses:
        return None
    project = setting.project
    meeting = project.rendezvous
    return Tunnel(
        members=tuple((rank_key(rank), address) for rank, address in enumerate(placement.tunnel_addresses)),
        mtu=TUNNEL_MTU,
        url=meeting.url if meeting else "",
        secret=meeting.secret(placement.cloud) if meeting else None,
        agent_url=project.agent_url or "",
        agent_sha256=project.agent_sha256 or "",
        endpoints=tuple(sorted(setting.endpoints.items())),
    )


@cache
def _images(cloud: Cloud) -> Any:
    """The module that knows a cloud's machine images."""
    return import_module(f"modules.{cloud.value}.images")


def _fabric_name(cloud: Cloud, instance_type: str, region: str) -> str:
    """Nebius: which InfiniBand fabric the region has for the platform; "" elsewhere, and where none is known."""
    if cloud is not Cloud.NEBIUS:
        return ""
    platform = instance_type.split("_", 1)[0]
    return import_module("modules.nebius.fabrics").fabric_name(platform, region) or ""


def template_key(placement: Placement) -> str:
    """`INSTANCE_TYPE/ZONE`."""
    return f"{placement.instance_type}/{placement.zone}"


def _access(placement: Placement, siblings: Sequence[Placement], setting: _Setting) -> AccessInput:
    """`siblings`: placements of the ranked set in the same target and region, whose templates stand ready for failing over."""
    workload, project = setting.workload, setting.project
    target = target_of(project, placement)
    templates = {template_key(p): _template(p, replace(setting, usd_per_hour=float(p.usd_per_hour))) for p in siblings}
    templates[template_key(placement)] = setting.template(placement)
    documents, snippets = setting.drawn.rights.policies(placement)
    # the orchestrator's policy asks for the tag, the caller's own credentials do not
    tagged = (*siblings, placement) if Cloud(placement.cloud) is Cloud.AWS and target.orchestrator_role else ()
    spot = {template_key(p) for p in tagged if p.capacity == CapacityType.SPOT.value}
    return AccessInput(
        **setting.drawn.base("access", access_name(workload.name, placement), placement),
        workload=workload,
        policies=documents,
        permissions_boundary=target.permissions_boundary,
        kms_key_arn=target.kms_key_arn,
        templates=tuple(templates[key] for key in sorted(templates)),
        head_address=placement.addresses[0] if placement.addresses else None,
        agent_url=project.agent_url,
        agent_sha256=project.agent_sha256,
        data_paths=setting.drawn.rights.paths(placement),
        snippets=snippets,
        orchestrator=target.orchestrator_role,
        spot_templates=tuple(sorted(spot)),
        data_identities=setting.drawn.rights.minted(placement),
        agent=_agent(project, Cloud.AWS) if Cloud(placement.cloud) is Cloud.AWS else None,
    )


def _agent(project: Project, cloud: Cloud) -> NodeAgent | None:
    """Under which jobs run, where skyplan.yaml says where it is fetched and whom it speaks to."""
    control = project.control_plane
    if control is None or not (project.agent_url and project.agent_sha256):
        return None
    return NodeAgent(
        url=project.agent_url,
        sha256=project.agent_sha256,
        control_url=control.url,
        ca_file=control.ca_file,
        broker_url=control.broker,
        audience=control.azure_audience if cloud is Cloud.AZURE else None,
        broker_audience=control.azure_broker_audience if cloud is Cloud.AZURE else None,
    )


def _compute(placement: Placement, generation: int, setting: _Setting, *, plan_id: str) -> ComputeInput:
    workload, project, market = setting.workload, setting.project, setting.market
    part = placement.cloud if placement.tunnel_addresses else ""
    base = setting.drawn.base("compute", compute_name(workload.name, generation, part), placement, generation)
    reserved = reservation_of(project, placement)
    # AWS has launch templates; elsewhere the node itself says what it boots
    whole = Cloud(placement.cloud) is not Cloud.AWS
    return ComputeInput(
        **base,
        job=workload.name,
        generation=generation,
        plan_id=plan_id,
        zone=placement.zone,
        instance_type=placement.instance_type,
        capacity=CapacityType(placement.capacity),
        reservation=placement.reservation,
        nodes=placement.nodes,
        template_key=template_key(placement),
        cluster=placement.nodes > 1 and instance_type(market, placement).placement,
        addresses=placement.addresses,
        first_rank=placement.first_rank,
        tunnel=bool(placement.tunnel_addresses),
        node=setting.template(placement) if whole else None,
        workload=workload if whole else None,
        data_paths=setting.drawn.rights.paths(placement) if whole else (),
        kms_key_arn=target_of(project, placement).kms_key_arn if whole else None,
        in_group=reserved is not None and reserved.in_group,
        capacity_block=reserved is not None and reserved.capacity_block,
        agent=_agent(project, Cloud(placement.cloud)) if whole else None,
    )


def _endpoints(placement: Placement, setting: _Setting) -> AddressInput | None:
    """Of a part of a tunnelled job: what is reserved for its nodes."""
    if not placement.tunnel_addresses:
        return None
    workload = setting.workload
    name = f"adr-{workload.name}--{place_name(placement)}"
    return AddressInput(
        **setting.drawn.base("addresses", name, placement),
        job=workload.name,
        zone=placement.zone,
        ranks=ranks_of(placement),
    )


def ranks_of(placement: Placement) -> tuple[str, ...]:
    """The rank keys of a placement's or a part's nodes."""
    return tuple(rank_key(placement.first_rank + i) for i in range(placement.nodes))


def stack_sets(
    ranked: Sequence[Placement],
    placement: Placement,
    workload: Workload,
    project: Project,
    market: Market,
    *,
    generation: int | None,
    endpoints: Mapping[str, str] | None = None,
    drawn: Drawn | None = None,
) -> tuple[StackSet, ...]:
    """The inputs of one ranked placement, a set per part.  `generation` None leaves it open (0), as in a plan's digests.

    `drawn`: of the same job, project and market, where several placements are asked for.
    """
    drawn = drawn or Drawn(workload, project, market)
    setting = _Setting(drawn=drawn, usd_per_hour=float(placement.usd_per_hour), endpoints=endpoints or {})
    return tuple(
        StackSet(
            network=drawn.networks.at(piece)[0],
            access=_access(piece, _siblings(ranked, placement, piece), setting),
            compute=_compute(piece, generation or 0, setting, plan_id=placement.placement_id),
            addresses=_endpoints(piece, setting),
        )
        for piece in placement.pieces
    )


def _siblings(ranked: Sequence[Placement], placement: Placement, piece: Placement) -> list[Placement]:
    """What the same access stack holds ready: a part of a split job shares it with nothing."""
    if placement.parts:
        return []
    place = (piece.cloud, piece.target, piece.region)
    return [p for p in ranked if not p.parts and (p.cloud, p.target, p.region) == place]


def placement_id(
    workload: Workload, placement: Placement, project: Project, market: Market, drawn: Drawn | None = None
) -> str:
    """`p` + 10 hex: what this placement's stacks are made of; no price, score, runner-up, date, generation or version of skyplan.

    `drawn` as for `stack_sets`.
    """
    drawn = drawn or Drawn(workload, project, market)
    setting = _Setting(drawn=drawn)
    parts: list[str] = []
    for piece in placement.pieces:
        parts += [
            drawn.networks.at(piece)[1],
            drawn.texts.text(_access(piece, (), setting)),
            drawn.texts.text(_compute(piece, 0, setting, plan_id="")),
        ]
    return "p" + digest_bytes(f"[{','.join(parts)}]".encode()).removeprefix("sha256:")[:10]


def stack_refs(sets: Sequence[StackSet], drawn: Drawn | None = None) -> tuple[StackRef, ...]:
    """Names and digests for the plan, with the generation left open.  `drawn` as for `stack_sets`."""
    texts = drawn.texts if drawn else SetText()
    found: list[StackRef] = []

    def add(kind: str, name: str, made: object) -> None:
        found.append(StackRef(kind=kind, name=name, digest=digest_bytes(texts.text(made).encode())))

    for stacks in sets:
        part = stacks.compute.cloud.value if stacks.compute.tunnel else ""
        open_name = compute_name(stacks.compute.job, "N", part)
        add("network", stacks.network.name, stacks.network)
        add("access", stacks.access.name, stacks.access)
        add("compute", open_name, replace(stacks.compute, name=open_name))
        if stacks.addresses:
            add("addresses", stacks.addresses.name, stacks.addresses)
    return tuple(found)
