"""Rights as the lines that a reader knows: what a statement says now (evidence) and what to write instead (fix).  Decides nothing about either."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, Final, cast

from planner.model.policy import Permit, RoleAssignment, RoleBinding, Statement, Test

_COMPACT: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
_text: Final = json.encoder.encode_basestring
Right = Statement | RoleBinding | RoleAssignment | Permit


class Repair(str):
    """Text of a fix that still knows what it is made of, so that several of one statement can be made one.

    statement  what it is a fix of
    actions    those that are taken out of it
    parts      the statements that give them instead; () = nothing does
    """

    __slots__ = ("actions", "parts", "statement")

    statement: Statement
    actions: tuple[str, ...]
    parts: tuple[Statement, ...]


def _repair(text: str, statement: Statement, actions: Sequence[str], parts: Sequence[Statement]) -> Repair:
    made = Repair(text)
    made.statement, made.actions, made.parts = statement, tuple(actions), tuple(parts)
    return made


def document(right: Right) -> dict[str, Any]:
    """An AWS statement in IAM's own form; other rights by their fields, without those that say nothing."""
    return _statement(right) if isinstance(right, Statement) else _fields(right)


def compact(right: Right) -> str:
    """On one line."""
    return _COMPACT.encode(document(right))


def written(*rights: Right) -> str:
    """Over several lines, to copy."""
    return ",\n".join(_indented(document(right), "\n") for right in rights)


def _indented(value: object, line: str) -> str:
    """JSON by an indent of two, as `json.dumps` writes it: with an indent that takes the slow way, and each fix of an audit is written so."""
    inner = f"{line}  "
    if isinstance(value, dict):
        rows = [f"{_text(key)}: {_indented(one, inner)}" for key, one in cast("dict[str, object]", value).items()]
        return f"{{{inner}{f',{inner}'.join(rows)}{line}}}" if rows else "{}"
    if isinstance(value, list | tuple):
        rows = [_indented(one, inner) for one in cast("Sequence[object]", value)]
        return f"[{inner}{f',{inner}'.join(rows)}{line}]" if rows else "[]"
    return _text(value) if isinstance(value, str) else json.dumps(value)


def guarded(statement: Statement, *tests: Test) -> Statement:
    """The same with these conditions, in place of any that it has on their keys."""
    keys = {test.key.lower() for test in tests}
    kept = tuple(test for test in statement.tests if test.key.lower() not in keys)
    return replace(statement, tests=(*kept, *tests))


def only(statement: Statement, actions: Sequence[str], *, resources: Sequence[str] = (), sid: str = "") -> Statement:
    """The part of it about these actions, on these resources where they are given."""
    return replace(
        statement,
        sid=sid or statement.sid,
        actions=tuple(actions),
        not_actions=(),
        resources=tuple(resources) or statement.resources,
        not_resources=() if resources else statement.not_resources,
    )


def instead(statement: Statement, actions: Sequence[str], *repaired: Statement) -> Repair:
    """What to write: the statement anew, or, where it also gives other actions, without these and with a statement of their own."""
    return _repair(_instead(statement, actions, repaired), statement, actions, repaired)


def _instead(statement: Statement, actions: Sequence[str], repaired: Sequence[Statement]) -> str:
    text = written(*repaired)
    rest = [action for action in statement.actions if action.lower() not in {one.lower() for one in actions}]
    if not rest and not statement.not_actions:
        return f"write instead:\n{text}"
    names = ", ".join(actions)
    where = f"`{statement.sid}`" if statement.sid else "this statement"
    if len(rest) < len(statement.actions) and not any("*" in one or "?" in one for one in rest):
        return f"take {names} out of {where} and add:\n{text}"
    return f"name in {where} the actions that are needed, without {names}, and add:\n{text}"


def without(statement: Statement, actions: Sequence[str]) -> str:
    """The statement with these actions dropped."""
    rest = tuple(action for action in statement.actions if action.lower() not in {one.lower() for one in actions})
    if statement.not_actions or len(rest) == len(statement.actions):
        deny = Statement(effect="Deny", sid="DenyEscalation", actions=tuple(actions), resources=("*",))
        return f"name the actions that are needed; until then add:\n{written(deny)}"
    text = (
        f"write instead:\n{written(replace(statement, actions=rest))}"
        if rest
        else f"drop the statement {statement.sid or compact(statement)}"
    )
    return _repair(text, statement, actions, ())


def _statement(statement: Statement) -> dict[str, Any]:
    conditions: dict[str, dict[str, Any]] = {}
    for test in statement.tests:
        conditions.setdefault(test.operator, {})[test.key] = _one(test.values)
    parts: list[tuple[str, Any]] = [
        ("Sid", statement.sid),
        ("Effect", statement.effect),
        ("Principal", _principals(statement.principals)),
        ("NotPrincipal", _principals(statement.not_principals)),
        ("Action", _one(statement.actions)),
        ("NotAction", _one(statement.not_actions)),
        ("Resource", _one(statement.resources)),
        ("NotResource", _one(statement.not_resources)),
        ("Condition", conditions),
    ]
    return {key: value for key, value in parts if value}


def _principals(principals: Sequence[tuple[str, str]]) -> Any:
    if tuple(principals) in {(("*", "*"),), (("AWS", "*"),)}:
        return "*"
    out: dict[str, list[str]] = {}
    for kind, name in principals:
        out.setdefault(kind, []).append(name)
    return {kind: _one(names) for kind, names in out.items()}


def _one(values: Sequence[str]) -> Any:
    return values[0] if len(values) == 1 else list(values)


def _fields(right: RoleBinding | RoleAssignment | Permit) -> dict[str, Any]:
    out = {one.name: getattr(right, one.name) for one in fields(right) if one.name != "location"}
    return {name: value for name, value in out.items() if value}
