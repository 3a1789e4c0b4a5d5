"""Openings: a request is found where the whole set of policies allows it, and none where anything in the set is in the way."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.iam.audit.registry import RULES, run
from planner.iam.audit.witness import ACCOUNT, ANY, STRANGER, Question, concrete, opening, reached
from planner.iam.evaluate.aws import judge
from tests.unit.iam.audit.fixture_files import FOLDER, audited_from

INSTANCES = "arn:aws:ec2:us-east-1:111122223333:instance/*"


def subject(*statements, **kinds):
    policies = [{"name": "p", "document": {"Version": "2012-10-17", "Statement": list(statements)}}]
    policies += [
        {"kind": kind, "name": kind, "document": {"Version": "2012-10-17", "Statement": made}}
        for kind, made in kinds.items()
    ]
    return audited_from({"subjects": [{"cloud": "aws", "name": "x", "policies": policies}]}).subjects[0]


def allow(action, resource="*", **condition):
    made = {"Effect": "Allow", "Action": action, "Resource": resource}
    return {**made, "Condition": condition} if condition else made


def deny(action, resource="*", **condition):
    return {**allow(action, resource, **condition), "Effect": "Deny"}


def tag(key):
    return key.startswith("aws:resourcetag/")


END = Question(action="ec2:TerminateInstances", kind="instance", guard=tag)
TAG = {"aws:ResourceTag/team": "a"}


def test_what_is_found_is_allowed():
    who = subject(allow("ec2:*", INSTANCES, StringEquals={"aws:RequestedRegion": "us-east-1"}))
    found = opening(who, END)
    assert found.request.resource == "arn:aws:ec2:us-east-1:111122223333:instance/stranger"
    assert judge(who.policies, found.request)


@pytest.mark.parametrize(
    "more",
    [
        deny("ec2:Terminate*"),
        deny("*", "*", StringNotEquals=TAG),
    ],
)
def test_a_deny_is_in_the_way(more):
    assert opening(subject(allow("ec2:*")), END)
    assert not opening(subject(allow("ec2:*"), more), END)


@pytest.mark.parametrize(
    "more",
    [
        deny("*", "*", StringNotEquals={"aws:RequestedRegion": ["us-east-1"]}),
        deny("*", "*", Bool={"aws:MultiFactorAuthPresent": "false"}),
        deny("*", "*", BoolIfExists={"aws:MultiFactorAuthPresent": "false"}),
        deny("*", "*", NumericGreaterThan={"aws:MultiFactorAuthAge": "3600"}),
        deny("*", "*", StringEquals={"aws:PrincipalTag/intern": "true"}),
        deny("ec2:*", "arn:aws:ec2:us-east-1:111122223333:volume/*"),
        deny("ec2:RunInstances"),
        deny("ec2:*", "*", Null={"aws:ResourceTag/team": "true"}, StringNotEquals=TAG),  # a stranger has a tag too
        {"Effect": "Deny", "Action": "*", "NotResource": INSTANCES},
    ],
)
def test_a_deny_that_another_value_avoids_is_not(more):
    assert opening(subject(allow("ec2:*", INSTANCES), more), END)


@pytest.mark.parametrize("kind", ["boundary", "session"])
def test_a_bound_is_in_the_way_or_not(kind):
    assert not opening(subject(allow("*"), **{kind: [allow("s3:*")]}), END)
    assert not opening(subject(allow("*"), **{kind: [allow("ec2:*", "*", StringEquals=TAG)]}), END)
    assert opening(subject(allow("*"), **{kind: [allow("s3:*"), allow("ec2:*", INSTANCES)]}), END)


def test_an_explicit_deny_of_the_account_holds_for_a_wildcard_where_it_is_the_subjects_own():
    who = subject(allow("iam:PassRole"), deny("iam:PassRole", "arn:aws:iam::111122223333:role/*"))
    mine = replace(who, origin="arn:aws:iam::111122223333:role/x")
    assert not opening(mine, Question(action="iam:PassRole", kind="role"))
    other = replace(who, origin="arn:aws:iam::444455556666:role/x")
    assert opening(other, Question(action="iam:PassRole", kind="role"))
    assert opening(who, Question(action="iam:PassRole", kind="role")), "whose account that is, nothing says"


@pytest.mark.parametrize(
    ("action", "on"),
    [
        ("iam:PassRole", f"arn:aws:iam::*:role/*{STRANGER}*"),
        ("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/*"),
        ("ec2:TerminateInstances", f"arn:aws:ec2:*:{ACCOUNT}:*"),
        ("ec2:TerminateInstances", f"arn:aws:ec2:*:*:instance/{STRANGER}"),
    ],
)
def test_a_deny_of_the_strangers_that_the_audit_thinks_of_hides_nothing(action, on):
    kind = "role" if action.startswith("iam") else "instance"
    who = subject(allow(action), deny(action, on))
    assert opening(who, Question(action=action, kind=kind))
    assert not opening(subject(allow(action), deny(action, "*")), Question(action=action, kind=kind))


def test_a_key_that_the_request_never_has_opens_nothing():
    who = subject(allow("ec2:TerminateInstances", "*", StringEquals={"aws:RequestTag/team": "a"}))
    assert not opening(who, END)


def test_an_allow_by_exclusion():
    assert opening(subject({"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}), END)
    assert not opening(subject({"Effect": "Allow", "NotAction": "ec2:*", "Resource": "*"}), END)
    assert opening(subject({"Effect": "Allow", "Action": "*", "NotResource": "arn:aws:s3:::*"}), END)


def test_all_but_these_resources():
    mine = "arn:aws:ec2:*:*:instance/*"
    assert not opening(subject({"Effect": "Allow", "Action": "*", "NotResource": mine}), END)


@pytest.mark.parametrize(
    ("pattern", "kind", "named", "made"),
    [
        ("*", "instance", False, f"arn:aws:ec2:xx-stranger-1:{ACCOUNT}:instance/stranger"),
        ("arn:aws:ec2:*:*:*", "volume", False, f"arn:aws:ec2:xx-stranger-1:{ACCOUNT}:volume/stranger"),
        ("arn:aws:ec2:us-east-1:1:inst*", "instance", False, "arn:aws:ec2:us-east-1:1:instance/stranger"),
        ("arn:aws:ec2:us-east-1:1:instance/i-1", "instance", False, ""),
        ("arn:aws:ec2:us-east-1:1:instance/i-1", "instance", True, "arn:aws:ec2:us-east-1:1:instance/i-1"),
        ("arn:aws:ec2:us-east-1:1:volume/*", "instance", True, ""),
        ("arn:aws:ec2:us-east-1::image/ami-*", "image", False, "arn:aws:ec2:us-east-1::image/ami-stranger"),
        ("arn:aws:ec2:us-east-1:1:instance/a${*}", "instance", False, ""),
        ("${aws_instance.node.arn}", "instance", False, ""),
        ("${aws_instance.node.arn}", "instance", True, "${aws_instance.node.arn}"),
        ("${aws_subnet.a.arn}", "instance", True, ""),
        ("${var.prefix}*", "instance", False, "${var.prefix}stranger"),
        ("arn:aws:ec2:us-east-1:1:key-pair/a", ANY, False, ""),
        ("arn:aws:ec2:us-east-1:1:key-pair/a*", ANY, False, ""),
        ("arn:aws:ec2:us-east-1:1:key-pair/*", ANY, False, "arn:aws:ec2:us-east-1:1:key-pair/stranger"),
    ],
)
def test_resources_reached(pattern, kind, named, made):
    assert reached(pattern, kind, "ec2", named=named) == made


def test_ones_own_name_is_no_strangers():
    assert reached("arn:aws:iam::1:user/${aws:username}", "user", "iam", named=True) == ""


def test_stand_ins():
    assert concrete("a*b?c${*}") == "astrangerbxc*"


POOL = [
    statement
    for path in sorted(FOLDER.glob("SKY-IAM-[12]*.json"))
    for one in json.loads(path.read_text())["subjects"]
    for policy in one.get("policies", [])
    if policy["kind"] == "identity"
    for statement in policy["document"]["Statement"]
    if statement["Effect"] == "Allow"
]
JUDGED = [rule for rule in RULES if rule < "SKY-IAM-300" and rule != "SKY-IAM-109"]


def bare(statements):
    return [{name: value for name, value in one.items() if name != "Sid"} for one in statements]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(POOL), min_size=1, max_size=5))
def test_nothing_is_found_where_all_is_denied(statements):
    """109 is of how a statement is written, the others of what it lets happen."""
    kept = [one for one in statements if "NotAction" not in one]
    document = {"Version": "2012-10-17", "Statement": [*bare(kept), deny("*")]}
    audited = audited_from(
        {"subjects": [{"cloud": "aws", "name": "x", "policies": [{"name": "p", "document": document}]}]}
    )
    assert run(audited, JUDGED) == ()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(POOL), min_size=1, max_size=4), st.sampled_from(POOL))
def test_more_rights_never_find_less(statements, more):
    """Each rule that spoke still does (110 and the comparison of 203 are of what is missing)."""

    def spoke(given):
        document = {"Version": "2012-10-17", "Statement": bare(given)}
        one = {"cloud": "aws", "name": "x", "policies": [{"name": "p", "document": document}]}
        rules = [rule for rule in JUDGED if rule not in {"SKY-IAM-110", "SKY-IAM-203", "SKY-IAM-209"}]
        return {found.rule for found in run(audited_from({"subjects": [one]}), rules)}

    assert spoke(statements) <= spoke([*statements, more])
