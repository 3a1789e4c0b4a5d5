"""Rules 1xx in detail: whose tags count, what a wildcard is named by, where spot is missed."""

from __future__ import annotations

import pytest

from planner.iam.audit.registry import run
from tests.unit.iam.audit.fixture_files import audited_from

INSTANCES = "arn:aws:ec2:us-east-1:111122223333:instance/*"
KARPENTER = {
    "StringEquals": {"aws:RequestTag/kubernetes.io/cluster/main": "owned"},
    "StringLike": {"aws:RequestTag/karpenter.sh/nodepool": "*"},
}


def found(rule, *statements, identity=None, **top):
    policies = [{"name": "p", "document": {"Version": "2012-10-17", "Statement": list(statements)}}]
    subject = {"cloud": "aws", "name": "x", "identity": identity, "policies": policies}
    return run(audited_from({"subjects": [subject], **top}), [f"SKY-IAM-{rule}"])


def allow(action, resource="*", **condition):
    made = {"Effect": "Allow", "Action": action, "Resource": resource}
    return {**made, "Condition": condition} if condition else made


def test_another_controllers_tag_guards_its_own_launch():
    assert found(101, allow("ec2:RunInstances", INSTANCES, **KARPENTER)) == ()


def test_it_guards_no_launch_of_ours():
    assert len(found(101, allow("ec2:RunInstances", INSTANCES, **KARPENTER), identity="orchestrator")) == 1


def test_a_fleet_is_a_launch():
    (one,) = found(101, allow(["ec2:CreateFleet", "ec2:RunInstances"]))
    assert one.action == "ec2:RunInstances, ec2:CreateFleet"


def test_the_word_of_the_project_is_taken_from_the_policy():
    tagged = allow("ec2:RunInstances", INSTANCES, StringEquals={"aws:RequestTag/skyplan:project": "llm"})
    (one,) = found(102, tagged, allow("ec2:TerminateInstances", INSTANCES), identity="orchestrator")
    assert '"aws:ResourceTag/skyplan:project": "llm"' in one.fix


def test_one_finding_a_statement():
    (one,) = found(102, allow(["ec2:StopInstances", "ec2:TerminateInstances"], INSTANCES))
    assert one.action == "ec2:TerminateInstances, ec2:StopInstances"
    assert one.grant == "p/statement 1"
    assert one.resource == INSTANCES


@pytest.mark.parametrize("resource", ["subnet", "security-group", "launch-template"])
def test_tags_of_what_launches_hang_on_count_too(resource):
    assert found(103, allow("ec2:CreateTags", f"arn:aws:ec2:us-east-1:1:{resource}/*"))


def test_tags_of_what_nothing_hangs_on_do_not():
    assert found(103, allow("ec2:CreateTags", "arn:aws:ec2:us-east-1:1:dhcp-options/*")) == ()


def test_any_size_of_a_family_is_a_bound():
    assert found(104, allow("ec2:RunInstances", INSTANCES, StringLike={"ec2:InstanceType": "g6e.*"})) == ()
    assert found(104, allow("ec2:RunInstances", INSTANCES, StringLike={"ec2:InstanceType": "*"}))


def test_a_type_left_out_of_the_test_is_still_any():
    other = {"ec2:InstanceType": "p5.48xlarge"}
    assert found(104, allow("ec2:RunInstances", INSTANCES, StringNotEquals=other))


def test_a_wildcard_is_named_by_what_is_needed():
    needs = {"planner/aws": {"ec2:DescribeRegions": "which there are"}}
    (one,) = found(109, allow("ec2:Describe*"), identity="planner", needs=needs)
    assert '"Action": "ec2:DescribeRegions"' in one.fix
    (one,) = found(109, allow("ec2:DescribeInstanceType*"))
    assert '"ec2:DescribeInstanceTypeOfferings",\n    "ec2:DescribeInstanceTypes"' in one.fix


@pytest.mark.parametrize("action", ["ec2:*", "ec2:Run*", "ec2:DescribeInstances", "*"])
def test_no_wildcard_over_reads(action):
    assert found(109, allow(action)) == ()


SPOT = [{"cloud": "aws", "origin": "cmp", "job": "train", "spot": True}]


def test_spot_without_tagging_needs_no_right_to_tag():
    both = [INSTANCES, INSTANCES.replace("instance/", "spot-instances-request/")]
    assert found(110, allow("ec2:RunInstances", both), machines=SPOT) == ()


def test_who_launches_nothing_needs_no_spot():
    assert found(110, allow("ec2:CreateTags", INSTANCES), machines=SPOT) == ()
    assert found(110, allow("ec2:RunInstances", "${aws_subnet.a.arn}"), machines=SPOT) == ()


def test_another_clouds_spot_asks_nothing_of_aws():
    assert found(110, allow("ec2:RunInstances", INSTANCES), machines=[{**SPOT[0], "cloud": "gcp"}]) == ()


def test_lines_are_where_they_are_read():
    launch = allow("ec2:RunInstances", INSTANCES)
    (one,) = found(101, launch)
    assert one.evidence == (f'{{"Effect":"Allow","Action":"ec2:RunInstances","Resource":"{INSTANCES}"}}')
    assert one.cloud == "aws"
    assert one.identity == "x"


OWN_NAME = 'resource.name.extract("/instances/{name}").startsWith("skyplan-")'


@pytest.mark.parametrize(
    ("condition", "guards"),
    [
        (OWN_NAME, True),
        (f'resource.type == "compute.googleapis.com/Instance" && {OWN_NAME}', True),
        (f'resource.type != "compute.googleapis.com/Instance" || {OWN_NAME}', True),
        ('resource.matchTag("1/env", "dev")', True),
        (f"{OWN_NAME} || true", False),
        (f"!({OWN_NAME})", False),
        ('resource.name.startsWith("projects/p/")', False),
        ('resource.name != "x"', False),
        ('resource.name != "x" && request.time < timestamp("2030-01-01T00:00:00Z")', False),
    ],
)
def test_a_condition_on_google_guards_if_a_strangers_machine_fails_it(condition, guards):
    binding = {
        "resource": "projects/p",
        "role": "roles/compute.instanceAdmin.v1",
        "members": ["serviceAccount:a@p.iam.gserviceaccount.com"],
        "condition": {"expression": condition},
    }
    audited = audited_from({"subjects": [{"cloud": "gcp", "name": "a", "bindings": [binding]}]})
    assert bool(run(audited, ["SKY-IAM-102"])) is not guards
