"""Public endpoints of a tunnelled job's nodes: Elastic IP addresses, reserved before any node is there and kept until the stack goes."""

# pyright: basic

from __future__ import annotations

from modules import cdk
from modules.aws.network import named


class Endpoints(cdk.Construct):
    """One `aws_eip` with `for_each` over the ranks.  A node attaches the allocation (`modules.aws.compute`)."""

    def __init__(
        self, scope: cdk.Stack, *, name: str, ranks: tuple[str, ...], tags: tuple[tuple[str, str], ...]
    ) -> None:
        super().__init__(scope, "endpoints")
        self._made = cdk.Resource(
            self,
            "node",
            "aws_eip",
            {"domain": "vpc", "tags": {**named(tags, f"{name}-${{each.key}}"), "skyplan:rank": "${each.key}"}},
            for_each={rank: rank for rank in ranks},
        )

    @property
    def addresses(self) -> str:
        """Expression: rank key -> IPv4 address."""
        return f"${{{{for rank, made in {self._made.address} : rank => made.public_ip}}}}"

    @property
    def ids(self) -> str:
        """Expression: rank key -> what a node attaches."""
        return f"${{{{for rank, made in {self._made.address} : rank => made.allocation_id}}}}"
