"""`net-TARGET-REGION`: one network per target and region, shared by jobs; or the user's own, then only its ids are handed on."""

# pyright: basic

from __future__ import annotations

from modules import cdk
from modules.aws.network import Network, NetworkProps, Peers
from planner.model.stack import NetworkInput
from stacks.base import AwsStack


class NetworkStack(AwsStack):
    """Outputs: `vpc_id`, `subnet_ids` {zone: id}, `security_group_ids`, `security_group_id` (the first of them)."""

    def __init__(self, app: cdk.App, given: NetworkInput) -> None:
        super().__init__(app, given)
        if given.own is not None:
            # without groups of the user's, nodes still need one in which they reach each other
            groups: list[str] = list(given.own.security_group_ids) or [
                Peers(self, name=given.name, vpc_id=given.own.vpc_id, tags=given.tags).id
            ]
            self._outputs(given.own.vpc_id, dict(given.own.subnets), groups)
            return
        made = Network(
            self,
            NetworkProps(
                name=given.name,
                region=given.region,
                cidr=given.cidr,
                nat_cidr=given.nat_cidr,
                zones=given.zones,
                tags=given.tags,
            ),
        )
        self._outputs(made.vpc.ref(), made.subnet_ids, [made.peers.id])

    def _outputs(self, vpc_id: str, subnet_ids: str | dict[str, str], groups: list[str]) -> None:
        cdk.output(self, "vpc_id", vpc_id, "The network")
        cdk.output(self, "subnet_ids", subnet_ids, "Zone id to subnet id")
        cdk.output(self, "security_group_ids", groups, "Groups of every node")
        cdk.output(self, "security_group_id", groups[0], "The first of them")
