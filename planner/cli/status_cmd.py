"""`skyplan status`: what runs and how far it is, as the record has it.  Asks no cloud."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.cli import options
from planner.cli.numbers import Finite

if TYPE_CHECKING:
    from planner.app.watching import JobView

HOME_AND_CLEAR = "\033[H\033[2J"


@click.command("status")
@click.argument("jobs", nargs=-1, metavar="[JOB...]")
@options.project
@options.catalog
@options.as_json
@click.option("--watch", "-w", is_flag=True, help="Show it anew until interrupted.")
@click.option("--every", type=Finite(0.2), default=2.0, show_default=True, metavar="SECONDS", help="With --watch.")
def command(
    jobs: tuple[str, ...],
    project_file: Path | None,
    catalog: Path | None,
    as_json: bool,
    watch: bool,
    every: float,
) -> int:
    """Show what runs of the JOBs (names; default: all), where, at what price, with how many nodes, and how far it is.

    The record is asked, not the cloud: `skyplan sync` makes it learn what was lost.  Steps and signs of life come from the agents on the nodes.
    """
    from planner.app import review, watching, wire
    from planner.cli import view
    from planner.model.diagnostic import Diagnostic
    from planner.model.errors import InputError, Unavailable

    project = review.setting(project_file, catalog).project
    record, told, clock = wire.record(project, make=False), wire.runtime(project, make=False), wire.SystemClock()
    try:
        while True:
            try:
                found = watching.view(record, told, jobs, clock.now(), points=0, checkpoints=1)
            except Unavailable as error:
                if not watch:
                    raise
                view.warn(error.diagnostics, sys.stderr)
                clock.sleep(every)
                continue
            if unknown := sorted(set(jobs) - {v.job for v in found}):
                raise InputError(
                    [Diagnostic(code="SKY-APPLY-323", summary=f"no job `{name}` was ever applied") for name in unknown]
                )
            if watch and sys.stdout.isatty() and not as_json:
                click.echo(HOME_AND_CLEAR, nl=False, color=True)
            _show(found, as_json=as_json, one_line=watch)
            if not watch:
                return 0
            sys.stdout.flush()
            clock.sleep(every)
    finally:
        told.close()
        record.close()


def _show(found: Sequence[JobView], *, as_json: bool, one_line: bool) -> None:
    import json
    from dataclasses import asdict

    from planner.app import status, watching_json
    from planner.cli import view
    from planner.render.runs_text import Told, status_lines

    if as_json:
        jobs = [{**status.document(v.status), "told": asdict(watching_json.summary(v))} for v in found]
        document = {"format_version": "1.0", "jobs": jobs}
        if one_line:
            click.echo(json.dumps(document, sort_keys=True))
        else:
            view.put_json(document)
        return
    if not found:
        click.echo("nothing was applied yet", err=True)
        return
    rows = [(v.job, v.status.run, v.status.nodes, v.status.attempts) for v in found]
    far = {
        v.job: Told(
            step=v.newest.step if v.newest else None,
            loss=v.newest.loss if v.newest else None,
            steps_per_second=v.rate,
            heard_seconds=v.heard_seconds,
            usd_so_far=v.cost.usd,
            exit_code=v.exit_code,
        )
        for v in found
    }
    moves = [status.move_line(v.status.move) for v in found if v.status.move]
    view.say([*status_lines(rows, view.paint_for(sys.stdout), far), *moves], stream=sys.stdout)
