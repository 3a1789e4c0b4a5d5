"""What skyplan does on Azure and the actions that it takes, by resource type of its stacks, by step, and by own call.

By Microsoft's operations of each resource provider and the azurerm provider's requests (4.55), as they are known here; a reference from one resource
to another takes an action on the other (`join`, `assign`, `deploy`), which only the error `LinkedAuthorizationFailed` tells for sure.
Doubtful: a machine that joins a flexible scale set or a proximity group is taken to need `write` on it.  Never run against live Azure.
Decides nothing about who gets what: that is `planner.iam.control`'s.
"""

from __future__ import annotations

from planner.iam.operations.gcp import BROKER, NOT_YET, REFRESHED
from planner.iam.operations.steps import Managed, also, call
from planner.model.control import Operation, Step
from planner.model.grants import Identity, Permission

_COMPUTE, _NETWORK, _GROUP = "Microsoft.Compute", "Microsoft.Network", "Microsoft.Resources/subscriptions"
_IDENTITY = "Microsoft.ManagedIdentity/userAssignedIdentities"
_AUTHORIZATION = "Microsoft.Authorization"
_BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
_ADDRESSES, _INTERFACES = f"{_NETWORK}/publicIPAddresses", f"{_NETWORK}/networkInterfaces"
_SUBNETS = f"{_NETWORK}/virtualNetworks/subnets"
_RULES, _PEERS = f"{_NETWORK}/networkSecurityGroups", f"{_NETWORK}/applicationSecurityGroups"
_MACHINES, _DISKS = f"{_COMPUTE}/virtualMachines", f"{_COMPUTE}/disks"


def _whole(stack: str, resource: str, permission: Permission, kind: str, *more: str) -> Managed:
    """A resource that the deployer writes, reads and deletes; `more` is what writing it refers to."""
    write = (f"{kind}/read", f"{kind}/write", *more)
    return Managed(
        stack=stack,
        resource=resource,
        identity=Identity.DEPLOYER,
        permission=permission,
        create=write,
        read=(f"{kind}/read",),
        update=write,
        delete=(f"{kind}/delete", f"{kind}/read"),
    )


def _joined(resource: str, kind: str, *more: str) -> Managed:
    """An association in the network stack: a field of one resource, written with the whole of it."""
    write = (f"{kind}/read", f"{kind}/write", *more)
    return Managed(
        stack="network",
        resource=resource,
        identity=Identity.DEPLOYER,
        permission=Permission.MANAGE_NETWORK,
        create=write,
        read=(f"{kind}/read",),
        delete=write,
    )


_NET, _LAUNCH, _NODE = Permission.MANAGE_NETWORK, Permission.MANAGE_LAUNCH, Permission.MANAGE_NODE_IDENTITY
_DEPLOYED = (
    _whole("network", "azurerm_resource_group", _NET, f"{_GROUP}/resourceGroups"),
    _whole("network", "azurerm_virtual_network", _NET, f"{_NETWORK}/virtualNetworks"),
    _whole("network", "azurerm_subnet", _NET, _SUBNETS, f"{_NETWORK}/virtualNetworks/read"),
    _whole("network", "azurerm_nat_gateway", _NET, f"{_NETWORK}/natGateways"),
    _whole("network", "azurerm_public_ip", _NET, _ADDRESSES),
    _joined(
        "azurerm_nat_gateway_public_ip_association",
        f"{_NETWORK}/natGateways",
        f"{_ADDRESSES}/join/action",
        f"{_ADDRESSES}/read",
    ),
    _joined("azurerm_subnet_nat_gateway_association", _SUBNETS, f"{_NETWORK}/natGateways/join/action"),
    _whole("addresses", "azurerm_public_ip", Permission.RESERVE_ADDRESS, _ADDRESSES),
    _whole("access", "azurerm_application_security_group", _LAUNCH, _PEERS),
    _whole("access", "azurerm_network_security_group", _LAUNCH, _RULES),
    _whole(
        "access",
        "azurerm_network_security_rule",
        _LAUNCH,
        f"{_RULES}/securityRules",
        f"{_PEERS}/joinNetworkSecurityRule/action",
    ),
    _whole("access", "azurerm_orchestrated_virtual_machine_scale_set", _LAUNCH, f"{_COMPUTE}/virtualMachineScaleSets"),
    _whole("access", "azurerm_proximity_placement_group", _LAUNCH, f"{_COMPUTE}/proximityPlacementGroups"),
    _whole("access", "azurerm_user_assigned_identity", _NODE, _IDENTITY),
    Managed(
        stack="access",
        resource="azurerm_role_assignment",
        identity=Identity.DEPLOYER,
        permission=_NODE,
        create=(
            f"{_AUTHORIZATION}/roleAssignments/read",
            f"{_AUTHORIZATION}/roleAssignments/write",
            f"{_AUTHORIZATION}/roleDefinitions/read",
        ),
        read=(f"{_AUTHORIZATION}/roleAssignments/read",),
        delete=(f"{_AUTHORIZATION}/roleAssignments/delete", f"{_AUTHORIZATION}/roleAssignments/read"),
    ),
    _whole("access", "azurerm_role_definition", _NODE, f"{_AUTHORIZATION}/roleDefinitions"),
    Managed(
        stack="access",
        resource="data.azurerm_resources",
        identity=Identity.DEPLOYER,
        permission=_NODE,
        # the list holds what one may read
        read=(f"{_GROUP}/resources/read", "Microsoft.KeyVault/vaults/read", "Microsoft.Storage/storageAccounts/read"),
    ),
    Managed(
        stack="access",
        resource="data.azurerm_user_assigned_identity",
        identity=Identity.DEPLOYER,
        permission=_NODE,
        read=(f"{_IDENTITY}/read",),
    ),
)
_INTERFACE = Managed(
    stack="compute",
    resource="azurerm_network_interface",
    identity=Identity.ORCHESTRATOR,
    permission=Permission.LAUNCH,
    create=(f"{_INTERFACES}/read", f"{_INTERFACES}/write", f"{_SUBNETS}/join/action"),
    delete=(f"{_INTERFACES}/delete",),
    ends=Permission.TERMINATE,
)
_LAUNCHED = (
    _INTERFACE,
    *(
        Managed(
            stack="compute",
            resource=f"azurerm_network_interface_{group}_association",
            identity=Identity.ORCHESTRATOR,
            permission=Permission.LAUNCH,
            create=(f"{_INTERFACES}/read", f"{_INTERFACES}/write", join),
            delete=(f"{_INTERFACES}/read", f"{_INTERFACES}/write"),
        )
        for group, join in (
            ("security_group", f"{_RULES}/join/action"),
            ("application_security_group", f"{_PEERS}/joinIpConfiguration/action"),
        )
    ),
)
_MACHINE = Managed(
    stack="compute",
    resource="azurerm_linux_virtual_machine",
    identity=Identity.ORCHESTRATOR,
    permission=Permission.LAUNCH,
    create=(
        f"{_COMPUTE}/capacityReservationGroups/deploy/action",
        f"{_COMPUTE}/diskEncryptionSets/read",
        f"{_COMPUTE}/images/read",
        f"{_COMPUTE}/locations/operations/read",
        f"{_COMPUTE}/proximityPlacementGroups/read",
        f"{_COMPUTE}/proximityPlacementGroups/write",
        f"{_COMPUTE}/virtualMachineScaleSets/read",
        f"{_COMPUTE}/virtualMachineScaleSets/write",
        f"{_DISKS}/write",
        f"{_MACHINES}/write",
        f"{_INTERFACES}/join/action",
    ),
    delete=(f"{_COMPUTE}/locations/operations/read", f"{_DISKS}/delete", f"{_MACHINES}/delete"),
    ends=Permission.TERMINATE,
)
_LOOK = (f"{_MACHINES}/read", f"{_MACHINES}/instanceView/read", f"{_DISKS}/read", f"{_GROUP}/resourceGroups/read")
_LISTED = (f"{_MACHINES}/read", f"{_MACHINES}/instanceView/read", f"{_INTERFACES}/read")
_ENDED = (
    f"{_MACHINES}/read",
    f"{_MACHINES}/delete",
    f"{_DISKS}/delete",
    f"{_INTERFACES}/delete",
    f"{_COMPUTE}/locations/operations/read",
)
#: the Retail Prices API is public
_MARKET = (f"{_COMPUTE}/locations/usages/read", f"{_COMPUTE}/skus/read")
#: data actions: a state is a blob, its lock a lease, which is part of write
_STATE = (f"{_BLOBS}/read", f"{_BLOBS}/write")
LISTER = "planner.clouds.azure.AzureLister"
BACKEND = "terraform.backend.azurerm"
#: of the actions above, those on data
DATA_ACTIONS = frozenset((*_STATE, f"{_BLOBS}/add/action"))

OPERATIONS: tuple[Operation, ...] = (
    *(row for managed in (*_DEPLOYED, *_LAUNCHED, _MACHINE) for row in managed.rows()),
    also(_INTERFACE, Permission.DESCRIBE, (f"{_INTERFACES}/read",), Step.READ),
    also(_INTERFACE, Permission.ATTACH_ADDRESS, (f"{_ADDRESSES}/join/action", f"{_ADDRESSES}/read")),
    also(_MACHINE, Permission.DESCRIBE, _LOOK, Step.READ),
    also(_MACHINE, Permission.PASS_IDENTITY, (f"{_IDENTITY}/assign/action", f"{_IDENTITY}/read")),
    call(LISTER, Identity.ORCHESTRATOR, Permission.DESCRIBE, _LISTED),
    call(LISTER, Identity.ORCHESTRATOR, Permission.TERMINATE, _ENDED),
    call(LISTER, Identity.PLANNER, Permission.DESCRIBE, _LISTED),
    call("planner.clouds.feeds.azure.AzureFeed", Identity.PLANNER, Permission.READ_MARKET, _MARKET, unused=REFRESHED),
    call("catalog", Identity.PLANNER, Permission.READ_MARKET, (f"{_COMPUTE}/locations/vmSizes/read",), unused=NOT_YET),
    call(BACKEND, Identity.DEPLOYER, Permission.KEEP_STATE, _STATE),
    call(BACKEND, Identity.ORCHESTRATOR, Permission.KEEP_STATE, _STATE),
    call(
        "broker",
        Identity.BROKER,
        Permission.MINT_CREDENTIALS,
        (
            f"{_BLOBS}/add/action",
            f"{_BLOBS}/read",
            f"{_BLOBS}/write",
            "Microsoft.Storage/storageAccounts/blobServices/generateUserDelegationKey/action",
        ),
        unused=BROKER,
    ),
)
