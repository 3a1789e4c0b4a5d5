"""The policies that AWS blocks of a Terraform document hold: by data source, by text, by reference.  What cannot be read is put down as unread."""

from __future__ import annotations

from typing import Any

from planner.iam.read import aws_documents
from planner.iam.read.expressions import unknown
from planner.iam.read.references import Block, Document, many
from planner.model.policy import AwsPolicy, PolicyKind, Statement

DOCUMENT = "aws_iam_policy_document"
POLICY = "aws_iam_policy"
_DEEPEST = 12


def policy_at(
    document: Document, block: Block, argument: str, *, kind: PolicyKind, name: str, raw: Any = None
) -> AwsPolicy | None:
    """The policy that an argument holds (`raw`: its value, where it is nested); None where it is not said, or not to be read."""
    raw = block.values.get(argument) if raw is None else raw
    if raw is None:
        return None
    location = document.location(block)
    source = document.aimed(raw, block, DOCUMENT)
    try:
        if source is not None and source.is_data:
            version, statements = _of_source(document, source)
        else:
            value = _known(document, block, raw)
            version, statements = aws_documents.from_json(value, kind=kind, name=name, location=location)
    except (ValueError, RecursionError) as error:
        document.unread.append(f"{document.origin(block)}: {argument} cannot be read: {error}")
        return None
    # `${…}` is no variable of IAM's there: which actions these are, an operator says
    open_ended = [a for one in statements for a in (*one.actions, *one.not_actions) if "${" in a]
    if open_ended:
        document.unread.append(f"{document.origin(block)}: which actions {', '.join(open_ended)} is, is not known")
    return AwsPolicy(kind=kind, name=name, statements=statements, version=version, location=location)


def statements_of(document: Document, source: Block, depth: int = 0) -> tuple[Statement, ...]:
    """The statements of a data source, with those of its sources and its overrides.  Raises ValueError."""
    if depth > _DEEPEST:
        raise ValueError(f"{source.address} holds itself")
    own = tuple(
        aws_documents.from_block(item, document.location(source, "statement", number))
        for number, item in enumerate(document.items(source, "statement"))
    )
    sources = [
        *many(source.values.get("source_json")),
        *many(source.values.get("source_policy_documents")),
    ]
    overrides = [
        *many(source.values.get("override_policy_documents")),
        *many(source.values.get("override_json")),
    ]
    return aws_documents.merged(
        [_part(document, source, raw, depth) for raw in sources],
        own,
        [_part(document, source, raw, depth) for raw in overrides],
    )


def _of_source(document: Document, source: Block) -> tuple[str, tuple[Statement, ...]]:
    return str(source.values.get("version") or aws_documents.VERSION), statements_of(document, source)


def _part(document: Document, source: Block, raw: Any, depth: int) -> tuple[Statement, ...]:
    other = document.aimed(raw, source, DOCUMENT)
    if other is not None:
        return statements_of(document, other, depth + 1)
    value = _known(document, source, raw)
    kind = _kind_of_text(str(value))
    return aws_documents.from_json(value, kind=kind, name=source.address, location=document.location(source))[1]


def _known(document: Document, block: Block, raw: Any) -> Any:
    value = document.resolved(raw, block)
    if unknown(value):
        where = "is known only after apply; audit the state then" if block.literal else "is not in this document"
        raise ValueError(f"{value} {where}")
    return value


def _kind_of_text(text: str) -> PolicyKind:
    """A document that another takes in says of itself what it is: only one that is not attached to somebody names a principal."""
    return PolicyKind.RESOURCE if '"Principal"' in text or '"NotPrincipal"' in text else PolicyKind.IDENTITY


def managed(document: Document, block: Block, argument: str, *, kind: PolicyKind, raw: Any = None) -> AwsPolicy | None:
    """The managed policy that an argument names: with its statements where this document makes it, by its ARN alone where it does not."""
    raw = block.values.get(argument) if raw is None else raw
    if raw is None:
        return None
    made = document.aimed(raw, block, POLICY)
    if made is not None:
        return policy_at(document, made, "policy", kind=kind, name=policy_name(document, made))
    value = document.resolved(raw, block)
    if not value:
        return None
    if unknown(value):
        document.unread.append(f"{document.origin(block)}: which policy {argument} names is not known: {value}")
    return AwsPolicy(kind=kind, name=str(value), statements=(), location=document.location(block))


def policy_name(document: Document, block: Block) -> str:
    """Its ARN where that is known, else its name."""
    try:
        return str(document.attribute(block, "arn"))
    except KeyError:
        return document.text(block, "name") or document.text(block, "name_prefix") or block.address
