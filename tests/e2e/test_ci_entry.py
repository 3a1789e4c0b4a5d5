"""How CI's protected branch comes in, against an emulator that judges identity policies and trust: one session becomes deployer and orchestrator.

The emulator does not look into the token: who may become the entry by which token is the local evaluator's matter (`tests/stacks/test_foundation_aws.py`).
Never asked of a live account.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from planner.app.foundation import foundation_input
from planner.iam.foundation import aws_names
from planner.iam.read.inputs import document_of
from planner.model.offer import Cloud
from planner.model.words import words_of
from planner.spec.project import parse_project
from tests.e2e.identities import TARGET, market
from tests.emulators.aws import ACCOUNT, Aws

ARN = f"arn:aws:iam::{ACCOUNT}"
PATH = aws_names.path("acme")
ROLE = f"{ARN}:role{PATH}skyplan-acme"
HOST = f"{ARN}:role/host"
CI = "foundation: {ci: {provider: github, repository: acme/infra, branch: main}}\n"


def _blocks() -> dict[str, dict[str, Any]]:
    """The foundation with CI and nobody else but the broker's host, as its stack holds it."""
    text = TARGET.partition("    foundation:")[0] + f'    foundation: {{trusted: {{broker: ["{HOST}"]}}}}\n{CI}'
    project, problems = parse_project(text, "skyplan.yaml", words_of(market()))
    assert not problems
    blocks: dict[str, dict[str, Any]] = document_of(foundation_input(project, market(), Cloud.AWS, None))["resource"]
    return blocks


def _apply(iam: Any) -> None:
    """As an administrator applies it."""
    blocks = _blocks()
    (issuer,) = blocks["aws_iam_openid_connect_provider"].values()
    provider = iam.create_open_id_connect_provider(
        Url=issuer["url"], ClientIDList=issuer["client_id_list"], ThumbprintList=["0" * 40]
    )["OpenIDConnectProviderArn"]
    known = {
        "${aws_iam_openid_connect_provider.ci.arn}": provider,
        **{f"${{aws_iam_role.{word}.arn}}": f"{ARN}:role{PATH}{one['name']}" for word, one in _roles(blocks)},
    }
    iam.create_role(RoleName="host", AssumeRolePolicyDocument=_trusting(f"{ARN}:user/nobody"))
    for word, one in _roles(blocks):
        trust = one["assume_role_policy"]
        for reference, arn in known.items():
            trust = trust.replace(reference, arn)
        iam.create_role(RoleName=one["name"], Path=PATH, AssumeRolePolicyDocument=trust)
        for number, held in enumerate(blocks["aws_iam_role_policy_attachment"].values()):
            if held["role"] == f"${{aws_iam_role.{word}.name}}":
                policy = blocks["aws_iam_policy"][held["policy_arn"].split(".")[1]]["policy"]
                made = iam.create_policy(PolicyName=f"{word}-{number}", PolicyDocument=policy)["Policy"]["Arn"]
                iam.attach_role_policy(RoleName=one["name"], PolicyArn=made)


def _roles(blocks: dict[str, dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    return sorted(blocks["aws_iam_role"].items(), key=lambda item: item[0] != "ci")


def _trusting(who: str) -> str:
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": who}}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _session(answer: dict[str, Any]) -> dict[str, Any]:
    given = answer["Credentials"]
    return {
        "aws_access_key_id": given["AccessKeyId"],
        "aws_secret_access_key": given["SecretAccessKey"],
        "aws_session_token": given["SessionToken"],
    }


@pytest.fixture
def entered(aws: Aws) -> dict[str, Any]:
    """The session that a job of the protected branch begins with."""
    _apply(aws.client("iam"))
    answer = aws.client("sts").assume_role_with_web_identity(
        RoleArn=f"{ROLE}-ci", RoleSessionName="ci", WebIdentityToken="token-of-main"
    )
    aws.enforce_access()
    return _session(answer)


def _become(aws: Aws, session: dict[str, Any], word: str) -> dict[str, Any]:
    role = {"RoleArn": f"{ROLE}-{word}", "RoleSessionName": "skyplan"}
    return _session(aws.client("sts", **session).assume_role(**role))


def test_one_session_becomes_deployer_and_orchestrator_and_each_is_itself(aws: Aws, entered: dict[str, Any]) -> None:
    calls = {word: aws.client("ec2", **_become(aws, entered, word)) for word in ("planner", "deployer", "orchestrator")}
    assert "Vpcs" in calls["deployer"].describe_vpcs()
    for word in ("planner", "orchestrator"):
        assert "Reservations" in calls[word].describe_instances()
    for word in ("planner", "deployer"):
        with pytest.raises(ClientError, match="UnauthorizedOperation"):
            calls[word].terminate_instances(InstanceIds=["i-0123456789abcdef0"])


def test_the_session_itself_may_do_nothing_else(aws: Aws, entered: dict[str, Any]) -> None:
    with pytest.raises(ClientError, match=r"UnauthorizedOperation|AccessDenied"):
        aws.client("ec2", **entered).describe_vpcs()
    with pytest.raises(ClientError, match="AccessDenied"):
        aws.client("iam", **entered).list_roles()


@pytest.mark.parametrize("word", ["broker", "ci"])
def test_neither_the_broker_nor_itself_is_behind_it(aws: Aws, entered: dict[str, Any], word: str) -> None:
    with pytest.raises(ClientError, match="AccessDenied"):
        _become(aws, entered, word)


@pytest.mark.parametrize("first", ["planner", "deployer", "orchestrator"])
@pytest.mark.parametrize("then", ["planner", "deployer", "orchestrator", "ci"])
def test_who_became_one_becomes_no_other(aws: Aws, entered: dict[str, Any], first: str, then: str) -> None:
    session = _become(aws, entered, first)
    with pytest.raises(ClientError, match="AccessDenied"):
        _become(aws, session, then)
