"""The nodes of one launch attempt with their boot disks and fixed addresses, and nothing else.

Hardened without a choice: no public address but the endpoint of a tunnelled job's node, an encrypted boot disk, the job's own security group.  The API has no setting for the metadata service;
it answers only requests with a header of its own.  A running node is never updated or replaced.

A node that powers itself off, or fails, must stay off: by default Nebius would start it again and go on billing
(docs.nebius.com/compute/virtual-machines/stopped-with-linux-commands, read 2026-10), so the recovery policy is FAIL whatever the capacity.
Never run against live Nebius.
"""

# pyright: basic

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from modules import cdk
from modules.nebius.images import image_source
from modules.nebius.names import platform_and_preset
from modules.text import literal
from planner.model.labels import own_key
from planner.model.offer import CapacityType

#: the type that can be encrypted and has no replicas: a boot disk holds nothing that must outlive its node
DISK_TYPE = "NETWORK_SSD_NON_REPLICATED"
#: its size must be a multiple of this (docs.nebius.com/compute/storage/types, read 2026-10)
DISK_STEP_GIB = 93


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesProps:
    """`stem`: what names begin with; `ranks`: (rank key, address or "") in rank order, with addresses for all or for none.

    subnet_id, security_group_ids, service_account_id, gpu_cluster_id   references to the stack's variables
    clustered    the nodes join the GPU cluster
    reservation  id of a capacity block group; for RESERVED only
    address_ids  rank key -> public endpoint that the node gets; None for a job without a tunnel
    """

    stem: str
    parent_id: str
    instance_type: str
    machine_image: str
    user_data: str
    disk_gb: int
    nvme: bool
    capacity: CapacityType
    reservation: str
    clustered: bool
    ranks: tuple[tuple[str, str], ...]
    subnet_id: str
    security_group_ids: str
    service_account_id: str
    gpu_cluster_id: str
    labels: dict[str, str]
    address_ids: str | None = None


class Nodes(cdk.Construct):
    """One `nebius_compute_v1_instance` with `for_each` over the ranks, and one allocation each where addresses are fixed."""

    def __init__(self, scope: cdk.Stack, props: NodesProps) -> None:
        super().__init__(scope, "nodes")
        platform, preset = platform_and_preset(props.instance_type)
        name = f"{props.stem}-${{each.key}}"
        labels = {**props.labels, own_key("rank"): "${each.key}"}
        common: dict[str, Any] = {"name": name, "parent_id": props.parent_id, "labels": labels}
        self.nodes = cdk.Resource(
            self,
            "node",
            "nebius_compute_v1_instance",
            {
                **common,
                "hostname": name,
                "resources": {"platform": platform, "preset": preset},
                "boot_disk": _boot_disk(props, f"{name}-boot", labels),
                "network_interfaces": [
                    {
                        "name": "eth0",
                        "subnet_id": props.subnet_id,
                        "ip_address": self._address(props, common),
                        "public_ip_address": (
                            {"allocation_id": f"${{{_bare(props.address_ids)}[each.key]}}"}
                            if props.address_ids
                            else None
                        ),
                        "security_groups": f"${{[for id in {_bare(props.security_group_ids)} : {{ id = id }}]}}",
                    }
                ],
                "gpu_cluster": {"id": props.gpu_cluster_id} if props.clustered else None,
                # local disks are there for who asks
                "local_disks": {"passthrough_group": {"requested": True}} if props.nvme else None,
                "service_account_id": props.service_account_id,
                "recovery_policy": "FAIL",
                "cloud_init_user_data": literal(props.user_data),
                **_market(props),
            },
            for_each=dict(props.ranks),
            # everything: a reviewed plan starts nodes and ends them, it never touches one that trains
            lifecycle={"ignore_changes": "all"},
        )

    def _address(self, props: NodesProps, common: dict[str, Any]) -> dict[str, Any]:
        """The interface's address: reserved as planned, or the cloud's choice."""
        if not all(address for _, address in props.ranks):
            return {}
        reserved = cdk.Resource(
            self,
            "node",
            "nebius_vpc_v1_allocation",
            {**common, "ipv4_private": {"cidr": "${each.value}/32", "subnet_id": props.subnet_id}},
            for_each=dict(props.ranks),
            lifecycle={"ignore_changes": "all"},
        )
        return {"allocation_id": f"${{{reserved.address}[each.key].id}}"}

    def described(self, zone: str) -> str:
        """Expression: rank key -> instance id, address (the API's has a mask), zone, cloud."""
        address = 'split("/", node.status.network_interfaces[0].ip_address.address)[0]'
        fields = f'instance_id = node.id, private_ip = {address}, zone = "{zone}", cloud = "nebius"'
        return f"${{{{for rank, node in {self.nodes.address} : rank => {{{fields}}}}}}}"


def _boot_disk(props: NodesProps, name: str, labels: dict[str, str]) -> dict[str, Any]:
    """A disk that is made and deleted with its node."""
    spec = {
        "type": DISK_TYPE,
        "size_gibibytes": -(-props.disk_gb // DISK_STEP_GIB) * DISK_STEP_GIB,
        "disk_encryption": {"type": "DISK_ENCRYPTION_MANAGED"},
        **image_source(props.machine_image),
    }
    return {"attach_mode": "READ_WRITE", "managed_disk": {"name": name, "labels": labels, "spec": spec}}


def _market(props: NodesProps) -> dict[str, Any]:
    """How the capacity is bought.  Preemptible machines take no reservation policy; on-demand ones must not use up a block that nobody asked for."""
    match props.capacity:
        case CapacityType.SPOT:
            return {"preemptible": {"on_preemption": "STOP"}}
        case CapacityType.RESERVED:
            return {"reservation_policy": {"policy": "STRICT", "reservation_ids": [props.reservation]}}
        case CapacityType.ON_DEMAND:
            return {"reservation_policy": {"policy": "FORBID"}}


def _bare(reference: str) -> str:
    """`var.x` of `${var.x}`."""
    return reference.removeprefix("${").removesuffix("}")
