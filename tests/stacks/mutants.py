"""Broken copies of a stack: an argument renamed, dropped or of another type, a type that no provider has, a spot field gone, a promise broken.

Which keys are arguments is read from the shipped schemas, as they are.  Copies share what they do not change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.stacks.checker import SETTINGS, provider_of, schema

Document = dict[str, Any]
Path = tuple[str | int, ...]
#: not a name of any argument of any type
SUFFIX = "_of_nothing"
META = ("for_each", "lifecycle", "depends_on", "provider")
_OTHER_TYPE: dict[str, Any] = {
    "string": {"not": "text"},
    "number": "many",
    "bool": "perhaps",
    "list": "one",
    "map": ["none"],
    "block": "text",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One broken copy.  `shape` is where, without names and numbers: mutants of one shape break the same thing."""

    what: str
    shape: str
    document: Document


def changed(value: Any, path: Path, new: Any) -> Any:
    """A copy in which the thing at the path is `new`; None takes it away."""
    if not path:
        return new
    key, rest = path[0], path[1:]
    inner = changed(value[key], rest, new)
    if isinstance(value, list):
        return [*value[: int(key)], *([] if inner is None else [inner]), *value[int(key) + 1 :]]
    return {
        held: (inner if held == key else other) for held, other in value.items() if held != key or inner is not None
    }


def renamed(value: Any, path: Path, suffix: str = SUFFIX) -> Any:
    """A copy in which the key at the path has another name."""
    *parents, key = path
    holder = value
    for step in parents:
        holder = holder[step]
    other = {f"{held}{suffix}" if held == key else held: inner for held, inner in holder.items()}
    return changed(value, tuple(parents), other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument that stands in a document."""

    path: Path
    kind: str
    required: bool
    shape: str


def arguments(document: Document) -> Iterator[Argument]:
    """Every argument of every resource, data source and provider, at any depth, and what belongs to Terraform itself."""
    for section, group in (("resource", "resources"), ("data", "data")):
        for type_, named in document.get(section, {}).items():
            body = schema(provider_of(type_))[group][type_]
            for name, given in named.items():
                at = (section, type_, name)
                for key in META:
                    if key in given:
                        kind = {"for_each": "map", "lifecycle": "block", "depends_on": "list", "provider": "string"}[
                            key
                        ]
                        yield Argument(path=(*at, key), kind=kind, required=False, shape=f"{type_}.{key}")
                for key in given.get("lifecycle", {}):
                    yield Argument(path=(*at, "lifecycle", key), kind="list", required=False, shape=f"lifecycle.{key}")
                plain = {key: value for key, value in given.items() if key not in META}
                yield from _inside(body, plain, at, type_)
    yield from _settings(document)
    for key in document["terraform"]:
        kind = "block"
        yield Argument(path=("terraform", key), kind=kind, required=True, shape=f"terraform.{key}")
    for section in ("variable", "output"):
        for name, body in document.get(section, {}).items():
            for key in body:
                needed = key != "description"
                kind = "any" if key == "value" else "string"
                yield Argument(path=(section, name, key), kind=kind, required=needed, shape=f"{section}.{key}")


def _settings(document: Document) -> Iterator[Argument]:
    """Of providers."""
    for provider, (settings,) in document.get("provider", {}).items():
        for key in settings:
            if key == "alias":  # a name of ours; that what it makes says the same is the checker's
                continue
            kind = SETTINGS[provider][key]
            word = kind.rstrip("!").partition("(")[0].replace("blocks", "block")
            path: Path = ("provider", provider, 0, key)
            yield Argument(path=path, kind=word, required=kind.endswith("!"), shape=f"provider.{provider}.{key}")


def _inside(body: Document, given: Document, at: Path, shape: str) -> Iterator[Argument]:
    for key, value in given.items():
        where = f"{shape}.{key}"
        rule = body["attributes"].get(key) or body["blocks"][key]
        needed = bool(rule.get("required"))
        if key in body["attributes"]:
            kind = rule["type"].partition("(")[0]
            yield Argument(path=(*at, key), kind=kind, required=needed, shape=where)
            continue
        yield Argument(path=(*at, key), kind="block", required=needed, shape=where)
        if isinstance(value, dict):
            yield from _inside(rule, value, (*at, key), where)
        elif isinstance(value, list):
            for number, item in enumerate(value):
                yield from _inside(rule, item, (*at, key, number), where)


def renames(document: Document) -> Iterator[Mutant]:
    for found in arguments(document):
        yield _mutant("renamed", found, renamed(document, found.path))
    for section in ("variable", "output", "provider"):
        for name in document.get(section, {}):
            shape = f"{section} {name}"
            yield Mutant(what=f"renamed {shape}", shape=shape, document=renamed(document, (section, name)))


def drops(document: Document, *, required: bool = True) -> Iterator[Mutant]:
    """Each required argument gone; or each other one."""
    for found in arguments(document):
        if found.required == required:
            yield _mutant("dropped", found, changed(document, found.path, None))


def retypes(document: Document) -> Iterator[Mutant]:
    for found in arguments(document):
        if found.kind in _OTHER_TYPE:
            yield _mutant("retyped", found, changed(document, found.path, _OTHER_TYPE[found.kind]))


def strangers(document: Document) -> Iterator[Mutant]:
    """Each type under a name that its provider does not have, and one more resource of such a type."""
    for section in ("resource", "data"):
        for type_ in document.get(section, {}):
            made = renamed(document, (section, type_), "_x")
            yield Mutant(what=f"unknown {section} {type_}_x", shape=f"{section} {type_}", document=made)
    provider = next(iter(document["provider"]))
    more = {**document.get("resource", {}), f"{provider}_thing_of_nothing": {"one": {}}}
    yield Mutant(what="one more resource", shape=f"more {provider}", document={**document, "resource": more})


def _mutant(what: str, found: Argument, document: Document) -> Mutant:
    path = ".".join(map(str, found.path))
    return Mutant(what=f"{what} {path}", shape=f"{what} {found.shape}", document=document)


#: cloud -> what makes the nodes spot, as paths below the node
SPOT_FIELDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "aws": (
        ("instance_market_options",),
        ("instance_market_options", "market_type"),
        ("instance_market_options", "spot_options"),
        ("instance_market_options", "spot_options", "spot_instance_type"),
        ("instance_market_options", "spot_options", "instance_interruption_behavior"),
    ),
    "gcp": (
        ("scheduling",),
        ("scheduling", "provisioning_model"),
        ("scheduling", "preemptible"),
        ("scheduling", "automatic_restart"),
        ("scheduling", "on_host_maintenance"),
        ("scheduling", "instance_termination_action"),
    ),
    "azure": (("priority",), ("eviction_policy",), ("max_bid_price",)),
    "nebius": (("preemptible",), ("preemptible", "on_preemption"), ("recovery_policy",)),
}
