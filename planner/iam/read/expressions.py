"""Terraform's expressions, as far as their value can be known without Terraform: literals, references, and the functions that policies are written with.

What cannot be known stays the text `${…}`: exact, though unknown, never a wildcard.  Evaluates nothing that has an effect, reads no file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

#: gives the value of a traversal such as `aws_iam_role.x.arn`; raises KeyError where it is not known
Lookup = Callable[[str], Any]

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>-?\d+(?:\.\d+)?)
      | (?P<name>[A-Za-z_][A-Za-z0-9_-]*)
      | (?P<op>=>|==|!=|<=|>=|&&|\|\||[-+*/%!<>?:=,.()\[\]{}])
    )""",
    re.VERBOSE,
)
_SIGN = re.compile(r"[$%]")
_LITERALS: Final = {"true": True, "false": False, "null": None}
_DEPTH = 64


class _UnreadableError(Exception):
    """No value can be given."""


def evaluate(text: str, lookup: Lookup) -> Any:
    """The value of text as it stands in Terraform's JSON: `a-${b}`, `${c}` alone keeps its type, `$${` is `${`."""
    parts = _parts(text)
    if len(parts) == 1 and parts[0][0]:
        return _value_of(parts[0][1], lookup)
    return "".join(_as_text(_value_of(part, lookup)) if inner else part for inner, part in parts)


def unknown(value: object) -> bool:
    """Whether the value is a reference, or holds nothing but one."""
    return isinstance(value, str) and value.startswith("${") and _closing(value, 2) == len(value)


def reference(value: object) -> str:
    """`aws_iam_role.x.arn` of `${aws_iam_role.x.arn}`, "" of anything else."""
    if not unknown(value):
        return ""
    bare = str(value)[2:-1].strip()
    return bare if re.fullmatch(r"[A-Za-z_][\w.\-]*(?:\[[^\]]*\][\w.\-]*)*", bare) else ""


def _value_of(source: str, lookup: Lookup) -> Any:
    try:
        parser = _Parser(source, lookup)
        found = parser.expression()
        parser.end()
    except (_UnreadableError, RecursionError):
        return f"${{{source.strip()}}}"
    return found


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value)


def _parts(text: str) -> list[tuple[bool, str]]:
    """(is an expression, text) in order."""
    if "${" not in text and "%%{" not in text:
        return [(False, text)]
    out: list[tuple[bool, str]] = []
    plain, at = "", 0
    while at < len(text):
        if text.startswith(("$${", "%%{"), at):
            plain, at = plain + text[at + 1 : at + 3], at + 3
        elif text.startswith("${", at):
            end = _closing(text, at + 2)
            if plain:
                out.append((False, plain))
            out.append((True, text[at + 2 : end - 1]))
            plain, at = "", end
        else:
            ahead = _SIGN.search(text, at + 1)
            end = ahead.start() if ahead else len(text)
            plain, at = plain + text[at:end], end
    if plain or not out:
        out.append((False, plain))
    return out


def _closing(text: str, at: int) -> int:
    """Where the `}` that ends an expression begun before `at` is, plus one; the end of the text where there is none."""
    depth = 1
    while at < len(text):
        if text[at] == '"':
            at = _string_end(text, at + 1)
            continue
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
        if depth == 0:
            return at
    return len(text) + 1


def _string_end(text: str, at: int) -> int:
    """The place after the quote that ends a string begun before `at`."""
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text.startswith("${", at) and not text.startswith("$${", at - 1):
            at = _closing(text, at + 2)
        elif text[at] == '"':
            return at + 1
        else:
            at += 1
    return at


@dataclass(slots=True)
class _Parser:
    """Recursive descent over one expression; values as it goes."""

    source: str
    lookup: Lookup
    at: int = 0
    depth: int = 0

    def expression(self) -> Any:
        self.depth += 1
        if self.depth > _DEPTH:
            raise _UnreadableError
        found = self._comparison()
        if self._take("?"):
            chosen = self.expression()
            self._need(":")
            other = self.expression()
            if not isinstance(found, bool):
                raise _UnreadableError
            found = chosen if found else other
        self.depth -= 1
        return found

    def end(self) -> None:
        if self.source[self.at :].strip():
            raise _UnreadableError

    def _comparison(self) -> Any:
        left = self._primary()
        for sign, wanted in (("==", True), ("!=", False)):
            if self._take(sign):
                right = self._primary()
                if _holds_unknown(left) or _holds_unknown(right):
                    raise _UnreadableError
                return (left == right) is wanted
        return left

    def _primary(self) -> Any:
        self._space()
        if self.source.startswith('"', self.at):
            return self._string()
        if self._take("["):
            return self._list()
        if self._take("{"):
            return self._object()
        if self._take("("):
            found = self.expression()
            self._need(")")
            return found
        return self._word()

    def _word(self) -> Any:
        """A number, `true`, a call or a traversal."""
        token = _TOKEN.match(self.source, self.at)
        if token is None or token["op"]:
            raise _UnreadableError
        self.at = token.end()
        if token["number"]:
            return float(token["number"]) if "." in token["number"] else int(token["number"])
        name = token["name"]
        if self.source.startswith("(", self.at):
            self.at += 1
            return self._call(name)
        return _LITERALS[name] if name in _LITERALS else self._traversal(token.start("name"))

    def _traversal(self, start: int) -> Any:
        """`a.b["c"].d`, as a whole."""
        while self.at < len(self.source):
            step = re.compile(r"\.(?:[A-Za-z_][\w-]*|\d+|\*)").match(self.source, self.at)
            if step:
                self.at = step.end()
            elif self.source.startswith("[", self.at):
                self.at = _bracket_end(self.source, self.at + 1)
            else:
                break
        text = self.source[start : self.at]
        try:
            return self.lookup(text)
        except KeyError:
            return f"${{{text}}}"

    def _string(self) -> Any:
        end = _string_end(self.source, self.at + 1)
        body, self.at = self.source[self.at + 1 : end - 1], end
        parts = [
            (inner, part if inner else re.sub(r"\\(.)", _unescaped, part, flags=re.DOTALL))
            for inner, part in _parts(body)
        ]
        if len(parts) == 1 and parts[0][0]:
            return _value_of(parts[0][1], self.lookup)
        return "".join(_as_text(_value_of(part, self.lookup)) if inner else part for inner, part in parts)

    def _list(self) -> list[Any]:
        out: list[Any] = []
        while not self._take("]"):
            if re.match(r"\s*for\b", self.source[self.at :]):
                raise _UnreadableError
            out.append(self.expression())
            if not self._take(","):
                self._need("]")
                break
        return out

    def _object(self) -> dict[str, Any]:
        out: dict[str, Any] = {}
        while not self._take("}"):
            key = self._key()
            if not (self._take("=") or self._take(":")):
                raise _UnreadableError
            out[key] = self.expression()
            self._take(",")
        return out

    def _key(self) -> str:
        self._space()
        if self.source.startswith('"', self.at):
            return _as_text(self._string())
        if self._take("("):
            found = self.expression()
            self._need(")")
            return _as_text(found)
        token = _TOKEN.match(self.source, self.at)
        if token is None or not token["name"] or token["name"] == "for":
            raise _UnreadableError
        self.at = token.end()
        return token["name"]

    def _call(self, name: str) -> Any:
        given: list[Any] = []
        while not self._take(")"):
            given.append(self.expression())
            if not self._take(","):
                self._need(")")
                break
        function = FUNCTIONS.get(name)
        if function is None:
            raise _UnreadableError
        try:
            return function(given)
        except (ValueError, TypeError, IndexError, KeyError, AttributeError) as error:
            raise _UnreadableError from error

    def _space(self) -> None:
        found = re.compile(r"(?:\s|#[^\n]*|//[^\n]*)*").match(self.source, self.at)
        self.at = found.end() if found else self.at

    def _take(self, sign: str) -> bool:
        self._space()
        if not self.source.startswith(sign, self.at):
            return False
        if sign == "=" and self.source.startswith(("==", "=>"), self.at):
            return False
        self.at += len(sign)
        return True

    def _need(self, sign: str) -> None:
        if not self._take(sign):
            raise _UnreadableError


def _bracket_end(text: str, at: int) -> int:
    while at < len(text) and text[at] != "]":
        at = _string_end(text, at + 1) if text[at] == '"' else at + 1
    return at + 1


def _unescaped(found: re.Match[str]) -> str:
    return {"n": "\n", "t": "\t", "r": "\r"}.get(found[1], found[1])


def _holds_unknown(value: Any) -> bool:
    return "${" in json.dumps(value, default=str)


def _known(given: list[Any]) -> list[Any]:
    if any(unknown(value) for value in given):
        raise ValueError("unknown")
    return given


def _try(given: list[Any]) -> Any:
    """The first: a reference that is not known yet is expected to hold."""
    return given[0]


def _joined(given: list[Any]) -> str:
    return str(given[0]).join(_as_text(item) for item in cast("list[Any]", _known(given)[1]))


def _formatted(given: list[Any]) -> str:
    if set(re.findall(r"%(.)", given[0])) - {"s", "d", "%"}:
        raise ValueError(given[0])
    return str(given[0]).replace("%d", "%s") % tuple(_as_text(item) for item in given[1:])


def _concat(given: list[Any]) -> list[Any]:
    return [item for part in _known(given) for item in cast("list[Any]", part)]


def _merge(given: list[Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for part in _known(given):
        out.update(cast("Mapping[str, Any]", part))
    return out


def _only(given: list[Any]) -> Any:
    (one,) = given
    return one


def _decoded(given: list[Any]) -> Any:
    return json.loads(_known(given)[0])


def _encoded(given: list[Any]) -> str:
    # as a whole unknown, it is no JSON of anything yet
    return json.dumps(_known(given)[0])


def _replaced(given: list[Any]) -> str:
    whole, old, new = _known(given)
    if old.startswith("/") or "${" in whole:
        raise ValueError(old)
    return whole.replace(old, new)


FUNCTIONS: Final[Mapping[str, Callable[[list[Any]], Any]]] = {
    "concat": _concat,
    "compact": lambda given: [item for item in _known(given)[0] if item not in {"", None}],
    "distinct": lambda given: list(dict.fromkeys(_known(given)[0])),
    "flatten": lambda given: [
        item for part in _known(given)[0] for item in (cast("list[Any]", part) if isinstance(part, list) else [part])
    ],
    "format": _formatted,
    "join": _joined,
    "jsondecode": _decoded,
    "jsonencode": _encoded,
    "lower": lambda given: str(_known(given)[0]).lower(),
    "merge": _merge,
    "nonsensitive": _only,
    "replace": _replaced,
    "sensitive": _only,
    "tolist": _only,
    "tomap": _only,
    "toset": _only,
    "tostring": _only,
    "try": _try,
}
