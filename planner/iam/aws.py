"""Grants as AWS policy documents: exactly the prefixes, no wildcard action, no delete.  Pure.

One document per identity, so that a reviewer sees the data right and the checkpoint right apart.  The right to list sits on the bucket, with the
prefix as condition; a multipart upload needs Abort and ListParts, and with a KMS key Decrypt too.  Objects cannot be deleted: retention is a
lifecycle rule of the bucket's owner.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from planner.model.grants import Grant, Identity, Permission
from planner.model.reach import DataPath, Reach
from planner.model.stack import PolicyDocument

READ = ("s3:GetObject",)
WRITE = ("s3:AbortMultipartUpload", "s3:GetObject", "s3:ListMultipartUploadParts", "s3:PutObject")
_ACTIONS = {Permission.READ_OBJECTS: READ, Permission.WRITE_CHECKPOINTS: WRITE}
#: audience of the one token that nodes on AWS ask for (Microsoft: workload identity federation, 2026-09)
AZURE_AUDIENCE = "api://AzureADTokenExchange"
_S3 = "s3://"
_SECRET = "aws-secretsmanager://"  # noqa: S105 -- a scheme

Statement = dict[str, Any]


def policies(
    grants: Sequence[Grant], *, account: str | None, region: str, kms_key_arn: str | None, partition: str = "aws"
) -> tuple[PolicyDocument, ...]:
    """One document per node identity that has a grant in AWS's own stores; grants in other clouds' stores render to nothing.

    `account` (of the target), where known, keeps buckets to that account, against names taken over by others; `kms_key_arn` adds the rights on
    that key, for those objects only.  The order of the grants changes nothing.
    """
    out: list[PolicyDocument] = []
    for identity in (Identity.NODE_DATA, Identity.NODE_CHECKPOINT):
        mine = sorted(grant for grant in set(grants) if grant.identity is identity)
        objects = sorted({grant.resource for grant in mine if grant.resource.startswith(_S3)})
        statements = [made for grant in mine for made in _statements(grant, account, region, partition)]
        if kms_key_arn and objects:
            write = any(grant.permission is Permission.WRITE_CHECKPOINTS for grant in mine)
            statements.append(_key(kms_key_arn, region, partition, objects, write=write))
        if statements:
            numbered = [
                {**made, "Sid": f"{made['Sid']}{number}"} for number, made in enumerate(_distinct(statements), start=1)
            ]
            document = {"Version": "2012-10-17", "Statement": numbered}
            out.append(PolicyDocument(name=identity.value, document=document))
    return tuple(out)


def token_policy(paths: Sequence[DataPath]) -> tuple[PolicyDocument, ...]:
    """The right to an identity token for Azure, where a node's stores there are federated; no other cloud takes such a token from AWS here.

    It names no resource because the action has none; the audience bounds what the token is good for (STS: outbound identity federation, 2025-11).
    Google reads the role's signature instead, which needs no right.
    """
    if not any(path.reach is Reach.FEDERATION and path.uri.startswith("az://") for path in paths):
        return ()
    audience = {"ForAllValues:StringEquals": {"sts:IdentityTokenAudience": [AZURE_AUDIENCE]}}
    present = {"Null": {"sts:IdentityTokenAudience": ["false"]}}
    statement = _allow("Token1", ("sts:GetWebIdentityToken",), "*", {**audience, **present})
    return (PolicyDocument(name="federation", document={"Version": "2012-10-17", "Statement": [statement]}),)


def _statements(grant: Grant, account: str | None, region: str, partition: str) -> list[Statement]:
    match grant.permission:
        case Permission.READ_SECRET if grant.resource.startswith(_SECRET):
            return [_secret(grant.resource.removeprefix(_SECRET), account, region, partition)]
        case Permission.READ_OBJECTS | Permission.WRITE_CHECKPOINTS if grant.resource.startswith(_S3):
            return _objects(grant, account, partition)
        case _:
            return []


def _objects(grant: Grant, account: str | None, partition: str) -> list[Statement]:
    """The right on the objects under a prefix, and the right to list that prefix."""
    bucket, prefix = _place(grant.resource)
    owner: dict[str, Any] = {"StringEquals": {"aws:ResourceAccount": [account]}} if account else {}
    only = {"StringLike": {"s3:prefix": [f"{prefix}/", f"{prefix}/*"]}} if prefix else {}
    reads = grant.permission is Permission.READ_OBJECTS
    return [
        _allow("Read" if reads else "Write", _ACTIONS[grant.permission], _object_arn(grant.resource, partition), owner),
        _allow("List", ("s3:ListBucket",), f"arn:{partition}:s3:::{bucket}", {**owner, **only}),
    ]


def _secret(path: str, account: str | None, region: str, partition: str) -> Statement:
    """The right to read one secret, named or by its ARN.  Secrets Manager ends a name in the ARN with six characters of its own."""
    if path.startswith("arn:"):
        return _allow("Secret", ("secretsmanager:GetSecretValue",), literal(path), {})
    arn = f"arn:{partition}:secretsmanager:{region}:{account or '*'}:secret:{literal(path)}-??????"
    # where the account is not known, the policy itself says "the one this role is in"
    here = {} if account else {"StringEquals": {"aws:ResourceAccount": ["${aws:PrincipalAccount}"]}}
    return _allow("Secret", ("secretsmanager:GetSecretValue",), arn, here)


def _key(key_arn: str, region: str, partition: str, objects: list[str], *, write: bool) -> Statement:
    """The right to use the key through S3 for these objects.  With a bucket key the encryption context is the bucket's ARN."""
    buckets = {f"arn:{partition}:s3:::{_place(uri)[0]}" for uri in objects}
    contexts = sorted(buckets | {_object_arn(uri, partition) for uri in objects})
    condition = {
        "StringEquals": {"kms:ViaService": [f"s3.{region}.amazonaws.com"]},
        "StringLike": {"kms:EncryptionContext:aws:s3:arn": contexts},
    }
    return _allow("Key", ("kms:Decrypt", "kms:GenerateDataKey") if write else ("kms:Decrypt",), key_arn, condition)


def _allow(sid: str, actions: Sequence[str], resource: str, condition: dict[str, Any]) -> Statement:
    made: Statement = {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": [resource]}
    return {**made, "Condition": condition} if condition else made


def _distinct(statements: list[Statement]) -> list[Statement]:
    """Each statement once, in order."""
    out: list[Statement] = []
    for made in statements:
        if made not in out:
            out.append(made)
    return out


def _place(uri: str) -> tuple[str, str]:
    """Bucket, and prefix without its last slash, both as IAM patterns that match only themselves."""
    bucket, _, prefix = uri.removeprefix(_S3).partition("/")
    return literal(bucket), literal(prefix.rstrip("/"))


def _object_arn(uri: str, partition: str) -> str:
    bucket, prefix = _place(uri)
    return f"arn:{partition}:s3:::{bucket}/{prefix}/*" if prefix else f"arn:{partition}:s3:::{bucket}/*"


def literal(text: str) -> str:
    """The text as an IAM pattern that matches nothing else: `*`, `?` and `$` are special there."""
    return re.sub(r"[*?$]", lambda found: "${" + found[0] + "}", text)
