"""One part of a job that lies in several clouds, on each cloud: ranks 2 and 3 of four, and the same part as if it had no tunnel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from planner.model.offer import Cloud, Fabric
from planner.model.stack import (
    AccessInput,
    AddressInput,
    ComputeInput,
    NetworkInput,
    NodeTemplate,
    Tunnel,
    rank_key,
)
from planner.model.workload import Workload
from tests.stacks import azure_inputs, gcp_inputs, inputs, nebius_inputs

FIRST, NODES = 2, 2
RANKS = ("r02", "r03")
#: endpoints of ranks 0 and 1, in another cloud, and of this part's own nodes, which meet by them too
PEERS = ("198.51.100.7", "203.0.113.20", "203.0.113.71", "203.0.113.72")
TUNNEL = Tunnel(
    members=tuple((rank_key(rank), f"10.251.0.{rank + 1}") for rank in range(4)),
    mtu=1360,
    url="",
    secret=None,
    agent_url="https://example.org/agent.pyz",
    agent_sha256="b" * 64,
    endpoints=tuple((rank_key(rank), address) for rank, address in enumerate(PEERS)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The stacks of the part; `plain` are access and compute without the tunnel."""

    network: NetworkInput
    addresses: AddressInput
    access: AccessInput
    compute: ComputeInput
    plain: tuple[AccessInput, ComputeInput]


def _part(module: Any, template: NodeTemplate) -> Part:
    job: Workload = module.workload()
    job = replace(job, resources=replace(job.resources, nodes=len(TUNNEL.members)))
    plain = replace(template, addresses=(), nodes=NODES, cluster=False, first_rank=FIRST)
    tunnelled = replace(plain, tunnel=TUNNEL)
    access = module.access(workload=job, templates=(tunnelled,), head_address=None)
    network = module.network()

    def compute(node: NodeTemplate, *, tunnel: bool) -> ComputeInput:
        made = module.compute(
            zone=node.zone,
            instance_type=node.instance_type,
            nodes=NODES,
            template_key=node.key,
            cluster=False,
            addresses=(),
            first_rank=FIRST,
            tunnel=tunnel,
        )
        # AWS's launch templates, made by the access stack, say what a node boots
        return made if made.cloud is Cloud.AWS else replace(made, node=node, workload=job)

    lone = replace(job, resources=replace(job.resources, nodes=1))
    bare = compute(plain, tunnel=False)
    return Part(
        network=network,
        addresses=AddressInput(
            **module.BASE,
            name=f"adr-{job.name}-{access.cloud.value}-{access.target}-{access.region}",
            tags=access.tags,
            job=job.name,
            zone=plain.zone,
            ranks=RANKS,
        ),
        access=access,
        compute=compute(tunnelled, tunnel=True),
        # several nodes that do not meet by a tunnel need addresses, which is not what is compared here
        plain=(
            replace(access, workload=lone, templates=(plain,)),
            replace(bare, workload=lone) if bare.workload else bare,
        ),
    )


PARTS: dict[Cloud, Part] = {
    Cloud.AWS: _part(inputs, inputs.plain_template()),
    Cloud.GCP: _part(gcp_inputs, gcp_inputs.template(Fabric.ETHERNET)),
    Cloud.AZURE: _part(azure_inputs, azure_inputs.ethernet()),
    Cloud.NEBIUS: _part(nebius_inputs, nebius_inputs.template(fabric=Fabric.ETHERNET, fabric_name="")),
}
