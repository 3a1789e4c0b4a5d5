"""The control identities of a project in an AWS account: neutral grants times operations, each within its guard, as managed policies.

Decides which actions reach which policy, how policies are cut to IAM's sizes, and what the two boundaries hold.  The orchestrator's boundary is its own
rights once more, with the passing of node roles: the deployer writes inline policies onto it, and nothing beyond that can come of them.  Nobody gets
iam:CreateServiceLinkedRole: the role for spot requests is made once, by an administrator.

Held against AWS's own reference and against evaluators; never run against a live account.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from planner.iam.aws import AZURE_AUDIENCE, literal
from planner.iam.control import NODE_SERVICE, control_grants
from planner.iam.foundation import aws_names
from planner.iam.foundation.aws_ground import Condition, Ground, Statement, merged, statement
from planner.iam.foundation.aws_guard import Guard
from planner.iam.foundation.aws_guards import GUARDS
from planner.iam.operations.aws import OPERATIONS
from planner.model.control import ControlScope
from planner.model.grants import CONTROL_IDENTITIES, Bound, Grant, Identity, Permission
from planner.model.stack import ControlIdentity, PolicyDocument

#: characters of a managed policy without white space, and how many a role takes by default (IAM quotas, 2026-11)
MAX_POLICY: Final = 6144
MAX_POLICIES: Final = 10
_REGION_KEY: Final = "aws:RequestedRegion"
_VERSION: Final = "2012-10-17"
_OBJECTS: Final = ("s3:AbortMultipartUpload", "s3:GetObject", "s3:ListMultipartUploadParts", "s3:PutObject")
#: the credentials are an instance profile's, got on a machine: no other request has the key, and every service may be asked for it (EC2 user guide, 2026-11)
_DELIVERED: Final[Condition] = {"Null": {"ec2:SourceInstanceARN": ["false"]}}


def names(scope: ControlScope) -> dict[Identity, str]:
    """Name of each identity's role."""
    return aws_names.names(scope)


def identities(scope: ControlScope) -> tuple[ControlIdentity, ...]:
    """The four, in order, each with its managed policies.  Who may become them is not said here.

    Raises ValueError where a scope is too wide for IAM's sizes.
    """
    called = aws_names.names(scope)
    return tuple(
        ControlIdentity(
            identity=identity,
            name=called[identity],
            policies=_cut(called[identity], statements(scope, identity)),
            boundary=aws_names.orchestrator_boundary_name(scope) if identity is Identity.ORCHESTRATOR else "",
        )
        for identity in CONTROL_IDENTITIES
    )


def boundaries(scope: ControlScope) -> tuple[PolicyDocument, ...]:
    """What a node's role, what the broker becomes, and the orchestrator can never do more than.  Raises ValueError where a scope is too wide."""
    return (
        _whole(aws_names.node_boundary_name(scope), list(_node_bounds(scope))),
        _whole(aws_names.orchestrator_boundary_name(scope), list(_orchestrator_bounds(scope))),
        _whole(aws_names.data_boundary_name(scope), list(_data_bounds(scope))),
    )


def statements(scope: ControlScope, identity: Identity, *, lean: bool = False) -> tuple[Statement, ...]:
    """All statements of an identity, allows first, each with a Sid of its own; `lean` for a boundary.

    Raises LookupError for an action that no guard takes.
    """
    grants = {grant.permission: grant for grant in control_grants(scope) if grant.identity is identity}
    needed = _needed(identity, grants)
    grounds = {right: Ground(scope=scope, grant=grant, lean=lean) for right, grant in grants.items()}
    made = [one for guard in GUARDS if guard.identity is identity for one in _made(guard, grounds, needed)]
    held = {action for one in made for action in one["Action"]}
    missing = {action for actions in needed.values() for action in actions} - held - _elsewhere(scope)
    if missing:
        raise LookupError(f"{identity.value}: no guard takes {', '.join(sorted(missing))}")
    return (*made, *(_never(scope) if identity is Identity.DEPLOYER else ()))


def _needed(identity: Identity, grants: dict[Permission, Grant]) -> dict[Permission, set[str]]:
    """By right, what the operations of this identity call."""
    out: dict[Permission, set[str]] = {}
    for operation in OPERATIONS:
        if operation.identity is identity and operation.permission in grants:
            out.setdefault(operation.permission, set()).update(operation.actions)
    return out


def _elsewhere(scope: ControlScope) -> set[str]:
    """What is granted by other hands, or not at all: passing a role by the job's own policy, a key only where there is one."""
    keys = {action for operation in OPERATIONS for action in operation.actions if action.startswith("kms:")}
    return {"iam:PassRole", *(() if scope.kms_key else keys)}


def _made(guard: Guard, grounds: dict[Permission, Ground], needed: dict[Permission, set[str]]) -> Iterator[Statement]:
    actions = {action for right in guard.permissions for action in needed.get(right, ())} & set(guard.actions)
    ground = next((grounds[right] for right in guard.permissions if right in grounds), None)
    if actions and ground is not None:
        resources, condition = guard.bounds(ground)
        if resources:
            yield statement(guard.sid, actions, resources, condition)


def _never(scope: ControlScope) -> tuple[Statement, ...]:
    """Guard rails of the deployer: they hold whatever else is attached to it later."""
    ground = Ground(scope=scope, grant=control_grants(scope)[0])
    beyond = statement("NeverTrustOutside", ("iam:UpdateAssumeRolePolicy",), (), {}, effect="Deny")
    del beyond["Resource"]
    return (
        statement(
            "NeverUnbind",
            ("iam:DeleteRolePermissionsBoundary",),
            (ground.iam("role", "/*"),),
            {},
            effect="Deny",
        ),
        statement(
            "NeverRewriteBoundaries",
            ("iam:CreatePolicyVersion", "iam:DeletePolicy", "iam:DeletePolicyVersion", "iam:SetDefaultPolicyVersion"),
            (ground.iam("policy", f"{aws_names.path(ground.project)}*"),),
            {},
            effect="Deny",
        ),
        {**beyond, "NotResource": [ground.iam("role", f"{ground.nodes}*")]},
        # it writes whom a data identity trusts, so that it could name itself
        statement(
            "NeverBecomeDataIdentity",
            ("sts:AssumeRole", "sts:TagSession"),
            (ground.iam("role", f"{ground.data}*"),),
            {},
            effect="Deny",
        ),
    )


def _orchestrator_bounds(scope: ControlScope) -> Iterator[Statement]:
    """The orchestrator's own rights and the passing of node roles.  The regions stand once, as a denial: the document is smaller."""
    yield from statements(scope, Identity.ORCHESTRATOR, lean=True)
    grants = {grant.permission: grant for grant in control_grants(scope) if grant.identity is Identity.ORCHESTRATOR}
    ground = Ground(scope=scope, grant=grants[Permission.PASS_IDENTITY])
    yield statement(
        "PassNodeRoles",
        ("iam:PassRole",),
        (ground.iam("role", f"{ground.nodes}*"),),
        {"StringEquals": {"iam:PassedToService": ground.bound(Bound.SERVICE)}},
    )
    elsewhere = {"StringNotEquals": {_REGION_KEY: sorted(scope.regions)}}
    yield statement("NeverElsewhere", ("ec2:*",), ("*",), elsewhere, effect="Deny")


def _node_bounds(scope: ControlScope) -> Iterator[Statement]:
    """The most that any job's nodes could be granted: objects of this account, secrets, keys for both, a session's channel, a token for Azure.

    Only on a machine: the deployer writes a node role's trust and policies, and would otherwise read data by becoming one.
    """
    arn = f"arn:{scope.partition}"
    here = merged(_DELIVERED, {"StringEquals": {"aws:ResourceAccount": [scope.account]}})
    yield statement("Objects", (*_OBJECTS, "s3:ListBucket"), (f"{arn}:s3:::*",), here)
    # it is S3 that asks for the key, and whether it passes the machine on is not documented; S3 itself has asked for the machine
    yield _object_keys(scope)
    yield statement(
        "Secrets",
        ("secretsmanager:GetSecretValue",),
        (f"{arn}:secretsmanager:*:{scope.account}:secret:*",),
        _DELIVERED,
    )
    channel = ("CreateControlChannel", "CreateDataChannel", "OpenControlChannel", "OpenDataChannel")
    regions = merged(_DELIVERED, {"StringEquals": {_REGION_KEY: sorted(scope.regions)}})
    yield statement(
        "Session",
        ("ssm:UpdateInstanceInformation", *(f"ssmmessages:{name}" for name in channel)),
        ("*",),
        regions,
    )
    yield statement(
        "TokenForAzure",
        ("sts:GetWebIdentityToken",),
        ("*",),
        merged(
            _DELIVERED,
            {
                "ForAllValues:StringEquals": {"sts:IdentityTokenAudience": [AZURE_AUDIENCE]},
                "Null": {"sts:IdentityTokenAudience": ["false"]},
            },
        ),
    )
    yield from _never_state(scope)


def _data_bounds(scope: ControlScope) -> Iterator[Statement]:
    """The most that the broker could become: objects of this account, under the prefixes that the project allows, and their keys; no machine, no secret.

    Whom such an identity trusts is the deployer's to write and no condition's to ask, so where the project names no prefixes, whoever holds the deployer
    can let somebody in to every object of the account.
    """
    arn = f"arn:{scope.partition}:s3:::"
    here: Condition = {"StringEquals": {"aws:ResourceAccount": [scope.account]}}
    places = [uri.removeprefix("s3://").partition("/") for uri in scope.data_prefixes if uri.startswith("s3://")]
    under = sorted({f"{arn}{literal(bucket)}/{_under(prefix)}" for bucket, _, prefix in places})
    yield statement("Objects", _OBJECTS, under or (f"{arn}*",), here)
    yield statement(
        "Lists", ("s3:ListBucket",), sorted({f"{arn}{literal(b)}" for b, _, _ in places}) or (f"{arn}*",), here
    )
    yield _object_keys(scope)
    yield from _never_state(scope)


def _under(prefix: str) -> str:
    return f"{literal(prefix.rstrip('/'))}/*" if prefix.rstrip("/") else "*"


def _object_keys(scope: ControlScope) -> Statement:
    via_store: Condition = {"StringLike": {"kms:ViaService": ["s3.*.amazonaws.com"]}}
    keys = (f"arn:{scope.partition}:kms:*:{scope.account}:key/*",)
    return statement("ObjectKeys", ("kms:Decrypt", "kms:GenerateDataKey"), keys, via_store)


def _never_state(scope: ControlScope) -> Iterator[Statement]:
    """Who makes these roles says who may become them: their objects must not be a way to write the state of others."""
    if scope.state:
        stacks = f"arn:{scope.partition}:s3:::{scope.state}/skyplan/*"
        yield statement("NeverState", _OBJECTS, (stacks,), {}, effect="Deny")


def pass_policy(role_arn: str) -> PolicyDocument:
    """What a job's access stack adds to the orchestrator: the right to hand exactly that role to machines."""
    condition = {"StringEquals": {"iam:PassedToService": [NODE_SERVICE]}}
    made = statement("PassJobRole", ("iam:PassRole",), (role_arn,), condition)
    return PolicyDocument(name="pass", document={"Version": _VERSION, "Statement": [made]})


def size(document: dict[str, Any]) -> int:
    """Characters as IAM counts them: white space is free, and Terraform writes a list of one as its one."""
    return len(json.dumps(_bare(document), separators=(",", ":"), ensure_ascii=False))


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _bare(inner) for key, inner in value.items()}  # pyright: ignore[reportUnknownVariableType] -- JSON
    if isinstance(value, list):
        return value[0] if len(value) == 1 and isinstance(value[0], str) else [_bare(inner) for inner in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] -- JSON
    return value


def _cut(name: str, found: Iterable[Statement]) -> tuple[PolicyDocument, ...]:
    """As few policies as hold the statements in their order: `NAME`, `NAME-2` and so on."""
    parts: list[list[Statement]] = [[]]
    for one in found:
        if parts[-1] and size(_document([*parts[-1], one])) > MAX_POLICY:
            parts.append([])
        parts[-1].append(one)
    if len(parts) > MAX_POLICIES:
        raise ValueError(f"{name} needs {len(parts)} policies, a role takes {MAX_POLICIES}")
    return tuple(
        _whole(name if number == 1 else f"{name}-{number}", part) for number, part in enumerate(parts, start=1)
    )


def _whole(name: str, found: list[Statement]) -> PolicyDocument:
    document = _document(found)
    if size(document) > MAX_POLICY:
        raise ValueError(f"{name} is {size(document)} characters, IAM takes {MAX_POLICY}")
    return PolicyDocument(name=name, document=document)


def _document(found: list[Statement]) -> dict[str, Any]:
    return {"Version": _VERSION, "Statement": found}
