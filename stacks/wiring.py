"""What one stack learns from another: Terraform variables made of other stacks' outputs.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address
from typing import Any

from planner.model.offer import CapacityType, Cloud
from planner.model.stack import AccessInput, AddressInput, ComputeInput, spot_key

#: name -> (Terraform type, description)
Variables = dict[str, tuple[str, str]]

#: cloud -> outputs of its network stack that its access stack takes as variables
ACCESS_VARIABLES: dict[Cloud, Variables] = {
    Cloud.AWS: {
        "vpc_id": ("string", "The network"),
        "subnet_ids": ("map(string)", "Zone id to subnet id"),
        "security_group_ids": ("list(string)", "The user's own groups for every node, if any"),
    },
    Cloud.GCP: {
        "network": ("string", "The VPC network"),
        "subnet_ids": ("map(string)", "Zone to subnetwork"),
    },
    Cloud.AZURE: {
        "resource_group": ("string", "Name of the resource group"),
        "subnet_ids": ("map(string)", "Zone to subnet id; the empty key is the region's"),
    },
    Cloud.NEBIUS: {
        "network_id": ("string", "The network"),
        "subnet_ids": ("map(string)", "Zone to subnet id; the empty key is the region's"),
        "security_group_ids": ("list(string)", "The user's own groups for every node, if any"),
    },
}

#: cloud -> outputs of its network stack that its access stack takes too where the job has a tunnel: subnets whose way out is a node's own address
TUNNEL_VARIABLES: dict[Cloud, Variables] = {
    Cloud.AWS: {"public_subnet_ids": ("map(string)", "Zone id to the subnet with a route to the Internet")},
    Cloud.GCP: {},
    Cloud.AZURE: {"public_subnet_ids": ("map(string)", "Zone to the subnet without a NAT gateway")},
    Cloud.NEBIUS: {},
}

#: of the access stack, where the job has a tunnel
PEER_ENDPOINTS = "peer_endpoints"
_PEER_VARIABLES: Variables = {PEER_ENDPOINTS: ("list(string)", "Public IPv4 addresses of the job's nodes")}

#: cloud -> outputs of its network stack that its address stack takes as variables
ADDRESS_VARIABLES: dict[Cloud, Variables] = {
    Cloud.AWS: {},
    Cloud.GCP: {},
    Cloud.AZURE: {"resource_group": ("string", "Name of the resource group")},
    Cloud.NEBIUS: {"subnet_ids": ("map(string)", "Zone to subnet id; the empty key is the region's")},
}

#: of the compute stack, where its nodes have a tunnel
ADDRESS_IDS = "address_ids"
TUNNEL_COMPUTE_VARIABLES: Variables = {ADDRESS_IDS: ("map(string)", "Rank to the reserved address that its node gets")}


def tunnel_port(given: AccessInput) -> int | None:
    """UDP port of the job's tunnel; None for a job without one.  Raises ValueError where templates name different ones."""
    ports = {template.tunnel.port for template in given.templates if template.tunnel is not None}
    if len(ports) > 1:
        raise ValueError(f"{given.name}: one job, but its tunnel has the ports {sorted(ports)}")
    return ports.pop() if ports else None


def declared(given: AccessInput) -> Variables:
    """Every variable of the access stack."""
    known = ACCESS_VARIABLES[given.cloud]
    if tunnel_port(given) is None:
        return known
    return {**known, **TUNNEL_VARIABLES[given.cloud], **_PEER_VARIABLES}


def access_variables(given: AccessInput, network: Mapping[str, Any]) -> dict[str, Any]:
    """The access stack's variables, from the outputs of the network stack; `peer_variables` come beside.  Raises KeyError."""
    return {name: network[name] for name in declared(given) if name != PEER_ENDPOINTS}


def peer_variables(endpoints: Iterable[str]) -> dict[str, Any]:
    """What the access stack of one part of a tunnelled job takes beside: the endpoints of the job's nodes, each once, in order.

    Those of the part itself belong to them where it has several nodes: nodes meet by their public addresses wherever they are, and such a packet
    comes from the other's public address, which no rule for the group's own members matches (docs/decisions/0013).
    None opens nothing, and is enough to destroy the stack.  Raises ValueError for what is not one IPv4 address.
    """
    found = sorted({IPv4Address(endpoint) for endpoint in endpoints})
    return {PEER_ENDPOINTS: [str(address) for address in found]}


def address_variables(given: AddressInput, network: Mapping[str, Any]) -> dict[str, Any]:
    """The address stack's variables, from the outputs of the network stack.  Raises KeyError."""
    return {name: network[name] for name in ADDRESS_VARIABLES[given.cloud]}


def compute_variables(given: ComputeInput, access: Mapping[str, Any]) -> dict[str, Any]:
    """The compute stack's variables, from the outputs of the access stack; with a tunnel the address stack's `address_ids` come beside.

    Raises KeyError.
    """
    launch: Mapping[str, Any] = access["launch"]
    spot = spot_key(given.template_key)
    return dict(launch[spot if given.capacity is CapacityType.SPOT and spot in launch else given.template_key])
