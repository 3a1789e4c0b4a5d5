"""Canonical bytes and digests: the same value gives the same bytes on every machine."""

from __future__ import annotations

import hashlib
import json
from typing import Any


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
