"""`skyplan prices`: the record's history of prices and capacity: refresh, import, history, chart, snapshot, compact."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner.cli import options
from planner.cli.numbers import Finite

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from datetime import datetime, timedelta

    from planner.model.market import Market
    from planner.model.past import Pasts
    from planner.state.history import History


class _Prices(click.Group):
    """With `refresh`, whose module is imported only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """It first: it is what is called most."""
        return ["refresh", *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One of ours, or it."""
        if cmd_name == "refresh":
            from planner.cli.prices_refresh import command as refresh

            return refresh
        return super().get_command(ctx, cmd_name)


@click.group("prices", cls=_Prices)
def command() -> None:
    """Prices and capacity as they were observed, in the record.  The database is SKYPLAN_DATABASE_URL, else the file in .skyplan."""


@contextmanager
def _history(
    project_file: Path | None, catalog: Path | None, *, make: bool = False
) -> Generator[tuple[History, Market]]:
    from planner.app import review, wire

    setting = review.setting(project_file, catalog)
    history = wire.history(setting.project, make=make)
    try:
        yield history, setting.market
    finally:
        history.close()


@command.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--source", help="Name the source [default: the file's name, or its column `source`].")
@options.project
@options.catalog
@options.as_json
def import_command(
    files: tuple[Path, ...], source: str | None, project_file: Path | None, catalog: Path | None, as_json: bool
) -> int:
    """Take recorded histories into the record: our CSV, GCP's and Azure's price lists over time, AWS spot prices; plain, .gz or .zst.

    Every bad row of every file is named and then nothing is written.  What is known already is not written again.
    """
    from datetime import UTC, datetime

    from planner.app import prices
    from planner.cli import view
    from planner.cli.bar import bar

    if source is not None and not (source and source.isprintable()):
        raise click.BadParameter(f"{source!r} is no name", param_hint="--source")
    pieces = sum(
        2 + f.stat().st_size // (prices.TOLD_EVERY * (12 if f.suffix in {".gz", ".zst"} else 80))
        for f in files
        if f.is_file()
    )
    with _history(project_file, catalog, make=True) as (history, market), bar(2 * pieces) as tell:
        done = prices.import_files(files, history, market, datetime.now(UTC), source=source, tell=tell)
    view.warn(done.warnings, sys.stderr)
    if as_json:
        view.put_json(
            {
                "format_version": "1.0",
                "files": done.files,
                "rows": done.rows,
                "new": done.new,
                "unchanged": done.unchanged,
                "left_out": dict(sorted(done.left_out.items())),
            }
        )
    else:
        left = "".join(f", {n:,} rows {why} left out" for why, n in sorted(done.left_out.items()))
        click.echo(
            f"imported: {done.new:,} changes of {done.rows:,} rows ({done.unchanged:,} readings told nothing new{left})"
        )
    return 0


def _request(f: Callable[..., Any]) -> Callable[..., Any]:
    """The options of `history` and `chart`."""
    for add in (
        click.argument("accelerators", nargs=-1, required=True, metavar="GPU:COUNT..."),
        click.option("--capacity", type=click.Choice(["spot", "on_demand"]), multiple=True, help="[default: both]"),
        click.option("--cloud", type=click.Choice(["aws", "gcp", "azure", "nebius"]), multiple=True),
        click.option("--region", multiple=True, help="Globs allowed."),
        click.option("--since", metavar="TIME", help="From then on [default: 30 days before the end]."),
        click.option("--until", metavar="TIME", help="Until then, by what was known then [default: now]."),
        options.project,
        options.catalog,
        options.as_json,
    ):
        f = add(f)
    return f


def _past(accelerators: tuple[str, ...], given: dict[str, Any]) -> Pasts:
    from datetime import UTC, datetime, timedelta

    from planner.app import offers, prices

    until = _moment(given["until"]) or datetime.now(UTC)
    since = _moment(given["since"]) or until - timedelta(days=30)
    if since >= until:
        raise click.BadParameter("--since must lie before --until")
    request = offers.Request(
        accelerators=accelerators,
        job_file=None,
        nodes=1,
        capacity=given["capacity"] or ("spot", "on_demand"),
        clouds=given["cloud"],
        regions=given["region"],
        hours=24.0,
        top=1000,
        project_file=given["project_file"],
        catalog=given["catalog"],
    )
    with _history(given["project_file"], given["catalog"]) as (history, _):
        return prices.past(request, history, since, until)


def _moment(text: str | None) -> datetime | None:
    from datetime import datetime

    known = options.moment(text)
    return datetime.fromisoformat(known) if known else None


@command.command("history")
@_request
@click.option("--top", type=click.IntRange(1), default=30, show_default=True)
def history_command(accelerators: tuple[str, ...], top: int, as_json: bool, **given: Any) -> int:
    """What GPU:COUNT cost over time: by series, cheapest work first, with least, median, most, and how much it varied."""
    from planner.cli import view
    from planner.render import prices_text

    found = _past(accelerators, given)
    if as_json:
        view.put_json(prices_text.document(found, top))
    else:
        view.say(prices_text.lines(found, top, view.paint_for(sys.stdout)), stream=sys.stdout)
    return 0 if found.found else 1


@command.command("chart")
@_request
@click.option("--lines", type=click.IntRange(1, 6), default=6, show_default=True, help="At most so many series.")
@click.option("--svg", type=click.Path(dir_okay=False, path_type=Path), help="Write it there.")
@click.option("--png", type=click.Path(dir_okay=False, path_type=Path), help="Write it there.")
@click.option(
    "--theme",
    type=click.Choice(["auto", "light", "dark"]),
    default="auto",
    show_default=True,
    help="Of files; auto is as the viewer has it, and light in a PNG.",
)
def chart_command(
    accelerators: tuple[str, ...],
    lines: int,
    svg: Path | None,
    png: Path | None,
    theme: str,
    as_json: bool,
    **given: Any,
) -> int:
    """Draw what GPU:COUNT cost over time, here or into files."""
    import shutil

    from planner.app.files import write_whole
    from planner.cli import view
    from planner.render import chart_svg, chart_text, prices_text
    from planner.render.plot_svg import Series

    found = _past(accelerators, given)
    series = [
        Series(
            name=p.series,
            points=chart_svg.steps(
                [at for at, _ in p.changes], [float(price) for _, price in p.changes], found.until.timestamp()
            ),
        )
        for p in found.found[:lines]
    ]
    title, unit = f"{' '.join(accelerators)}: price of a node", "USD/h"
    if svg:
        write_whole(svg, chart_svg.chart(series, title=title, unit=unit, theme=theme).encode())  # pyright: ignore[reportArgumentType] - click checks it
    if png:
        from planner.render.png import png as drawn

        fixed = "dark" if theme == "dark" else "light"
        write_whole(png, drawn(chart_svg.chart(series, title=title, unit=unit, theme=fixed)))
    if as_json:
        view.put_json(prices_text.document(found, lines))
    elif not svg and not png:
        size = shutil.get_terminal_size((100, 30))
        paint = view.paint_for(sys.stdout)
        view.say(
            chart_text.chart_lines(series, title=title, unit=unit, width=size.columns, height=size.lines, paint=paint),
            stream=sys.stdout,
        )
    if len(found.found) > lines:
        click.echo(
            f"{len(found.found) - lines} more series: `skyplan prices history` lists them; --region, --cloud and --capacity choose",
            err=True,
        )
    return 0 if found.found else 1


@command.command("snapshot")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@options.as_of
@options.project
@options.catalog
@options.as_json
def snapshot_command(
    file: Path, as_of: str | None, project_file: Path | None, catalog: Path | None, as_json: bool
) -> int:
    """Write the market as of a moment to FILE, for `market: {source: FILE}` in skyplan.yaml."""
    from planner.app import prices
    from planner.app.files import write_whole
    from planner.cli import view

    with _history(project_file, catalog) as (history, _):
        data = prices.snapshot(history, _moment(as_of)).encode()
    write_whole(file, data)
    if as_json:
        view.put_json({"format_version": "1.0", "file": str(file), "bytes": len(data)})
    else:
        click.echo(f"written: {file}")
    return 0


@command.command("compact")
@click.option("--keep-days", type=Finite(min=0, max=36_500), required=True, help="Younger changes all stay.")
@click.option(
    "--keep-changes-at", metavar="SPAN", help="Of older ones the last per span stays, such as 1h [default: none do]."
)
@click.option("--dry-run", is_flag=True, help="Say what would go, and keep it.")
@options.project
@options.catalog
@options.as_json
def compact_command(
    keep_days: float,
    keep_changes_at: str | None,
    dry_run: bool,
    project_file: Path | None,
    catalog: Path | None,
    as_json: bool,
) -> int:
    """Let old parts of the history go.  The newest price of each series stays, and so does the one that held where the kept part begins.

    Plans of before that moment can then not be replayed byte for byte.
    """
    from datetime import UTC, datetime

    from planner.app import prices
    from planner.cli import view

    every = _span(keep_changes_at)
    with _history(project_file, catalog) as (history, _):
        gone = prices.compact(history, datetime.now(UTC), keep_days=keep_days, every=every, dry=dry_run)
        left = history.stored()
    if as_json:
        told = {"removed": gone, "prices": left.prices, "capacity": left.capacity, "dry_run": dry_run}
        view.put_json({"format_version": "1.0", **told})
    else:
        click.echo(
            f"{'would remove' if dry_run else 'removed'}: {gone:,} rows; {left.prices:,} prices and {left.capacity:,} words about capacity are {'there now' if dry_run else 'left'}"
        )
    return 0


def _span(text: str | None) -> timedelta | None:
    if text is None:
        return None
    from datetime import timedelta

    from planner.spec.units import Malformed, hours

    try:
        found = timedelta(hours=hours(text))
    except Malformed as error:
        raise click.BadParameter(f"`{text}` {error}", param_hint="--keep-changes-at") from error
    if found <= timedelta(0):
        raise click.BadParameter("a span above 0, such as 1h", param_hint="--keep-changes-at")
    return found
