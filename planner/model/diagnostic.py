"""A problem as a value: severity, code, words, place, hint.  Collecting many of them is the rule; raising is the shell's."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from planner.model.codes import CODES


class Severity(StrEnum):
    """How bad: an error stops, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place in a file.  `file` is as the user wrote it; `line` and `column` count from 1, 0 is unknown."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One problem.  `summary` says what is wrong, `hint` what to do (default: the code's own hint)."""

    code: str
    summary: str
    location: Location | None = None
    hint: str = ""
    severity: Severity = Severity.ERROR

    def __post_init__(self) -> None:
        if not self.hint:
            object.__setattr__(self, "hint", CODES[self.code].hint)

    def sort_key(self) -> tuple[str, int, int, str, str]:
        """File, line, column, code, words: a total order."""
        at = self.location or Location("")
        return (at.file, at.line, at.column, self.code, self.summary)


def ordered(diagnostics: list[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Sorted, each once."""
    return tuple(sorted(set(diagnostics), key=Diagnostic.sort_key))
