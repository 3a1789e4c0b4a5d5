"""What one stack learns from another: Terraform variables made of other stacks' outputs.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.model.offer import Cloud
from planner.model.stack import AccessInput, ComputeInput

#: cloud -> outputs of its network stack that its access stack takes as variables: name -> (Terraform type, description)
ACCESS_VARIABLES: dict[Cloud, dict[str, tuple[str, str]]] = {
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


def access_variables(given: AccessInput, network: Mapping[str, Any]) -> dict[str, Any]:
    """The access stack's variables, from the outputs of the network stack.  Raises KeyError."""
    return {name: network[name] for name in ACCESS_VARIABLES[given.cloud]}


def compute_variables(given: ComputeInput, access: Mapping[str, Any]) -> dict[str, Any]:
    """The compute stack's variables, from the outputs of the access stack.  Raises KeyError."""
    return dict(access["launch"][given.template_key])
