"""Tables and cells in Markdown, for the pages that are made at build.  Decides how a value stands in a cell; knows none of skyplan's words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import PurePath


def cell(text: object) -> str:
    """A text that cannot leave its cell, nor become HTML outside of code."""
    flat = " ".join(str(text).split())
    parts = flat.split("`")
    if len(parts) % 2 == 0:  # an odd backtick opens no code
        parts = ["&#96;".join(parts)]
    shown = [part if n % 2 else part.replace("<", "&lt;").replace("*", "\\*") for n, part in enumerate(parts)]
    return "`".join(shown).replace("|", "\\|")


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """The lines of a table, cells as they are: `cell` whatever is not Markdown."""
    return [
        "| " + " | ".join(heads) + " |",
        "|" + "---|" * len(heads),
        *("| " + " | ".join(str(one) for one in row) + " |" for row in rows),
        "",
    ]


def code(value: object) -> str:
    """A value as it would be written, in code; empty where there is none."""
    if value is None or value == "":
        return ""
    plain = isinstance(value, str | PurePath)
    text = str(value) if plain else json.dumps(value, ensure_ascii=False)
    text = text.replace("|", "\\|").replace("\n", " ")
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def page(title: str, *lines: str, wide: bool = False) -> str:
    """A page that nobody edits.  `wide`: tables in place of a table of contents."""
    head = ["---", "hide: [toc]", "---", ""] if wide else []
    return "\n".join([*head, f"# {title}", "", *lines, ""])
