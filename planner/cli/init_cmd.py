"""`skyplan init`: what a repository needs to be planned in.  Exits 0; 1 where something stands in the way, and then nothing is written."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.cli import options

if TYPE_CHECKING:
    from planner.app.init import Outcome

CLOUDS = ("aws", "gcp", "azure", "nebius")


@click.command("init")
@click.argument(
    "folder",
    required=False,
    default=Path(),
    metavar="[FOLDER]",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
)
@click.option(
    "--cloud", "clouds", multiple=True, metavar="CLOUD", help="Of these clouds only, not those found.  Repeatable."
)
@click.option(
    "--account", "accounts", multiple=True, metavar="CLOUD=ID", help="Account, project or subscription to act in."
)
@click.option(
    "--project", "project", metavar="NAME", default="", help="The project's name [default: the repository's]."
)
@click.option(
    "--backend",
    metavar="KIND[:NAME=VALUE,…]",
    default="",
    help="Where states are kept: local, s3, gcs or azurerm [default: as in the repository].",
)
@click.option("--forge", type=click.Choice(["github", "gitlab"]), help="Whose CI [default: as found].")
@click.option(
    "--source", metavar="REQUIREMENT", default="", help="Where CI gets skyplan: git+https://HOST/OWNER/NAME@COMMIT."
)
@click.option("--no-ci", is_flag=True, help="Write nothing for CI.")
@click.option("--cdktf", is_flag=True, help="Write a cdktf.json that starts `skyplan synth`.")
@click.option("--dry-run", is_flag=True, help="Write nothing: show what would be.")
@options.as_json
def command(
    folder: Path,
    clouds: tuple[str, ...],
    accounts: tuple[str, ...],
    project: str,
    backend: str,
    forge: str | None,
    source: str,
    no_ci: bool,
    cdktf: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Begin in an infrastructure repository: skyplan.yaml, an example job, CI, schemas for editors.

    Backend, accounts and forge are found in *.tf files and in git; no cloud is asked.  A file that is there is never overwritten:
    what it lacks is shown.  A second run changes nothing.
    """
    import os

    from planner.app import init, inputs
    from planner.app.init_tools import home
    from planner.cli import view
    from planner.model.words import words_of

    asked = init.Asked(
        folder=folder,
        clouds=_clouds(clouds),
        accounts=_accounts(accounts),
        project=project,
        backend=backend,
        forge=forge or "",
        ci=not no_ci,
        cdktf=cdktf,
        source=source,
    )
    outcome = init.prepare(asked, words_of(inputs.load_market()), os.environ, home())
    if not dry_run:
        init.write(outcome)
    if as_json:
        view.put_json(init.document(outcome, dry_run=dry_run))
        return
    view.say(_lines(outcome, dry_run=dry_run), stream=sys.stdout)
    for note in outcome.notes:
        click.echo(f"note: {note}", err=True)


def _clouds(given: tuple[str, ...]) -> tuple[str, ...]:
    names = [name.strip() for text in given for name in text.split(",") if name.strip()]
    for name in names:
        if name not in CLOUDS:
            raise click.BadParameter(f"`{name}` is none of {', '.join(CLOUDS)}", param_hint="--cloud")
    return tuple(dict.fromkeys(names))


def _accounts(given: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    out: dict[str, str] = {}
    for text in given:
        cloud, equals, account = text.partition("=")
        if cloud not in CLOUDS or not equals or not account:
            raise click.BadParameter(f"`{text}` is no CLOUD=ID, such as aws=123456789012", param_hint="--account")
        out[cloud] = account
    return tuple(out.items())


def _lines(outcome: Outcome, *, dry_run: bool) -> list[str]:
    out = [f"{key:<8} {words}" for key, words in outcome.found.items()]
    out.append("")
    verbs = (
        {"created": "would be written", "appended": "would get lines"}
        if dry_run
        else {"created": "written", "appended": "got lines"}
    )
    for file in outcome.files:
        why = f" ({file.why})" if file.why else ""
        out.append(f"{verbs.get(file.action, file.action):<9} {file.path}{why}")
        out += [f"    {line}" for line in file.diff.splitlines()] if file.action == "proposed" or dry_run else []
    if not outcome.changes:
        out += ["", "nothing to do: everything is there"]
    here = "" if outcome.folder == Path.cwd() else f" (in {outcome.folder.name}/)"
    out += ["", f"next{here}:", *(f"  {one}" for one in outcome.next)]
    return out
