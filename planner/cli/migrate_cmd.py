"""`skyplan migrate`: carry a job's move out, go on with one, or give it up.  Exits 0 when all that was asked is done, 1 when not, 130 when interrupted."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.cli import options
from planner.cli.apply_cmd import AUTO_APPROVE, LEASE_TIMEOUT, QUIET
from planner.cli.numbers import Finite

if TYPE_CHECKING:
    from planner.app.migrate import Migrated
    from planner.app.ports import Ports
    from planner.app.review import Setting
    from planner.model.migration import MigrationDiff


@click.command("migrate")
@click.argument("file", required=False, metavar="[DIFF]", type=click.Path(path_type=Path))
@options.project
@options.catalog
@options.as_json
@options.plans
@click.option("--plan", "plan_file", type=click.Path(path_type=Path), help="The plan that the diff was made from.")
@click.option("--job", metavar="NAME", help="Go on with the move of this job that is under way.")
@click.option("--revert", is_flag=True, help="Give the move up: until the cut-over the old nodes run on.")
@click.option(
    "--graph",
    type=click.Choice(["dot", "mermaid", "svg"]),
    help="Print the steps as a graph, and do nothing.",
)
@click.option(
    "--timeout",
    type=Finite(1),
    metavar="SECONDS",
    help="How long to wait for the checkpoint, the cut and the first progress, each [default: 900, 1800, 3600].",
)
@AUTO_APPROVE
@LEASE_TIMEOUT
@QUIET
def command(
    file: Path | None,
    project_file: Path | None,
    catalog: Path | None,
    as_json: bool,
    plans_folder: Path,
    plan_file: Path | None,
    job: str | None,
    revert: bool,
    graph: str | None,
    timeout: float | None,
    auto_approve: bool,
    lease_timeout: float,
    quiet: bool,
) -> int:
    """Move a job as a reviewed DIFF says: new nodes, checkpoint, cut-over, progress, and only then the end of the old nodes.

    Touches compute stacks only.  After a crash at any moment the same command, or --job NAME, goes on.
    """
    from datetime import UTC, datetime

    from planner.app import migrate_review as reviewing
    from planner.app import review, wire
    from planner.app.migrate import Order, Waits, migrate
    from planner.cli.progress import ending_politely, progress

    if (file is None) == (job is None):
        raise click.UsageError("give a DIFF file, or --job NAME for a move that is under way")
    diff = reviewing.read_diff(file) if file is not None else None
    if graph is not None:
        return _draw(diff, graph)
    setting = review.setting(project_file, catalog, priced=True)
    reviewing.needs_control(setting)
    waits = Waits.each(timeout) if timeout is not None else Waits()
    with progress(quiet=quiet or as_json) as tell, ending_politely():
        ports, nodes = wire.ports(setting.project, setting.market, tell), wire.runtime(setting.project)
        try:
            if diff is None or file is None or revert or _known(ports, diff):
                name = diff.job if diff is not None else job or ""
                order = Order(job=name, diff=diff, revert=revert, waits=waits, lease_timeout=lease_timeout)
            else:
                plan = reviewing.plan_of(diff, file, plan_file, plans_folder)
                order = reviewing.review(
                    diff, plan, setting, datetime.now(UTC), waits=waits, lease_timeout=lease_timeout
                )
                _approve(diff, setting, auto_approve=auto_approve)
            done = migrate(order, ports, nodes)
        finally:
            nodes.close()
            ports.record.close()
    _show(done, as_json=as_json)
    return 1 if done.problems else 0


def _known(ports: Ports, diff: MigrationDiff) -> bool:
    """Whether the diff was approved before: its move is under way, or done."""
    from planner.app.migrate_judge import same_move
    from planner.model.migration import MigrationStatus

    last = same_move(ports, diff)
    return last is not None and last.status != MigrationStatus.REVERTED


def _draw(diff: MigrationDiff | None, form: str) -> int:
    from planner.render import steps_graph

    if diff is None:
        raise click.UsageError("--graph draws the steps of a DIFF file")
    title = f"{diff.job}: {diff.standing.offer_id} to {diff.to[0].offer_id if diff.to else 'nowhere'}"
    drawn = {
        "dot": lambda: steps_graph.dot(diff.steps),
        "mermaid": lambda: steps_graph.mermaid(diff.steps),
        "svg": lambda: steps_graph.svg(diff.steps, title=title),
    }
    click.echo(drawn[form](), nl=False)
    return 0


def _approve(diff: MigrationDiff, setting: Setting, *, auto_approve: bool) -> None:
    """Show what would be done and ask.  Raises InputError (SKY-APPLY-322) where nobody can answer, Abort on no."""
    from planner.model.diagnostic import Diagnostic
    from planner.model.errors import InputError

    click.echo(f"{diff.job}: {diff.standing.offer_id} > {', '.join(p.offer_id for p in diff.to)}", err=True)
    click.echo(f"  {diff.text} [{diff.code}]; expected stop {diff.stop_minutes:.1f} min", err=True)
    for step in diff.steps:
        click.echo(f"  - {step.title}", err=True)
    if auto_approve:
        return
    if not sys.stdin.isatty():
        summary = f"moving {diff.job} needs approval, and there is no terminal to ask on"
        raise InputError([Diagnostic(code="SKY-APPLY-322", summary=summary, hint="give --auto-approve")])
    click.confirm(f"Move it in project `{setting.project.name}`?", abort=True, err=True)


def _show(done: Migrated, *, as_json: bool) -> None:
    from planner.app.status import run_document
    from planner.cli import view
    from planner.render import diagnostics

    if as_json:
        move = done.move
        view.put_json(
            {
                "format_version": "1.0",
                "job": move.job,
                "move": move.id,
                "reason": move.reason,
                "status": move.status,
                "changed": done.changed,
                "from_generation": move.from_generation,
                "to_generation": move.to_generation,
                "run": run_document(done.run, ()) if done.run else None,
                "diagnostics": diagnostics.document(done.problems),
            }
        )
    else:
        run = f" as {done.run.id} on {done.run.offer_id}" if done.run else ""
        click.echo(f"{done.move.job}: {done.move.status}{run}")
    view.warn(done.problems, sys.stderr)
