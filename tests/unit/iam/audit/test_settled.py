"""Of one statement one thing is said: one change that meets all rules, and of an administrator nothing beside that."""

from __future__ import annotations

import re

import pytest

from planner.iam.audit.registry import every, run
from tests.unit.iam.audit.fixture_files import audited_from
from tests.unit.iam.audit.test_fixes import applied

RULES_ASKED = re.compile(r"\(one change for ([^)]*)\)")
LAUNCH = ["ec2:RunInstances"]
ARN = "arn:aws:ec2:us-east-1:111122223333:instance/*"


def document(*statements, **fields):
    policy = {"kind": "identity", "name": "p", "document": {"Version": "2012-10-17", "Statement": list(statements)}}
    return {"subjects": [{"cloud": "aws", "name": "ci", "policies": [policy], **fields}]}


def allow(actions, resources="*", **more):
    return {"Sid": "It", "Effect": "Allow", "Action": actions, "Resource": resources, **more}


def tagged(resource="aws:ResourceTag/team"):
    return {"Condition": {"StringEquals": {resource: "llm"}}}


@pytest.mark.parametrize(
    ("statement", "rules"),
    [
        (allow(LAUNCH), {"101", "104", "105", "106", "107"}),
        (allow(LAUNCH, ARN), {"101", "104", "105"}),
        (allow([*LAUNCH, "ec2:TerminateInstances"]), {"101", "102", "104", "105", "106", "107"}),
        (allow([*LAUNCH, "ec2:DescribeImages"]), {"101", "104", "105", "106", "107"}),
        (allow([*LAUNCH, "iam:PassRole"]), {"101", "105", "201", "202"}),
        (allow(["s3:GetObject", "s3:ListBucket"]), {"301", "302"}),
        (allow(["s3:GetObject", "s3:ListBucket"], ["arn:aws:s3:::b", "arn:aws:s3:::b/*"]), {"302", "309"}),
        (allow(["iam:PutRolePolicy", "iam:CreateRole", "iam:UpdateAssumeRolePolicy"]), {"208", "209", "215"}),
    ],
)
def test_one_change_meets_every_rule(statement, rules):
    fixture = document(statement)
    joined = [one for one in run(audited_from(fixture)) if RULES_ASKED.search(one.fix)]
    assert rules <= {one.rule.removeprefix("SKY-IAM-") for one in joined}
    assert len({one.fix for one in joined}) == 1
    asked = RULES_ASKED.search(joined[0].fix)[1].split(", ")
    assert asked == sorted({one.rule for one in joined})
    after = audited_from(applied(fixture, joined[0]))
    assert [one for one in every(after) if one.rule in asked] == [], joined[0].fix


def test_a_launch_still_has_what_else_it_is_asked_for():
    fix = next(one.fix for one in run(audited_from(document(allow(LAUNCH)))) if RULES_ASKED.search(one.fix))
    kinds = re.findall(r"arn:aws:ec2:\*:\*:([a-z-]+)/\*", fix)
    assert {"subnet", "network-interface", "security-group", "volume"} <= set(kinds)
    assert kinds.count("instance") == kinds.count("image") == 1


def test_no_sid_is_twice_in_a_policy():
    (first, *_) = [one for one in run(audited_from(document(allow([*LAUNCH, "ec2:DescribeImages"])))) if one.fix]
    after = applied(document(allow([*LAUNCH, "ec2:DescribeImages"])), first)
    sids = [one["Sid"] for one in after["subjects"][0]["policies"][0]["document"]["Statement"]]
    assert len(sids) == len(set(sids)) > 2


def test_one_rule_keeps_its_own_words():
    found = run(audited_from(document(allow("ec2:TerminateInstances", ARN))))
    assert [one.rule for one in found] == ["SKY-IAM-102"]
    assert found[0].fix.startswith("write instead:\n")


def test_what_may_be_handed_on_is_named_where_any_role_may_be():
    found = run(audited_from(document(allow([*LAUNCH, "iam:PassRole"]))), ["SKY-IAM-202"])
    assert '"Resource": "arn:aws:iam::ACCOUNT:role/NAME"' in found[0].fix
    one = allow("iam:PassRole", "arn:aws:iam::111122223333:role/a")
    assert "role/a" in run(audited_from(document(one)), ["SKY-IAM-202"])[0].fix


def test_an_administrator_is_one_finding_that_counts_the_rest():
    audited = audited_from(document(allow("*"), {**allow("ec2:TerminateInstances"), "Sid": "Other"}))
    about = [one for one in run(audited) if one.grant == "p/It"]
    rest = [one for one in every(audited) if one.grant == "p/It" and one.rule != "SKY-IAM-216"]
    assert [one.rule for one in about] == ["SKY-IAM-216"]
    assert (
        f"takes in {len(rest)} other findings about it, of {len({one.rule for one in rest})} rules" in about[0].message
    )
    assert [one.rule for one in run(audited) if one.grant == "p/Other"] == ["SKY-IAM-102"], "another statement's stays"


def test_of_a_node_with_whole_services_nothing_is_taken_in():
    audited = audited_from(document(allow(["ec2:*", "s3:*"]), identity="node-data"))
    assert set(run(audited)) >= {one for one in every(audited) if one.rule == "SKY-IAM-216"}
    assert {one.fingerprint for one in run(audited)} == {one.fingerprint for one in every(audited)}


def test_a_binding_is_taken_in_only_where_it_is_given():
    owner = {"members": ["serviceAccount:a@b"], "role": "roles/owner", "resource": "projects/p"}
    other = {"members": ["serviceAccount:a@b"], "role": "roles/compute.admin", "resource": "projects/p"}
    audited = audited_from({"subjects": [{"cloud": "gcp", "name": "a@b", "bindings": [owner, other]}]})
    assert [one.rule for one in run(audited) if one.grant == "roles/owner"] == ["SKY-IAM-216"]
    assert [one.rule for one in run(audited) if one.grant == "roles/compute.admin"]


def test_no_stranger_of_a_witness_is_shown():
    everything = ["ec2:*", "iam:*", "ssm:*", "lambda:*", "ecs:*", "s3:*", "sts:*"]
    found = run(audited_from(document(allow(everything))))
    assert found
    shown = " ".join(f"{one.message} {one.grant} {one.action} {one.resource} {one.evidence} {one.fix}" for one in found)
    assert not re.search(r"stranger|9{12}", shown)
    assert "anybody's" in shown
