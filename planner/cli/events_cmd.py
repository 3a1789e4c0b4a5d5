"""`skyplan events`: what happened to a job."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from planner.cli import options


@click.command("events")
@click.argument("job")
@options.project
@options.catalog
@options.as_json
@click.option("--follow", "-f", is_flag=True, help="Go on with what comes, until interrupted.")
@click.option(
    "--last", type=click.IntRange(1, 100_000), default=1000, show_default=True, help="How many to begin with."
)
def command(job: str, project_file: Path | None, catalog: Path | None, as_json: bool, follow: bool, last: int) -> int:
    """Show what happened to JOB (a name), oldest first: launches, losses, checkpoints skipped, notices, moves.  With --json, one object a line."""
    import json

    from planner.app import following, review, wire
    from planner.cli import view
    from planner.render.logs_text import event_lines

    project = review.setting(project_file, catalog).project
    record, told = wire.record(project, make=False), wire.runtime(project, make=False)
    source = following.Source(record=record, told=told, clock=wire.SystemClock())
    try:
        batches = (
            following.follow_events(source, job, last=last) if follow else [following.events(source, job, last=last)]
        )
        for found in batches:
            if as_json:
                for e in found:
                    at = {"at": e.at, "generation": e.generation, "kind": e.kind, "text": e.text}
                    click.echo(json.dumps(at, sort_keys=True))
            elif found:
                view.say(event_lines(found, view.paint_for(sys.stdout)), stream=sys.stdout)
            sys.stdout.flush()
    finally:
        told.close()
        record.close()
    return 0
