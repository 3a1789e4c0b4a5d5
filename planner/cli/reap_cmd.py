"""`skyplan reap`: end what should not be billed any more, once or for as long as it runs.  Exits 1 where a cloud refused or did not answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.cli import options
from planner.cli.apply_cmd import QUIET
from planner.cli.numbers import Finite

CLOUDS = ("aws", "gcp", "azure", "nebius")

if TYPE_CHECKING:
    from planner.app.reap import Reaped


@click.command("reap")
@click.argument("jobs", nargs=-1, metavar="[JOB...]")
@options.project
@options.catalog
@options.as_json
@QUIET
@click.option("--once", is_flag=True, help="One pass, then exit.")
@click.option(
    "--every",
    type=Finite(1),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="From the end of one pass to the next.",
)
@click.option(
    "--unknown",
    "end_unknown",
    is_flag=True,
    help="Also end machines that bear a job's tags and belong to no run of the record; of a job that it does not know, only where it is named.",
)
@click.option(
    "--look-in",
    "places",
    multiple=True,
    metavar="CLOUD:TARGET/REGION",
    help="Look for machines of ours there too; by default only where the record has ever launched.",
)
def command(
    jobs: tuple[str, ...],
    project_file: Path | None,
    catalog: Path | None,
    as_json: bool,
    quiet: bool,
    once: bool,
    every: float,
    end_unknown: bool,
    places: tuple[str, ...],
) -> int:
    """End the nodes of runs of the JOBs (names; default: all) that have ended, exited, failed, were fenced or are past their hard end.

    Acts as each target's orchestrator.  What a live run owns is never ended; machines of no run are named and left, but with --unknown.
    """
    import json
    from dataclasses import replace

    from planner.app import reap as reaping
    from planner.app import review, wire
    from planner.cli import view
    from planner.cli.progress import ending_politely, progress
    from planner.clouds.choose import RealClouds
    from planner.model.errors import Unavailable

    more = [_place(text) for text in places]
    setting = review.setting(project_file, catalog)
    with progress(quiet=quiet or as_json) as tell, ending_politely():
        ports = wire.ports(setting.project, setting.market, tell)
        told = wire.runtime(setting.project)
        try:
            if not end_unknown:
                _known(jobs, {job.name for job in ports.record.jobs()})
            while True:
                # listers keep the credentials they were made with, which end within the hour
                fresh = replace(ports, clouds=RealClouds())
                try:
                    done = reaping.reap(fresh, jobs, end_unknown=end_unknown, heard=told.seen, places=more)
                except Unavailable as error:
                    if once:
                        raise
                    # a database that is started anew must not end what ends the bills
                    done = reaping.nothing_known(error)
                view.warn([*reaping.warnings(done), *done.problems], sys.stderr)
                document = {"format_version": "1.0", **reaping.document(done)}
                if as_json and once:
                    view.put_json(document)
                elif as_json:
                    click.echo(json.dumps(document, sort_keys=True))
                elif once or done.ended or done.closed:
                    view.say([_line(done)], stream=sys.stdout)
                if once:
                    return 1 if done.problems else 0
                sys.stdout.flush()
                ports.clock.sleep(every)
        finally:
            told.close()
            ports.record.close()


def _place(text: str) -> tuple[str, str, str]:
    cloud, colon, rest = text.partition(":")
    target, slash, region = rest.rpartition("/")
    if not (cloud in CLOUDS and colon and target and slash and region):
        raise click.BadParameter(f"`{text}` is no place such as aws:prod/us-east-1", param_hint="--look-in")
    return cloud, target, region


def _known(jobs: tuple[str, ...], names: set[str]) -> None:
    from planner.model.diagnostic import Diagnostic
    from planner.model.errors import InputError

    if strange := sorted(set(jobs) - names):
        raise InputError(
            [Diagnostic(code="SKY-APPLY-323", summary=f"no job `{name}` was ever applied") for name in strange]
        )


def _line(done: Reaped) -> str:
    parts = [f"{len(done.ended)} machine(s) ended"] if done.ended else []
    parts += [f"{run} holds nothing any more" for run in done.closed]
    parts += [f"{job}: another process works on it" for job in done.busy]
    if done.problems:
        parts.append(
            f"not everything could be looked at, so machines may run on: see the {len(done.problems)} problem(s) above"
        )
    return "; ".join(parts) or "nothing to end"
