"""The nodes of one launch attempt, and nothing else: who applies this may launch, terminate and describe.

A running node is never updated or replaced: image, user data, template version and tags take effect at the next generation.
"""

# pyright: basic

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from modules import cdk
from modules.aws.network import named


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesProps:
    """`ranks`: (rank key, address or "") in rank order; `market` is "spot", "on_demand" or a reservation's id.

    capacity_block  the reservation is a capacity block, which is a market of its own
    address_ids     rank key -> allocation of the public endpoint that the node gets; None for a job without a tunnel

    The other fields are references to the stack's variables (see `stacks.aws`).
    """

    name: str
    instance_type: str
    market: str
    ranks: tuple[tuple[str, str], ...]
    template_id: str
    template_version: str
    head_template_id: str
    head_template_version: str
    subnet_id: str
    security_group_ids: str
    placement_group: str | None
    tags: tuple[tuple[str, str], ...]
    capacity_block: bool = False
    address_ids: str | None = None


class Nodes(cdk.Construct):
    """One `aws_instance` with `for_each` over the ranks, and the association of its endpoint where it has one."""

    def __init__(self, scope: cdk.Stack, props: NodesProps) -> None:
        super().__init__(scope, "nodes")
        self.nodes = cdk.Resource(
            self,
            "node",
            "aws_instance",
            {
                "instance_type": props.instance_type,
                "launch_template": {
                    "id": _by_rank(props.head_template_id, props.template_id),
                    "version": _by_rank(props.head_template_version, props.template_version),
                },
                **_placed(props),
                **_market(props.market, capacity_block=props.capacity_block),
                "tags": {**named(props.tags, f"{props.name}-${{each.key}}"), "skyplan:rank": "${each.key}"},
            },
            for_each=dict(props.ranks),
            # everything: a reviewed plan starts nodes and ends them, it never touches one that trains
            lifecycle={"ignore_changes": "all"},
        )
        if props.address_ids:
            cdk.Resource(
                self,
                "node",
                "aws_eip_association",
                {
                    "allocation_id": f"${{{_bare(props.address_ids)}[each.key]}}",
                    # not the instance: of one with several interfaces EC2 would not know which is meant
                    "network_interface_id": "${each.value.primary_network_interface_id}",
                },
                for_each=f"${{{self.nodes.address}}}",
            )

    def described(self, zone: str) -> str:
        """Expression: rank key -> instance id, address, zone, cloud."""
        fields = f'instance_id = node.id, private_ip = node.private_ip, zone = "{zone}", cloud = "aws"'
        return f"${{{{for rank, node in {self.nodes.address} : rank => {{{fields}}}}}}}"


def _placed(props: NodesProps) -> dict[str, Any]:
    """Where the network interface goes.  A template with its own interfaces (EFA) leaves `subnet_id` empty, and then none of these may be given."""

    def unless_template(value: str) -> str:
        return f'${{{_bare(props.subnet_id)} == "" ? null : {value}}}'

    return {
        "subnet_id": unless_template(_bare(props.subnet_id)),
        "vpc_security_group_ids": unless_template(_bare(props.security_group_ids)),
        # with an endpoint: an address from the first second, which the reserved one replaces
        "associate_public_ip_address": unless_template("true" if props.address_ids else "false"),
        "private_ip": (
            f'${{{_bare(props.subnet_id)} == "" || each.value == "" ? null : each.value}}'
            if any(address for _, address in props.ranks)
            else None
        ),
        "placement_group": (
            f'${{{_bare(props.placement_group)} == "" ? null : {_bare(props.placement_group)}}}'
            if props.placement_group
            else None
        ),
    }


def _market(market: str, *, capacity_block: bool) -> dict[str, Any]:
    """How the capacity is bought."""
    match market:
        case "on_demand":
            return {}
        case "spot":
            # one-time: a persistent request would launch again what skyplan let go
            options = {"spot_instance_type": "one-time", "instance_interruption_behavior": "terminate"}
            return {"instance_market_options": {"market_type": "spot", "spot_options": options}}
        case reservation:
            target = {"capacity_reservation_target": {"capacity_reservation_id": reservation}}
            block = {"instance_market_options": {"market_type": "capacity-block"}} if capacity_block else {}
            return {"capacity_reservation_specification": target, **block}


def _by_rank(head: str, others: str) -> str:
    """The head's value for rank 0, the others' for the rest."""
    return f'${{each.key == "r00" ? {_bare(head)} : {_bare(others)}}}'


def _bare(reference: str) -> str:
    """`var.x` of `${var.x}`."""
    return reference.removeprefix("${").removesuffix("}")
