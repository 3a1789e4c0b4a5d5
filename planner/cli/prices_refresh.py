"""`skyplan prices refresh`: ask the clouds what holds now, and keep it.  Exits 1 only where nothing at all could be refreshed."""

# ruff: noqa: PLC0415, PLR0917 - a command imports when it runs, and its parameters are options

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.cli import options

if TYPE_CHECKING:
    from datetime import datetime

    from planner.app.refresh import Refresh

CLOUDS = ("aws", "gcp", "azure", "nebius")
KINDS = ("prices", "capacity", "quotas")


def _kinds(_ctx: click.Context, _param: click.Parameter, text: str) -> tuple[str, ...]:
    """`prices,quotas`."""
    words = tuple(word.strip() for word in text.split(",") if word.strip())
    unknown = [word for word in words if word not in KINDS]
    if unknown or not words:
        raise click.BadParameter(f"`{text}` is none of {', '.join(KINDS)}, or several with commas")
    return tuple(kind for kind in KINDS if kind in words)


@click.command("refresh")
@options.project
@options.catalog
@options.as_json
@click.option(
    "--cloud", "clouds", multiple=True, type=click.Choice(CLOUDS), help="Only this cloud [default: all of the project]."
)
@click.option(
    "--region",
    "regions",
    multiple=True,
    metavar="GLOB",
    help="Only regions that match [default: all that the targets allow].",
)
@click.option(
    "--what",
    "kinds",
    default=",".join(KINDS),
    show_default=True,
    callback=_kinds,
    metavar="WORDS",
    help="What to ask for: some of these, with commas.",
)
@click.option(
    "--since",
    metavar="TIME",
    help="Also read what prices were from then on, where a cloud tells (AWS: spot, 90 days; Nebius: spot, 30 days).",
)
@click.option("--dry-run", is_flag=True, help="Ask, and keep nothing.")
def command(
    project_file: Path | None,
    catalog: Path | None,
    as_json: bool,
    clouds: tuple[str, ...],
    regions: tuple[str, ...],
    kinds: tuple[str, ...],
    since: str | None,
    dry_run: bool,
) -> int:
    """Ask the clouds for prices, capacity and quotas, and keep what is new.

    Asks as you are: each cloud's usual credentials, which must be a planner's.  A cloud without credentials, or a region that does not answer, is a warning.
    """
    from planner.app import refresh as refreshing
    from planner.app import review, wire
    from planner.cli import view
    from planner.cli.bar import bar
    from planner.clouds.feeds.choose import RealFeeds
    from planner.render.diagnostics import document

    setting = review.setting(project_file, catalog)
    asked = refreshing.Asked(
        clouds=clouds, regions=regions, kinds=kinds, since=_since(since), now=wire.SystemClock().now()
    )
    project, market = setting.project, setting.market
    feeds = RealFeeds()
    keeper = None if dry_run else wire.history(project)
    try:
        with bar(refreshing.pieces(asked, project, market)) as advance:
            done = refreshing.refresh(asked, project, market, feeds, keeper, advance=advance)
    finally:
        feeds.close()
        if keeper is not None:
            keeper.close()
    view.warn(done.warnings, sys.stderr)
    if as_json:
        told = {**refreshing.document(done), "dry_run": dry_run, "warnings": document(done.warnings)}
        view.put_json({"format_version": "1.0", **told})
    else:
        view.say(_lines(done, dry_run=dry_run), stream=sys.stdout)
    if not done.anything:
        click.echo("error: no cloud answered, nothing was refreshed: see the warnings", err=True)
        return 1
    return 0


def _since(text: str | None) -> datetime | None:
    from datetime import datetime

    told = options.moment(text)
    return None if told is None else datetime.fromisoformat(told)


def _lines(done: Refresh, *, dry_run: bool) -> list[str]:
    """A line per cloud and region, and a total per cloud."""
    from planner.app.refresh import totals

    by_region: dict[tuple[str, str], list[int]] = {}
    for a in done.answers:
        row = by_region.setdefault((a.cloud, a.region), [0, 0, 0, 0, 0])
        for n, count in enumerate((a.read, a.new, a.unchanged, a.refused, int(not a.complete))):
            row[n] += count
    lines = [f"{cloud:7} {region:20} {_counts(row, dry_run=dry_run)}" for (cloud, region), row in by_region.items()]
    for cloud, t in totals(done).items():
        row = [t["read"], t["new"], t["unchanged"], t["refused"], t["incomplete"]]
        lines.append(f"{cloud:7} {'in all':20} {_counts(row, dry_run=dry_run)}")
    return lines or ["no region was answered"]


def _counts(row: list[int], *, dry_run: bool) -> str:
    read, new, unchanged, refused, incomplete = row
    words = [f"{read:,} read"] if dry_run else [f"{new:,} new", f"{unchanged:,} unchanged"]
    words += [f"{refused:,} refused"] if refused else []
    return ", ".join(words) + ("  (not whole: see the warnings)" if incomplete else "")
