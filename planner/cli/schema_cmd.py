"""`skyplan schema`: the published JSON Schemas."""

from __future__ import annotations

from pathlib import Path

import click

from planner.cli.options import SCHEMAS


@click.command("schema")
@click.argument("which", metavar="[NAME]", type=click.Choice(list(SCHEMAS)), required=False)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write NAME.schema.json there instead: of every schema, or of the one that is named.",
)
def command(which: str | None, out: Path | None) -> None:
    """Print the JSON Schema of that NAME (draft 2020-12): of job files where none is given.

    Of files that people write: job, project (skyplan.yaml), server (server.yaml), broker (broker.yaml).  Of what skyplan writes: plan,
    plans (`plan --json`), diff, migration, audit, report, offers, status.  Editors check files by them as they are typed;
    docs/editors.md shows how.
    """
    from planner.app import schemas
    from planner.cli import view

    if out is None:
        view.put_json(schemas.one(which or "job"))
        return
    from planner.app.files import write_together
    from planner.model.digest import pretty

    names = [which] if which else SCHEMAS
    texts = {out / f"{name}{schemas.SUFFIX}": pretty(schemas.one(name)) for name in names}
    write_together(texts)
    for path in texts:
        click.echo(str(path))
