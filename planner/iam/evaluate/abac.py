"""Conditions of Azure role assignments, version 2.0: read, then asked with what a request carries.  Pure; decides nothing about assignments.

    ActionMatches{'…'}   SubOperationMatches{'…'}   Exists @Request[…]   @Resource[…:path] StringStartsWith 'x'
    @Request[…:RoleDefinitionId] ForAnyOfAnyValues:GuidEquals {guid, guid}   AND && OR || NOT ! ( )

Three answers, as in `operators`: an attribute that the request does not carry leaves its comparison open (None), and so does what Azure's guide does not
say (Microsoft Learn: Azure role assignment condition format, 2026-11).  What is not in the language raises AbacError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, Final

from planner.iam.evaluate.nesting import too_deep, words_of
from planner.iam.evaluate.patterns import glob


class AbacError(ValueError):
    """A condition that is not understood here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request.  `attributes` by source and name, in lower case: {"resource[microsoft.storage/…/blobs:path]": ("a/b",)}."""

    action: str
    sub_operation: str = ""
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


_Node = Callable[[Asked], bool | None]
_Values = Callable[[Asked], tuple[str, ...]]
_TOKEN: Final = re.compile(
    r"""\s+"""
    r"""|(?P<attribute>@(?:Request|Resource|Principal|Environment)\s*\[[^\]]+\](?:<[^>]*>)?)"""
    r"""|(?P<text>'[^']*')"""
    r"""|(?P<guid>[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})"""
    r"""|(?P<number>-?\d+(?:\.\d+)?)|(?P<word>[A-Za-z][A-Za-z0-9:.]*)|(?P<sign>&&|\|\||[!(){},])""",
    re.IGNORECASE,
)
_QUANTIFIERS: Final = ("foranyofanyvalues", "forallofanyvalues", "foranyofallvalues", "forallofallvalues")


@lru_cache(maxsize=1024)
def read(condition: str) -> _Node:
    """The condition as a question: true, false, or None where the request does not carry what it takes.  Raises AbacError."""
    tokens = words_of(condition, _TOKEN, AbacError)
    if too_deep(text.lower() for kind, text in tokens if kind != "text"):
        raise AbacError("the condition nests too deep")
    reader = _Reader(tokens)
    node = reader.either()
    reader.end()
    return node


class _Reader:
    """Recursive descent; `!` binds closest, then AND, then OR."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._at = 0

    def either(self) -> _Node:
        nodes = [self._both()]
        while self._take("or", "||"):
            nodes.append(self._both())
        return _joined(nodes, decides=True)

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise AbacError(f"{self._tokens[self._at][1]!r} is not understood where it stands")

    def _both(self) -> _Node:
        nodes = [self._negation()]
        while self._take("and", "&&"):
            nodes.append(self._negation())
        return _joined(nodes, decides=False)

    def _negation(self) -> _Node:
        if self._take("not", "!"):
            inner = self._negation()
            return lambda asked: _not(inner(asked))
        if self._take("("):
            node = self.either()
            self._expect(")")
            return node
        return self._term()

    def _term(self) -> _Node:
        kind, text = self._next()
        if kind == "attribute":
            return self._comparison(_key(text))
        if kind == "word" and text.lower() == "exists":
            kind, text = self._next()
            if kind != "attribute":
                raise AbacError("Exists takes an attribute")
            key = _key(text)
            return lambda asked: bool(asked.attributes.get(key))
        if kind == "word" and text.lower() == "actionmatches":
            action = re.compile(glob(self._braced()), re.IGNORECASE | re.DOTALL)
            return lambda asked: action.fullmatch(asked.action) is not None
        if kind == "word" and text.lower() == "suboperationmatches":
            name = self._braced().lower()
            return lambda asked: asked.sub_operation.lower() == name
        raise AbacError(f"{text!r} is not understood where it stands")

    def _comparison(self, key: str) -> _Node:
        kind, operator = self._next()
        quantifier, _, base = operator.lower().rpartition(":")
        if kind != "word" or base not in _OPERATORS or (quantifier and quantifier not in _QUANTIFIERS):
            raise AbacError(f"{operator!r} is no operator that is known here")
        wanted = self._wanted(several=bool(quantifier))
        fits = _OPERATORS[base]
        return lambda asked: _compared(quantifier, fits, asked.attributes.get(key, ()), wanted(asked))

    def _wanted(self, *, several: bool) -> _Values:
        kind, text = self._next()
        if kind == "attribute":
            key = _key(text)
            return lambda asked: asked.attributes.get(key, ())
        if text == "{" and several:
            values = self._set()
            return lambda _: values
        if kind in {"text", "guid", "number"} or text.lower() in {"true", "false"}:
            value = (_value(text),)
            return lambda _: value
        raise AbacError(f"{text!r} is no value")

    def _set(self) -> tuple[str, ...]:
        out: list[str] = []
        while not self._take("}"):
            if out:
                self._expect(",")
            kind, text = self._next()
            if kind not in {"text", "guid", "number", "word"}:
                raise AbacError(f"{text!r} is no value")
            out.append(_value(text))
        return tuple(out)

    def _braced(self) -> str:
        self._expect("{")
        kind, text = self._next()
        if kind != "text":
            raise AbacError(f"{text!r} is no text")
        self._expect("}")
        return _value(text)

    def _take(self, *signs: str) -> bool:
        if self._at >= len(self._tokens):
            return False
        kind, text = self._tokens[self._at]
        found = kind in {"word", "sign"} and text.lower() in signs
        self._at += found
        return found

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise AbacError(f"{sign!r} is missing")

    def _next(self) -> tuple[str, str]:
        if self._at >= len(self._tokens):
            raise AbacError("the condition ends too early")
        self._at += 1
        return self._tokens[self._at - 1]


def _key(token: str) -> str:
    return re.sub(r"\s+", "", token.removeprefix("@").lower())


def _value(token: str) -> str:
    return token[1:-1] if token.startswith("'") else token


def _not(answer: bool | None) -> bool | None:
    return None if answer is None else not answer


def _joined(nodes: list[_Node], *, decides: bool) -> _Node:
    """OR (true decides) or AND (false does); what is open stays open unless another side decides."""

    def answer(asked: Asked) -> bool | None:
        open_ = False
        for node in nodes:
            found = node(asked)
            if found is decides:
                return decides
            open_ = open_ or found is None
        return None if open_ else not decides

    return nodes[0] if len(nodes) == 1 else answer


_Fits = Callable[[str, str], bool]


def _compared(quantifier: str, fits: _Fits, have: tuple[str, ...], wanted: tuple[str, ...]) -> bool | None:
    if not have or not wanted:
        return None
    if not quantifier and (len(have) > 1 or len(wanted) > 1):
        return None
    over = any if quantifier.startswith("forany") else all
    within = all if quantifier.endswith("allvalues") else any
    try:
        return over(within(fits(value, want) for want in wanted) for value in have)
    except ValueError:
        return None


def _number(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation as error:
        raise ValueError(f"{text} is no number") from error


def _guid(value: str, want: str) -> bool:
    return value.lower() == want.lower()


def _like(value: str, want: str) -> bool:
    return re.fullmatch(glob(want), value, re.DOTALL) is not None


def _folded(fits: _Fits) -> _Fits:
    return lambda value, want: fits(value.lower(), want.lower())


def _opposite(fits: _Fits) -> _Fits:
    return lambda value, want: not fits(value, want)


def _ordered(read_as: Callable[[str], Any], compare: Callable[[Any, Any], bool]) -> _Fits:
    return lambda value, want: compare(read_as(value), read_as(want))


def _operators() -> dict[str, _Fits]:
    texts: dict[str, _Fits] = {"equals": str.__eq__, "startswith": str.startswith, "like": _like}
    out: dict[str, _Fits] = {}
    for name, fits in texts.items():
        for suffix, made in (("", fits), ("ignorecase", _folded(fits))):
            out[f"string{name}{suffix}"] = made
            out[f"stringnot{name}{suffix}"] = _opposite(made)
    for name, fits in (("guidequals", _guid), ("boolequals", _guid)):
        out[name] = fits
        out[name.replace("equals", "notequals")] = _opposite(fits)
    for kind, read_as in (("numeric", _number), ("datetime", datetime.fromisoformat)):
        out[f"{kind}equals"] = _ordered(read_as, lambda a, b: a == b)
        out[f"{kind}notequals"] = _ordered(read_as, lambda a, b: a != b)
        out[f"{kind}lessthan"] = _ordered(read_as, lambda a, b: a < b)
        out[f"{kind}lessthanequals"] = _ordered(read_as, lambda a, b: a <= b)
        out[f"{kind}greaterthan"] = _ordered(read_as, lambda a, b: a > b)
        out[f"{kind}greaterthanequals"] = _ordered(read_as, lambda a, b: a >= b)
    return out


_OPERATORS: Final = _operators()
