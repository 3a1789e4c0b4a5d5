"""`skyplan state`: the record in files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner.cli import options

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.app.state_files import Written


@click.group("state")
def command() -> None:
    """Export, import and back up the record.  The database is SKYPLAN_DATABASE_URL, else the file in .skyplan."""


file = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))


@command.command("export")
@file
@options.project
@options.catalog
@options.as_json
def export_command(file: Path, project_file: Path | None, catalog: Path | None, as_json: bool) -> int:
    """Write the project's record to FILE, which must not be there yet, while everything runs.

    FILE holds the keys that sign checkpoints; it is readable by you only.  `skyplan state import` takes it, into SQLite or PostgreSQL.
    """
    from planner.app import wire

    def act(archive: Any, project: str) -> Written:
        return _files().export(archive, file, project=project, at=wire.SystemClock().now())

    return _done("exported", _with_archive(act, project_file, catalog), as_json=as_json)


@command.command("import")
@file
@options.project
@options.catalog
@options.as_json
def import_command(file: Path, project_file: Path | None, catalog: Path | None, as_json: bool) -> int:
    """Fill an empty record from FILE.  The file is checked whole before anything is written; nodes join again by themselves."""

    def act(archive: Any, project: str) -> Written:
        return _files().take_in(archive, file, project=project)

    return _done("imported", _with_archive(act, project_file, catalog, make=True), as_json=as_json)


@command.command("backup")
@file
@options.project
@options.catalog
@options.as_json
def backup_command(file: Path, project_file: Path | None, catalog: Path | None, as_json: bool) -> int:
    """Copy the whole database, all projects, to FILE, which must not be there yet, while everything runs.

    Of SQLite this is a database file to put in its place; of PostgreSQL an export for `skyplan state import`.
    """
    from planner.app import wire

    def act(archive: Any, _project: str) -> Written:
        return _files().backup(archive, file, at=wire.SystemClock().now())

    return _done("backed up", _with_archive(act, project_file, catalog, whole=True), as_json=as_json)


def _with_archive(
    act: Callable[[Any, str], Written],
    project_file: Path | None,
    catalog: Path | None,
    *,
    make: bool = False,
    whole: bool = False,
) -> Written:
    from planner.app import review, wire

    project = review.setting(project_file, catalog).project.name
    archive = _files().opened(wire.database_url(), None if whole else project, make=make)
    try:
        return act(archive, project)
    finally:
        archive.close()


def _files() -> Any:
    """What reads and writes them; MissingPart without SQLAlchemy."""
    try:
        from planner.app import state_files
    except ImportError as error:
        from planner.state.engine import missing

        raise missing("SQLAlchemy", "record") from error
    return state_files


def _done(word: str, written: Written, *, as_json: bool) -> int:
    from planner.cli import view

    if as_json:
        view.put_json({"format_version": "1.0", "file": written.path, "rows": dict(sorted(written.rows.items()))})
    else:
        rows = ", ".join(f"{count:,} {name}" for name, count in sorted(written.rows.items()))
        click.echo(f"{word}: {written.path}{f' ({rows})' if rows else ''}")
    return 0
