"""Reading one catalog file: rows with line numbers, typed cells, every error at file:line.

Decides what a cell may hold; knows no file's meaning.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

from planner.model.diagnostic import Diagnostic, Location


class Table:
    """One CSV file.  `rows` are lists of cells in the order of `columns`; row k stands at line k + 2, so a cell holds no line break.

    `whole` is False where reading stopped early: what other files say of its rows cannot be judged then.
    """

    def __init__(self, path: Path, columns: Sequence[str], problems: list[Diagnostic]) -> None:
        """Read it; what is wrong goes to `problems`."""
        self.path, self.problems, self.columns = path, problems, tuple(columns)
        self.rows: list[list[str]] = []
        self.whole = False
        try:
            with path.open(newline="", encoding="utf-8-sig") as file:
                reader = csv.reader(file, strict=True)
                head = next(reader, list[str]())
                if tuple(head) != self.columns:
                    self.wrong(1, f"columns are {','.join(head) or '(none)'}, expected {','.join(self.columns)}")
                    return
                width = len(self.columns)
                for row in reader:
                    if reader.line_num != len(self.rows) + 2:
                        self.wrong(len(self.rows) + 2, "a cell runs over the end of its line; is a quote missing?")
                        return
                    if len(row) != width:
                        self.wrong(reader.line_num, f"{len(row)} cells, expected {width}")
                        row += [""] * width  # noqa: PLW2901 - so that the other cells are judged too
                    self.rows.append(row[:width])
            self.whole = True
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            self.wrong(len(self.rows) + 2 if self.rows else 1, f"cannot be read: {error}")

    def wrong(self, line: int, summary: str, code: str = "SKY-CAT-101") -> None:
        """Note a problem at a line of this file."""
        self.problems.append(Diagnostic(code=code, summary=summary, location=Location(self.path.name, line)))

    def number(self, row: int, column: str, *, least: float = 0.0, default: float | None = None) -> float:
        """A finite number of at least `least`; an empty cell gives `default` where there is one."""
        text = self.rows[row][self.columns.index(column)]
        if text == "" and default is not None:
            return default
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value < least:
            self.wrong(row + 2, f"`{column}` is `{text}`, expected a number of at least {least:g}")
            return least
        return value

    def known(self, row: int, column: str) -> float | None:
        """A number, or None for an empty cell."""
        return None if self.rows[row][self.columns.index(column)] == "" else self.number(row, column)

    def choice(self, row: int, column: str, words: Sequence[str]) -> str:
        """One of `words`."""
        text = self.rows[row][self.columns.index(column)]
        if text not in words:
            self.wrong(row + 2, f"`{column}` is `{text}`, expected one of {', '.join(words)}")
            return words[0]
        return text

    def yes(self, row: int, column: str) -> bool:
        """Yes or no."""
        return self.choice(row, column, ("no", "yes")) == "yes"
