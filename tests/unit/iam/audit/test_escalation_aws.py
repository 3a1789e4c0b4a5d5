"""Rules 2xx of AWS in detail: which role, which service, whose boundary."""

from __future__ import annotations

import pytest

from planner.iam.audit.registry import run
from tests.unit.iam.audit.fixture_files import audited_from

ROLE = "arn:aws:iam::111122223333:role/"
TO_EC2 = {"iam:PassedToService": "ec2.amazonaws.com"}


def allow(action, resource="*", **condition):
    made = {"Effect": "Allow", "Action": action, "Resource": resource}
    return {**made, "Condition": condition} if condition else made


def holder(name, *statements, **fields):
    policies = [{"name": "p", "document": {"Version": "2012-10-17", "Statement": list(statements)}}]
    return {"cloud": "aws", "name": name, "policies": policies, **fields}


def found(rule, *statements, more=(), **fields):
    return run(audited_from({"subjects": [holder("x", *statements, **fields), *more]}), [f"SKY-IAM-{rule}"])


@pytest.mark.parametrize(
    ("resource", "any_role"),
    [
        ("*", True),
        (ROLE + "*", True),
        (ROLE + "team-*", True),
        (ROLE + "skyplan/llm/nod?", True),
        ("arn:aws:iam::*:role/*", True),
        ("arn:aws:iam::*:role/skyplan/llm/node", False),
        (ROLE + "skyplan/llm/node", False),
        ("${aws_iam_role.node.arn}", False),
        ([ROLE + "a", ROLE + "b"], False),
    ],
)
def test_what_any_role_is(resource, any_role):
    made = found(201, allow("ec2:RunInstances"), allow("iam:PassRole", resource, StringEquals=TO_EC2))
    assert bool(made) is any_role


def test_a_tag_on_the_role_names_it():
    tagged = {"iam:ResourceTag/for-nodes": "true"}
    assert found(201, allow("ec2:RunInstances"), allow("iam:PassRole", "*", StringEquals=tagged)) == ()


def test_both_statements_are_shown():
    (one,) = found(201, allow("ec2:RunInstances"), allow("iam:PassRole", ROLE + "*"))
    assert len(one.evidence.splitlines()) == 2
    assert one.action == "iam:PassRole"


def test_a_reference_to_a_role_is_compared_by_its_address():
    strong = holder("strong", allow("iam:PutRolePolicy"), origin="acc-train aws_iam_role.node")
    passing = allow("iam:PassRole", "${aws_iam_role.node.arn}", StringEquals=TO_EC2)
    (one,) = found(203, passing, more=[strong])
    assert one.resource == "strong"
    assert "iam:PutRolePolicy" in one.message


def test_who_may_do_as_much_hands_on_no_more():
    strong = holder("strong", allow("iam:PutRolePolicy"))
    passing = allow("iam:PassRole", ROLE + "strong", StringEquals=TO_EC2)
    assert found(203, passing, more=[strong])
    assert found(203, passing, allow("iam:*"), more=[strong]) == ()


def test_a_boundary_of_the_role_that_is_handed_on_counts():
    strong = holder("strong", allow("iam:PutRolePolicy"))
    bound = {"Version": "2012-10-17", "Statement": [allow("s3:GetObject")]}
    strong["policies"].append({"kind": "boundary", "name": "b", "document": bound})
    assert found(203, allow("iam:PassRole", ROLE + "strong", StringEquals=TO_EC2), more=[strong]) == ()


def test_one_of_three_steps_behind_a_tag_is_enough():
    tagged = {"aws:ResourceTag/team": "a"}
    assert found(205, allow(["ec2:ModifyInstanceAttribute", "ec2:StartInstances"]), allow("ec2:StopInstances"))
    assert (
        found(
            205,
            allow(["ec2:ModifyInstanceAttribute", "ec2:StartInstances"]),
            allow("ec2:StopInstances", "*", StringEquals=tagged),
        )
        == ()
    )


def test_a_path_of_ones_own_is_no_way_in_only_behind_a_boundary():
    path = ROLE + "skyplan/llm/*"
    bound = {"iam:PermissionsBoundary": "arn:aws:iam::111122223333:policy/b"}
    trust = allow("iam:UpdateAssumeRolePolicy", path)
    assert found(209, trust)
    assert found(209, trust, allow("iam:CreateRole", path))
    assert found(209, trust, allow("iam:CreateRole", path, StringEquals=bound)) == ()
    assert found(209, allow("iam:UpdateAssumeRolePolicy"), allow("iam:CreateRole", path, StringEquals=bound))


def test_a_named_role_is_still_somebodys():
    assert found(209, allow("iam:UpdateAssumeRolePolicy", ROLE + "admin"))
    assert found(208, allow("iam:PutRolePolicy", ROLE + "admin"))


def test_a_deny_without_the_boundary_is_one():
    bound = {"iam:PermissionsBoundary": "arn:aws:iam::111122223333:policy/b"}
    rail = {**allow(["iam:CreateRole", "iam:PutRolePolicy"], "*", StringNotEquals=bound), "Effect": "Deny"}
    given = allow(["iam:CreateRole", "iam:PutRolePolicy"])
    assert found(208, given)
    assert found(208, given, rail) == ()
    assert found(215, given, rail) == ()


@pytest.mark.parametrize("name", ["AdministratorAccess", "PowerUserAccess", "IAMFullAccess"])
def test_policies_of_aws_by_name(name):
    attached = {"name": f"arn:aws:iam::aws:policy/{name}", "document": {"Statement": []}}
    subject = {"cloud": "aws", "name": "x", "policies": [attached]}
    (one,) = run(audited_from({"subjects": [subject]}), ["SKY-IAM-216"])
    assert name in one.message


def test_an_administrator_is_told_what_it_needs():
    needs = {"deployer/aws": {"ec2:CreateVpc": "network"}}
    subject = holder("x", allow("*"), identity="deployer")
    (one,) = run(audited_from({"subjects": [subject], "needs": needs}), ["SKY-IAM-216"])
    assert '"Action": "ec2:CreateVpc"' in one.fix


def test_everything_on_one_bucket_is_no_administrator():
    assert found(216, allow("*", "arn:aws:s3:::acme/*")) == ()
    assert found(216, allow("s3:*")) == ()


def test_functions_are_code_and_a_named_one_is_ones_own():
    assert found(212, allow("lambda:UpdateFunctionCode", "arn:aws:lambda:us-east-1:1:function:*"))
    assert found(212, allow("lambda:UpdateFunctionCode", "arn:aws:lambda:us-east-1:1:function:mine")) == ()


def test_administrator_bounds_nothing():
    def bound(arn):
        return found(215, allow("iam:CreateRole", StringEquals={"iam:PermissionsBoundary": arn}))

    assert bound("arn:aws:iam::aws:policy/AdministratorAccess")
    assert not bound("arn:aws:iam::111122223333:policy/nodes")


@pytest.mark.parametrize(
    ("rule", "action", "service"),
    [
        (201, "autoscaling:UpdateAutoScalingGroup", "ec2"),
        (201, "elasticmapreduce:RunJobFlow", "ec2"),
        (211, "elasticmapreduce:RunJobFlow", "elasticmapreduce"),
        (211, "ecs:RunTask", "ecs-tasks"),
    ],
)
def test_more_ways_to_hand_a_role_on(rule, action, service):
    to = {"iam:PassedToService": f"{service}.amazonaws.com"}
    assert found(rule, allow(action), allow("iam:PassRole", StringEquals=to))
    assert not found(rule, allow(action), allow("iam:PassRole", ROLE + "a", StringEquals=to))


def test_each_service_that_runs_code_is_a_finding_of_its_own():
    ways = ("cloudformation:CreateStack", "codebuild:CreateProject", "codebuild:StartBuild")
    several = found(211, allow("iam:PassRole"), *map(allow, ways))
    assert len(several) > 1
    assert len({one.fingerprint for one in several}) == len(several), (
        "else a new way stands as an old one against a base"
    )
