"""The one exception of the contract: a job in several clouds has an endpoint on each node, open by UDP to its peers' /32.

`without_tunnel` takes exactly that away, held word for word to what it may be, so that the whole contract can be asked of what is left.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from planner.model.offer import Cloud
from planner.model.stack import AddressInput
from planner.model.workload import Workload
from tests.stacks import cases
from tests.stacks.cases import Case, Rendered
from tests.stacks.rules.common import NODES
from tests.stacks.tunnel_inputs import PARTS

Document = dict[str, Any]
PORT = 51820
OF_RANK = "${var.address_ids[each.key]}"
_EVERY = '${[for address in var.peer_endpoints : format("%s/32", address)]}'
_EACH = "${toset(var.peer_endpoints)}"
_PEERS = ["${azurerm_application_security_group.nodes.id}"]
#: cloud -> (type, name) of a rule -> everything in it that says who may reach whom
RULES: dict[Cloud, dict[tuple[str, str], Document]] = {
    Cloud.AWS: {
        (f"aws_vpc_security_group_{direction}_rule", "tunnel"): {
            "security_group_id": "${aws_security_group.nodes.id}",
            "for_each": _EACH,
            "cidr_ipv4": "${each.value}/32",
            "ip_protocol": "udp",
            "from_port": PORT,
            "to_port": PORT,
        }
        for direction in ("ingress", "egress")
    },
    Cloud.GCP: {
        ("google_compute_firewall", "tunnel"): {
            "network": "${var.network}",
            "direction": "INGRESS",
            "target_service_accounts": ["${google_service_account.nodes.email}"],
            "source_ranges": _EVERY,
            "allow": [{"protocol": "udp", "ports": [str(PORT)]}],
        }
    },
    Cloud.AZURE: {
        ("azurerm_network_security_rule", f"tunnel-{direction.lower()}"): {
            "resource_group_name": "${var.resource_group}",
            "network_security_group_name": "${azurerm_network_security_group.nodes.name}",
            "direction": direction,
            "access": "Allow",
            "protocol": "Udp",
            "priority": 130,
            "source_port_range": "*",
            "destination_port_range": str(PORT),
            f"{far}_address_prefixes": _EVERY,
            f"{near}_application_security_group_ids": _PEERS,
        }
        for direction, far, near in (("Inbound", "source", "destination"), ("Outbound", "destination", "source"))
    },
    Cloud.NEBIUS: {
        ("nebius_vpc_v1_security_rule", f"tunnel-{word}"): {
            "parent_id": "${nebius_vpc_v1_security_group.nodes.id}",
            "for_each": _EACH,
            "access": "ALLOW",
            "type": "STATEFUL",
            "protocol": "UDP",
            side: {end: ["${each.value}/32"], "destination_ports": [PORT]},
        }
        for word, side, end in (("in", "ingress", "source_cidrs"), ("out", "egress", "destination_cidrs"))
    },
}
_WORDS = {"name", "description", "tags", "labels"}


def case(cloud: Cloud) -> tuple[Case, AddressInput]:
    """A part of a tunnelled job, with the rights that the planner writes, and its address stack."""
    part = PARTS[cloud]
    job: Workload = part.access.workload
    account = cases.ACCOUNTS[cloud]
    policies, snippets = cases.rights(job, cloud, part.access.region, None)
    made = Case(
        name="tunnel",
        network=replace(part.network, account=account),
        access=replace(part.access, account=account, policies=policies, snippets=snippets),
        compute=replace(part.compute, account=account),
    )
    return made, replace(part.addresses, account=account)


def without_tunnel(rendered: Rendered) -> Rendered:
    """The stacks as they would be without the tunnel.  Raises AssertionError where the tunnel is more than it may be."""
    cloud = rendered.case.cloud
    acc, cmp = (json.loads(json.dumps(document)) for document in (rendered.acc, rendered.cmp))
    found = {(kind, name) for kind, named in acc["resource"].items() for name in named if "tunnel" in name}
    assert found == set(RULES[cloud])
    for (kind, name), allowed in RULES[cloud].items():
        rule = acc["resource"][kind].pop(name)
        assert {key: value for key, value in rule.items() if key not in _WORDS} == allowed
    assert acc["variable"].pop("peer_endpoints")["type"] == "list(string)"
    assert cmp["variable"].pop("address_ids")["type"] == "map(string)"
    if acc["variable"].pop("public_subnet_ids", None):
        acc = json.loads(json.dumps(acc).replace("var.public_subnet_ids", "var.subnet_ids"))
    _detach(cloud, cmp["resource"][NODES[cloud][0]]["node"], cmp["resource"])
    left = json.dumps([acc, cmp])
    assert "address_ids" not in left
    assert "peer_endpoints" not in left
    templates = tuple(replace(template, tunnel=None) for template in rendered.case.access.templates)
    plain = replace(
        rendered.case,
        access=replace(rendered.case.access, templates=templates),
        compute=replace(rendered.case.compute, tunnel=False),
    )
    return Rendered(case=plain, net=rendered.net, acc=acc, cmp=cmp)


def _detach(cloud: Cloud, node: Document, resources: Document) -> None:
    """Take the endpoint off the node: the address of its own rank, reserved before."""
    match cloud:
        case Cloud.AWS:
            assert resources.pop("aws_eip_association") == {
                "node": {
                    "allocation_id": OF_RANK,
                    "network_interface_id": "${each.value.primary_network_interface_id}",
                    "for_each": "${aws_instance.node}",
                }
            }
            assert node["associate_public_ip_address"] == '${var.subnet_id == "" ? null : true}'
            node["associate_public_ip_address"] = '${var.subnet_id == "" ? null : false}'
        case Cloud.GCP:
            assert node["network_interface"][0].pop("access_config") == [{"nat_ip": OF_RANK, "network_tier": "PREMIUM"}]
        case Cloud.AZURE:
            card = resources["azurerm_network_interface"]["node"]
            assert card["ip_configuration"][0].pop("public_ip_address_id") == OF_RANK
        case Cloud.NEBIUS:
            assert node["network_interfaces"][0].pop("public_ip_address") == {"allocation_id": OF_RANK}
