"""One VPC network: a private subnet per zone, and an outbound path by Cloud NAT.  Shared by jobs, so it opens nothing.

No firewall rule is made here: a VPC network refuses every inbound connection that no rule allows, also one between two nodes of the same
subnet.  What a job's nodes may say to each other is a rule of the job (`modules.gcp.access`).  Which zones and addresses: the caller's choice.
"""

# pyright: basic

from __future__ import annotations

from dataclasses import dataclass

from modules import cdk
from modules.gcp.names import resource_name

#: Google's default.  8896 would serve NCCL over plain TCP better, but everything that leaves the network (NAT, tunnels, the registry) then hangs on
#: path MTU discovery, and a network's MTU cannot change under running nodes.  Fabrics have networks of their own with a larger one.
MTU = 1460


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkProps:
    """`zones`: (zone, CIDR); a subnet is regional, there is one per zone so that a zone's addresses are known while planning."""

    project: str
    name: str
    region: str
    zones: tuple[tuple[str, str], ...]


class Network(cdk.Construct):
    """VPC network, subnets, router, NAT.  None of these can carry labels."""

    def __init__(self, scope: cdk.Stack, props: NetworkProps) -> None:
        super().__init__(scope, "network")
        name = resource_name(props.project, props.name)
        self.network = cdk.Resource(
            self,
            "net",
            "google_compute_network",
            {
                "name": name,
                "description": f"skyplan project {props.project}: nodes of all its jobs in {props.region}",
                "auto_create_subnetworks": False,
                "routing_mode": "REGIONAL",
                "mtu": MTU,
            },
        )
        self.subnets = cdk.Resource(
            self,
            "private",
            "google_compute_subnetwork",
            {
                "name": "${each.value.name}",
                "description": f"skyplan project {props.project}: nodes in one zone",
                "network": self.network.ref(),
                "region": props.region,
                "ip_cidr_range": "${each.value.cidr}",
                # storage, secrets and image registries of Google without a way over the Internet
                "private_ip_google_access": True,
                "stack_type": "IPV4_ONLY",
                # who spoke to whom, after the fact; a tenth of the flows, as training moves terabytes between the same few peers
                "log_config": {
                    "aggregation_interval": "INTERVAL_10_MIN",
                    "flow_sampling": 0.1,
                    "metadata": "INCLUDE_ALL_METADATA",
                },
            },
            for_each={
                zone: {"name": resource_name(props.project, props.name, zone or "region"), "cidr": cidr}
                for zone, cidr in props.zones
            },
        )
        self._nat(name, props)

    @property
    def subnet_ids(self) -> str:
        """Expression: a map from zone to the subnet's self link."""
        return f"${{{{for zone, subnet in {self.subnets.address} : zone => subnet.self_link}}}}"

    def _nat(self, name: str, props: NetworkProps) -> None:
        router = cdk.Resource(
            self,
            "net",
            "google_compute_router",
            {"name": name, "network": self.network.ref(), "region": props.region},
        )
        cdk.Resource(
            self,
            "net",
            "google_compute_router_nat",
            {
                "name": name,
                "router": router.ref("name"),
                "region": props.region,
                "nat_ip_allocate_option": "AUTO_ONLY",
                # these subnets and no other that somebody adds later
                "source_subnetwork_ip_ranges_to_nat": "LIST_OF_SUBNETWORKS",
                "subnetwork": [
                    {
                        "name": f'${{{self.subnets.address}["{zone}"].id}}',
                        "source_ip_ranges_to_nat": ["ALL_IP_RANGES"],
                    }
                    for zone, _ in props.zones
                ],
                # 64 ports a node, the default, are too few for a data loader that keeps hundreds of connections to one store
                "enable_dynamic_port_allocation": True,
                "min_ports_per_vm": 256,
                "max_ports_per_vm": 16384,
                "enable_endpoint_independent_mapping": False,
                "log_config": {"enable": True, "filter": "ERRORS_ONLY"},
            },
        )
