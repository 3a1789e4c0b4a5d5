"""Who holds what among the AWS blocks of a document: found once for all of them, so that a document of a thousand policies is read in one pass."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from planner.iam.read.aws_policies import DOCUMENT, POLICY
from planner.iam.read.references import Block, Document, many

ROLE, USER, GROUP = "aws_iam_role", "aws_iam_user", "aws_iam_group"
#: type -> argument that names the owner
HOLDERS = {ROLE: "role", USER: "user", GROUP: "group"}
_LISTS = {ROLE: "roles", USER: "users", GROUP: "groups"}
_MENTIONED = re.compile(rf"data\.{DOCUMENT}\.[\w-]+")


@dataclass(slots=True)
class Holdings:
    """By the owner's address.

    strangers   (block that gives, argument that names the owner) of owners made elsewhere
    bounds      addresses of policies that bound a role here; attached: of those that somebody here holds
    mentioned   data sources that something here refers to
    """

    inline: dict[str, list[Block]] = field(default_factory=dict[str, list[Block]])
    managed: dict[str, list[tuple[Block, Any]]] = field(default_factory=dict[str, list[tuple[Block, Any]]])
    keys: dict[str, list[Block]] = field(default_factory=dict[str, list[Block]])
    strangers: list[tuple[Block, str]] = field(default_factory=list[tuple[Block, str]])
    bounds: set[str] = field(default_factory=set[str])
    attached: set[str] = field(default_factory=set[str])
    mentioned: set[str] = field(default_factory=set[str])


def holdings(document: Document) -> Holdings:
    """Of all roles, users and groups."""
    out = Holdings()
    for kind, argument in HOLDERS.items():
        _of_kind(document, kind, argument, out)
    for block in document.of("aws_iam_policy_attachment"):
        for kind, argument in _LISTS.items():
            for raw in many(block.values.get(argument)):
                _attach(document, block, document.aimed(raw, block, kind), out)
    for block in document.of("aws_iam_access_key"):
        owner = document.target(block, "user", USER)
        if owner is None:
            out.strangers.append((block, "user"))
        else:
            out.keys.setdefault(owner.address, []).append(block)
    _mention(document, out)
    return out


def _of_kind(document: Document, kind: str, argument: str, out: Holdings) -> None:
    for block in document.of(kind):
        _of_holder(document, block, out)
    for block in document.of(f"{kind}_policy", f"{kind}_policy_attachment"):
        owner = document.target(block, argument, kind)
        if owner is None:
            out.strangers.append((block, argument))
        elif block.type.endswith("_policy"):
            out.inline.setdefault(owner.address, []).append(block)
        if block.type.endswith("_attachment"):
            _attach(document, block, owner, out)


def _of_holder(document: Document, block: Block, out: Holdings) -> None:
    bound = document.target(block, "permissions_boundary", POLICY)
    if bound is not None:
        out.bounds.add(bound.address)
    for raw in many(block.values.get("managed_policy_arns")):
        out.managed.setdefault(block.address, []).append((block, raw))
        if made := document.aimed(raw, block, POLICY):
            out.attached.add(made.address)


def _attach(document: Document, block: Block, owner: Block | None, out: Holdings) -> None:
    raw = block.values.get("policy_arn")
    if owner is not None:
        out.managed.setdefault(owner.address, []).append((block, raw))
    if made := document.aimed(raw, block, POLICY):
        out.attached.add(made.address)


def _mention(document: Document, out: Holdings) -> None:
    for block in document.blocks:
        if not block.literal:
            text = json.dumps(dict(block.values), default=str)
            out.mentioned.update(found for found in _MENTIONED.findall(text) if found != block.key)
