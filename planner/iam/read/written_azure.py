"""The blocks with rights in them that skyplan's Azure stacks are made of, from their inputs: `modules.azure` without a CDK."""

from __future__ import annotations

import re
from typing import Any

from planner.iam.read.written import Blocks, add, boots, digits, empty, fit, literal, tags
from planner.model.control_names import CHECKPOINTS, IDENTITY_USER, NODE_JOIN, control_name, role_name
from planner.model.grants import Identity
from planner.model.offer import CapacityType
from planner.model.stack import AccessInput, AnyStack, ComputeInput, FoundationInput, PolicyDocument

_IDENTITY, _ASSIGNMENT, _DEFINITION = (
    "azurerm_user_assigned_identity",
    "azurerm_role_assignment",
    "azurerm_role_definition",
)
_NSG, _ASG = "azurerm_network_security_group", "azurerm_application_security_group"
_ACCOUNT_TYPE = "Microsoft.Storage/storageAccounts"


def blocks(given: AnyStack) -> Blocks:
    """Of a stack of any kind."""
    out = empty()
    if isinstance(given, AccessInput):
        _access(out, given)
    elif isinstance(given, ComputeInput):
        _compute(out, given)
    elif isinstance(given, FoundationInput):
        _foundation(out, given)
    return out


def provider(given: AnyStack) -> dict[str, Any]:
    """Its arguments, as far as ids are made of them."""
    return {"azurerm": {"subscription_id": given.account} if given.account else {}}


def _name(given: AnyStack, *parts: str, limit: int) -> str:
    text = "-".join(("skyplan", given.project, given.name, *parts))
    plain = re.sub(r"[^A-Za-z0-9-]", "-", text)
    return fit(plain if plain == text else f"{plain}-{digits(text)}", limit)


def _found(out: Blocks, kind: str, name: str, label: str) -> str:
    """Bare expression of the id of a store that is looked for."""
    add(out, "azurerm_resources", label, {"type": kind, "name": name}, section="data")
    return f'try(data.azurerm_resources.{label}.resources[0].id, "")'


def _access(out: Blocks, given: AccessInput) -> None:
    group = "${var.resource_group}"
    common = {"resource_group_name": group, "tags": tags(given)}
    add(out, _IDENTITY, "node", {"name": _name(given, limit=128), **common})
    for kind in (_NSG, _ASG):
        add(out, kind, "nodes", {"name": _name(given, limit=80), **common})
    for policy in given.policies:
        _assign(out, given, policy)
    if given.orchestrator is None:
        return
    orchestrator = {
        "name": control_name(given.project, Identity.ORCHESTRATOR.value, limit=128),
        "resource_group_name": group,
    }
    add(out, _IDENTITY, "orchestrator", orchestrator, section="data")
    for label, role, on in (
        ("identity", IDENTITY_USER, f"{_IDENTITY}.node"),
        ("rules", NODE_JOIN, f"{_NSG}.nodes"),
        ("peers", NODE_JOIN, f"{_ASG}.nodes"),
    ):
        values = {
            "scope": f"${{{on}.id}}",
            "role_definition_name": role_name(given.project, given.target, role),
            "principal_id": f"${{data.{_IDENTITY}.orchestrator.principal_id}}",
        }
        add(out, _ASSIGNMENT, f"orchestrator-{label}", values)


def _assign(out: Blocks, given: AccessInput, policy: PolicyDocument) -> None:
    document = policy.document
    kind, store = document["resource"]["type"], document["resource"]["name"]
    found = _found(out, kind, store, f"{kind.rsplit('/', 1)[1]}-{store}")
    if "definition" in document and given.orchestrator is not None:
        role = {"role_definition_name": role_name(given.project, given.target, CHECKPOINTS)}
    elif "definition" in document:
        held: dict[str, Any] = {"data_actions": document["definition"]["data_actions"]}
        values = {"name": _name(given, store, limit=128), "permissions": [held]}
        add(out, _DEFINITION, f"checkpoints-{store}", values)
        role = {"role_definition_id": f"${{{_DEFINITION}.checkpoints-{store}.role_definition_resource_id}}"}
    else:
        role = {"role_definition_name": document["role"]}
    values = {
        "scope": f"${{{found}}}{document['child']}",
        **role,
        "principal_id": f"${{{_IDENTITY}.node.principal_id}}",
        "condition": literal(document["condition"]) if "condition" in document else None,
    }
    add(out, _ASSIGNMENT, policy.name, values)


def _compute(out: Blocks, given: ComputeInput) -> None:
    values = {
        "identity": {"type": "UserAssigned", "identity_ids": ["${var.identity_id}"]},
        "custom_data": boots(given.workload, given.node),
        "priority": "Spot" if given.capacity is CapacityType.SPOT else None,
        "tags": tags(given),
    }
    add(out, "azurerm_linux_virtual_machine", "node", values)


def _foundation(out: Blocks, given: FoundationInput) -> None:
    for one in given.identities:
        word = one.identity.value
        add(out, _IDENTITY, word, {"name": one.name, "resource_group_name": given.resource_group, "tags": tags(given)})
        if ci := given.ci:
            for subject in one.subjects:
                values = {
                    "parent_id": f"${{{_IDENTITY}.{word}.id}}",
                    "issuer": ci.issuer,
                    "audience": [ci.audience],
                    "subject": literal(subject),
                }
                add(out, "azurerm_federated_identity_credential", f"{word}-{digits(subject)}", values)
    for one in given.identities:
        for policy in one.policies:
            _role(
                out, given, policy, (f"${{{_IDENTITY}.{one.identity.value}.principal_id}}", *map(literal, one.trusted))
            )


def _role(out: Blocks, given: FoundationInput, policy: PolicyDocument, principals: tuple[str, ...]) -> None:
    """The role, for the identity and for whom the platform team trusts to be as good as it."""
    document = policy.document
    permissions = [{"actions": document["actions"], "data_actions": document["data_actions"]}]
    values = {"name": document["role"], "role_definition_id": document["guid"], "permissions": permissions}
    add(out, _DEFINITION, policy.name, values)
    for number, principal in enumerate(principals if document["on"] is not None else ()):
        label = f"{policy.name}-{number}" if number else policy.name
        assigned = {
            "role_definition_id": f"${{{_DEFINITION}.{policy.name}.role_definition_resource_id}}",
            "principal_id": principal,
            "condition": document.get("condition"),
        }
        add(out, _ASSIGNMENT, label, {"scope": _place(out, given, document["on"]), **assigned})
        if "elsewhere" in document:
            add(out, _ASSIGNMENT, f"{label}-elsewhere", {"scope": "${each.value}", **assigned})


def _place(out: Blocks, given: FoundationInput, on: Any) -> str:
    subscription = f"/subscriptions/{given.account}"
    if on == "group":
        return f"{subscription}/resourceGroups/{given.resource_group}"
    if on == "subscription":
        return subscription
    found = _found(out, _ACCOUNT_TYPE, on["account"], f"state-{on['account']}")
    return f"${{{found}}}/blobServices/default/containers/{on['container']}"
