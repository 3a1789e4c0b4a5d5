"""Rules 4xx beyond their fixtures."""

from __future__ import annotations

import pytest

from planner.iam.audit.registry import run
from planner.model.offer import Cloud
from planner.model.policy import Audited, AwsPolicy, PolicyKind, Provider, Statement, Subject, Test

ME = "arn:aws:iam::111122223333:role/me"
GITHUB = ("Federated", "arn:aws:iam::111122223333:oidc-provider/token.actions.githubusercontent.com")


def trusted(*principals, tests=(), deny=(), action="sts:AssumeRole"):
    allow = Statement(actions=(action,), principals=principals, tests=tests)
    policy = AwsPolicy(kind=PolicyKind.TRUST, name="trust", statements=(allow, *deny))
    return Audited(subjects=(Subject(cloud=Cloud.AWS, name="me", origin=ME, policies=(policy,)),))


def case(operator, key, *values):
    return Test(operator=operator, key=key, values=values)


@pytest.mark.parametrize(
    "name", ["*", "111122223333", "arn:aws:iam::111122223333:root", "arn:aws-cn:iam::111122223333:root"]
)
def test_whole_accounts_and_everybody(name):
    assert [found.rule for found in run(trusted(("AWS", name)), ["SKY-IAM-401"])] == ["SKY-IAM-401"]


def test_a_condition_has_to_name_who():
    org = case("StringEquals", "aws:PrincipalOrgID", "o-1")
    assert run(trusted(("AWS", "*"), tests=(org,)), ["SKY-IAM-401"])
    named = case("ArnLike", "aws:PrincipalArn", "arn:aws:iam::111122223333:role/ci-*")
    assert not run(trusted(("AWS", "*"), tests=(named,)), ["SKY-IAM-401"])
    loose = case("ArnLikeIfExists", "aws:PrincipalArn", "arn:aws:iam::111122223333:role/ci-*")
    assert run(trusted(("AWS", "*"), tests=(loose,)), ["SKY-IAM-401"])


def test_a_deny_of_everybody_closes_it():
    deny = Statement(effect="Deny", actions=("sts:*",), principals=(("AWS", "*"),))
    assert not run(trusted(("AWS", "*"), deny=(deny,)), ["SKY-IAM-401"])


@pytest.mark.parametrize("key", ["aud", "sub"])
def test_each_claim_is_asked_for_and_if_exists_asks_for_nothing(key):
    issuer = "token.actions.githubusercontent.com"
    both = {"aud": "sts.amazonaws.com", "sub": "repo:acme/train:ref:refs/heads/main"}
    strict = [case("StringEquals", f"{issuer}:{one}", value) for one, value in both.items()]
    audited = trusted(GITHUB, tests=tuple(strict), action="sts:AssumeRoleWithWebIdentity")
    assert not run(audited, ["SKY-IAM-402"])
    loose = [case("StringEqualsIfExists", one.key, *one.values) if one.key.endswith(key) else one for one in strict]
    (found,) = run(trusted(GITHUB, tests=tuple(loose)), ["SKY-IAM-402"])
    assert found.message.endswith(f"without {key}")
    assert f'"{issuer}:{key}"' in found.fix


def test_saml_has_no_such_claims():
    assert not run(trusted(("Federated", "arn:aws:iam::111122223333:saml-provider/idp")), ["SKY-IAM-402"])


def test_a_condition_that_is_always_true_is_none():
    provider = Provider(cloud=Cloud.GCP, origin="p", issuer="https://i", audiences=("a",), condition="true")
    assert run(Audited(providers=(provider,)), ["SKY-IAM-403"])


@pytest.mark.parametrize(
    ("principal", "found"),
    [
        (("AWS", "arn:aws:iam::111122223333:role/ci"), False),
        (("AWS", "${aws_iam_role.ci.arn}"), False),
        (("AWS", "arn:aws:iam::999988887777:role/ci"), True),
        (("Service", "ec2.amazonaws.com"), False),
        (("Service", "ec2.amazonaws.com.cn"), False),
        (("Service", "config.amazonaws.com"), True),
    ],
)
def test_a_second_key(principal, found):
    assert bool(run(trusted(principal), ["SKY-IAM-404"])) is found
