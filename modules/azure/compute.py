"""The nodes of one launch attempt on Azure with what is inseparable from them: interfaces and their groups, boot disks.

A running node is never updated or replaced.  Nobody signs in: Azure asks for a public key, and gets one without a private half.
Hardened without a choice: encryption at host (the subscription needs the feature `Microsoft.Compute/EncryptionAtHost`), no password, no extension, no
public address but the endpoint of a tunnelled job's node.  Azure's metadata service has no token mode; it answers only requests with the header `Metadata: true`, from the machine itself.
Secure boot and vTPM stay off: the drivers of the packaged images are not signed for them (`modules.azure.images`).
"""

# pyright: basic

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from modules import cdk
from modules.azure.images import image_reference
from modules.azure.names import azure_tags
from planner.model.offer import CapacityType

USER = "skyplan"
#: An Ed25519 public key whose private half nobody has or can have.  Its 32 bytes are SHA-256 of the text "skyplan: nobody has the private half of
#: this key 1"; the number is the first, from 0, whose digest is a point of the curve's prime-order group.  A private half would be that point's
#: discrete logarithm, which nobody can compute, and no point can be chosen to have a known one through a hash.  A test computes it anew.
NOBODY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHqNvCK4QxSSwmVc5kB9W7afPUVNaWKJZ6MAIQBnT4zw"
#: Azure refuses a launch in minutes; one that takes longer is not coming.  Deleting waits for the notice below
CREATE_TIMEOUT, DELETE_TIMEOUT = "20m", "30m"
#: how long a node that is deleted may take for its checkpoint, unless it acknowledges the notice (5 to 15 minutes)
NOTICE = "PT5M"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesProps:
    """`ranks`: (rank key, address or "") in rank order; `name` and a rank make a node's name, at most 64 characters.

    custom_data   base64
    reservation   id of a capacity reservation group, for RESERVED
    disk_key      id of a disk encryption set
    address_ids   rank key -> public endpoint that the node gets; None for a job without a tunnel

    `group`, `subnet`, `security_group`, `peers`, `identity`, `scale_set` and `proximity_group` are references to the stack's variables; None for the last
    is none, the scale set may be empty text.
    """

    name: str
    region: str
    zone: str
    instance_type: str
    image: str
    capacity: CapacityType
    reservation: str
    ranks: tuple[tuple[str, str], ...]
    custom_data: str
    disk_gb: int
    disk_key: str | None
    group: str
    subnet: str
    security_group: str
    peers: str
    identity: str
    scale_set: str
    proximity_group: str | None
    tags: tuple[tuple[str, str], ...]
    address_ids: str | None = None


class Nodes(cdk.Construct):
    """One machine and one interface with `for_each` over the ranks."""

    def __init__(self, scope: cdk.Stack, props: NodesProps) -> None:
        super().__init__(scope, "nodes")
        self._props = props
        self._common = {
            "resource_group_name": props.group,
            "location": props.region,
            "tags": azure_tags(props.tags, ("skyplan:rank", "${each.key}")),
        }
        self.interfaces = self._interfaces()
        guards = (
            self._joined("security_group", "network_security_group_id", props.security_group),
            self._joined("application_security_group", "application_security_group_id", props.peers),
        )
        self.nodes = cdk.Resource(
            self,
            "node",
            "azurerm_linux_virtual_machine",
            {
                "name": f"{props.name}-${{each.key}}",
                "computer_name": f"{props.name}-${{each.key}}",
                **self._common,
                "zone": props.zone or None,
                "size": props.instance_type,
                "network_interface_ids": [f"${{{self.interfaces.address}[each.key].id}}"],
                **_system(props),
                **_placed(props),
                **_capacity(props),
                "timeouts": {"create": CREATE_TIMEOUT, "delete": DELETE_TIMEOUT},
            },
            for_each=dict(props.ranks),
            lifecycle={"ignore_changes": "all"},
            # no node is there before its rules are
            depends_on=guards,
        )

    def described(self) -> str:
        """Expression: rank key -> instance id, address, zone, cloud."""
        address = f"{self.interfaces.address}[rank].ip_configuration[0].private_ip_address"
        fields = f'instance_id = node.id, private_ip = {address}, zone = "{self._props.zone}", cloud = "azure"'
        return f"${{{{for rank, node in {self.nodes.address} : rank => {{{fields}}}}}}}"

    def _interfaces(self) -> cdk.Resource:
        props = self._props
        return cdk.Resource(
            self,
            "node",
            "azurerm_network_interface",
            {
                "name": f"{props.name}-${{each.key}}",
                **self._common,
                "accelerated_networking_enabled": True,
                "ip_configuration": [
                    {
                        "name": "node",
                        "subnet_id": props.subnet,
                        "private_ip_address_allocation": '${each.value == "" ? "Dynamic" : "Static"}',
                        "private_ip_address": '${each.value == "" ? null : each.value}',
                        "public_ip_address_id": _of_rank(props.address_ids) if props.address_ids else None,
                    }
                ],
            },
            for_each=dict(props.ranks),
            lifecycle={"ignore_changes": "all"},
        )

    def _joined(self, group: str, argument: str, value: str) -> cdk.Resource:
        """Every interface put into a group."""
        return cdk.Resource(
            self,
            "node",
            f"azurerm_network_interface_{group}_association",
            {"network_interface_id": "${each.value.id}", argument: value},
            for_each=f"${{{self.interfaces.address}}}",
        )


def _system(props: NodesProps) -> dict[str, Any]:
    """What boots: image, disk, identity, the ways in that are shut."""
    image = image_reference(props.image)
    return {
        **({"source_image_id": image} if isinstance(image, str) else {"source_image_reference": image}),
        "os_disk": {
            "name": f"{props.name}-${{each.key}}",
            "caching": "ReadWrite",
            "storage_account_type": "Premium_LRS",
            "disk_size_gb": props.disk_gb,
            "disk_encryption_set_id": props.disk_key,
        },
        "identity": {"type": "UserAssigned", "identity_ids": [props.identity]},
        "custom_data": props.custom_data,
        "admin_username": USER,
        "admin_ssh_key": [{"username": USER, "public_key": NOBODY}],
        "disable_password_authentication": True,
        "encryption_at_host_enabled": True,
        # the images bring the agent, which reports that the machine is up; without extensions it runs nothing for anybody
        "provision_vm_agent": True,
        "allow_extension_operations": False,
        "boot_diagnostics": {},
        "termination_notification": {"enabled": True, "timeout": NOTICE},
    }


def _placed(props: NodesProps) -> dict[str, Any]:
    """Where the machines are, relative to each other."""
    return {
        "virtual_machine_scale_set_id": _or_null(props.scale_set),
        "proximity_placement_group_id": _or_null(props.proximity_group) if props.proximity_group else None,
    }


def _capacity(props: NodesProps) -> dict[str, Any]:
    """How the capacity is bought.  On-demand carries none of it: Azure refuses `eviction_policy` without Spot."""
    match props.capacity:
        case CapacityType.ON_DEMAND:
            return {}
        case CapacityType.SPOT:
            # -1: up to the on-demand price, never evicted for price; Delete: an evicted node that is kept is billed for its disk
            return {"priority": "Spot", "eviction_policy": "Delete", "max_bid_price": -1}
        case CapacityType.RESERVED:
            return {"capacity_reservation_group_id": props.reservation}


def _of_rank(reference: str) -> str:
    """What the variable holds for the rank."""
    return f"${{{reference.removeprefix('${').removesuffix('}')}[each.key]}}"


def _or_null(reference: str) -> str:
    """The variable's value, null where it is empty."""
    bare = reference.removeprefix("${").removesuffix("}")
    return f'${{{bare} == "" ? null : {bare}}}'
