"""What the life of a job asks of AWS, written down: `life.jsonl`, one authorization request a line, with the lives that it was seen in.

Ids, which every run makes anew, are written as `vpc-0`; names of things, zones and ranks, which no policy looks at, as their first one.  Tests that run a life compare what they saw with what stands here, and
`--update-golden` writes it anew (one process at a time), so that the replays, which need no Terraform, judge what is really asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.iam.foundation import aws_names
from planner.model.control import ControlScope
from planner.model.grants import Identity
from tests.emulators.aws import Judged
from tests.emulators.moto_fixes.authorize.ec2 import TYPES

FILE = Path(__file__).with_name("life.jsonl")
_ID = re.compile(rf"\b({'|'.join(sorted(TYPES, key=len, reverse=True))}|r|pl)-[0-9a-f]{{8,17}}\b")
#: calls about an association that went with what it was of: the provider lets go of an address that its NAT gateway held
GONE = {"ec2:DisassociateAddress"}
#: tags and keys whose values differ among things of one kind
_ALIKE = {
    "Name": "name",
    "skyplan:rank": "r00",
    "skyplan:generation": "1",
    "ec2:AvailabilityZone": "us-east-1a",
}


@dataclass(frozen=True, order=True)
class Seen:
    """One authorization request of an identity.  `context` as sorted (key, values)."""

    identity: Identity
    action: str
    resource: str
    context: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def keys(self) -> dict[str, tuple[str, ...]]:
        return dict(self.context)


def seen_of(judged: Judged, scope: ControlScope) -> set[Seen]:
    """What the control identities asked; the user who becomes them is none."""
    roles = {
        f"arn:{scope.partition}:iam::{scope.account}:role{aws_names.path(scope.project)}{name}": identity
        for identity, name in aws_names.names(scope).items()
    }
    return {
        Seen(
            roles[call["principal"]],
            one["action"],
            _named(one["resource"]),
            tuple(sorted((key, _plain(key, values)) for key, values in one["context"].items())),
        )
        for call in judged.calls
        if call["principal"] in roles
        for one in call["asked"]
        if one["verdict"] == "allow"
    }


def passes_of(judged: Judged) -> dict[str, Any]:
    """What access stacks added to the orchestrator: the inline policies that were in force, by name."""
    held = [one for policies in judged.policies.values() for one in policies]
    return {one["name"]: one["document"] for one in held if one["name"].startswith("skyplan-pass-")}


def _plain(key: str, values: Iterable[str]) -> tuple[str, ...]:
    """Values of a condition key, without what tells one of many alike from another."""
    tag = key.partition("/")[2]
    return (_ALIKE[tag or key],) if (tag or key) in _ALIKE else tuple(sorted(map(_named, values)))


def _named(text: str) -> str:
    return _ID.sub(r"\1-0", text)


def load() -> dict[Seen, tuple[str, ...]]:
    """Each request with the lives that it was seen in."""
    if not FILE.is_file():
        return {}
    return {_seen(json.loads(line)): tuple(json.loads(line)["lives"]) for line in FILE.read_text("utf-8").splitlines()}


def of_life(name: str) -> set[Seen]:
    return {one for one, lives in load().items() if name in lives}


def save(name: str, found: Iterable[Seen]) -> None:
    """Write one life anew."""
    lives = {one: set(held) - {name} for one, held in load().items()}
    for one in found:
        lives.setdefault(one, set()).add(name)
    lines = [json.dumps(_document(one, sorted(held))) for one, held in sorted(lives.items()) if held]
    FILE.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _seen(document: Mapping[str, Any]) -> Seen:
    context = tuple((key, tuple(values)) for key, values in sorted(document["context"].items()))
    return Seen(Identity(document["identity"]), document["action"], document["resource"], context)


def _document(one: Seen, lives: list[str]) -> dict[str, Any]:
    return {
        "identity": one.identity.value,
        "action": one.action,
        "resource": one.resource,
        "lives": lives,
        "context": {key: list(values) for key, values in one.context},
    }


def held_to(name: str, judged: Judged, scope: ControlScope, *, update: bool) -> None:
    """That nothing was refused, and that the life asked what is written down."""
    denied = refused(judged)
    assert not denied, denied
    assert {call["call"] for call in judged.calls if not call["asked"]} <= GONE
    found = seen_of(judged, scope)
    if update:
        save(name, found)
    missing, new = of_life(name) - found, found - load().keys()
    assert not missing, f"{name} asks no more: {sorted(missing)[:3]} (--update-golden writes it anew)"
    assert not new, f"{name} asks what is not written down: {sorted(new)[:3]} (--update-golden writes it anew)"


def refused(judged: Judged) -> list[str]:
    """What was denied, but for what skyplan knows to be refused without harm."""
    from planner.iam.operations.aws import TOLERATED

    return sorted({text for text in judged.refused() if not any(f": {action} on " in text for action in TOLERATED)})
