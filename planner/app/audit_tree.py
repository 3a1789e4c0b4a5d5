"""Where an audit reads from: the working folder, or the same paths in a revision of git, without a checkout.

Reads names and bytes; understands no file.  A path that a revision does not have is empty there, which makes everything new.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from planner.app.inputs import read_text, shown
from planner.model.diagnostic import Diagnostic, Location
from planner.model.errors import InputError


class Tree(Protocol):
    """Files by path."""

    @property
    def sparse(self) -> bool:
        """A path that is not there is no error."""
        ...

    def text(self, path: Path) -> str:
        """Of a file.  Raises InputError."""
        ...

    def below(self, path: Path) -> tuple[Path, ...] | None:
        """Files of a folder and of those in it, sorted; None where the path is no folder."""
        ...

    def has(self, path: Path) -> bool:
        """Whether there is such a file."""
        ...


class WorkingTree:
    """The files as they are."""

    sparse = False

    def text(self, path: Path) -> str:
        """Raises InputError (SKY-SPEC-101)."""
        return read_text(path)

    def below(self, path: Path) -> tuple[Path, ...] | None:
        """Of hidden folders, such as Terraform's own, nothing."""
        if not path.is_dir():
            return None
        found: list[Path] = []
        for folder, folders, files in os.walk(path):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            found += [Path(folder) / name for name in files]
        return tuple(sorted(found))

    def has(self, path: Path) -> bool:
        """A file."""
        return path.is_file()


@dataclass(frozen=True, slots=True)
class Revision:
    """The files of a commit, by its id.  Paths are as seen from the working folder."""

    commit: str
    sparse = True

    def text(self, path: Path) -> str:
        """Raises InputError (SKY-IAM-902)."""
        done = _git("show", f"{self.commit}:./{_relative(path)}")
        what = f"{path} at {self.commit[:12]}"
        if done.returncode:
            raise _unread(what, done.stderr.decode(errors="replace").strip())
        try:
            return done.stdout.decode()
        except UnicodeDecodeError as error:
            raise _unread(what, str(error)) from error

    def below(self, path: Path) -> tuple[Path, ...] | None:
        """From git's own listing."""
        files = self._listed(path)
        return files if files and files != (Path(_relative(path)),) else None

    def has(self, path: Path) -> bool:
        """The path itself is a file there."""
        return self._listed(path) == (Path(_relative(path)),)

    def _listed(self, path: Path) -> tuple[Path, ...]:
        done = _git("ls-tree", "-r", "-z", "--name-only", self.commit, "--", _relative(path))
        if done.returncode:
            return ()  # outside the repository: not there
        names = (os.fsdecode(name) for name in done.stdout.split(b"\0") if name)
        return tuple(sorted(Path(name) for name in names))


def revision(name: str) -> Revision:
    """The commit that `name` stands for.  Raises InputError (SKY-IAM-902) where there is no git, no repository or no such commit."""
    done = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip() or "no plan, no folder, and no revision of git"
        raise _unread(name, why, hint="give a plan file, a folder or a revision such as origin/main, fetched before")
    return Revision(done.stdout.decode().strip())


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["git", *arguments], capture_output=True, check=False)
    except OSError as error:
        raise _unread("git", error.strerror or str(error)) from error


def _relative(path: Path) -> str:
    return Path(os.path.relpath(path)).as_posix()


def unread(path: Path, why: str, line: int = 0, column: int = 0, hint: str = "") -> Diagnostic:
    """SKY-IAM-902."""
    return Diagnostic(code="SKY-IAM-902", summary=why, location=Location(shown(path), line, column), hint=hint)


def _unread(what: str, why: str, hint: str = "") -> InputError:
    return InputError([Diagnostic(code="SKY-IAM-902", summary=f"{what}: {why}", hint=hint)])
