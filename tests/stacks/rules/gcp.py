"""The contract in Google Cloud's words.

One exception: a RoCE network has no firewall rule, since Google ignores rules there.  That it is the job's own and that nothing routes into it is
what keeps others out, and is asserted instead.
"""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

from planner.model.offer import CapacityType, Fabric
from tests.stacks.cases import Rendered
from tests.stacks.checker import resources
from tests.stacks.rules.common import Found, data_rights, differs, ends_in_user_data, named, node, of_type, secrets

_ACCOUNT = "${google_service_account.nodes.email}"
_IAP = ["35.235.240.0/20"]
#: the rule that refuses whoever no rule of the job's allows, and its place: before the network's other rules, after the job's own
_REST, _REST_PRIORITY = "rest-inbound", 900
#: fabric -> kinds of the interfaces beside the first
_CARDS = {
    Fabric.TCPX: ["GVNIC"] * 4,
    Fabric.TCPXO: ["GVNIC"] * 8,
    Fabric.ROCE: ["GVNIC"] + ["MRDMA"] * 8,
    Fabric.ETHERNET: [],
}
_SIGNED = "projects/ubuntu-os-accelerator-images/"


def public_address(r: Rendered) -> Found:
    cards = node(r).get("network_interface", [])
    if not cards or any(card.keys() & {"access_config", "ipv6_access_config"} for card in cards):
        yield "the node has a public address"
    for stack, document in r.documents.items():
        for kind, name, body in resources(document):
            if kind == "google_compute_address" and body.get("address_type") != "INTERNAL":
                yield f"{stack}: {kind}.{name} is public"
            if kind == "google_compute_subnetwork" and body.get("stack_type") != "IPV4_ONLY":
                yield f"{stack}: {kind}.{name} may have public IPv6 addresses"
    if node(r).get("can_ip_forward") is not False:
        yield "the node may forward others' packets"


def ingress(r: Rendered) -> Found:
    rules = of_type(r.acc, "google_compute_firewall")
    for name, rule in rules.items():
        if rule.get("direction") != "INGRESS" or rule.get("target_service_accounts") != [_ACCOUNT]:
            yield f"{name}: a rule for more than the job's nodes"
        if rule.keys() & {"source_tags", "target_tags", "disabled"}:
            yield f"{name}: told by tags, which anybody may set"
        source = {key: rule.get(key) for key in ("source_service_accounts", "source_ranges", "network")}
        if name == "peers":
            wanted = {"source_service_accounts": [_ACCOUNT], "source_ranges": None, "network": "${var.network}"}
        elif name == "session":
            wanted = {"source_service_accounts": None, "source_ranges": _IAP, "network": "${var.network}"}
            if not r.case.template.session or rule.get("allow") != [{"protocol": "tcp", "ports": ["22"]}]:
                yield "session: opened unasked, or for more than SSH"
        elif name == _REST:
            wanted = {"source_service_accounts": None, "source_ranges": ["0.0.0.0/0"], "network": "${var.network}"}
        else:
            subnet = of_type(r.acc, "google_compute_subnetwork").get(name, {})
            wanted = {
                "source_service_accounts": None,
                "source_ranges": [subnet.get("ip_cidr_range")],
                "network": f"${{google_compute_network.{name}.id}}",
            }
        if source != wanted:
            yield f"{name}: open to {source}"
    if "peers" not in rules or ("session" in rules) != r.case.template.session:
        yield f"rules {sorted(rules)}"
    yield from _refused(rules)
    yield from _members(r)


def _refused(rules: dict[str, Any]) -> Found:
    """All but the job's own rules: one rule refuses everything, and stands after what the job allows, before what others may."""
    rest = rules.get(_REST, {})
    if rest.get("deny") != [{"protocol": "all"}] or "allow" in rest or rest.get("priority") != _REST_PRIORITY:
        yield f"{_REST}: the network's other rules let others in"
    for name, rule in rules.items():
        if name == _REST:
            continue
        if "deny" in rule:
            yield f"{name}: refuses what the job needs"
        # a rule that says none has Google's 1000; only the job's own networks have nothing to come before
        if rule.get("network") == "${var.network}" and rule.get("priority", 1000) >= _REST_PRIORITY:
            yield f"{name}: refused before it is allowed"


def _members(r: Rendered) -> Found:
    """Every node is known by the job's own account, which the rules name."""
    account = of_type(r.acc, "google_service_account")
    if list(account) != ["nodes"] or r.case.workload.name[:8] not in account["nodes"].get("account_id", ""):
        yield "the account is not the job's own"
    if node(r).get("service_account", {}).get("email") != "${var.node_account}":
        yield "nodes are not known by the job's account"
    for launch in r.acc["output"].get("launch", {}).get("value", {}).values():
        if launch.get("node_account") != _ACCOUNT:
            yield "nodes are launched with another account"


def way_out(r: Rendered) -> Found:
    if any(rule.get("direction") == "EGRESS" for rule in of_type(r.acc, "google_compute_firewall").values()):
        yield "outbound is filtered"
    for name, network in of_type(r.acc, "google_compute_network").items():
        roce = "network_profile" in network
        if not roce and network.get("delete_default_routes_on_create") is not True:
            yield f"{name}: a fabric with a way out"
        if (name in of_type(r.acc, "google_compute_firewall")) == roce:
            yield f"{name}: rules of the fabric"
    if {"google_compute_router", "google_compute_router_nat", "google_compute_route"} & r.acc["resource"].keys():
        yield "a fabric with a way out"
    if r.case.network.own:
        return
    nat = of_type(r.net, "google_compute_router_nat").get("net", {})
    router = of_type(r.net, "google_compute_router").get("net", {})
    if (
        router.get("network") != "${google_compute_network.net.id}"
        or nat.get("router") != "${google_compute_router.net.name}"
    ):
        yield "no NAT"
    served = [subnet.get("name") for subnet in nat.get("subnetwork", [])]
    if served != [f'${{google_compute_subnetwork.private["{zone}"].id}}' for zone, _ in r.case.network.zones]:
        yield f"NAT serves {served}"
    subnet = of_type(r.net, "google_compute_subnetwork").get("private", {})
    if (
        subnet.get("network") != "${google_compute_network.net.id}"
        or subnet.get("private_ip_google_access") is not True
    ):
        yield "no way to Google's own services"
    if of_type(r.net, "google_compute_network").get("net", {}).get("auto_create_subnetworks") is not False:
        yield "the network has subnets everywhere"


def image(r: Rendered) -> Found:
    planned = {template.key: template.machine_image for template in r.case.access.templates}
    for key, launch in r.acc["output"].get("launch", {}).get("value", {}).items():
        wanted, found = planned.get(key, ""), str(launch.get("image"))
        if "/family/" not in wanted:
            if found != wanted:
                yield f"{key}: image {found}"
            continue
        name = found.removeprefix("${data.google_compute_image.").removesuffix(".self_link}")
        resolved = r.acc.get("data", {}).get("google_compute_image", {}).get(name, {})
        if f"projects/{resolved.get('project')}/global/images/family/{resolved.get('family')}" != wanted:
            yield f"{key}: image {found}"
    if node(r).get("boot_disk", {}).get("initialize_params", {}).get("image") != "${var.image}":
        yield "nodes boot another image than the one that was reviewed"


def disks(r: Rendered) -> Found:
    """Google encrypts every disk; what can be said is whose key it is, and that the disk goes with its node."""
    disk = node(r).get("boot_disk", {})
    if disk.get("kms_key_self_link") != r.case.compute.kms_key_arn:
        yield "not the user's key"
    if disk.get("auto_delete") is not True:
        yield "a disk outlives its node, and its bill too"
    held = disk.get("initialize_params", {}).get("labels", {})
    if (held.get("skyplan-project"), held.get("skyplan-managed")) != (r.case.compute.project, "true"):
        yield "the disk has no labels"


def metadata(r: Rendered) -> Found:
    wanted = {
        "enable-oslogin": "TRUE",
        "block-project-ssh-keys": "TRUE",
        "serial-port-enable": "FALSE",
        "disable-legacy-endpoints": "TRUE",
    }
    held = {key: value for key, value in node(r).get("metadata", {}).items() if key != "user-data"}
    if held != wanted:
        yield f"metadata {held}"
    shielded = node(r).get("shielded_instance_config", {})
    secure = r.case.template.machine_image.startswith(_SIGNED)
    if [shielded.get(f"enable_{key}") for key in ("secure_boot", "vtpm", "integrity_monitoring")] != [
        secure,
        True,
        True,
    ]:
        yield f"shielded {shielded}"


def capacity(r: Rendered) -> Found:
    given, made = r.case.compute, node(r)
    hours = r.case.template.stop_after_hours
    kept: dict[str, Any] = {"automatic_restart": False, "on_host_maintenance": "TERMINATE"}
    wanted = {**kept, "provisioning_model": "STANDARD"}
    if given.capacity is CapacityType.SPOT:
        wanted = {**kept, "provisioning_model": "SPOT", "preemptible": True, "instance_termination_action": "DELETE"}
    if given.capacity_block:
        wanted = {**kept, "provisioning_model": "RESERVATION_BOUND", "instance_termination_action": "DELETE"}
    if hours is not None:
        wanted |= {"max_run_duration": {"seconds": round(hours * 3600)}, "instance_termination_action": "DELETE"}
    if made.get("scheduling") != wanted:
        yield f"{given.capacity.value}: {made.get('scheduling')}"
    name = {"key": "compute.googleapis.com/reservation-name", "values": [given.reservation]}
    affinity: dict[CapacityType, Any] = {
        CapacityType.SPOT: None,
        CapacityType.ON_DEMAND: {"type": "NO_RESERVATION"},
        CapacityType.RESERVED: {"type": "SPECIFIC_RESERVATION", "specific_reservation": name},
    }
    if made.get("reservation_affinity") != affinity[given.capacity]:
        yield f"{given.capacity.value}: {made.get('reservation_affinity')}"
    grouped = given.cluster and (given.capacity is not CapacityType.RESERVED or given.in_group)
    if made.get("resource_policies") != (["${var.placement_policy}"] if grouped else None):
        yield "placement policy"
    if bool(of_type(r.acc, "google_compute_resource_policy")) != given.cluster:
        yield "placement policy of the job"
    yield from _fabric(r)


def _fabric(r: Rendered) -> Found:
    """As many interfaces as the fabric has cards, each in a network of the job's own, whose ranges never meet."""
    cards = node(r).get("network_interface", [{}])
    kinds = _CARDS[r.case.template.fabric]
    if [card.get("nic_type") for card in cards] != ["GVNIC", *kinds]:
        yield f"interfaces {[card.get('nic_type') for card in cards]}"
    subnets = r.acc["output"].get("launch", {}).get("value", {}).get(r.case.template.key, {}).get("fabric_subnets")
    if len(subnets or []) != len(kinds) or len(set(subnets or [])) != len(kinds):
        yield f"fabric subnets {subnets}"
    if [card.get("subnetwork") for card in cards[1:]] != [f"${{var.fabric_subnets[{n}]}}" for n in range(len(kinds))]:
        yield "interfaces are not in the fabric's subnets"
    if cards[0].get("subnetwork") != "${var.subnet}":
        yield "the first interface is elsewhere"
    ranges = [
        ip_network(str(body.get("ip_cidr_range"))) for body in of_type(r.acc, "google_compute_subnetwork").values()
    ]
    if any(one.overlaps(other) for place, one in enumerate(ranges) for other in ranges[:place]):
        yield "ranges of one node's interfaces meet"


def ending(r: Rendered) -> Found:
    """`capacity` holds `max_run_duration` to the plan; the node's own clock is the second."""
    yield from ends_in_user_data(r)


def rights(r: Rendered) -> Found:
    expected = {(right, f"{bucket}/{prefix}") for right, bucket, prefix in data_rights(r)}
    expected |= {("read", place) for right, place in expected if right == "write"}
    expected |= {("secret", path) for path in secrets(r)}
    if granted(r) != expected:
        yield f"nodes may {sorted(granted(r) ^ expected)}"
    if {"google_service_account_key", "google_project_iam_member"} & r.acc["resource"].keys():
        yield "a key of the account, or a role on the project"
    who = r.case.access.orchestrator
    launcher = {
        "service_account_id": "${google_service_account.nodes.name}",
        "role": "roles/iam.serviceAccountUser",
        "member": f"serviceAccount:{who}",
    }
    given = of_type(r.acc, "google_service_account_iam_member")
    if given != ({"orchestrator": launcher} if who else {}):
        yield f"the nodes' account may be handed on by {given}"


def granted(r: Rendered) -> set[tuple[str, str]]:
    """(right, place) of every member that is added to something."""
    out: set[tuple[str, str]] = set()
    roles = {
        "roles/storage.objectViewer": "read",
        "roles/storage.objectCreator": "write",
        "roles/secretmanager.secretAccessor": "secret",
    }
    for kind, name, body in resources(r.acc):
        if "_iam_" not in kind or kind == "google_service_account_iam_member":
            continue
        right = roles.get(str(body.get("role")), "other")
        if body.get("member") != "${google_service_account.nodes.member}":
            out.add(("other", name))
        elif kind == "google_storage_managed_folder_iam_member" and right != "secret":
            out.add((right, f"{body.get('bucket')}/{body.get('managed_folder')}"))
        elif kind == "google_storage_bucket_iam_member" and right != "secret":
            out.add((right, f"{body.get('bucket')}/"))
        elif kind == "google_secret_manager_secret_iam_member" and right == "secret":
            out.add((right, str(body.get("secret_id"))))
        else:
            out.add(("other", name))
    return out


def planned(r: Rendered) -> Found:
    """Nodes are of the planned type, in the planned zone and subnet at the planned address, and are never changed or kept."""
    given, template, made = r.case.compute, r.case.template, node(r)
    wanted = {
        "zone": given.zone,
        "machine_type": given.instance_type.partition("+")[0],
        "allow_stopping_for_update": False,
        "deletion_protection": False,
        "timeouts": {"create": "15m", "delete": "15m"},
    }
    yield from differs("node", made, wanted)
    yield from named("node", made, "skyplan-", "-${each.key}")
    (first, *_) = made["network_interface"]
    pinned = '${each.value == "" ? null : each.value}' if given.addresses else None
    yield from differs("interface", first, {"network_ip": pinned, "stack_type": "IPV4_ONLY"})
    disk = made["boot_disk"]["initialize_params"]
    yield from differs("disk", disk, {"size": template.disk_gb})
    hyperdisk = given.instance_type.startswith(("a3-ultragpu-", "a4-", "g4-"))
    yield from differs("disk", disk, {"type": "hyperdisk-balanced" if hyperdisk else "pd-balanced"})
    asked = given.instance_type.startswith("g2-") and template.nvme
    yield from differs("node", made, {"scratch_disk": [{"interface": "NVME"}] * template.gpu_count if asked else None})
    if bool(made.get("guest_accelerator")) != ("+" in given.instance_type):
        yield "GPUs are not attached"
    if not made["metadata"].get("user-data"):
        yield "boots nothing"
    yield from _access(r)
    if not r.case.network.own:
        yield from _network(r)


def _access(r: Rendered) -> Found:
    for key, launch in r.acc["output"]["launch"]["value"].items():
        zone = next(template.zone for template in r.case.access.templates if template.key == key)
        if launch.get("subnet") != f'${{var.subnet_ids["{zone}"]}}':
            yield f"{key}: subnet {launch.get('subnet')}"
    for name, rule in of_type(r.acc, "google_compute_firewall").items():
        if name not in {"session", _REST} and rule.get("allow") != [{"protocol": "all"}]:
            yield f"{name}: peers reach each other on some ports only"
        if name == "session" and "log_config" not in rule:
            yield "session: nobody sees who came in"
        yield from named(name, rule, "skyplan-")
        yield from named(name, rule, field="description")
    for name, policy in of_type(r.acc, "google_compute_resource_policy").items():
        wanted = {"group_placement_policy": {"collocation": "COLLOCATED"}, "region": r.case.access.region}
        yield from differs(name, policy, wanted)
    for name, network in of_type(r.acc, "google_compute_network").items():
        if network.get("auto_create_subnetworks") is not False or network.get("mtu") not in {8244, 8896}:
            yield f"{name}: {network}"
    for name, subnet in of_type(r.acc, "google_compute_subnetwork").items():
        yield from differs(name, subnet, {"region": r.case.access.region})
    for name, member in of_type(r.acc, "google_secret_manager_secret_iam_member").items():
        yield from differs(name, member, {"project": r.case.access.account})
    account = of_type(r.acc, "google_service_account")["nodes"]
    yield from named(
        "account", account, f"project {r.case.access.project}", f"job {r.case.workload.name}", field="description"
    )


def _network(r: Rendered) -> Found:
    region = {"region": r.case.network.region}
    subnet = of_type(r.net, "google_compute_subnetwork")["private"]
    yield from differs(
        "subnet", subnet, {"ip_cidr_range": "${each.value.cidr}", "name": "${each.value.name}", **region}
    )
    if {zone: held["cidr"] for zone, held in subnet["for_each"].items()} != dict(r.case.network.zones):
        yield "subnets have other ranges"
    flows = subnet.get("log_config", {})
    if flows.keys() != {"aggregation_interval", "flow_sampling", "metadata"}:
        yield "no flow logs"
    yield from differs("router", of_type(r.net, "google_compute_router")["net"], region)
    wanted = {
        **region,
        "nat_ip_allocate_option": "AUTO_ONLY",
        "source_subnetwork_ip_ranges_to_nat": "LIST_OF_SUBNETWORKS",
        "enable_endpoint_independent_mapping": False,
        "enable_dynamic_port_allocation": True,
        "log_config": {"enable": True, "filter": "ERRORS_ONLY"},
    }
    nat = of_type(r.net, "google_compute_router_nat")["net"]
    yield from differs("NAT", nat, wanted)
    if not 64 < nat.get("min_ports_per_vm", 0) < nat.get("max_ports_per_vm", 0):
        yield "NAT: ports of a node"
    network = of_type(r.net, "google_compute_network")["net"]
    yield from differs("network", network, {"mtu": 1460, "routing_mode": "REGIONAL"})
    yield from named("network", network, f"project {r.case.network.project}", field="description")
