"""What parliament and cloudsplaining miss or misjudge (notes, 3.1): each row of the measured table, with what is right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.iam.audit.registry import RULES, every, run
from planner.model.finding import Level
from tests.unit.iam.audit.fixture_files import audited_from

ACCOUNT = "111122223333"
INSTANCES = f"arn:aws:ec2:us-east-1:{ACCOUNT}:instance/*"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/"
TO_EC2 = {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}
RUN = {"Effect": "Allow", "Action": "ec2:RunInstances", "Resource": "*"}


def allow(action, resource="*", condition=None, **fields):
    made = {"Effect": "Allow", "Action": action, "Resource": resource, **fields}
    return {**made, "Condition": condition} if condition else made


def rules(*statements, **fields):
    policies = [{"name": "p", "document": {"Version": "2012-10-17", "Statement": list(statements)}}]
    subject = {"cloud": "aws", "name": "x", "policies": policies, **fields}
    return {one.rule.removeprefix("SKY-IAM-") for one in every(audited_from({"subjects": [subject]}))}


def test_our_well_scoped_orchestrator_is_clean():
    document = json.loads((Path(__file__).parents[1] / "evaluate" / "aws_orchestrator.json").read_text())
    policies = [{"name": "orchestrator", "document": document}]
    subject = {"cloud": "aws", "name": "x", "identity": "orchestrator", "policies": policies}
    found = run(audited_from({"subjects": [subject]}))
    assert [one.rule for one in found if one.level.reaches(Level.LOW)] == []


def test_a_role_by_wildcard_with_a_launch():
    assert "201" in rules(RUN, allow("iam:PassRole", ROLE + "*"))


def test_an_exact_role_is_told_apart():
    assert "201" not in rules(RUN, allow("iam:PassRole", ROLE + "node", TO_EC2))


def test_any_role_is_found_whatever_service_it_goes_to():
    assert "201" in rules(RUN, allow("iam:PassRole", "*", TO_EC2))


def test_every_object_by_a_pattern_that_is_no_star():
    assert "301" in rules(allow("s3:GetObject", "arn:aws:s3:::*/*"))


def test_ending_without_a_tag():
    assert "102" in rules(allow("ec2:TerminateInstances", INSTANCES))


def test_ending_with_a_tag():
    tag = {"StringEquals": {"aws:ResourceTag/skyplan:project": "llm"}}
    assert rules(allow("ec2:TerminateInstances", INSTANCES, tag)) & {"102", "601"} == set()


def test_a_tag_of_the_request_never_comes_with_an_end():
    tag = {"StringEquals": {"aws:RequestTag/skyplan:project": "llm"}}
    found = rules(allow("ec2:TerminateInstances", INSTANCES, tag))
    assert "601" in found
    assert "102" not in found  # it ends nothing at all


def test_a_look_at_machines_has_no_resource_to_carry_a_tag():
    tag = {"StringEquals": {"aws:ResourceTag/skyplan:project": "llm"}}
    assert "601" in rules(allow("ec2:DescribeInstances", "*", tag))


def test_tagging_of_what_exists():
    tag = {"StringEquals": {"aws:RequestTag/skyplan:project": "llm"}}
    assert "103" in rules(allow("ec2:CreateTags", INSTANCES, tag))


def test_tagging_while_creating():
    guard = {"StringEquals": {"ec2:CreateAction": "RunInstances"}}
    assert "103" not in rules(allow("ec2:CreateTags", INSTANCES, guard))


@pytest.mark.parametrize("operator", ["StringEqualsIfExists", "ForAllValues:StringEquals"])
def test_a_guard_that_is_open_where_its_key_is_missing(operator):
    tag = {operator: {"aws:ResourceTag/skyplan:project": "llm"}}
    assert {"102", "602"} <= rules(allow("ec2:TerminateInstances", INSTANCES, tag))


def test_an_allow_by_exclusion_is_an_escalation():
    found = rules({"Effect": "Allow", "NotAction": "s3:*", "Resource": "*"})
    assert {"201", "208", "603"} <= found


def test_a_deny_takes_back_what_it_denies_and_no_more():
    """Allow everything, Deny iam:*: nobody becomes another by IAM, but all the rest is there."""
    found = rules(allow("*"), {"Effect": "Deny", "Action": "iam:*", "Resource": "*"})
    assert found & {"201", "202", "204", "208", "209", "210", "211", "215"} == set()
    assert {"102", "212", "216"} <= found


def test_all_rows_speak_of_rules_that_there_are():
    asked = {"102", "103", "201", "208", "212", "216", "301", "601", "602", "603"}
    assert {f"SKY-IAM-{one}" for one in asked} <= set(RULES)
