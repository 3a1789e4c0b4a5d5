"""Public endpoints of a tunnelled job's nodes: static Standard addresses, reserved before any node is there and kept until the stack goes.

In no zone, so that a node of any zone may have one.  A Standard address lets nothing in that no security rule allows (`modules.azure.access`).
Never run against a live subscription.
"""

# pyright: basic

from __future__ import annotations

from modules import cdk
from modules.azure.names import azure_tags, resource_name

#: Azure's limit for the name of a public address
_LONGEST = 80


class Endpoints(cdk.Construct):
    """One `azurerm_public_ip` with `for_each` over the ranks.  `group` is the expression of the resource group's name."""

    def __init__(
        self,
        scope: cdk.Stack,
        *,
        project: str,
        name: str,
        region: str,
        group: str,
        ranks: tuple[str, ...],
        tags: tuple[tuple[str, str], ...],
    ) -> None:
        super().__init__(scope, "endpoints")
        stem = resource_name(project, name, limit=_LONGEST - len("-r000"))
        self._made = cdk.Resource(
            self,
            "node",
            "azurerm_public_ip",
            {
                "name": f"{stem}-${{each.key}}",
                "resource_group_name": group,
                "location": region,
                "sku": "Standard",
                "allocation_method": "Static",
                "ip_version": "IPv4",
                "tags": azure_tags(tags, ("skyplan:rank", "${each.key}")),
            },
            for_each={rank: rank for rank in ranks},
        )

    @property
    def addresses(self) -> str:
        """Expression: rank key -> IPv4 address."""
        return f"${{{{for rank, made in {self._made.address} : rank => made.ip_address}}}}"

    @property
    def ids(self) -> str:
        """Expression: rank key -> what a node attaches."""
        return f"${{{{for rank, made in {self._made.address} : rank => made.id}}}}"
