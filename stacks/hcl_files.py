"""Stacks as folders of native HCL.  Writes what differs and no other file: a lock file, variables, a backend's settings beside them are the user's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from planner.model.diagnostic import Diagnostic, Location
from planner.model.errors import InputError
from stacks.hcl import FILES, HEADER


class Written(NamedTuple):
    """The files that stand now, and the folders that lost theirs; each in order."""

    files: tuple[Path, ...]
    emptied: tuple[Path, ...]


def write(folders: Mapping[str, Mapping[str, str]], out_dir: Path, *, stale: Callable[[str], bool]) -> Written:
    """Folder name -> file -> text, below `out_dir`.

    Files of ours that have no text any more are removed in these folders, and in other folders of which `stale` says so by their name.  What is
    ours is known by its first line; where something else stands in the place of a file, InputError (SKY-SPEC-101) names it and nothing is touched.
    """
    wanted = {out_dir / folder / name: text for folder, files in folders.items() for name, text in files.items()}
    if foreign := [p for p in wanted if p.is_symlink() or (p.exists() and not (p.is_file() and _ours(p)))]:
        raise InputError([_foreign(p) for p in sorted(foreign)])
    others = sorted(p for p in out_dir.iterdir() if p.is_dir() and p.name not in folders) if out_dir.is_dir() else []
    emptied = tuple(folder for folder in others if stale(folder.name) and _emptied(folder, wanted))
    for name in folders:
        _emptied(out_dir / name, wanted)
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        data = text.encode()
        if not path.is_file() or path.read_bytes() != data:
            path.write_bytes(data)
    return Written(tuple(sorted(wanted)), emptied)


def _emptied(folder: Path, wanted: Mapping[Path, str]) -> bool:
    """Whether something of ours was there and is not wanted.  Folders that are empty then are removed."""
    old = [
        p for p in (*folder.glob("*.tf"), *folder.glob("*/*.tf")) if p.name in FILES and p not in wanted and _ours(p)
    ]
    for path in old:
        path.unlink()
        for parent in (path.parent, folder):
            if parent.is_dir() and not any(parent.iterdir()):
                parent.rmdir()
    return bool(old)


def _ours(path: Path) -> bool:
    """Also where git gave its lines other ends."""
    with path.open("rb") as file:
        return file.readline(2 * len(HEADER)).rstrip() == HEADER.rstrip().encode()


def _foreign(path: Path) -> Diagnostic:
    summary = "is a symbolic link" if path.is_symlink() else "is not of skyplan's writing"
    hint = "nothing was written; move it to a file of another name, or give another --out"
    return Diagnostic(code="SKY-SPEC-101", summary=summary, location=Location(str(path)), hint=hint)
