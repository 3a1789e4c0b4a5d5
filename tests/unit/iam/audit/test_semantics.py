"""Rules 6xx but 605 beyond their fixtures: the cases that other tools miss, and facts of AWS that they turn on."""

from __future__ import annotations

import pytest

from planner.iam.audit.registry import run
from planner.iam.documents import policy_from
from planner.model.offer import Cloud
from planner.model.policy import Audited, PolicyKind, Subject

EC2 = "arn:aws:ec2:us-east-1:111122223333:"
REQUEST = {"StringEquals": {"aws:RequestTag/skyplan:project": "llm"}}
RESOURCE = {"StringEquals": {"aws:ResourceTag/skyplan:project": "llm"}}


def audited(*statements, version="2012-10-17"):
    document = {"Version": version, "Statement": [{"Effect": "Allow", **one} for one in statements]}
    policy = policy_from(document, kind=PolicyKind.IDENTITY, name="p")
    return Audited(subjects=(Subject(cloud=Cloud.AWS, name="x", origin="x", policies=(policy,)),))


def rules(*statements):
    return [found.rule for found in run(audited(*statements), [f"SKY-IAM-60{n}" for n in (1, 2, 3, 4, 6)])]


@pytest.mark.parametrize(
    ("statement", "rule"),
    [
        ({"Action": "ec2:TerminateInstances", "Resource": f"{EC2}instance/*", "Condition": REQUEST}, "SKY-IAM-601"),
        ({"Action": "ec2:DescribeInstances", "Resource": "*", "Condition": RESOURCE}, "SKY-IAM-601"),
        ({"Action": "ec2:Describe*", "Resource": "*", "Condition": REQUEST}, "SKY-IAM-601"),
        ({"Action": "ec2:RunInstances", "Resource": "*", "Condition": REQUEST}, "SKY-IAM-601"),
        ({"Action": "ec2:RunInstances", "Resource": f"{EC2}subnet/*", "Condition": REQUEST}, "SKY-IAM-601"),
        ({"Action": "ec2:RunInstances", "Resource": f"{EC2}instance/*", "Condition": RESOURCE}, "SKY-IAM-601"),
        (
            {
                "Action": "ec2:TerminateInstances",
                "Resource": "*",
                "Condition": {"StringEqualsIfExists": RESOURCE["StringEquals"]},
            },
            "SKY-IAM-602",
        ),
        (
            {
                "Action": "ec2:CreateTags",
                "Resource": "*",
                "Condition": {"ForAllValues:StringEquals": {"aws:TagKeys": ["a"]}},
            },
            "SKY-IAM-602",
        ),
        ({"NotAction": "iam:*", "Resource": "*"}, "SKY-IAM-603"),
        ({"Action": "s3:GetObject", "NotResource": "arn:aws:s3:::secret/*"}, "SKY-IAM-603"),
        ({"Action": "ec2:LaunchGpu", "Resource": "*"}, "SKY-IAM-604"),
        ({"Action": "ec2:Frobnicate*", "Resource": "*"}, "SKY-IAM-604"),
        ({"Action": "RunInstances", "Resource": "*"}, "SKY-IAM-604"),
        ({"Action": "s3:GetObject", "Resource": "arn:aws:s3::acme"}, "SKY-IAM-604"),
    ],
)
def test_found(statement, rule):
    assert rules(statement) == [rule]


@pytest.mark.parametrize(
    "statement",
    [
        {"Action": "ec2:TerminateInstances", "Resource": f"{EC2}instance/*", "Condition": RESOURCE},
        {"Action": "ec2:RunInstances", "Resource": f"{EC2}instance/*", "Condition": REQUEST},
        {"Action": "ec2:RunInstances", "Resource": f"{EC2}subnet/*", "Condition": RESOURCE},
        {"Action": "ec2:*", "Resource": "*", "Condition": RESOURCE},
        {
            "Action": "ec2:DescribeInstances",
            "Resource": "*",
            "Condition": {"StringEquals": {"aws:RequestedRegion": "r"}},
        },
        {
            "Action": "ec2:RunInstances",
            "Resource": "*",
            "Condition": {"StringLikeIfExists": {"ec2:InstanceType": "p5.*"}},
        },
        {"Action": "newservice:Frobnicate", "Resource": "*"},
        {"Action": "s3:GetObject", "Resource": "${aws_s3_bucket.b.arn}/*"},
        {"Effect": "Deny", "NotAction": "ec2:*", "Resource": "*"},
        {
            "Effect": "Deny",
            "Action": "ec2:*",
            "Resource": "*",
            "Condition": {"StringNotEqualsIfExists": {"aws:x": "y"}},
        },
    ],
)
def test_clean(statement):
    assert rules(statement) == []


def test_a_launch_split_by_kind_is_no_dead_grant():
    created = {"Action": "ec2:RunInstances", "Resource": "*", "Condition": REQUEST}
    kinds = ("subnet", "security-group", "network-interface", "volume", "launch-template", "instance")
    rest = {
        "Action": "ec2:RunInstances",
        "Resource": ["arn:aws:ec2:us-east-1::image/*", *(f"{EC2}{kind}/*" for kind in kinds)],
    }
    assert rules(created, rest) == []


def test_the_fix_of_a_dead_key_names_the_one_that_is_there():
    dead = {"Action": "ec2:TerminateInstances", "Resource": f"{EC2}instance/*", "Condition": REQUEST}
    (found,) = run(audited(dead), ["SKY-IAM-601"])
    assert '"aws:ResourceTag/skyplan:project": "llm"' in found.fix
    assert "aws:RequestTag" not in found.fix


def test_the_old_version_is_found_too():
    found = run(audited({"Action": "s3:GetObject", "Resource": "*"}, version="2008-10-17"), ["SKY-IAM-604"])
    assert [one.message.partition(":")[0] for one in found] == ["Version is 2008-10-17"]


OWNED = {"StringEquals": {"aws:ResourceTag/team": "ml"}}
KEYS = {"ForAllValues:StringEquals": {"aws:TagKeys": ["Name"]}, "StringEqualsIfExists": {"aws:RequestTag/cluster": "a"}}


def test_which_tags_of_ones_own_may_change_is_no_open_guard():
    """Karpenter's controller tags its machines so: whoever sends no tag changes none."""
    held = {"Effect": "Allow", "Action": "ec2:CreateTags", "Resource": "arn:aws:ec2:*:*:instance/*"}
    assert "SKY-IAM-602" not in rules({**held, "Condition": {**OWNED, **KEYS}})
    assert "SKY-IAM-602" in rules({**held, "Condition": KEYS})
    assert "SKY-IAM-602" in rules({**held, "Action": "ec2:DeleteTags", "Condition": {**OWNED, **KEYS}})
    assert "SKY-IAM-602" in rules({**held, "Action": "ec2:RunInstances", "Condition": {**OWNED, **KEYS}})
