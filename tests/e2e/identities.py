"""An account as a platform team hands it over: the foundation's identities stand, and the user who runs skyplan may only become them.

The policies are those that the foundation stack writes, put there by IAM's own calls, which takes a second; that Terraform puts the same there is shown
once (`test_enforcement`).  From then on the emulator judges every call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from planner.app import inputs
from planner.app.foundation import foundation_input, scope_of
from planner.iam.documents import policy_from
from planner.iam.foundation import aws_names
from planner.model.control import ControlScope
from planner.model.grants import Identity
from planner.model.market import Market
from planner.model.offer import Cloud
from planner.model.policy import AwsPolicy, PolicyKind
from planner.model.project import Project
from planner.model.stack import FoundationInput, PolicyDocument
from planner.model.words import words_of
from planner.spec.project import parse_project
from tests.emulators.aws import ACCOUNT, REGION, Aws

USER = "ci"
PROJECT = "acme"
STATE = "acme-tfstate"
USER_ARN = f"arn:aws:iam::{ACCOUNT}:user/{USER}"
_PATH = aws_names.path(PROJECT)
_ROLE = f"arn:aws:iam::{ACCOUNT}:role{_PATH}skyplan-{PROJECT}"
BACKEND = f"backend: {{s3: {{bucket: {STATE}, region: {REGION}, use_lockfile: true, use_path_style: true}}}}\n"
TARGET = f"""\
project: {PROJECT}
targets:
  - name: prod
    cloud: aws
    account: "{ACCOUNT}"
    regions: [{REGION}]
    deployer_role: {_ROLE}-deployer
    orchestrator_role: {_ROLE}-orchestrator
    permissions_boundary: arn:aws:iam::{ACCOUNT}:policy{_PATH}skyplan-{PROJECT}-node-boundary
    foundation: {{trusted: {{planner: ["{USER_ARN}"], deployer: ["{USER_ARN}"], orchestrator: ["{USER_ARN}"]}}}}
"""


def document(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


@cache
def market() -> Market:
    return inputs.load_market()


@cache
def given(*, state: bool) -> tuple[ControlScope, FoundationInput]:
    """What `skyplan foundation` makes of the project file, with Terraform's state in S3 or not."""
    project: Project
    project, problems = parse_project(TARGET + (BACKEND if state else ""), "skyplan.yaml", words_of(market()))
    assert not problems
    return scope_of(project, project.targets[0], market()), foundation_input(project, market(), Cloud.AWS, None)


def _read(document: Any, kind: PolicyKind) -> AwsPolicy:
    """A policy with lists in order: Terraform's data source sorts them."""
    read = policy_from(document, kind=kind, name="")
    return replace(
        read,
        statements=tuple(
            replace(
                one,
                actions=tuple(sorted(one.actions)),
                resources=tuple(sorted(one.resources)),
                tests=tuple(sorted(replace(test, values=tuple(sorted(test.values))) for test in one.tests)),
            )
            for one in read.statements
        ),
    )


class Identities:
    """The foundation in `aws`.  `project`: skyplan.yaml; `environment`: the credentials of the user, who may only become its identities.

    `installed=False` leaves the roles to whoever applies the foundation stack.
    """

    def __init__(self, aws: Aws, *, state: bool = False, installed: bool = True) -> None:
        self._aws = aws
        self.scope, self._given = given(state=state)
        self.project = TARGET + (BACKEND if state else "")
        if state:
            aws.bucket(STATE)
        iam = aws.client("iam")
        iam.create_user(UserName=USER)
        if installed:
            self._install(iam)
        roles = [self.role(one) for one in (Identity.PLANNER, Identity.DEPLOYER, Identity.ORCHESTRATOR)]
        become = {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": roles}
        iam.put_user_policy(UserName=USER, PolicyName="become", PolicyDocument=document(become))
        key = iam.create_access_key(UserName=USER)["AccessKey"]
        self.environment: Mapping[str, str] = {
            "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
        }

    def role(self, identity: Identity) -> str:
        return f"arn:aws:iam::{ACCOUNT}:role{_PATH}{aws_names.names(self.scope)[identity]}"

    def _install(self, iam: Any) -> None:
        arns = {bound.name: self._policy(iam, bound) for bound in self._given.boundaries}
        for one in self._given.identities:
            if not one.trusted:
                continue
            trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": list(one.trusted)}}
            bound = {"PermissionsBoundary": arns[one.boundary]} if one.boundary else {}
            iam.create_role(
                RoleName=one.name,
                Path=_PATH,
                AssumeRolePolicyDocument=document(trust),
                Tags=[{"Key": key, "Value": value} for key, value in self._given.tags],
                **bound,
            )
            for policy in one.policies:
                iam.attach_role_policy(RoleName=one.name, PolicyArn=self._policy(iam, policy))

    def _policy(self, iam: Any, policy: PolicyDocument) -> str:
        made = iam.create_policy(PolicyName=policy.name, Path=_PATH, PolicyDocument=json.dumps(policy.document))
        return str(made["Policy"]["Arn"])

    def standing(self) -> dict[str, tuple[Any, ...]]:
        """What stands of the foundation, by role: path, boundary, trust and policies, as values that can be compared."""
        iam = self._aws.client("iam")
        return {one.name: _held(iam, one.name) for one in self._given.identities if one.trusted}

    def expected(self) -> dict[str, tuple[Any, ...]]:
        """What should stand, in the same form."""
        bounds = {one.name: repr(_read(one.document, PolicyKind.BOUNDARY)) for one in self._given.boundaries}
        return {
            one.name: (
                _PATH,
                bounds.get(one.boundary, ""),
                tuple(sorted(("AWS", who) for who in one.trusted)),
                tuple(sorted((p.name, repr(_read(p.document, PolicyKind.IDENTITY))) for p in one.policies)),
            )
            for one in self._given.identities
            if one.trusted
        }


def _held(iam: Any, role: str) -> tuple[Any, ...]:
    def version(arn: str, kind: PolicyKind) -> str:
        policy = iam.get_policy(PolicyArn=arn)["Policy"]
        made = iam.get_policy_version(PolicyArn=arn, VersionId=policy["DefaultVersionId"])
        return repr(_read(made["PolicyVersion"]["Document"], kind))

    found = iam.get_role(RoleName=role)["Role"]
    attached = iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]
    bound = found.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn", "")
    trust = _read(found["AssumeRolePolicyDocument"], PolicyKind.TRUST)
    return (
        found["Path"],
        version(bound, PolicyKind.BOUNDARY) if bound else "",
        tuple(sorted(who for statement in trust.statements for who in statement.principals)),
        tuple(sorted((one["PolicyName"], version(one["PolicyArn"], PolicyKind.IDENTITY)) for one in attached)),
    )
