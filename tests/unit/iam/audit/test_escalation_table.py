"""Every way to escalate that cloudsplaining 0.9.1 knows is found by a rule 2xx, from its actions alone."""

from __future__ import annotations

import json

import pytest

from planner.iam.audit.registry import RULES
from tests.unit.iam.audit.fixture_files import FOLDER, audited_from

METHODS = json.loads((FOLDER / "cloudsplaining_escalations.json").read_text())["methods"]
ESCALATIONS = [name for name in RULES if "SKY-IAM-200" < name < "SKY-IAM-300"]


def found(actions, resource="*", **fields):
    statement = {"Effect": "Allow", "Action": actions, "Resource": resource, **fields}
    policies = [{"name": "p", "document": {"Version": "2012-10-17", "Statement": [statement]}}]
    audited = audited_from({"subjects": [{"cloud": "aws", "name": "x", "policies": policies}]})
    return {one.rule for name in ESCALATIONS for one in RULES[name].judge(audited)}


def test_the_table_is_whole():
    assert len(METHODS) == 59


@pytest.mark.parametrize("name", METHODS)
def test_found(name):
    # that a role may go to any service is a finding by itself and proves nothing here
    assert found(METHODS[name]) - {"SKY-IAM-202"}


@pytest.mark.parametrize(
    "actions",
    [
        ["iam:PassRole"],
        ["ec2:RunInstances"],
        ["lambda:CreateFunction", "lambda:InvokeFunction"],
        ["ec2:StopInstances", "ec2:StartInstances"],
        ["ec2:ModifyLaunchTemplate"],
        ["iam:ListUsers", "iam:GetRole"],
    ],
)
def test_half_a_way_is_none(actions):
    assert found(actions) - {"SKY-IAM-202"} == set()


@pytest.mark.parametrize("name", METHODS)
def test_none_is_found_once_it_is_denied(name):
    actions = METHODS[name]
    document = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": actions, "Resource": "*"},
            {"Effect": "Deny", "Action": actions, "Resource": "*"},
        ],
    }
    audited = audited_from(
        {"subjects": [{"cloud": "aws", "name": "x", "policies": [{"name": "p", "document": document}]}]}
    )
    assert [one for name in ESCALATIONS for one in RULES[name].judge(audited)] == []
