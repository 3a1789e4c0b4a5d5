"""Public endpoints of a tunnelled job's nodes: static external addresses, reserved before any node is there and kept until the stack goes.

Never run against a live account.  An organisation may forbid external addresses (constraint `compute.vmExternalIpAccess`): then nodes are refused.
"""

# pyright: basic

from __future__ import annotations

from modules import cdk
from modules.gcp.names import LONGEST, resource_name
from planner.model.labels import labels_of, own_key

#: of the address and of the interface that takes it, which must agree; said, since a project may have another default
NETWORK_TIER = "PREMIUM"


class Endpoints(cdk.Construct):
    """One `google_compute_address` with `for_each` over the ranks.  What a node attaches is the address itself."""

    def __init__(
        self,
        scope: cdk.Stack,
        *,
        project: str,
        name: str,
        region: str,
        ranks: tuple[str, ...],
        tags: tuple[tuple[str, str], ...],
    ) -> None:
        super().__init__(scope, "endpoints")
        stem = resource_name(project, name, limit=LONGEST - len("-r000"))
        self._made = cdk.Resource(
            self,
            "node",
            "google_compute_address",
            {
                "name": f"{stem}-${{each.key}}",
                "description": "skyplan: endpoint of one node's tunnel",
                "region": region,
                "address_type": "EXTERNAL",
                "network_tier": NETWORK_TIER,
                "labels": {**labels_of(tags), own_key("rank"): "${each.key}"},
            },
            for_each={rank: rank for rank in ranks},
        )

    @property
    def addresses(self) -> str:
        """Expression: rank key -> IPv4 address."""
        return f"${{{{for rank, made in {self._made.address} : rank => made.address}}}}"

    #: what a node attaches
    ids = addresses
