"""How AWS's policies meet: denies, bounds, sessions, resource policies and trust; patterns of actions and resources; each denial beside its twin."""

from __future__ import annotations

import pytest

from planner.iam.documents import policy_from
from planner.iam.evaluate.aws import Request, applies, judge, trusts
from planner.iam.evaluate.verdict import Decision
from planner.model.policy import PolicyKind, Statement, Test

ACCOUNT = "111122223333"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/r"
OTHER = "arn:aws:iam::999988887777:role/r"
OBJECT = "arn:aws:s3:::b/p/x"
GET = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}
IDENTITY, BOUNDARY, SESSION = PolicyKind.IDENTITY, PolicyKind.BOUNDARY, PolicyKind.SESSION


def policy(kind, *statements, version="2012-10-17", name=None):
    document = {"Version": version, "Statement": list(statements)}
    return policy_from(document, kind=kind, name=name or kind.value)


def request(action="s3:GetObject", resource=OBJECT, **context):
    return Request(
        action=action,
        resource=resource,
        context={
            key.replace("__", ":"): value if isinstance(value, tuple) else (value,) for key, value in context.items()
        },
    )


def asked(*policies, **more):
    return judge(list(policies), request(), **more)


def test_nothing_allows_nothing():
    assert asked().decision is Decision.IMPLICIT_DENY
    assert asked(policy(IDENTITY, GET))


@pytest.mark.parametrize("kind", [IDENTITY, BOUNDARY, SESSION])
def test_a_deny_wins_wherever_it_stands(kind):
    deny = {**GET, "Sid": "No", "Effect": "Deny"}
    verdict = asked(policy(IDENTITY, GET), policy(kind, GET, deny, name="other"))
    assert verdict.decision is Decision.EXPLICIT_DENY
    assert verdict.by == "other: No"
    assert asked(policy(IDENTITY, GET), policy(kind, GET, {**deny, "Resource": "arn:aws:s3:::b/q/*"}))


def test_a_deny_wins_where_nothing_allows():
    assert asked(policy(IDENTITY, {**GET, "Effect": "Deny"})).decision is Decision.EXPLICIT_DENY


@pytest.mark.parametrize("kind", [BOUNDARY, SESSION])
def test_a_bound_gives_nothing_and_takes_what_it_does_not_allow(kind):
    bound = policy(kind, {**GET, "Action": "s3:*"})
    assert not asked(bound)
    assert asked(policy(IDENTITY, GET), bound)
    verdict = asked(policy(IDENTITY, GET), policy(kind, {**GET, "Action": "ec2:*"}))
    assert verdict.decision is Decision.IMPLICIT_DENY
    assert kind.value in verdict.by


def test_identity_policies_add_up_and_so_do_sessions():
    put = {**GET, "Action": "s3:PutObject"}
    assert asked(policy(IDENTITY, put), policy(IDENTITY, GET))
    assert asked(policy(IDENTITY, GET), policy(SESSION, put), policy(SESSION, GET))
    # boundaries do not: each has to allow
    assert not asked(policy(IDENTITY, GET), policy(BOUNDARY, put), policy(BOUNDARY, GET))


class TestResourcePolicies:
    def bucket(self, principal, effect="Allow", **more):
        statement = {**GET, "Effect": effect, "Principal": principal, **more}
        return policy(PolicyKind.RESOURCE, statement, name="bucket")

    def judged(self, *policies, bucket, **context):
        context = {"aws__PrincipalArn": ROLE, "aws__PrincipalAccount": ACCOUNT, **context}
        return judge(list(policies), request(**context), resource_policies=[bucket])

    @pytest.mark.parametrize("principal", ["*", {"AWS": ROLE}, {"AWS": [OTHER, ROLE]}])
    def test_naming_the_role_is_enough(self, principal):
        assert self.judged(bucket=self.bucket(principal))

    @pytest.mark.parametrize(
        "principal", [{"AWS": OTHER}, {"AWS": ACCOUNT}, {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, {"Service": ROLE}]
    )
    def test_naming_another_or_the_whole_account_is_not(self, principal):
        assert not self.judged(bucket=self.bucket(principal))
        assert self.judged(policy(IDENTITY, GET), bucket=self.bucket(principal))

    @pytest.mark.parametrize("principal", ["*", {"AWS": ROLE}, {"AWS": ACCOUNT}])
    def test_its_deny_is_one(self, principal):
        denied = self.judged(policy(IDENTITY, GET), bucket=self.bucket(principal, "Deny"))
        assert denied.decision is Decision.EXPLICIT_DENY
        assert self.judged(policy(IDENTITY, GET), bucket=self.bucket({"AWS": OTHER}, "Deny"))

    def test_what_it_gives_stays_within_the_bounds(self):
        small = policy(BOUNDARY, {**GET, "Action": "ec2:*"})
        assert not self.judged(small, bucket=self.bucket("*"))
        assert self.judged(policy(BOUNDARY, GET), bucket=self.bucket("*"))

    def test_between_accounts_both_sides_have_to_allow(self):
        away = {"aws__ResourceAccount": "999988887777"}
        assert not self.judged(bucket=self.bucket({"AWS": ROLE}), **away)
        assert not self.judged(policy(IDENTITY, GET), bucket=self.bucket({"AWS": OTHER}), **away)
        assert self.judged(policy(IDENTITY, GET), bucket=self.bucket({"AWS": ACCOUNT}), **away)
        home = {"aws__ResourceAccount": ACCOUNT}
        assert self.judged(policy(IDENTITY, GET), bucket=self.bucket({"AWS": OTHER}), **home)

    def test_everybody_but_one(self):
        def but(principal, effect):
            statement = {"Effect": effect, "NotPrincipal": principal, "Action": "s3:*", "Resource": "*"}
            return policy(PolicyKind.RESOURCE, statement)

        assert self.judged(policy(IDENTITY, GET), bucket=but({"AWS": ROLE}, "Deny"))
        assert not self.judged(policy(IDENTITY, GET), bucket=but({"AWS": OTHER}, "Deny"))
        # exempting an account exempts none of its roles from a deny, and keeps an allow from all of them
        assert not self.judged(policy(IDENTITY, GET), bucket=but({"AWS": ACCOUNT}, "Deny"))
        assert not self.judged(bucket=but({"AWS": ACCOUNT}, "Allow"))
        assert self.judged(bucket=but({"AWS": OTHER}, "Allow"))

    def test_without_one_only_the_identitys_side_is_judged(self):
        away = request(aws__PrincipalAccount=ACCOUNT, aws__ResourceAccount="999988887777")
        assert judge([policy(IDENTITY, GET)], away)
        assert not judge([policy(IDENTITY, GET)], away, resource_policies=[])


@pytest.mark.parametrize(
    ("patterns", "action", "wanted"),
    [
        ("s3:GetObject", "S3:getobject", True),
        ("s3:Get*", "s3:GetObjectVersion", True),
        ("s3:Get?bject", "s3:GetObject", True),
        ("s3:Get", "s3:GetObject", False),
        ("*", "iam:PassRole", True),
        ("*:*", "iam:PassRole", True),
        (["ec2:*", "s3:*"], "iam:PassRole", False),
        ("s3.GetObject", "s3:GetObject", False),
    ],
)
def test_actions(patterns, action, wanted):
    assert judge([policy(IDENTITY, {**GET, "Action": patterns})], request(action)).allowed is wanted
    opposite = {"Effect": "Allow", "NotAction": patterns, "Resource": "*"}
    assert judge([policy(IDENTITY, opposite)], request(action)).allowed is not wanted


@pytest.mark.parametrize(
    ("patterns", "resource", "wanted"),
    [
        ("*", OBJECT, True),
        ("arn:aws:s3:::b/*", OBJECT, True),
        ("arn:aws:s3:::b/p/?", OBJECT, True),
        ("arn:aws:s3:::b", OBJECT, False),
        ("arn:aws:s3:::b*", OBJECT, True),
        ("arn:aws:s3:::B/*", OBJECT, False),
        (["arn:aws:s3:::a/*", "arn:aws:s3:::b/*"], OBJECT, True),
        ("arn:*:s3:::b/*", "arn:aws-cn:s3:::b/x", True),
        ("arn:aws:ec2:*:1:instance/*", "arn:aws:ec2:us-east-1:1:instance/i", True),
        ("arn:aws:ec2:us-*-1:1:instance/*", "arn:aws:ec2:us-east-1:1:instance/i", True),
        # at the end of a part a `*` reaches beyond its colon, elsewhere it does not
        ("arn:aws:ec2:*:instance/*", "arn:aws:ec2:us-east-1:1:instance/i", True),
        ("arn:aws:*", "arn:aws:ec2:us-east-1:1:instance/i", True),
        ("arn:aws:ec2:*1:instance/*", "arn:aws:ec2:us-east-1:1:instance/i", False),
        ("arn:aws:ec2:us-east?1:instance/i", "arn:aws:ec2:us-east:1:instance/i", False),
        ("arn:aws:logs:r:1:group:*x", "arn:aws:logs:r:1:group:a:bx", True),
        ("arn:aws:s3:::b/${*}", "arn:aws:s3:::b/*", True),
        ("arn:aws:s3:::b/${*}", "arn:aws:s3:::b/x", False),
        ("arn:aws:s3:::b/${aws:PrincipalTag/run}/*", "arn:aws:s3:::b/r1/x", True),
        ("arn:aws:s3:::b/${aws:PrincipalTag/run}/*", "arn:aws:s3:::b/r2/x", False),
        ("arn:aws:s3:::b/${aws:PrincipalTag/none}/*", "arn:aws:s3:::b//x", False),
        ("arn:aws:s3:::b/${aws:PrincipalTag/none, 'd'}/*", "arn:aws:s3:::b/d/x", True),
        ("arn:aws:s3:::b/${aws:TagKeys}/*", "arn:aws:s3:::b/a/x", False),
        # what Terraform has still to fill is text, whatever is in it
        ("${aws_s3_bucket.b.arn}/p/*", "${aws_s3_bucket.b.arn}/p/x", True),
        ("${aws_s3_bucket.b.arn}/p/*", "${aws_s3_bucket.c.arn}/p/x", False),
        ("arn:aws:s3:::${var.buckets[*].name}/*", "arn:aws:s3:::${var.buckets[*].name}/x", True),
        ("arn:aws:s3:::${var.buckets[*].name}/*", "arn:aws:s3:::${var.buckets[0].name}/x", False),
        ('${jsonencode({a = "b*"})}', '${jsonencode({a = "b*"})}', True),
        ('${jsonencode({a = "b*"})}', '${jsonencode({a = "bc"})}', False),
        ('${f({a = 1}, "*")}', '${f({a = 1}, "x")}', False),
        ("${unclosed*", "${unclosed:x", True),
    ],
)
def test_resources(patterns, resource, wanted):
    context = {"aws__PrincipalTag/run": "r1", "aws__TagKeys": ("a", "b")}
    asked_for = request(resource=resource, **context)
    assert judge([policy(IDENTITY, {**GET, "Resource": patterns})], asked_for).allowed is wanted
    opposite = {"Effect": "Allow", "Action": "*", "NotResource": patterns}
    assert judge([policy(IDENTITY, opposite)], asked_for).allowed is not wanted


def test_the_old_language_has_no_variables():
    mine = {**GET, "Resource": "arn:aws:s3:::b/${aws:username}/*"}
    asked_for = request(resource="arn:aws:s3:::b/bob/x", aws__username="bob")
    assert judge([policy(IDENTITY, mine)], asked_for)
    assert not judge([policy(IDENTITY, mine, version="2008-10-17")], asked_for)


def test_all_tests_have_to_hold():
    both = {"StringEquals": {"a:x": "1", "a:y": "1"}, "Null": {"a:z": "true"}}
    mine = policy(IDENTITY, {**GET, "Condition": both})
    assert judge([mine], request(A__X="1", a__y="1"))
    assert not judge([mine], request(a__x="1"))
    assert not judge([mine], request(a__x="1", a__y="2"))
    assert not judge([mine], request(a__x="1", a__y="1", a__z="1"))


def test_what_cannot_be_judged_fails_closed_and_says_so():
    odd = {"Condition": {"StringMatches": {"a:x": "1"}}}
    allowing = judge([policy(IDENTITY, {**GET, **odd, "Sid": "Odd"})], request(a__x="1"))
    assert allowing.decision is Decision.IMPLICIT_DENY
    assert "identity: Odd: a condition cannot be judged" in allowing.by
    denying = judge([policy(IDENTITY, GET, {**GET, **odd, "Effect": "Deny"})], request(a__x="1"))
    assert denying.decision is Decision.EXPLICIT_DENY
    assert "cannot be judged: denied" in denying.by
    # another condition that does not hold settles it
    settled = {"Condition": {**odd["Condition"], "StringEquals": {"a:y": "1"}}}
    assert judge([policy(IDENTITY, GET, {**GET, **settled, "Effect": "Deny"})], request(a__x="1"))


def test_whether_one_statement_applies():
    odd = (Test(operator="StringMatches", key="a:x", values=("1",)),)
    allow = Statement(actions=("s3:*",), resources=("arn:aws:s3:::b/*",))
    assert applies(allow, request())
    assert not applies(allow, request(resource="arn:aws:s3:::c/x"))
    assert not applies(Statement(actions=("s3:*",), resources=("*",), tests=odd), request())
    assert applies(Statement(effect="Deny", actions=("s3:*",), resources=("*",), tests=odd), request())


class TestTrust:
    SERVICE: tuple = ("Service", "ec2.amazonaws.com")
    GITHUB = f"arn:aws:iam::{ACCOUNT}:oidc-provider/token.actions.githubusercontent.com"

    def trust(self, principal, action="sts:AssumeRole", effect="Allow", **condition):
        more = {"Condition": condition} if condition else {}
        statement = {"Effect": effect, "Action": action, "Principal": principal, **more}
        return policy(PolicyKind.TRUST, statement)

    def test_a_service(self):
        made = self.trust({"Service": "ec2.amazonaws.com"})
        assert trusts(made, "Service", "ec2.amazonaws.com", {})
        assert not trusts(made, "Service", "lambda.amazonaws.com", {})
        assert not trusts(made, "AWS", "ec2.amazonaws.com", {})

    @pytest.mark.parametrize("principal", [ROLE, ACCOUNT, f"arn:aws:iam::{ACCOUNT}:root", "*"])
    def test_a_role_by_itself_or_by_its_account(self, principal):
        made = self.trust({"AWS": principal})
        assert trusts(made, "AWS", ROLE, {})
        assert trusts(made, "AWS", OTHER, {}).allowed is (principal == "*")

    def test_a_web_identity_needs_the_right_token(self):
        keys = {"token.actions.githubusercontent.com:sub": "repo:acme/infra:ref:refs/heads/main"}
        made = self.trust({"Federated": self.GITHUB}, "sts:AssumeRoleWithWebIdentity", StringEquals=keys)
        context = {key: (value,) for key, value in keys.items()}
        assert trusts(made, "Federated", self.GITHUB, context)
        assert not trusts(made, "Federated", self.GITHUB, {})
        pull = {"token.actions.githubusercontent.com:sub": ("repo:acme/infra:pull_request",)}
        verdict = trusts(made, "Federated", self.GITHUB, pull)
        assert verdict.decision is Decision.IMPLICIT_DENY
        assert "does not trust it" in verdict.by

    def test_the_action_counts(self):
        made = self.trust({"AWS": ROLE})
        assert not trusts(made, "AWS", ROLE, {}, action="sts:TagSession")
        assert trusts(self.trust({"AWS": ROLE}, "sts:*"), "AWS", ROLE, {}, action="sts:TagSession")

    def test_a_deny_wins(self):
        allow, deny = self.trust({"AWS": ROLE}), self.trust({"AWS": ACCOUNT}, effect="Deny")
        both = policy_from(
            {"Statement": [{"Effect": s.effect, "Action": "sts:AssumeRole", "Principal": {"AWS": s.principals[0][1]}}
                           for s in (*allow.statements, *deny.statements)]},
            kind=PolicyKind.TRUST,
            name="t",
        )  # fmt: skip
        assert trusts(both, "AWS", ROLE, {}).decision is Decision.EXPLICIT_DENY
