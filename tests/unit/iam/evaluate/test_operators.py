"""IAM's condition operators: for each its edge cases, with absent and several values."""

from __future__ import annotations

import pytest

from planner.iam.evaluate.operators import holds
from planner.model.policy import Test

ARN = "arn:aws:iam::111122223333:instance-profile/"
ABSENT = ()


def ask(operator, have, wanted, **more):
    values = (wanted,) if isinstance(wanted, str) else wanted
    context = {"k:x": (have,) if isinstance(have, str) else have, **{k.replace("__", ":"): v for k, v in more.items()}}
    return holds(Test(operator=operator, key="K:X", values=values), context)


# (operator, what the request has, what the policy wants, answer)
SINGLE = [
    ("StringEquals", "a", "a", True),
    ("StringEquals", "A", "a", False),
    ("stringequals", "a", ("b", "a"), True),
    ("StringEquals", "ab", "a*", False),
    ("StringEquals", "a*", "a${*}", True),
    ("StringEquals", "a?$", "a${?}${$}", True),
    ("StringNotEquals", "a", ("b", "c"), True),
    ("StringNotEquals", "a", ("b", "a"), False),
    ("StringEqualsIgnoreCase", "A", "a", True),
    ("StringNotEqualsIgnoreCase", "A", "a", False),
    ("StringLike", "abc", "a*", True),
    ("StringLike", "a/b:c\nd", "a*d", True),
    ("StringLike", "abc", "a?c", True),
    ("StringLike", "ac", "a?c", False),
    ("StringLike", "Abc", "a*", False),
    ("StringLike", "a.c", "a[.]c", False),
    ("StringLike", "a*c", "a${*}c", True),
    ("StringLike", "abc", "a${*}c", False),
    ("StringNotLike", "abc", ("a*", "x"), False),
    ("StringNotLike", "abc", ("b*", "x"), True),
    ("NumericEquals", "1.0", "1", True),
    ("NumericNotEquals", "2", "1", True),
    ("NumericNotEquals", "1", ("1", "2"), False),
    ("NumericLessThan", "2", "10", True),
    ("NumericLessThan", "2", "2", False),
    ("NumericLessThanEquals", "2", "2", True),
    ("NumericGreaterThan", "10", ("20", "9"), True),
    ("NumericGreaterThanEquals", "9", "9.5", False),
    ("DateEquals", "2026-11-30T00:00:00Z", "2026-11-30T01:00:00+01:00", True),
    ("DateNotEquals", "2026-11-30T00:00:00Z", "2026-11-30T01:00:00+01:00", False),
    ("DateLessThan", "2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z", True),
    ("DateLessThanEquals", "2026-12-01", "2026-12-01T00:00:00Z", True),
    ("DateGreaterThan", "1767225600", "2025-12-31T23:59:59Z", True),
    ("DateGreaterThanEquals", "2025-01-01T00:00:00Z", "1767225600", False),
    ("Bool", "true", "TRUE", True),
    ("Bool", "false", "true", False),
    ("BinaryEquals", "QmluYXJ5", "QmluYXJ5", True),
    ("BinaryEquals", "QmluYXJ5", "b3RoZXI=", False),
    ("IpAddress", "10.1.2.3", "10.0.0.0/8", True),
    ("IpAddress", "10.1.2.3", ("192.168.0.0/16", "10.1.2.3"), True),
    ("IpAddress", "11.1.2.3", "10.0.0.0/8", False),
    ("IpAddress", "2001:db8::1", "2001:db8::/32", True),
    ("IpAddress", "2001:db8::1", "0.0.0.0/0", False),
    ("NotIpAddress", "10.1.2.3", "10.0.0.0/8", False),
    ("NotIpAddress", "2001:db8::1", "10.0.0.0/8", True),
    ("ArnEquals", f"{ARN}a/b", f"{ARN}*", True),
    ("ArnEquals", f"{ARN}a", f"{ARN}a", True),
    ("ArnLike", f"{ARN}a", "arn:aws:iam::*:instance-profile/?", True),
    ("ArnLike", "arn:aws:s3:::b", "arn:aws:*:*:*:b", True),
    # a wildcard stays in its part, except in the last, which has colons of its own
    ("ArnLike", "arn:aws:iam::1:x:y", "arn:aws:*:x:*:*", False),
    ("ArnLike", "arn:aws:logs:r:1:group:a:b", "arn:aws:logs:r:1:group:*", True),
    ("ArnLike", "arn:aws:logs:r:1:group:a:b", "arn:aws:logs:r:1:g*:b", True),
    ("ArnLike", "arn:aws:iam::111122223333:role/a", "arn:aws:iam::*/a", None),
    ("ArnNotEquals", f"{ARN}a", f"{ARN}b", True),
    ("ArnNotLike", f"{ARN}a", f"{ARN}*", False),
    ("ArnEquals", "${aws_iam_instance_profile.node.arn}", "${aws_iam_instance_profile.node.arn}", True),
    ("ArnEquals", "${aws_iam_instance_profile.other.arn}", "${aws_iam_instance_profile.node.arn}", False),
    ("Null", "a", "false", True),
    ("Null", "a", "true", False),
    ("Null", "a", ("true", "false"), True),
]
MISSING = [
    ("StringEquals", False),
    ("StringLike", False),
    ("NumericLessThan", False),
    ("DateGreaterThan", False),
    ("Bool", False),
    ("BinaryEquals", False),
    ("IpAddress", False),
    ("ArnEquals", False),
    ("StringNotEquals", True),
    ("StringNotLike", True),
    ("StringNotEqualsIgnoreCase", True),
    ("NumericNotEquals", True),
    ("DateNotEquals", True),
    ("NotIpAddress", True),
    ("ArnNotLike", True),
    ("StringEqualsIfExists", True),
    ("NumericLessThanEqualsIfExists", True),
    ("BoolIfExists", True),
    ("ArnEqualsIfExists", True),
    ("StringNotEqualsIfExists", True),
    ("ForAllValues:StringEquals", True),
    ("ForAllValues:StringNotEquals", True),
    ("ForAnyValue:StringEquals", False),
    ("ForAnyValue:StringNotEquals", False),
    ("ForAllValues:StringEqualsIfExists", True),
    # of this one the guide says nothing
    ("ForAnyValue:StringEqualsIfExists", None),
]
SEVERAL = [
    ("ForAllValues:StringLike", ("skyplan:a", "Name"), ("skyplan:*", "Name"), True),
    ("ForAllValues:StringLike", ("skyplan:a", "Owner"), ("skyplan:*", "Name"), False),
    ("ForAnyValue:StringLike", ("skyplan:a", "Owner"), ("skyplan:*", "Name"), True),
    ("ForAnyValue:StringLike", ("Cost", "Owner"), ("skyplan:*", "Name"), False),
    ("ForAllValues:StringNotEquals", ("a", "b"), ("c", "d"), True),
    ("ForAllValues:StringNotEquals", ("a", "c"), ("c", "d"), False),
    ("ForAnyValue:StringNotEquals", ("a", "c"), ("c", "d"), True),
    ("ForAnyValue:StringNotEquals", ("c", "d"), ("c", "d"), False),
    ("ForAllValues:NumericLessThan", ("1", "2"), ("3",), True),
    ("ForAllValues:StringEqualsIfExists", ("a", "b"), ("a",), False),
    # without a set operator IAM says nothing of several values
    ("StringEquals", ("a", "b"), ("a",), None),
    ("StringNotEquals", ("a", "b"), ("c",), None),
    # one that cannot be compared leaves open only what it could change
    ("ForAllValues:NumericLessThan", ("1", "x"), ("3",), None),
    ("ForAllValues:NumericLessThan", ("9", "x"), ("3",), False),
    ("ForAnyValue:NumericLessThan", ("1", "x"), ("3",), True),
]
OPEN = [
    ("StringMatches", "a", "a"),
    ("ForSomeValues:StringEquals", "a", "a"),
    ("StringEqualsIfPresent", "a", "a"),
    ("NullIfExists", "a", "true"),
    ("ForAllValues:Null", "a", "true"),
    ("Null", "a", "maybe"),
    ("NumericEquals", "a", "1"),
    ("NumericNotEquals", "1", "one"),
    ("NumericLessThan", "NaN", "1"),
    ("DateLessThan", "soon", "2026-12-01T00:00:00Z"),
    ("IpAddress", "10.0.0.1", "10.0.0.0/99"),
    ("NotIpAddress", "here", "10.0.0.0/8"),
    ("Bool", "true", "yes"),
    ("BinaryEquals", "!", "QQ=="),
]


@pytest.mark.parametrize(("operator", "have", "wanted", "answer"), SINGLE + SEVERAL)
def test_values(operator, have, wanted, answer):
    assert ask(operator, have, wanted) is answer


@pytest.mark.parametrize(("operator", "answer"), MISSING)
def test_an_absent_key_and_one_without_a_value(operator, answer):
    wanted = {"Num": "1", "Dat": "2026-01-01", "IpA": "10.0.0.0/8", "Not": "10.0.0.0/8"}.get(operator[:3], "true")
    assert ask(operator, ABSENT, wanted) is answer
    assert holds(Test(operator=operator, key="k:y", values=(wanted,)), {"k:x": ("true",)}) is answer


def test_null_asks_for_absence():
    assert ask("Null", ABSENT, "true") is True
    assert ask("Null", ABSENT, "false") is False


@pytest.mark.parametrize(("operator", "have", "wanted"), OPEN)
def test_what_cannot_be_judged_is_said(operator, have, wanted):
    assert ask(operator, have, wanted) is None


def test_variables():
    tag = {"aws__principaltag/run": ("r1",)}
    assert ask("StringEquals", "r1", "${aws:PrincipalTag/run}", **tag) is True
    assert ask("StringEquals", "r2", "${AWS:principaltag/RUN}", **tag) is False
    assert ask("StringLike", "runs/r1/x", "runs/${aws:PrincipalTag/run}/*", **tag) is True
    assert ask("StringEquals", "none", "${aws:PrincipalTag/other, 'none'}", **tag) is True
    assert ask("StringEquals", "r1", "${aws:PrincipalTag/run, 'none'}", **tag) is True
    # without a value nothing is equal to it, and whether nothing is unequal is open
    assert ask("StringEquals", "", "${aws:PrincipalTag/other}", **tag) is False
    assert ask("StringNotEquals", "r1", "${aws:PrincipalTag/other}", **tag) is None
    assert ask("StringNotEquals", "r1", ("${aws:PrincipalTag/other}", "r1"), **tag) is False
    # a value is never a pattern, and a key with two values is no value
    assert ask("StringLike", "anything", "${aws:PrincipalTag/star}", **{"aws__principaltag/star": ("*",)}) is False
    assert ask("StringEquals", "a", "${aws:TagKeys}", aws__tagkeys=("a", "b")) is False


def test_the_old_language_has_no_variables():
    asked = Test(operator="StringEquals", key="k:x", values=("${aws:username}",))
    assert holds(asked, {"k:x": ("${aws:username}",), "aws:username": ("bob",)}, variables=False) is True
    assert holds(asked, {"k:x": ("bob",), "aws:username": ("bob",)}, variables=False) is False
    assert holds(asked, {"k:x": ("bob",), "aws:username": ("bob",)}) is True
