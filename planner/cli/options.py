"""Options that several commands share, with one wording each.  Every one has an environment variable `SKYPLAN_…`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

FIRST_YEAR = 1970
"""Prices are counted in days since then."""
F = TypeVar("F", bound=Callable[..., Any])
#: names of `planner.app.schemas`, here so that `--help` and completion need not make the schemas
SCHEMAS = (
    "job",
    "project",
    "server",
    "broker",
    "plan",
    "plans",
    "diff",
    "migration",
    "audit",
    "report",
    "offers",
    "status",
)

jobs = click.argument("job_files", nargs=-1, required=True, metavar="JOB...", type=click.Path(path_type=Path))
project = click.option(
    "--project",
    "project_file",
    envvar="SKYPLAN_PROJECT",
    type=click.Path(path_type=Path),
    help="The project file [default: skyplan.yaml, where there is one].",
)
catalog = click.option(
    "--catalog",
    envvar="SKYPLAN_CATALOG",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder with catalog files of your own [default: the packaged snapshot].",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Machine-readable output on stdout.")
offline = click.option("--offline", is_flag=True, help="Read files only: no record, no cloud.")
as_of = click.option("--as-of", metavar="TIME", help="Plan as of this moment (ISO date or time, UTC).")
plans = click.option(
    "--plans",
    "plans_folder",
    envvar="SKYPLAN_PLANS",
    type=click.Path(path_type=Path),
    default=Path("plans"),
    show_default=True,
    help="Folder of standing plans: what they hold is left to them, and changes are told against them.",
)


def moment(text: str | None) -> str | None:
    """The value of --as-of in UTC.  Raises BadParameter on what is no ISO date or time."""
    if text is None:
        return None
    from datetime import UTC, datetime  # noqa: PLC0415 - start-up

    try:
        at = datetime.fromisoformat(text)
        at = (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(
            f"`{text}` is no ISO date or time, such as 2026-07-30 or 2026-07-30T12:00:00Z"
        ) from error
    if at.year < FIRST_YEAR:
        raise click.BadParameter(f"`{text}` is no date to plan at: it lies before {FIRST_YEAR}")
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
