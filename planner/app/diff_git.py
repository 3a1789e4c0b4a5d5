"""The files of a revision, read by two calls of git whatever their number: a folder of a thousand plans is compared in seconds.

Same face as `planner.app.audit_tree`: names and bytes, nothing is checked out and no file understood.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from planner.model.diagnostic import Diagnostic, Location
from planner.model.errors import InputError

_HINT = (
    "give a revision such as origin/main, fetched before (in CI: a checkout with its history, such as fetch-depth 0)"
)
_NO_GIT = "run it in a git repository, or compare two folders of plans: `skyplan diff OLD NEW`"
_FILE = b"100"


class GitTree:
    """A commit.  Paths are as seen from the working folder."""

    sparse = True

    def __init__(self, name: str) -> None:
        """Raises InputError (SKY-SPEC-101) where there is no git, no repository or no such commit."""
        self.name = name
        found = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if found.returncode:
            why = found.stderr.decode(errors="replace").strip()
            if "not a git repository" in why:
                raise _unread(name, "this folder is in no git repository", hint=_NO_GIT)
            raise _unread(name, why or "no revision of git here")
        self.commit = found.stdout.decode().strip()
        listed = _git("ls-tree", "-r", "-z", self.commit)
        if listed.returncode:
            raise _unread(name, listed.stderr.decode(errors="replace").strip())
        self._ids: dict[Path, bytes] = {}
        self._texts: dict[Path, bytes] = {}
        for entry in listed.stdout.split(b"\0"):
            head, _, path = entry.partition(b"\t")
            if head.startswith(_FILE):  # neither links nor submodules: they point out of the tree
                self._ids[Path(os.fsdecode(path))] = head.split(b" ")[2]

    def moment(self) -> str:
        """When it was committed, UTC."""
        return committed_at(self.commit)

    def has(self, path: Path) -> bool:
        """A file."""
        return _plain(path) in self._ids

    def below(self, path: Path) -> tuple[Path, ...] | None:
        """Its files, sorted; None where the revision has no such folder."""
        folder = _plain(path)
        found = sorted(p for p in self._ids if folder == Path() or folder in p.parents)
        return tuple(found) or None

    def fetch(self, paths: Iterable[Path]) -> None:
        """Read those files now, in one go."""
        wanted = [p for p in dict.fromkeys(map(_plain, paths)) if p in self._ids and p not in self._texts]
        if not wanted:
            return
        done = _git("cat-file", "--batch", given=b"".join(self._ids[p] + b"\n" for p in wanted))
        if done.returncode:
            raise _unread(self.name, done.stderr.decode(errors="replace").strip())
        at, data = 0, done.stdout
        for path in wanted:
            end = data.index(b"\n", at)
            size = int(data[at:end].split(b" ")[2])
            self._texts[path] = data[end + 1 : end + 1 + size]
            at = end + size + 2

    def text(self, path: Path) -> str:
        """Raises InputError (SKY-SPEC-101)."""
        self.fetch([path])
        try:
            return self._texts[_plain(path)].decode()
        except KeyError as error:
            raise _unread(self.name, "no such file", path) from error
        except UnicodeDecodeError as error:
            raise _unread(self.name, str(error), path) from error


def committed_at(revision: str) -> str:
    """The commit's own moment, UTC; "" where there is no such commit."""
    done = _git("log", "-1", "--format=%cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ", revision)
    return "" if done.returncode else done.stdout.decode().strip()


def _git(*arguments: str, given: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["git", *arguments], input=given, capture_output=True, check=False, env={**os.environ, "TZ": "UTC"}
        )
    except OSError as error:
        raise _unread("git", error.strerror or str(error)) from error


def _plain(path: Path) -> Path:
    return Path(os.path.relpath(path))


def _unread(revision: str, why: str, path: Path | None = None, hint: str = _HINT) -> InputError:
    summary = f"at {revision}: {why}"
    at = Location(str(path)) if path else None
    return InputError([Diagnostic(code="SKY-SPEC-101", summary=summary, location=at, hint=hint)])
