"""Which market a command plans in: `market.source` of skyplan.yaml, and the record where there is one.

Decides where prices are looked for; nothing is created by looking.  A snapshot that is named must be there and whole; a record may be empty.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from planner.app.markets import Priced, Told, priced, told_by

if TYPE_CHECKING:
    from planner.model.market import Market
    from planner.model.project import Project


def priced_market(
    base: Market,
    project: Project,
    *,
    folder: Path,
    catalog: Path | None = None,
    at: datetime | None = None,
    offline: bool = False,
) -> Priced | None:
    """What is told besides the catalog, laid over it; None where that is nothing.  `folder` is that of skyplan.yaml.  Raises InputError, Unavailable, MissingPart."""
    told = _told(base, project, folder, at, offline=offline)
    return priced(base, told, catalog=catalog) if told else None


def _told(base: Market, project: Project, folder: Path, at: datetime | None, *, offline: bool) -> Told | None:
    source = project.market.source
    if source == "catalog":
        return None
    if source != "record":
        from planner.app.snapshots import read_snapshot  # noqa: PLC0415 - only where one is used

        return read_snapshot(folder / source, shown=source, at=at, least=base.as_of)
    if offline:
        return None
    from planner.app.wire import database_url  # noqa: PLC0415 - only with a record

    try:
        from planner.state.history import History  # noqa: PLC0415 - sqlalchemy, optional
    except ImportError as error:
        from planner.state.engine import missing  # noqa: PLC0415 - only on an error

        raise missing("SQLAlchemy", "record") from error
    reads = History.open(database_url(), project.name, upgrade=False)
    try:
        return told_by(reads, at, least=base.as_of)
    finally:
        reads.close()
