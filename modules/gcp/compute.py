"""The nodes of one launch attempt: instances with their interfaces and boot disks, and nothing else.

A running node is never updated or replaced: image, user data and labels take effect at the next generation.  Hardened without a choice: no
public address but the endpoint of a tunnelled job's node (which then goes out by it: Cloud NAT leaves out an interface with an address of its own),
OS Login only, no project-wide SSH key, no serial console, shielded boot, encrypted disks (Google's keys, or the user's own).
Never run against a live account.
"""

# pyright: basic

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from modules import cdk
from modules.gcp.address import NETWORK_TIER
from modules.gcp.machines import fabric_interfaces, machine_of
from modules.text import literal
from planner.model.labels import labels_of, own_key
from planner.model.offer import CapacityType
from planner.model.stack import NodeTemplate

#: a create that has not ended by then counts as failed; a refusal for want of capacity comes within a minute
CREATE_LIMIT = "15m"
DELETE_LIMIT = "15m"
#: longest that Compute Engine takes for a run: 120 days; it may come 30 s late (cloud.google.com/compute/docs/instances/limit-vm-runtime, 2026-11)
LONGEST_RUN_SECONDS = 120 * 24 * 3600
_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesProps:
    """`ranks`: (rank key, address or "") in rank order; `name`: of the nodes, without the rank.

    reserved_block   the reservation is one for a time: its nodes end with it
    secure_boot      the image's kernel modules are signed
    address_ids      rank key -> public endpoint that the node gets; None for a job without a tunnel

    `image`, `account`, `subnet`, `fabric_subnets` and `placement` (None for no policy) are references to the stack's variables (see `stacks.gcp`).
    """

    name: str
    zone: str
    node: NodeTemplate
    capacity: CapacityType
    reservation: str
    reserved_block: bool
    ranks: tuple[tuple[str, str], ...]
    user_data: str
    image: str
    secure_boot: bool
    account: str
    subnet: str
    fabric_subnets: str
    placement: str | None
    kms_key: str | None
    tags: tuple[tuple[str, str], ...]
    address_ids: str | None = None


class Nodes(cdk.Construct):
    """One `google_compute_instance` with `for_each` over the ranks."""

    def __init__(self, scope: cdk.Stack, props: NodesProps) -> None:
        super().__init__(scope, "nodes")
        self._props = props
        self._labels = labels_of(props.tags)
        machine = machine_of(props.node.instance_type, props.node.gpu_count, nvme=props.node.nvme)
        accelerator = machine.accelerator
        self.nodes = cdk.Resource(
            self,
            "node",
            "google_compute_instance",
            {
                "name": f"{props.name}-${{each.key}}",
                "zone": props.zone,
                "machine_type": machine.machine_type,
                "guest_accelerator": [{"type": accelerator[0], "count": accelerator[1]}] if accelerator else None,
                "boot_disk": self._disk(machine.disk_type),
                "scratch_disk": [{"interface": "NVME"}] * machine.local_ssds or None,
                "network_interface": self._interfaces(),
                "scheduling": _scheduling(props),
                "reservation_affinity": _reservation(props),
                "resource_policies": [props.placement] if props.placement else None,
                "service_account": {
                    "email": props.account,
                    # what the node may do is said by the account's roles; a scope cannot name a prefix
                    "scopes": ["cloud-platform"],
                },
                "shielded_instance_config": {
                    "enable_secure_boot": props.secure_boot,
                    "enable_vtpm": True,
                    "enable_integrity_monitoring": True,
                },
                "metadata": {
                    "user-data": literal(props.user_data),
                    "enable-oslogin": "TRUE",
                    "block-project-ssh-keys": "TRUE",
                    "serial-port-enable": "FALSE",
                    "disable-legacy-endpoints": "TRUE",
                },
                "labels": {**self._labels, own_key("rank"): "${each.key}"},
                "can_ip_forward": False,
                "deletion_protection": False,
                "allow_stopping_for_update": False,
                "timeouts": {"create": CREATE_LIMIT, "delete": DELETE_LIMIT},
            },
            for_each=dict(props.ranks),
            # everything: a reviewed plan starts nodes and ends them, it never touches one that trains
            lifecycle={"ignore_changes": "all"},
        )

    def described(self) -> str:
        """Expression: rank key -> instance id, address, zone, cloud.  The id is `projects/P/zones/Z/instances/NAME`."""
        fields = (
            "instance_id = node.id, private_ip = node.network_interface[0].network_ip, "
            f'zone = "{self._props.zone}", cloud = "gcp"'
        )
        return f"${{{{for rank, node in {self.nodes.address} : rank => {{{fields}}}}}}}"

    def _disk(self, kind: str) -> dict[str, Any]:
        """Encrypted in any case; with the user's key where one is given."""
        props = self._props
        return {
            "auto_delete": True,
            "kms_key_self_link": props.kms_key,
            "initialize_params": {
                "image": props.image,
                "size": props.node.disk_gb,
                "type": kind,
                "labels": self._labels,
            },
        }

    def _interfaces(self) -> list[dict[str, Any]]:
        """The node's own interface first, then those of its fabric.  `access_config` is a public address: only a tunnel's node has one, on the first."""
        props = self._props
        pinned = any(address for _, address in props.ranks)
        first = {
            "subnetwork": props.subnet,
            "network_ip": '${each.value == "" ? null : each.value}' if pinned else None,
            "nic_type": "GVNIC",
            "stack_type": "IPV4_ONLY",
            "access_config": self._endpoint(),
        }
        bare = props.fabric_subnets.removeprefix("${").removesuffix("}")
        return [
            first,
            *(
                {"subnetwork": f"${{{bare}[{number}]}}", "nic_type": kind}
                for number, kind in enumerate(fabric_interfaces(props.node.fabric))
            ),
        ]

    def _endpoint(self) -> list[dict[str, Any]] | None:
        if not self._props.address_ids:
            return None
        ids = self._props.address_ids.removeprefix("${").removesuffix("}")
        return [{"nat_ip": f"${{{ids}[each.key]}}", "network_tier": NETWORK_TIER}]


def _scheduling(props: NodesProps) -> dict[str, Any]:
    """How the capacity is bought, and when the cloud ends the node by itself.  A GPU cannot be moved to another host: TERMINATE."""
    bounded = run_limit(props.node.stop_after_hours)
    model = {
        CapacityType.SPOT: "SPOT",
        CapacityType.ON_DEMAND: "STANDARD",
        CapacityType.RESERVED: "RESERVATION_BOUND" if props.reserved_block else "STANDARD",
    }[props.capacity]
    return {
        "provisioning_model": model,
        "preemptible": True if model == "SPOT" else None,
        # a node that comes back by itself is one that nobody counts
        "automatic_restart": False,
        "on_host_maintenance": "TERMINATE",
        # a stopped machine keeps its disk, and the bill for it.  Said only where the cloud itself ends the node: elsewhere it is refused
        "instance_termination_action": "DELETE" if model != "STANDARD" or bounded else None,
        "max_run_duration": {"seconds": bounded} if bounded else None,
    }


def _reservation(props: NodesProps) -> dict[str, Any] | None:
    """The named reservation.  On demand none at all: left to itself, a node uses up an open reservation that somebody else counts on."""
    if props.capacity is CapacityType.SPOT:  # spot capacity is never reserved
        return None
    if props.capacity is CapacityType.ON_DEMAND:
        return {"type": "NO_RESERVATION"}
    named = {"key": "compute.googleapis.com/reservation-name", "values": [literal(props.reservation)]}
    return {"type": "SPECIFIC_RESERVATION", "specific_reservation": named}


def run_limit(hours: float | None) -> int | None:
    """Seconds after which Compute Engine deletes a running node; None for no limit."""
    if hours is None:
        return None
    return min(max(math.ceil(hours * _SECONDS_PER_HOUR), 60), LONGEST_RUN_SECONDS)
