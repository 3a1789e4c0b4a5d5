"""What Nebius blocks of a Terraform document say of rights: service accounts by their groups' permits, buckets' policies, keys, machines.

Rights go to groups there.  A service account has those of every group that it is in; a group without one here is a holder itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from planner.iam.read.packed import runs_containers
from planner.iam.read.references import Block, Computed, Document, objects, words
from planner.iam.read.whose import identity_of, is_node, job_of, stranger_identity, tags_of
from planner.model.grants import Identity
from planner.model.offer import Cloud
from planner.model.policy import Audited, Machine, Permit, Provider, Subject

ACCOUNT, GROUP = "nebius_iam_v1_service_account", "nebius_iam_v1_group"
BUCKET = "nebius_storage_v1_bucket"
COMPUTED: Mapping[str, Computed] = {}
_KEY = re.compile(r"nebius_iam_v\d+_(access_key|static_key|auth_public_key)")


def read(document: Document) -> Audited:
    """All that it says of Nebius."""
    held = _permits(document)
    subjects = [_subject(document, block, held) for block in document.of(ACCOUNT)]
    return Audited(
        subjects=(*subjects, *_groups(document, held), *_strangers(document), *_anonymous(document)),
        machines=tuple(_machines(document)),
        providers=tuple(_providers(document)),
    )


def _permits(document: Document) -> dict[str, list[Permit]]:
    """By the address of the group."""
    out: dict[str, list[Permit]] = {}
    for block in document.of("nebius_iam_v1_access_permit"):
        group = document.target(block, "parent_id", GROUP)
        if group is not None:
            out.setdefault(group.address, []).append(_permit(document, block))
    for block in document.of(BUCKET):
        for group, permit in _rules(document, block):
            if group is not None:
                out.setdefault(group.address, []).append(permit)
    return out


def _permit(document: Document, block: Block) -> Permit:
    return Permit(
        role=document.text(block, "role"),
        on=document.text(block, "resource_id"),
        location=document.location(block),
    )


def _rules(document: Document, block: Block) -> Iterator[tuple[Block | None, Permit]]:
    """Rules of a bucket's policy, each role by itself, with the group where it is made here."""
    for policy in objects(block.values.get("bucket_policy")):
        for rule in objects(policy.get("rules")):
            for role in words(document.resolved(rule.get("roles"), block)):
                permit = Permit(
                    role=role,
                    on=document.text(block, "name") or block.address,
                    paths=words(document.resolved(rule.get("paths"), block)),
                    anonymous=rule.get("anonymous") is not None and rule.get("anonymous") is not False,
                    location=document.location(block),
                )
                yield document.aimed(rule.get("group_id"), block, GROUP), permit


def _members(document: Document) -> Iterator[tuple[Block, Block]]:
    """(account, group) for what both are made here."""
    for block in document.of("nebius_iam_v1_group_membership"):
        group, account = document.target(block, "parent_id", GROUP), document.target(block, "member_id", ACCOUNT)
        if group is not None and account is not None:
            yield account, group


def _subject(document: Document, block: Block, held: Mapping[str, list[Permit]]) -> Subject:
    groups = [group.address for account, group in _members(document) if account.address == block.address]
    return _holder(
        document,
        block,
        permits=tuple(permit for group in groups for permit in held.get(group, [])),
        keys=tuple(_keys(document, block)),
    )


def _groups(document: Document, held: Mapping[str, list[Permit]]) -> Iterator[Subject]:
    taken = {group.address for _, group in _members(document)}
    for block in document.of(GROUP):
        if block.address not in taken:
            yield _holder(document, block, permits=tuple(held.get(block.address, [])))


def _holder(document: Document, block: Block, *, permits: tuple[Permit, ...], keys: tuple[str, ...] = ()) -> Subject:
    name, tags = document.text(block, "name") or block.address, tags_of(document, block)
    identity = identity_of(document, block, name)
    if identity is None and is_node(path="", tags=tags, stack=document.stack):
        identity = Identity.NODE_DATA
    node = identity is Identity.NODE_DATA
    return Subject(
        cloud=Cloud.NEBIUS,
        name=name,
        origin=document.origin(block),
        identity=identity,
        job=job_of(tags=tags, stack=document.stack) if node else "",
        permits=permits,
        keys=keys,
        location=document.location(block),
    )


def _strangers(document: Document) -> Iterator[Subject]:
    """Permits of groups, and keys of accounts, that are made elsewhere."""
    for block in document.of("nebius_iam_v1_access_permit"):
        if document.target(block, "parent_id", GROUP) is None:
            name = document.text(block, "parent_id") or block.address
            yield Subject(
                cloud=Cloud.NEBIUS,
                name=name,
                origin=document.origin(block),
                identity=stranger_identity(document, name),
                permits=(_permit(document, block),),
                location=document.location(block),
            )
    for block in document.blocks:
        if _KEY.fullmatch(block.type) and _owner(document, block) is None and (key := _lasting(document, block)):
            yield Subject(
                cloud=Cloud.NEBIUS,
                name=block.address,
                origin=document.origin(block),
                keys=(key,),
                location=document.location(block),
            )


def _anonymous(document: Document) -> Iterator[Subject]:
    """Buckets' rules for everybody, and for groups that are made elsewhere."""
    for block in document.of(BUCKET):
        permits = tuple(permit for group, permit in _rules(document, block) if group is None)
        if permits:
            yield Subject(
                cloud=Cloud.NEBIUS,
                name="anonymous" if any(permit.anonymous for permit in permits) else "groups made elsewhere",
                origin=document.origin(block),
                permits=permits,
                location=document.location(block),
            )


def _keys(document: Document, block: Block) -> Iterator[str]:
    for other in document.blocks:
        owner = _owner(document, other) if _KEY.fullmatch(other.type) else None
        if owner is not None and owner.address == block.address and (key := _lasting(document, other)):
            yield key


def _owner(document: Document, block: Block) -> Block | None:
    for item in objects(block.values.get("account")):
        for account in objects(item.get("service_account")):
            return document.aimed(account.get("id"), block, ACCOUNT)
    return document.target(block, "service_account_id", ACCOUNT)


def _lasting(document: Document, block: Block) -> str:
    """A key that does not expire; "" for one that does."""
    return "" if document.text(block, "expires_at") else f"key without expires_at {block.address}"


def _machines(document: Document) -> Iterator[Machine]:
    for block in document.of("nebius_compute_v1_instance"):
        yield Machine(
            cloud=Cloud.NEBIUS,
            origin=document.origin(block),
            job=job_of(tags=tags_of(document, block), stack=document.stack),
            containers=runs_containers(document.text(block, "cloud_init_user_data")),
            has_identity=bool(block.values.get("service_account_id")),
            spot=bool(block.values.get("preemptible")),
            location=document.location(block),
        )


def _providers(document: Document) -> Iterator[Provider]:
    for block in document.of("nebius_iam_v1_federated_credentials"):
        oidc = next(iter(document.items(block, "oidc_provider")), None)
        subject = document.text(block, "federated_subject_id")
        owner = document.target(block, "subject_id", ACCOUNT)
        yield Provider(
            cloud=Cloud.NEBIUS,
            origin=document.origin(block),
            issuer=str(oidc.get("issuer_url") or "") if oidc else "",
            audiences=(),
            condition=f"sub == '{subject}'" if subject else "",
            opens=document.origin(owner) if owner else "",
            location=document.location(block),
        )
