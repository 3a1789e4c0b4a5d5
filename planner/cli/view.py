"""Where output goes: data on stdout, everything else on stderr; colour only on a terminal, and never under NO_COLOR."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

import click

from planner.render.text import Paint

if TYPE_CHECKING:
    from datetime import datetime

    from planner.model.diagnostic import Diagnostic


def paint_for(stream: TextIO) -> Paint:
    """Colours for that stream."""
    if os.environ.get("NO_COLOR"):
        return Paint(on=False)
    return Paint(on=bool(os.environ.get("FORCE_COLOR")) or stream.isatty())


def say(lines: Sequence[str], *, stream: TextIO) -> None:
    """Print lines to stdout, coloured or not as the stream allows."""
    click.echo("\n".join(lines), color=paint_for(stream).on)


def put_json(document: Any) -> None:
    """Machine output: sorted keys, two spaces."""
    click.echo(json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False))


def warn(diagnostics: Sequence[Diagnostic], stream: TextIO) -> None:
    """Diagnostics on stderr."""
    from planner.render import diagnostics as render  # noqa: PLC0415 - rarely needed

    paint = paint_for(stream)
    for line in render.lines(diagnostics, paint):
        click.echo(line, err=True, color=paint.on)


OLD_AFTER_DAYS = 30
"""On-demand prices change a few times a year, spot prices within hours: past a month neither should be bought on without a look."""


def warn_old_prices(as_of: str, now: datetime) -> None:
    """One line on stderr where the newest price is older than a month by the wall clock; inside a plan, ages count at its `as_of`."""
    from datetime import UTC  # noqa: PLC0415 - start-up
    from datetime import datetime as when  # noqa: PLC0415 - start-up

    newest = when.fromisoformat(as_of)
    newest = newest if newest.tzinfo else newest.replace(tzinfo=UTC)
    days = (now - newest).days
    if days > OLD_AFTER_DAYS:
        click.echo(
            f"warning: the newest price is {days} days old ({as_of[:10]}); check before buying [SKY-CAT-109]", err=True
        )
