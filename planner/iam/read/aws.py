"""What AWS blocks of a Terraform document say of rights: roles, users and groups with their policies, stores, machines, federation, keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from planner.iam.read.aws_holdings import GROUP, ROLE, USER, Holdings, holdings
from planner.iam.read.aws_made import COMPUTED as COMPUTED  # noqa: PLC0414 - each reader has them
from planner.iam.read.aws_places import machines, providers, stores
from planner.iam.read.aws_policies import DOCUMENT, POLICY, managed, policy_at, policy_name, statements_of
from planner.iam.read.references import Block, Document, many, objects
from planner.iam.read.whose import FOUNDATION_PATH, identity_of, is_node, job_of, stranger_identity, tags_of
from planner.model.grants import Identity
from planner.model.offer import Cloud
from planner.model.policy import Audited, AwsPolicy, PolicyKind, Subject

#: what gives rights too, and is only told to be there
_NOT_READ = (
    *(f"aws_iam_{who}_polic{end}_exclusive" for who in ("role", "user", "group") for end in ("ies", "y_attachments")),
    "aws_ssoadmin_managed_policy_attachment",
    "aws_ssoadmin_customer_managed_policy_attachment",
    "aws_ssoadmin_permission_set_inline_policy",
    "aws_ssoadmin_account_assignment",
    "aws_eks_access_policy_association",
    "aws_lambda_permission",
    "aws_kms_grant",
    "aws_lakeformation_permissions",
    "aws_ram_principal_association",
    "aws_rolesanywhere_profile",
    "aws_rolesanywhere_trust_anchor",
    "aws_s3_access_point",
    "aws_s3control_access_point_policy",
    "aws_sns_topic_policy",
    "aws_sqs_queue_policy",
    "aws_ecr_repository_policy",
    "aws_glue_resource_policy",
)
#: canned rights on a bucket that are nobody else's business
_OWN_ACLS = frozenset({"", "private", "log-delivery-write", "bucket-owner-full-control", "bucket-owner-read"})


def read(document: Document) -> Audited:
    """All that it says of AWS."""
    document.unread.extend(
        f"{document.origin(block)}: {block.type} gives rights that are not read"
        for block in document.of(*_NOT_READ, "aws_s3_bucket_acl")
        if block.type != "aws_s3_bucket_acl" or document.text(block, "acl") not in _OWN_ACLS
    )
    held = holdings(document)
    subjects = [_subject(document, block, held) for block in document.of(ROLE, USER, GROUP)]
    subjects += _strangers(document, held)
    subjects += _loose(document, held)
    return Audited(
        subjects=tuple(subjects),
        machines=tuple(machines(document)),
        stores=tuple(stores(document)),
        providers=tuple(providers(document)),
    )


def _subject(document: Document, block: Block, held: Holdings) -> Subject:
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
        policies=tuple(_policies(document, block, held)),
        keys=tuple(f"access key {key.address}" for key in held.keys.get(block.address, [])),
        location=document.location(block),
    )


def _policies(document: Document, block: Block, held: Holdings) -> Iterator[AwsPolicy]:
    trust = policy_at(document, block, "assume_role_policy", kind=PolicyKind.TRUST, name="trust")
    if trust:
        yield trust
    for group in _groups(document, block) if block.type == USER else ():
        yield from (one for one in _policies(document, group, held) if one.kind is PolicyKind.IDENTITY)
    yield from _inline(document, block, held)
    for other, raw in held.managed.get(block.address, []):
        found = managed(document, other, "policy_arn", kind=PolicyKind.IDENTITY, raw=raw)
        if found:
            yield found
    bound = managed(document, block, "permissions_boundary", kind=PolicyKind.BOUNDARY)
    if bound:
        yield bound


def _inline(document: Document, block: Block, held: Holdings) -> Iterator[AwsPolicy]:
    for item in objects(block.values.get("inline_policy")):
        if item.get("policy"):
            name = str(document.resolved(item.get("name"), block) or "inline")
            found = policy_at(document, block, "inline_policy", kind=PolicyKind.IDENTITY, name=name, raw=item["policy"])
            if found:
                yield found
    for other in held.inline.get(block.address, []):
        found = policy_at(document, other, "policy", kind=PolicyKind.IDENTITY, name=_inline_name(document, other))
        if found:
            yield found


def _groups(document: Document, user: Block) -> Iterator[Block]:
    """Those that a user is put into here, each once: their rights are the user's."""
    found: dict[str, Block] = {}
    for block, argument in (
        *((one, "user") for one in document.of("aws_iam_user_group_membership")),
        *((one, "users") for one in document.of("aws_iam_group_membership")),
    ):
        members = [document.aimed(raw, block, USER) for raw in many(block.values.get(argument))]
        if any(one is not None and one.address == user.address for one in members):
            for raw in many(block.values.get("groups" if argument == "user" else "group")):
                group = document.aimed(raw, block, GROUP)
                if group is not None:
                    found[group.address] = group
    yield from found.values()


def _inline_name(document: Document, block: Block) -> str:
    return document.text(block, "name") or document.text(block, "name_prefix") or block.name


def _strangers(document: Document, held: Holdings) -> Iterator[Subject]:
    """Rights given here to whoever is made elsewhere: the orchestrator's right to pass a job's role."""
    for other, argument in held.strangers:
        if other.type == "aws_iam_access_key":
            yield _stranger(document, other, argument, keys=(f"access key {other.address}",))
            continue
        if other.type.endswith("_attachment"):
            policy = managed(document, other, "policy_arn", kind=PolicyKind.IDENTITY)
        else:
            policy = policy_at(document, other, "policy", kind=PolicyKind.IDENTITY, name=_inline_name(document, other))
        yield _stranger(document, other, argument, policies=(policy,) if policy else ())


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


def _loose(document: Document, held: Holdings) -> Iterator[Subject]:
    """Policies that nobody here holds: a boundary for others, or one that is attached elsewhere; and, as written, documents that nothing here uses."""
    for block in document.of(POLICY):
        if block.address in held.attached or block.address in held.bounds:
            continue
        name = document.text(block, "name") or document.text(block, "name_prefix") or block.address
        bounds = name.endswith("-boundary") and document.text(block, "path").startswith(FOUNDATION_PATH)
        kind = PolicyKind.BOUNDARY if bounds else PolicyKind.IDENTITY
        policy = policy_at(document, block, "policy", kind=kind, name=policy_name(document, block))
        if policy:
            yield _holder(document, block, name, policy)
    for block in document.of(DOCUMENT, data=True):
        if block.literal or block.key in held.mentioned:
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
