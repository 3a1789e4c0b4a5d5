"""Terraform values as HCL text: templates, literals, objects, lists; laid out as `terraform fmt` leaves them.

In Terraform JSON a text is a template wherever an expression may stand, and a literal where none may (descriptions, defaults, versions).
A template that is nothing but one `${…}` is written as that expression.  What is inside `${…}` is never read, only carried over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

WIDTH = 100
"""A list of plain values stays on one line up to here."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
#: names that mean something else at the beginning of an object
_RESERVED = frozenset({"for", "if", "in", "true", "false", "null"})
_SEQUENCE = re.compile(r"[$%]\{")
_LONE_RETURN = re.compile(r"\r(?!\n)")
_OPENING = re.compile(r"([$%])\1*(?=\{)")
_ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t", '"': r"\"", "\\": r"\\"}


class Raw(str):
    """Text that stands as it is: a reference where no text may stand."""

    __slots__ = ()


class Literal(str):
    """Text in which `${` and `%{` mean themselves."""

    __slots__ = ()


class Line(NamedTuple):
    """An attribute: `key = value`, the value's further lines included."""

    key: str
    value: str


def literal(value: Any) -> Any:
    """The value with every text in it, at any depth, taken as it stands."""
    if isinstance(value, str):
        return Literal(value)
    if isinstance(value, dict):
        return {Literal(key): literal(inner) for key, inner in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [literal(inner) for inner in cast("list[Any]", value)]
    return value


def attributes(lines: Iterable[Line]) -> list[str]:
    """Lines of a body; `=` stands in one column for neighbours of one line each."""
    out: list[str] = []
    chain: list[Line] = []
    for line in lines:
        if "\n" in line.value:
            out += [*_aligned(chain), *f"{line.key} = {line.value}".split("\n")]
            chain = []
        else:
            chain.append(line)
    return out + _aligned(chain)


def _aligned(chain: list[Line]) -> list[str]:
    width = max((len(line.key) for line in chain), default=0)
    return [f"{line.key:<{width}} = {line.value}" for line in chain]


def expression(value: Any) -> str:
    """A value as HCL.  Raises ValueError for what Terraform JSON cannot hold, and for a template that does not end."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return _object(cast("dict[str, Any]", value))
    if isinstance(value, list):
        return _list(cast("list[Any]", value))
    return json.dumps(value, allow_nan=False)


def _text(value: str) -> str:
    if isinstance(value, Raw):
        return str(value)
    if not isinstance(value, Literal):
        parts = list(template(value))
        if len(parts) == 1 and parts[0].startswith("${"):
            inner = _spaced(parts[0][2:-1].strip())
            return f"({inner})" if "\n" in inner else inner
    return quoted(value)


def quoted(value: str) -> str:
    """A quoted template, or of a Literal a quoted text."""
    if isinstance(value, Literal):
        return f'"{_OPENING.sub(_closed, _escaped(value))}"'
    return (
        '"' + "".join(_sequence(part) if part[:2] in {"${", "%{"} else _escaped(part) for part in template(value)) + '"'
    )


def _closed(found: re.Match[str]) -> str:
    """What would open a sequence, as text: `$${`; signs before it by number, since `$$${` would be read from its front."""
    sign = found[1]
    return _code(sign) * (len(found[0]) - 1) + sign * 2


def _sequence(part: str) -> str:
    """`${…}` as `terraform fmt` has it; a directive as it is."""
    if part.startswith("%{"):
        return part
    inner = _spaced(part[2:-1].strip())
    return f"${{ {inner}}}" if inner.startswith("{") else f"${{{inner}}}"


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(c) or (c if c.isprintable() else _code(c)) for c in text)


def _code(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"  # noqa: PLR2004 - the plane that four digits reach


def template(text: str) -> Iterator[str]:
    """The parts of a template: literal text, escapes `$${` with it, and sequences `${…}` or `%{…}` whole.

    Raises ValueError where one does not end, and for a lone carriage return beside one: Terraform reads what follows it in one way in JSON and in another in HCL.
    """
    if _LONE_RETURN.search(text) and _SEQUENCE.search(text):
        raise ValueError(f"a template with a carriage return that no newline follows: {text!r}")
    start = at = 0
    while at < len(text):
        if text.startswith(("$${", "%%{"), at):
            at += 3
        elif text.startswith(("${", "%{"), at):
            if at > start:
                yield text[start:at]
            start, at = at, _end(text, at + 2)
            yield text[start:at]
            start = at
        else:
            at += 1
    if at > start:
        yield text[start:at]


def _end(text: str, at: int) -> int:
    """Behind the `}` that closes what was opened before `at`; braces and quoted texts inside are passed over."""
    depth = 1
    while at < len(text):
        c = text[at]
        if c == '"':
            at = _end_of_quoted(text, at + 1)
            continue
        depth += (c == "{") - (c == "}")
        at += 1
        if not depth:
            return at
    raise ValueError(f"a template does not end: {text!r}")


def _spaced(text: str) -> str:
    """An expression with a space inside of each brace, as `terraform fmt` has it."""
    out, at = "", 0
    while at < len(text):
        c = text[at]
        if c == '"':
            end = _end_of_quoted(text, at + 1)
            out += text[at:end]
            at = end
            continue
        if c == "}" and not out.endswith(("{", " ")):
            out += " "
        out += c
        at += 1
        if c == "{" and at < len(text) and text[at] not in " }\n":
            out += " "
    return out


def _end_of_quoted(text: str, at: int) -> int:
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text.startswith(("$${", "%%{"), at):
            at += 3
        elif text.startswith(("${", "%{"), at):
            at = _end(text, at + 2)
        elif text[at] == '"':
            return at + 1
        else:
            at += 1
    raise ValueError(f"a template does not end: {text!r}")


def key(name: str) -> str:
    """A key of an object: bare where it is a name, an expression in parentheses, or quoted and plain ASCII, so that columns can be counted."""
    if _NAME.fullmatch(name) and name not in _RESERVED:
        return name
    if not isinstance(name, Literal):
        parts = list(template(name))
        if len(parts) == 1 and parts[0].startswith("${"):
            return f"({_spaced(parts[0][2:-1].strip())})"
    return "".join(c if c.isascii() else _code(c) for c in quoted(name))


def _object(value: dict[str, Any]) -> str:
    if not value:
        return "{}"
    lines = attributes(Line(key(name), expression(inner)) for name, inner in sorted(value.items()))
    return "\n".join(["{", *(f"  {line}" for line in lines), "}"])


def _list(value: list[Any]) -> str:
    inner = [expression(item) for item in value]
    short = f"[{', '.join(inner)}]"
    if len(short) <= WIDTH and "\n" not in short and "{" not in short:
        return short
    lines = [line for item in inner for line in f"{item},".split("\n")]
    return "\n".join(["[", *(f"  {line}" for line in lines), "]"])
