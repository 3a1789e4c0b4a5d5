"""A job file as text: what was carried over, with a TODO where something was not said.

Decides the order of fields and how values are quoted so that the job file's own parser reads back exactly what was meant.  Each line remembers the place in
the source it comes from, so that what the parser finds wrong is told there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

import yaml

if TYPE_CHECKING:
    from planner.model.diagnostic import Location

#: fields in the order in which a job file is read
ORDER: Final = (
    *("name", "resources.accelerators", "resources.memory", "resources.cpus", "resources.disk", "resources.nodes"),
    *("resources.capacity", "resources.interconnect_sensitive", "work.hours", "work.on", "work.nodes", "image"),
    *(
        "workdir",
        "setup",
        "run",
        "env",
        "data",
        "checkpoint",
        "output",
        "constraints.deadline",
        "constraints.stop_after",
    ),
    *("constraints.max_usd_per_hour", "constraints.clouds", "constraints.regions", "constraints.instance_types"),
    *("tags", "priority"),
)
#: what may stand bare; what YAML or the job file would read as something else is quoted
_PLAIN: Final = re.compile(r"[A-Za-z0-9/][A-Za-z0-9._/+@-]*(?::(?!\s)[A-Za-z0-9._/+@-]+)*", re.ASCII)
_SPECIAL: Final = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n", "~"})
_WIDE: Final = 10**9


@dataclass(slots=True)
class Item:
    """A field's value, the place in the source it comes from, and what is to be done about it."""

    value: Any
    at: Location
    todo: str = ""


@dataclass(slots=True)
class Draft:
    """A job in the making.  `todo` are remarks that belong to no field."""

    at: Location
    items: dict[str, Item] = field(default_factory=dict[str, Item])
    todo: list[str] = field(default_factory=list[str])

    def put(self, path: str, value: Any, at: Location, todo: str = "") -> None:
        """Set a field."""
        if path not in ORDER:
            raise AssertionError(f"no such field: {path}")
        self.items[path] = Item(value, at, todo)

    def value(self, path: str) -> Any:
        """A field's value, None where it is absent."""
        return self.items[path].value if path in self.items else None


@dataclass(frozen=True, slots=True)
class Written:
    """The text, and for each of its lines the place it comes from."""

    text: str
    places: tuple[Location, ...]


def written(draft: Draft, head: tuple[str, ...]) -> Written:
    """The job file; `head` are its first comments."""
    lines = [(f"# {_one_line(text)}", draft.at) for text in (*head, *(f"TODO {todo}" for todo in draft.todo))]
    opened = ""
    for path in ORDER:
        item = draft.items.get(path)
        if item is None:
            continue
        group, _, key = path.rpartition(".")
        if group and group != opened:
            lines.append((f"{group}:", item.at))
        opened = group
        indent = "  " if group else ""
        lines += [(f"{indent}{line}" if line else "", item.at) for line in _field(key, item)]
    return Written("".join(f"{line}\n" for line, _ in lines), tuple(at for _, at in lines))


def _field(key: str, item: Item) -> list[str]:
    value, todo = item.value, f"  # TODO {_one_line(item.todo)}" if item.todo else ""
    if isinstance(value, str) and _literal(value):
        sign = "|" if value.endswith("\n") else "|-"
        return [f"{key}: {sign}{todo}", *(f"  {line}" if line else "" for line in value.removesuffix("\n").split("\n"))]
    if key in {"env", "tags"}:
        pairs = cast("dict[str, str]", value)
        return [f"{key}:{todo}", *(f"  {_text(name)}: {_text(text)}" for name, text in pairs.items())]
    if key == "data":
        return [f"{key}:{todo}", *(f"  - {_flow(one)}" for one in cast("list[Any]", value))]
    return [f"{key}: {_flow(value)}{todo}"]


def _literal(text: str) -> bool:
    """It may stand as a block, word for word."""
    lines = text.split("\n")
    return (
        len(lines) > 1
        and bool(lines[0].strip())
        and not lines[0][0].isspace()
        and not text.endswith("\n\n")
        and all(line.replace("\t", "").isprintable() for line in lines)
    )


def _flow(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:.12g}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_flow(v)}" for k, v in cast("dict[str, Any]", value).items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_flow(one) for one in cast("list[Any]", value)) + "]"
    return _text(str(value))


def _text(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _SPECIAL:
        return text
    dump: Any = cast("Any", yaml).safe_dump
    return str(dump(text, default_style='"', allow_unicode=True, width=_WIDE)).rstrip("\n")


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)
