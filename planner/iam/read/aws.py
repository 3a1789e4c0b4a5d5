"""What AWS blocks of a Terraform document say of rights: roles, users and groups with their policies, stores, machines, federation, keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from planner.iam.read.aws_made import COMPUTED as COMPUTED  # noqa: PLC0414 - each reader has them
from planner.iam.read.aws_places import machines, providers, stores
from planner.iam.read.aws_policies import DOCUMENT, POLICY, managed, policy_at, policy_name, statements_of
from planner.iam.read.references import Block, Document, many, objects
from planner.iam.read.whose import identity_of, is_node, job_of, stranger_identity, tags_of
from planner.model.grants import Identity
from planner.model.offer import Cloud
from planner.model.policy import Audited, AwsPolicy, PolicyKind, Subject

ROLE, USER, GROUP = "aws_iam_role", "aws_iam_user", "aws_iam_group"
#: type -> argument that names the owner
_HOLDERS = {ROLE: "role", USER: "user", GROUP: "group"}
_LISTS = {ROLE: "roles", USER: "users", GROUP: "groups"}


def read(document: Document) -> Audited:
    """All that it says of AWS."""
    subjects = [_subject(document, block) for block in document.of(ROLE, USER, GROUP)]
    subjects += _strangers(document)
    subjects += _loose(document)
    return Audited(
        subjects=tuple(subjects),
        machines=tuple(machines(document)),
        stores=tuple(stores(document)),
        providers=tuple(providers(document)),
    )


def _subject(document: Document, block: Block) -> Subject:
    name = document.text(block, "name") or document.text(block, "name_prefix") or block.address
    path = document.text(block, "path") or "/"
    tags = tags_of(document, block)
    identity = identity_of(document, block, name, path=path)
    if identity is None and block.type == ROLE and is_node(path=path, tags=tags, stack=document.stack):
        identity = Identity.NODE_DATA
    node = identity is Identity.NODE_DATA
    return Subject(
        cloud=Cloud.AWS,
        name=name,
        origin=document.origin(block),
        identity=identity,
        job=job_of(tags=tags, stack=document.stack) if node else "",
        policies=tuple(_policies(document, block)),
        keys=tuple(_keys(document, block)),
        location=document.location(block),
    )


def _policies(document: Document, block: Block) -> Iterator[AwsPolicy]:
    trust = policy_at(document, block, "assume_role_policy", kind=PolicyKind.TRUST, name="trust")
    if trust:
        yield trust
    yield from _inline(document, block)
    yield from _attached(document, block)
    bound = managed(document, block, "permissions_boundary", kind=PolicyKind.BOUNDARY)
    if bound:
        yield bound


def _inline(document: Document, block: Block) -> Iterator[AwsPolicy]:
    for item in objects(block.values.get("inline_policy")):
        if item.get("policy"):
            name = str(document.resolved(item.get("name"), block) or "inline")
            found = policy_at(document, block, "inline_policy", kind=PolicyKind.IDENTITY, name=name, raw=item["policy"])
            if found:
                yield found
    for other in document.of(f"{block.type}_policy"):
        if _same(document.target(other, _HOLDERS[block.type], block.type), block):
            found = policy_at(document, other, "policy", kind=PolicyKind.IDENTITY, name=_inline_name(document, other))
            if found:
                yield found


def _inline_name(document: Document, block: Block) -> str:
    return document.text(block, "name") or document.text(block, "name_prefix") or block.name


def _attached(document: Document, block: Block) -> Iterator[AwsPolicy]:
    raws: list[tuple[Block, Any]] = [(block, raw) for raw in many(block.values.get("managed_policy_arns"))]
    raws.extend(
        (other, other.values.get("policy_arn"))
        for other in document.of(f"{block.type}_policy_attachment")
        if _same(document.target(other, _HOLDERS[block.type], block.type), block)
    )
    for other in document.of("aws_iam_policy_attachment"):
        holders = many(other.values.get(_LISTS[block.type]))
        if any(_same(document.aimed(raw, other, block.type), block) for raw in holders):
            raws.append((other, other.values.get("policy_arn")))
    for other, raw in raws:
        found = managed(document, other, "policy_arn", kind=PolicyKind.IDENTITY, raw=raw)
        if found:
            yield found


def _same(one: Block | None, other: Block) -> bool:
    return one is not None and one.address == other.address


def _keys(document: Document, block: Block) -> Iterator[str]:
    if block.type == USER:
        for other in document.of("aws_iam_access_key"):
            if _same(document.target(other, "user", USER), block):
                yield f"access key {other.address}"


def _strangers(document: Document) -> Iterator[Subject]:
    """Rights given here to whoever is made elsewhere: the orchestrator's right to pass a job's role."""
    for kind, argument in _HOLDERS.items():
        for other in document.of(f"{kind}_policy", f"{kind}_policy_attachment"):
            if document.target(other, argument, kind) is not None:
                continue
            if other.type.endswith("_attachment"):
                policy = managed(document, other, "policy_arn", kind=PolicyKind.IDENTITY)
            else:
                policy = policy_at(
                    document, other, "policy", kind=PolicyKind.IDENTITY, name=_inline_name(document, other)
                )
            yield _stranger(document, other, argument, policies=(policy,) if policy else ())
    for other in document.of("aws_iam_access_key"):
        if document.target(other, "user", USER) is None:
            yield _stranger(document, other, "user", keys=(f"access key {other.address}",))


def _stranger(document: Document, block: Block, argument: str, **held: Any) -> Subject:
    name = document.text(block, argument) or block.address
    return Subject(
        cloud=Cloud.AWS,
        name=name,
        origin=document.origin(block),
        identity=stranger_identity(document, name),
        location=document.location(block),
        **held,
    )


def _loose(document: Document) -> Iterator[Subject]:
    """Policies that nobody here holds: a boundary for others, or one that is attached elsewhere; and, as written, documents that nothing here uses."""
    for block in document.of(POLICY):
        name = document.text(block, "name") or document.text(block, "name_prefix") or block.address
        path = document.text(block, "path")
        bounds = _used_as(document, block, "permissions_boundary") or (
            name.endswith("-boundary") and path.startswith("/skyplan-foundation/")
        )
        if not bounds and _is_attached(document, block):
            continue
        kind = PolicyKind.BOUNDARY if bounds else PolicyKind.IDENTITY
        policy = policy_at(document, block, "policy", kind=kind, name=policy_name(document, block))
        if policy and not (bounds and _used_as(document, block, "permissions_boundary")):
            yield _holder(document, block, name, policy)
    for block in document.of(DOCUMENT, data=True):
        if block.literal or _mentioned(document, block):
            continue
        statements = statements_of(document, block)
        if any(statement.principals or statement.not_principals for statement in statements):
            continue
        policy = AwsPolicy(kind=PolicyKind.IDENTITY, name=block.name, statements=statements)
        yield _holder(document, block, block.address, replace(policy, location=document.location(block)))


def _holder(document: Document, block: Block, name: str, policy: AwsPolicy) -> Subject:
    return Subject(
        cloud=Cloud.AWS,
        name=name,
        origin=document.origin(block),
        policies=(policy,),
        location=document.location(block),
    )


def _used_as(document: Document, block: Block, argument: str) -> bool:
    return any(_same(document.target(role, argument, POLICY), block) for role in document.of(ROLE, USER))


def _is_attached(document: Document, block: Block) -> bool:
    attachments = ("aws_iam_policy_attachment", *(f"{kind}_policy_attachment" for kind in _HOLDERS))
    if any(_same(document.target(other, "policy_arn", POLICY), block) for other in document.of(*attachments)):
        return True
    return any(
        _same(document.aimed(raw, role, POLICY), block)
        for role in document.of(ROLE)
        for raw in many(role.values.get("managed_policy_arns"))
    )


def _mentioned(document: Document, block: Block) -> bool:
    """Whether any block refers to it."""
    word = f"{block.key}."
    return any(word in json.dumps(dict(other.values), default=str) for other in document.blocks if other is not block)
