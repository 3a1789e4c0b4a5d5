"""What became of each value of another tool's file.

Decides how values are accounted for: every leaf (a single value, or an empty list or mapping) is carried over, carried with a difference, or left out
with a reason, once; a leaf that nobody took is an error.  So nothing is dropped silently, not even what an importer forgot.  Knows no field of any format.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from planner.model.diagnostic import Diagnostic, Location, Severity
from planner.spec.near import did_you_mean
from planner.spec.secret import shown
from planner.spec.yaml_lines import Entry, Mapping, Node, Scalar, Sequence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: a file with more values than that (aliases of aliases can make billions) is refused
MAX_LEAVES: Final = 20_000


class Outcome(StrEnum):
    """What became of a value."""

    CARRIED = "carried"
    CHANGED = "changed"  # carried, but it does not mean quite the same here
    LEFT = "left"  # not carried over
    NOTE = "note"  # about something within a value that is accounted for elsewhere, such as a line of a script


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """One entry of the listing.  `to` is the job file's field, `needs` what the user would have to do, `leaves` the values it accounts for."""

    path: str
    at: Location
    outcome: Outcome
    to: str = ""
    why: str = ""
    needs: str = ""
    leaves: tuple[str, ...] = ()

    def placed(self, at: Location) -> Carried:
        """The same at another place."""
        return replace(self, at=at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsaid:
    """Something a job file must say and theirs does not: what stands there now, and why that."""

    field: str
    at: Location
    stated: str
    why: str


@dataclass(slots=True)
class Book:
    """Everything found about one document.  `tool` is the name of theirs, for messages."""

    tool: str
    entries: list[Carried] = field(default_factory=list[Carried])
    unsaid: list[Unsaid] = field(default_factory=list[Unsaid])
    problems: list[Diagnostic] = field(default_factory=list[Diagnostic])
    taken: set[str] = field(default_factory=set[str])

    @property
    def failed(self) -> bool:
        """An error was found."""
        return any(p.severity is Severity.ERROR for p in self.problems)

    def error(self, at: Location, why: str, hint: str, code: str = "SKY-SPEC-105") -> None:
        """The document cannot be imported for this reason."""
        self.problems.append(Diagnostic(code=code, summary=why, location=at, hint=hint))

    def note(self, path: str, at: Location, why: str, needs: str) -> None:
        """List something within a value that is carried as it is."""
        self.entries.append(Carried(path=path, at=at, outcome=Outcome.NOTE, why=why, needs=needs))

    def take(self, entry: Carried) -> None:
        """Account for the entry's leaves."""
        twice = self.taken.intersection(entry.leaves)
        if twice:
            raise AssertionError(f"accounted for twice: {', '.join(sorted(twice))}")
        self.taken.update(entry.leaves)
        self.entries.append(entry)

    def rest(self, root: Part, known: Iterable[str], inner: Iterable[str] = ()) -> None:
        """An error for each value that nobody took; `known` are the top's fields, for near misses, `inner` those of its `resources`."""
        for part in _untaken(root, self.taken):
            hint = did_you_mean(part.key, known) or f"the importer knows {self.tool}'s documented fields; take it out"
            if part.path == part.key and part.key in inner:
                hint = "indent it: it belongs under `resources`"
            self.error(part.at, f"`{part.path}` is no field of {self.tool} that is known", hint, "SKY-SPEC-102")
            self.taken.update(part.leaves())


@dataclass(frozen=True, slots=True)
class Part:
    """A value with its place and its dotted path."""

    book: Book
    node: Node
    at: Location
    path: str = ""
    key: str = ""

    @property
    def scalar(self) -> str | None:
        """The text of a single value that is not null."""
        return self.node.text if isinstance(self.node, Scalar) and not self.node.is_null else None

    @property
    def is_null(self) -> bool:
        """Nothing was written."""
        return isinstance(self.node, Scalar) and self.node.is_null

    @property
    def shown(self) -> str:
        """The value for a message."""
        return shown(self.node.text) if isinstance(self.node, Scalar) else "what stands there"

    def entries(self) -> dict[str, Part]:
        """The values of a mapping, by key; empty for anything else."""
        if not isinstance(self.node, Mapping):
            return {}
        return {key: self._under(key, entry) for key, entry in self.node.entries.items()}

    def items(self) -> tuple[Part, ...]:
        """The items of a list; a single value stands for a list of one."""
        if not isinstance(self.node, Sequence):
            return (self,)
        return tuple(
            Part(self.book, item, item.at, f"{self.path}[{at}]", self.key) for at, item in enumerate(self.node.items)
        )

    def get(self, key: str) -> Part | None:
        """The value under a key; None where it is absent."""
        entry = self.node.entries.get(key) if isinstance(self.node, Mapping) else None
        return self._under(key, entry) if entry else None

    def _under(self, key: str, entry: Entry) -> Part:
        return Part(self.book, entry.value, entry.key_at, _joined(self.path, key), key)

    def leaves(self) -> tuple[str, ...]:
        """The paths of all values within, this one's own if it holds none."""
        return tuple(part.path for part in _leaves(self))

    def carry(self, to: str) -> None:
        """It stands in the job file under `to`, meaning the same."""
        self._take(Outcome.CARRIED, to=to)

    def change(self, to: str, why: str, needs: str = "") -> None:
        """It stands in the job file under `to`, and this is the difference."""
        self._take(Outcome.CHANGED, to=to, why=why, needs=needs)

    def leave(self, why: str, needs: str = "") -> None:
        """It is not carried over."""
        self._take(Outcome.LEFT, why=why, needs=needs)

    def leave_rest(self, why: str, needs: str = "") -> None:
        """What was not accounted for of it is not carried over."""
        for part in _untaken(self, self.book.taken):
            part.leave(why, needs)

    def refuse(self, why: str, hint: str, code: str = "SKY-SPEC-105") -> None:
        """The document cannot be imported because of it."""
        self.book.taken.update(self.leaves())
        self.book.error(self.at, why, hint, code)

    def _take(self, outcome: Outcome, *, to: str = "", why: str = "", needs: str = "") -> None:
        self.book.take(
            Carried(path=self.path, at=self.at, outcome=outcome, to=to, why=why, needs=needs, leaves=self.leaves())
        )


def too_large(node: Node) -> bool:
    """It holds more values than anybody writes by hand."""
    todo: list[Node] = [node]
    seen = 0
    while todo:
        one = todo.pop()
        seen += 1
        if seen > MAX_LEAVES:
            return True
        if isinstance(one, Mapping):
            todo += [entry.value for entry in one.entries.values()]
        elif isinstance(one, Sequence):
            todo += one.items
    return False


def _joined(path: str, key: str) -> str:
    """A dotted path; a key that could be taken for one, such as a folder, stands in brackets and quotes."""
    if re.fullmatch(r"[A-Za-z0-9_-]+", key, re.ASCII):
        return f"{path}.{key}" if path else key
    return f"{path}[{json.dumps(key)}]"


def _leaves(part: Part) -> Iterator[Part]:
    below = _below(part)
    if not below:
        yield part
    for child in below:
        yield from _leaves(child)


def _below(part: Part) -> tuple[Part, ...]:
    return part.items() if isinstance(part.node, Sequence) else tuple(part.entries().values())


def _untaken(part: Part, taken: set[str]) -> Iterator[Part]:
    """The topmost parts of which nothing was taken."""
    missing = [leaf for leaf in part.leaves() if leaf not in taken]
    if not missing:
        return
    if part.path and len(missing) == len(part.leaves()):
        yield part
        return
    for child in _below(part):
        yield from _untaken(child, taken)
