"""What AWS blocks of a Terraform document say of stores, machines and federation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from planner.iam.read.aws_made import partition
from planner.iam.read.aws_policies import policy_at
from planner.iam.read.packed import runs_containers
from planner.iam.read.references import Block, Document, objects
from planner.iam.read.whose import job_of, tags_of
from planner.model.offer import Cloud
from planner.model.policy import AwsPolicy, Machine, PolicyKind, Provider

_SPOT = "aws_spot_instance_request"
#: store -> (argument that names it, argument of its policy)
_STORES = {
    "aws_s3_bucket_policy": ("bucket", "policy"),
    "aws_s3_bucket": ("bucket", "policy"),
    "aws_kms_key": ("arn", "policy"),
    "aws_kms_key_policy": ("key_id", "policy"),
    "aws_secretsmanager_secret_policy": ("secret_arn", "policy"),
    "aws_secretsmanager_secret": ("arn", "policy"),
}


def stores(document: Document) -> Iterator[tuple[str, AwsPolicy]]:
    """Policies of stores and keys themselves."""
    for block in document.of(*_STORES):
        named, argument = _STORES[block.type]
        if not block.values.get(argument):
            continue
        name = _store_name(document, block, named)
        policy = policy_at(document, block, argument, kind=PolicyKind.RESOURCE, name=name)
        if policy:
            yield name, policy


def _store_name(document: Document, block: Block, named: str) -> str:
    if named == "bucket":
        bucket = document.text(block, named)
        made = document.target(block, named, "aws_s3_bucket")
        if made is not None and made is not block:
            bucket = document.text(made, "bucket") or bucket
        bucket = bucket or f"${{{block.address}.id}}"
        return bucket if bucket.startswith("arn:") else f"arn:{partition(document)}:s3:::{bucket}"
    return document.text(block, named) or f"${{{block.address}.{named}}}"


def machines(document: Document) -> Iterator[Machine]:
    """Machines and templates of machines."""
    for block in document.of("aws_launch_template"):
        yield _machine(document, block)
    for block in document.of("aws_instance", _SPOT):
        found = _machine(document, block)
        template = _template(document, block)
        base = _machine(document, template) if template else None
        spot = block.type == _SPOT or _is_spot(document, block) or bool(base and base.spot)
        if base is not None:
            found = replace(
                found,
                hop_limit=base.hop_limit if found.hop_limit is None else found.hop_limit,
                tokens_required=base.tokens_required if found.tokens_required is None else found.tokens_required,
                containers=found.containers or base.containers,
                has_identity=found.has_identity or base.has_identity,
            )
        yield replace(found, spot=spot)


def _template(document: Document, block: Block) -> Block | None:
    for item in objects(block.values.get("launch_template")):
        for argument in ("id", "name"):
            if found := document.aimed(item.get(argument), block, "aws_launch_template"):
                return found
    return None


def _machine(document: Document, block: Block) -> Machine:
    options = next(iter(document.items(block, "metadata_options")), dict[str, Any]())
    tokens, hops = options.get("http_tokens"), options.get("http_put_response_hop_limit")
    data = document.text(block, "user_data") or document.text(block, "user_data_base64")
    has_template = block.type != "aws_launch_template" and bool(block.values.get("launch_template"))
    identity = bool(block.values.get("iam_instance_profile"))
    return Machine(
        cloud=Cloud.AWS,
        origin=document.origin(block),
        job=job_of(tags=tags_of(document, block), stack=document.stack),
        hop_limit=int(hops) if isinstance(hops, int | float) else None,
        tokens_required=tokens == "required" if tokens else None,
        containers=runs_containers(data),
        # what a template that is not here gives is not known
        has_identity=None if has_template and not identity else identity,
        spot=True if _is_spot(document, block) else None,
        location=document.location(block),
    )


def _is_spot(document: Document, block: Block) -> bool:
    return any(item.get("market_type") == "spot" for item in document.items(block, "instance_market_options"))


def providers(document: Document) -> Iterator[Provider]:
    """Whose tokens the account believes."""
    for block in document.of("aws_iam_openid_connect_provider"):
        yield Provider(
            cloud=Cloud.AWS,
            origin=document.origin(block),
            issuer=document.text(block, "url"),
            audiences=document.words(block, "client_id_list"),
            condition="",
            location=document.location(block),
        )
