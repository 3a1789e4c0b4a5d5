"""Coverage of one right by another: what is proved, and what must never be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.iam.audit.clauses import ABAC, CEL, follows
from planner.iam.audit.covers import (
    covers,
    covers_assignment,
    covers_binding,
    covers_permit,
    covers_provider,
    implies,
    overlaps,
)
from planner.iam.audit.patterns import actions_meet, includes, includes_arn, meet, tokens
from planner.model.offer import Cloud
from planner.model.policy import Permit, Provider, RoleAssignment, RoleBinding, Statement, Test

GET = Statement(actions=("s3:GetObject",), resources=("arn:aws:s3:::acme/a/*",))


def case(operator, key, *values):
    return Test(operator=operator, key=key, values=values)


@pytest.mark.parametrize(
    ("have", "want"),
    [
        ("*", "anything"),
        ("a*c", "abbc"),
        ("a*c", "a*b*c"),
        ("a?c", "abc"),
        ("a?c", "a?c"),
        ("a*", "a${aws:username}"),
        ("${*}", "${*}"),
        ("*${*}*", "x${*}y"),
        ("${aws_s3_bucket.b.arn}/*", "${aws_s3_bucket.b.arn}/p/*"),
        ("a*b*", "axb?b"),
    ],
)
def test_pattern_takes_in(have, want):
    assert includes(tokens(have), tokens(want))
    assert meet(tokens(have), tokens(want))


@pytest.mark.parametrize(
    ("have", "want"),
    [
        ("a?c", "a*c"),
        ("abc", "ab*"),
        ("a?", "a${x}"),
        ("${*}", "*"),
        ("${*}", "x"),
        ("a*c", "a*"),
        ("data/*", "data2/*"),
        ("", "a"),
        ("A*", "a*"),
        ("${a}", "${b}"),
    ],
)
def test_pattern_does_not_take_in(have, want):
    assert not includes(tokens(have), tokens(want))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a*", "*b", True),
        ("a*c", "b*", False),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("", "*", True),
        ("", "?", False),
        ("${x}", "abc", True),
        ("*a*", "b?b", True),
        ("*a", "b?b", False),
    ],
)
def test_patterns_meet(one, other, expected):
    assert meet(tokens(one), tokens(other)) is expected
    assert meet(tokens(other), tokens(one)) is expected


def test_wildcard_of_an_arn_stays_in_its_part():
    assert includes_arn("arn:aws:ec2:*:1:instance/*", "arn:aws:ec2:us-east-1:1:instance/i-1")
    assert not includes_arn("arn:aws:ec2:*:instance/*", "arn:aws:ec2:us-east-1:1:instance/i-1")
    assert includes_arn("arn:aws:s3:::*", "arn:aws:s3:::b/a:b/*")
    assert not includes_arn("arn:aws:s3:::acme/*", "*")
    assert actions_meet("s3:get*", "S3:*Object")


@pytest.mark.parametrize(
    "want",
    [
        GET,
        replace(GET, sid="Other"),
        replace(GET, actions=("S3:getobject",)),
        replace(GET, resources=("arn:aws:s3:::acme/a/b/*", "arn:aws:s3:::acme/a/c")),
        replace(GET, tests=(case("StringEquals", "aws:ResourceAccount", "1"),)),
        replace(GET, effect="Deny", actions=("*",)),
    ],
)
def test_covered(want):
    assert covers(GET, want)


@pytest.mark.parametrize(
    "want",
    [
        replace(GET, actions=("s3:GetObject", "s3:PutObject")),
        replace(GET, actions=("s3:Get*",)),
        replace(GET, resources=("arn:aws:s3:::acme/*",)),
        replace(GET, resources=("arn:aws:s3:::acme/a2/x",)),
        replace(GET, resources=(), not_resources=("arn:aws:s3:::other",)),
        replace(GET, actions=(), not_actions=("iam:*",)),
        replace(GET, principals=(("AWS", "*"),)),
    ],
)
def test_not_covered(want):
    assert not covers(GET, want)


def test_a_deny_gives_nothing():
    assert not covers(replace(GET, effect="Deny"), GET)
    assert covers(replace(GET, effect="Deny"), replace(GET, effect="Deny"))


def test_allow_by_exclusion():
    but_iam = Statement(not_actions=("iam:*",), resources=("*",))
    assert covers(but_iam, GET)
    assert not covers(but_iam, Statement(actions=("iam:PassRole",), resources=("*",)))
    assert not covers(but_iam, Statement(actions=("*",), resources=("*",)))
    assert covers(but_iam, Statement(not_actions=("iam:*", "ec2:*"), resources=("*",)))
    assert not covers(Statement(not_actions=("iam:*", "ec2:*"), resources=("*",)), but_iam)
    assert covers(Statement(actions=("*",), resources=("*",)), but_iam)
    elsewhere = Statement(actions=("s3:*",), not_resources=("arn:aws:s3:::secret/*",))
    assert covers(elsewhere, GET)
    assert not covers(elsewhere, replace(GET, resources=("arn:aws:s3:::*",)))


@pytest.mark.parametrize(
    ("want", "have"),
    [
        (case("StringEquals", "k", "a"), case("StringEquals", "K", "a", "b")),
        (case("StringEquals", "k", "ab"), case("StringLike", "k", "a*")),
        (case("StringLike", "k", "ab*"), case("StringLike", "k", "a*")),
        (case("StringLike", "k", "ab"), case("StringEquals", "k", "ab")),
        (case("StringEquals", "k", "a"), case("StringEqualsIfExists", "k", "a")),
        (case("StringEquals", "k", "A"), case("StringEqualsIgnoreCase", "k", "a")),
        (case("StringNotEquals", "k", "a", "b"), case("StringNotEquals", "k", "a")),
        (case("StringNotLike", "k", "a*"), case("StringNotEquals", "k", "ab")),
        (case("StringEquals", "k", "a"), case("Null", "k", "false")),
        (case("Null", "k", "False"), case("Null", "k", "false")),
        (case("NumericLessThanEquals", "k", "1"), case("NumericLessThan", "k", "2")),
        (case("NumericEquals", "k", "1"), case("NumericLessThanEquals", "k", "1.0")),
        (case("NumericGreaterThan", "k", "2"), case("NumericGreaterThanEquals", "k", "2")),
        (case("ArnEquals", "k", "arn:aws:iam::1:role/a"), case("ArnLike", "k", "arn:aws:iam::1:role/*")),
        (case("IpAddress", "k", "10.1.0.0/16"), case("IpAddress", "k", "10.0.0.0/8")),
        (case("NotIpAddress", "k", "10.0.0.0/8"), case("NotIpAddress", "k", "10.1.0.0/16")),
        (case("Bool", "k", "True"), case("Bool", "k", "true")),
        (case("ForAllValues:StringEquals", "k", "a"), case("ForAllValues:StringLike", "k", "*")),
    ],
)
def test_condition_follows(want, have):
    assert implies(want, have)


@pytest.mark.parametrize(
    ("want", "have"),
    [
        (case("StringEquals", "k", "a"), case("StringEquals", "other", "a")),
        (case("StringEquals", "k", "a", "b"), case("StringEquals", "k", "a")),
        (case("StringLike", "k", "a*"), case("StringEquals", "k", "a*")),
        (case("StringEqualsIfExists", "k", "a"), case("StringEquals", "k", "a")),
        (case("ForAllValues:StringEquals", "k", "a"), case("StringEquals", "k", "a")),
        (case("ForAllValues:StringEquals", "k", "a"), case("Null", "k", "false")),
        (case("StringNotEquals", "k", "a"), case("StringNotEquals", "k", "a", "b")),
        (case("StringNotEquals", "k", "a"), case("Null", "k", "false")),
        (case("StringEqualsIfExists", "k", "a"), case("Null", "k", "false")),
        (case("NumericLessThanEquals", "k", "2"), case("NumericLessThan", "k", "2")),
        (case("NumericLessThan", "k", "5"), case("NumericEquals", "k", "1")),
        (case("IpAddress", "k", "10.0.0.0/8"), case("IpAddress", "k", "10.1.0.0/16")),
        (case("IpAddress", "k", "10.0.0.0/8"), case("IpAddress", "k", "::/0")),
        (case("Null", "k", "true"), case("Null", "k", "false")),
        (case("StringEqualsIgnoreCase", "k", "a"), case("StringEquals", "k", "a")),
    ],
)
def test_condition_does_not_follow(want, have):
    assert not implies(want, have)


def test_overlap_is_by_action_and_resource():
    assert overlaps(GET, Statement(actions=("s3:*",), resources=("arn:aws:s3:::acme/*",)))
    assert not overlaps(GET, Statement(actions=("s3:Put*",), resources=("*",)))
    assert not overlaps(GET, Statement(actions=("s3:*",), resources=("arn:aws:s3:::other/*",)))
    assert not overlaps(GET, Statement(not_actions=("s3:*",), resources=("*",)))
    assert overlaps(GET, Statement(actions=("s3:*",), not_resources=("arn:aws:s3:::acme/b/*",)))


NAME = 'resource.name.extract("/instances/{name}").startsWith("skyplan-a-")'


@pytest.mark.parametrize(
    ("grammar", "want", "have"),
    [
        (CEL, "", ""),
        (CEL, "a == b", ""),
        (CEL, f'resource.type == "x" && {NAME}', NAME),
        (CEL, f"({NAME})", NAME),
        (CEL, NAME.replace("-a-", "-a-b-"), NAME),
        (CEL, "a && b", "b && a"),
        (CEL, "a", "a || b"),
        (CEL, "a && c || b", "b || a"),
        (ABAC, "(@R[x] StringStartsWith 'a/')", "(@R[x] StringStartsWith 'a/' OR @R[x] StringStartsWith 'b/')"),
        (ABAC, "(!(A) OR (P OR Q)) AND (B)", "(!(A) OR (Q OR P OR R))"),
    ],
)
def test_text_follows(grammar, want, have):
    assert follows(grammar, want, have)


@pytest.mark.parametrize(
    ("grammar", "want", "have"),
    [
        (CEL, "", "a"),
        (CEL, "a || b", "a"),
        (CEL, "a", "a && b"),
        (CEL, NAME, NAME.replace("-a-", "-a-b-")),
        (CEL, "!a", "a"),
        (CEL, "a ? b : c && d", "d"),
        (CEL, 'x == "a && b"', 'b"'),
        (CEL, r'x == "\" && b', "b"),
        (ABAC, "A OR B AND C", "C"),
        (ABAC, "A AND B || C", "A"),
        (ABAC, "@R[x] StringStartsWith 'b/'", "@R[x] StringStartsWith 'a/'"),
    ],
)
def test_text_does_not_follow(grammar, want, have):
    assert not follows(grammar, want, have)


BINDING = RoleBinding(
    member="serviceAccount:n", role="projects/p/roles/r", on="projects/p", permissions=("a.b.get", "a.b.list")
)


def test_binding():
    assert covers_binding(BINDING, BINDING)
    assert covers_binding(BINDING, replace(BINDING, role="projects/p/roles/s", permissions=("a.b.get",)))
    assert covers_binding(BINDING, replace(BINDING, on="projects/p/serviceAccounts/x", condition="a"))
    assert not covers_binding(BINDING, replace(BINDING, permissions=("a.b.get", "a.b.set")))
    assert not covers_binding(BINDING, replace(BINDING, member="allUsers"))
    assert not covers_binding(BINDING, replace(BINDING, on="projects/p2"))
    assert not covers_binding(replace(BINDING, condition="a"), BINDING)
    assert not covers_binding(replace(BINDING, on="projects/_"), replace(BINDING, on="projects/_/buckets/b"))
    folder = replace(BINDING, on="projects/_/buckets/b/managedFolders/f/")
    assert covers_binding(replace(BINDING, on="projects/_/buckets/b"), folder)
    assert not covers_binding(folder, replace(folder, on="projects/_/buckets/b/managedFolders/f2/"))
    viewer = replace(BINDING, role="roles/x.viewer", permissions=())
    assert not covers_binding(BINDING, viewer)
    assert covers_binding(BINDING, viewer, {"roles/x.viewer": frozenset({"a.b.get"})}.__getitem__)


ASSIGNMENT = RoleAssignment(
    role="r", scope="/subscriptions/s/resourceGroups/g", actions=("Microsoft.Compute/*",), not_actions=("*/delete",)
)


def test_assignment():
    assert covers_assignment(ASSIGNMENT, ASSIGNMENT)
    assert covers_assignment(ASSIGNMENT, replace(ASSIGNMENT, scope="/Subscriptions/S/resourcegroups/G/providers/x"))
    assert not covers_assignment(ASSIGNMENT, replace(ASSIGNMENT, scope="/subscriptions/s/resourceGroups/g2"))
    assert not covers_assignment(ASSIGNMENT, replace(ASSIGNMENT, not_actions=()))
    vm = replace(ASSIGNMENT, actions=("Microsoft.Compute/virtualMachines/read",), not_actions=())
    assert covers_assignment(ASSIGNMENT, vm)
    assert not covers_assignment(ASSIGNMENT, replace(vm, actions=("Microsoft.Compute/virtualMachines/delete",)))
    assert not covers_assignment(
        ASSIGNMENT, replace(vm, data_actions=("Microsoft.Compute/virtualMachines/login/action",))
    )
    built_in = replace(ASSIGNMENT, role="Reader", actions=(), not_actions=())
    assert covers_assignment(built_in, replace(built_in, role="reader"))
    assert not covers_assignment(built_in, replace(built_in, role="Owner"))
    assert not covers_assignment(replace(built_in, condition="A"), built_in)


def test_permit():
    permit = Permit(role="storage.object-viewer", on="b", paths=("data/*",))
    assert covers_permit(permit, replace(permit, paths=("data/a/*", "data/b")))
    assert not covers_permit(permit, replace(permit, paths=("data2/*",)))
    assert not covers_permit(permit, replace(permit, paths=()))
    assert not covers_permit(permit, replace(permit, anonymous=True))
    assert covers_permit(replace(permit, paths=()), permit)
    assert covers_permit(Permit(role="editor", on="p"), Permit(role="viewer", on="p"))
    assert not covers_permit(Permit(role="viewer", on="p"), Permit(role="editor", on="p"))


def test_provider():
    provider = Provider(cloud=Cloud.GCP, origin="o", issuer="https://i", audiences=("a", "b"), condition="x == 'y'")
    assert covers_provider(provider, replace(provider, audiences=("a",), condition="x == 'y' && z"))
    assert not covers_provider(provider, replace(provider, audiences=()))
    assert not covers_provider(provider, replace(provider, audiences=("c",)))
    assert not covers_provider(provider, replace(provider, condition=""))
    assert not covers_provider(provider, replace(provider, issuer="https://j"))
