"""Lists as a forge shows them.  The pages are CommonMark; mkdocs reads an older Markdown, in which two things that we write differ.

A list may follow a paragraph without a blank line between, and what belongs to an item stands under its text, not four blanks in.

Decides nothing else: fenced blocks keep their text, what is in no list stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_ITEM = re.compile(r"^(?P<indent> *)(?P<mark>[-*+]|\d{1,3}[.)])(?P<gap> +)(?P<text>\S.*)$")
_FENCE = re.compile(r"^ *(?P<fence>`{3,}|~{3,})")
_STEP = " " * 4


@dataclass
class _Reader:
    """`columns`: where the text of each open item begins, outermost first.  `among_items`: what came since the last blank line began with an item."""

    columns: list[int] = field(default_factory=list)
    among_items: bool = False
    fence: str = ""
    before: str = ""
    out: list[str] = field(default_factory=list)

    def line(self, line: str) -> None:
        """Take the next line in."""
        if self.fence:
            self.out.append(self._moved(line))
            if line.strip() == self.fence:
                self.fence = ""
        elif not line.strip():
            self.out.append("")
        elif (item := _ITEM.match(line)) and self._begins(item):
            self._item(item)
        else:
            self._other(line)
        self.before = line

    def _begins(self, item: re.Match[str]) -> bool:
        """Whether it is an item, not a line of a paragraph that happens to begin like one, nor code."""
        indent = len(item["indent"])
        if self.columns:
            return indent < self.columns[-1] + len(_STEP)
        return indent < len(_STEP) and (not self._in_paragraph() or not item["mark"][:-1] or item["mark"][:-1] == "1")

    def _in_paragraph(self) -> bool:
        return bool(self.before.strip()) and not self.before.startswith("#")

    def _item(self, item: re.Match[str]) -> None:
        indent = len(item["indent"])
        if self._in_paragraph() and not self.among_items:
            self.out.append("")
        self.among_items = True
        while self.columns and indent < self.columns[-1]:
            self.columns.pop()
        depth = len(self.columns)
        self.columns.append(indent + len(item["mark"]) + len(item["gap"]))
        self.out.append(f"{_STEP * depth}{item['mark'].replace(')', '.')} {item['text']}")

    def _other(self, line: str) -> None:
        indent = len(line) - len(line.lstrip())
        opened = _FENCE.match(line)
        if not self.before.strip() or opened or line.startswith("#"):
            while self.columns and indent < self.columns[-1]:
                self.columns.pop()
        self.out.append(self._moved(line))
        if opened:
            self.fence = opened["fence"]
        if opened or not self.before.strip():
            self.among_items = False

    def _moved(self, line: str) -> str:
        if not self.columns or not line.strip():
            return line
        column = self.columns[-1]
        kept = line[column:] if not line[:column].strip() else line.lstrip()
        return f"{_STEP * len(self.columns)}{kept}"


def widened(markdown: str) -> str:
    """The page with its lists as mkdocs reads them."""
    reader = _Reader()
    for line in markdown.splitlines():
        reader.line(line)
    return "\n".join(reader.out) + "\n"
