"""`skyplan status`: what runs, as the record has it.  Asks no cloud."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from planner.cli import options


@click.command("status")
@click.argument("jobs", nargs=-1, metavar="[JOB...]")
@options.project
@options.catalog
@options.as_json
def command(jobs: tuple[str, ...], project_file: Path | None, catalog: Path | None, as_json: bool) -> int:
    """Show what runs of the JOBs (names; default: all), where, at what price and with how many nodes.

    The record is asked, not the cloud: `skyplan sync` makes it learn what was lost.
    """
    from planner.app import review, wire
    from planner.app import status as asking
    from planner.cli import view
    from planner.model.diagnostic import Diagnostic
    from planner.model.errors import InputError
    from planner.render.runs_text import status_lines

    record = wire.record(review.setting(project_file, catalog).project)
    try:
        found = asking.status(record, jobs)
    finally:
        record.close()
    unknown = sorted(set(jobs) - {s.job for s in found})
    if unknown:
        raise InputError(
            [Diagnostic(code="SKY-APPLY-323", summary=f"no job `{name}` was ever applied") for name in unknown]
        )
    if as_json:
        view.put_json({"format_version": "1.0", "jobs": [asking.document(s) for s in found]})
    elif found:
        rows = [(s.job, s.run, s.nodes, s.attempts) for s in found]
        view.say(status_lines(rows, view.paint_for(sys.stdout)), stream=sys.stdout)
    else:
        click.echo("nothing was applied yet", err=True)
    return 0
