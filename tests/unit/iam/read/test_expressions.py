"""What an expression's value is, and that what cannot be known stays as it was written."""

from __future__ import annotations

import json

import pytest

from planner.iam.read.expressions import evaluate, reference, unknown

KNOWN = {"aws_iam_role.x.arn": "arn:aws:iam::1:role/x", "var.names": ["a", "b"], "var.on": True, "local.p": {"k": "v"}}


def value(text):
    return evaluate(text, KNOWN.__getitem__)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("plain", "plain"),
        ("${aws_iam_role.x.arn}", "arn:aws:iam::1:role/x"),
        ("${aws_iam_role.x.arn}/*", "arn:aws:iam::1:role/x/*"),
        ("${var.names}", ["a", "b"]),
        ("${aws_iam_role.other.arn}", "${aws_iam_role.other.arn}"),
        ("a/${aws_iam_role.other.arn}/b", "a/${aws_iam_role.other.arn}/b"),
        ("$${aws:username}", "${aws:username}"),
        ('${var.on ? "yes" : "no"}', "yes"),
        ('${var.who == "" ? null : var.who}', '${var.who == "" ? null : var.who}'),
        ('${try(data.x.y.z, "none")}', "${data.x.y.z}"),
        ('${join(",", var.names)}', "a,b"),
        ('${join(",", var.other)}', '${join(",", var.other)}'),
        ('${format("%s/*", aws_iam_role.x.arn)}', "arn:aws:iam::1:role/x/*"),
        ('${concat(["c"], var.names)}', ["c", "a", "b"]),
        ("${[for n in var.names : n]}", "${[for n in var.names : n]}"),
        ('${file("policy.json")}', '${file("policy.json")}'),
        ("${1 + 2}", "${1 + 2}"),
        ("open ${", "open ${}"),
    ],
)
def test_value(text, wanted):
    assert value(text) == wanted


def test_jsonencode():
    text = """${jsonencode({
        Version = "2012-10-17"  # as ever
        Statement = [{ Effect = "Allow", Action = ["s3:GetObject"], Resource = "${aws_iam_role.y.arn}/$${aws:username}",
                       Condition = { Bool = { "aws:SecureTransport" = true } } }]
    })}"""
    assert json.loads(value(text)) == {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Action": ["s3:GetObject"],
                "Resource": "${aws_iam_role.y.arn}/${aws:username}",
                "Condition": {"Bool": {"aws:SecureTransport": True}},
            }
        ],
    }


def test_an_unknown_whole_is_no_json():
    assert unknown(value("${jsonencode(var.policy)}"))


def test_depth_is_no_crash():
    assert value("${" + "(" * 5000 + "1" + ")" * 5000 + "}").startswith("${(")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("${aws_iam_role.x.name}", "aws_iam_role.x.name"),
        ('${aws_iam_role.x["k"].name}', 'aws_iam_role.x["k"].name'),
        ("${each.key}-a", ""),
        ("x", ""),
        ("${a}${b}", ""),
    ],
)
def test_reference(text, wanted):
    assert reference(text) == wanted
