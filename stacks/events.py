"""Terraform's machine-readable output (`-json`), line by line: progress as Events, problems as Diagnostics.  Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, cast

from planner.model.diagnostic import Diagnostic, Severity
from stacks.classify import CODES, classify_text

_PROGRESS = frozenset(
    {"apply_start", "apply_progress", "apply_complete", "apply_errored", "planned_change", "change_summary"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to a resource.  `kind` is Terraform's own type; `action` create, update, delete …; "" where there is none."""

    kind: str
    address: str
    action: str
    message: str
    seconds: int | None = None


def parse(line: str) -> Event | Diagnostic | None:
    """What one line says; None for chatter and for what is not JSON."""
    try:
        found: Any = json.loads(line)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    said = cast("dict[str, Any]", found)
    kind = said.get("type", "")
    if kind == "diagnostic":
        return diagnostic(said.get("diagnostic", {}), str(said.get("@message", "")))
    if kind not in _PROGRESS:
        return None
    hook: dict[str, Any] = said.get("hook") or said.get("change") or {}
    resource: dict[str, Any] = hook.get("resource", {})
    return Event(
        kind=kind,
        address=str(resource.get("addr", "")),
        action=str(hook.get("action", "")),
        message=str(said.get("@message", "")),
        seconds=hook.get("elapsed_seconds"),
    )


def diagnostic(found: dict[str, Any], message: str = "") -> Diagnostic:
    """Terraform's diagnostic, whole: resource, summary and detail in one text."""
    where = found.get("address", "")
    parts = [part for part in (where, found.get("summary") or message, found.get("detail")) if part]
    text = ": ".join(str(part).strip() for part in parts)
    warning = found.get("severity") == "warning"
    return Diagnostic(
        code=CODES[classify_text(text)[0]],
        summary=text,
        severity=Severity.WARNING if warning else Severity.ERROR,
    )
