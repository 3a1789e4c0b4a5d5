"""The lines that a finding says to write instead are right: written so, the rule finds nothing more."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from planner.iam.audit.lines import compact, document
from planner.iam.audit.registry import RULES, run
from planner.iam.documents import document_of
from tests.unit.iam.audit.fixture_files import audited_from, files, judged, load

#: words in a fix that its reader replaces
WORDS = {"ACCOUNT": "111122223333", "TYPE.SIZE": "p5.48xlarge", "REGION": "us-east-1", "PROJECT": "llm"}
AWS = [
    (rule, path)
    for rule in RULES
    if rule < "SKY-IAM-300"
    for path in files(rule, "fail")
    if load(path)["subjects"][0]["cloud"] == "aws"
]


@pytest.mark.parametrize(("rule", "path"), AWS, ids=[path.name for _, path in AWS])
def test_written_so_the_rule_finds_nothing(rule, path):
    fixture = load(path)
    for _ in range(5):
        found = judged(rule, fixture)
        if not found:
            return
        fixture = applied(fixture, found[0])
    pytest.fail(f"still found: {found[0].message}\n{found[0].fix}\n{json.dumps(fixture)}")


def applied(fixture, finding):
    """The fixture after what the fix says, done to the statement of the finding."""
    out = json.loads(json.dumps(fixture))
    for policy in out["subjects"][0]["policies"]:
        name, _, sid = finding.grant.partition("/")
        if policy["name"] == name:
            statements = policy["document"]["Statement"]
            at = next(n for n, one in enumerate(statements) if one.get("Sid") == sid)
            policy["document"]["Statement"] = [
                *statements[:at],
                *_changed(statements[at], finding),
                *statements[at + 1 :],
            ]
    return out


def _changed(statement, finding):
    head, _, text = finding.fix.partition("\n")
    new = _parsed(text)
    if head.startswith(("write instead", "name in")):
        # what is to be named is not known to a test: only the new lines stay
        return new
    if head.startswith("take "):
        gone = head.removeprefix("take ").partition(" out of")[0].split(", ")
        kept = [one for one in _listed(statement["Action"]) if one not in gone]
        return [{**statement, "Action": kept}, *new]
    if head.startswith(("add:", "name the actions", "hand on")):
        return [statement, *new]
    if head.startswith("drop the statement"):
        return []
    assert head.startswith("drop this statement"), finding.fix
    return new


def _parsed(text):
    for word, value in WORDS.items():
        text = text.replace(word, value)
    return json.loads(f"[{text}]")


def _listed(value):
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize(("rule", "path"), AWS, ids=[path.name for _, path in AWS])
def test_evidence_is_the_statement_as_it_stands(rule, path):
    fixture = load(path)
    for found in judged(rule, fixture):
        for line in found.evidence.splitlines():
            shown = json.loads(line)
            assert shown in [
                one
                for subject in fixture["subjects"]
                for policy in subject["policies"]
                for one in policy["document"]["Statement"]
            ]


def test_a_statement_is_written_as_it_was_read():
    raw = {
        "Sid": "S",
        "Effect": "Deny",
        "NotPrincipal": {"AWS": ["a", "b"]},
        "NotAction": "iam:*",
        "NotResource": ["x", "y"],
        "Condition": {"StringLike": {"aws:a": "1", "aws:b": ["2", "3"]}, "Bool": {"aws:c": "true"}},
    }
    policy = {"kind": "resource", "name": "p", "document": {"Statement": [raw]}}
    (made,) = audited_from({"subjects": [{"cloud": "aws", "name": "x", "policies": [policy]}]}).subjects[0].policies
    assert document(made.statements[0]) == raw
    assert json.loads(compact(made.statements[0])) == raw
    assert document_of(made)["Statement"][0]["Sid"] == "S"


def _dead(action, resource, unread=()):
    held = {
        "kind": "identity",
        "name": "p",
        "document": {"Statement": {"Effect": "Allow", "Sid": "Dead", "Action": action, "Resource": resource}},
    }
    subject = {"cloud": "aws", "name": "n", "origin": "a plan.json aws_iam_role.n", "policies": [held]}
    return run(replace(audited_from({"subjects": [subject]}), unread=tuple(unread)), ["SKY-IAM-303"])


@pytest.mark.parametrize(
    ("action", "resource", "right"),
    [
        ("s3:GetObject", "arn:aws:s3:::mybucket", "arn:aws:s3:::mybucket/*"),
        ("s3:GetObject", "arn:aws-cn:s3:::mybucket", "arn:aws-cn:s3:::mybucket/*"),
        ("s3:ListBucket", "arn:aws:s3:::mybucket/*", "arn:aws:s3:::mybucket"),
        ("s3:ListBucket", "arn:aws:s3:::mybucket/a/*", "arn:aws:s3:::mybucket"),
        ("s3:PutObject", "${aws_s3_bucket.b.arn}", "${aws_s3_bucket.b.arn}/*"),
    ],
)
def test_the_very_bucket_is_named_where_it_is_known(action, resource, right):
    (found,) = _dead(action, resource)
    (new,) = _parsed(found.fix.partition("\n")[2])
    assert new["Resource"] == right
    assert found.message.endswith(f"it takes {right}")
    assert not _dead(action, right)


def test_a_bucket_known_by_a_reference_alone_may_have_more_behind_it():
    """A plan of HCL shows `bucket.arn` of `"${bucket.arn}/*"`; the reader says so of the whole document."""
    why = "it holds values that are known only after apply, and is read without what is written around them"
    half = f"a plan.json module.x.data.aws_iam_policy_document.d: {why}"
    assert not _dead("s3:GetObject", "arn:aws:s3:::mybucket", unread=[half])
    assert _dead("s3:GetObject", "arn:aws:s3:::mybucket", unread=[half.replace("a plan", "another plan")])
    assert _dead("s3:ListBucket", "arn:aws:s3:::mybucket/*", unread=[half])
