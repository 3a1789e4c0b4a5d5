"""One Nebius network: a private pool, a subnet per zone, an outbound path that exists.  No firewall: groups are a job's own (`modules.nebius.access`).

A network has no zones on Nebius; the empty zone is the region's one subnet.  Nodes have no public address: the route to the default egress gateway
takes them out under an address shared by all projects of the region, and the nodes of a tunnelled job under their own endpoints
(docs.nebius.com/vpc/routing/overview, read 2026-11).  A network's default routing
table has that route already; ours says it outright, so that the path does not hang on a default.  The network's default security group lets everything
in, so nothing may run in it that names no group; skyplan's nodes name theirs.
Never run against live Nebius.
"""

# pyright: basic

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from modules import cdk

#: key of the subnet that is the region's, as Terraform's address needs one
REGIONAL = "region"


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkProps:
    """`zones`: (zone or "", CIDR); `parent_id`: the project, or an expression for it."""

    name: str
    parent_id: str
    cidr: str
    zones: tuple[tuple[str, str], ...]
    labels: dict[str, str]


class Network(cdk.Construct):
    """Pool, network, routing table with its default route, subnets."""

    def __init__(self, scope: cdk.Stack, props: NetworkProps) -> None:
        super().__init__(scope, "network")
        common: dict[str, Any] = {"name": props.name, "parent_id": props.parent_id, "labels": props.labels}
        pool = cdk.Resource(
            self,
            "net",
            "nebius_vpc_v1_pool",
            {**common, "version": "IPV4", "visibility": "PRIVATE", "cidrs": [{"cidr": props.cidr}]},
        )
        self.network = cdk.Resource(
            self,
            "net",
            "nebius_vpc_v1_network",
            {**common, "ipv4_private_pools": {"pools": [{"id": pool.ref()}]}},
        )
        routes = cdk.Resource(self, "out", "nebius_vpc_v1_route_table", {**common, "network_id": self.network.ref()})
        way_out = cdk.Resource(
            self,
            "out",
            "nebius_vpc_v1_route",
            {
                "name": props.name,
                "parent_id": routes.ref(),
                "labels": props.labels,
                "description": "out, without a public address of the node's own",
                "destination": {"cidr": "0.0.0.0/0"},
                "next_hop": {"default_egress_gateway": True},
            },
        )
        self._keys = {zone: zone or REGIONAL for zone, _ in props.zones}
        self.subnets = cdk.Resource(
            self,
            "private",
            "nebius_vpc_v1_subnet",
            {
                "name": f"{props.name}-${{each.key}}",
                "parent_id": props.parent_id,
                "labels": props.labels,
                "network_id": self.network.ref(),
                "route_table_id": routes.ref(),
                "ipv4_private_pools": {"use_network_pools": False, "pools": [{"cidrs": [{"cidr": "${each.value}"}]}]},
            },
            for_each={self._keys[zone]: cidr for zone, cidr in props.zones},
            depends_on=(way_out,),
        )

    @property
    def subnet_ids(self) -> dict[str, str]:
        """Zone -> the subnet's id; the empty zone is the region's."""
        return {zone: f'${{{self.subnets.address}["{key}"].id}}' for zone, key in self._keys.items()}
