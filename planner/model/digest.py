"""Canonical bytes and digests: the same value gives the same bytes on every machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from typing import Any, cast


def canonical(value: Any) -> bytes:
    """JSON with sorted keys, no spaces, no NaN, UTF-8.  Raises ValueError on NaN, TypeError on what is not JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def digest(value: Any) -> str:
    """`sha256:` and 64 hex digits of the canonical bytes."""
    return "sha256:" + hashlib.sha256(canonical(value)).hexdigest()


def digest_bytes(data: bytes) -> str:
    """`sha256:` and 64 hex digits of the bytes as they are."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def pretty(value: Any) -> bytes:
    """The bytes of a plan file: sorted keys, two spaces, a final newline."""
    return (json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


_UNSET: tuple[Any, ...] = (None, "", [], {}, False)


def set_only(value: Any) -> Any:
    """A value of dataclasses for a digest, without what is not set: a field that a later version adds changes no id while nobody uses it."""
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, list | tuple):
        return [set_only(inner) for inner in cast("list[Any]", value)]
    if isinstance(value, dict):
        pairs: Iterable[tuple[str, Any]] = cast("dict[str, Any]", value).items()
    elif value is not None:
        pairs = ((name, getattr(value, name)) for name in _field_names(cast("object", value).__class__))
    else:
        return None
    return {name: kept for name, inner in pairs if (kept := set_only(inner)) not in _UNSET}


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(found.name for found in fields(kind))
