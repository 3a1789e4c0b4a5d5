"""`skyplan comment`: post a text on a pull request or merge request, or bring the one that is there up to date.  Exits 0 also where a later run's comment was left."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.cli import options

if TYPE_CHECKING:
    from planner.app.comment import Done
    from planner.forges.port import Place

_FORMAT = "1.0"
_BEHAVIORS = ("update", "new", "hide-and-new", "delete-and-new")
_MOST = 10**15
_LONG_SECONDS = 2.0


@click.command("comment")
@click.argument("file", metavar="[FILE|-]", default="-", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--tag", metavar="NAME", default="", help="What the comment is found by again [default: the text's own].")
@click.option(
    "--behavior",
    type=click.Choice(_BEHAVIORS),
    default="update",
    show_default=True,
    help="What becomes of the earlier comment.",
)
@click.option(
    "--only-on-change", is_flag=True, help="Post nothing new where nothing changes; one that is there says so."
)
@click.option("--dry-run", is_flag=True, help="Print what would be posted, write nothing.  Needs no token.")
@click.option("--forge", type=click.Choice(("github", "gitlab")), help="Whose API [default: as the pipeline says].")
@click.option("--repo", metavar="NAME", default="", help="OWNER/NAME; GitLab: the project's number or path.")
@click.option("--number", metavar="N", type=click.IntRange(1, _MOST), help="The pull request's or merge request's.")
@click.option("--api", metavar="URL", default="", help="The API's address, such as https://github.acme.com/api/v3.")
@click.option(
    "--token-variable",
    metavar="NAME",
    default="",
    help="The environment variable with the token [default: GITHUB_TOKEN, GH_TOKEN; GITLAB_TOKEN].",
)
@click.option(
    "--valid-at",
    metavar="TIME",
    default="",
    help="What the text is of; an older one never overwrites a newer one [default: when the pipeline was asked for].",
)
@options.as_json
def command(
    file: Path,
    tag: str,
    behavior: str,
    only_on_change: bool,
    dry_run: bool,
    forge: str | None,
    repo: str,
    number: int | None,
    api: str,
    token_variable: str,
    valid_at: str,
    as_json: bool,
) -> int:
    """Post FILE (Markdown of `diff`, `audit` or `replan`) on a pull request, or update the comment that is there.

    Which one, by default, is what GitHub Actions or GitLab CI say of their pipeline.  The token comes from the environment.
    """
    from datetime import UTC, datetime

    from planner.app import comment, comment_place
    from planner.app.comment_decide import Behavior
    from planner.forges.again import Patience
    from planner.forges.choose import opened
    from planner.forges.surroundings import Given

    found = comment_place.find(Given(forge=forge or "", repo=repo, number=number or 0, api=api), os.environ)
    token = comment_place.token(found, token_variable, os.environ, needed=not dry_run)
    now = datetime.now(UTC)
    request = comment.Request(
        text=_read(file),
        origin="stdin" if str(file) == "-" else str(file),
        tag=tag,
        valid_at=options.moment(valid_at or None) or "",
        asked_at=found.asked_at,
        behavior=Behavior(behavior),
        only_on_change=only_on_change,
        dry_run=dry_run,
    )
    patience = Patience(pause=_wait)
    with opened(found.place, token, patience) as there:
        done = comment.post(request, there, patience, now, blind=dry_run and not token)
    _tell(done, found.place, dry_run=dry_run, looked=bool(token))
    if as_json:
        from planner.cli import view

        view.put_json(_document(done, found.place, dry_run=dry_run))
    elif dry_run:
        click.echo(done.body, nl=False)
    else:
        click.echo(done.url, nl=bool(done.url))
    return 0


def _wait(seconds: float) -> None:
    """A forge may ask for minutes: who looks on should know."""
    import time

    if seconds >= _LONG_SECONDS:
        click.echo(f"the forge is busy: waiting for {seconds:.0f} s", err=True)
    time.sleep(seconds)


def _read(file: Path) -> bytes:
    from planner.app.comment import LARGEST
    from planner.model.diagnostic import Diagnostic, Location
    from planner.model.errors import InputError

    if str(file) == "-":
        if sys.stdin.isatty():
            raise click.UsageError(
                "give a FILE, or pipe a text in: `skyplan diff … --format markdown | skyplan comment`"
            )
        return sys.stdin.buffer.read(LARGEST + 1)
    try:
        with file.open("rb") as text:
            return text.read(LARGEST + 1)
    except OSError as error:
        summary = error.strerror or str(error)
        raise InputError([Diagnostic(code="SKY-SPEC-101", summary=summary, location=Location(str(file)))]) from error


def _tell(done: Done, place: Place, *, dry_run: bool, looked: bool) -> None:
    would = "would be " if dry_run else ""
    blind = "" if looked else " (without a token nobody looked)"
    where = f"{place.repo} {'#' if place.forge.value == 'github' else '!'}{place.number}"
    click.echo(f"comment `{done.hidden_line.tag}` on {where}: {would}{done.what.value}{blind}", err=True)
    for word, urls in (("hidden", done.hidden), ("deleted", done.deleted)):
        if urls:
            click.echo(f"earlier comments {word}: {', '.join(urls)}", err=True)
    if done.cut:
        click.echo("warning: the text was shortened to what the forge takes", err=True)
    for note in done.notes:
        click.echo(f"note: {note}", err=True)


def _document(done: Done, place: Place, *, dry_run: bool) -> dict[str, object]:
    return {
        "format_version": _FORMAT,
        "action": done.what.value,
        "url": done.url or None,
        "forge": place.forge.value,
        "repository": place.repo,
        "number": place.number,
        "kind": done.hidden_line.kind,
        "tag": done.hidden_line.tag,
        "valid_at": done.hidden_line.valid_at,
        "hidden": list(done.hidden),
        "deleted": list(done.deleted),
        "shortened": done.cut,
        "notes": list(done.notes),
        "dry_run": dry_run,
        **({"body": done.body} if dry_run else {}),
    }
