"""The schema check: what a provider would refuse is refused on construction, all at once, with a near miss."""

from __future__ import annotations

import gzip
import json

import pytest

from modules import schema
from modules.schema import SchemaMismatch, SchemaWarning
from modules.schemas.update import USED, pack, reduce

AWS = schema.load("aws", ">= 5.100, < 7")


def problems(kind, attributes):
    with pytest.raises(SchemaMismatch) as refused:
        AWS.check_resource(kind, attributes, f"{kind}.x")
    return list(refused.value.problems)


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("aws_vpc", {"cidr_block": "10.0.0.0/16", "tags": {"a": "${each.key}"}, "enable_dns_support": True}),
        ("aws_subnet", {"vpc_id": "${aws_vpc.x.id}", "map_public_ip_on_launch": "${var.x}"}),
        ("aws_instance", {"launch_template": {"id": "lt-1"}, "vpc_security_group_ids": "${var.groups}"}),
        ("aws_launch_template", {"network_interfaces": [{"device_index": 0}, {"device_index": 1}]}),
        ("aws_launch_template", {"network_interfaces": {"device_index": 0}}),
        ("aws_vpc", {"cidr_block": None}),
    ],
)
def test_what_the_provider_takes_is_taken(kind, attributes):
    AWS.check_resource(kind, attributes, "x")


@pytest.mark.parametrize(
    ("kind", "attributes", "expected"),
    [
        ("aws_vcp", {}, "unknown resource `aws_vcp` (did you mean `aws_vpc`?)"),
        ("aws_vpc", {"cidr_blok": "x"}, "unknown argument `cidr_blok` (did you mean `cidr_block`?)"),
        ("aws_vpc", {"cidr_block": 10}, "`cidr_block` must be string, not int"),
        ("aws_vpc", {"enable_dns_support": "yes"}, "`enable_dns_support` must be bool, not str"),
        ("aws_vpc", {"tags": {"a": 1}}, "`tags` must be map(string), not dict"),
        ("aws_vpc", {"arn": "arn"}, "`arn` is set by the provider only"),
        ("aws_subnet", {}, "`vpc_id` is required"),
        ("aws_subnet", {"vpc_id": None}, "`vpc_id` is required"),
        ("aws_route_table", {"vpc_id": "v", "timeouts": "5m"}, "`timeouts` must be a block (single), not str"),
        ("aws_launch_template", {"network_interfaces": ["x"]}, "`network_interfaces[0]` must be a block, not str"),
        (
            "aws_launch_template",
            {"block_device_mappings": [{"ebs": {"encryptd": "true"}}]},
            "unknown argument `block_device_mappings[0].ebs.encryptd` (did you mean `encrypted`?)",
        ),
    ],
)
def test_what_the_provider_refuses_is_refused(kind, attributes, expected):
    assert problems(kind, attributes) == [expected]


def test_all_problems_of_a_resource_come_at_once():
    assert len(problems("aws_subnet", {"cidr_blok": "x", "availability_zone": 1})) == 3


def test_data_sources_are_checked_too():
    with pytest.raises(SchemaMismatch, match="unknown data source `aws_ssm_paramter`"):
        AWS.check_data("aws_ssm_paramter", {}, "x")


def test_another_provider_version_turns_the_unknown_into_a_warning_naming_both():
    other = schema.load("aws", "= 6.40.0")
    with pytest.warns(SchemaWarning, match=r"6\.25\.0.*6\.40\.0"):
        other.check_resource("aws_vpc", {"brand_new": 1}, "aws_vpc.x")
    with pytest.raises(SchemaMismatch, match="must be string"):
        other.check_resource("aws_vpc", {"cidr_block": 1}, "aws_vpc.x")


@pytest.mark.parametrize("constraint", ["", "6.25.0", "= 6.25.0", ">= 5.100, < 7", "~> 6.0"])
def test_the_shipped_version_and_ranges_are_strict(constraint):
    with pytest.raises(SchemaMismatch):
        schema.load("aws", constraint).check_resource("aws_vpc", {"brand_new": 1}, "aws_vpc.x")


def test_the_updater_keeps_what_is_used_and_gives_the_same_bytes_again():
    resources, data = USED["aws"]
    full = {
        "provider": "aws",
        "version": "9.9.9",
        "resources": {kind: {"attributes": {}, "blocks": {}} for kind in (*resources, "aws_other")},
        "data": {kind: {"attributes": {}, "blocks": {}} for kind in data},
    }
    reduced = reduce(full)
    assert "aws_other" not in reduced["resources"]
    packed = pack(reduced)
    assert packed == pack(json.loads(gzip.decompress(packed)))
