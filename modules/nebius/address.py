"""Public endpoints of a tunnelled job's nodes: allocations of public addresses, made before any node is there and kept until the stack goes.

They come from the public pools that the subnet has of its network.  That a network has them when only its private pool was given is not documented,
and was not seen: never run against live Nebius.
"""

# pyright: basic

from __future__ import annotations

from modules import cdk
from modules.nebius.names import LONGEST
from modules.text import fit
from planner.model.labels import own_key


class Endpoints(cdk.Construct):
    """One `nebius_vpc_v1_allocation` with `for_each` over the ranks.  `subnet_id` is an expression."""

    def __init__(
        self,
        scope: cdk.Stack,
        *,
        name: str,
        parent_id: str,
        subnet_id: str,
        ranks: tuple[str, ...],
        labels: dict[str, str],
    ) -> None:
        super().__init__(scope, "endpoints")
        self._made = cdk.Resource(
            self,
            "node",
            "nebius_vpc_v1_allocation",
            {
                "name": f"{fit(name, LONGEST - len('-r000'))}-${{each.key}}",
                "parent_id": parent_id,
                "labels": {**labels, own_key("rank"): "${each.key}"},
                "ipv4_public": {"subnet_id": subnet_id},
            },
            for_each={rank: rank for rank in ranks},
        )

    @property
    def addresses(self) -> str:
        """Expression: rank key -> IPv4 address (the API's has a mask)."""
        address = 'split("/", made.status.details.allocated_cidr)[0]'
        return f"${{{{for rank, made in {self._made.address} : rank => {address}}}}}"

    @property
    def ids(self) -> str:
        """Expression: rank key -> what a node attaches."""
        return f"${{{{for rank, made in {self._made.address} : rank => made.id}}}}"
