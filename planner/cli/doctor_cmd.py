"""`skyplan doctor`: what works here and what does not.  Exits 0 when nothing failed, 1 else; with --fail-on warn also on warnings."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from planner.cli import options
from planner.cli.numbers import Finite

CLOUDS = ("aws", "gcp", "azure", "nebius")


@click.command("doctor")
@click.option(
    "--cloud",
    "clouds",
    multiple=True,
    type=click.Choice(CLOUDS),
    help="Of these only.  Repeatable.  [default: those of the targets]",
)
@click.option("--offline", is_flag=True, help="Ask no cloud and no service.")
@click.option("--fix-hints", is_flag=True, help="Print only what to do, a line each.")
@click.option(
    "--fail-on", type=click.Choice(["fail", "warn"]), default="fail", show_default=True, help="Exit 1 from here on."
)
@click.option(
    "--timeout",
    type=Finite(1, 3600),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="For each check.",
)
@options.project
@options.catalog
@options.plans
@options.as_json
def command(
    clouds: tuple[str, ...],
    offline: bool,
    fix_hints: bool,
    fail_on: str,
    timeout: float,
    project_file: Path | None,
    catalog: Path | None,
    plans_folder: Path,
    as_json: bool,
) -> int:
    """Check Terraform, credentials, quotas, clock, record and services, and say what to do.

    Changes nothing anywhere: clouds are asked who is calling and what it may read, as whoever runs this.
    """
    from datetime import UTC, datetime

    from planner.app import doctor, doctor_checks
    from planner.cli import view
    from planner.cli.bar import bar
    from planner.render import doctor_text

    asked = doctor_checks.Asked(
        clouds=clouds,
        plans_folder=plans_folder,
        project_file=project_file,
        catalog=catalog,
        offline=offline,
        now=datetime.now(UTC),
    )
    checks = doctor_checks.checks(asked, doctor_checks.real_ports())
    with bar(len(checks)) as advance:
        rows = doctor.examine(checks, seconds=timeout, advance=advance)
    if as_json:
        view.put_json(doctor.document(rows))
    elif fix_hints:
        found = doctor_text.hints(rows)
        if found:
            view.say(found, stream=sys.stdout)
    else:
        view.say(doctor_text.lines(rows, view.paint_for(sys.stdout)), stream=sys.stdout)
    bad = (doctor.State.FAIL, doctor.State.WARN) if fail_on == "warn" else (doctor.State.FAIL,)
    return 1 if doctor.worst(rows) in bad else 0
