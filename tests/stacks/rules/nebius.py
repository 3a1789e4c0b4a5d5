"""The contract in Nebius's words.  Buckets are their owners' to open: the rights on them are snippets, and are read there."""

from __future__ import annotations

import re
from typing import Any

from planner.model.offer import CapacityType, Fabric
from tests.stacks.cases import Rendered
from tests.stacks.checker import resources
from tests.stacks.rules.common import (
    Found,
    data_rights,
    differs,
    ends_in_user_data,
    named,
    node,
    of_type,
    secrets,
    walk,
)

_GROUP = "${nebius_vpc_v1_security_group.nodes.id}"
_GROUPS = "${concat([nebius_vpc_v1_security_group.nodes.id], var.security_group_ids)}"
_READ = ["storage.object-lister", "storage.object-viewer"]


def public_address(r: Rendered) -> Found:
    for stack, document in r.documents.items():
        for path, value in walk(document.get("resource", {})):
            if path and path[-1] in {"public_ip_address", "ipv4_public", "ipv4_public_pools"}:
                yield f"{stack}: {'.'.join(path)}"
            if path and path[-1] == "visibility" and value != "PRIVATE":
                yield f"{stack}: a pool of public addresses"
    if len(node(r).get("network_interfaces", [])) != 1:
        yield "the node has other interfaces"


def ingress(r: Rendered) -> Found:
    rules = of_type(r.acc, "nebius_vpc_v1_security_rule")
    for name, rule in rules.items():
        if (rule.get("parent_id"), rule.get("access"), rule.get("type")) != (_GROUP, "ALLOW", "STATEFUL"):
            yield f"{name}: {rule}"
        if ("ingress" in rule) == ("egress" in rule):
            yield f"{name}: one direction a rule"
        if "ingress" in rule and rule["ingress"] != {"source_security_group_id": _GROUP}:
            yield f"{name}: open to {rule['ingress']}"
    if not any("ingress" in rule for rule in rules.values()):
        yield "peers do not reach each other"
    groups = of_type(r.acc, "nebius_vpc_v1_security_group")
    if list(groups) != ["nodes"] or groups["nodes"].get("network_id") != "${var.network_id}":
        yield f"groups {sorted(groups)}"
    if r.case.workload.name not in str(groups["nodes"].get("name")):
        yield "the group is not the job's own"
    # a group denies what no rule allows; a node without one is in the network's default group, which lets everything in
    cards = node(r).get("network_interfaces", [{}])
    if cards[0].get("security_groups") != "${[for id in var.security_group_ids : { id = id }]}":
        yield "the node is in the network's default group"
    for launch in r.acc["output"].get("launch", {}).get("value", {}).values():
        if launch.get("security_group_ids") != _GROUPS:
            yield "nodes are launched into other groups"


def way_out(r: Rendered) -> Found:
    rules = of_type(r.acc, "nebius_vpc_v1_security_rule")
    outside = {"destination_cidrs": ["0.0.0.0/0"], "destination_ports": [80, 443]}
    if rules.get("out", {}).get("egress") != outside or rules.get("out", {}).get("protocol") != "TCP":
        yield f"outbound {rules.get('out')}"
    for name, rule in rules.items():
        egress = rule.get("egress", {})
        if "destination_cidrs" in egress and not egress.get("destination_ports"):
            yield f"{name}: no ports means every port"
    if r.case.network.own:
        return
    route = of_type(r.net, "nebius_vpc_v1_route").get("out", {})
    subnet = of_type(r.net, "nebius_vpc_v1_subnet").get("private", {})
    if (route.get("destination"), route.get("next_hop")) != ({"cidr": "0.0.0.0/0"}, {"default_egress_gateway": True}):
        yield "no default route"
    table = "${nebius_vpc_v1_route_table.out.id}"
    if (route.get("parent_id"), subnet.get("route_table_id")) != (table, table):
        yield "the route is in another table"
    if "nebius_vpc_v1_route.out" not in subnet.get("depends_on", []):
        yield "nodes may be there before their way out"


def image(r: Rendered) -> Found:
    spec = node(r).get("boot_disk", {}).get("managed_disk", {}).get("spec", {})
    wanted = r.case.template.machine_image
    if wanted.startswith("family:"):
        found = (spec.get("source_image_family"), spec.get("source_image_id"))
        if found != ({"image_family": wanted.removeprefix("family:")}, None):
            yield f"image {found}"
    elif spec.get("source_image_id") != wanted:
        yield f"image {spec.get('source_image_id')}"


def disks(r: Rendered) -> Found:
    boot = node(r).get("boot_disk", {})
    spec = boot.get("managed_disk", {}).get("spec", {})
    if spec.get("disk_encryption") != {"type": "DISK_ENCRYPTION_MANAGED"}:
        yield "the disk is not encrypted"
    if spec.get("type") != "NETWORK_SSD_NON_REPLICATED":
        yield "a type of disk that is not known to be encryptable"
    if "secondary_disks" in node(r):
        yield "a disk that outlives its node"
    held = boot.get("managed_disk", {}).get("labels", {})
    if (held.get("skyplan-project"), held.get("skyplan-managed")) != (r.case.compute.project, "true"):
        yield "the disk has no labels"


def metadata(r: Rendered) -> Found:
    """The API has no setting for the metadata service; nobody is given a key either."""
    if "nebius_compute_v1_instance" not in r.cmp.get("resource", {}):
        yield "no node"
    for path, _ in walk(node(r)):
        if path and path[-1] in {"ssh_keys", "ssh_authorized_keys"}:
            yield "a key for people"


def capacity(r: Rendered) -> Found:
    given, made = r.case.compute, node(r)
    strict = {"policy": "STRICT", "reservation_ids": [given.reservation]}
    wanted: dict[CapacityType, dict[str, Any]] = {
        CapacityType.SPOT: {"preemptible": {"on_preemption": "STOP"}},
        CapacityType.RESERVED: {"reservation_policy": strict},
        CapacityType.ON_DEMAND: {"reservation_policy": {"policy": "FORBID"}},
    }
    said = {key: made[key] for key in ("preemptible", "reservation_policy") if key in made}
    if said != wanted[given.capacity]:
        yield f"{given.capacity.value}: {said}"
    platform, _, preset = given.instance_type.partition("_")
    if made.get("resources") != {"platform": platform, "preset": preset}:
        yield f"another type: {made.get('resources')}"
    joined = r.case.template.fabric is Fabric.INFINIBAND
    if made.get("gpu_cluster") != ({"id": "${var.gpu_cluster_id}"} if joined else None):
        yield "GPU cluster"
    clusters = of_type(r.acc, "nebius_compute_v1_gpu_cluster")
    if [body.get("infiniband_fabric") for body in clusters.values()] != (
        [r.case.template.fabric_name] if joined else []
    ):
        yield "GPU cluster of the job"


def ending(r: Rendered) -> Found:
    if node(r).get("recovery_policy") != "FAIL":
        yield "a node that powers itself off is started again, and billed"
    yield from ends_in_user_data(r)


def rights(r: Rendered) -> Found:
    """The group's permits are on secrets alone; a bucket's rights are asked of its owner, for exactly the prefixes."""
    expected = {("secret", path.partition("/")[0]) for path in secrets(r)}
    found: set[tuple[str, str]] = set()
    for kind, name, body in resources(r.acc):
        if kind == "nebius_iam_v1_access_permit":
            ours = (
                body.get("parent_id") == "${nebius_iam_v1_group.node.id}"
                and body.get("role") == "mysterybox.payload-viewer"
            )
            found.add(("secret" if ours else "other", str(body.get("resource_id")) if ours else name))
    if found != expected:
        yield f"nodes may {sorted(found ^ expected)}"
    member = of_type(r.acc, "nebius_iam_v1_group_membership")
    # a node that has no rights is in no group
    ours = [("${nebius_iam_v1_group.node.id}", "${nebius_iam_v1_service_account.node.id}")]
    if [(body.get("parent_id"), body.get("member_id")) for body in member.values()] != ours * bool(
        r.case.access.policies
    ):
        yield f"members {sorted(member)}"
    asked = {place for text in r.case.access.snippets for place in _asked(text)}
    wanted = {(right, f"{bucket}/{prefix}") for right, bucket, prefix in data_rights(r, minted=True)}
    if asked != wanted:
        yield f"owners are asked for {sorted(asked ^ wanted)}"
    if node(r).get("service_account_id") != "${var.service_account_id}":
        yield "the node has another account"


def _asked(text: str) -> set[tuple[str, str]]:
    bucket = re.search(r"# Nebius bucket (\S+):", text)
    out: set[tuple[str, str]] = set()
    for paths, roles in re.findall(r"paths\s+= \[(.*?)\]\s+roles\s+= \[(.*?)\]", text, re.DOTALL):
        held = re.findall(r'"([^"]+)"', roles)
        right = {tuple(_READ): "read", (*_READ, "storage.uploader"): "write"}.get(tuple(held), f"other {held}")
        for path in re.findall(r'"([^"]+)"', paths):
            out.add((right, f"{bucket[1] if bucket else '?'}/{path.removesuffix('*')}"))
    return out


def planned(r: Rendered) -> Found:
    """Nodes have the planned disk, are in the planned subnet at the planned address; everything has its name."""
    given, made = r.case.compute, node(r)
    for field in ("name", "hostname"):
        yield from named("node", made, "skyplan-", "-${each.key}", field=field)
    if not made.get("cloud_init_user_data"):
        yield "boots nothing"
    managed = made["boot_disk"]["managed_disk"]
    size = managed["spec"].get("size_gibibytes", 0)
    if size % 93 or not r.case.template.disk_gb <= size < r.case.template.disk_gb + 93:
        yield f"disk of {size} GiB"
    yield from named("disk", managed, "-${each.key}-boot")
    (card,) = made["network_interfaces"]
    fixed = {"allocation_id": "${nebius_vpc_v1_allocation.node[each.key].id}"} if given.addresses else {}
    yield from differs("interface", card, {"subnet_id": "${var.subnet_id}", "ip_address": fixed})
    local = {"passthrough_group": {"requested": True}} if r.case.template.nvme else None
    yield from differs("node", made, {"local_disks": local})
    reserved = of_type(r.cmp, "nebius_vpc_v1_allocation")
    if bool(reserved) != bool(given.addresses):
        yield "addresses are not reserved as planned"
    for body in reserved.values():
        yield from differs(
            "address", body, {"ipv4_private": {"cidr": "${each.value}/32", "subnet_id": "${var.subnet_id}"}}
        )
    for document in (r.net, r.acc, r.cmp):
        for kind, name, body in resources(document):
            if kind not in {"nebius_iam_v1_group_membership", "nebius_iam_v1_access_permit"}:
                yield from named(f"{kind}.{name}", body)
    for name, rule in of_type(r.acc, "nebius_vpc_v1_security_rule").items():
        egress = rule.get("egress")
        ends = [key for key in egress or () if key in {"destination_cidrs", "destination_security_group_id"}]
        if egress is not None and len(ends) != 1:
            yield f"{name}: to anywhere"
    yield from named("account", of_type(r.acc, "nebius_iam_v1_service_account")["node"], field="description")
    if not r.case.network.own:
        yield from _network(r)


def _network(r: Rendered) -> Found:
    made = {kind: of_type(r.net, f"nebius_vpc_v1_{kind}") for kind in ("pool", "network", "subnet", "route")}
    yield from differs("pool", made["pool"]["net"], {"cidrs": [{"cidr": r.case.network.cidr}], "version": "IPV4"})
    pools = {"pools": [{"id": "${nebius_vpc_v1_pool.net.id}"}]}
    yield from differs("network", made["network"]["net"], {"ipv4_private_pools": pools})
    own = {"use_network_pools": False, "pools": [{"cidrs": [{"cidr": "${each.value}"}]}]}
    ranges = {zone or "region": cidr for zone, cidr in r.case.network.zones}
    yield from differs("subnet", made["subnet"]["private"], {"ipv4_private_pools": own, "for_each": ranges})
    yield from named("route", made["route"]["out"], field="description")
