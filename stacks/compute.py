"""`cmp-NAME-gN`: the nodes of one launch attempt.  Its identity may launch, terminate and describe; so nothing else is in it."""

# pyright: basic

from __future__ import annotations

from modules import cdk
from modules.aws.compute import Nodes, NodesProps
from planner.model.offer import CapacityType
from planner.model.stack import ComputeInput, rank_key
from stacks.base import AwsStack

#: variable -> (type, description); `stacks.wiring` fills them from the outputs of `net` and `acc`
VARIABLES = {
    "subnet_id": ("string", "Subnet of the nodes; empty if the template has its own interfaces"),
    "security_group_ids": ("list(string)", "Groups of the nodes; unused if the template has its own interfaces"),
    "launch_template_id": ("string", "Launch template of the nodes"),
    "launch_template_version": ("string", "Its version"),
    "head_launch_template_id": ("string", "Launch template of rank 0"),
    "head_launch_template_version": ("string", "Its version"),
    "placement_group": ("string", "Name of the placement group; empty for none"),
}


class ComputeStack(AwsStack):
    """Outputs: `nodes` {rank key: {instance_id, private_ip, zone, cloud}}, `plan_id`."""

    def __init__(self, app: cdk.App, given: ComputeInput) -> None:
        super().__init__(app, given)
        ref = {name: cdk.variable(self, name, kind, text) for name, (kind, text) in VARIABLES.items()}
        reserved = given.capacity is CapacityType.RESERVED
        addresses = given.addresses or ("",) * given.nodes
        made = Nodes(
            self,
            NodesProps(
                name=f"{given.job}-g{given.generation}",
                instance_type=given.instance_type,
                market=given.reservation if reserved else given.capacity.value,
                ranks=tuple((rank_key(rank), address) for rank, address in enumerate(addresses)),
                template_id=ref["launch_template_id"],
                template_version=ref["launch_template_version"],
                head_template_id=ref["head_launch_template_id"],
                head_template_version=ref["head_launch_template_version"],
                subnet_id=ref["subnet_id"],
                security_group_ids=ref["security_group_ids"],
                # a reservation made outside the group has no capacity inside it
                placement_group=ref["placement_group"] if given.cluster and not reserved else None,
                tags=given.tags,
            ),
        )
        cdk.output(self, "nodes", made.described(given.zone), "The nodes by rank")
        # the plan is named here and in no tag: a changed tag must never reach a node that trains
        cdk.output(self, "plan_id", given.plan_id, "The placement that these nodes are")
