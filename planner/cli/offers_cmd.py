"""`skyplan offers`: the market for a request, cheapest work first."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from planner.cli import options
from planner.cli.numbers import Finite


@click.command("offers")
@click.argument("accelerators", nargs=-1, metavar="[GPU:COUNT...]")
@click.option("--job", "job_file", type=click.Path(path_type=Path), help="The request of a job file instead.")
@click.option("--nodes", type=click.IntRange(1), default=1, show_default=True)
@click.option("--capacity", type=click.Choice(["spot", "on_demand"]), multiple=True, help="[default: both]")
@click.option("--cloud", type=click.Choice(["aws", "gcp", "azure", "nebius"]), multiple=True)
@click.option("--region", multiple=True, help="Globs allowed.")
@click.option(
    "--hours",
    type=Finite(min=0, min_open=True),
    default=24.0,
    show_default=True,
    help="Work on the first accelerator named.",
)
@click.option("--top", type=click.IntRange(1), default=30, show_default=True)
@options.project
@options.catalog
@options.as_json
def command(
    accelerators: tuple[str, ...],
    job_file: Path | None,
    nodes: int,
    capacity: tuple[str, ...],
    cloud: tuple[str, ...],
    region: tuple[str, ...],
    hours: float,
    top: int,
    project_file: Path | None,
    catalog: Path | None,
    as_json: bool,
) -> int:
    """List what is for sale for GPU:COUNT (any of them), with price, cost of the work, link, fabric and caveats."""
    from datetime import UTC, datetime

    from planner.app import offers as listing
    from planner.cli import view
    from planner.render import offers_text

    if bool(accelerators) == bool(job_file):
        raise click.UsageError("name accelerators (`H100:8`) or a job file (--job), one of the two")
    request = listing.Request(
        accelerators=accelerators,
        job_file=job_file,
        nodes=nodes,
        capacity=capacity or ("spot", "on_demand"),
        clouds=cloud,
        regions=region,
        hours=hours,
        top=top,
        project_file=project_file,
        catalog=catalog,
    )
    found = listing.run(request)
    view.warn(found.warnings, sys.stderr)
    view.warn_old_prices(found.as_of, datetime.now(UTC))
    if as_json:
        view.put_json(offers_text.document(found))
    else:
        view.say(offers_text.lines(found, view.paint_for(sys.stdout)), stream=sys.stdout)
    return 0 if found.placements else 1
