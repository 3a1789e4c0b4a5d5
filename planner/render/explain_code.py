"""A code in words: what it means, where it appears, what to do, how a message of its kind reads; and a family of codes as a list."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

from planner.render.text import columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.codes import Code
    from planner.model.notes import Note

_WIDTH = 80


def code_lines(code: Code, note: Note | None) -> list[str]:
    """Lines for a terminal."""
    out = wrap(f"{code.id}: {code.meaning}", _WIDTH, subsequent_indent="  ", break_long_words=False)
    if note is None:
        return [*out, f"hint: {code.hint}"]
    parts = (
        ("where", note.where),
        ("means", note.means),
        ("do", note.do),
        ("hint", code.hint),
        ("example", note.example),
    )
    for word, text in parts:
        lead = f"{word}: "
        out += wrap(text, _WIDTH, initial_indent=lead, subsequent_indent="  ", break_long_words=False)
    return out


def code_document(code: Code, note: Note | None) -> dict[str, Any]:
    """The same, JSON-ready."""
    short = {"code": code.id, "meaning": code.meaning, "hint": code.hint}
    return short | (note._asdict() if note else {})


def family_lines(codes: Sequence[Code]) -> list[str]:
    """A line per code."""
    return columns([(code.id, code.meaning) for code in codes])
