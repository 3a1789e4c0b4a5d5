"""`skyplan logs`: what a job printed, as its nodes sent it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from planner.cli import options


@click.command("logs")
@click.argument("job")
@options.project
@options.catalog
@options.as_json
@click.option("--rank", type=click.IntRange(0), help="Of this node only.")
@click.option(
    "--generation", type=click.IntRange(1), help="Of this run [default: the one that `skyplan status` shows]."
)
@click.option("--follow", "-f", is_flag=True, help="Go on with what comes, until the job is over.")
@click.option(
    "--last",
    type=click.IntRange(1, 100_000),
    default=1000,
    show_default=True,
    help="How many chunks of output to begin with.",
)
def command(
    job: str,
    project_file: Path | None,
    catalog: Path | None,
    as_json: bool,
    rank: int | None,
    generation: int | None,
    follow: bool,
    last: int,
) -> int:
    """Show what JOB (a name) printed.  The record keeps about 1 MiB per node, as the agents sent it; with --json, one object a line."""
    import json

    from planner.app import following, review, wire
    from planner.cli import view
    from planner.render.logs_text import log_lines

    project = review.setting(project_file, catalog).project
    record, told = wire.record(project, make=False), wire.runtime(project, make=False)
    source = following.Source(record=record, told=told, clock=wire.SystemClock())
    given: dict[str, Any] = {"generation": generation, "rank": rank, "last": last}
    try:
        chunks = following.follow_logs(source, job, **given) if follow else [following.logs(source, job, **given)]
        some = False
        for found in chunks:
            some = some or bool(found)
            if as_json:
                for c in found:
                    at = {"at": c.at, "generation": c.seat.generation, "rank": c.seat.rank, "text": c.text}
                    click.echo(json.dumps(at, sort_keys=True))
            elif found:
                view.say(log_lines(found, view.paint_for(sys.stdout), ranks=rank is None), stream=sys.stdout)
            sys.stdout.flush()
        if not some:
            click.echo("nothing was told yet (nodes without an agent tell nothing)", err=True)
    finally:
        told.close()
        record.close()
    return 0
