"""`skyplan sync`: the record learns what really runs.  Exits 0, or with --detailed-exitcode 2 when it learnt something."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from planner.cli import options
from planner.cli.apply_cmd import LEASE_TIMEOUT, QUIET


@click.command("sync")
@click.argument("what", nargs=-1, metavar="[JOB|PLAN...]")
@options.project
@options.catalog
@options.as_json
@LEASE_TIMEOUT
@QUIET
@click.option(
    "--generation",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="With a PLAN: the generation its stacks were synthesised with.",
)
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 when something was lost or taken in.")
def command(
    what: tuple[str, ...],
    project_file: Path | None,
    catalog: Path | None,
    as_json: bool,
    lease_timeout: float,
    quiet: bool,
    generation: int,
    detailed_exitcode: bool,
) -> int:
    """Note which nodes of the JOBs (names; default: all) are gone.  Starts nothing: a lost node is not made again.

    A PLAN file takes in what a pipeline of your own applied of `skyplan synth`'s stacks.
    """
    from dataclasses import asdict

    from planner.app import inputs, review, wire
    from planner.app import sync as syncing
    from planner.cli import view
    from planner.cli.progress import ending_politely, progress
    from planner.render.diagnostics import document
    from planner.spec.normal import workload_from_document

    setting = review.setting(project_file, catalog)
    done: list[syncing.Synced] = []
    with progress(quiet=quiet or as_json) as tell, ending_politely():
        ports = wire.ports(setting.project, setting.market, tell)
        try:
            for one in what or tuple(j.name for j in ports.record.jobs()):
                foreign, job = None, one
                if one.endswith(".json"):
                    plan = inputs.read_plan(Path(one))
                    workload = workload_from_document(plan.job)
                    foreign, job = syncing.Foreign(plan=plan, workload=workload, generation=generation), plan.name
                done.append(syncing.sync(job, ports, foreign=foreign, lease_timeout=lease_timeout))
        finally:
            ports.record.close()
    for learnt in done:
        view.warn(learnt.warnings, sys.stderr)
    if as_json:
        jobs = [{**asdict(d), "warnings": document(d.warnings)} for d in done]
        view.put_json({"format_version": "1.0", "jobs": jobs})
    else:
        for learnt in done:
            view.say([_line(learnt)], stream=sys.stdout)
    return 2 if detailed_exitcode and any(d.lost or d.taken_in for d in done) else 0


def _line(learnt: object) -> str:
    from planner.app.sync import Synced

    assert isinstance(learnt, Synced)  # noqa: S101 - for the type checker
    parts = [f"took in {run}" for run in learnt.taken_in]
    parts += [f"lost r{rank:02d} of {run}" for run, rank in learnt.lost]
    parts += [f"{machine} is no node of the record; `skyplan destroy` ends it" for machine in learnt.strangers]
    return f"{learnt.job}: {'; '.join(parts) or 'as the record has it'}"
