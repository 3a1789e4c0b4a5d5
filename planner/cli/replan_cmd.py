"""`skyplan replan`: should anything move?  Exits 0, 1 on an error, or with --detailed-exitcode 2 when something should move."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.cli import options

if TYPE_CHECKING:
    from planner.app.replan import Replanned


@click.command("replan")
@click.argument("jobs", nargs=-1, metavar="[JOB...]")
@options.project
@options.catalog
@options.plans
@options.as_of
@options.as_json
@click.option("--markdown", is_flag=True, help="A pull request's comment on stdout.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write plans/NAME.plan.json (where the place is new) and migrations/NAME.diff.json there.",
)
@click.option("--write", is_flag=True, help="The same as --out with the working folder: for a pull request.")
@click.option("--explain", is_flag=True, help="Show the terms of jobs that stay, too.")
@click.option("--reviewed-only", is_flag=True, help="Look at prepared places of the reviewed plans only.")
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 when something should move.")
def command(
    jobs: tuple[str, ...],
    project_file: Path | None,
    catalog: Path | None,
    plans_folder: Path,
    as_of: str | None,
    as_json: bool,
    markdown: bool,
    out: Path | None,
    write: bool,
    explain: bool,
    reviewed_only: bool,
    detailed_exitcode: bool,
) -> int:
    """Decide whether the JOBs (names; default: all that run or were lost) should move, by the record and the history of prices.

    Asks no cloud and changes nothing: `skyplan prices refresh` learns prices, `skyplan sync` what was lost, `skyplan migrate` carries a diff out.
    """
    from datetime import UTC, datetime

    from planner.app import replan_files, replan_given
    from planner.cli import view
    from planner.model.diagnostic import Diagnostic, Severity
    from planner.model.errors import InputError

    if as_json and markdown:
        raise click.UsageError("--json or --markdown, not both")
    asked = replan_given.Asked(
        project_file=project_file,
        catalog=catalog,
        plans_folder=plans_folder,
        names=jobs,
        as_of=options.moment(as_of),
    )
    found, warnings = replan_given.run(asked, datetime.now(UTC), only_ready=reviewed_only)
    if unknown := sorted(set(jobs) - {*(d.job for d in found.diffs), *(k.job for k in found.kept), *found.ended}):
        raise InputError(
            [Diagnostic(code="SKY-APPLY-323", summary=f"no job `{name}` was ever applied") for name in unknown]
        )
    view.warn(warnings, sys.stderr)
    if not found.known_lifetimes and (found.diffs or found.kept):
        summary = "nothing was observed of how long pools last: defaults stand"
        view.warn([Diagnostic(code="SKY-MOVE-424", summary=summary, severity=Severity.WARNING)], sys.stderr)
    _show(found, as_json=as_json, markdown=markdown, explain=explain)
    folder = out or (Path() if write else None)
    if folder is not None:
        for path in replan_files.write(found.proposals, folder):
            click.echo(f"wrote {path}", err=True)
    return 2 if detailed_exitcode and found.diffs else 0


def _show(found: Replanned, *, as_json: bool, markdown: bool, explain: bool) -> None:
    from planner.cli import view
    from planner.render import migration_json, migration_markdown, migration_text

    if as_json:
        view.put_json(migration_json.document(found.diffs, found.kept, as_of=found.as_of))
        return
    if markdown:
        click.echo(migration_markdown.document(found.diffs, found.kept), nl=False)
        return
    if not found.diffs and not found.kept:
        click.echo("nothing runs, and nothing was lost", err=True)
        return
    paint = view.paint_for(sys.stdout)
    lines = [line for diff in found.diffs for line in migration_text.diff_lines(diff, paint)]
    lines += [line for kept in found.kept for line in migration_text.kept_lines(kept, paint, explain=explain)]
    view.say([*lines, migration_text.summary(found.diffs, found.kept)], stream=sys.stdout)
