"""An account as a platform team hands it over: the foundation's identities stand, and the user who runs skyplan may only become them.

The policies are those that the foundation stack writes, put there by IAM's own calls, which takes a second; that Terraform puts the same there is shown
once (`test_enforcement`).  From then on the emulator judges every call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from planner.iam.foundation import aws as foundation
from planner.iam.foundation import aws_names
from planner.model.control import ControlScope
from planner.model.grants import Identity
from planner.model.offer import Cloud
from planner.model.stack import PolicyDocument
from tests.emulators.aws import ACCOUNT, REGION, Aws, Judged

USER = "ci"
PROJECT = "acme"
USER_ARN = f"arn:aws:iam::{ACCOUNT}:user/{USER}"


def scope_of(state: str = "") -> ControlScope:
    """What the jobs of these tests act in."""
    return ControlScope(
        cloud=Cloud.AWS, project=PROJECT, target="prod", account=ACCOUNT, regions=(REGION,), state=state
    )


def document(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


class Identities:
    """The foundation in `aws`, and access enforced.  `environment`: the user's credentials; `target`: lines for skyplan.yaml."""

    def __init__(self, aws: Aws, *, state: str = "", install: bool = True) -> None:
        self.scope = scope_of(state)
        self._aws = aws
        self._path = aws_names.path(PROJECT)
        iam = aws.client("iam")
        iam.create_user(UserName=USER)
        if install:
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
        return f"arn:aws:iam::{ACCOUNT}:role{self._path}{aws_names.names(self.scope)[identity]}"

    @property
    def target(self) -> str:
        """The target of skyplan.yaml."""
        lines = {
            "name": "prod",
            "cloud": "aws",
            "account": f'"{ACCOUNT}"',
            "regions": f"[{REGION}]",
            "deployer_role": self.role(Identity.DEPLOYER),
            "orchestrator_role": self.role(Identity.ORCHESTRATOR),
            "permissions_boundary": aws_names.node_boundary(self.scope),
        }
        return "{" + ", ".join(f"{key}: {value}" for key, value in lines.items()) + "}"

    def _install(self, iam: Any) -> None:
        arns = {bound.name: self._policy(iam, bound) for bound in foundation.boundaries(self.scope)}
        trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": USER_ARN}}
        for one in foundation.identities(self.scope):
            bound = {"PermissionsBoundary": arns[one.boundary]} if one.boundary else {}
            iam.create_role(RoleName=one.name, Path=self._path, AssumeRolePolicyDocument=document(trust), **bound)
            for policy in one.policies:
                iam.attach_role_policy(RoleName=one.name, PolicyArn=self._policy(iam, policy))

    def _policy(self, iam: Any, policy: PolicyDocument) -> str:
        made = iam.create_policy(PolicyName=policy.name, Path=self._path, PolicyDocument=json.dumps(policy.document))
        return str(made["Policy"]["Arn"])

    def session(self, identity: Identity) -> Mapping[str, str]:
        """Credentials of the identity, by way of the user."""
        sts = self._aws.client(
            "sts",
            aws_access_key_id=self.environment["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self.environment["AWS_SECRET_ACCESS_KEY"],
        )
        given = sts.assume_role(RoleArn=self.role(identity), RoleSessionName="test")["Credentials"]
        return {
            "aws_access_key_id": given["AccessKeyId"],
            "aws_secret_access_key": given["SecretAccessKey"],
            "aws_session_token": given["SessionToken"],
        }

    def judged(self) -> Judged:
        return self._aws.judged()
