"""`skyplan apply`: plans become nodes.  Exits 0 when they run (or ran already), 1 when not, 130 when interrupted."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.cli import options
from planner.cli.numbers import Finite

if TYPE_CHECKING:
    from planner.app.apply import Applied
    from planner.app.ready import Ready
    from planner.app.review import Setting
    from planner.model.plan import PlacementPlan

LEASE_TIMEOUT = click.option(
    "--lease-timeout",
    type=Finite(0),
    default=0.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for another process that works on the job.",
)
AUTO_APPROVE = click.option("--auto-approve", is_flag=True, help="Do not ask.")
QUIET = click.option("--quiet", is_flag=True, help="Without Terraform's own progress.")


@click.command("apply")
@click.argument("files", nargs=-1, required=True, metavar="PLAN|JOB...", type=click.Path(path_type=Path))
@options.project
@options.catalog
@options.as_json
@AUTO_APPROVE
@LEASE_TIMEOUT
@QUIET
@click.option(
    "--prepare",
    type=click.IntRange(0, 10),
    default=2,
    show_default=True,
    help="Make this many further regions ready for failing over (each has a NAT gateway by the hour).",
)
@click.option(
    "--prepare-only",
    is_flag=True,
    help="Make the choice's region and the --prepare next ones ready, and launch nothing: for a move that finds them standing.",
)
@click.option("--again", is_flag=True, help="Launch although this plan was applied before.")
@click.option(
    "--own-credentials",
    is_flag=True,
    help="The job brings credentials for stores that its nodes would have none for (SKY-APPLY-327).",
)
def command(
    files: tuple[Path, ...],
    project_file: Path | None,
    catalog: Path | None,
    as_json: bool,
    auto_approve: bool,
    lease_timeout: float,
    quiet: bool,
    prepare: int,
    prepare_only: bool,
    again: bool,
    own_credentials: bool,
) -> int:
    """Make plans real: network, access, then nodes; on a capacity or quota error the next placement the plan lists.

    A saved PLAN (NAME.plan.json) is applied as reviewed, without asking.  A JOB file is planned first, and shown for approval.
    """
    from datetime import UTC, datetime

    from planner.app import apply as applying
    from planner.app import review as reviewing
    from planner.app import wire
    from planner.app.ready import make_ready
    from planner.cli import view
    from planner.cli.progress import ending_politely, progress

    setting = reviewing.setting(project_file, catalog, priced=True)
    plans = _plans(files, project_file, catalog)
    done: list[Applied] = []
    with progress(quiet=quiet or as_json) as tell, ending_politely():
        ports = wire.ports(setting.project, setting.market, tell)
        try:
            reviewed = [
                reviewing.review(
                    plan,
                    setting,
                    ports.record.runs(plan.name),
                    datetime.now(UTC),
                    saved=saved,
                    prepare=prepare,
                    again=again,
                    own_credentials=own_credentials,
                    lease_timeout=lease_timeout,
                )
                for plan, saved in plans
            ]
            view.warn([w for r in reviewed for w in r.warnings], sys.stderr)
            _approve([p for p, saved in plans if not saved], setting, auto_approve=auto_approve)
            if prepare_only:
                ready = [make_ready(r.order, ports) for r in reviewed]
                _show_ready(ready, as_json=as_json)
                return 0
            done += [applying.apply(r.order, ports) for r in reviewed]
        finally:
            ports.record.close()
            _show(done, as_json=as_json)
    return 0


def _show_ready(ready: list[Ready], *, as_json: bool) -> None:
    from planner.cli import view

    if as_json:
        jobs = [
            {
                "job": r.job,
                "ready": list(r.places),
                "refused": [{"place": place, "code": code, "reason": why} for place, code, why in r.refused],
            }
            for r in ready
        ]
        view.put_json({"format_version": "1.0", "jobs": jobs})
        return
    lines = [f"{r.job}: {place} is ready" for r in ready for place in r.places]
    lines += [f"{r.job}: {place} is not: {why} [{code}]" for r in ready for place, code, why in r.refused]
    view.say(lines, stream=sys.stdout)


def _plans(
    files: tuple[Path, ...], project_file: Path | None, catalog: Path | None
) -> list[tuple[PlacementPlan, bool]]:
    """Each plan and whether it was saved: saved ones first, then those of job files, planned now."""
    from datetime import UTC, datetime

    from planner.app import inputs
    from planner.app import plan as planning

    found = [(inputs.read_plan(f), True) for f in files if f.suffix == ".json"]
    jobs = tuple(f for f in files if f.suffix != ".json")
    if jobs:
        request = planning.Request(
            job_files=jobs, project_file=project_file, catalog=catalog, plans_folder=Path(inputs.PLANS_FOLDER)
        )
        found += [(p.plan, False) for p in planning.run(request, datetime.now(UTC)).planned]
    return found


def _approve(plans: list[PlacementPlan], setting: Setting, *, auto_approve: bool) -> None:
    """Show what would be done and ask.  Raises InputError (SKY-APPLY-322) where nobody can answer, Abort on no."""
    from planner.cli import view
    from planner.model.diagnostic import Diagnostic
    from planner.model.errors import InputError
    from planner.render.plan_text import plan_lines

    if not plans:
        return
    paint = view.paint_for(sys.stderr)
    for plan in plans:
        for line in plan_lines(plan, before=None, runners_up=3, explain=False, paint=paint):
            click.echo(line, err=True, color=paint.on)
    if auto_approve:
        return
    if not sys.stdin.isatty():
        summary = f"applying {', '.join(p.name for p in plans)} needs approval, and there is no terminal to ask on"
        raise InputError([Diagnostic(code="SKY-APPLY-322", summary=summary)])
    click.confirm(f"Apply in project `{setting.project.name}`?", abort=True, err=True)


def _show(done: list[Applied], *, as_json: bool) -> None:
    from planner.app.status import attempt_document, run_document
    from planner.cli import view
    from planner.render.runs_text import run_lines

    if as_json:
        if done:
            jobs = [
                {
                    "job": a.run.job,
                    "changed": a.changed,
                    "run": run_document(a.run, a.nodes),
                    "attempts": [attempt_document(t) for t in a.attempts],
                }
                for a in done
            ]
            view.put_json({"format_version": "1.0", "jobs": jobs})
        return
    for a in done:
        head = "" if a.changed else f"{a.run.id} runs already; nothing to do"
        view.say([*([head] if head else []), *run_lines(a.run, a.nodes, view.paint_for(sys.stdout))], stream=sys.stdout)
