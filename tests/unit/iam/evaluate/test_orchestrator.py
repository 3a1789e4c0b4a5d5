"""The orchestrator's policy of the notes (a copy of it): what it allows, and beside each allowed request one that differs in one thing and is denied."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from planner.iam.documents import policy_from
from planner.iam.evaluate.aws import Request, judge
from planner.iam.evaluate.verdict import Decision
from planner.model.policy import PolicyKind

POLICY = policy_from(
    Path(__file__).with_name("aws_orchestrator.json").read_text(encoding="utf-8"),
    kind=PolicyKind.IDENTITY,
    name="orchestrator",
)
HERE = "arn:aws:ec2:us-east-1:111122223333"
ROLE = "arn:aws:iam::111122223333:role/skyplan/llm-a/data"
REGION = {"aws:RequestedRegion": "us-east-1"}
OURS = {"aws:ResourceTag/skyplan:project": "llm-a", "aws:ResourceTag/skyplan:managed": "true"}
TAGGED = {"aws:RequestTag/skyplan:project": "llm-a"}
INSTANCE = {
    **TAGGED,
    "aws:RequestTag/skyplan:managed": "true",
    "aws:TagKeys": ("skyplan:project", "skyplan:managed", "Name"),
    "ec2:MetadataHttpTokens": "required",
    "ec2:MetadataHttpPutResponseHopLimit": "1",
    "ec2:InstanceType": "p5.48xlarge",
    "ec2:InstanceProfile": "arn:aws:iam::111122223333:instance-profile/skyplan/llm-a/data",
}
RUN, TAG, END = "ec2:RunInstances", "ec2:CreateTags", "ec2:TerminateInstances"
CREATED = {**TAGGED, "ec2:CreateAction": "RunInstances"}
ABSENT = None

# (action, resource, context that is allowed, (key, value) that makes it denied; or a resource that does)
TWINS = [
    ("ec2:DescribeInstances", "*", REGION, ("aws:RequestedRegion", "eu-west-1")),
    (RUN, f"{HERE}:instance/*", INSTANCE, ("aws:RequestTag/skyplan:project", "other")),
    (RUN, f"{HERE}:instance/*", INSTANCE, ("aws:RequestTag/skyplan:managed", ABSENT)),
    (RUN, f"{HERE}:instance/*", INSTANCE, ("aws:TagKeys", ("skyplan:project", "skyplan:managed", "Owner"))),
    (RUN, f"{HERE}:instance/*", INSTANCE, ("ec2:MetadataHttpTokens", "optional")),
    (RUN, f"{HERE}:instance/*", INSTANCE, ("ec2:MetadataHttpPutResponseHopLimit", "2")),
    (RUN, f"{HERE}:instance/*", INSTANCE, ("ec2:InstanceType", "p4de.24xlarge")),
    (RUN, f"{HERE}:instance/*", INSTANCE, ("ec2:InstanceProfile", ABSENT)),
    (RUN, f"{HERE}:instance/*", INSTANCE, HERE.replace("us-east-1", "us-west-2") + ":instance/*"),
    (RUN, f"{HERE}:volume/*", {**TAGGED, "ec2:Encrypted": "true"}, ("ec2:Encrypted", "false")),
    (RUN, f"{HERE}:subnet/subnet-1", OURS, ("aws:ResourceTag/skyplan:project", ABSENT)),
    (RUN, "arn:aws:ec2:us-east-1::image/ami-1", {"ec2:Owner": "amazon"}, ("ec2:Owner", "999988887777")),
    (TAG, f"{HERE}:instance/i-1", CREATED, ("ec2:CreateAction", ABSENT)),
    (END, f"{HERE}:instance/i-1", OURS, ("aws:ResourceTag/skyplan:project", "other")),
]
#: (action, resource, context, allowed)
CASES = [
    ("ec2:DescribeInstances", "*", REGION, True),
    ("ec2:DescribeSpotPriceHistory", "*", {"aws:RequestedRegion": "us-west-2"}, True),
    ("ec2:DescribeInstances", "*", {"aws:RequestedRegion": "eu-west-1"}, False),
    ("ec2:DescribeRegions", "*", REGION, False),
    (RUN, f"{HERE}:instance/*", INSTANCE, True),
    (RUN, f"{HERE}:instance/*", {**INSTANCE, "ec2:InstanceType": "g6e.12xlarge"}, True),
    (RUN, f"{HERE}:instance/*", {**INSTANCE, "ec2:InstanceType": "m7i.large"}, False),
    (RUN, f"{HERE}:instance/*", REGION, False),
    (RUN, f"{HERE}:volume/*", {**TAGGED, "ec2:Encrypted": "true"}, True),
    (RUN, f"{HERE}:volume/*", TAGGED, False),
    (RUN, f"{HERE}:network-interface/*", REGION, True),
    (RUN, f"{HERE}:spot-instances-request/*", REGION, True),
    (RUN, f"{HERE}:subnet/subnet-1", OURS, True),
    (RUN, f"{HERE}:security-group/sg-1", OURS, True),
    (RUN, f"{HERE}:security-group/sg-1", {}, False),
    (RUN, f"{HERE}:launch-template/lt-1", OURS, True),
    (RUN, "arn:aws:ec2:us-east-1::image/ami-1", {"ec2:Owner": "111122223333"}, True),
    (RUN, f"{HERE}:key-pair/k", OURS, False),
    (TAG, f"{HERE}:instance/i-1", CREATED, True),
    (TAG, f"{HERE}:instance/i-1", {**TAGGED, **OURS}, False),
    (END, f"{HERE}:instance/i-1", OURS, True),
    (END, f"{HERE}:instance/i-1", {}, False),
    ("ec2:CancelSpotInstanceRequests", f"{HERE}:spot-instances-request/sir-1", OURS, True),
    ("iam:PassRole", ROLE, {"iam:PassedToService": "ec2.amazonaws.com"}, True),
    ("iam:PassRole", ROLE, {"iam:PassedToService": "lambda.amazonaws.com"}, False),
    ("iam:PassRole", ROLE.replace("data", "admin"), {"iam:PassedToService": "ec2.amazonaws.com"}, False),
    ("ec2:ModifyInstanceAttribute", f"{HERE}:instance/i-1", OURS, False),
    ("s3:GetObject", "arn:aws:s3:::acme/llm-a/x", {}, False),
]


def request(action, resource, context):
    values = {key: (value,) if isinstance(value, str) else value for key, value in context.items()}
    return Request(action=action, resource=resource, context=values)


def test_there_are_the_28_cases_of_the_notes():
    assert len(CASES) == 28


@pytest.mark.parametrize(("action", "resource", "context", "allowed"), CASES)
def test_the_cases_of_the_notes(action, resource, context, allowed):
    assert judge([POLICY], request(action, resource, context)).allowed is allowed


@pytest.mark.parametrize(("action", "resource", "context", "change"), TWINS)
def test_each_denial_has_a_twin_that_is_allowed(action, resource, context, change):
    assert judge([POLICY], request(action, resource, context))
    if isinstance(change, str):
        denied = request(action, change, context)
    else:
        key, value = change
        denied = request(action, resource, {k: v for k, v in {**context, key: value}.items() if v is not None})
    assert judge([POLICY], denied).decision is Decision.IMPLICIT_DENY


def test_the_verdict_names_the_statement():
    assert judge([POLICY], request(END, f"{HERE}:instance/i-1", OURS)).by == "orchestrator: TerminateOwnInstances"


def test_a_verdict_takes_microseconds():
    """The bound is ten times what it takes, for a busy machine; the best of several runs counts."""
    asked = request(RUN, f"{HERE}:instance/*", INSTANCE)
    best = min(_seconds(lambda: judge([POLICY], asked), 200) for _ in range(5))
    assert best < 0.0005


def _seconds(call, times):
    start = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - start) / times
