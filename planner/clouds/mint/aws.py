"""Leases on S3: `sts:AssumeRole` on the job's data role with a session policy that is the lease's scope, and session tags that say whose it is.

A session has what the role and this policy both allow, so neither a role too wide nor a policy too wide is enough to get out.  Decides the policy's words only; whose
bucket it must be is the role's own condition.
Role chaining ends at an hour and the broker is a role itself, so an hour is the most (STS, AssumeRole, 2026-11; more is a ValidationError).
boto3 is imported when a minter is made.  Never run against live AWS: against ministack, which enforces session policies.
"""

# pyright: basic

from __future__ import annotations

import json
import re
from datetime import UTC
from typing import Any, Final, TypeVar

from planner.clouds import errors_map
from planner.clouds.asked import of_aws
from planner.clouds.mint.port import Minted, Order, missing, too_wide
from planner.iam.aws import READ, WRITE, literal

T = TypeVar("T")

#: STS: inline session policies (2026-11)
MAX_POLICY: Final = 2048
LONGEST_SECONDS: Final = 3600
_ROLE: Final = re.compile(r"arn:(aws[a-z-]*):iam::([0-9]{12}):role/[\w+=,.@/-]{1,512}", re.ASCII)
_NOT_IN_A_NAME: Final = re.compile(r"[^\w+=,.@-]", re.ASCII)


class AwsMinter:
    """See the module.  `sts` is for tests; without one the broker's own credentials are used, in `region`."""

    def __init__(self, *, region: str = "us-east-1", sts: Any = None) -> None:
        self._sts = sts or _client(region)

    def mint(self, order: Order) -> Minted:
        """See `Minter`."""
        role = _ROLE.fullmatch(order.identity)
        if role is None:
            raise errors_map.unexpected("AWS", "AssumeRole", f"`{order.identity}` is no role's ARN")
        policy = json.dumps(session_policy(order, partition=role[1]), separators=(",", ":"))
        if len(policy) > MAX_POLICY:
            raise too_wide(f"the session policy for this prefix has {len(policy)} characters, AWS takes {MAX_POLICY}")
        answer = of_aws(
            "AssumeRole",
            lambda: self._sts.assume_role(
                RoleArn=order.identity,
                RoleSessionName=_NOT_IN_A_NAME.sub("-", order.name)[:64],
                DurationSeconds=min(order.lifetime_seconds, LONGEST_SECONDS),
                Policy=policy,
                Tags=[{"Key": key, "Value": value} for key, value in order.labels],
            ),
        )
        given = answer["Credentials"]
        return Minted(
            kind="aws",
            secret={
                "access_key_id": given["AccessKeyId"],
                "secret_access_key": given["SecretAccessKey"],
                "session_token": given["SessionToken"],
            },
            expires_at=given["Expiration"].astimezone(UTC),
        )


def session_policy(order: Order, *, partition: str = "aws") -> dict[str, Any]:
    """The scope as an IAM policy.  Characters that are patterns to IAM stand for themselves."""
    scope = order.scope
    bucket = f"arn:{partition}:s3:::{literal(scope.bucket)}"
    statements = [_allow(READ, [f"{bucket}/{literal(p)}*" for p in scope.reads], {})]
    if scope.writes:
        statements.append(_allow(WRITE, [f"{bucket}/{literal(p)}*" for p in scope.writes], {}))
    listed = {"StringLike": {"s3:prefix": [f"{literal(p)}*" for p in scope.reads]}} if all(scope.reads) else {}
    statements.append(_allow(("s3:ListBucket",), [bucket], listed))
    if order.kms_key:
        actions = ("kms:Decrypt", "kms:GenerateDataKey") if scope.writes else ("kms:Decrypt",)
        statements.append(_allow(actions, [order.kms_key], {"StringLike": {"kms:ViaService": "s3.*.amazonaws.com*"}}))
    return {"Version": "2012-10-17", "Statement": statements}


def _allow(actions: tuple[str, ...], resources: list[str], condition: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"Effect": "Allow", "Action": list(actions), "Resource": resources}
    return {**made, "Condition": condition} if condition else made


def _client(region: str) -> Any:
    try:
        import boto3  # noqa: PLC0415 - half a second, and optional
        from botocore.config import Config  # noqa: PLC0415
    except ImportError as error:
        raise missing("AWS", "boto3", "aws") from error
    config = Config(retries={"mode": "standard", "max_attempts": 3}, connect_timeout=5, read_timeout=10)
    return of_aws("the client", lambda: boto3.Session(region_name=region).client("sts", config=config))
