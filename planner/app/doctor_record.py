"""The record's database: whether it opens, is whole, is of this version, and lies where SQLite may.

Opens SQLite for reading only, which even `skyplan status` does not (it turns the log on); PostgreSQL is asked for one row.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from planner.app.doctor import Row, State, fail, from_error, ok, skipped, warn
from planner.app.wire import database_url
from planner.model.errors import InputError, MissingPart

if TYPE_CHECKING:
    from sqlalchemy import URL

#: kinds of file systems, as /proc/mounts names them, over which SQLite's locks do not hold (SQLite's FAQ, "can multiple applications access a single database file", as quoted 2026-11)
NETWORKED: Final = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "afs",
        "ceph",
        "glusterfs",
        "lustre",
        "fuse.sshfs",
        "fuse.s3fs",
        "fuse.gcsfuse",
    }
)
BUSY_SECONDS: Final = 5.0
CODE: Final = "SKY-APPLY-319"
_RESTORE: Final = "restore the newest `skyplan state backup`"


def record(mounts: Path = Path("/proc/mounts")) -> list[Row]:
    """Of SKYPLAN_DATABASE_URL, else of the file in `.skyplan`."""
    try:
        from sqlalchemy import make_url  # noqa: PLC0415 - slow; only here
        from sqlalchemy.exc import ArgumentError  # noqa: PLC0415
    except ImportError:
        return [skipped("record", "the extra `record` is not installed: only planning works")]
    text = database_url()
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):  # whose words may be a part of a password
        fact = "SKYPLAN_DATABASE_URL is no database URL"
        return [fail("record", fact, "export SKYPLAN_DATABASE_URL=postgresql://user@host/name", CODE)]
    if url.get_backend_name() == "sqlite":
        return _sqlite(url, mounts)
    return _other(text)


def is_current() -> bool:
    """Whether there is one that can be read as it is: whoever opens another one brings it up to date."""
    return any(row.state is State.OK for row in record())


def _sqlite(url: URL, mounts: Path) -> list[Row]:
    path = Path(url.database or "record.sqlite")
    if not path.exists():
        return [skipped("record", f"there is none yet at {path}: `skyplan apply` makes it")]
    rows: list[Row] = []
    kind = _file_system(path, mounts)
    if kind in NETWORKED:
        fact = f"{path} lies on {kind}, where two processes can both hold SQLite's lock"
        rows.append(warn("record", fact, "export SKYPLAN_DATABASE_URL=postgresql://user@host/name", CODE))
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)
        ) as database:
            told = [str(row[0]) for row in database.execute("PRAGMA quick_check(3)")]
            version = _version(database)
    except sqlite3.Error as error:
        return [*rows, fail("record", f"{path} cannot be read: {error}", _RESTORE, CODE)]
    if told != ["ok"]:
        return [*rows, fail("record", f"{path} is damaged: {'; '.join(told)}", _RESTORE, CODE)]
    return [*rows, _judged(str(path), version)]


def _version(database: sqlite3.Connection) -> str | None:
    named = database.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'alembic_version'").fetchone()
    found = database.execute("SELECT version_num FROM alembic_version").fetchone() if named else None
    return str(found[0]) if found else None


def _judged(where: str, version: str | None) -> Row:
    from planner.state.engine import HEAD  # noqa: PLC0415 - with its neighbours

    if version is None:
        return fail("record", f"{where} is no record of skyplan's", "name another by SKYPLAN_DATABASE_URL", CODE)
    if version < HEAD:
        return warn("record", f"{where} has schema {version}, this skyplan writes {HEAD}", "skyplan status", CODE)
    if version > HEAD:
        fact = f"{where} has schema {version}, newer than this skyplan's {HEAD}"
        return fail("record", fact, "upgrade skyplan here", CODE)
    return ok("record", f"{where}, schema {version}")


def _other(text: str) -> list[Row]:
    """PostgreSQL: reached, and of this version."""
    from planner.state.engine import schema_of, shown  # noqa: PLC0415 - sqlalchemy

    try:
        version = schema_of(text)
    except MissingPart as error:
        return [from_error("record", error, "pip install 'CHECKOUT_OF_SKYPLAN[postgres]'")]
    except InputError as error:
        return [from_error("record", error)]
    if version is None:
        return [skipped("record", f"{shown(text)} answers, and has no record yet: `skyplan apply` makes it")]
    return [_judged(shown(text), version)]


def _file_system(path: Path, mounts: Path) -> str:
    """Its kind; "" where the system does not say."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
        real = path.resolve()
    except OSError:
        return ""
    found = [(Path(_plain(cells[1])), cells[2]) for line in lines if len(cells := line.split()) > 2]  # noqa: PLR2004 - what, where, kind
    return max(((len(at.parts), kind) for at, kind in _above(found, real)), default=(0, ""))[1]


def _above(mounted: Iterable[tuple[Path, str]], path: Path) -> Iterable[tuple[Path, str]]:
    return ((at, kind) for at, kind in mounted if path.is_relative_to(at))


def _plain(text: str) -> str:
    """With the spaces that /proc/mounts writes as octal numbers."""
    return text.replace("\\040", " ")
