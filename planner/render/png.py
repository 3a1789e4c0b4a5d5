"""An SVG as a PNG, by resvg (extra `charts`).  Decides nothing but the scale."""

from __future__ import annotations

from typing import Final

from planner.model.diagnostic import Diagnostic
from planner.model.errors import MissingPart

SCALE: Final = 2.0
"""Pixels per unit: charts are looked at on dense screens."""


def png(svg: str) -> bytes:
    """Raises MissingPart without resvg.  A theme must be in it: resvg knows no viewer's system."""
    try:
        import resvg_py  # noqa: PLC0415 - optional
    except ImportError as error:
        raise missing_charts("resvg-py") from error
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=SCALE))


def missing_charts(package: str) -> MissingPart:
    """What to install."""
    summary = (
        f"this chart needs {package}; install the extra `charts` from your checkout of skyplan: pip install '.[charts]'"
    )
    return MissingPart([Diagnostic(code="SKY-APPLY-316", summary=summary)])
