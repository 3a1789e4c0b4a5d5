"""Resources against their provider's schema, before Terraform sees them: names, types, what is required.

The shipped schema files (`schemas/PROVIDER.json.gz`, made by `schemas/update.py`) hold the types that `modules` uses.  What they cannot know
(conflicts between arguments, allowed values) `terraform validate` says.  A mismatch is a mistake in a module, not in a user's file: it is
raised as a TypeError, as a wrong keyword argument would be, with every problem of the resource at once.
"""

from __future__ import annotations

import difflib
import gzip
import json
import re
import warnings
from functools import cache
from importlib.resources import files
from typing import Any, cast

Body = dict[str, Any]

#: providers whose nested objects are attributes (plugin framework): there one expression may stand for a whole object or list
NESTED_ATTRIBUTES = frozenset({"nebius"})


class SchemaMismatch(TypeError):
    """A resource that its provider would refuse; `problems` names each."""

    def __init__(self, address: str, problems: list[str]) -> None:
        self.address = address
        self.problems = tuple(problems)
        super().__init__(f"{address}: " + "; ".join(problems))


class SchemaWarning(UserWarning):
    """An argument that the shipped schema does not know, while another provider version is asked for."""


class Schema:
    """The schema of one provider.  `exact` is the version the user pinned, or None for a range that admits the shipped one."""

    def __init__(self, document: Body, exact: str | None = None) -> None:
        self.provider: str = document["provider"]
        self.version: str = document["version"]
        self._resources: dict[str, Body] = document["resources"]
        self._data: dict[str, Body] = document.get("data", {})
        self._other = exact if exact is not None and exact != self.version else None

    def check_resource(self, kind: str, attributes: Body, address: str) -> None:
        """Raises SchemaMismatch; warns with SchemaWarning where only another provider version could know better."""
        self._check(self._resources, "resource", kind, attributes, address)

    def check_data(self, kind: str, attributes: Body, address: str) -> None:
        """The same for a data source."""
        self._check(self._data, "data source", kind, attributes, address)

    def shape(self, kind: str, *, data: bool = False) -> Body:
        """`attributes` and `blocks` of a resource or data source, blocks nested.  Raises KeyError."""
        return (self._data if data else self._resources)[kind]

    def _check(self, known: dict[str, Body], word: str, kind: str, attributes: Body, address: str) -> None:
        if kind not in known:
            self._report(address, [], [f"unknown {word} `{kind}`{_near(kind, known)}"])
            return
        wrong: list[str] = []
        unknown: list[str] = []
        _compare(known[kind], attributes, "", wrong, unknown, whole=self.provider in NESTED_ATTRIBUTES)
        self._report(address, wrong, unknown)

    def _report(self, address: str, wrong: list[str], unknown: list[str]) -> None:
        if unknown and self._other:
            warnings.warn(
                f"{address}: {'; '.join(unknown)} in {self.provider} {self.version}; {self._other} is asked for and may know better",
                SchemaWarning,
                stacklevel=4,
            )
            unknown = []
        if wrong or unknown:
            raise SchemaMismatch(address, wrong + unknown)


def load(provider: str, constraint: str = "") -> Schema:
    """The shipped schema of `aws`, for use under a Terraform version constraint.  Raises FileNotFoundError."""
    pinned = re.fullmatch(r"\s*=?\s*(\d+(?:\.\d+)*\S*)\s*", constraint)
    return Schema(_document(provider), pinned[1] if pinned else None)


@cache
def _document(provider: str) -> Body:
    packed = (files("modules.schemas") / f"{provider}.json.gz").read_bytes()
    return cast("Body", json.loads(gzip.decompress(packed)))


def _compare(body: Body, given: Body, path: str, wrong: list[str], unknown: list[str], *, whole: bool) -> None:
    """Collect what is wrong with one block and the blocks in it.  `whole`: one expression may stand for a block."""
    attributes: dict[str, Body] = body["attributes"]
    blocks: dict[str, Body] = body["blocks"]
    for name, value in given.items():
        if value is None:
            continue
        if name in attributes:
            if not _fits(value, attributes[name]["type"]):
                kind = attributes[name]["type"]
                wrong.append(f"`{path}{name}` must be {kind}, not {type(value).__name__}")
        elif name in blocks:
            if not (whole and _is_reference(value)):
                _compare_block(blocks[name], value, f"{path}{name}", wrong, unknown, whole=whole)
        elif name in body.get("computed", {}):
            wrong.append(f"`{path}{name}` is set by the provider only")
        else:
            unknown.append(f"unknown argument `{path}{name}`{_near(name, {**attributes, **blocks})}")
    for name, rule in {**attributes, **blocks}.items():
        if rule.get("required") and given.get(name) is None:
            wrong.append(f"`{path}{name}` is required")


def _compare_block(rule: Body, value: Any, path: str, wrong: list[str], unknown: list[str], *, whole: bool) -> None:
    """A nested block: a dictionary, a list of them (`list`), or a dictionary of them (`map`)."""
    nesting = rule["nesting"]
    if isinstance(value, dict):
        given = cast("Body", value)
        inner = [(f"{path}.{key}.", item) for key, item in given.items()] if nesting == "map" else [(f"{path}.", given)]
    elif isinstance(value, list | tuple) and nesting == "list":
        inner = [(f"{path}[{number}].", item) for number, item in enumerate(cast("list[Any]", value))]
    else:
        wrong.append(f"`{path}` must be a block ({nesting}), not {type(cast('object', value)).__name__}")
        return
    for place, item in inner:
        if isinstance(item, dict):
            _compare(rule, cast("Body", item), place, wrong, unknown, whole=whole)
        else:
            wrong.append(f"`{place.rstrip('.')}` must be a block, not {type(item).__name__}")


def _fits(value: Any, kind: str) -> bool:
    """Whether a value has a schema type.  A string that is one reference, `${…}`, may become anything."""
    if kind == "any" or _is_reference(value):
        return True
    if kind.startswith("list("):
        return isinstance(value, list | tuple) and all(_fits(item, kind[5:-1]) for item in cast("list[Any]", value))
    if kind.startswith("map("):
        return isinstance(value, dict) and all(
            isinstance(key, str) and _fits(item, kind[4:-1]) for key, item in cast("dict[Any, Any]", value).items()
        )
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, str)


def _is_reference(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("${") and value.endswith("}")


def _near(name: str, known: dict[str, Any]) -> str:
    """` (did you mean `x`?)` or nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean `{close[0]}`?)" if close else ""
