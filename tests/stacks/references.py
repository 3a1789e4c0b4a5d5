"""What the `${…}` of a stack point at, and whether it is there.  A small reader of Terraform's expressions, enough for what stacks write.

Understood: names with attributes and indices, strings with expressions in them, calls, operators, object keys, `for` over one or two names.
A name is a variable, a resource, a data source, `each` (only with `for_each`), or bound by a `for`; anything else is a problem.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

Document = dict[str, Any]
Schemas = Callable[[str], Document]

_CHAIN = re.compile(r"(?<![\w.\-])([A-Za-z_][\w-]*)((?:\.[A-Za-z_][\w-]*|\[[^\[\]]*\])*)")
_FOR = re.compile(r"\bfor\s+([\w-]+)(?:\s*,\s*([\w-]+))?\s+in\s+([\w.-]+)")
_WORDS = {"for", "in", "if", "null", "true", "false"}
_FUNCTIONS = {"concat", "format", "join", "replace", "slice", "split", "toset", "try"}


def reference_problems(document: Document, schemas: Schemas) -> list[str]:
    """Every reference that leads nowhere."""
    found = _Found(document, schemas)
    return list(found.all())


class _Found:
    def __init__(self, document: Document, schemas: Schemas) -> None:
        self._document, self._schemas = document, schemas
        self._declared: dict[str, tuple[str, str, Document]] = {}
        for section, prefix in (("resource", ""), ("data", "data.")):
            for kind, named in document.get(section, {}).items():
                for name, body in named.items():
                    self._declared[f"{prefix}{kind}.{name}"] = (section, kind, body)

    def all(self) -> Iterator[str]:
        for address, (_, _, body) in self._declared.items():
            after = body.get("depends_on", [])
            for other in after if isinstance(after, list) else ["?"]:
                if other not in self._declared:
                    yield f"{address}: depends on {other}, which is not there"
            yield from self._walk(body, address, body.get("for_each"))
        for section in ("output", "provider"):
            for name, body in self._document.get(section, {}).items():
                yield from self._walk(body, f"{section} {name}", None)

    def _walk(self, value: Any, at: str, each: Any) -> Iterator[str]:
        if isinstance(value, str):
            for expression in expressions(value):
                for problem in self._expression(expression, each):
                    yield f"{at}: {problem} in {value!r}"
        elif isinstance(value, dict | list):
            for inner in value.values() if isinstance(value, dict) else value:
                yield from self._walk(inner, at, each)

    def _expression(self, expression: str, each: Any, outer: dict[str, str] | None = None) -> Iterator[str]:
        bare, strings = without_strings(expression)
        bound = dict(outer or {})
        for text in strings:
            for inner in expressions(text):
                yield from self._expression(inner, each, bound)
        for first, second, over in _FOR.findall(bare):
            bound[first] = "" if second else over
            if second:
                bound[second] = over
        for match in _CHAIN.finditer(bare):
            root, rest = match[1], match[2]
            after = bare[match.end() :].lstrip()
            if root in _WORDS or (after.startswith("=") and not after.startswith(("==", "=>")) and not rest):
                continue
            if after.startswith("(") and not rest:
                if root not in _FUNCTIONS:
                    yield f"function {root}"
                continue
            for index in re.findall(r"\[([^\[\]]*)\]", rest):
                yield from self._expression(index, each, bound)
            if root in bound:
                yield from self._bound(bound[root], rest)
            else:
                yield from self._name(root, rest, strings, each)

    def _bound(self, over: str, rest: str) -> Iterator[str]:
        """A name that a `for` runs over the instances of a resource."""
        if over in self._declared and rest:
            _, kind, body = self._declared[over]
            if "for_each" not in body:
                yield f"`for` over {over}, which is one"
            yield from self._attribute(over, kind, rest)

    def _name(self, root: str, rest: str, strings: list[str], each: Any) -> Iterator[str]:
        parts = re.findall(r"\.([\w-]+)|\[([^\[\]]*)\]", rest)
        if root == "var":
            if parts[:1] == [] or parts[0][0] not in self._document.get("variable", {}):
                yield f"no variable {rest}"
        elif root == "each":
            yield from self._each(rest, each)
        else:
            start = 2 if root == "data" else 1
            address = ".".join([root, *(part[0] for part in parts[:start])])
            if address not in self._declared:
                yield f"{address} is not there"
                return
            _, kind, body = self._declared[address]
            left = re.sub(r"^(?:\.[\w-]+){" + str(start) + "}", "", rest)
            index = re.match(r"\[([^\[\]]*)\]", left)
            if left and bool(index) != ("for_each" in body):
                yield f"{address} {'is many' if 'for_each' in body else 'is one'}"
                return
            if index:
                left = left[index.end() :]
                key = _string(index[1], strings)
                if key is not None and isinstance(body["for_each"], dict) and key not in body["for_each"]:
                    yield f"{address} has no {key}"
            yield from self._attribute(address, kind, left)

    def _each(self, rest: str, each: Any) -> Iterator[str]:
        if not isinstance(each, str | dict):
            yield f"each{rest} without for_each"
        elif not rest.startswith((".key", ".value")):
            yield f"each{rest}"
        elif rest.startswith(".value."):
            name = rest.removeprefix(".value.").split(".")[0]
            if isinstance(each, dict):
                if not all(isinstance(value, dict) and name in value for value in each.values()):
                    yield f"each.value has no {name}"
                return
            over = each.removeprefix("${").removesuffix("}")
            if over in self._declared:
                yield from self._attribute(over, self._declared[over][1], f".{name}")

    def _attribute(self, address: str, kind: str, rest: str) -> Iterator[str]:
        first = re.match(r"\.([\w-]+)", rest)
        if first is None:
            return
        group = "data" if address.startswith("data.") else "resources"
        provider = kind.split("_", 1)[0]
        body = self._schemas(provider)[group].get(kind) if provider else None
        known = {**body["attributes"], **body["blocks"], **body.get("computed", {})} if body else {}
        if first[1] not in known:
            yield f"{address} has no {first[1]}"


def _string(index: str, strings: list[str]) -> str | None:
    """The literal key of an index; None for an expression."""
    found = re.fullmatch(r'\s*"(\d+)"\s*', index)
    text = strings[int(found[1])] if found else None
    return None if text is None or "${" in text else text


def expressions(text: str) -> Iterator[str]:
    """What stands in each `${…}`; `$${` is a word.  Raises ValueError for one that does not end."""
    place = 0
    while (start := text.find("${", place)) >= 0:
        if start and text[start - 1] == "$":
            place = start + 2
            continue
        end = _end(text, start + 2)
        yield text[start + 2 : end]
        place = end + 1


def _end(text: str, start: int) -> int:
    depth, quoted, place = 1, False, start
    while place < len(text):
        sign = text[place]
        if quoted and sign == "\\":
            place += 1
        elif quoted and text.startswith("${", place):
            place = _end(text, place + 2)
        elif sign == '"':
            quoted = not quoted
        elif not quoted:
            depth += (sign == "{") - (sign == "}")
            if depth == 0:
                return place
        place += 1
    raise ValueError(f"no end: {text[start:]}")


def without_strings(expression: str) -> tuple[str, list[str]]:
    """The expression with each string replaced by `"N"`, and the strings."""
    out: list[str] = []
    strings: list[str] = []
    place = 0
    while place < len(expression):
        if expression[place] != '"':
            out.append(expression[place])
            place += 1
            continue
        end = place + 1
        while expression[end] != '"':
            if expression.startswith("${", end):
                end = _end(expression, end + 2)
            end += 2 if expression[end] == "\\" else 1
        strings.append(expression[place + 1 : end])
        out.append(f'"{len(strings) - 1}"')
        place = end + 1
    return "".join(out), strings
