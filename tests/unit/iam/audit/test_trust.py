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


ISSUER = "token.actions.githubusercontent.com"
AUD = case("StringEquals", f"{ISSUER}:aud", "sts.amazonaws.com")


@pytest.mark.parametrize(
    ("subject", "owned"),
    [
        ("repo:acme/*", True),
        ("repo:acme/train:*", True),
        ("repo:${var.owner}/train:*", True),
        ("system:serviceaccount:train:*", True),
        ("org/0a1b/project/*", True),
        ("repo:acme*", False),
        ("repo:a?me/*", False),
        ("re*", False),
        ("*x*", False),
        ("*acme/train:*", False),
        ("*:ref:refs/heads/main", False),
        ("repo:*:environment:prod", False),
        ("system:serviceaccount:*", False),
    ],
)
def test_a_pattern_of_subjects_has_to_say_whose(subject, owned):
    tests = (AUD, case("StringLike", f"{ISSUER}:sub", "repo:acme/x:y", subject))
    assert bool(run(trusted(GITHUB, tests=tests), ["SKY-IAM-402"])) is not owned
    exact = (AUD, case("StringEquals", f"{ISSUER}:sub", subject))
    assert not run(trusted(GITHUB, tests=exact), ["SKY-IAM-402"])


@pytest.mark.parametrize(
    ("aud", "asked"),
    [
        (AUD, True),
        (case("StringEquals", "${var.issuer}:aud", "sts.amazonaws.com"), True),
        (case("StringEquals", "gitlab.com:aud", "sts.amazonaws.com"), False),
        (case("StringLike", f"{ISSUER}:aud", "?*"), False),
    ],
)
def test_a_claim_is_this_issuers_and_says_something(aud, asked):
    sub = case("StringEquals", f"{ISSUER}:sub", "repo:acme/train:ref:refs/heads/main")
    assert bool(run(trusted(GITHUB, tests=(aud, sub)), ["SKY-IAM-402"])) is not asked


def test_any_pool_of_cognitos_is_not_ones_own():
    pool = ("Federated", "cognito-identity.amazonaws.com")
    aud = case("StringEquals", "cognito-identity.amazonaws.com:aud", "us-east-1:0a1b")
    assert run(trusted(pool), ["SKY-IAM-402"])
    assert not run(trusted(pool, tests=(aud,)), ["SKY-IAM-402"])


@pytest.mark.parametrize(
    ("key", "operator", "value", "named"),
    [
        ("aws:PrincipalArn", "ArnLike", "arn:aws:iam::111122223333:role/ci-*", True),
        ("aws:PrincipalArn", "ArnLike", "arn:aws:iam::*:role/ci", False),
        ("aws:PrincipalArn", "StringLike", "*:role/ci", False),
        ("aws:userid", "StringLike", "AROAEXAMPLE123456789:*", True),
        ("aws:userid", "StringLike", "A*", False),
        ("aws:PrincipalTag/team", "StringEquals", "ours", False),
    ],
)
def test_who_is_named_by_more_than_what_anybody_can_be_called(key, operator, value, named):
    anybody = trusted(("AWS", "*"), tests=(case(operator, key, value),))
    assert bool(run(anybody, ["SKY-IAM-401"])) is not named


def test_a_tag_says_who_where_the_account_is_known():
    tag, org = case("StringEquals", "aws:PrincipalTag/team", "ours"), case("StringEquals", "aws:PrincipalOrgID", "o-1")
    assert not run(trusted(("AWS", "*"), tests=(tag, org)), ["SKY-IAM-401"])
    assert not run(trusted(("AWS", "111122223333"), tests=(tag,)), ["SKY-IAM-401"])


@pytest.mark.parametrize(
    ("arn", "tied"),
    [
        ("arn:aws:sns:*:111122223333:*", True),
        ("arn:aws:s3:::acme", True),
        ("arn:aws:sns:*:*:*", False),
        ("arn:aws:s3:::*", False),
    ],
)
def test_whose_the_service_acts_for(arn, tied):
    tests = (case("ArnLike", "aws:SourceArn", arn),)
    assert bool(run(trusted(("Service", "sns.amazonaws.com"), tests=tests), ["SKY-IAM-404"])) is not tied


def test_an_external_id_of_any_text_is_none():
    foreign = ("AWS", "arn:aws:iam::444455556666:root")
    assert run(trusted(foreign, tests=(case("StringLike", "sts:ExternalId", "?*"),)), ["SKY-IAM-401"])
    assert not run(trusted(foreign, tests=(case("StringLike", "sts:ExternalId", "u8d*"),)), ["SKY-IAM-401"])


@pytest.mark.parametrize(
    ("condition", "open_to_strangers"),
    [
        ("assertion.repository == 'acme/train'", False),
        ("assertion.repository_owner_id == '1' && assertion.ref == 'refs/heads/main'", False),
        ("attribute.repository in ['acme/train']", False),
        ("assertion.hd == 'acme.com'", False),
        ("assertion.repository == 'acme/train' || true", True),
        ("1 == 1", True),
        ("assertion.sub != ''", True),
        ("assertion.sub.startsWith('repo:')", True),
        ("assertion.ref == 'refs/heads/main'", True),
        ("assertion.event_name == 'push' && assertion.repository_owner != 'evil'", True),
    ],
)
def test_a_condition_has_to_keep_strangers_out(condition, open_to_strangers):
    provider = Provider(cloud=Cloud.GCP, origin="p", issuer="https://i", audiences=("a",), condition=condition)
    assert bool(run(Audited(providers=(provider,)), ["SKY-IAM-403"])) is open_to_strangers
