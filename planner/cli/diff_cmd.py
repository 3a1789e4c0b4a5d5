"""`skyplan diff`: what a change does to placements, money and rights.  Exits 0, or with --detailed-exitcode 2 when there is something to review."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.cli import options

if TYPE_CHECKING:
    from planner.app.diff import Request
    from planner.model.change import PlacementDiff

STDOUT = Path("-")
FORMATS = ("table", "json", "markdown", "html")
_PATH = click.Path(path_type=Path)


@click.command("diff")
@click.argument("base_path", required=False, metavar="[BASE]", type=_PATH)
@click.argument("head_path", required=False, metavar="[HEAD]", type=_PATH)
@click.option("--base", "base_revision", metavar="REV", default="", help="Compare with this revision of git instead.")
@click.option("--head", "head_revision", metavar="REV", default="", help="With --base: not the working tree, but this.")
@click.option(
    "--jobs",
    "job_paths",
    multiple=True,
    metavar="PATH",
    type=_PATH,
    default=(Path("jobs"),),
    show_default=True,
    help="With --base: job files, or folders of them.  What has no plan file there is planned.  Repeatable.",
)
@click.option(
    "--migrations",
    metavar="DIR",
    type=_PATH,
    default=Path("migrations"),
    show_default=True,
    help="With --base: migration diffs.",
)
@click.option("--replan", is_flag=True, help="Plan every job of both sides anew, with the same prices.")
@click.option("--attribute", is_flag=True, help="Tell apart what the market, skyplan, the project and the job moved.")
@click.option(
    "--terraform-plan",
    "terraform",
    multiple=True,
    metavar="FILE",
    type=_PATH,
    help="What `terraform show -json tfplan` prints.  Repeatable.",
)
@click.option("--format", "formats", multiple=True, type=click.Choice(FORMATS), help="How to show it.  Repeatable.")
@click.option(
    "--output",
    "outputs",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Where the --format in the same place goes; `-` is stdout.  Repeatable.",
)
@click.option(
    "--tag", metavar="NAME", default="", help="Hidden in the markdown's first line, to find the comment again."
)
@click.option("--step-summary", is_flag=True, help="Append the markdown to $GITHUB_STEP_SUMMARY.")
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
    job_paths: tuple[Path, ...],
    migrations: Path,
    replan: bool,
    attribute: bool,
    terraform: tuple[Path, ...],
    formats: tuple[str, ...],
    outputs: tuple[Path, ...],
    tag: str,
    step_summary: bool,
    kept: bool,
    detailed_exitcode: bool,
    project_file: Path | None,
    catalog: Path | None,
    plans_folder: Path,
    as_json: bool,
) -> int:
    """Show what becomes of each job between BASE and HEAD: plan files, or folders of them.

    With --base the job files and plans of a revision are read, without a checkout, and held against the working tree or --head.

    Example: `skyplan diff --base origin/main --detailed-exitcode`
    """
    from planner.app import diff as comparing

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
        jobs=job_paths,
        migrations=migrations,
        replan=replan,
        attribute=attribute,
        terraform=terraform,
        project_file=project_file,
        catalog=catalog,
    )
    asked = _asked(formats, outputs, as_json=as_json)
    summary = _summary_file() if step_summary else None
    if tag:
        _check(tag)
    diff = _found(request)
    for line in _warnings(diff):
        click.echo(line, err=True)
    _put(diff, asked, tag=tag, kept=kept)
    if summary is not None:
        _append(diff, summary)
    return 2 if detailed_exitcode and diff.changed else 0


def _asked(formats: Sequence[str], outputs: Sequence[Path], *, as_json: bool) -> list[tuple[str, Path]]:
    """Each format with where it goes.  Raises UsageError where they do not pair, or two go to one place."""
    if as_json and "json" not in formats:
        formats, outputs = (*formats, "json"), ((*outputs, STDOUT) if outputs or not formats else outputs)
    if not outputs and len(formats) <= 1:
        return [(formats[0] if formats else "table", STDOUT)]
    if len(formats) != len(outputs):
        raise click.UsageError(
            f"{len(formats)} --format and {len(outputs)} --output: give one --output for each --format, `-` for stdout"
        )
    if len(set(outputs)) < len(outputs):
        raise click.UsageError("two formats cannot go to one place; give each an --output of its own")
    return list(zip(formats, outputs, strict=True))


def _summary_file() -> Path:
    found = os.environ.get("GITHUB_STEP_SUMMARY", "")
    if not found:
        raise click.UsageError(
            "--step-summary writes to $GITHUB_STEP_SUMMARY, which is not set: GitHub sets it in a workflow"
        )
    return Path(found)


def _check(tag: str) -> None:
    from planner.render.diff_markdown import tag_line

    try:
        tag_line(tag, "")
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--tag") from error


def _warnings(diff: PlacementDiff) -> list[str]:
    from planner.cli import view
    from planner.render.diff_text import warning_lines

    return warning_lines(diff, view.paint_for(sys.stderr)) if diff.warnings else []


def _put(diff: PlacementDiff, asked: Sequence[tuple[str, Path]], *, tag: str, kept: bool) -> None:
    from planner.app.files import write_together
    from planner.cli import view

    write_together({path: _text(diff, name, tag).encode() for name, path in asked if path != STDOUT})
    for name, path in asked:
        if path != STDOUT:
            click.echo(f"wrote {path} ({name})", err=True)
        elif name == "table":
            from planner.render.diff_text import diff_lines

            view.say(diff_lines(diff, view.paint_for(sys.stdout), kept=kept), stream=sys.stdout)
        else:
            click.echo(_text(diff, name, tag), nl=False)


def _text(diff: PlacementDiff, name: str, tag: str) -> str:
    from planner.model.digest import pretty
    from planner.render import diff_html, diff_json, diff_markdown
    from planner.render.diff_text import diff_lines
    from planner.render.text import Paint

    match name:
        case "json":
            return pretty(diff_json.document(diff)).decode()
        case "markdown":
            return diff_markdown.document(diff, tag=tag)
        case "html":
            return diff_html.document(diff)
        case _:
            return "\n".join(diff_lines(diff, Paint(on=False))) + "\n"


def _append(diff: PlacementDiff, path: Path) -> None:
    """Below what other steps wrote: a summary that grows past its limit is dropped whole."""
    from planner.model.diagnostic import Diagnostic, Location
    from planner.model.errors import InputError
    from planner.render import diff_markdown

    try:
        there = path.stat().st_size if path.exists() else 0
        room = diff_markdown.LONGEST_SUMMARY - there
        if room < diff_markdown.LONGEST:
            click.echo("warning: the step summary is full; the diff was not added to it", err=True)
            return
        with path.open("ab") as file:
            file.write(diff_markdown.document(diff, longest=room).encode())
    except OSError as error:
        at = Location(path.name)
        raise InputError(
            [
                Diagnostic(
                    code="SKY-SPEC-101",
                    summary=error.strerror or str(error),
                    location=at,
                    hint="see $GITHUB_STEP_SUMMARY",
                )
            ]
        ) from error


def _found(request: Request) -> PlacementDiff:
    from planner.app import diff as comparing
    from planner.cli.bar import bar

    with bar(4 + len(request.terraform)) as advance:
        return comparing.run(request, advance)
