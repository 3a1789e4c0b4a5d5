"""The part of CEL that conditions of Google's IAM use: read, then asked with what a request carries.  Pure; decides nothing about bindings.

    resource.name / .type / .service, request.time, any other name that is given (assertion.sub, attribute.repository)
    == != < <= > >= in && || ! ( ) [ , ] 'text' "text" 1 true false
    text.startsWith endsWith contains matches extract, list.hasOnly, api.getAttribute, has, size, timestamp

What is not in it raises CelError: the caller fails closed.  Written here because the packages for CEL are heavy (an RE2 in C++, a date library) and
know neither `extract` nor `hasOnly`, which are Google IAM's own (IAM: attribute reference for conditions, 2026-11).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, TypeAlias

from planner.iam.evaluate.nesting import too_deep, words_of

Value: TypeAlias = "str | bool | int | datetime | tuple[Value, ...]"


class CelError(ValueError):
    """An expression that is not understood here, or that asks for what the request does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What an expression may ask: names by their dotted path, and the attributes of `api.getAttribute`."""

    names: Mapping[str, Value] = field(default_factory=dict[str, Value])
    attributes: Mapping[str, Value] = field(default_factory=dict[str, Value])


def holds(expression: str, scope: Scope) -> bool:
    """Whether the condition is true.  Raises CelError."""
    return _truth(_read(expression), scope)


_Node = Callable[[Scope], Value]
_TOKEN: Final = re.compile(
    r"""\s+|//[^\n]*"""
    r"""|(?P<text>[rR]?(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))"""
    r"""|(?P<number>\d+)|(?P<name>[A-Za-z_]\w*)|(?P<sign>==|!=|<=|>=|&&|\|\||[-!<>()\[\].,])"""
)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?"}
_COMPARE: Final = frozenset({"==", "!=", "<", "<=", ">", ">=", "in"})


@lru_cache(maxsize=1024)
def _read(expression: str) -> _Node:
    tokens = words_of(expression, _TOKEN, CelError)
    if too_deep(text for kind, text in tokens if kind != "text"):
        raise CelError("the expression nests too deep")
    reader = _Reader(tokens)
    node = reader.either()
    reader.end()
    return node


class _Reader:
    """Recursive descent: one method per level of precedence, loosest first."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._at = 0

    def either(self) -> _Node:
        nodes = [self._both()]
        while self._take("||"):
            nodes.append(self._both())
        return _joined(nodes, decides=True)

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise CelError(f"{self._tokens[self._at][1]!r} is not understood where it stands")

    def _both(self) -> _Node:
        nodes = [self._relation()]
        while self._take("&&"):
            nodes.append(self._relation())
        return _joined(nodes, decides=False)

    def _relation(self) -> _Node:
        left = self._unary()
        sign = self._peek()
        if sign not in _COMPARE:
            return left
        self._at += 1
        right = self._unary()
        return lambda scope: _compared(sign, left(scope), right(scope))

    def _unary(self) -> _Node:
        if self._take("!"):
            inner = self._unary()
            return lambda scope: not _truth(inner, scope)
        return self._postfix()

    def _postfix(self) -> _Node:
        kind, text = self._next()
        path = text if kind == "name" and text not in {"true", "false"} else ""
        node = self._call(text) if path and self._peek() == "(" else self._primary(kind, text)
        while True:
            if self._take("."):
                name = self._next()[1]
                if self._peek() == "(":
                    node, path = _method(path, node, name, self._arguments()), ""
                else:
                    path = f"{path}.{name}" if path else ""
                    node = _named(path)
            elif self._take("["):
                kind, text = self._next()
                self._expect("]")
                path = f"{path}.{_text(text)}" if path and kind == "text" else ""
                node = _named(path)
            else:
                return node

    def _call(self, name: str) -> _Node:
        """A function that is no method."""
        if name == "has":
            self._expect("(")
            path = self._next()[1]
            while self._take("."):
                path += f".{self._next()[1]}"
            self._expect(")")
            return lambda scope: path in scope.names
        arguments = self._arguments()
        if name == "size" and len(arguments) == 1:
            return lambda scope: _size(arguments[0](scope))
        if name == "timestamp" and len(arguments) == 1:
            return lambda scope: _timestamp(arguments[0](scope))
        raise CelError(f"{name}() is not understood")

    def _primary(self, kind: str, text: str) -> _Node:
        if kind == "text":
            value = _text(text)
            return lambda _: value
        if kind == "number":
            number = int(text)
            return lambda _: number
        if text in {"true", "false"}:
            return lambda _: text == "true"
        if kind == "name":
            return _named(text)
        if text == "(":
            node = self.either()
            self._expect(")")
            return node
        if text == "[":
            items = self._items("]")
            return lambda scope: tuple(item(scope) for item in items)
        raise CelError(f"{text!r} is not understood where it stands")

    def _arguments(self) -> list[_Node]:
        self._expect("(")
        return self._items(")")

    def _items(self, end: str) -> list[_Node]:
        out: list[_Node] = []
        while not self._take(end):
            if out:
                self._expect(",")
            out.append(self.either())
        return out

    def _peek(self) -> str:
        """The next token if it is no text; texts are never mistaken for signs."""
        if self._at >= len(self._tokens):
            return ""
        kind, text = self._tokens[self._at]
        return "" if kind == "text" else text

    def _take(self, sign: str) -> bool:
        found = self._peek() == sign
        self._at += found
        return found

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise CelError(f"{sign!r} is missing")

    def _next(self) -> tuple[str, str]:
        if self._at >= len(self._tokens):
            raise CelError("the expression ends too early")
        self._at += 1
        return self._tokens[self._at - 1]


def _text(token: str) -> str:
    raw = token[0] in "rR"
    body = token[2:-1] if raw else token[1:-1]
    if raw:
        return body

    def unescaped(found: re.Match[str]) -> str:
        if found[1] not in _ESCAPES:
            raise CelError(f"{found[0]} is not understood in a text")
        return _ESCAPES[found[1]]

    return re.sub(r"\\(.)", unescaped, body)


def _named(path: str) -> _Node:
    def value(scope: Scope) -> Value:
        if path not in scope.names:
            raise CelError(f"{path or 'a field of a value'} is not known")
        return scope.names[path]

    return value


def _truth(node: _Node, scope: Scope) -> bool:
    value = node(scope)
    if not isinstance(value, bool):
        raise CelError(f"{value!r} is neither true nor false")
    return value


def _joined(nodes: list[_Node], *, decides: bool) -> _Node:
    """`||` (true decides) or `&&` (false does).  In CEL the side that decides does so even where another has no value."""
    if len(nodes) == 1:
        return nodes[0]

    def value(scope: Scope) -> Value:
        failed: CelError | None = None
        for node in nodes:
            try:
                if _truth(node, scope) is decides:
                    return decides
            except CelError as error:
                failed = failed or error
        if failed:
            raise failed
        return not decides

    return value


def _compared(sign: str, left: Value, right: Value) -> bool:
    if sign == "in":
        if not isinstance(right, tuple):
            raise CelError(f"`in` takes a list, not {right!r}")
        return any(type(left) is type(item) and left == item for item in right)
    if type(left) is not type(right):
        raise CelError(f"{left!r} and {right!r} cannot be compared")
    if sign in {"==", "!="}:
        return (left == right) is (sign == "==")
    order = _order(left, right)
    return {"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[sign]


def _order(left: Value, right: Value) -> int:
    if isinstance(left, str) and isinstance(right, str):
        return (left > right) - (left < right)
    if isinstance(left, datetime) and isinstance(right, datetime):
        return (left > right) - (left < right)
    if isinstance(left, int) and isinstance(right, int):
        return (left > right) - (left < right)
    raise CelError(f"{left!r} and {right!r} have no order")


def _size(value: Value) -> int:
    if isinstance(value, str | tuple):
        return len(value)
    raise CelError(f"{value!r} has no size")


def _timestamp(value: Value) -> datetime:
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError as error:
        raise CelError(f"{value!r} is no time") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _method(path: str, target: _Node, name: str, arguments: list[_Node]) -> _Node:
    if path == "api" and name == "getAttribute" and len(arguments) == 2:  # noqa: PLR2004 - name and default
        return lambda scope: scope.attributes.get(str(arguments[0](scope)), arguments[1](scope))
    if name == "hasOnly" and len(arguments) == 1:
        return lambda scope: _has_only(target(scope), arguments[0](scope))
    if name not in _TEXT_METHODS or len(arguments) != 1:
        raise CelError(f"{name}() is not understood")
    return lambda scope: _TEXT_METHODS[name](_as_text(target(scope)), _as_text(arguments[0](scope)))


def _as_text(value: Value) -> str:
    if not isinstance(value, str):
        raise CelError(f"{value!r} is no text")
    return value


def _has_only(have: Value, allowed: Value) -> bool:
    if not (isinstance(have, tuple) and isinstance(allowed, tuple)):
        raise CelError("hasOnly() takes lists")
    return all(item in allowed for item in have)


def _matches(text: str, pattern: str) -> bool:
    """RE2's patterns; what Python's mean beyond them is refused."""
    if re.search(r"\(\?(?![:i])|\\[1-9]", pattern):
        raise CelError(f"{pattern!r} is no pattern of RE2")
    try:
        return re.search(pattern, text) is not None
    except re.error as error:
        raise CelError(f"{pattern!r} is no pattern") from error


def _extract(text: str, template: str) -> str:
    """What stands where the template has its braces; "" if the rest of the template is not in the text."""
    found = re.fullmatch(r"([^{}]*)\{\w*\}([^{}]*)", template)
    if found is None:
        raise CelError(f"{template!r} is no template")
    start = text.find(found[1])
    if start < 0:
        return ""
    start += len(found[1])
    end = text.find(found[2], start) if found[2] else len(text)
    return text[start:end] if end >= 0 else ""


_TEXT_METHODS: Final[dict[str, Callable[[str, str], Value]]] = {
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "contains": str.__contains__,
    "matches": _matches,
    "extract": _extract,
}
