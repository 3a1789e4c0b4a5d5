"""`skyplan replay`: policies over recorded markets, beside the least possible."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from planner.cli import options
from planner.cli.numbers import Finite

POLICIES = (
    "on-demand",
    "never-move",
    "uniform-progress",
    "failover",
    "uniform-progress-failover",
    "always-cheapest",
    "price-gap",
    "net-gain",
    "skynomad",
    "skyplan",
)
FORMATS = ("auto", "points", "spotlake", "aws-archive", "events", "availability")
_HOURS = Finite(min=0, min_open=True)
_USD = Finite(min=0, min_open=True, max=1_000_000, max_open=True)


@click.command("replay")
@click.argument("traces", nargs=-1, required=True, metavar="TRACES...", type=click.Path(path_type=Path))
@click.option(
    "--policy",
    metavar="POLICY",
    type=click.Choice(POLICIES),
    multiple=True,
    help=f"One of {', '.join(POLICIES)}.  Repeatable.  [default: all; failover is always there]",
)
@click.option("--checkpoint-gb", default="50", show_default=True, help="One or more, e.g. 5,50,500.")
@click.option("--work-hours", type=_HOURS, default=24.0, show_default=True)
@click.option("--deadline-hours", type=_HOURS, default=36.0, show_default=True, help="Length of a window.")
@click.option("--cold-minutes", type=Finite(min=0), default=10.0, show_default=True)
@click.option("--zones", default="", help="Zones or regions, separated by commas; globs allowed.")
@click.option("--instance", multiple=True, help="Instance types of files that hold many; globs allowed.")
@click.option("--window-every", type=_HOURS, default=12.0, show_default=True, help="Hours between windows' begins.")
@click.option("--tick-minutes", type=Finite(min=0.5), default=10.0, show_default=True)
@click.option("--format", "form", type=click.Choice(FORMATS), default="auto", show_default=True, help="Of the traces.")
@click.option("--polarity", type=click.Choice(["available", "preempted"]), help="What 1 means in availability JSON.")
@click.option("--spot-usd", type=_USD, help="Spot price per hour where a trace has none.")
@click.option("--on-demand-usd", type=_USD, help="On-demand price per hour where a trace has none.")
@click.option("--plots", type=click.Path(path_type=Path, file_okay=False), help="Write SVG plots into this folder.")
@options.catalog
@options.as_json
def command(
    traces: tuple[Path, ...],
    policy: tuple[str, ...],
    checkpoint_gb: str,
    work_hours: float,
    deadline_hours: float,
    cold_minutes: float,
    zones: str,
    instance: tuple[str, ...],
    window_every: float,
    tick_minutes: float,
    form: str,
    polarity: str | None,
    spot_usd: float | None,
    on_demand_usd: float | None,
    plots: Path | None,
    catalog: Path | None,
    as_json: bool,
) -> int:
    """Replay recorded markets and show what each policy would have cost, beside the least possible.

    TRACES are change points (the format of docs/replay.md), SpotLake's CSV, AWS' public archive of spot prices, price events, or availability JSON.
    """
    from planner.app import replay, replay_show
    from planner.cli import view
    from planner.cli.bar import bar
    from planner.render import replay_text

    if work_hours > deadline_hours:
        raise click.UsageError("--work-hours is more than --deadline-hours: nothing finishes")
    request = replay.Request(
        files=traces,
        policies=policy,
        checkpoints_gb=_sizes(checkpoint_gb),
        work_hours=work_hours,
        deadline_hours=deadline_hours,
        cold_minutes=cold_minutes,
        zones=tuple(z.strip() for z in zones.split(",") if z.strip()),
        instances=instance,
        every_hours=window_every,
        tick_minutes=tick_minutes,
        form=form,
        polarity=polarity or "",
        spot_usd_h=spot_usd,
        on_demand_usd_h=on_demand_usd,
        catalog=catalog,
    )
    found, warnings = replay.load(request)
    view.warn(warnings, sys.stderr)
    with bar(replay.pieces(found, request)) as advance:
        cells = replay.run(found, request, advance)
    if plots is not None:
        plots.mkdir(parents=True, exist_ok=True)
        for cell in cells:
            for name, svg in replay_show.plots(cell).items():
                (plots / name).write_text(svg, encoding="utf-8")
                click.echo(f"wrote {plots / name}", err=True)
    if as_json:
        view.put_json(replay_show.document(cells))
        return 0
    paint = view.paint_for(sys.stdout)
    for cell in cells:
        rows = replay_text.table(replay_show.lines(cell), mean_least_usd=cell.mean_least_usd, paint=paint)
        view.say([replay_show.heading(cell), *rows, ""], stream=sys.stdout)
    return 0


def _sizes(text: str) -> tuple[float, ...]:
    """`5,50,500`."""
    try:
        sizes = tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise click.UsageError(f"--checkpoint-gb `{text}`: numbers separated by commas") from error
    if not all(0 <= s < float("inf") for s in sizes):
        raise click.UsageError(f"--checkpoint-gb `{text}`: sizes of zero or more")
    return sizes
