"""The contract in Azure's words."""

from __future__ import annotations

import re
from typing import Any

from planner.model.offer import CapacityType, Fabric
from tests.stacks.cases import Rendered
from tests.stacks.checker import resources
from tests.stacks.rules.common import Found, data_rights, differs, ends_in_user_data, named, node, of_type, secrets

_PEERS = ["${azurerm_application_security_group.nodes.id}"]
_BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
_WRITE = [f"{_BLOBS}/read", f"{_BLOBS}/write", f"{_BLOBS}/add/action"]
_SPOT = {"priority": "Spot", "eviction_policy": "Delete", "max_bid_price": -1}


def _card(r: Rendered) -> dict[str, Any]:
    return of_type(r.cmp, "azurerm_network_interface").get("node", {})


def public_address(r: Rendered) -> Found:
    addresses = _card(r).get("ip_configuration", [])
    if len(addresses) != 1 or "public_ip_address_id" in addresses[0]:
        yield "the node has a public address"
    if node(r).get("network_interface_ids") != ["${azurerm_network_interface.node[each.key].id}"]:
        yield "the node has other interfaces"
    joined = of_type(r.net, "azurerm_nat_gateway_public_ip_association")
    used = {body.get("public_ip_address_id") for body in joined.values()}
    for stack, document in r.documents.items():
        for name in of_type(document, "azurerm_public_ip"):
            if stack != "net" or f"${{azurerm_public_ip.{name}.id}}" not in used:
                yield f"{stack}: public address {name} is not the NAT gateway's"
    if _card(r).get("ip_forwarding_enabled"):
        yield "the node may forward others' packets"


def ingress(r: Rendered) -> Found:
    rules = of_type(r.acc, "azurerm_network_security_rule")
    group = "${azurerm_network_security_group.nodes.name}"
    if any(rule.get("network_security_group_name") != group for rule in rules.values()):
        yield "a rule in another group"
    if "security_rule" in of_type(r.acc, "azurerm_network_security_group").get("nodes", {"security_rule": 0}):
        yield "inline rules"
    inbound = [rule for rule in rules.values() if rule.get("direction") == "Inbound"]
    for rule in inbound:
        if rule.get("access") != "Allow":
            continue
        ends = [rule.get(f"{end}_application_security_group_ids") for end in ("source", "destination")]
        if ends != [_PEERS, _PEERS] or any(key.startswith("source_address") for key in rule):
            yield f"{rule.get('name')}: open to more than the job's own nodes"
    shut = {
        "access": "Deny",
        "protocol": "*",
        "source_address_prefix": "*",
        "source_port_range": "*",
        "destination_address_prefix": "*",
        "destination_port_range": "*",
        "priority": 4096,
    }
    for direction in ("Inbound", "Outbound"):
        mine = [rule for rule in rules.values() if rule.get("direction") == direction]
        if not any({key: rule.get(key) for key in shut} == shut for rule in mine):
            yield f"{direction}: Azure's defaults let the whole network in"
    if not any(rule.get("access") == "Allow" for rule in inbound):
        yield "peers do not reach each other"
    yield from _guarded(r)


def _guarded(r: Rendered) -> Found:
    """Every interface is in both of the job's own groups before its node is there."""
    for kind in ("network", "application"):
        groups = of_type(r.acc, f"azurerm_{kind}_security_group")
        if list(groups) != ["nodes"] or r.case.workload.name not in str(groups["nodes"].get("name")):
            yield f"{kind} security groups are not the job's own: {sorted(groups)}"
    wanted = {
        "security_group": ("network_security_group_id", "${var.security_group_id}"),
        "application_security_group": ("application_security_group_id", "${var.peers_id}"),
    }
    for word, (argument, value) in wanted.items():
        kind = f"azurerm_network_interface_{word}_association"
        body = of_type(r.cmp, kind).get("node", {})
        found = (body.get("for_each"), body.get("network_interface_id"), body.get(argument))
        if found != ("${azurerm_network_interface.node}", "${each.value.id}", value):
            yield f"interfaces are in no {word}"
        if f"{kind}.node" not in node(r).get("depends_on", []):
            yield f"a node may be up before its {word} is"
    for launch in r.acc["output"].get("launch", {}).get("value", {}).values():
        ids = (launch.get("security_group_id"), [launch.get("peers_id")])
        if ids != ("${azurerm_network_security_group.nodes.id}", _PEERS):
            yield "nodes are launched into other groups"


def way_out(r: Rendered) -> Found:
    web = of_type(r.acc, "azurerm_network_security_rule").get("web-outbound", {})
    if (web.get("direction"), web.get("access"), web.get("destination_port_ranges")) != (
        "Outbound",
        "Allow",
        ["80", "443"],
    ):
        yield f"outbound {web}"
    if r.case.network.own:
        return
    subnet = of_type(r.net, "azurerm_subnet").get("nodes", {})
    if subnet.get("default_outbound_access_enabled") is not False:
        yield "a second way out, Azure's own"
    gateway = "${azurerm_nat_gateway.net.id}"
    nat = of_type(r.net, "azurerm_subnet_nat_gateway_association").get("nodes", {})
    if (nat.get("for_each"), nat.get("nat_gateway_id"), nat.get("subnet_id")) != (
        "${azurerm_subnet.nodes}",
        gateway,
        "${each.value.id}",
    ):
        yield "subnets have no NAT gateway"
    address = of_type(r.net, "azurerm_nat_gateway_public_ip_association").get("net", {})
    if (address.get("nat_gateway_id"), address.get("public_ip_address_id")) != (gateway, "${azurerm_public_ip.nat.id}"):
        yield "the NAT gateway has no address"
    if of_type(r.net, "azurerm_public_ip").get("nat", {}).get("sku") != "Standard":
        yield "a NAT gateway takes Standard addresses only"


def image(r: Rendered) -> Found:
    wanted = r.case.template.machine_image
    if wanted.startswith("/"):
        if node(r).get("source_image_id") != wanted:
            yield f"image {node(r).get('source_image_id')}"
        return
    found = node(r).get("source_image_reference", {})
    if ":".join(str(found.get(key)) for key in ("publisher", "offer", "sku", "version")) != wanted:
        yield f"image {found}"
    if found.get("version") == "latest":
        yield "the image is not pinned"


def disks(r: Rendered) -> Found:
    if node(r).get("encryption_at_host_enabled") is not True:
        yield "no encryption at host"
    if node(r).get("os_disk", {}).get("disk_encryption_set_id") != r.case.compute.kms_key_arn:
        yield "not the user's key"


def metadata(r: Rendered) -> Found:
    """Azure's metadata service has no setting; what hardens a node is that nobody signs in and nothing is run for anybody."""
    made = node(r)
    wanted = {"disable_password_authentication": True, "allow_extension_operations": False, "boot_diagnostics": {}}
    if {key: made.get(key) for key in wanted} != wanted:
        yield f"sign-in { ({key: made.get(key) for key in wanted}) }"
    keys = [key.get("public_key", "") for key in made.get("admin_ssh_key", [])]
    if len(keys) != 1 or not keys[0].startswith("ssh-ed25519 "):
        yield "more than the key that nobody has"
    if "admin_password" in made:
        yield "a password"


def capacity(r: Rendered) -> Found:
    given, made = r.case.compute, node(r)
    wanted: dict[CapacityType, dict[str, Any]] = {
        CapacityType.ON_DEMAND: {},
        CapacityType.SPOT: _SPOT,
        CapacityType.RESERVED: {"capacity_reservation_group_id": given.reservation},
    }
    said = {key: made[key] for key in (*_SPOT, "capacity_reservation_group_id") if key in made}
    if said != wanted[given.capacity]:
        yield f"{given.capacity.value}: {said}"
    near = None if given.capacity is CapacityType.RESERVED else _or_null("proximity_group_id")
    if made.get("proximity_placement_group_id") != near or made.get("virtual_machine_scale_set_id") != _or_null(
        "scale_set_id"
    ):
        yield "placement"
    if made.get("zone") != (given.zone or None) or made.get("size") != given.instance_type:
        yield "another size or zone"
    launch = r.acc["output"].get("launch", {}).get("value", {}).get(r.case.template.key, {})
    infiniband = r.case.template.fabric is Fabric.INFINIBAND
    if bool(launch.get("scale_set_id")) != infiniband:
        yield "scale set"
    if bool(launch.get("proximity_group_id")) != (r.case.template.cluster and not infiniband):
        yield "proximity group"
    for body in of_type(r.acc, "azurerm_orchestrated_virtual_machine_scale_set").values():
        if (body.get("single_placement_group"), body.get("platform_fault_domain_count")) != (True, 1):
            yield "InfiniBand needs one placement group"


def _or_null(name: str) -> str:
    return f'${{var.{name} == "" ? null : var.{name}}}'


def ending(r: Rendered) -> Found:
    said = r.cmp["output"].get("billing_end", {}).get("value", "")
    if "reaper" not in said:
        yield "Azure bills a machine that is off: who ends that is not said"
    if node(r).get("timeouts", {}).keys() != {"create", "delete"}:
        yield "a create without an end"
    yield from ends_in_user_data(r)


_ORCHESTRATOR = "${data.azurerm_user_assigned_identity.orchestrator.principal_id}"
_LAUNCHER = {
    ("identity-user", "${azurerm_user_assigned_identity.node.id}"),
    ("node-join", "${azurerm_network_security_group.nodes.id}"),
    ("node-join", "${azurerm_application_security_group.nodes.id}"),
}


def rights(r: Rendered) -> Found:
    expected = {(right, f"{bucket}/{prefix}") for right, bucket, prefix in data_rights(r)}
    expected |= {("secret", path) for path in secrets(r)}
    if granted(r) != expected:
        yield f"nodes may {sorted(granted(r) ^ expected)}"
    if list(of_type(r.acc, "azurerm_user_assigned_identity")) != ["node"]:
        yield "identities"
    if node(r).get("identity") != {"type": "UserAssigned", "identity_ids": ["${var.identity_id}"]}:
        yield "the node has another identity"
    if r.case.access.orchestrator is not None and of_type(r.acc, "azurerm_role_definition"):
        yield "a role is defined beside the foundation's"
    launcher = {
        (body["role_definition_name"].rpartition("skyplan-acme-prod-")[2], body["scope"])
        for body in of_type(r.acc, "azurerm_role_assignment").values()
        if body.get("principal_id") == _ORCHESTRATOR
    }
    if launcher != (_LAUNCHER if r.case.access.orchestrator is not None else set()):
        yield f"the orchestrator may {launcher}"
    for name, role in of_type(r.acc, "azurerm_role_definition").items():
        if role.get("permissions") != [{"actions": [], "data_actions": _WRITE}]:
            yield f"{name}: {role.get('permissions')}"
        if not str(role.get("scope")).startswith('${join("/", slice(split("/", ') or not str(
            role.get("scope")
        ).endswith(", 0, 5))}"):
            yield f"{name}: a role for more than the store's resource group"


def granted(r: Rendered) -> set[tuple[str, str]]:
    """(right, place) of every assignment; a condition that does not hold reading and listing to the prefixes is another right."""
    out: set[tuple[str, str]] = set()
    for kind, name, body in resources(r.acc):
        if kind != "azurerm_role_assignment" or body.get("principal_id") == _ORCHESTRATOR:
            continue
        scope = str(body.get("scope"))
        ours = body.get("principal_id") == "${azurerm_user_assigned_identity.node.principal_id}"
        store = re.match(
            r"\$\{try\(data\.azurerm_resources\.(storageAccounts|vaults)-([\w-]+)\.resources\[0\]\.id, ", scope
        )
        if not ours or store is None or body.get("principal_type") != "ServicePrincipal":
            out.add(("other", name))
        elif store[1] == "vaults":
            right = "secret" if body.get("role_definition_name") == "Key Vault Secrets User" else "other"
            out.add((right, f"{store[2]}/{scope.rpartition('}/secrets/')[2]}"))
        else:
            right = _role(body)
            container = scope.rpartition("}/blobServices/default/containers/")[2]
            out |= {(right, f"{store[2]}/{container}/{prefix}") for prefix in _prefixes(body, right)}
    return out


def _role(body: dict[str, Any]) -> str:
    if "role_definition_name" in body and "role_definition_id" in body:
        return "other"
    if body.get("role_definition_name") == "Storage Blob Data Reader":
        return "read"
    if body.get("role_definition_name") == "skyplan-acme-prod-checkpoints":
        return "write"
    own = re.fullmatch(
        r"\$\{azurerm_role_definition\.[\w-]+\.role_definition_resource_id\}", str(body.get("role_definition_id"))
    )
    return "write" if own else "other"


def _prefixes(body: dict[str, Any], right: str) -> set[str]:
    condition = str(body.get("condition", ""))
    clauses = condition.split(") AND ((!(ActionMatches")
    places = set(re.findall(r":path\] StringStartsWith '([^']*)'", condition))
    listed = set(re.findall(r":prefix\] StringStartsWith '([^']*)'", condition))
    guarded = set(re.findall(r"ActionMatches\{'" + re.escape(_BLOBS) + r"/([\w/]+)'", condition))
    needed = {"read"} if right == "read" else {"read", "write", "add/action"}
    whole = body.get("condition_version") == "2.0" and len(clauses) == 2 and " OR (" in condition
    if not whole or places != listed or guarded != needed or not all(place.endswith("/") for place in places):
        return {f"condition {condition}"}
    return places


def planned(r: Rendered) -> Found:
    """Nodes are of the planned size and disk, in the planned subnet at the planned address, and tell of their eviction."""
    given, made, card = r.case.compute, node(r), _card(r)
    for field in ("name", "computer_name"):
        yield from named("node", made, "skyplan-", "-${each.key}", field=field)
    wanted = {
        "admin_username": "skyplan",
        "provision_vm_agent": True,
        "termination_notification": {"enabled": True, "timeout": "PT5M"},
        "resource_group_name": "${var.resource_group}",
        "location": given.region,
    }
    yield from differs("node", made, wanted)
    disk = {"disk_size_gb": r.case.template.disk_gb, "storage_account_type": "Premium_LRS"}
    yield from differs("disk", made["os_disk"], disk)
    yield from named("disk", made["os_disk"], "skyplan-", "-${each.key}")
    if not made.get("custom_data"):
        yield "boots nothing"
    yield from differs("interface", card, {"accelerated_networking_enabled": True, "location": given.region})
    (address,) = card["ip_configuration"]
    wanted = {
        "subnet_id": "${var.subnet_id}",
        "private_ip_address": '${each.value == "" ? null : each.value}',
        "private_ip_address_allocation": '${each.value == "" ? "Dynamic" : "Static"}',
    }
    yield from differs("interface", address, wanted)
    yield from _access(r)
    if not r.case.network.own:
        yield from _network(r)


def _access(r: Rendered) -> Found:
    for name, rule in of_type(r.acc, "azurerm_network_security_rule").items():
        ends = {("source", "address"), ("destination", "address"), ("source", "port"), ("destination", "port")}
        for end, what in ends:
            forms = {"address": ("address_prefix", "address_prefixes", "application_security_group_ids")}
            words = forms.get(what, ("port_range", "port_ranges"))
            if len([word for word in words if f"{end}_{word}" in rule]) != 1:
                yield f"{name}: {end} {what} is said twice or not at all"
        yield from named(name, rule, field="description")
    for name, assignment in of_type(r.acc, "azurerm_role_assignment").items():
        # the identity is seconds old; why it has the right, its owner reads here
        yield from differs(name, assignment, {"skip_service_principal_aad_check": True})
        yield from named(name, assignment, field="description")
    for name, role in of_type(r.acc, "azurerm_role_definition").items():
        yield from named(name, role, "never delete", field="description")
    for name, store in r.acc.get("data", {}).get("azurerm_resources", {}).items():
        if name != f"{str(store.get('type')).rpartition('/')[2]}-{store.get('name')}":
            yield f"{name}: looks for {store}"


def _network(r: Rendered) -> Found:
    yield from differs(
        "network", of_type(r.net, "azurerm_virtual_network")["net"], {"address_space": [r.case.network.cidr]}
    )
    subnet = of_type(r.net, "azurerm_subnet")["nodes"]
    ranges = {zone or "region": cidr for zone, cidr in r.case.network.zones}
    wanted = {"address_prefixes": ["${each.value}"], "service_endpoints": ["Microsoft.Storage"], "for_each": ranges}
    yield from differs("subnet", subnet, wanted)
    yield from differs("address", of_type(r.net, "azurerm_public_ip")["nat"], {"ip_version": "IPv4"})
    yield from differs("gateway", of_type(r.net, "azurerm_nat_gateway")["net"], {"sku_name": "Standard"})
