"""AWS policy documents in both of their spellings, IAM's JSON and Terraform's data source, as statements.  Judges nothing and drops nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from planner.iam.documents import document_of, policy_from
from planner.iam.read.references import many, words
from planner.model.diagnostic import Location
from planner.model.policy import AwsPolicy, PolicyKind, Statement, Test

#: what the data source writes where nothing else is asked for
VERSION = "2012-10-17"
Json = Mapping[str, Any]


def from_json(
    document: object, *, kind: PolicyKind, name: str, location: Location | None = None
) -> tuple[str, tuple[Statement, ...]]:
    """(version, statements) of a policy in IAM's JSON, as text or parsed.  Raises ValueError for what is none."""
    made = policy_from(document, kind=kind, name=name, location=location)
    return made.version, tuple(_placed(statement, location) for statement in made.statements)


def _placed(statement: Statement, location: Location | None) -> Statement:
    """In one order, so that both spellings of a policy are equal."""
    return replace(
        statement,
        tests=tuple(sorted(statement.tests)),
        principals=tuple(sorted(statement.principals)),
        not_principals=tuple(sorted(statement.not_principals)),
        location=location,
    )


def merged(
    sources: Sequence[tuple[Statement, ...]], own: tuple[Statement, ...], overrides: Sequence[tuple[Statement, ...]]
) -> tuple[Statement, ...]:
    """As the data source does it: a later statement takes the place of an earlier one with the same Sid."""
    out: list[Statement] = []
    for statements in (*sources, own, *overrides):
        for statement in statements:
            at = next((n for n, held in enumerate(out) if statement.sid and held.sid == statement.sid), None)
            if at is None:
                out.append(statement)
            else:
                out[at] = statement
    return tuple(out)


def from_block(given: Json, location: Location | None = None) -> Statement:
    """A `statement` of the data source; `&{…}` there is `${…}` in the policy."""
    return Statement(
        effect=str(given.get("effect") or "Allow"),
        sid=str(given.get("sid") or ""),
        actions=words(given.get("actions")),
        not_actions=words(given.get("not_actions")),
        resources=_variables(given.get("resources")),
        not_resources=_variables(given.get("not_resources")),
        principals=_block_principals(given.get("principals")),
        not_principals=_block_principals(given.get("not_principals")),
        tests=tuple(sorted(_block_test(item) for item in many(given.get("condition")))),
        location=location,
    )


def _block_principals(given: Any) -> tuple[tuple[str, str], ...]:
    found = [
        (str(item.get("type") or ""), name) for item in many(given) for name in _variables(item.get("identifiers"))
    ]
    return tuple(sorted(("AWS" if kind == "*" else kind, name) for kind, name in found))


def _block_test(given: Json) -> Test:
    return Test(
        operator=str(given.get("test") or ""),
        key=str(given.get("variable") or ""),
        values=_variables(given.get("values")),
    )


def _variables(value: Any) -> tuple[str, ...]:
    return tuple(word.replace("&{", "${") for word in words(value))


def as_json(statements: Sequence[Statement], version: str = VERSION) -> str:
    """The policy as the data source would hand it on."""
    policy = AwsPolicy(kind=PolicyKind.IDENTITY, name="", statements=tuple(statements), version=version or VERSION)
    return json.dumps(document_of(policy))
