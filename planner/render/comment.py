"""What all comments in pull requests share: how long one may be, and how a stranger's text stands in Markdown without opening a tag, a link, a mention or a cell."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from planner.render.audit_words import printable

LONGEST: Final = 60_000
"""Characters: GitHub refuses a comment of more than 65,536 (its API's own message, 2026-09)."""
#: a space of no width keeps a name from being mentioned or linked: GitHub looks for `@name`, `#1` and addresses in what is rendered
_BREAK: Final = "&#8203;"
_TAGS: Final = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "@": f"@{_BREAK}", "#": f"#{_BREAK}"}
_HTML: Final = str.maketrans(_TAGS)
_SPECIAL: Final = str.maketrans({c: f"\\{c}" for c in "\\`*_[]|~"} | _TAGS)
_ADDRESS: Final = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)", re.IGNORECASE)


def cell(text: str) -> str:
    """A stranger's text, which opens nothing where it stands in Markdown."""
    return _ADDRESS.sub(_BREAK, printable(text).translate(_SPECIAL))


def html(text: str) -> str:
    """The same for a summary, in which Markdown does not hold."""
    return _ADDRESS.sub(_BREAK, printable(text).translate(_HTML))


def joined(blocks: Iterable[str], cut: str) -> str:
    """The blocks as one text; where it would be too long it ends between two of them, by the words `cut`."""
    kept: list[str] = []
    room = LONGEST
    for block in blocks:
        room -= len(block) + 2
        if room < len(cut) + 2:
            kept.append(cut)
            break
        kept.append(block)
    return "\n\n".join(kept) + "\n"
