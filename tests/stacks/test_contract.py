"""What every stack must hold, whatever else changes: the security contract, tags, one kind of thing per stack."""

from __future__ import annotations

import base64
import json

import pytest

from planner.model.offer import CapacityType
from planner.model.project import Backend, OwnNetwork
from planner.model.stack import PolicyDocument
from tests.stacks import inputs


@pytest.fixture(scope="session")
def documents(render):
    return {given.name[:3]: render(given) for given in inputs.everything()}


def resources(document):
    return [(kind, name, body) for kind, named in document.get("resource", {}).items() for name, body in named.items()]


def test_no_subnet_and_no_node_gets_a_public_address(documents, render):
    for _, _, subnet in (r for r in resources(documents["net"]) if r[0] == "aws_subnet"):
        assert subnet["map_public_ip_on_launch"] is False
    for name, template in documents["acc"]["resource"]["aws_launch_template"].items():
        for interface in template.get("network_interfaces", []):
            assert interface.get("associate_public_ip_address", "false") == "false", name
    plain = documents["cmp"]["resource"]["aws_instance"]["node"]
    assert plain["associate_public_ip_address"] == '${var.subnet_id == "" ? null : false}'
    single = render(inputs.access(templates=(inputs.efa_template(efa_interfaces=1),)))
    for template in single["resource"]["aws_launch_template"].values():
        assert [i["associate_public_ip_address"] for i in template["network_interfaces"]] == ["false"]


def test_nothing_outside_may_open_a_connection(documents):
    rules = documents["acc"]["resource"]["aws_vpc_security_group_ingress_rule"]
    group = "${aws_security_group.nodes.id}"
    assert {rule.get("referenced_security_group_id") for rule in rules.values()} == {group}
    assert not any("cidr_ipv4" in rule or "cidr_ipv6" in rule or "prefix_list_id" in rule for rule in rules.values())
    assert "ingress" not in documents["acc"]["resource"]["aws_security_group"]["nodes"]


def test_efa_may_reach_its_peers_both_ways(documents):
    for direction in ("ingress", "egress"):
        rule = documents["acc"]["resource"][f"aws_vpc_security_group_{direction}_rule"]["peers"]
        assert rule["ip_protocol"] == "-1"
        assert rule["referenced_security_group_id"] == rule["security_group_id"]
        assert "from_port" not in rule


def test_outbound_is_http_and_https_only(documents):
    out = documents["acc"]["resource"]["aws_vpc_security_group_egress_rule"]["out"]
    assert (out["for_each"], out["ip_protocol"], out["cidr_ipv4"]) == ({"http": 80, "https": 443}, "tcp", "0.0.0.0/0")


def test_a_network_that_jobs_share_lets_no_job_reach_another(documents):
    assert not any("security_group" in kind for kind, _, _ in resources(documents["net"]))
    assert documents["net"]["output"]["security_group_ids"]["value"] == []
    groups = documents["acc"]["resource"]["aws_security_group"]
    assert [(g["name"], g["vpc_id"]) for g in groups.values()] == [
        ("skyplan-acme-acc-llama3-8b-sft-prod-us-east-1", "${var.vpc_id}")
    ]


def test_every_node_is_in_the_jobs_group_and_in_the_users_own(documents):
    both = "${concat([aws_security_group.nodes.id], var.security_group_ids)}"
    for launch in documents["acc"]["output"]["launch"]["value"].values():
        assert launch["security_group_ids"] == both
    for template in documents["acc"]["resource"]["aws_launch_template"].values():
        assert {i["security_groups"] for i in template.get("network_interfaces", [])} <= {both}


def test_the_outbound_path_really_exists(documents):
    made = documents["net"]["resource"]
    assert made["aws_route"]["private"]["nat_gateway_id"] == "${aws_nat_gateway.net.id}"
    assert made["aws_route"]["public"]["gateway_id"] == "${aws_internet_gateway.net.id}"
    assert made["aws_nat_gateway"]["net"]["depends_on"] == ["aws_route_table_association.public", "aws_route.public"]
    assert made["aws_vpc_endpoint"]["s3"]["route_table_ids"] == [
        "${aws_route_table.private.id}",
        "${aws_route_table.public.id}",
    ]


def test_templates_are_hardened(documents):
    for template in documents["acc"]["resource"]["aws_launch_template"].values():
        metadata = template["metadata_options"]
        assert (metadata["http_tokens"], metadata["http_put_response_hop_limit"]) == ("required", 1)
        disks = template["block_device_mappings"]
        assert [(d["ebs"]["encrypted"], d["ebs"]["volume_type"]) for d in disks] == [("true", "gp3")]
        assert template["instance_initiated_shutdown_behavior"] == "terminate"
        assert "key_name" not in template


def test_disks_use_the_customers_key_where_one_is_given(render):
    arn = "arn:aws:kms:us-east-1:123456789012:key/k"
    made = render(inputs.access(kms_key_arn=arn))
    for template in made["resource"]["aws_launch_template"].values():
        assert template["block_device_mappings"][0]["ebs"]["kms_key_id"] == arn


def test_a_tag_that_metadata_cannot_hold_turns_metadata_tags_off(render):
    made = render(inputs.access(tags=(*inputs.JOB_TAGS, ("example.org/team", "a"))))
    for template in made["resource"]["aws_launch_template"].values():
        assert template["metadata_options"]["instance_metadata_tags"] == "disabled"


def test_no_secret_is_in_any_stack(documents):
    text = json.dumps(documents)
    user_data = [
        base64.b64decode(t["user_data"]).decode() for t in documents["acc"]["resource"]["aws_launch_template"].values()
    ]
    for data in user_data:
        assert "acme/hf" in data  # its name
        assert "secretsmanager get-secret-value" in data
    assert "aws_secretsmanager" not in text
    assert "password" not in text.lower()


def test_policies_are_data_sources_limited_to_prefixes(documents):
    found = documents["acc"]["data"]["aws_iam_policy_document"]
    for name, document in found.items():
        for statement in document["statement"]:
            assert not any("*" in action for action in statement["actions"]), name
            assert "*" not in statement.get("resources", []), name
    assert found["trust"]["statement"][0]["principals"] == [{"type": "Service", "identifiers": ["ec2.amazonaws.com"]}]
    role = documents["acc"]["resource"]["aws_iam_role"]["node"]
    assert role["path"] == "/skyplan/acme/"
    assert role["assume_role_policy"] == "${data.aws_iam_policy_document.trust.json}"


def test_policy_variables_are_written_for_the_data_source(render):
    statement = {
        "Sid": "S",
        "Effect": "Allow",
        "Action": "secretsmanager:GetSecretValue",
        "Resource": "arn:aws:s3:::b/${*}",
        "Condition": {"StringEquals": {"aws:ResourceAccount": "${aws:PrincipalAccount}"}},
    }
    policy = PolicyDocument(name="node-data", document={"Version": "2012-10-17", "Statement": [statement]})
    made = render(inputs.access(policies=(policy,)))["data"]["aws_iam_policy_document"]["node-data"]["statement"][0]
    assert made["resources"] == ["arn:aws:s3:::b/&{*}"]
    assert made["condition"][0]["values"] == ["&{aws:PrincipalAccount}"]


def test_the_boundary_is_on_every_role(render):
    made = render(inputs.access(permissions_boundary="arn:aws:iam::123456789012:policy/skyplan-boundary"))
    roles = made["resource"]["aws_iam_role"]
    assert all(role["permissions_boundary"].endswith("skyplan-boundary") for role in roles.values())


def test_every_taggable_resource_has_the_tags(documents):
    untaggable = {"aws_route", "aws_route_table_association", "aws_iam_role_policy"}
    for stack, document in documents.items():
        for kind, name, body in resources(document):
            if kind in untaggable:
                continue
            assert body["tags"]["skyplan:managed"] == "true", (stack, kind, name)
            assert body["tags"]["team"] == "llm"
            assert ("skyplan:generation" in body["tags"]) == (stack == "cmp")


def test_compute_holds_nodes_and_nothing_else(documents):
    assert list(documents["cmp"]["resource"]) == ["aws_instance"]
    assert "data" not in documents["cmp"]
    node = documents["cmp"]["resource"]["aws_instance"]["node"]
    assert list(node["for_each"]) == ["r00", "r01"]
    assert node["lifecycle"] == {"ignore_changes": "all"}
    assert "p0123456789" not in json.dumps(node), "the plan is an output, never a tag"
    assert documents["cmp"]["output"]["plan_id"]["value"] == "p0123456789"


def test_spot_is_one_time(documents):
    spot = documents["cmp"]["resource"]["aws_instance"]["node"]["instance_market_options"]["spot_options"]
    assert spot["spot_instance_type"] == "one-time"


def test_on_demand_says_nothing_and_a_reservation_is_targeted_outside_the_group(render):
    on_demand = render(inputs.compute(capacity=CapacityType.ON_DEMAND))["resource"]["aws_instance"]["node"]
    assert "instance_market_options" not in on_demand
    assert "placement_group" in on_demand
    reserved = render(inputs.compute(capacity=CapacityType.RESERVED, reservation="cr-1"))
    node = reserved["resource"]["aws_instance"]["node"]
    target = node["capacity_reservation_specification"]["capacity_reservation_target"]
    assert target == {"capacity_reservation_id": "cr-1"}
    assert "placement_group" not in node
    assert "instance_market_options" not in node


def test_a_reservation_made_in_the_group_is_used_in_it(render):
    given = inputs.compute(capacity=CapacityType.RESERVED, reservation="cr-1", in_group=True)
    node = render(given)["resource"]["aws_instance"]["node"]
    assert node["placement_group"] == '${var.placement_group == "" ? null : var.placement_group}'
    alone = render(inputs.compute(capacity=CapacityType.RESERVED, reservation="cr-1", in_group=True, cluster=False))
    assert "placement_group" not in alone["resource"]["aws_instance"]["node"]


def test_a_capacity_block_is_a_market_of_its_own(render):
    given = inputs.compute(capacity=CapacityType.RESERVED, reservation="cr-1", capacity_block=True)
    node = render(given)["resource"]["aws_instance"]["node"]
    assert node["instance_market_options"] == {"market_type": "capacity-block"}
    target = node["capacity_reservation_specification"]["capacity_reservation_target"]
    assert target == {"capacity_reservation_id": "cr-1"}


def test_addresses_left_to_the_cloud_are_not_asked_for(render):
    node = render(inputs.compute(addresses=()))["resource"]["aws_instance"]["node"]
    assert "private_ip" not in node
    assert node["for_each"] == {"r00": "", "r01": ""}


def test_efa_interfaces_one_per_card_and_the_heads_address_is_fixed(documents):
    templates = documents["acc"]["resource"]["aws_launch_template"]
    head, peer = templates["p4d-24xlarge-use1-az4-head"], templates["p4d-24xlarge-use1-az4"]
    cards = [(i["network_card_index"], i["device_index"], i["interface_type"]) for i in peer["network_interfaces"]]
    assert cards == [(0, 0, "efa"), (1, 1, "efa"), (2, 1, "efa"), (3, 1, "efa")]
    assert [i.get("private_ip_address") for i in head["network_interfaces"]] == ["10.7.16.10", None, None, None]
    assert not any("private_ip_address" in i for i in peer["network_interfaces"])
    assert "network_interfaces" not in templates["g5-xlarge-use1-az1"]


def test_the_first_card_of_b300_carries_no_efa(render):
    template = inputs.efa_template(instance_type="p6-b300.48xlarge", efa_interfaces=16)
    made = render(inputs.access(templates=(template,)))["resource"]["aws_launch_template"]
    for launch in made.values():
        assert [i.get("interface_type") for i in launch["network_interfaces"]] == [None] + ["efa"] * 16


def test_an_image_found_by_parameter_is_kept_and_a_pinned_one_followed(documents):
    templates = documents["acc"]["resource"]["aws_launch_template"]
    assert templates["p4d-24xlarge-use1-az4"]["lifecycle"] == {"ignore_changes": ["image_id"]}
    assert "lifecycle" not in templates["g5-xlarge-use1-az1"]


def test_the_users_own_network_is_handed_on_untouched(render):
    own = OwnNetwork(
        region="us-east-1", vpc_id="vpc-1", subnets=(("use1-az1", "subnet-1"),), security_group_ids=("sg-1", "sg-2")
    )
    made = render(inputs.network(own=own))
    assert "resource" not in made
    assert made["output"]["security_group_ids"]["value"] == ["sg-1", "sg-2"]
    assert made["output"]["subnet_ids"]["value"] == {"use1-az1": "subnet-1"}


def test_the_users_own_network_without_groups_adds_none(render):
    own = OwnNetwork(region="us-east-1", vpc_id="vpc-1", subnets=(("use1-az1", "subnet-1"),))
    made = render(inputs.network(own=own))
    assert "resource" not in made
    assert made["output"]["security_group_ids"]["value"] == []


def test_a_session_needs_the_channel_and_opens_nothing(render, documents):
    assert "session" not in documents["acc"]["data"]["aws_iam_policy_document"]
    made = render(inputs.access(templates=(inputs.efa_template(), inputs.plain_template(session=True))))
    statements = made["data"]["aws_iam_policy_document"]["session"]["statement"]
    assert sorted(action for statement in statements for action in statement["actions"]) == [
        "ssm:UpdateInstanceInformation",
        "ssmmessages:CreateControlChannel",
        "ssmmessages:CreateDataChannel",
        "ssmmessages:OpenControlChannel",
        "ssmmessages:OpenDataChannel",
    ]
    policy = made["resource"]["aws_iam_role_policy"]["session"]
    assert policy["policy"] == "${data.aws_iam_policy_document.session.json}"
    assert "AmazonSSMManagedInstanceCore" not in json.dumps(made)
    rules = made["resource"]["aws_vpc_security_group_ingress_rule"]
    assert rules == documents["acc"]["resource"]["aws_vpc_security_group_ingress_rule"]


def test_provider_acts_as_the_role_in_the_account_and_gives_up_soon(render):
    made = render(inputs.network(account="123456789012", role_arn="arn:aws:iam::123456789012:role/deployer"))
    (provider,) = made["provider"]["aws"]
    assert provider["allowed_account_ids"] == ["123456789012"]
    assert provider["assume_role"][0]["role_arn"].endswith("role/deployer")
    assert 0 < provider["max_retries"] < 10
    assert "default_tags" not in provider


@pytest.mark.parametrize("kind", ["local", "s3", "gcs", "azurerm"])
def test_no_backend_setting_and_no_path_is_in_a_stack(render, kind):
    made = render(inputs.network(backend=Backend(kind=kind, settings=(("bucket", "acme-state"),))))
    assert made["terraform"]["backend"] == {kind: {}}
    assert "acme-state" not in json.dumps(made)


def test_a_users_template_signs_are_words(render):
    made = render(inputs.network(tags=(*inputs.TAGS, ("note", "${x} %{y}"))))
    assert made["resource"]["aws_vpc"]["net"]["tags"]["note"] == "$${x} %%{y}"
