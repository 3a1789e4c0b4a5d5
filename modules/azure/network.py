"""One Azure network: a group for its resources, private subnets, a NAT gateway as the way out, and public subnets for nodes with their own.

Azure's own default way out is closed, so that there is one.  A NAT gateway goes before a node's own public address for what the node begins
(Microsoft Learn, nat-overview; measured by S. Painter, 2025): a tunnel's node would come from an address that its peers do not know.  So a node with an
endpoint stands in a public subnet, which is like the private one but without the gateway (docs/decisions/0013).  No security group is here: a packet must pass the
subnet's group and the interface's, and what a job's nodes may reach is the job's own business (`modules.azure.access`), so that one place says it.
"""

# pyright: basic

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from modules import cdk
from modules.azure.names import azure_tags, resource_name
from modules.cidr import consecutive

Tags = tuple[tuple[str, str], ...]
#: key of a subnet in Terraform where the zone is "", the region's own
_REGIONAL = "region"


def resource_group(scope: cdk.Stack, *, project: str, name: str, region: str, tags: Tags) -> str:
    """Make the resource group of a target and region; gives the expression of its name."""
    made = cdk.Resource(
        scope,
        "net",
        "azurerm_resource_group",
        {"name": resource_name(project, name, limit=90), "location": region, "tags": azure_tags(tags)},
    )
    return made.ref("name")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkProps:
    """`zones`: (zone, CIDR) of the private subnets, "" where one serves the region; `group`: name of the resource group.

    nat_cidr   the first public subnet; the others follow it
    """

    project: str
    name: str
    region: str
    group: str
    cidr: str
    nat_cidr: str
    zones: Tags
    tags: Tags


class Network(cdk.Construct):
    """Virtual network, subnets, NAT gateway with its address.

    One NAT gateway for all zones: it is billed by the hour, and traffic to storage accounts of the region does not pass through it (service endpoint).
    """

    def __init__(self, scope: cdk.Stack, props: NetworkProps) -> None:
        super().__init__(scope, "network")
        self._props = props
        self.network = self._made("net", "azurerm_virtual_network", "", limit=64, address_space=[props.cidr])
        self.subnets = self._subnets("nodes", dict(props.zones))
        self.public = self._subnets("public", consecutive(props.nat_cidr, (zone for zone, _ in props.zones)))
        self._way_out()

    @property
    def subnet_ids(self) -> dict[str, str]:
        """Zone to the expression of its private subnet's id."""
        return self._ids(self.subnets)

    @property
    def public_subnet_ids(self) -> dict[str, str]:
        """Zone to the expression of its public subnet's id."""
        return self._ids(self.public)

    def _ids(self, subnets: cdk.Resource) -> dict[str, str]:
        return {zone: f'${{{subnets.address}["{zone or _REGIONAL}"].id}}' for zone, _ in self._props.zones}

    def _subnets(self, name: str, cidrs: dict[str, str]) -> cdk.Resource:
        return cdk.Resource(
            self,
            name,
            "azurerm_subnet",
            {
                "name": f"{name}-${{each.key}}",
                "resource_group_name": self._props.group,
                "virtual_network_name": self.network.ref("name"),
                "address_prefixes": ["${each.value}"],
                "default_outbound_access_enabled": False,
                "service_endpoints": ["Microsoft.Storage"],
            },
            for_each={zone or _REGIONAL: cidr for zone, cidr in cidrs.items()},
        )

    def _way_out(self) -> None:
        address = self._made(
            "nat", "azurerm_public_ip", "-nat", limit=80, allocation_method="Static", sku="Standard", ip_version="IPv4"
        )
        gateway = self._made("net", "azurerm_nat_gateway", "", limit=80, sku_name="Standard")
        cdk.Resource(
            self,
            "net",
            "azurerm_nat_gateway_public_ip_association",
            {"nat_gateway_id": gateway.ref(), "public_ip_address_id": address.ref()},
        )
        cdk.Resource(
            self,
            "nodes",
            "azurerm_subnet_nat_gateway_association",
            {"nat_gateway_id": gateway.ref(), "subnet_id": "${each.value.id}"},
            for_each=f"${{{self.subnets.address}}}",
        )

    def _made(self, id: str, type: str, suffix: str, *, limit: int, **attributes: Any) -> cdk.Resource:  # noqa: A002 -- the CDK's words
        props = self._props
        common = {
            "name": resource_name(props.project, props.name + suffix, limit=limit),
            "resource_group_name": props.group,
            "location": props.region,
            "tags": azure_tags(props.tags),
        }
        return cdk.Resource(self, id, type, {**common, **attributes})
