"""Reading named fields of a mapping, gathering every problem at its place.

`Report` holds what was found; `Fields` takes fields by name, remembers where each stood, and names what was never taken.  A field that is
wrong gives a diagnostic and reads as absent, so that one pass finds everything.  Knows no field of any format.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from planner.model.diagnostic import Diagnostic, Location, Severity
from planner.spec import units
from planner.spec.near import did_you_mean, one_of
from planner.spec.secret import env_looks_secret, looks_secret, shown
from planner.spec.yaml_lines import Mapping, Node, Scalar, Sequence, type_names

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

T = TypeVar("T")


@dataclass(slots=True)
class Report:
    """Problems found so far, and `places`: field path -> where it stands, for checks that come after reading."""

    problems: list[Diagnostic] = field(default_factory=list[Diagnostic])
    places: dict[str, Location] = field(default_factory=dict[str, Location])

    def error(self, at: Location, code: str, summary: str, hint: str = "") -> None:
        """Add an error."""
        self.problems.append(Diagnostic(code=code, summary=summary, location=at, hint=hint))

    def warning(self, at: Location, code: str, summary: str, hint: str = "") -> None:
        """Add a warning."""
        self.problems.append(Diagnostic(code=code, summary=summary, location=at, hint=hint, severity=Severity.WARNING))

    @property
    def failed(self) -> bool:
        """An error is among the problems."""
        return any(p.severity is Severity.ERROR for p in self.problems)

    @contextmanager
    def reading(self, path: str, node: Scalar) -> Generator[None]:
        """Turns Malformed into a SKY-SPEC-105 at the node."""
        try:
            yield
        except units.Malformed as problem:
            self.error(node.at, "SKY-SPEC-105", f"`{path}`: {shown(node.text)} {problem}", problem.hint)

    def scalar(self, path: str, node: Node) -> Scalar | None:
        """The node where it is a single value; else an error."""
        if isinstance(node, Scalar):
            return node
        self.error(node.at, "SKY-SPEC-104", f"`{path}` must be a single value, not {type_names[type(node)]}")
        return None

    def text(self, path: str, node: Node) -> str | None:
        """A text that is not empty and holds no secret."""
        scalar = self.scalar(path, node)
        if scalar is None:
            return None
        if scalar.is_null or not scalar.text.strip():
            self.error(scalar.at, "SKY-SPEC-104", f"`{path}` is empty")
            return None
        if looks_secret(scalar.text):
            self.error(scalar.at, "SKY-SPEC-111", f"`{path}` holds what looks like a secret", "name it under `secrets`")
            return None
        if "\0" in scalar.text:
            self.error(scalar.at, "SKY-SPEC-105", f"`{path}` holds a NUL character")
            return None
        return scalar.text

    def choice(self, path: str, node: Node, known: Iterable[str]) -> str | None:
        """One of the words."""
        scalar = self.scalar(path, node)
        words = tuple(known)
        if scalar is None or scalar.text in words:
            return scalar.text if scalar else None
        self.error(
            scalar.at, "SKY-SPEC-105", f"`{path}`: {shown(scalar.text)} is not known", one_of(scalar.text, words)
        )
        return None

    def mapping(self, path: str, node: Node) -> Fields | None:
        """The node's fields where it is a mapping; else an error."""
        if isinstance(node, Mapping):
            return Fields(self, node, path)
        self.error(node.at, "SKY-SPEC-104", f"`{path}` must be a mapping, not {type_names[type(node)]}")
        return None

    def items(self, path: str, node: Node) -> tuple[Node, ...]:
        """The items of a list; what is no list counts as a list of one."""
        if isinstance(node, Sequence):
            if not node.items:
                self.error(node.at, "SKY-SPEC-105", f"`{path}` is an empty list", "leave it out where nothing is meant")
            return node.items
        return (node,)


@dataclass(slots=True)
class Fields:
    """The fields of one mapping.  `path` is its dotted name, "" at the top."""

    report: Report
    node: Mapping
    path: str = ""
    known: list[str] = field(default_factory=list[str])

    def name(self, key: str) -> str:
        """The dotted name of a field."""
        return f"{self.path}.{key}" if self.path else key

    def get(self, key: str, *, required: str = "") -> Node | None:
        """The field's node; None where it is absent or null.  `required` is the hint given where it is absent."""
        self.known.append(key)
        entry = self.node.entries.get(key)
        if entry is None or (isinstance(entry.value, Scalar) and entry.value.is_null):
            at = entry.value.at if entry else self.node.at
            if required:
                self.report.error(at, "SKY-SPEC-103", f"`{self.name(key)}` is missing", required)
            return None
        self.report.places[self.name(key)] = entry.value.at
        return entry.value

    def read(self, key: str, parse: Callable[[str], T], *, required: str = "") -> T | None:
        """A single value as `parse` reads it.  `parse` raises Malformed."""
        node = self.get(key, required=required)
        scalar = self.report.scalar(self.name(key), node) if node else None
        if scalar is not None:
            with self.report.reading(self.name(key), scalar):
                return parse(scalar.text)
        return None

    def text(self, key: str, *, required: str = "") -> str | None:
        """A text, as written."""
        node = self.get(key, required=required)
        return self.report.text(self.name(key), node) if node else None

    def choice(self, key: str, known: Iterable[str], *, required: str = "") -> str | None:
        """One of the words."""
        node = self.get(key, required=required)
        return self.report.choice(self.name(key), node, known) if node else None

    def boolean(self, key: str) -> bool | None:
        """`true` or `false`, nothing else."""
        node = self.get(key)
        scalar = self.report.scalar(self.name(key), node) if node else None
        if scalar is None:
            return None
        if scalar.plain and scalar.text in {"true", "false"}:
            return scalar.text == "true"
        summary = f"`{self.name(key)}` must be true or false, not {shown(scalar.text)}"
        self.report.error(scalar.at, "SKY-SPEC-104", summary, "write true or false, without quotes")
        return None

    def fields(self, key: str, *, required: str = "") -> Fields | None:
        """A mapping's fields."""
        node = self.get(key, required=required)
        return self.report.mapping(self.name(key), node) if node else None

    def items(self, key: str) -> tuple[tuple[str, Node], ...]:
        """(path, node) of each item of a list, or of the one value that stands for it."""
        node = self.get(key)
        if node is None:
            return ()
        return tuple((f"{self.name(key)}[{i}]", item) for i, item in enumerate(self.report.items(self.name(key), node)))

    def records(self, key: str) -> tuple[Fields, ...]:
        """The items of a list of mappings."""
        found = (self.report.mapping(path, node) for path, node in self.items(key))
        return tuple(f for f in found if f is not None)

    def words(self, key: str, parse: Callable[[str, Node], str | None]) -> tuple[str, ...]:
        """A list of words, sorted, each once: order means nothing.  Each word's place is remembered as `path=word`."""
        found: set[str] = set()
        for path, node in self.items(key):
            word = parse(path, node)
            if word is not None:
                found.add(word)
                self.report.places.setdefault(f"{self.name(key)}={word}", node.at)
        return tuple(sorted(found))

    def strings(
        self, key: str, *, check: Callable[[str, Location, str], bool] | None = None, secret_hint: str = ""
    ) -> tuple[tuple[str, str], ...]:
        """A mapping of texts, sorted by key.  Numbers and booleans are taken as they are written.  `check` judges a key."""
        fields = self.fields(key)
        if fields is None:
            return ()
        out: list[tuple[str, str]] = []
        for name, entry in sorted(fields.node.entries.items()):
            path = fields.name(name)
            scalar = self.report.scalar(path, entry.value)
            if check is not None and not check(name, entry.key_at, path):
                continue
            if scalar is None:
                continue
            if scalar.is_null or "\0" in scalar.text:
                self.report.error(scalar.at, "SKY-SPEC-104", f"`{path}` has no value", 'write "" for an empty text')
            elif env_looks_secret(name, scalar.text):
                self.report.error(scalar.at, "SKY-SPEC-111", f"`{path}` holds what looks like a secret", secret_hint)
            else:
                out.append((name, scalar.text))
        return tuple(out)

    def missing(self, what: str, hint: str) -> None:
        """A part of this mapping is missing."""
        self.report.error(self.node.at, "SKY-SPEC-103", f"`{self.path or 'the file'}`: {what} is missing", hint)

    def finish(self) -> None:
        """Report every field that nobody took, with near misses."""
        for key, entry in self.node.entries.items():
            if key not in self.known:
                hint = did_you_mean(key, self.known) or f"fields here are {', '.join(sorted(self.known))}"
                where = f" in `{self.path}`" if self.path else ""
                self.report.error(entry.key_at, "SKY-SPEC-102", f"field {shown(key)}{where} is not known", hint)
