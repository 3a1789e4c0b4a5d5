"""A part of a job in several clouds: endpoints reserved first, open to the peers' /32 and to nobody else, attached to the right rank.

AWS's stacks are validated by the real provider too (`test_terraform`).  On a stub, four clouds' stacks are applied, planned again and destroyed.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from planner.model.digest import pretty
from planner.model.offer import Cloud
from planner.model.project import OwnNetwork
from stacks.runner import Terraform
from stacks.wiring import (
    ADDRESS_VARIABLES,
    access_variables,
    address_variables,
    compute_variables,
    declared,
    peer_variables,
    tunnel_port,
)
from tests.emulators import stub_provider
from tests.emulators import terraform as machine
from tests.stacks.tunnel_inputs import PARTS, PEERS, RANKS, TUNNEL

GOLDEN = Path(__file__).with_name("golden") / "tunnel"
CLOUDS = list(PARTS)
#: resource types that let traffic in or out
RULES = re.compile(r"firewall|security_rule|security_group_(in|e)gress_rule|network_security_rule")
#: what a public address would be, in any stack of nodes
PUBLIC = re.compile(r"access_config|public_ip_address|aws_eip|ipv4_public|address_ids|nat_ip|peer_endpoints")
PORT = TUNNEL.port
EVERY_PEER = '${[for address in var.peer_endpoints : format("%s/32", address)]}'
ONE_EACH = "${toset(var.peer_endpoints)}"


@pytest.fixture(scope="session")
def documents(render):
    return {
        cloud: {given.name[:3]: render(given) for given in (part.network, part.addresses, part.access, part.compute)}
        for cloud, part in PARTS.items()
    }


@pytest.fixture(scope="session")
def plain(render):
    return {cloud: [render(given) for given in part.plain] for cloud, part in PARTS.items()}


def rules(document):
    return {
        (kind, name): body
        for kind, named in document["resource"].items()
        if RULES.search(kind)
        for name, body in named.items()
    }


# ---- what is reserved


@pytest.mark.parametrize("cloud", CLOUDS)
def test_golden(documents, cloud, request):
    made = pretty(documents[cloud]["adr"])
    golden = GOLDEN / f"adr-{cloud.value}.tf.json"
    if request.config.getoption("--update-golden", default=False):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_bytes(made)
    assert made.decode() == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("cloud", CLOUDS)
def test_one_resource_reserves_an_address_for_each_rank_and_says_whose_it_is(documents, cloud):
    made = documents[cloud]["adr"]
    ((kind, named),) = made["resource"].items()
    assert list(named) == ["node"]
    body = named["node"]
    assert list(body["for_each"]) == list(RANKS)
    marks = {key.replace("skyplan:", "skyplan-"): value for key, value in (body.get("tags") or body["labels"]).items()}
    assert (marks["skyplan-project"], marks["skyplan-job"], marks["skyplan-managed"]) == (
        "acme",
        "llama3-8b-sft",
        "true",
    )
    assert marks["skyplan-rank"] == "${each.key}"
    assert set(made["output"]) == {"endpoints", "address_ids"}
    assert all(f"in {kind}.node :" in output["value"] for output in made["output"].values())
    assert set(made.get("variable", {})) == set(ADDRESS_VARIABLES[cloud])


@pytest.mark.parametrize("cloud", [Cloud.GCP, Cloud.AZURE, Cloud.NEBIUS])
def test_a_long_name_still_ends_in_the_rank(render, cloud):
    limit = 80 if cloud is Cloud.AZURE else 63
    given = replace(PARTS[cloud].addresses, project="p" * 63, name="adr-" + "j" * 60)
    (body,) = (named["node"] for named in render(given)["resource"].values())
    assert body["name"].endswith("-${each.key}")
    assert len(body["name"].replace("${each.key}", "r127")) <= limit


# ---- who may come in


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_tunnels_rules_are_all_that_is_added(documents, plain, cloud):
    with_tunnel, without = rules(documents[cloud]["acc"]), rules(plain[cloud][0])
    added = {name for _, name in with_tunnel.keys() - without.keys()}
    assert {key: with_tunnel[key] for key in without} == without
    assert (
        added
        == {
            Cloud.AWS: {"tunnel"},
            Cloud.GCP: {"tunnel"},  # outbound is open there
            Cloud.AZURE: {"tunnel-inbound", "tunnel-outbound"},
            Cloud.NEBIUS: {"tunnel-in", "tunnel-out"},
        }[cloud]
    )


def test_aws_opens_one_port_to_one_address_at_a_time(documents):
    made = documents[Cloud.AWS]["acc"]["resource"]
    for direction in ("ingress", "egress"):
        rule = made[f"aws_vpc_security_group_{direction}_rule"]["tunnel"]
        assert (rule["for_each"], rule["cidr_ipv4"], rule["ip_protocol"]) == (ONE_EACH, "${each.value}/32", "udp")
        assert rule["from_port"] == rule["to_port"] == PORT
        assert rule["security_group_id"] == "${aws_security_group.nodes.id}"


def test_gcp_opens_one_port_of_the_jobs_own_nodes_to_addresses(documents):
    rule = documents[Cloud.GCP]["acc"]["resource"]["google_compute_firewall"]["tunnel"]
    assert rule["allow"] == [{"protocol": "udp", "ports": [str(PORT)]}]
    assert rule["source_ranges"] == EVERY_PEER
    assert rule["target_service_accounts"] == ["${google_service_account.nodes.email}"]
    assert (rule["direction"], rule["network"]) == ("INGRESS", "${var.network}")


def test_gcp_refuses_whoever_else_finds_a_public_address(documents):
    made = documents[Cloud.GCP]["acc"]["resource"]["google_compute_firewall"]
    rest = made["rest-inbound"]
    assert (rest["deny"], rest["source_ranges"]) == ([{"protocol": "all"}], ["0.0.0.0/0"])
    assert rest["target_service_accounts"] == made["tunnel"]["target_service_accounts"]
    assert rest["network"] == made["tunnel"]["network"]
    # the smaller number wins
    assert made["tunnel"]["priority"] == made["peers"]["priority"] == 800 < rest["priority"] == 900


def test_azure_opens_one_port_of_the_jobs_own_nodes_to_addresses(documents):
    made = documents[Cloud.AZURE]["acc"]["resource"]["azurerm_network_security_rule"]
    group = ["${azurerm_application_security_group.nodes.id}"]
    ends = {
        "tunnel-inbound": ("source_address_prefixes", "destination_application_security_group_ids"),
        "tunnel-outbound": ("destination_address_prefixes", "source_application_security_group_ids"),
    }
    for name, (peers, nodes) in ends.items():
        rule = made[name]
        assert (rule[peers], rule[nodes]) == (EVERY_PEER, group)
        assert (rule["access"], rule["protocol"], rule["destination_port_range"]) == ("Allow", "Udp", str(PORT))
        assert not {"source_address_prefix", "destination_address_prefix"} & set(rule)
    priorities = [(rule["direction"], rule["priority"]) for rule in made.values()]
    assert len(set(priorities)) == len(priorities)


def test_nebius_opens_one_port_to_one_address_at_a_time(documents):
    made = documents[Cloud.NEBIUS]["acc"]["resource"]["nebius_vpc_v1_security_rule"]
    for name, way, cidrs in (
        ("tunnel-in", "ingress", "source_cidrs"),
        ("tunnel-out", "egress", "destination_cidrs"),
    ):
        rule = made[name]
        assert (rule["for_each"], rule["protocol"], rule["access"]) == (ONE_EACH, "UDP", "ALLOW")
        assert rule[way] == {cidrs: ["${each.value}/32"], "destination_ports": [PORT]}
        assert rule["parent_id"] == "${nebius_vpc_v1_security_group.nodes.id}"


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_shared_network_knows_no_tunnel(documents, cloud):
    assert not rules(documents[cloud]["net"])
    assert str(PORT) not in json.dumps(documents[cloud]["net"])


def test_one_job_has_one_port(render):
    access = PARTS[Cloud.AWS].access
    (template,) = access.templates
    other = replace(template, key="other/use1-az1", tunnel=replace(TUNNEL, port=51821))
    assert tunnel_port(access) == PORT
    with pytest.raises(ValueError, match=r"\[51820, 51821\]"):
        render(replace(access, templates=(template, other)))


# ---- the nodes


def node(document):
    (body,) = (named["node"] for kind, named in document["resource"].items() if kind.endswith(("_instance", "machine")))
    return body


@pytest.mark.parametrize("cloud", CLOUDS)
def test_ranks_are_the_jobs_not_the_parts(documents, plain, cloud):
    for document in (documents[cloud]["cmp"], plain[cloud][1]):
        assert list(node(document)["for_each"]) == list(RANKS)
        assert set(node(document)["for_each"].values()) == {""}, "private addresses are the cloud's to choose"


def test_each_node_gets_the_address_of_its_rank(documents):
    aws = documents[Cloud.AWS]["cmp"]["resource"]
    assert aws["aws_eip_association"]["node"] == {
        "for_each": "${aws_instance.node}",
        "allocation_id": "${var.address_ids[each.key]}",
        "network_interface_id": "${each.value.primary_network_interface_id}",
    }
    assert aws["aws_instance"]["node"]["associate_public_ip_address"] == '${var.subnet_id == "" ? null : true}', (
        "an address from the first second"
    )
    (card,) = node(documents[Cloud.GCP]["cmp"])["network_interface"]
    reserved = documents[Cloud.GCP]["adr"]["resource"]["google_compute_address"]["node"]
    assert card["access_config"] == [
        {"nat_ip": "${var.address_ids[each.key]}", "network_tier": reserved["network_tier"]}
    ]
    (configured,) = documents[Cloud.AZURE]["cmp"]["resource"]["azurerm_network_interface"]["node"]["ip_configuration"]
    assert configured["public_ip_address_id"] == "${var.address_ids[each.key]}"
    (card,) = node(documents[Cloud.NEBIUS]["cmp"])["network_interfaces"]
    assert card["public_ip_address"] == {"allocation_id": "${var.address_ids[each.key]}"}


@pytest.mark.parametrize("cloud", CLOUDS)
def test_without_a_tunnel_there_is_no_public_address_and_no_word_of_one(plain, cloud):
    for document in plain[cloud]:
        for part in ("resource", "variable"):
            found = PUBLIC.search(json.dumps(document.get(part, {})).replace("associate_public_ip_address", ""))
            assert found is None, found
    if cloud is Cloud.AWS:
        assert node(plain[cloud][1])["associate_public_ip_address"] == '${var.subnet_id == "" ? null : false}'


@pytest.mark.parametrize("cloud", [Cloud.AWS, Cloud.AZURE])
def test_a_tunnels_nodes_stand_where_no_nat_gateway_answers_for_them(documents, plain, cloud):
    ((_, launch),) = documents[cloud]["acc"]["output"]["launch"]["value"].items()
    assert "var.public_subnet_ids[" in launch["subnet_id"]
    ((_, launch),) = plain[cloud][0]["output"]["launch"]["value"].items()
    assert "var.subnet_ids[" in launch["subnet_id"]


def test_public_subnets_have_the_way_out_that_a_nodes_own_address_needs(documents):
    aws = documents[Cloud.AWS]["net"]["resource"]
    assert aws["aws_subnet"]["public"]["for_each"] == {"use1-az1": "10.7.240.0/24", "use1-az4": "10.7.241.0/24"}
    assert aws["aws_subnet"]["public"]["map_public_ip_on_launch"] is False
    assert aws["aws_route_table_association"]["public"] == {
        "for_each": "${aws_subnet.public}",
        "subnet_id": "${each.value.id}",
        "route_table_id": "${aws_route_table.public.id}",
    }
    assert aws["aws_route"]["public"]["gateway_id"] == "${aws_internet_gateway.net.id}"
    assert aws["aws_nat_gateway"]["net"]["subnet_id"] == '${aws_subnet.public["use1-az1"].id}'
    azure = documents[Cloud.AZURE]["net"]["resource"]
    assert azure["azurerm_subnet"]["public"]["for_each"] == {"region": "10.84.240.0/24"}
    assert azure["azurerm_subnet"]["public"]["default_outbound_access_enabled"] is False
    assert set(azure["azurerm_subnet_nat_gateway_association"]) == {"nodes"}


@pytest.mark.parametrize("cloud", [Cloud.AWS, Cloud.AZURE])
def test_subnets_of_the_users_own_serve_a_tunnel_too(render, cloud):
    network = PARTS[cloud].network
    own = OwnNetwork(region=network.region, vpc_id="v", subnets=(("z", "s"),))
    made = render(replace(network, own=own))["output"]
    assert made["public_subnet_ids"]["value"] == made["subnet_ids"]["value"] == {"z": "s"}


# ---- variables


@pytest.mark.parametrize("cloud", CLOUDS)
def test_stacks_declare_what_wiring_gives(documents, plain, cloud):
    part = PARTS[cloud]
    assert set(documents[cloud]["acc"]["variable"]) == set(declared(part.access))
    assert set(plain[cloud][0]["variable"]) == set(declared(part.plain[0]))
    outputs = {name: {"": "x"} for name in documents[cloud]["net"]["output"]}
    given = access_variables(part.access, outputs) | peer_variables(PEERS)
    assert set(given) == set(declared(part.access))
    assert set(access_variables(part.plain[0], outputs)) == set(declared(part.plain[0]))
    assert set(address_variables(part.addresses, outputs)) == set(ADDRESS_VARIABLES[cloud])
    ((key, launch),) = documents[cloud]["acc"]["output"]["launch"]["value"].items()
    assert set(compute_variables(part.compute, {"launch": {key: launch}})) == set(
        documents[cloud]["cmp"]["variable"]
    ) - {"address_ids"}


def test_peers_are_single_addresses_each_once_in_order():
    assert peer_variables(["203.0.113.20", "9.0.0.1", "203.0.113.20"]) == {
        "peer_endpoints": ["9.0.0.1", "203.0.113.20"]
    }
    assert peer_variables([]) == {"peer_endpoints": []}


@pytest.mark.parametrize(
    "wide", ["0.0.0.0/0", "203.0.113.0/24", "203.0.113.20/32", "2001:db8::1", "peer.example.org", ""]
)
def test_what_is_not_one_ipv4_address_is_no_peer(wide):
    with pytest.raises(ValueError, match=re.escape(repr(wide)) if wide else "empty"):
        peer_variables([PEERS[0], wide])


# ---- Terraform itself, on the providers' schemas

#: resource types of which a node has one, and where its endpoint is found in them
ATTACHED = {
    Cloud.AWS: ("aws_eip_association", lambda body: body["allocation_id"]),
    Cloud.GCP: ("google_compute_instance", lambda body: body["network_interface"][0]["access_config"][0]["nat_ip"]),
    Cloud.AZURE: ("azurerm_network_interface", lambda body: body["ip_configuration"][0]["public_ip_address_id"]),
    Cloud.NEBIUS: (
        "nebius_compute_v1_instance",
        lambda body: body["network_interfaces"][0]["public_ip_address"]["allocation_id"],
    ),
}
PROVIDERS = {Cloud.AWS: "aws", Cloud.GCP: "google", Cloud.AZURE: "azurerm", Cloud.NEBIUS: "nebius"}


def opened(standing):
    """Every address that a rule names with the tunnel's port."""
    texts = (json.dumps(body) for (kind, _), body in standing.items() if RULES.search(kind))
    return sorted(found for text in texts if str(PORT) in text for found in re.findall(r'"([\d.]+/\d+)"', text))


#: a whole job in these two is applied by tests/e2e/test_split.py
APPLIED_ELSEWHERE = (Cloud.AWS, Cloud.GCP)


@pytest.mark.terraform
@pytest.mark.parametrize(
    "cloud", [pytest.param(c, marks=[pytest.mark.full] if c in APPLIED_ELSEWHERE else []) for c in CLOUDS]
)
def test_a_part_comes_up_stays_as_it_is_and_leaves_nothing(documents, tmp_path, cloud):
    if reason := machine.missing(aws=False):
        pytest.skip(reason)
    provider, log = PROVIDERS[cloud], tmp_path / "cloud.jsonl"
    stub = machine.prepare(
        tmp_path / "home", stubs={provider: machine.SCHEMAS / f"{provider}.json.gz"}, STUB_LOG=str(log)
    )
    part, made = PARTS[cloud], documents[cloud]

    def alive():
        return stub_provider.alive([json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()])

    def applied(kind, variables):
        terraform = Terraform(tmp_path / kind, environment=stub.environment)
        terraform.write(made[kind], variables)
        terraform.init(part.network.backend, "k.tfstate")
        assert terraform.validate() == ()
        terraform.apply()
        return terraform

    net = applied("net", {})
    adr = applied("adr", address_variables(part.addresses, net.output()))
    reserved = adr.output()
    assert list(reserved["endpoints"]) == list(reserved["address_ids"]) == list(RANKS)
    assert len(set(reserved["endpoints"].values())) == len(RANKS)
    acc = applied("acc", access_variables(part.access, net.output()) | peer_variables(PEERS))
    ways = 1 if cloud is Cloud.GCP else 2
    assert opened(alive()) == sorted(f"{peer}/32" for peer in PEERS for _ in range(ways))
    launch = compute_variables(part.compute, acc.output()) | {"address_ids": reserved["address_ids"]}
    cmp = applied("cmp", launch)
    kind, endpoint_of = ATTACHED[cloud]
    attached = sorted(endpoint_of(body) for (found, _), body in alive().items() if found == kind)
    assert attached == sorted(reserved["address_ids"].values())
    nodes = cmp.output()["nodes"]
    assert list(nodes) == list(RANKS)
    assert all(facts["private_ip"] and facts["instance_id"] for facts in nodes.values())
    assert not any(terraform.plan() for terraform in (net, adr, acc, cmp)), "nothing is left to change"
    for terraform in (cmp, acc, adr, net):
        terraform.destroy()
    assert not alive()
