"""Diagnostics for people and for machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.model.diagnostic import Diagnostic
    from planner.render.text import Paint


def lines(diagnostics: Sequence[Diagnostic], paint: Paint) -> list[str]:
    """`error: jobs/a.yaml:3: … [CODE]`, and the hint below."""
    out: list[str] = []
    for d in diagnostics:
        style = "red" if d.severity.value == "error" else "yellow"
        place = f"{d.location}: " if d.location else ""
        out.append(f"{paint(d.severity.value, 'bold', style)}: {place}{d.summary} [{d.code}]")
        if d.hint:
            out.append(f"  {paint('hint', 'cyan')}: {d.hint}")
    return out


def document(diagnostics: Sequence[Diagnostic]) -> list[dict[str, Any]]:
    """JSON-ready."""
    return [
        {
            "code": d.code,
            "severity": d.severity.value,
            "summary": d.summary,
            "hint": d.hint,
            "file": d.location.file if d.location else None,
            "line": (d.location.line or None) if d.location else None,
            "column": (d.location.column or None) if d.location else None,
        }
        for d in diagnostics
    ]
