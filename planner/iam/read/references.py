"""The blocks of one Terraform document and what they say of each other: a reference is given its value where the document lets it be known.

Names, paths and ARNs are known; ids that a cloud makes up are not and stay `${…}`.  A document of an applied plan or of a state is literal: only
references that were filled in for values still unknown are looked at there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from planner.iam.read.expressions import evaluate, reference
from planner.iam.read.lines import Path
from planner.model.diagnostic import Location

_STEP = re.compile(r"""\.([A-Za-z_][\w-]*|\d+|\*)|\[(?:"((?:[^"\\]|\\.)*)"|(\d+)|([^\]]*))\]""")
_LITERAL_INDEX = re.compile(r"""\[(?:\d+|"[^"]*")\]""")
_LONGEST_CHAIN = 40


class Unknown(str):
    """A reference that stands for a value which a plan does not know yet."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One resource or data source.

    address  `module.a.aws_iam_role.x["k"]`, `data.…`
    module   "" at the root, else `module.a`
    literal  its values are no Terraform text: only `Unknown` is a reference
    path     where it stands in the document
    """

    type: str
    name: str
    address: str
    values: Mapping[str, Any]
    is_data: bool = False
    module: str = ""
    literal: bool = False
    path: Path = ()

    @property
    def key(self) -> str:
        """Its address without index and module."""
        return f"{'data.' if self.is_data else ''}{self.type}.{self.name}"


Computed = Callable[["Document", Block, str], Any]


@dataclass(slots=True, kw_only=True)
class Document:
    """What was read.

    label      what origins begin with: the stack's name, or the file's
    stack      name of skyplan's stack, "" for a document of somebody else
    scopes     module -> names (`var.x`, `local.y`) -> (value, the module that it is written in)
    providers  name -> its arguments
    computed   type -> what the cloud makes of a block: raises KeyError for what is not known
    """

    file: str
    label: str
    blocks: tuple[Block, ...]
    stack: str = ""
    scopes: Mapping[str, Mapping[str, tuple[Any, str]]] = field(
        default_factory=dict[str, Mapping[str, tuple[Any, str]]]
    )
    providers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    lines: Mapping[Path, int] = field(default_factory=dict[Path, int])
    computed: Mapping[str, Computed] = field(default_factory=dict[str, Computed])
    unread: list[str] = field(default_factory=list[str])
    _by_key: dict[tuple[str, str], list[Block]] = field(default_factory=dict[tuple[str, str], list[Block]])
    _by_name: dict[str, list[Block]] | None = None
    _depth: int = 0

    def __post_init__(self) -> None:
        for block in self.blocks:
            self._by_key.setdefault((block.module, block.key), []).append(block)

    def of(self, *types: str, data: bool = False) -> Iterator[Block]:
        """Blocks of these types, in order."""
        return (block for block in self.blocks if block.type in types and block.is_data is data)

    def origin(self, block: Block) -> str:
        """Where it was found, stable over moved lines."""
        return f"{self.label} {block.address}"

    def location(self, block: Block, *more: str | int) -> Location | None:
        """Its place; of a part of it where that has a line.  None where there is no file."""
        if not self.file:
            return None
        line = self.lines.get((*block.path, *more)) or self.lines.get(block.path, 0)
        return Location(self.file, line)

    def value(self, block: Block, name: str, default: Any = None) -> Any:
        """An argument, with every reference that is known resolved, at any depth."""
        raw = block.values.get(name)
        return default if raw is None else self.resolved(raw, block)

    def text(self, block: Block, name: str) -> str:
        """An argument as text; "" where it is not said."""
        found = self.value(block, name)
        return "" if found is None else str(found)

    def items(self, block: Block, name: str) -> list[dict[str, Any]]:
        """Nested blocks, written as one object or as a list of them."""
        return objects(self.value(block, name))

    def words(self, block: Block, name: str) -> tuple[str, ...]:
        """A list of text; one reference to an unknown list is one word."""
        return words(self.value(block, name))

    def resolved(self, raw: Any, block: Block) -> Any:
        """The value with references resolved."""
        return self._resolved(raw, block.module, literal=block.literal)

    def _resolved(self, raw: Any, module: str, *, literal: bool) -> Any:
        if isinstance(raw, str):
            return raw if literal and not isinstance(raw, Unknown) else evaluate(raw, lambda t: self.lookup(t, module))
        if isinstance(raw, list):
            return [self._resolved(item, module, literal=literal) for item in cast("list[Any]", raw)]
        if isinstance(raw, dict):
            pairs = cast("dict[str, Any]", raw).items()
            return {key: self._resolved(item, module, literal=literal) for key, item in pairs}
        return raw

    def target(self, block: Block, name: str, *types: str) -> Block | None:
        """The block of one of these types that an argument refers to: by reference, or by what it is called."""
        return self.aimed(block.values.get(name), block, *types)

    def aimed(self, raw: Any, block: Block, *types: str) -> Block | None:
        """The same of a value."""
        for item in many(raw)[:1]:
            if isinstance(item, str):
                return self._aimed(item, block, types)
        return None

    def _aimed(self, raw: str, block: Block, types: tuple[str, ...]) -> Block | None:
        seen, module = raw, block.module
        for _ in range(_LONGEST_CHAIN):
            traversal = reference(seen) if not block.literal or isinstance(raw, Unknown) else ""
            if not traversal:
                break
            found = self._found(traversal, module, like=block)
            if found is not None:
                return found[0] if found[0].type in types else None
            named = self._named(traversal, module)
            if named is None or not isinstance(named[0], str):
                return None
            seen, module = named
        known = self.resolved(raw, block)
        return self.called(str(known), *types) if isinstance(known, str) else None

    def called(self, known: str, *types: str) -> Block | None:
        """The block of one of these types whose name, ARN, email or id this is."""
        if self._by_name is None:
            self._by_name = {}
            for block in self.blocks:
                for name in self._names(block) if not block.is_data else ():
                    self._by_name.setdefault(name, []).append(block)
        return next((block for block in self._by_name.get(known, ()) if block.type in types), None)

    def _names(self, block: Block) -> set[str]:
        out: set[str] = set()
        for name in ("id", "arn", "name", "email", "member", "account_id", "principal_id", "role_id"):
            try:
                out.add(str(self.attribute(block, name)))
            except KeyError:
                continue
        return out - {""}

    def lookup(self, traversal: str, module: str = "") -> Any:
        """The value of `aws_iam_role.x.arn`, `var.y`, `local.z.a[0]`.  Raises KeyError where it is not known."""
        if self._depth > _LONGEST_CHAIN:
            raise KeyError(traversal)
        self._depth += 1
        try:
            return self._looked_up(traversal, module)
        finally:
            self._depth -= 1

    def _looked_up(self, traversal: str, module: str) -> Any:
        found = self._found(traversal, module)
        if found is not None:
            block, rest = found
            steps = _steps(rest)
            if not steps:
                raise KeyError(traversal)
            return _walked(self.attribute(block, str(steps[0])), steps[1:])
        named = self._named(traversal, module)
        if named is None:
            raise KeyError(traversal)
        head = ".".join(traversal.split(".")[:2]).split("[")[0]
        return _walked(self._resolved(named[0], named[1], literal=False), _steps(traversal[len(head) :]))

    def attribute(self, block: Block, name: str) -> Any:
        """An argument of a block, or what its cloud makes of it.  Raises KeyError."""
        if block.values.get(name) is not None:
            return self.value(block, name)
        computed = self.computed.get(block.key.rpartition(".")[0])
        if computed is None:
            raise KeyError(name)
        return computed(self, block, name)

    def _found(self, traversal: str, module: str, like: Block | None = None) -> tuple[Block, str] | None:
        """The block that a traversal begins with, and what follows.  Of several instances, with no index said but `count.index`, that of `like`."""
        words_of = re.match(r"(?:data\.)?[A-Za-z_][\w-]*\.[A-Za-z_][\w-]*", traversal)
        if words_of is None:
            return None
        held = self._by_key.get((module, words_of[0]))
        if not held:
            return None
        rest = traversal[words_of.end() :]
        index = re.match(r"\[[^\]]*\]", rest)
        if index:
            rest = rest[index.end() :]
        said = index is not None and _LITERAL_INDEX.fullmatch(index[0]) is not None
        wanted = (
            index[0] if index and said else like.address.removeprefix(like.module).partition("[")[2] if like else ""
        )
        same = [block for block in held if wanted and block.address.endswith(wanted)]
        return (same or held)[0], rest

    def _named(self, traversal: str, module: str) -> tuple[Any, str] | None:
        found = re.match(r"(?:var|local)\.[A-Za-z_][\w-]*", traversal)
        return self.scopes.get(module, {}).get(found[0]) if found else None


def many(value: Any) -> list[Any]:
    """A list of what is one or many; [] of None."""
    if value is None:
        return []
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of one or many."""
    return [cast("dict[str, Any]", item) for item in many(value) if isinstance(item, dict)]


def words(value: Any) -> tuple[str, ...]:
    """Text of one or many, without what is none."""
    return tuple(str(item) for item in many(value) if item is not None)


def _steps(rest: str) -> list[str | int]:
    out: list[str | int] = []
    for step in _STEP.finditer(rest):
        word = step[1] or step[2] or step[3] or step[4]
        out.append(int(word) if word.isdigit() else word)
    return out


def _walked(value: Any, steps: list[str | int]) -> Any:
    for step in steps:
        if isinstance(value, dict) and str(step) in value:
            value = cast("dict[str, Any]", value)[str(step)]
        elif isinstance(value, list) and isinstance(step, int) and step < len(cast("list[Any]", value)):
            value = cast("list[Any]", value)[step]
        else:
            raise KeyError(step)
    return value
