"""`skyplan catalog`: what the packaged prices are, and what is wrong in them."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from planner.cli import options


@click.group("catalog")
def command() -> None:
    """Look at the packaged prices and check them."""


@command.command("check")
@options.catalog
@options.as_json
@click.option("--code", "codes", multiple=True, metavar="CODE", help="Only these findings, in full.")
@click.option(
    "--limit", type=click.IntRange(0), default=5, show_default=True, help="Findings to print per code; 0 prints all."
)
@click.option(
    "--fail-on",
    type=click.Choice(["error", "finding"]),
    default="error",
    show_default=True,
    help="`finding` exits 2 on any.",
)
def check_command(catalog: Path | None, as_json: bool, codes: tuple[str, ...], limit: int, fail_on: str) -> int:
    """Find what is wrong in the data.  What is found is marked, shown in plans, and never wins silently."""
    from planner.app.catalog import checked
    from planner.cli import view
    from planner.model.codes import CODES
    from planner.render import diagnostics as render

    unknown = [c for c in codes if c not in CODES]
    if unknown:
        raise click.BadParameter(f"no code {', '.join(unknown)}", param_hint="--code")
    report = checked(catalog)
    shown = [d for d in report.findings if not codes or d.code in codes]
    if as_json:
        view.put_json(
            {
                "format_version": "1.0",
                "as_of": report.as_of,
                "offers": report.offers,
                "counts": report.counts,
                "findings": render.document(shown),
            }
        )
    else:
        out = [
            f"{report.offers:,} offers of {report.types} instance types in {report.regions} regions, newest price {report.as_of}",
            "",
        ]
        for code, count in report.counts.items():
            if codes and code not in codes:
                continue
            out.append(f"{code}  {count:5,}  {CODES[code].meaning}")
            mine = [d for d in shown if d.code == code]
            out += [f"    {d.location}: {d.summary.rsplit(': ', 1)[0]}" for d in (mine[:limit] if limit else mine)]
            if limit and len(mine) > limit:
                out.append(f"    … and {len(mine) - limit:,} more (--limit 0 --code {code})")
        view.say(out, stream=sys.stdout)
    return 2 if fail_on == "finding" and shown else 0


@command.command("show")
@click.argument("instance_type")
@options.catalog
@options.as_json
def show_command(instance_type: str, catalog: Path | None, as_json: bool) -> int:
    """Show all that is known of an instance type, with sources."""
    from dataclasses import asdict
    from difflib import get_close_matches

    from planner.app.inputs import load_market
    from planner.cli import view

    market = load_market(catalog)
    found = [t for t in market.types if t.name == instance_type]
    if not found:
        near = get_close_matches(instance_type, [t.name for t in market.types], 3)
        raise click.BadParameter(
            f"no such instance type (near: {', '.join(near) or 'none'})", param_hint="INSTANCE_TYPE"
        )
    if as_json:
        view.put_json({"format_version": "1.0", "instance_types": [asdict(t) for t in found]})
    else:
        for t in found:
            for name, value in asdict(t).items():
                click.echo(f"{name:16} {'unknown' if value is None else value}")
    return 0
