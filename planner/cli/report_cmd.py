"""`skyplan report`: one HTML file that people who decide can open anywhere.  Exits 0, or 1 on an error; a job without a place is in the report, not an error."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.cli import options

if TYPE_CHECKING:
    from planner.model.report import Report

_PATH = click.Path(path_type=Path)
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("report")
@click.argument("paths", nargs=-1, metavar="[JOB...|PLAN...]", type=_PATH)
@click.option("--out", metavar="FILE", type=_FILE, help="Write the page there.")
@click.option(
    "--png",
    metavar="FILE",
    type=_FILE,
    help="Draw the job there, 1200 x 630, for a chat; of several jobs FILE-JOB.png each.",
)
@click.option(
    "--migration",
    "migrations",
    multiple=True,
    metavar="FILE",
    type=_PATH,
    help="Show this migration diff, or those of a folder, at its job.  Repeatable.",
)
@click.option(
    "--replan", is_flag=True, help="Decide anew whether what runs should move, and show each move (needs the record)."
)
@click.option("--top", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many placements to rank.")
@options.project
@options.catalog
@options.plans
@options.offline
@options.as_of
@options.as_json
def command(
    paths: tuple[Path, ...],
    out: Path | None,
    png: Path | None,
    migrations: tuple[Path, ...],
    replan: bool,
    top: int,
    project_file: Path | None,
    catalog: Path | None,
    plans_folder: Path,
    offline: bool,
    as_of: str | None,
    as_json: bool,
) -> int:
    """Show JOBs, which are planned, or PLANs, as they are, with the whole market around each choice, as one HTML file.

    The file opens from disk, asks nothing of any network, works without JavaScript and prints.  Without arguments: the plans of --plans.
    """
    from datetime import UTC, datetime

    from planner.app import report as reporting
    from planner.app.files import write_together
    from planner.cli import view
    from planner.cli.bar import bar

    if out is None and png is None and not as_json:
        raise click.UsageError("say where the page goes: --out FILE (or --png FILE, or --json)")
    request = reporting.Request(
        paths=paths,
        migrations=migrations,
        replan=replan,
        project_file=project_file,
        catalog=catalog,
        plans_folder=plans_folder,
        offline=offline,
        as_of=options.moment(as_of),
        top=top,
    )
    with bar(4 + max(len(paths), 1)) as advance:
        found = reporting.run(request, datetime.now(UTC), advance)
        advance("drawing")
        files = dict(_files(found, out, png))
    view.warn(found.warnings, sys.stderr)
    write_together(files)
    for path in files:
        click.echo(f"wrote {path}", err=True)
    if as_json:
        from planner.render.report_data import document

        view.put_json(document(found))
    return 0


def _files(found: Report, out: Path | None, png: Path | None) -> list[tuple[Path, bytes]]:
    files: list[tuple[Path, bytes]] = []
    if out is not None:
        from planner.app.report import assets
        from planner.render.report_html import document

        files.append((out, document(found, assets()).encode()))
    if png is not None:
        from planner.render.png import png as drawn
        from planner.render.report_card import card, file_word

        for k, job in enumerate(one for one in found.jobs if one.detailed):
            path = png if len(found.jobs) == 1 else png.with_name(f"{png.stem}-{file_word(job, k)}{png.suffix}")
            files.append((path, drawn(card(found, job))))
    return files
