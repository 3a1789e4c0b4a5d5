"""One contract for the stacks of all four clouds, however a placement is bought and joined: what a reviewer may take for granted (R01, R04, R05).

Held on the synthesised JSON, by `tests.stacks.checker` (the providers' schemas, references) and `tests.stacks.rules` (what no schema says).  That the
two refuse what breaks the contract is proven in test_mutants.py.  Nothing here was run against a live cloud.
"""

from __future__ import annotations

import gzip
import json
from importlib import import_module
from typing import Any

import pytest

from catalog.load import load_market
from modules.schemas import update
from planner.model.errors import InputError
from planner.model.offer import Cloud
from tests.stacks import cases, checker, rules, tunnelled
from tests.stacks.rules.common import ADDITIVE, as_written

MARKET = load_market()


@pytest.fixture(scope="session")
def stacks(render):
    """The three stacks of a case, rendered once."""
    made: dict[str, cases.Rendered] = {}

    def of(case: cases.Case) -> cases.Rendered:
        if str(case) not in made:
            net, acc, cmp = (render(given) for given in case.inputs)
            made[str(case)] = cases.Rendered(case=case, net=net, acc=acc, cmp=cmp)
        return made[str(case)]

    return of


#: the cases of one cloud stay in one worker, which renders each once
GROUPED = [
    pytest.param(case, marks=pytest.mark.xdist_group(f"stacks-{case.cloud.value}"), id=str(case))
    for case in cases.every()
]


@pytest.mark.parametrize("case", GROUPED)
class TestEveryStackOfEveryCloud:
    """Each rule is a method, so that a failure names the promise that is broken."""

    def test_is_what_the_provider_takes_and_points_at_what_is_there(self, stacks, case):
        found = {name: checker.problems(document) for name, document in stacks(case).documents.items()}
        assert found == {"net": [], "acc": [], "cmp": []}

    def test_carries_project_job_and_managed_wherever_there_are_tags(self, stacks, case):
        assert rules.broken("tags", stacks(case)) == []

    def test_gives_no_node_a_public_address(self, stacks, case):
        assert rules.broken("public_address", stacks(case)) == []

    def test_lets_nobody_in_but_the_jobs_own_nodes(self, stacks, case):
        assert rules.broken("ingress", stacks(case)) == []

    def test_says_nothing_of_jobs_in_what_jobs_share(self, stacks, case):
        assert rules.broken("shared_by_nobody", stacks(case)) == []

    def test_has_a_way_out(self, stacks, case):
        assert rules.broken("way_out", stacks(case)) == []

    def test_boots_the_image_that_was_planned(self, stacks, case):
        assert rules.broken("image", stacks(case)) == []

    def test_replaces_nothing_that_somebody_else_has_set(self, stacks, case):
        assert rules.broken("additive_only", stacks(case)) == []

    def test_encrypts_disks(self, stacks, case):
        assert rules.broken("disks", stacks(case)) == []

    def test_hardens_metadata_and_sign_in(self, stacks, case):
        assert rules.broken("metadata", stacks(case)) == []

    def test_lets_nodes_read_data_write_checkpoints_and_nothing_else(self, stacks, case):
        assert rules.broken("rights", stacks(case)) == []

    def test_makes_what_the_broker_becomes_and_lets_nobody_else_become_it(self, stacks, case):
        assert rules.broken("minted", stacks(case)) == []

    def test_buys_the_capacity_that_was_planned(self, stacks, case):
        assert rules.broken("capacity", stacks(case)) == []

    def test_ends_billing_and_keeps_the_hard_end(self, stacks, case):
        assert rules.broken("ending", stacks(case)) == []

    def test_holds_no_secret(self, stacks, case):
        assert rules.broken("no_secret", stacks(case)) == []

    def test_puts_out_what_the_next_stack_and_people_need(self, stacks, case):
        assert rules.broken("outputs", stacks(case)) == []

    def test_launches_nodes_and_nothing_else(self, stacks, case):
        assert rules.broken("launched", stacks(case)) == []

    def test_is_what_was_planned_down_to_address_disk_and_name(self, stacks, case):
        assert rules.broken("planned", stacks(case)) == []

    def test_acts_in_the_planned_account_as_the_planned_role(self, stacks, case):
        assert rules.broken("provider", stacks(case)) == []

    def test_hands_on_the_users_own_network_untouched(self, stacks, case):
        assert rules.broken("own_network", stacks(case)) == []


def test_every_way_of_buying_and_joining_is_a_case():
    for cloud in Cloud:
        mine = [case for case in cases.every() if case.cloud is cloud]
        bought = {(case.template.fabric, case.compute.capacity) for case in mine}
        joined = {t.fabric for t in MARKET.types if t.cloud is cloud}
        assert bought >= {(fabric, capacity) for fabric in joined for capacity in cases.CapacityType}
        assert any(case.network.own for case in mine)
        assert any(case.template.session for case in mine) == (cloud in cases.WITH_SESSION)


def test_each_method_of_the_contract_is_a_rule_and_each_rule_a_method():
    source = import_module("inspect").getsource(TestEveryStackOfEveryCloud)
    assert all(f'"{rule}"' in source for rule in (*rules.SAME_WORDS, *rules.OWN_WORDS))


# ---- images: every GPU type of the catalog

#: why the catalog's types without a packaged image have none
REASONS = {
    "its driver is NVIDIA's GRID, which no image of Azure's brings": {"A10", "M60"},
    "skyplan's nodes drive NVIDIA GPUs only": {"MI25", "MI300X"},
    "confidential VMs are not supported": {"H100-NVL"},
}
#: what names an image: resolved when the access stack is applied or the disk is made, or an exact version
NAMED = {
    Cloud.AWS: r"/aws/service/deeplearning/ami/(x86_64|arm64)/base-(oss|proprietary)-nvidia-driver-gpu-[\w.-]+/latest/ami-id",
    Cloud.GCP: r"projects/[\w-]+/global/images/family/[\w-]*nvidia-\d+",
    Cloud.AZURE: r"microsoft-dsvm:ubuntu-hpc:[\w-]+:\d+\.\d+\.\d{10}",
    Cloud.NEBIUS: r"family:ubuntu[\d.]+-cuda[\d.]+",
}


@pytest.mark.parametrize("kind", MARKET.types, ids=lambda kind: f"{kind.cloud.value}-{kind.name}")
def test_every_type_has_an_image_with_a_driver_or_a_stated_reason(kind):
    images = import_module(f"modules.{kind.cloud.value}.images")
    regions = [region.name for region in MARKET.regions if region.cloud is kind.cloud]
    try:
        found = {images.machine_image(kind, region) for region in regions}
    except InputError as refused:
        (diagnostic,) = refused.diagnostics
        why = diagnostic.summary.rpartition(": ")[2]
        assert kind.gpu in REASONS[why]
        assert f"{kind.cloud.value}/{regions[0]}/{kind.name}" in (diagnostic.hint or "")
        return
    (image,) = found
    assert import_module("re").fullmatch(NAMED[kind.cloud], image)


def test_a_pin_wins_on_every_cloud():
    for kind in MARKET.types:
        pinned = {
            Cloud.AWS: "ami-0123456789abcdef0",
            Cloud.AZURE: "acme:train:7:1.0.0",
        }.get(kind.cloud, "projects/acme/global/images/train-v7")
        pins = ((f"{kind.cloud.value}/*/{kind.name}", pinned),)
        assert import_module(f"modules.{kind.cloud.value}.images").machine_image(kind, "r", pins) == pinned


# ---- what the contract stands on


def test_schema_files_are_what_the_updater_writes_and_hold_what_is_used():
    for name, (kinds, data) in update.USED.items():
        packed = (checker.SCHEMAS / f"{name}.json.gz").read_bytes()
        document = json.loads(gzip.decompress(packed))
        assert update.pack(document) == packed, name
        assert (set(document["resources"]), set(document["data"])) == (set(kinds), set(data))


def test_no_type_that_is_shipped_replaces_what_its_owner_has_set():
    authoritative = ("_iam_binding", "_iam_policy", "_bucket_policy", "_acl", "_key_policy", "_policy_attachment")
    # a policy of its own, and one attachment of it: unlike aws_iam_policy_attachment, which takes the policy from everybody else
    additive = {"aws_iam_policy", "aws_iam_role_policy_attachment"}
    for name, (kinds, _) in update.USED.items():
        assert not [kind for kind in set(kinds) - additive if kind.endswith(authoritative)], name
    assert not [kind for kind in ADDITIVE if kind.endswith(authoritative)]


def test_references_that_lead_nowhere_are_found():
    def stack(**changes):
        document = {
            "terraform": {
                "backend": {"local": {}},
                "required_providers": {"aws": {"source": "hashicorp/aws", "version": "6"}},
            },
            "provider": {"aws": [{"region": "r", "max_retries": 5}]},
            "variable": {"subnets": {"type": "map(string)"}},
            "resource": {"aws_vpc": {"net": {"cidr_block": "10.0.0.0/16"}}},
        }
        subnet = {"vpc_id": "${aws_vpc.net.id}", "for_each": {"a": "10.0.0.0/20"}, "cidr_block": "${each.value}"}
        document["resource"]["aws_subnet"] = {"private": subnet | changes}
        return checker.problems(document)

    assert stack() == []
    assert stack(availability_zone='${var.subnets["b"]}', tags={"n": '${join("-", [each.key, "x"])}'}) == []
    for wrong in (
        {"vpc_id": "${aws_vpc.other.id}"},
        {"vpc_id": "${aws_vpc.net.identity}"},
        {"vpc_id": '${aws_vpc.net["a"].id}'},
        {"vpc_id": "${aws_subnet.private.id}"},
        {"vpc_id": '${aws_subnet.private["b"].id}'},
        {"vpc_id": "${var.vpc}"},
        {"vpc_id": "${each.value.id}"},
        {"vpc_id": "${data.aws_vpc.net.id}"},
        {"vpc_id": '${format("%s", aws_vpc.nets.id)}'},
        {"vpc_id": '${"${var.nothing}-x"}'},
        {"vpc_id": "${local.vpc}"},
        {"vpc_id": "${file(each.key)}"},
        {"depends_on": ["aws_vpc.nets"]},
        {"lifecycle": {"ignore_changes": ["tags"]}},
        {"for_each": 3},
    ):
        assert len(stack(**wrong)) >= 1, wrong


def test_tags_that_ec2_takes_and_iam_refuses_do_not_fail_a_role():
    """IAM knows fewer characters, and no two keys that differ in case only; at apply it would refuse the role."""
    from modules.aws.access import iam_tags

    made = iam_tags((("skyplan:job", "a"), *cases.AWKWARD, ("note", "a+b=c@d: é")))
    assert made["skyplan:job"] == "a"
    assert made["note"] == "a+b=c@d: é"
    assert made["cost/center"] == "R-D -42--"
    assert made["Owner"] == "Zoë --user- --if-"
    assert "owner" not in made
    assert "$" not in "".join(made.values())


# ---- a tunnel, the one exception


def without_its_place(cloud: Cloud, acc: dict[str, Any]) -> dict[str, Any]:
    """GCP's rule of the tunnel stands before the one that refuses the rest.  Held here and taken away: `tunnelled` holds who is let in."""
    acc = json.loads(json.dumps(acc))
    if cloud is Cloud.GCP:
        made = acc["resource"]["google_compute_firewall"]
        assert made["tunnel"].pop("priority") < made["rest-inbound"]["priority"]
    return acc


@pytest.mark.parametrize("cloud", Cloud)
def test_a_tunnel_is_udp_from_single_peers_and_without_it_the_whole_contract_holds(render, cloud):
    case, addresses = tunnelled.case(cloud)
    net, acc, cmp, adr = (render(given) for given in (*case.inputs, addresses))
    assert [checker.problems(document) for document in (net, acc, cmp, adr)] == [[], [], [], []]
    rendered = cases.Rendered(case=case, net=net, acc=without_its_place(cloud, acc), cmp=cmp)
    assert rules.broken("public_address", rendered) != []
    assert rules.broken("ingress", rendered) != []
    assert rules.violations(tunnelled.without_tunnel(rendered)) == []


@pytest.mark.parametrize("cloud", Cloud)
def test_endpoints_are_reserved_by_rank_carry_tags_and_nothing_else_is_with_them(render, cloud):
    _, given = tunnelled.case(cloud)
    ((kind, name, body),) = checker.resources(render(given))
    assert (name, body["for_each"]) == ("node", {rank: rank for rank in given.ranks})
    if field := checker.taggable(kind):
        assert as_written(kind, given.tags).items() <= body[field].items()
    assert not rules.common._ABOUT_ACCESS.search(kind)


@pytest.mark.parametrize("cloud", Cloud)
def test_a_tunnel_that_lets_in_more_than_single_peers_is_refused(render, cloud):
    case, _ = tunnelled.case(cloud)
    net, acc, cmp = (render(given) for given in case.inputs)
    text = json.dumps(without_its_place(cloud, acc))
    assert "/32" in text
    wider = json.loads(text.replace("%s/32", "%s/8").replace("${each.value}/32", "${each.value}/8"))
    with pytest.raises(AssertionError):
        tunnelled.without_tunnel(cases.Rendered(case=case, net=net, acc=wider, cmp=cmp))
