"""`skyplan diff`: what a change does to placements, money and rights.  Exits 0, or with --detailed-exitcode 2 when there is something to review."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.cli import options

if TYPE_CHECKING:
    from planner.app.diff import Request
    from planner.model.change import PlacementDiff

FORMATS = ("table", "json", "markdown", "html")
_PATH = click.Path(path_type=Path)


@click.command("diff")
@click.argument("base_path", required=False, metavar="[BASE]", type=_PATH)
@click.argument("head_path", required=False, metavar="[HEAD]", type=_PATH)
@click.option("--base", "base_revision", metavar="REV", default="", help="Compare with this revision of git instead.")
@click.option("--head", "head_revision", metavar="REV", default="", help="With --base: not the working tree, but this.")
@click.option(
    "--terraform-plan",
    "terraform",
    multiple=True,
    metavar="FILE",
    type=_PATH,
    help="What `terraform show -json tfplan` prints.  Repeatable.",
)
@click.option("--kept", is_flag=True, help="A line for each job that stays as it is, too.")
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 when there is something to review.")
@options.project
@options.catalog
@options.plans
@options.as_json
def command(
    base_path: Path | None,
    head_path: Path | None,
    base_revision: str,
    head_revision: str,
    terraform: tuple[Path, ...],
    kept: bool,
    detailed_exitcode: bool,
    project_file: Path | None,
    catalog: Path | None,
    plans_folder: Path,
    as_json: bool,
) -> int:
    r"""Show what becomes of each job between BASE and HEAD: plan files, or folders of them.

    With --base the job files and plans of a revision are read, without a checkout, and held against the working tree or --head.

    \b
    Example: skyplan diff --base origin/main --detailed-exitcode
    """
    from planner.app import diff as comparing
    from planner.cli import view

    if base_revision and base_path is not None:
        raise click.UsageError("give two paths, or --base REV, not both")
    if head_revision and not base_revision:
        raise click.UsageError("--head REV goes with --base REV")
    if not base_revision and (base_path is None or head_path is None):
        raise click.UsageError("give BASE and HEAD (plan files or folders), or --base REV, such as --base origin/main")
    request = comparing.Request(
        base=base_path,
        head=head_path,
        base_revision=base_revision,
        head_revision=head_revision,
        plans=plans_folder,
        terraform=terraform,
        project_file=project_file,
        catalog=catalog,
    )
    diff = _found(request)
    if as_json:
        from planner.render import diff_json

        view.put_json(diff_json.document(diff))
    else:
        from planner.render.diff_text import diff_lines, warning_lines

        for line in warning_lines(diff, view.paint_for(sys.stderr)):
            click.echo(line, err=True)
        view.say(diff_lines(diff, view.paint_for(sys.stdout), kept=kept), stream=sys.stdout)
    return 2 if detailed_exitcode and diff.changed else 0


def _found(request: Request) -> PlacementDiff:
    from planner.app import diff as comparing
    from planner.cli.bar import bar

    with bar(4 + len(request.terraform)) as advance:
        return comparing.run(request, advance)
