"""The record in files: exported as text that any database can take in, taken in, and backed up while everything runs.

Decides the file's form and that a file is read through and checked before its first row is written.  Files hold the keys that sign checkpoints: they are
made for their owner's eyes only, and none is overwritten.

An export is JSON lines: what it is, then `{"table", "row"}` each, then how many rows of which table and the SHA-256 of all lines before.  Who changes a
file by hand breaks the digest: this finds torn and altered copies; it is no signature.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError
from planner.model.record import stamp
from planner.state.archive import NAMES, Archive, refused, row_problem
from planner.state.engine import HEAD
from planner.state.record import EVERY_PROJECT

FORMAT: Final = "skyplan-record"
VERSION: Final = 1
MAX_PROBLEMS: Final = 20
_SQLITE: Final = b"SQLite format 3\0"
MAX_LINE: Final = 64 * 1024 * 1024
"""A stack's document is one line; the largest here are a few MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What went into a file or came out of one: rows by table, those with any."""

    path: str
    rows: dict[str, int]


def opened(url: str, project: str | None, *, make: bool) -> Archive:
    """The database of a project's record, or of all; `make` where there is none yet.  Raises MissingPart, InputError."""
    return Archive.open(url, project or EVERY_PROJECT, upgrade=make)


def export(archive: Archive, path: Path, *, project: str, at: datetime) -> Written:
    """Write the record as text.  Raises InputError (SKY-RUN-524) where the file is there already or cannot be written."""
    counts: Counter[str] = Counter()
    head = {"format": FORMAT, "format_version": VERSION, "schema": HEAD, "project": project, "at": stamp(at)}
    with _new_file(path) as (file, _):
        digest = hashlib.sha256()
        for document in _documents(archive, head, counts):
            line = _line(document)
            digest.update(line)
            file.write(line)
        file.write(_line({"rows": dict(sorted(counts.items())), "sha256": digest.hexdigest()}))
    return Written(path=str(path), rows=dict(counts))


def backup(archive: Archive, path: Path, *, at: datetime) -> Written:
    """Keep the whole database, all projects: a copy of SQLite's file; of PostgreSQL an export, which `take_in` takes."""
    if not archive.in_a_file:
        return export(archive, path, project=EVERY_PROJECT, at=at)
    with _new_file(path) as (file, name):
        file.close()
        archive.copy_to(name)
    return Written(path=str(path), rows={})


def take_in(archive: Archive, path: Path, *, project: str) -> Written:
    """Fill an empty record from an export, whole or not at all.  Raises InputError (SKY-RUN-524) with all that is wrong."""
    _no_backup(path)
    counts = _checked(path, project)
    if occupied := archive.occupied():
        raise refused([f"the record is not empty (`{occupied}` has rows): name a new one in SKYPLAN_DATABASE_URL"])
    archive.fill(_rows(path, counts))
    return Written(path=str(path), rows=dict(counts))


def _no_backup(path: Path) -> None:
    """A copy of SQLite's file is the record itself.  Raises InputError."""
    try:
        with path.open("rb") as file:
            if file.read(len(_SQLITE)) != _SQLITE:
                return
    except OSError:
        return  # whoever reads it whole says why
    summary = f"{path}: this is a backup, a database file itself, and nothing to import"
    hint = f"end what uses the record, put the file in its place (.skyplan/record.sqlite, without its -wal and -shm), or name it: SKYPLAN_DATABASE_URL=sqlite:///{path}; for PostgreSQL `skyplan state export` it first"
    raise InputError([Diagnostic(code="SKY-RUN-524", summary=summary, hint=hint)])


def _documents(archive: Archive, head: dict[str, Any], counts: Counter[str]) -> Iterator[dict[str, Any]]:
    yield head
    for table, row in archive.rows():
        counts[table] += 1
        yield {"table": table, "row": row}


def _line(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _checked(path: Path, project: str) -> Counter[str]:
    """Read the file through.  Rows by table; raises InputError with up to 20 problems."""
    problems: list[str] = []
    counts: Counter[str] = Counter()
    digest, end, place = hashlib.sha256(), dict[str, Any](), 0
    for at, line, document in _lines(path):
        if at == 1:
            problems += _head_problems(document, project)
        elif end:
            problems.append(f"line {at}: something follows the end")
        elif "sha256" in document:
            end = document
            continue
        elif problem := _row_problem(document, place):
            problems.append(f"line {at}: {problem}")
        else:
            place = NAMES.index(document["table"])
            counts[document["table"]] += 1
        digest.update(line)
        if len(problems) >= MAX_PROBLEMS or (at == 1 and problems):
            break
    problems = problems or _end_problems(end, counts, digest.hexdigest())
    if problems:
        raise refused(f"{path}: {problem}" for problem in problems)
    return counts


def _row_problem(document: dict[str, Any], place: int) -> str | None:
    name = document.get("table")
    if not isinstance(name, str):
        return "neither a row nor the end"
    problem = row_problem(name, document.get("row"))
    if problem is None and NAMES.index(name) < place:
        return f"`{name}` comes after a table that refers to it"
    return problem


def _end_problems(end: dict[str, Any], counts: Counter[str], digest: str) -> list[str]:
    if not end:
        return ["the file ends too early: it is torn, or still being written"]
    if end != {"rows": dict(counts), "sha256": digest}:
        return ["the file's contents do not have the digest that its last line names"]
    return []


def _head_problems(head: dict[str, Any], project: str) -> list[str]:
    if head.get("format") != FORMAT:
        return ["not an exported record"]
    if head.get("format_version") != VERSION:
        return [f"of format {head.get('format_version')!r}, this skyplan reads {VERSION}"]
    if head.get("schema") != HEAD:
        return [
            f"of schema {head.get('schema')!r}, this skyplan reads {HEAD!r}: use the skyplan that wrote it, then migrate"
        ]
    if head.get("project") not in {project, EVERY_PROJECT}:
        return [f"of project {head.get('project')!r}, not of {project!r}"]
    return []


def _lines(path: Path) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
    """(number, bytes, object) of every line.  Raises InputError for one that is none."""
    at = 0
    try:
        with path.open("rb") as file:
            while line := file.readline(MAX_LINE):
                at += 1
                yield at, line, _object(line)
    except (ValueError, RecursionError) as error:
        raise refused([f"{path}: line {at} is torn or no JSON object"]) from error
    except OSError as error:
        raise refused([f"{path}: {error.strerror or error}"]) from error


def _object(line: bytes) -> dict[str, Any]:
    document = json.loads(line)
    if not line.endswith(b"\n") or not isinstance(document, dict):
        raise ValueError("no whole line")
    return cast("dict[str, Any]", document)


def _rows(path: Path, counts: Counter[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows once more; what changed since they were checked ends it."""
    left = Counter(counts)
    for at, _, document in _lines(path):
        if at > 1 and "sha256" not in document:
            name, row = str(document.get("table")), document.get("row")
            if row_problem(name, row) or not isinstance(row, dict):
                raise refused([f"{path}: changed while it was read"])
            left[name] -= 1
            yield name, row
    if any(left.values()):
        raise refused([f"{path}: changed while it was read"])


@contextmanager
def _new_file(path: Path) -> Generator[tuple[BinaryIO, str]]:
    """A file for its owner's eyes, there under its name once it is whole and on disk; never over another."""
    try:
        if path.exists():
            raise FileExistsError(17, "is there already; name another file")
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file, name
            with Path(name).open("rb") as file:
                os.fsync(file.fileno())
            os.link(name, path)  # unlike a rename, refuses where somebody was faster
        finally:
            Path(name).unlink(missing_ok=True)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        summary, hint = f"{path}: {error.strerror or error}", "name a new file, in a folder that is there and takes it"
        raise InputError([Diagnostic(code="SKY-RUN-524", summary=summary, hint=hint)]) from error
