"""The files of one run of `skyplan init`: which are written, kept or proposed, and what stands in the way of one.  Writes nothing itself.

A file that is there is never written over; whether text is appended to it is the caller's to say.
"""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from planner.app.inputs import shown as shown_path
from planner.model.diagnostic import Diagnostic, Location
from planner.model.errors import InputError

_BLOCKED: Final = "SKY-APPLY-345"


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file.  `path` as seen from the folder; `action`: created, appended, kept (nothing to say) or proposed; `diff` of what is appended or proposed."""

    path: str
    action: str
    diff: str = ""
    why: str = ""


@dataclass
class Files:
    """Gathers outcomes; `top` is what no file may lie outside of."""

    folder: Path
    top: Path
    files: list[File] = field(default_factory=list[File])
    texts: dict[Path, bytes] = field(default_factory=dict[Path, bytes])
    problems: list[Diagnostic] = field(default_factory=list[Diagnostic])

    def shown(self, path: Path) -> str:
        """As seen from the folder."""
        return Path(os.path.relpath(path, self.folder)).as_posix()

    def blocked(self, path: Path) -> bool:
        """Whether something keeps it from being written as a file of its own; it is named then."""
        parts = [path, *(p for p in path.parents if p != self.top and p.is_relative_to(self.top))]
        for part in parts:
            what = ""
            if part.is_symlink():
                what = f"is a symbolic link to {part.readlink()}"
            elif part == path and part.exists() and not part.is_file():
                what = "is no file"
            elif part != path and part.exists() and not part.is_dir():
                what = "is no folder"
            if what:
                self.problems.append(Diagnostic(code=_BLOCKED, summary=what, location=Location(self.shown(part))))
                return True
        return False

    def new(self, path: Path, text: str) -> None:
        """To be written: nothing is there."""
        if not self.blocked(path):
            self.texts[path] = text.encode()
            self.files.append(File(path=self.shown(path), action="created"))

    def append(self, path: Path, before: str, after: str) -> None:
        """To be written: what is there, with more at its end."""
        if not self.blocked(path):
            self.texts[path] = after.encode("utf-8", "surrogateescape")
            self.files.append(File(path=self.shown(path), action="appended", diff=self._diff(path, before, after)))

    def keep(self, path: Path, why: str = "") -> None:
        """It stays as it is, and nothing is missing."""
        self.files.append(File(path=self.shown(path), action="kept", why=why))

    def propose(self, path: Path, before: str, after: str, why: str) -> None:
        """It stays as it is; what it lacks is shown."""
        self.files.append(File(path=self.shown(path), action="proposed", diff=self._diff(path, before, after), why=why))

    def given(self, path: Path, text: str, why: str) -> None:
        """Written where nothing is, kept where it is the same, proposed where it is not."""
        before = read(path)
        if before is None:
            self.new(path, text)
        elif before == text:
            self.keep(path)
        else:
            self.propose(path, before, text, why)

    def _diff(self, path: Path, before: str, after: str) -> str:
        name = self.shown(path)
        lines = difflib.unified_diff(_lines(before), _lines(after), f"a/{name}", f"b/{name}")
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def read(path: Path, *, errors: str = "strict") -> str | None:
    """Its text; None where nothing is there.  Raises InputError on what is there and no text.

    `errors` "surrogateescape": also of a file that is only looked at, in whatever encoding its owner writes it.
    """
    try:
        if not path.is_file():
            return None
        return path.read_bytes().decode("utf-8", errors)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError([Diagnostic(code="SKY-SPEC-101", summary=why, location=Location(shown_path(path)))]) from error


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").encode("utf-8", "backslashreplace").decode().splitlines(keepends=True)
