"""YAML text -> a tree of values that know their line and column.

Decides what counts as a key, a null and a merge; every scalar stays the text that was written, so that `on` is no boolean and
`1.10` no number.  Knows no field of any format.  A tree may share nodes or contain itself (YAML aliases): readers take named fields and
never walk it whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import yaml

from planner.model.diagnostic import Diagnostic, Location

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_BYTES = 1_000_000
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_PLAIN_TAGS = frozenset({f"tag:yaml.org,2002:{kind}" for kind in ("str", "map", "seq")})
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value as it was written; `plain` tells `true` from `"true"`."""

    at: Location
    text: str
    plain: bool

    @property
    def is_null(self) -> bool:
        """Nothing was written, or `null`."""
        return self.plain and self.text in _NULLS


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list."""

    at: Location
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys in the order they were written, each with the place of the key."""

    at: Location
    entries: dict[str, Entry]


@dataclass(frozen=True, slots=True)
class Entry:
    """A key's place and its value."""

    key_at: Location
    value: Node


type_names = {Scalar: "a single value", Sequence: "a list", Mapping: "a mapping"}

Node = Scalar | Sequence | Mapping


def documents(text: str, file: str) -> tuple[tuple[Node, ...], tuple[Diagnostic, ...]]:
    """Every document of the file and all problems of YAML itself; documents before a syntax error are kept, empty ones left out."""
    problems: list[Diagnostic] = []
    if len(text) > MAX_BYTES:
        problems.append(_broken(Location(file, 1, 1), f"the file is larger than {MAX_BYTES // 1_000_000} MB"))
        return (), tuple(problems)
    raw: list[yaml.Node] = []
    try:
        raw.extend(_compose(text))
    except yaml.MarkedYAMLError as error:
        mark: Any = error.problem_mark or error.context_mark
        at = Location(file, mark.line + 1, mark.column + 1) if mark else Location(file, 1, 1)
        problems.append(
            _broken(at, _words_of(error), "indent with spaces, never with tabs" if _tabbed(text, at) else "")
        )
    except (yaml.YAMLError, UnicodeError, RecursionError) as error:
        problems.append(_broken(_bad_character(text, file), f"not YAML text ({type(error).__name__})"))
    tree = _Tree(file, problems)
    nodes = tuple(node for node in map(tree.node, raw) if not (isinstance(node, Scalar) and node.is_null))
    return nodes, tuple(problems)


def _compose(text: str) -> Iterator[yaml.Node]:
    compose: Callable[..., Iterator[yaml.Node]] = cast("Any", yaml).compose_all
    return compose(text, Loader=_LOADER)


def _words_of(error: yaml.MarkedYAMLError) -> str:
    words = " ".join(str(part) for part in (error.context, error.problem) if part)
    return f"not YAML: {words}" if words else "not YAML"


def _bad_character(text: str, file: str) -> Location:
    """Line of the first character that YAML does not admit."""
    for number, line in enumerate(text.split("\n"), 1):
        for column, char in enumerate(line, 1):
            if not (char.isprintable() or char in "\t\r\ufeff\x85\xa0"):
                return Location(file, number, column)
    return Location(file, 1, 1)


def _tabbed(text: str, at: Location) -> bool:
    """The line is indented with a tab."""
    line = text.split("\n")[at.line - 1] if at.line <= text.count("\n") + 1 else ""
    return "\t" in line[: len(line) - len(line.lstrip())]


def _broken(at: Location, summary: str, hint: str = "") -> Diagnostic:
    return Diagnostic(code="SKY-SPEC-101", summary=summary, location=at, hint=hint)


@dataclass(slots=True)
class _Tree:
    """PyYAML's nodes -> ours, each once, however often an alias names it."""

    file: str
    problems: list[Diagnostic]
    done: dict[int, Node] = field(default_factory=dict[int, "Node"])
    open: set[int] = field(default_factory=set[int])

    def at(self, node: yaml.Node) -> Location:
        mark: Any = node.start_mark
        return Location(self.file, mark.line + 1, mark.column + 1)

    def problem(self, node: yaml.Node, code: str, summary: str, hint: str = "") -> None:
        self.problems.append(Diagnostic(code=code, summary=summary, location=self.at(node), hint=hint))

    def node(self, node: yaml.Node) -> Node:
        known = self.done.get(id(node))
        if known is not None:
            return known
        if id(node) in self.open:
            self.problem(node, "SKY-SPEC-101", "an anchor contains itself", "write the value out")
            return Scalar(self.at(node), "", plain=True)
        self.open.add(id(node))
        made = self._make(node)
        self.open.discard(id(node))
        self.done[id(node)] = made
        return made

    def _make(self, node: yaml.Node) -> Node:
        if node.tag not in _PLAIN_TAGS and node.tag != "!":
            self.problem(node, "SKY-SPEC-104", "YAML tags such as `!!binary` are not supported", "leave the tag out")
        if isinstance(node, yaml.ScalarNode):
            style: Any = node.style
            return Scalar(self.at(node), str(node.value), plain=not style and node.tag != "!")
        if isinstance(node, yaml.SequenceNode):
            children = cast("list[yaml.Node]", node.value)
            return Sequence(self.at(node), tuple(self.node(child) for child in children))
        return Mapping(self.at(node), self._entries(node))

    def _entries(self, node: yaml.Node) -> dict[str, Entry]:
        own: dict[str, Entry] = {}
        merged: list[Mapping] = []
        for key, value in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
            if not isinstance(key, yaml.ScalarNode):
                self.problem(key, "SKY-SPEC-104", "a key must be a single value")
            elif key.value == "<<" and not cast("Any", key.style):
                merged += self._merge(value)
            elif key.value in own:
                first = own[key.value].key_at
                self.problem(key, "SKY-SPEC-110", f"key `{key.value}` is written twice, first in line {first.line}")
            else:
                own[str(key.value)] = Entry(self.at(key), self.node(value))
        for mapping in merged:
            for name, entry in mapping.entries.items():
                own.setdefault(name, entry)
        return own

    def _merge(self, node: yaml.Node) -> list[Mapping]:
        value = self.node(node)
        parts = value.items if isinstance(value, Sequence) else (value,)
        good = [part for part in parts if isinstance(part, Mapping)]
        if len(good) != len(parts):
            self.problem(node, "SKY-SPEC-104", "`<<` merges mappings only")
        return good
