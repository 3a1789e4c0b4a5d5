"""`skyplan plan`: rank, show, write plan files.  Exits 0, or with --detailed-exitcode 2 when a placement would change."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from planner.cli import options

_FORMAT = "1.0"


@click.command("plan")
@options.jobs
@options.project
@options.catalog
@options.plans
@options.offline
@options.as_of
@options.as_json
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Write NAME.plan.json for each job there."
)
@click.option(
    "--stacks",
    "stacks_folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the choice's Terraform stacks there too (needs the `cdk` extra).",
)
@click.option("--top", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many placements to rank.")
@click.option("--explain", is_flag=True, help="Show every term, and examples of each reason for rejection.")
@click.option("--runners-up", type=click.IntRange(0, 1000), default=5, show_default=True, help="How many to print.")
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 when applying would change something.")
def command(
    job_files: tuple[Path, ...],
    project_file: Path | None,
    catalog: Path | None,
    plans_folder: Path,
    offline: bool,
    as_of: str | None,
    as_json: bool,
    out: Path | None,
    stacks_folder: Path | None,
    top: int,
    explain: bool,
    runners_up: int,
    detailed_exitcode: bool,
) -> int:
    """Rank every way of running the JOBs and show the best, with what it costs, why, and what came next."""
    from datetime import UTC, datetime

    from planner.app import plan as planning
    from planner.app.files import write_plans
    from planner.cli import view
    from planner.model.plan import to_document
    from planner.render.plan_text import plan_lines

    request = planning.Request(
        job_files=job_files,
        project_file=project_file,
        catalog=catalog,
        plans_folder=out or plans_folder,
        offline=offline,
        as_of=options.moment(as_of),
        top=top,
    )
    result = planning.run(request, datetime.now(UTC))
    view.warn(result.warnings, sys.stderr)
    view.warn_old_prices(result.inputs.market.as_of, datetime.now(UTC))
    if stacks_folder is not None:
        from planner.app.synth import write_stacks

        for name, path in write_stacks(result, stacks_folder):
            click.echo(f"wrote {path} ({name})", err=True)
    if out is not None:
        for path in write_plans([p.plan for p in result.planned], out):
            click.echo(f"wrote {path}", err=True)
    if as_json:
        view.put_json({"format_version": _FORMAT, "plans": [to_document(p.plan) for p in result.planned]})
    else:
        paint = view.paint_for(sys.stdout)
        for p in result.planned:
            view.say(
                plan_lines(p.plan, before=p.before, runners_up=runners_up, explain=explain, paint=paint),
                stream=sys.stdout,
            )
    if not all(p.plan.ranked for p in result.planned):
        click.echo(
            "error: no feasible placement for " + ", ".join(p.plan.name for p in result.planned if not p.plan.ranked),
            err=True,
        )
        return 1
    return 2 if detailed_exitcode and any(p.changed for p in result.planned) else 0
