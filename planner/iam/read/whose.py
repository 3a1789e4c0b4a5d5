"""Which of skyplan's identities a name belongs to, and whose nodes: by names, paths and tags that skyplan gives; anything else is a stranger's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from planner.iam.read.references import Block, Document
from planner.model.grants import CONTROL_IDENTITIES, Identity
from planner.model.labels import own_key

FOUNDATION_PATH = "/skyplan-foundation/"
NODE_PATH = "/skyplan/"
_CONTROL = re.compile(rf"skyplan-.+-({'|'.join(identity.value for identity in CONTROL_IDENTITIES)})")
_ACCESS_STACK = re.compile(r"acc-(.+?)--(?:aws|gcp|azure|nebius)-.*")
_COMPUTE_STACK = re.compile(r"cmp-(.+)-g\d+")
#: words of a GCP service account's description, which stand for the labels that it cannot have
_DESCRIBED = re.compile(r"skyplan-managed; project ([^;]+); job ([^;]+);")


def control_identity(name: str, *, path: str | None = None) -> Identity | None:
    """Of `skyplan-PROJECT-orchestrator`.  `path` is where it stands on AWS: a node's role may have such a name, but never there."""
    if path is not None and not path.startswith(FOUNDATION_PATH):
        return None
    found = _CONTROL.fullmatch(name)
    return Identity(found[1]) if found else None


def identity_of(document: Document, block: Block, name: str, *, path: str | None = None) -> Identity | None:
    """By its name; in a foundation stack by its word, since a name may have been cut."""
    if document.stack.startswith("fnd-") and block.name in {identity.value for identity in CONTROL_IDENTITIES}:
        return Identity(block.name)
    return control_identity(name, path=path)


def stranger_identity(document: Document, name: str) -> Identity | None:
    """Of one who is given rights here and made elsewhere: by an access stack of ours, that is only ever the orchestrator."""
    return Identity.ORCHESTRATOR if document.stack.startswith("acc-") else control_identity(name)


def is_node(*, path: str, tags: Mapping[str, str], stack: str, description: str = "") -> bool:
    """Whether it is what a job's nodes are."""
    return (
        stack.startswith("acc-")
        or path.startswith(NODE_PATH)
        or bool(_DESCRIBED.match(description))
        or (tag(tags, "managed") == "true" and bool(tag(tags, "job")))
    )


def job_of(*, tags: Mapping[str, str], stack: str = "", description: str = "") -> str:
    """By its tags, else by what else names the job; ""."""
    if tagged := tag(tags, "job"):
        return tagged
    if described := _DESCRIBED.match(description):
        return described[2]
    named = _ACCESS_STACK.fullmatch(stack) or _COMPUTE_STACK.fullmatch(stack)
    return named[1] if named else ""


def tags_of(document: Document, block: Block) -> Mapping[str, str]:
    """Tags or labels of a block, as far as they are known."""
    for argument in ("tags_all", "tags", "effective_labels", "labels"):
        found = document.value(block, argument)
        if isinstance(found, dict) and found:
            return {str(key): str(value) for key, value in cast("dict[str, Any]", found).items()}
    return {}


def tag(tags: Mapping[str, str], word: str) -> str:
    """`skyplan:WORD`, or the label that stands for it."""
    return str(tags.get(f"skyplan:{word}") or tags.get(own_key(word)) or "")
