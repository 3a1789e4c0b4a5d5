"""IAM's patterns: `*` and `?`, the escapes `${*}` `${?}` `${$}`, policy variables, and the colons of ARNs.  Text in, yes or no out.

A `${…}` without `service:` in it is no variable of IAM's but a reference that Terraform has still to fill: it is literal text, whatever is in it.
A variable that the request has no single value for matches nothing (IAM user guide, policy variables, 2026-11).

The forms of a pattern differ in what `*` may run over:
    TEXT      anything (actions, StringLike)
    RESOURCE  within one part of an ARN between colons; at the end of a part also beyond it (IAM user guide, resource element, 2026-11)
    ARN       within one part, and there must be six (Arn operators)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import IntEnum, auto
from functools import lru_cache
from typing import Final

#: value of a condition key, folded; None where the request has none, or several
Lookup = Callable[[str], str | None]


class Form(IntEnum):
    """Of what a pattern is."""

    TEXT = auto()
    RESOURCE = auto()
    ARN = auto()


_ARN_PARTS: Final = 6
#: the piece of an expression that stands for a `*` over anything, up to the end
_ANY: Final = "*"
_ESCAPE: Final = re.compile(r"\$\{([*?$])\}")
_VARIABLE: Final = re.compile(r"""\$\{\s*([A-Za-z0-9-]+:[^{}'",]*[^{}'",\s])\s*(?:,\s*'([^']*)'\s*)?\}""")
# kind and text of a token: "text", "wild" (`*` or `?`), "variable" (key), "default" (key and default)
_Token = tuple[str, str, str]


@lru_cache(maxsize=16384)
def _tokens(pattern: str, variables: bool) -> tuple[_Token, ...]:
    out: list[_Token] = []
    at = 0
    while at < len(pattern):
        token, at = _next(pattern, at, variables)
        out.append(token)
    return tuple(out)


def _next(pattern: str, at: int, variables: bool) -> tuple[_Token, int]:
    if pattern[at] in "*?":
        return ("wild", pattern[at], ""), at + 1
    if not (variables and pattern.startswith("${", at)):
        return ("text", pattern[at], ""), at + 1
    if found := _ESCAPE.match(pattern, at):
        return ("text", found[1], ""), found.end()
    if found := _VARIABLE.match(pattern, at):
        kind = "variable" if found[2] is None else "default"
        return (kind, found[1].lower(), found[2] or ""), found.end()
    end = _closing(pattern, at)
    return ("text", pattern[at:end], ""), end


def _closing(pattern: str, at: int) -> int:
    """Where the reference that begins at `at` ends; one that never does is two characters of text."""
    depth = 0
    for place in range(at + 1, len(pattern)):
        depth += {"{": 1, "}": -1}.get(pattern[place], 0)
        if depth == 0:
            return place + 1
    return at + 2


def _values(pattern: str, lookup: Lookup, variables: bool) -> tuple[str, ...] | None:
    """What the variables of a pattern stand for, in order; None if one stands for nothing."""
    out: list[str] = []
    for kind, key, default in _tokens(pattern, variables):
        if kind in {"variable", "default"}:
            value = lookup(key)
            if value is None and kind == "variable":
                return None
            out.append(default if value is None else value)
    return tuple(out)


@lru_cache(maxsize=16384)
def _regex(pattern: str, form: Form, values: tuple[str, ...], variables: bool) -> re.Pattern[str]:
    pieces: list[str] = []
    left = list(values)
    tokens = _tokens(pattern, variables)
    colons = 0
    for place, (kind, text, _) in enumerate(tokens):
        if kind == "wild":
            last = place + 1 == len(tokens) or tokens[place + 1][:2] == ("text", ":")
            tail = form is Form.TEXT or colons >= _ARN_PARTS - 1
            free = tail or (form is Form.RESOURCE and last)
            pieces.append(_ANY if tail and text == "*" else ("." if free else "[^:]") + ("*" if text == "*" else ""))
            continue
        literal = text if kind == "text" else left.pop(0)
        colons += literal == ":" if kind == "text" else literal.count(":")
        pieces.append(re.escape(literal))
    return re.compile(_joined(pieces), re.DOTALL)


def _joined(pieces: list[str]) -> str:
    """One expression.  What stands between two `*` that run over anything is taken where it first occurs, and that is not taken back: the same texts
    match, in a time that does not multiply with each `*`.
    """
    chunks: list[str] = [""]
    for piece in pieces:
        if piece == _ANY:
            chunks.append("")
        else:
            chunks[-1] += piece
    if len(chunks) == 1:
        return chunks[0]
    middle = "".join(f"(?>.*?{chunk})" for chunk in chunks[1:-1])
    return f"{chunks[0]}{middle}.*{chunks[-1]}"


def matches(pattern: str, text: str, form: Form, lookup: Lookup, *, variables: bool = True) -> bool:
    """Whether the pattern, with its variables filled in, matches the whole text."""
    if pattern == "*":
        return True
    if not (variables and "${" in pattern):
        before = _before_wild(pattern)
        if before == pattern:
            return pattern == text
        # most patterns that are asked differ here: an expression of each would be made for nothing
        return text.startswith(before) and _fixed(pattern, form).fullmatch(text) is not None
    values = _values(pattern, lookup, variables)
    return values is not None and _regex(pattern, form, values, variables).fullmatch(text) is not None


def _before_wild(pattern: str) -> str:
    return pattern.partition("*")[0].partition("?")[0]


@lru_cache(maxsize=16384)
def _fixed(pattern: str, form: Form) -> re.Pattern[str]:
    return _regex(pattern, form, (), variables=False)


def literal(pattern: str, lookup: Lookup, *, variables: bool = True) -> str | None:
    """The text that a pattern says where `*` and `?` are no wildcards (StringEquals); None if a variable stands for nothing."""
    if not (variables and "${" in pattern):
        return pattern
    values = _values(pattern, lookup, variables)
    if values is None:
        return None
    left = list(values)
    return "".join(left.pop(0) if kind in {"variable", "default"} else text for kind, text, _ in _tokens(pattern, True))


@lru_cache(maxsize=4096)
def is_arn(pattern: str) -> bool:
    """Whether the pattern has the parts of an ARN, or is a reference that may still become one."""
    return pattern.startswith("${") or sum(text == ":" for _, text, _ in _tokens(pattern, True)) >= _ARN_PARTS - 1


def filled(pattern: str, lookup: Lookup) -> bool:
    """Whether the request has a value for each variable in the pattern, or the pattern has one."""
    return "${" not in pattern or _values(pattern, lookup, variables=True) is not None


@lru_cache(maxsize=4096)
def actions(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One expression for many patterns of actions, to be matched whole.  IAM takes actions in any case, and no variables in them."""
    return re.compile("|".join(glob(pattern) for pattern in patterns) or r"(?!)", re.DOTALL | re.IGNORECASE)


def glob(pattern: str) -> str:
    """The expression of a pattern in which only `*` and `?` are special."""
    return _joined([{"*": _ANY, "?": "."}.get(one, re.escape(one)) for one in pattern])
