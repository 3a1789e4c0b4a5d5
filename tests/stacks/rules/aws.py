"""The contract in AWS's words."""

from __future__ import annotations

from typing import Any

from planner.model.offer import CapacityType
from planner.model.stack import NodeTemplate
from stacks.naming import label
from tests.stacks.cases import Rendered
from tests.stacks.checker import resources
from tests.stacks.rules.common import Found, data_rights, differs, ends_in_user_data, named, node, of_type, secrets

_GROUP = "${aws_security_group.nodes.id}"
_GROUPS = "${concat([aws_security_group.nodes.id], var.security_group_ids)}"
_READ = {"s3:GetObject"}
_WRITE = {"s3:AbortMultipartUpload", "s3:GetObject", "s3:ListMultipartUploadParts", "s3:PutObject"}
_SESSION = {
    "ssm:UpdateInstanceInformation",
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
}


def _templates(r: Rendered) -> dict[str, dict[str, Any]]:
    return of_type(r.acc, "aws_launch_template")


def public_address(r: Rendered) -> Found:
    for name, subnet in of_type(r.net, "aws_subnet").items():
        if subnet.get("map_public_ip_on_launch") is not False:
            yield f"subnet {name} gives public addresses"
    if node(r).get("associate_public_ip_address") != '${var.subnet_id == "" ? null : false}':
        yield "the node may get a public address"
    for name, template in _templates(r).items():
        cards = template.get("network_interfaces", [])
        if len(cards) == 1 and cards[0].get("associate_public_ip_address") != "false":
            yield f"{name}: one interface, which gets the subnet's default"
        for card in cards:
            if card.get("associate_public_ip_address", "false") != "false" or "ipv6_address_count" in card:
                yield f"{name}: public address"
    yield from _addresses(r)


def _addresses(r: Rendered) -> Found:
    """The one public address there is, is the NAT gateway's."""
    for _, name, body in (found for document in r.documents.values() for found in resources(document)):
        if body.keys() & {"ipv6_address_count", "ipv6_addresses", "assign_ipv6_address_on_creation"}:
            yield f"{name}: IPv6 addresses are public"
    used = {gateway.get("allocation_id") for gateway in of_type(r.net, "aws_nat_gateway").values()}
    for name in of_type(r.net, "aws_eip"):
        if f"${{aws_eip.{name}.id}}" not in used:
            yield f"address {name} is not the NAT gateway's"
    for stack, document in (("acc", r.acc), ("cmp", r.cmp)):
        if of_type(document, "aws_eip"):
            yield f"{stack}: a public address"


def ingress(r: Rendered) -> Found:
    groups = of_type(r.acc, "aws_security_group")
    if list(groups) != ["nodes"] or groups["nodes"].get("vpc_id") != "${var.vpc_id}":
        yield f"groups {sorted(groups)}"
    for group in groups.values():
        if group.keys() & {"ingress", "egress"}:
            yield "inline rules"
        if r.case.workload.name not in str(group.get("name")):
            yield "the group is not the job's own"
    rules = of_type(r.acc, "aws_vpc_security_group_ingress_rule")
    if set(rules) != {"peers"}:
        yield f"inbound rules {sorted(rules)}"
    every = {"referenced_security_group_id": _GROUP, "security_group_id": _GROUP, "ip_protocol": "-1"}
    for direction in ("ingress", "egress"):
        rule = of_type(r.acc, f"aws_vpc_security_group_{direction}_rule").get("peers", {})
        if {key: rule.get(key) for key in every} != every:
            yield f"{direction}: peers are not the group itself"
        if rule.keys() & {"cidr_ipv4", "cidr_ipv6", "prefix_list_id", "from_port", "to_port"}:
            yield f"{direction}: peers and more, or less"
    yield from _members(r)


def _members(r: Rendered) -> Found:
    """Every interface of every node is in the job's group."""
    for launch in r.acc["output"].get("launch", {}).get("value", {}).values():
        if launch.get("security_group_ids") != _GROUPS:
            yield "nodes are not in the job's group"
    for name, template in _templates(r).items():
        for card in template.get("network_interfaces", []):
            if card.get("security_groups") != _GROUPS:
                yield f"{name}: an interface outside the job's group"
    if node(r).get("vpc_security_group_ids") != '${var.subnet_id == "" ? null : var.security_group_ids}':
        yield "the node is not in the launch's groups"


def way_out(r: Rendered) -> Found:
    out = of_type(r.acc, "aws_vpc_security_group_egress_rule").get("out", {})
    if (out.get("for_each"), out.get("ip_protocol"), out.get("cidr_ipv4")) != (
        {"http": 80, "https": 443},
        "tcp",
        "0.0.0.0/0",
    ):
        yield f"outbound {out}"
    if (out.get("from_port"), out.get("to_port"), out.get("security_group_id")) != (
        "${each.value}",
        "${each.value}",
        _GROUP,
    ):
        yield "outbound is not by the two ports"
    if r.case.network.own:
        return
    routes = {name: of_type(r.net, "aws_route").get(name, {}) for name in ("private", "public")}
    if any(route.get("destination_cidr_block") != "0.0.0.0/0" for route in routes.values()):
        yield "no default route"
    if routes["private"].get("nat_gateway_id") != "${aws_nat_gateway.net.id}":
        yield "private subnets have no NAT"
    if routes["public"].get("gateway_id") != "${aws_internet_gateway.net.id}":
        yield "the NAT gateway's subnet has no way out"
    for name, route in routes.items():
        joined = of_type(r.net, "aws_route_table_association").get(name, {})
        table, every = f"${{aws_route_table.{name}.id}}", f"${{aws_subnet.{name}}}"
        subnet = "${each.value.id}" if joined.get("for_each") == every else f"${{aws_subnet.{name}.id}}"
        if (joined.get("subnet_id"), joined.get("route_table_id")) != (subnet, table):
            yield f"{name}: no route table"
        if route.get("route_table_id") != table:
            yield f"{name}: the route is in another table"
    gateway = of_type(r.net, "aws_nat_gateway").get("net", {})
    inside = str(gateway.get("subnet_id")).startswith("${aws_subnet.public")
    if not inside or "aws_route.public" not in gateway.get("depends_on", []):
        yield "the NAT gateway may be there before its way out"


def image(r: Rendered) -> Found:
    planned = {label(template.key): template.machine_image for template in r.case.access.templates}
    for name, template in _templates(r).items():
        base = name.removesuffix("-head")
        wanted, found = planned.get(base.removesuffix("-spot"), ""), str(template.get("image_id"))
        if wanted.startswith("/"):
            parameter = r.acc.get("data", {}).get("aws_ssm_parameter", {}).get(base, {})
            if found != f"${{data.aws_ssm_parameter.{base}.value}}" or parameter.get("name") != wanted:
                yield f"{name}: image {found}"
            if "image_id" not in template.get("lifecycle", {}).get("ignore_changes", []):
                yield f"{name}: the image follows the parameter, under the job"
        elif found != wanted or not found.startswith("ami-"):
            yield f"{name}: image {found}"


def disks(r: Rendered) -> Found:
    for name, template in _templates(r).items():
        mapped = [disk.get("ebs", {}) for disk in template.get("block_device_mappings", [])]
        if not mapped or any(disk.get("encrypted") != "true" for disk in mapped):
            yield f"{name}: a disk is not encrypted"
        if any(disk.get("kms_key_id") != r.case.access.kms_key_arn for disk in mapped):
            yield f"{name}: not the user's key"
        if any(disk.get("delete_on_termination") != "true" for disk in mapped):
            yield f"{name}: a disk outlives its node, and its bill too"
    if node(r).keys() & {"root_block_device", "ebs_block_device"}:
        yield "the node overrides its template's disks"


def metadata(r: Rendered) -> Found:
    wanted = {"http_endpoint": "enabled", "http_tokens": "required", "http_put_response_hop_limit": 1}
    for name, template in _templates(r).items():
        options = template.get("metadata_options", {})
        if {key: options.get(key) for key in wanted} != wanted:
            yield f"{name}: metadata {options}"
        if "key_name" in template:
            yield f"{name}: a key pair"
    if not _templates(r):
        yield "no template"
    if node(r).keys() & {"metadata_options", "key_name", "user_data"}:
        yield "the node overrides its template's hardening"


def capacity(r: Rendered) -> Found:
    given, made = r.case.compute, node(r)
    spot = {
        "market_type": "spot",
        "spot_options": {"spot_instance_type": "one-time", "instance_interruption_behavior": "terminate"},
    }
    target = {"capacity_reservation_target": {"capacity_reservation_id": given.reservation}}
    wanted: tuple[Any, Any] = (None, None)
    if given.capacity is CapacityType.SPOT:
        wanted = (spot, None)
    elif given.capacity is CapacityType.RESERVED:
        wanted = ({"market_type": "capacity-block"} if given.capacity_block else None, target)
    if (made.get("instance_market_options"), made.get("capacity_reservation_specification")) != wanted:
        yield f"{given.capacity.value}: {made.get('instance_market_options')}"
    if any("instance_market_options" in template for template in _templates(r).values()):
        yield "a template says how capacity is bought"
    grouped = given.cluster and (given.capacity is not CapacityType.RESERVED or given.in_group)
    if ("placement_group" in made) != grouped:
        yield "placement group"
    if bool(of_type(r.acc, "aws_placement_group")) != given.cluster:
        yield "placement group of the job"


def ending(r: Rendered) -> Found:
    for name, template in _templates(r).items():
        if template.get("instance_initiated_shutdown_behavior") != "terminate":
            yield f"{name}: a node that powers itself off is billed on"
    yield from ends_in_user_data(r)


def granted(r: Rendered) -> set[tuple[str, str]]:
    """(right, place) of every statement that the nodes' role has, and the orchestrator gets with the job."""
    out: set[tuple[str, str]] = set()
    documents = dict(r.acc.get("data", {}).get("aws_iam_policy_document", {}))
    roles = of_type(r.acc, "aws_iam_role")
    if (
        list(roles) != ["node"]
        or roles["node"].get("assume_role_policy") != "${data.aws_iam_policy_document.trust.json}"
    ):
        out.add(("other", f"roles {sorted(roles)}"))
    attached = dict(of_type(r.acc, "aws_iam_role_policy"))
    if (given := attached.pop("pass", None)) is not None:
        out.add(_passed(r, given, documents.pop("pass", {})))
    for name, policy in attached.items():
        if (
            policy.get("role") != "${aws_iam_role.node.name}"
            or policy.get("policy") != f"${{data.aws_iam_policy_document.{name}.json}}"
        ):
            out.add(("other", f"policy {name}"))
    if documents.keys() - {"trust"} != attached.keys():
        out.add(("other", f"documents {sorted(documents)}"))
    for name, document in documents.items():
        for statement in document["statement"]:
            out.add(_right(statement, trust=name == "trust"))
    return out


def _passed(r: Rendered, policy: dict[str, Any], document: dict[str, Any]) -> tuple[str, str]:
    """Who may hand the nodes' role to whom."""
    service = {"test": "StringEquals", "variable": "iam:PassedToService", "values": ["ec2.amazonaws.com"]}
    wanted = {
        "sid": "PassJobRole",
        "effect": "Allow",
        "actions": ["iam:PassRole"],
        "resources": ["${aws_iam_role.node.arn}"],
        "condition": [service],
    }
    good = document.get("statement") == [wanted] and policy.get("policy") == "${data.aws_iam_policy_document.pass.json}"
    good = good and str(policy.get("name", "")).startswith("skyplan-pass-")
    return ("pass", str(policy.get("role"))) if good else ("other", f"pass {policy} {document}")


def _right(statement: dict[str, Any], *, trust: bool) -> tuple[str, str]:  # noqa: PLR0911 -- one return a shape
    actions, places = set(statement.get("actions", [])), statement.get("resources", [])
    conditions = {(c["test"], c["variable"]): c["values"] for c in statement.get("condition", [])}
    if statement.get("effect") != "Allow" or len(places) > 1 or statement.keys() & {"not_actions", "not_resources"}:
        return "other", str(statement)
    if trust:
        ours = [{"type": "Service", "identifiers": ["ec2.amazonaws.com"]}]
        good = actions == {"sts:AssumeRole"} and statement.get("principals") == ours and not places
        return ("trust", "ec2") if good else ("other", str(statement))
    if "principals" in statement:
        return "other", str(statement)
    place = places[0] if places else ""
    if actions <= _SESSION and place == "*":
        return "session", ",".join(sorted(actions))
    owner = conditions.pop(("StringEquals", "aws:ResourceAccount"), None)
    if actions in (_READ, _WRITE) and place.endswith("/*") and not conditions and owner:
        return ("read" if actions == _READ else "write"), place.removeprefix("arn:aws:s3:::").removesuffix("*")
    if actions == {"s3:ListBucket"} and owner:
        prefix = conditions.pop(("StringLike", "s3:prefix"), [""])
        exact = len(prefix) == 2 and prefix[1] == prefix[0] + "*" and prefix[0].endswith("/")
        if exact and not conditions:
            return "list", f"{place.removeprefix('arn:aws:s3:::')}/{prefix[0]}"
    if actions == {"secretsmanager:GetSecretValue"} and not conditions and place.endswith("-??????"):
        return "secret", place.removesuffix("-??????").rpartition(":secret:")[2]
    key = {("StringEquals", "kms:ViaService"), ("StringLike", "kms:EncryptionContext:aws:s3:arn")}
    if actions in ({"kms:Decrypt"}, {"kms:Decrypt", "kms:GenerateDataKey"}) and conditions.keys() == key:
        return "key", place
    return "other", str(statement)


def rights(r: Rendered) -> Found:
    expected = {("trust", "ec2")}
    for right, bucket, prefix in data_rights(r):
        place = f"{bucket}/{prefix}"
        expected |= {(right, place), ("list", place)}
        if r.case.access.kms_key_arn:
            expected.add(("key", r.case.access.kms_key_arn))
    expected |= {("secret", path) for path in secrets(r)}
    if r.case.template.session:
        expected |= {
            ("session", ",".join(sorted(a for a in _SESSION if a.startswith(word))))
            for word in ("ssm:", "ssmmessages:")
        }
    if r.case.access.orchestrator:
        expected.add(("pass", r.case.access.orchestrator.rpartition("/")[2]))
    if granted(r) != expected:
        yield f"nodes may {sorted(granted(r) ^ expected)}"
    role = of_type(r.acc, "aws_iam_role").get("node", {})
    if role.get("path") != f"/skyplan/{r.case.access.project}/" or "managed_policy_arns" in role:
        yield "the role is outside skyplan's path"
    if role.get("permissions_boundary") != r.case.access.permissions_boundary:
        yield "the role is not within the target's boundary"


def planned(r: Rendered) -> Found:
    """Nodes are of the planned type, in the planned subnet at the planned address, and are what the reviewed templates say."""
    given = r.case.compute
    pinned = '${var.subnet_id == "" || each.value == "" ? null : each.value}'
    wanted = {
        "instance_type": given.instance_type,
        "subnet_id": '${var.subnet_id == "" ? null : var.subnet_id}',
        "private_ip": pinned if given.addresses else None,
    }
    yield from differs("node", node(r), wanted)
    for key in ("id", "version"):
        chosen = f'${{each.key == "r00" ? var.head_launch_template_{key} : var.launch_template_{key}}}'
        if node(r).get("launch_template", {}).get(key) != chosen:
            yield f"node: {key} of the template"
    for template in r.case.access.templates:
        name = label(template.key)
        held = {key for key in _templates(r) if key.removesuffix("-head").removesuffix("-spot") == name}
        kinds = {name, f"{name}-spot"} if template.key in r.case.access.spot_templates else {name}
        heads = template.efa_interfaces and r.case.access.head_address
        if held != kinds | ({f"{kind}-head" for kind in kinds} if heads else set()):
            yield f"templates {held}"
        for key in held:
            yield from _template(r, template, key)
    yield from _profile(r)
    if not r.case.network.own:
        yield from _network(r)


def _template(r: Rendered, planned: NodeTemplate, key: str) -> Found:
    made = _templates(r)[key]
    yield from named(key, made, "skyplan-", r.case.workload.name[:20])
    (disk,) = made["block_device_mappings"]
    yield from differs(key, disk["ebs"], {"volume_type": "gp3", "volume_size": planned.disk_gb})
    profile = {"arn": "${aws_iam_instance_profile.node.arn}"}
    wanted = {"iam_instance_profile": profile, "ebs_optimized": "true", "update_default_version": True}
    yield from differs(key, made, wanted)
    if not made.get("user_data") or disk.get("device_name") != "/dev/sda1":
        yield f"{key}: boots nothing"
    marked = {tags.get("resource_type"): tags.get("tags") for tags in made.get("tag_specifications", [])}
    made_at_launch = {"instance", "volume", "network-interface"}
    if key.removesuffix("-head").endswith("-spot"):
        made_at_launch.add("spot-instances-request")
    if marked.keys() != made_at_launch or any(
        (tags or {}).get("skyplan:job") != r.case.workload.name for tags in marked.values()
    ):
        yield f"{key}: what is launched from it has no tags"
    metadata = made["metadata_options"].get("instance_metadata_tags")
    legal = not any(set(tag) & set(" /") for tag, _ in r.case.access.tags)
    if metadata != ("enabled" if legal else "disabled"):
        yield f"{key}: tags in metadata, which a space or slash in a key breaks"
    cards = made.get("network_interfaces", [])
    if len(cards) != planned.efa_interfaces + (planned.instance_type.startswith("p6-b300.") and bool(cards)):
        yield f"{key}: {len(cards)} interfaces"
    head = planned.addresses[0] if planned.addresses else r.case.access.head_address
    for place, card in enumerate(cards):
        efa = place > 0 or not planned.instance_type.startswith("p6-b300.")
        fixed = head if place == 0 and key.endswith("-head") else None
        wanted = {
            "network_card_index": place,
            "device_index": min(place, 1),
            "interface_type": "efa" if efa else None,
            "delete_on_termination": "true",
            "private_ip_address": fixed,
        }
        yield from differs(f"{key} card {place}", card, wanted)
        if not str(card.get("subnet_id")).endswith(f'subnet_ids["{planned.zone}"]}}'):
            yield f"{key} card {place}: subnet {card.get('subnet_id')}"


def _profile(r: Rendered) -> Found:
    profile, role = (of_type(r.acc, f"aws_iam_{kind}").get("node", {}) for kind in ("instance_profile", "role"))
    if profile.get("role") != "${aws_iam_role.node.name}" or profile.get("path") != role.get("path"):
        yield "the profile is of another role"
    for kind, body in (("profile", profile), ("role", role)):
        yield from named(kind, body, "skyplan-")
    for name, policy in of_type(r.acc, "aws_iam_role_policy").items():
        yield from named(name, policy)
    for kind in ("ingress", "egress"):
        for name, rule in of_type(r.acc, f"aws_vpc_security_group_{kind}_rule").items():
            yield from named(name, rule, field="description")


def _network(r: Rendered) -> Found:
    made = {
        kind: of_type(r.net, f"aws_{kind}") for kind in ("vpc", "subnet", "internet_gateway", "vpc_endpoint", "eip")
    }
    wanted = {"cidr_block": r.case.network.cidr, "enable_dns_support": True, "enable_dns_hostnames": True}
    yield from differs("vpc", made["vpc"]["net"], wanted)
    private = made["subnet"]["private"]
    each = {
        "availability_zone_id": "${each.key}",
        "cidr_block": "${each.value}",
        "for_each": dict(r.case.network.zones),
    }
    yield from differs("private", private, each)
    for name, subnet in made["subnet"].items():
        if not subnet.get("availability_zone_id") or not subnet.get("cidr_block"):
            yield f"{name}: anywhere"
    yield from differs("gateway", made["internet_gateway"]["net"], {"vpc_id": "${aws_vpc.net.id}"})
    yield from differs("address", made["eip"]["nat"], {"domain": "vpc", "depends_on": ["aws_internet_gateway.net"]})
    wanted = {"service_name": f"com.amazonaws.{r.case.network.region}.s3", "vpc_endpoint_type": "Gateway"}
    yield from differs("endpoint", made["vpc_endpoint"]["s3"], wanted)
    if "${aws_route_table.private.id}" not in made["vpc_endpoint"]["s3"].get("route_table_ids", []):
        yield "data from S3 goes through the NAT gateway, and is billed there"
