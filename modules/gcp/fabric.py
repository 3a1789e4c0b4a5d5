"""Networks of a job's GPU fabric: one per network card, with nothing else in them and no way out.

GPUDirect-TCPX and -TCPXO want one VPC network per GPU card (4 and 8); RDMA (RoCE) one network made from the zone's RDMA profile with a subnet
per card, and a second plain network, as those machines have two gVNIC cards.  The networks are the job's own: their members are its nodes, which
is what keeps others out.  A project has few networks by default (Google's quota is 15 or less in many projects): a job on TCPXO takes 8.

RoCE networks take no firewall rule: VPC firewall rules are not supported there, and inbound is allowed unless a regional policy says otherwise
(docs.cloud.google.com/vpc/docs/rdma-network-profiles and cloud.google.com/firewall/docs/firewall-for-roce, read 2026-11).  Nothing routes into
such a network: it has no peering, no NAT, no VPN and no external address, and only RDMA cards of machines in its zone attach to it.

Never run against a live account.
"""

# pyright: basic

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from modules import cdk
from modules.gcp.machines import fabric_interfaces
from modules.gcp.names import resource_name
from planner.model.offer import Fabric
from planner.model.stack import NodeTemplate

#: frames of GPUDirect-TCPX and -TCPXO (Google's documentation of both)
DIRECT_MTU = 8244
#: the largest that a VPC network takes, and what RDMA profiles are made for
RDMA_MTU = 8896
RDMA_CARDS = 8
#: place of the second gVNIC network among the ranges: it shares a machine with the RDMA subnets 0 to 7
_HOST_RANGE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricProps:
    """`account`: reference to the email of the nodes' service account; `api_project`: expression of the cloud's project id."""

    project: str
    name: str
    region: str
    account: str
    api_project: str


class Fabrics(cdk.Construct):
    """The networks that the templates need, each once."""

    def __init__(self, scope: cdk.Stack, props: FabricProps, templates: Sequence[NodeTemplate]) -> None:
        super().__init__(scope, "fabric")
        self._props = props
        direct = max((_cards(template.fabric) for template in templates), default=0)
        self._direct = [self._network(f"gpu{card}", card, DIRECT_MTU) for card in range(direct)]
        zones = sorted({template.zone for template in templates if template.fabric is Fabric.ROCE})
        self._host = self._network("host", _HOST_RANGE, RDMA_MTU) if zones else ""
        self._rdma = {zone: self._roce(zone) for zone in zones}

    def subnets_of(self, template: NodeTemplate) -> list[str]:
        """References to the subnets of the interfaces beside the first, in the order of `fabric_interfaces`."""
        if template.fabric is Fabric.ROCE:
            return [self._host, *self._rdma[template.zone]]
        return self._direct[: _cards(template.fabric)]

    def _network(self, key: str, place: int, mtu: int) -> str:
        """A network with one subnet whose nodes reach each other; gives the reference to the subnet."""
        network = self._vpc(key, {"mtu": mtu, "delete_default_routes_on_create": True})
        subnet = self._subnet(key, network, key, place)
        cdk.Resource(
            self,
            f"fabric-{key}",
            "google_compute_firewall",
            {
                "name": resource_name(self._props.project, self._props.name, key),
                "description": "The job's nodes reach each other; nothing else is in this network",
                "network": network.ref(),
                "direction": "INGRESS",
                "source_ranges": [subnet_range(place)],
                "target_service_accounts": [self._props.account],
                "allow": [{"protocol": "all"}],
            },
        )
        return subnet

    def _roce(self, zone: str) -> list[str]:
        """The RDMA network of one zone, a subnet per card."""
        base = "https://www.googleapis.com/compute/v1/projects"
        key = f"roce-{zone}"
        # its routes are the profile's business: what a profile does not support is an error
        profile = f"{base}/{self._props.api_project}/global/networkProfiles/{zone}-vpc-roce"
        network = self._vpc(key, {"mtu": RDMA_MTU, "network_profile": profile})
        return [self._subnet(f"{key}-{card}", network, f"{key}-{card}", card) for card in range(RDMA_CARDS)]

    def _vpc(self, key: str, more: dict[str, Any]) -> cdk.Resource:
        return cdk.Resource(
            self,
            f"fabric-{key}",
            "google_compute_network",
            {
                "name": resource_name(self._props.project, self._props.name, key),
                "description": f"skyplan {self._props.project}/{self._props.name}: GPU fabric of one job",
                "auto_create_subnetworks": False,
                "routing_mode": "REGIONAL",
                **more,
            },
        )

    def _subnet(self, key: str, network: cdk.Resource, name: str, place: int) -> str:
        # no flow logs: the cards of a fabric move nothing but gradients between the job's own nodes, at terabits a second
        subnet = cdk.Resource(
            self,
            f"fabric-{key}",
            "google_compute_subnetwork",
            {
                "name": resource_name(self._props.project, self._props.name, name),
                "network": network.ref(),
                "region": self._props.region,
                "ip_cidr_range": subnet_range(place),
                "stack_type": "IPV4_ONLY",
            },
        )
        return subnet.ref("self_link")


def subnet_range(place: int) -> str:
    """172.16.0.0/20, 172.16.16.0/20 …: apart from the nodes' own 10.0.0.0/8 and from Docker's 172.17.0.0/16.  Raises ValueError past 16."""
    if not 0 <= place < 16:  # noqa: PLR2004 -- a /16 holds 16 ranges of /20
        raise ValueError(f"no {place}th range")
    return f"172.16.{16 * place}.0/20"


def _cards(fabric: Fabric) -> int:
    return len(fabric_interfaces(fabric)) if fabric in {Fabric.TCPX, Fabric.TCPXO} else 0
