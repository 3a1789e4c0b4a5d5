"""IAM's JSON to the model and back."""

from __future__ import annotations

import json

import pytest

from planner.iam.documents import document_of, policy_from
from planner.model.diagnostic import Location
from planner.model.policy import PolicyKind, Statement, Test

ALLOW = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}
TRUST = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}


def policy(statement, kind=PolicyKind.IDENTITY, **head):
    return policy_from({"Version": "2012-10-17", **head, "Statement": statement}, kind=kind, name="p")


def test_one_value_and_a_list_of_one_are_the_same():
    lists = {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": ["*"]}
    assert policy(ALLOW) == policy([lists])
    assert policy(ALLOW).statements == (Statement(actions=("s3:GetObject",), resources=("*",)),)


def test_text_is_read_and_the_place_is_kept():
    at = Location("a.json", 3)
    made = policy_from(json.dumps({"Statement": [ALLOW]}), kind=PolicyKind.SESSION, name="s", location=at)
    assert (made.kind, made.name, made.version, made.location) == (PolicyKind.SESSION, "s", "", at)


def test_every_principal_that_is_public_is_the_same():
    public = policy({**TRUST, "Principal": "*"}, PolicyKind.TRUST)
    assert public.statements[0].principals == (("AWS", "*"),)
    assert policy({**TRUST, "Principal": {"AWS": "*"}}, PolicyKind.TRUST) == public
    assert policy({**TRUST, "Principal": {"AWS": ["*"]}}, PolicyKind.TRUST) == public


def test_principals_of_several_kinds():
    principal = {"AWS": ["111122223333", "arn:aws:iam::111122223333:role/r"], "Service": "ec2.amazonaws.com"}
    made = policy({"Effect": "Deny", "Action": "*", "NotPrincipal": principal}, PolicyKind.TRUST)
    assert made.statements[0].not_principals == (
        ("AWS", "111122223333"),
        ("AWS", "arn:aws:iam::111122223333:role/r"),
        ("Service", "ec2.amazonaws.com"),
    )


def test_conditions_take_booleans_and_numbers():
    condition = {
        "Bool": {"a:b": True, "a:c": "false"},
        "NumericLessThan": {"a:n": [1, 2.5, "3"]},
        "Null": {"a:d": False},
    }
    made = policy({**ALLOW, "Condition": condition})
    assert made.statements[0].tests == (
        Test(operator="Bool", key="a:b", values=("true",)),
        Test(operator="Bool", key="a:c", values=("false",)),
        Test(operator="NumericLessThan", key="a:n", values=("1", "2.5", "3")),
        Test(operator="Null", key="a:d", values=("false",)),
    )


def test_there_and_back():
    statements = [
        {"Sid": "A", **ALLOW, "Condition": {"StringLike": {"s3:prefix": ["a/", "a/*"]}, "Bool": {"x:y": ["true"]}}},
        {"Effect": "Deny", "NotAction": ["s3:*", "ec2:*"], "NotResource": ["arn:aws:s3:::b"]},
    ]
    made = policy(statements)
    assert policy_from(document_of(made), kind=PolicyKind.IDENTITY, name="p") == made
    assert document_of(made)["Statement"][1] == statements[1]
    public = policy([{**TRUST, "Principal": "*"}, TRUST], PolicyKind.TRUST)
    assert policy_from(document_of(public), kind=PolicyKind.TRUST, name="p") == public
    assert document_of(public)["Statement"][0]["Principal"] == "*"


@pytest.mark.parametrize(
    ("document", "kind", "words"),
    [
        ([], PolicyKind.IDENTITY, "no object"),
        ({"Version": "2012-10-17"}, PolicyKind.IDENTITY, "no Statement"),
        ({"Version": "2024-01-01", "Statement": []}, PolicyKind.IDENTITY, "Version '2024-01-01'"),
        ({"Statements": [], "Statement": []}, PolicyKind.IDENTITY, "Statements is no element"),
        ({"Statement": ["x"]}, PolicyKind.IDENTITY, "statement 1: 'x' is no object"),
        ({"Statement": [ALLOW, {**ALLOW, "Effect": "allow"}]}, PolicyKind.IDENTITY, "statement 2: Effect is 'allow'"),
        ({"Statement": {**ALLOW, "Actions": "x"}}, PolicyKind.IDENTITY, "Actions is no element"),
        ({"Statement": {**ALLOW, "NotAction": "x"}}, PolicyKind.IDENTITY, "both Action and NotAction"),
        ({"Statement": {"Effect": "Allow", "Resource": "*"}}, PolicyKind.IDENTITY, "neither Action nor NotAction"),
        ({"Statement": {"Effect": "Allow", "Action": "x"}}, PolicyKind.BOUNDARY, "neither Resource nor NotResource"),
        ({"Statement": {**ALLOW, "Principal": "*"}}, PolicyKind.SESSION, "a principal in a policy"),
        ({"Statement": {**TRUST, "Resource": "*"}}, PolicyKind.TRUST, "a resource in a trust policy"),
        ({"Statement": ALLOW}, PolicyKind.RESOURCE, "neither Principal nor NotPrincipal"),
        ({"Statement": {**TRUST, "Principal": "everybody"}}, PolicyKind.TRUST, "no object"),
        ({"Statement": {**TRUST, "Principal": {"AWS": 1}}}, PolicyKind.TRUST, "1 is no text"),
        ({"Statement": {**ALLOW, "Action": [{}]}}, PolicyKind.IDENTITY, "Action: {} is no text"),
        ({"Statement": {**ALLOW, "Condition": []}}, PolicyKind.IDENTITY, "Condition: [] is no object"),
        ({"Statement": {**ALLOW, "Condition": {"Bool": "x"}}}, PolicyKind.IDENTITY, "Condition Bool"),
        ({"Statement": {**ALLOW, "Condition": {"Bool": {"a:b": None}}}}, PolicyKind.IDENTITY, "a:b: None is no text"),
        ({"Statement": {**ALLOW, "Sid": 1}}, PolicyKind.IDENTITY, "Sid: 1 is no text"),
        ("{", PolicyKind.IDENTITY, "Expecting"),
    ],
)
def test_what_is_no_policy_is_refused_with_the_reason(document, kind, words):
    with pytest.raises(ValueError) as caught:
        policy_from(document, kind=kind, name="p")
    assert words in str(caught.value)
