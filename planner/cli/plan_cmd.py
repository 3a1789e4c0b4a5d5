"""`skyplan plan`: rank, show, write plan files.  Exits 1 where a job has no feasible placement; 0 otherwise, or with --detailed-exitcode 2 when a placement would
change.  A job that only waits for room is no error of its file: it is shown, warned of, and its plan file says so.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.cli import options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from planner.app.plan import Planned, Result

_FORMAT = "1.1"
_NAMED = 10
"""Jobs and files that a line on stderr names before it counts."""
_STEPS = 4
"""Pieces of work a job: read, placed, completed, written."""


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
@click.option(
    "--explain",
    is_flag=True,
    help="Show every job in full, with every term and examples of each reason for rejection.",
)
@click.option(
    "--show",
    "shown",
    multiple=True,
    metavar="NAME",
    help="Of many jobs, show this one in full; may be given several times.",
)
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
    shown: tuple[str, ...],
    runners_up: int,
    detailed_exitcode: bool,
) -> int:
    """Rank every way of running the JOBs and show the best, with what it costs, why, and what came next.

    Several jobs are placed together: within pools, quotas and budgets, at the least cost in total, and fairly where there is not enough for all.  Then a summary of the
    fleet comes first.
    """
    from datetime import UTC, datetime

    from planner.app import plan as planning
    from planner.cli import view
    from planner.cli.bar import bar

    request = planning.Request(
        job_files=job_files,
        project_file=project_file,
        catalog=catalog,
        plans_folder=_standing(out, plans_folder),
        offline=offline,
        as_of=options.moment(as_of),
        top=top,
    )
    with bar(_STEPS * len(job_files)) as advance:
        result = planning.run(request, datetime.now(UTC), advance)
        _known(shown, result)
        written, left = _write(result, out, advance) if out is not None else ((), 0)
    view.warn(result.warnings, sys.stderr)
    view.warn_old_prices(result.inputs.market.as_of, datetime.now(UTC))
    if stacks_folder is not None:
        from planner.app.synth import write_stacks

        for name, path in write_stacks(result, stacks_folder):
            click.echo(f"wrote {path} ({name})", err=True)
    _tell_written(written, left, out)
    if as_json:
        _put_json(result)
    else:
        _say(result, explain=explain, shown=frozenset(shown), runners_up=runners_up)
    return _exit_code(result.planned, detailed=detailed_exitcode)


def _standing(out: Path | None, plans_folder: Path) -> Path:
    """The folder of plans that stand: the one that is named, else that of --out, else the usual one."""
    source = click.get_current_context().get_parameter_source("plans_folder")
    named = source in {click.core.ParameterSource.COMMANDLINE, click.core.ParameterSource.ENVIRONMENT}
    return plans_folder if named or out is None else out


def _known(shown: Sequence[str], result: Result) -> None:
    """Raises BadParameter for a name that is no job's."""
    from planner.spec.near import did_you_mean

    names = {p.brief.name for p in result.planned}
    for name in shown:
        if name not in names:
            hint = did_you_mean(name, names)
            raise click.BadParameter(f"no job `{name}` among those that are planned" + (f"; {hint}" if hint else ""))


def _write(result: Result, out: Path, advance: Callable[[str], object]) -> tuple[tuple[Path, ...], int]:
    """The files written, and how many stand as they are."""
    from planner.app.files import plan_path, write_plans

    new = [p for p in result.planned if not p.is_file(plan_path(p.brief.name, out))]
    return write_plans((p.plan for p in new), out, advance), len(result.planned) - len(new)


def _tell_written(written: Sequence[Path], left: int, out: Path | None) -> None:
    if len(written) <= _NAMED:
        for path in written:
            click.echo(f"wrote {path}", err=True)
    else:
        click.echo(f"wrote {len(written):,} plans to {written[0].parent}", err=True)
    if left:
        click.echo(f"left {left:,} {'plan' if left == 1 else 'plans'} in {out} as they are", err=True)


def _put_json(result: Result) -> None:
    from planner.model.digest import pretty
    from planner.model.plan import to_document
    from planner.render.fleet_json import fleet_document

    plans = [p.plan for p in result.planned]
    document = {
        "format_version": _FORMAT,
        "fleet": fleet_document(result.fleet, plans),
        "plans": [to_document(plan) for plan in plans],
    }
    click.echo(pretty(document).decode(), nl=False)


def _say(result: Result, *, explain: bool, shown: frozenset[str], runners_up: int) -> None:
    """The fleet where there are several jobs; each job in full while they are few, else a line for each and in full what was asked for."""
    from planner.cli import view
    from planner.render.fleet_text import IN_FULL, fleet_lines, job_table
    from planner.render.plan_text import plan_lines

    paint = view.paint_for(sys.stdout)
    told = [(p.brief, p.before) for p in result.planned]
    many = len(told) > IN_FULL
    if len(told) > 1:
        view.say(fleet_lines(result.fleet, told, paint), stream=sys.stdout)
    if many and not explain:
        view.say(job_table(told, paint), stream=sys.stdout)
    for p in result.planned:
        if explain or p.brief.name in shown or not (many or shown):
            lines = plan_lines(p.plan, before=p.before, runners_up=runners_up, explain=explain, paint=paint)
            view.say(lines, stream=sys.stdout)


def _exit_code(planned: Sequence[Planned], *, detailed: bool) -> int:
    waiting = [p.brief.name for p in planned if p.waits]
    if waiting:
        verb = "waits" if len(waiting) == 1 else "wait"
        click.echo(f"warning: {_names(waiting)} {verb} for room [SKY-APPLY-360]", err=True)
    lost = [p.brief.name for p in planned if not p.brief.ranked and not p.waits]
    if lost:
        click.echo(f"error: no feasible placement for {_names(lost)}", err=True)
        counted = "--show NAME counts the reasons, " if len(planned) > 1 else ""
        click.echo(
            f"  hint: {counted}`skyplan explain JOB.yaml 'p5*'` tells them of each offer that the pattern names",
            err=True,
        )
        return 1
    return 2 if detailed and any(p.changed for p in planned) else 0


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
