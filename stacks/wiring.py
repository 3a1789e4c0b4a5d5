"""What one stack learns from another: Terraform variables made of other stacks' outputs.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.model.stack import ComputeInput


def access_variables(network: Mapping[str, Any]) -> dict[str, Any]:
    """The access stack's variables, from the outputs of the network stack.  Raises KeyError."""
    return {name: network[name] for name in ("subnet_ids", "security_group_ids")}


def compute_variables(given: ComputeInput, network: Mapping[str, Any], access: Mapping[str, Any]) -> dict[str, Any]:
    """The compute stack's variables, from the outputs of the network and access stacks.  Raises KeyError."""
    template = access["launch_templates"][given.template_key]
    return {
        "subnet_id": template["subnet_id"],
        "security_group_ids": network["security_group_ids"],
        "launch_template_id": template["id"],
        "launch_template_version": str(template["version"]),
        "head_launch_template_id": template["head_id"],
        "head_launch_template_version": str(template["head_version"]),
        "placement_group": access["placement_group"],
    }
