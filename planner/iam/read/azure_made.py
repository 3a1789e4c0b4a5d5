"""What Azure makes of a block, as far as it follows from what is written: ids.  Raises KeyError for the rest.

An id's parts that are not known stay references within it, so that it is plain how much of a subscription an id names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.iam.read.references import Block, Computed, Document

_TYPES = {
    "azurerm_user_assigned_identity": "Microsoft.ManagedIdentity/userAssignedIdentities",
    "azurerm_network_security_group": "Microsoft.Network/networkSecurityGroups",
    "azurerm_application_security_group": "Microsoft.Network/applicationSecurityGroups",
    "azurerm_storage_account": "Microsoft.Storage/storageAccounts",
    "azurerm_key_vault": "Microsoft.KeyVault/vaults",
    "azurerm_linux_virtual_machine": "Microsoft.Compute/virtualMachines",
    "azurerm_virtual_network": "Microsoft.Network/virtualNetworks",
}


def _subscription(document: Document, block: Block) -> str:
    given = document.providers.get("azurerm", {}).get("subscription_id")
    return str(given) if given else f"${{{block.key}.subscription_id}}"


def _resource(kind: str) -> Computed:
    def made(document: Document, block: Block, name: str) -> Any:
        if name != "id":
            raise KeyError(name)
        group = document.text(block, "resource_group_name") or f"${{{block.key}.resource_group_name}}"
        own = document.text(block, "name")
        return f"/subscriptions/{_subscription(document, block)}/resourceGroups/{group}/providers/{kind}/{own}"

    return made


def _group(document: Document, block: Block, name: str) -> Any:
    if name != "id":
        raise KeyError(name)
    return f"/subscriptions/{_subscription(document, block)}/resourceGroups/{document.text(block, 'name')}"


def _whole(document: Document, block: Block, name: str) -> Any:
    own = document.text(block, "subscription_id") or _subscription(document, block)
    return {"id": f"/subscriptions/{own}", "subscription_id": own}[name]


def _management_group(document: Document, block: Block, name: str) -> Any:
    if name != "id":
        raise KeyError(name)
    own = document.text(block, "name") or f"${{{block.key}.name}}"
    return f"/providers/Microsoft.Management/managementGroups/{own}"


def _listed(document: Document, block: Block, name: str) -> Any:
    """Stores that are looked for by type and name: their group is what is not known."""
    kind, own = document.text(block, "type"), document.text(block, "name")
    if name != "resources" or not (kind and own):
        raise KeyError(name)
    group = f"${{{block.key}.resources[0].resource_group_name}}"
    place = f"/subscriptions/{_subscription(document, block)}/resourceGroups/{group}"
    return [{"id": f"{place}/providers/{kind}/{own}", "name": own, "type": kind}]


COMPUTED: Mapping[str, Computed] = {
    **{name: _resource(kind) for name, kind in _TYPES.items()},
    **{f"data.{name}": _resource(kind) for name, kind in _TYPES.items()},
    "azurerm_resource_group": _group,
    "data.azurerm_resource_group": _group,
    "azurerm_subscription": _whole,
    "data.azurerm_subscription": _whole,
    "data.azurerm_client_config": _whole,
    "azurerm_management_group": _management_group,
    "data.azurerm_management_group": _management_group,
    "data.azurerm_resources": _listed,
}
