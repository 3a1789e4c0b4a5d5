"""A move's steps, drawn: DOT, Mermaid or SVG; the same bytes for the same steps.

Decides layout alone: what waits for what is `planner.migration.steps`' business.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from planner.migration.steps import in_order, layers

if TYPE_CHECKING:
    from planner.model.migration import MigrationStep

_WIDE, _HIGH, _ACROSS, _DOWN, _EDGE = 250, 52, 300, 78, 24
_LETTERS = 38
"""Of 11 px text that fit into a box."""


def dot(steps: Sequence[MigrationStep]) -> str:
    """For Graphviz."""
    lines = ["digraph move {", "  rankdir=LR;", '  node [shape=box, fontname="sans-serif"];']
    for s in in_order(steps):
        style = ", style=bold" if s.stops else ""
        lines.append(f"  {_quoted(s.key)} [label={_quoted(_words(s))}{style}];")
        lines += [f"  {_quoted(before)} -> {_quoted(s.key)};" for before in s.after]
    return "\n".join([*lines, "}", ""])


def mermaid(steps: Sequence[MigrationStep]) -> str:
    """As GitHub draws it in a comment."""
    lines = ["flowchart LR"]
    for s in in_order(steps):
        text = _words(s).replace('"', "#quot;").replace("\n", "<br/>")
        lines.append(f'  {s.key}["{text}"]' + (":::stops" if s.stops else ""))
        lines += [f"  {before} --> {s.key}" for before in s.after]
    return "\n".join([*lines, "  classDef stops stroke-width:3px", ""])


def svg(steps: Sequence[MigrationStep], *, title: str) -> str:
    """One column for what may be done at the same time; a thick edge where the job makes no progress."""
    columns = layers(steps)
    place = {key: (column, row) for column, keys in enumerate(columns) for row, key in enumerate(keys)}
    left = {key: _EDGE + column * _ACROSS for key, (column, _) in place.items()}
    top = {key: 2 * _EDGE + 16 + row * _DOWN for key, (_, row) in place.items()}
    width = 2 * _EDGE + (len(columns) - 1) * _ACROSS + _WIDE
    height = 3 * _EDGE + 16 + (max(map(len, columns), default=1) - 1) * _DOWN + _HIGH
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
            ' font-family="sans-serif" role="img">'
        ),
        f"<title>{escape(title)}</title>",
        (
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0 0 8 4 0 8z" fill="#5b6675"/></marker></defs>'
        ),
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="{_EDGE}" y="{_EDGE + 8}" font-size="15" fill="#1c2733">{escape(title)}</text>',
    ]
    for s in in_order(steps):
        for before in s.after:
            x, y = left[before] + _WIDE, top[before] + _HIGH // 2
            bend = f"C{x + 25} {y} {left[s.key] - 25} {top[s.key] + _HIGH // 2}"
            lines.append(
                f'<path d="M{x} {y}{bend} {left[s.key]} {top[s.key] + _HIGH // 2}" fill="none" stroke="#5b6675" marker-end="url(#arrow)"/>'
            )
    for s in in_order(steps):
        x, y, stroke = left[s.key], top[s.key], 'stroke="#a5452a" stroke-width="2.5"' if s.stops else 'stroke="#5b6675"'
        first, *rest = _words(s, _LETTERS).split("\n")
        lines += [
            f'<rect x="{x}" y="{y}" width="{_WIDE}" height="{_HIGH}" rx="4" fill="#eef2f7" {stroke}/>',
            f'<text x="{x + 10}" y="{y + 20}" font-size="11" fill="#1c2733">{escape(first)}</text>',
            *(
                f'<text x="{x + 10}" y="{y + 38}" font-size="11" fill="#5b6675">{escape(text)}</text>'
                for text in rest[:1]
            ),
        ]
    return "\n".join([*lines, "</svg>", ""])


def _words(s: MigrationStep, letters: int = 0) -> str:
    title = s.title if not letters or len(s.title) <= letters else s.title[: letters - 1] + "…"
    more = [f"{s.minutes:f} min"] if s.minutes is not None else []
    more += ["the job stops"] if s.stops else []
    return title + ("\n" + ", ".join(more) if more else "")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
