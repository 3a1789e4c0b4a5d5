"""Finds what looks like a secret in plans, stacks, user data, outputs and Terraform state, before it leaves the machine or stays where many can read.

Own code, after a look at detect-secrets 1.5.0 (Apache-2.0, typed, 120 kB): it scans lines of files through settings that are global to the process, finds
nothing in packed user data and no Google service account, SAS, Azure client secret, Hugging Face, WireGuard or Nebius key, its keyword plugin takes
any quoted word for a secret, and it would bring `requests` into a core that has no network.  What is needed is a table and a walk.

References (`secret://…`, `${…}`, ARNs), digests, ids and public keys are no secrets.  A report never shows one: `Leak.shown` is its beginning.
A password that looks like a word, under a name that does not say what it is, is not found.
"""

from __future__ import annotations

import json
import re
from bisect import bisect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from planner.iam.read.packed import opened
from planner.iam.secret_shapes import (
    ASSIGNMENT,
    AWS_KEY_ID,
    AWS_SECRET,
    SHAPES,
    SHORTEST,
    Shape,
    is_mixed,
    is_secret_name,
    looks_secret,
)
from planner.model.diagnostic import Location
from planner.model.policy import Leak

#: how often something may be packed in what is packed
_DEEPEST = 4
_PACKED = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{40,}={0,2}(?![A-Za-z0-9+/=])")
_SHOWN = 4
#: resources of Terraform whose one attribute is a secret, whatever it is called
_MADE = {"random_password": "result", "tls_private_key": "private_key_pem"}
_NAMES = ("name", "key", "env")


@dataclass(frozen=True, slots=True, order=True)
class _Hit:
    start: int
    end: int
    kind: str
    secret: str


def scan_text(text: str, *, origin: str, location: Location | None = None) -> tuple[Leak, ...]:
    """Secrets in text, in order, each once.  `location` is where the text begins."""
    return _distinct(_in_text(text, origin, location, 0))


def scan_document(value: object, *, origin: str) -> tuple[Leak, ...]:
    """Secrets in what JSON parses to.  Each leak's origin ends with the path to it."""
    return _distinct(_in_value(value, origin, "", 0))


def _distinct(leaks: Iterator[Leak]) -> tuple[Leak, ...]:
    return tuple(dict.fromkeys(leaks))


def _in_text(text: str, origin: str, location: Location | None, depth: int) -> Iterator[Leak]:
    for hit in _hits(text):
        at = location
        if location is not None and location.line:
            at = Location(location.file, location.line + text.count("\n", 0, hit.start))
        yield Leak(kind=hit.kind, origin=origin, shown=_cut(hit.kind, hit.secret), location=at)
    if depth >= _DEEPEST:
        return
    whole = opened(text)
    inner = [whole] if whole is not None else [found for m in _PACKED.finditer(text) if (found := opened(m[0]))]
    for found in inner:
        yield from _in_opened(found, origin, location, depth + 1)


def _in_opened(text: str, origin: str, location: Location | None, depth: int) -> Iterator[Leak]:
    """What was packed: JSON as a document, else text.  Its lines are no lines of a file."""
    place = Location(location.file) if location else None
    if text.lstrip().startswith(("{", "[")):
        try:
            yield from _in_value(json.loads(text), origin, "", depth)
        except (ValueError, RecursionError):
            pass
        else:
            return
    yield from _in_text(text, origin, place, depth)


@lru_cache(maxsize=4096)  # keys and most values come again in every resource
def _hits(text: str) -> tuple[_Hit, ...]:
    """Without those that lie within an earlier one."""
    if len(text) < SHORTEST:
        return ()
    found = [*_shaped(text), *_aws_secrets(text), *_assigned(text)]
    kept: list[_Hit] = []
    for hit in found:
        at = bisect(kept, hit)
        if all(hit.start >= other.end or other.start >= hit.end for other in kept[max(0, at - 1) : at + 1]):
            kept.insert(at, hit)
    return tuple(kept)


def _shaped(text: str) -> Iterator[_Hit]:
    for shape in SHAPES:
        if shape.hint not in text:
            continue
        for match in shape.pattern.finditer(text):
            group = "it" if "it" in shape.pattern.groupindex else 0
            if _holds(shape, match):
                yield _Hit(match.start(group), match.end(group), shape.kind, match[group])


def _holds(shape: Shape, match: re.Match[str]) -> bool:
    groups = shape.pattern.groupindex
    secret = match["it" if "it" in groups else 0]
    if shape.mixed and not is_mixed(match["tail"] if "tail" in groups else secret):
        return False
    # a variable in a URL or a header is a reference
    return not secret.startswith(("$", "%", "{", "<", "*"))


def _aws_secrets(text: str) -> Iterator[_Hit]:
    if AWS_KEY_ID.search(text):
        for match in AWS_SECRET.finditer(text):
            if is_mixed(match[0]):
                yield _Hit(match.start(), match.end(), "AWS secret access key", match[0])


def _assigned(text: str) -> Iterator[_Hit]:
    for match in ASSIGNMENT.finditer(text):
        if is_secret_name(match["name"]) and looks_secret(match["it"]):
            yield _Hit(match.start("it"), match.end("it"), f"value of {match['name']}", match["it"])


def _in_value(value: object, origin: str, path: str, depth: int) -> Iterator[Leak]:
    if isinstance(value, str):
        yield from _in_text(value, f"{origin} {path}" if path else origin, None, depth)
    elif isinstance(value, Mapping):
        yield from _in_object(cast("Mapping[str, Any]", value), origin, path, depth)
    elif isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        if len(items) == 2 and all(isinstance(item, str) for item in items):  # noqa: PLR2004 - a pair
            yield from _named(items[0], items[1], origin, f"{path}[{items[0]}]")
        for number, item in enumerate(items):
            yield from _in_value(item, origin, f"{path}[{number}]", depth)


def _in_object(value: Mapping[str, Any], origin: str, path: str, depth: int) -> Iterator[Leak]:
    for key, inner in value.items():
        place = f"{path}.{key}" if path else str(key)
        # an output or a variable of that name has its value beside other things
        beside = _within(inner, "value") or _within(inner, "default")
        if isinstance(inner, str):
            yield from _named(str(key), inner, origin, place)
        elif isinstance(beside, str):
            yield from _named(str(key), beside, origin, f"{place}.value")
        for number, one in _texts(inner):
            yield from _named(str(key), one, origin, f"{place}[{number}]")
        yield from _in_value(inner, origin, place, depth)
        yield from _in_value(str(key), origin, f"{path} (a key)", _DEEPEST)
    folded = {str(key).lower(): inner for key, inner in value.items()}
    name = next((folded[key] for key in _NAMES if isinstance(folded.get(key), str)), None)
    if name is not None and isinstance(folded.get("value"), str):
        yield from _named(name, folded["value"], origin, f"{path}.value" if path else "value")
    yield from _made(value, origin, path)


def _texts(inner: object) -> Iterator[tuple[int, str]]:
    """Those of a list, with their places."""
    if isinstance(inner, list):
        yield from ((at, one) for at, one in enumerate(cast("list[object]", inner)) if isinstance(one, str))


def _made(value: Mapping[str, Any], origin: str, path: str) -> Iterator[Leak]:
    """What Terraform itself made up, as its state holds it."""
    kind = str(value.get("type"))
    attribute = _MADE.get(kind)
    if attribute is None:
        return
    places = [(value.get("values") or value.get("attributes"), path)]
    places += [(_within(value.get("change"), when), f"{path}.change.{when}") for when in ("before", "after")]
    stored: Any = value.get("instances")  # of a state file
    if isinstance(stored, list):
        places += [
            (_within(one, "attributes"), f"{path}.instances[{number}].attributes")
            for number, one in enumerate(cast("list[object]", stored))
        ]
    for held, place in places:
        secret = _within(held, attribute)
        if isinstance(secret, str) and secret:
            yield Leak(kind=kind, origin=f"{origin} {place}.{attribute}", shown=_cut(kind, secret))


def _within(held: object, name: str) -> object:
    return cast("Mapping[str, object]", held).get(name) if isinstance(held, Mapping) else None


def _named(name: str, value: str, origin: str, path: str) -> Iterator[Leak]:
    """A value whose key says that it is secret, unless its own shape says what it is."""
    if is_secret_name(name) and opened(value) is None and looks_secret(value) and not _hits(value):
        kind = f"value of {name}"
        yield Leak(kind=kind, origin=f"{origin} {path}", shown=_cut(kind, value.strip()))


def _cut(kind: str, secret: str) -> str:
    """Enough to find it again, too little to use it."""
    if kind == "private key":
        return secret.splitlines()[0]
    return f"{secret[: min(_SHOWN, len(secret) // 4)]}… ({len(secret)} characters)"
