"""A forge's failures as diagnostics, and what its answers say in words."""

from __future__ import annotations

from typing import cast

from planner.model.diagnostic import Diagnostic
from planner.model.errors import ForgeError

_DEEPEST = 4


def failed(code: str, summary: str, hint: str = "") -> ForgeError:
    """One diagnostic."""
    return ForgeError([Diagnostic(code=code, summary=summary, hint=hint)])


def said(body: object) -> str:
    """GitHub: `message` and `errors`; GitLab: `message` (text, or lists by field) or `error`."""
    if not isinstance(body, dict):
        return ""
    found = cast("dict[str, object]", body)
    parts = [found.get(k) for k in ("message", "errors", "error", "error_description")]
    return "; ".join(filter(None, map(_flat, parts)))


def _flat(value: object, depth: int = 0) -> str:
    if isinstance(value, str):
        return value
    if depth > _DEEPEST:
        return ""
    if isinstance(value, list):
        return ", ".join(filter(None, (_flat(v, depth + 1) for v in cast("list[object]", value))))
    if isinstance(value, dict):
        rows = cast("dict[str, object]", value)
        own = rows.get("message")
        if isinstance(own, str):
            return own
        return ", ".join(f"{k} {text}" for k, v in rows.items() if (text := _flat(v, depth + 1)))
    return ""
