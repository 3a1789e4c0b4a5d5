"""What a job's nodes are: their service account, its group and what that may read, their own firewall, the GPU cluster that joins them.

Reviewed and applied by the deployer.  Rights go to groups on Nebius, groups live under the tenant: where the tenant is not known there is no group and
the node has no rights.  A bucket's policy is one list that only its owner writes, so data in Object Storage is the owner's to allow
(`planner.iam.nebius.snippets`); skyplan adds only permits on single secrets, which touch nothing that is there.
Nebius has no session channel into a machine, so nothing here gives people a shell.
Never run against live Nebius.
"""

# pyright: basic

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from modules import cdk
from modules.nebius.names import platform_and_preset

#: what nodes may open to the outside: package mirrors, registries, APIs, and the metadata service (80)
OUTBOUND_PORTS = [80, 443]
#: where the resolver may be: private and link-local ranges.  Its address, and whether groups filter it, is not documented; open to nowhere else
RESOLVERS = ["10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"]
#: only these join a GPU cluster
_CLUSTERED_PRESET = "8gpu-"


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityProps:
    """`name` of the service account; `group`, `tenant`: of its group, "" for none; `permits`: (secret id, role), in order."""

    name: str
    parent_id: str
    group: str
    tenant: str
    permits: tuple[tuple[str, str], ...]
    labels: dict[str, str]


class NodeIdentity(cdk.Construct):
    """The service account of the nodes and the group that rights are given to."""

    def __init__(self, scope: cdk.Stack, props: IdentityProps) -> None:
        super().__init__(scope, "identity")
        self.account = cdk.Resource(
            self,
            "node",
            "nebius_iam_v1_service_account",
            {
                "name": props.name,
                "parent_id": props.parent_id,
                "description": "Nodes of one skyplan job",
                "labels": props.labels,
            },
        )
        if not (props.group and props.tenant):
            return
        group = cdk.Resource(
            self,
            "node",
            "nebius_iam_v1_group",
            {"name": props.group, "parent_id": props.tenant, "labels": props.labels},
        )
        cdk.Resource(
            self,
            "node",
            "nebius_iam_v1_group_membership",
            {"parent_id": group.ref(), "member_id": self.account.ref(), "labels": props.labels},
        )
        for number, (secret, role) in enumerate(props.permits, start=1):
            cdk.Resource(
                self,
                f"secret-{number}",
                "nebius_iam_v1_access_permit",
                {"parent_id": group.ref(), "resource_id": secret, "role": role, "labels": props.labels},
            )


class Peers(cdk.Construct):
    """A job's own security group: its members reach each other on every port, and the outside on HTTP and HTTPS.

    A group denies what none of its rules allows, and rules are stateful unless they say otherwise.
    """

    def __init__(self, scope: cdk.Stack, *, name: str, parent_id: str, network_id: str, labels: dict[str, str]) -> None:
        super().__init__(scope, "peers")
        group = cdk.Resource(
            self,
            "nodes",
            "nebius_vpc_v1_security_group",
            {"name": name, "parent_id": parent_id, "network_id": network_id, "labels": labels},
        )
        self.address, self.id, self._labels = group.address, group.ref(), labels
        rules: dict[str, dict[str, Any]] = {
            "peers-in": {"protocol": "ANY", "ingress": {"source_security_group_id": group.ref()}},
            "peers-out": {"protocol": "ANY", "egress": {"destination_security_group_id": group.ref()}},
            "out": {
                "protocol": "TCP",
                "egress": {"destination_cidrs": ["0.0.0.0/0"], "destination_ports": OUTBOUND_PORTS},
            },
            "dns-tcp": {"protocol": "TCP", "egress": {"destination_cidrs": RESOLVERS, "destination_ports": [53]}},
            "dns-udp": {"protocol": "UDP", "egress": {"destination_cidrs": RESOLVERS, "destination_ports": [53]}},
        }
        for rule, matched in rules.items():
            self._rule(rule, rule, matched)

    def open_tunnel(self, port: int, endpoints: str) -> None:
        """UDP from and to the public endpoints of the job's nodes (a reference to a list of addresses), each as a /32, and nothing wider."""
        each = f"${{toset({endpoints.removeprefix('${').removesuffix('}')})}}"
        peer, ports = ["${each.value}/32"], [port]
        rules: dict[str, dict[str, Any]] = {
            "tunnel-in": {"ingress": {"source_cidrs": peer, "destination_ports": ports}},
            "tunnel-out": {"egress": {"destination_cidrs": peer, "destination_ports": ports}},
        }
        for rule, matched in rules.items():
            name = f'{rule}-${{replace(each.value, ".", "-")}}'
            self._rule(rule, name, {"protocol": "UDP", **matched}, for_each=each)

    def _rule(self, key: str, name: str, matched: dict[str, Any], for_each: str | None = None) -> None:
        cdk.Resource(
            self,
            key,
            "nebius_vpc_v1_security_rule",
            {
                "name": name,
                "parent_id": self.id,
                "labels": self._labels,
                "access": "ALLOW",
                "type": "STATEFUL",
                **matched,
            },
            for_each=for_each,
        )


def gpu_cluster(
    scope: cdk.Stack, label: str, *, name: str, parent_id: str, instance_type: str, fabric: str, labels: dict[str, str]
) -> cdk.Resource:
    """The cluster on an InfiniBand fabric; nodes join it when they are made, never later.

    Raises ValueError without a fabric, and for a preset that cannot join one.
    """
    if not fabric or not platform_and_preset(instance_type)[1].startswith(_CLUSTERED_PRESET):
        raise ValueError(f"{instance_type}: no GPU cluster on fabric {fabric!r}")
    return cdk.Resource(
        scope,
        label,
        "nebius_compute_v1_gpu_cluster",
        {"name": name, "parent_id": parent_id, "infiniband_fabric": fabric, "labels": labels},
    )
