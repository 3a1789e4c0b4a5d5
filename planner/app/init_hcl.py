"""The blocks of Terraform's own language, as far as names and plain values go: enough to find a backend and a provider in a stranger's files.

Decides what is a literal and what is not: a value that Terraform would have to compute is None here, never guessed.  Evaluates nothing, reads no file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, cast

DEEPEST: Final = 60
"""Blocks in blocks: what people write has four or five."""
_TOKEN: Final = re.compile(
    r"""
    [ \t\r\ufeff]*
  (?:
    (?P<comment>\#[^\n]*|//[^\n]*)
  | (?P<remark>/\*.*?\*/)
  | (?P<line>\n)
  | (?P<rest>\Z)
  | (?P<heredoc><<-?(?P<mark>[A-Za-z_][\w-]*)[ \t\r]*\n)
  | (?P<number>\d[\w.]*)
  | (?P<name>[^\W\d][\w-]*)
  | (?P<quote>")
  | (?P<sign>[{}()\[\]=,.:?!<>&|*/%+-])
  )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}


@dataclass(frozen=True, slots=True)
class Reference:
    """`var.NAME` or `local.NAME`, and nothing more than that."""

    kind: str
    name: str


Value = str | tuple[str, ...] | Reference | None
"""A literal as text (`true`, `3`, `eu-west-1`), a list of them, a reference, or None for what Terraform would have to compute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """`provider "aws" {…}`: kind, labels, the line it begins at, its values and the blocks within."""

    kind: str
    labels: tuple[str, ...] = ()
    line: int = 0
    values: dict[str, Value] = field(default_factory=dict[str, Value])
    blocks: tuple[Block, ...] = ()

    def within(self, kind: str) -> Iterator[Block]:
        """Blocks of a kind."""
        return (one for one in self.blocks if one.kind == kind)


class Unreadable(ValueError):
    """No Terraform; the message says where."""


def blocks(text: str) -> Block:
    """A file as one block without kind: its blocks and values.  Raises Unreadable."""
    return _Reader(text.replace("\r\n", "\n")).file()


def json_blocks(text: str) -> Block:
    """The same of `*.tf.json`.  Raises Unreadable."""
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"no JSON: {error}") from error
    if not isinstance(found, dict):
        raise Unreadable("no JSON object")
    out: list[Block] = []
    document = cast("dict[str, Any]", found)
    for body in _objects(document.get("terraform")):
        inner = [
            Block(kind="backend", labels=(kind,), values=_literals(one))
            for backend in _objects(body.get("backend"))
            for kind, given in backend.items()
            for one in _objects(given)
        ]
        out.append(Block(kind="terraform", blocks=tuple(inner)))
    for kind in ("provider", "variable"):
        for table in _objects(document.get(kind)):
            for name, given in table.items():
                out += [_json_block(kind, name, one) for one in _objects(given)]
    out += [Block(kind="locals", values=_literals(one)) for one in _objects(document.get("locals"))]
    return Block(kind="", blocks=tuple(out))


def _json_block(kind: str, name: str, body: dict[str, Any]) -> Block:
    roles = tuple(Block(kind="assume_role", values=_literals(one)) for one in _objects(body.get("assume_role")))
    return Block(kind=kind, labels=(name,), values=_literals(body), blocks=roles)


def _objects(given: Any) -> list[dict[str, Any]]:
    """In JSON a block is an object, or a list of them."""
    several = cast("list[Any]", given) if isinstance(given, list) else [given]
    return [cast("dict[str, Any]", one) for one in several if isinstance(one, dict)]


def _literals(body: dict[str, Any]) -> dict[str, Value]:
    return {name: _literal(given) for name, given in body.items()}


def _literal(given: Any) -> Value:
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, int | float):
        return str(given)
    if isinstance(given, str):
        if plain := re.fullmatch(r"\$\{\s*(var|local)\.([\w-]+)\s*\}", given):
            return Reference(plain[1], plain[2])
        return None if re.search(r"(?<![$%])[$%]\{", given) else given.replace("$${", "${").replace("%%{", "%{")
    if isinstance(given, list):
        found = [_literal(one) for one in cast("list[Any]", given)]
        return tuple(one for one in found if isinstance(one, str)) if all(isinstance(f, str) for f in found) else None
    return None


@dataclass(frozen=True, slots=True)
class _Token:
    """`kind`: line, name, number, text, sign, end.  A text that holds a template has no value."""

    kind: str
    value: str | None
    line: int


class _Reader:
    """One file, read once from its beginning."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1
        self._next = self._token()

    def file(self) -> Block:
        return self._body("", (), 1, 0)

    def _body(self, kind: str, labels: tuple[str, ...], line: int, depth: int) -> Block:
        """Up to the brace that closes it, or the end of the file."""
        if depth > DEEPEST:
            raise Unreadable(f"line {line}: blocks too deep in each other")
        values: dict[str, Value] = {}
        inner: list[Block] = []
        while True:
            token = self._take()
            if token.kind == "line":
                continue
            if token.kind == "end" or (token.kind, token.value) == ("sign", "}"):
                if (token.kind == "end") == bool(depth):
                    raise Unreadable(f"line {token.line}: a brace is missing or too many")
                return Block(kind=kind, labels=labels, line=line, values=values, blocks=tuple(inner))
            if token.kind != "name" or token.value is None:
                raise Unreadable(f"line {token.line}: neither a block nor a value begins here")
            if self._is("="):
                self._take()
                values[token.value] = self._value()
            else:
                inner.append(self._block(token.value, token.line, depth))

    def _block(self, kind: str, line: int, depth: int) -> Block:
        labels: list[str] = []
        while not self._is("{"):
            token = self._take()
            if token.kind not in {"name", "text"} or token.value is None:
                raise Unreadable(f"line {token.line}: `{kind}` is followed by neither a label nor a brace")
            labels.append(token.value)
        self._take()
        return self._body(kind, tuple(labels), line, depth + 1)

    def _value(self) -> Value:
        """Up to the end of the line, which brackets carry over lines."""
        tokens: list[_Token] = []
        open_brackets = 0
        while True:
            kind, value = self._next.kind, self._next.value
            if kind == "end" or (open_brackets == 0 and (kind == "line" or (kind, value) == ("sign", "}"))):
                if open_brackets:
                    raise Unreadable(f"line {self._next.line}: a bracket is missing")
                return _judged(tokens)
            token = self._take()
            if token.kind == "sign" and token.value is not None:
                open_brackets += (token.value in "([{") - (token.value in ")]}")
            if token.kind != "line":
                tokens.append(token)

    def _is(self, sign: str) -> bool:
        return self._next.kind == "sign" and self._next.value == sign

    def _take(self) -> _Token:
        token, self._next = self._next, self._token()
        return token

    def _token(self) -> _Token:
        while self._at < len(self._text):
            found = _TOKEN.match(self._text, self._at)
            if found is None:
                sign = self._text[self._at :].lstrip(" \t\r\ufeff")[:1]
                raise Unreadable(f"line {self._line}: `{sign}` is no sign of Terraform's language")
            line, kind = self._line, found.lastgroup or ""
            self._at = found.end()
            match kind:
                case "comment" | "rest":
                    continue
                case "remark":
                    self._line += found[0].count("\n")
                    continue
                case "line":
                    self._line += 1
                    return _Token(kind, "\n", line)
                case "quote":
                    return _Token("text", self._string(), line)
                case "heredoc":
                    self._line += 1
                    self._skip_heredoc(found["mark"])
                    return _Token("text", None, line)
                case _:
                    return _Token(kind, found[kind], line)
        return _Token("end", None, self._line)

    def _string(self) -> str | None:
        """What stands between quotes; None where a template is in it."""
        out: list[str] = []
        template = False
        while self._at < len(self._text):
            sign, two = self._text[self._at], self._text[self._at : self._at + 3]
            if sign == '"':
                self._at += 1
                return None if template else "".join(out)
            if sign == "\n":
                break
            if two in {"$${", "%%{"}:
                out.append(two[1:])
                self._at += 3
            elif two[:2] in {"${", "%{"}:
                template = True
                self._at += 2
                self._skip_template()
            elif sign == "\\":
                out.append(_ESCAPE.get(two[1:2], ""))
                template = template or two[1:2] not in _ESCAPE  # \u00e9: no name that is looked for has one
                self._at += 2
            else:
                out.append(sign)
                self._at += 1
        raise Unreadable(f"line {self._line}: a quote is missing")

    def _skip_template(self) -> None:
        """To the brace that closes it; strings and braces within are its own."""
        depth = 1
        while depth:
            token = self._token()
            if token.kind == "end":
                raise Unreadable(f"line {token.line}: a template has no end")
            if token.kind == "sign" and token.value is not None:
                depth += (token.value == "{") - (token.value == "}")

    def _skip_heredoc(self, mark: str) -> None:
        end = re.compile(rf"^[ \t]*{re.escape(mark)}[ \t\r]*$", re.MULTILINE).search(self._text, self._at)
        if end is None:
            raise Unreadable(f"line {self._line}: `{mark}` does not end")
        self._line += self._text.count("\n", self._at, end.end())
        self._at = end.end()


def _judged(tokens: list[_Token]) -> Value:
    """What an expression is, if it is a literal, a list of literals, or one reference."""
    if len(tokens) == 1:
        return _one(tokens[0])
    words = [token.value for token in tokens]
    if len(tokens) == 3 and words[1] == "." and words[0] in {"var", "local"} and words[2]:  # noqa: PLR2004 - var . name
        return Reference(words[0], words[2])
    if words[:1] == ["["] and words[-1:] == ["]"]:
        items = [_one(token) for token in tokens[1:-1:2]]
        if all(token.value == "," for token in tokens[2:-1:2]) and all(isinstance(one, str) for one in items):
            return tuple(one for one in items if isinstance(one, str))
    return None


def _one(token: _Token) -> str | None:
    match token.kind:
        case "text" | "number":
            return token.value
        case "name" if token.value in {"true", "false"}:
            return token.value
        case _:
            return None
