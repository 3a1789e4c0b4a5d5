"""Reads change points: `# {json}` with gap_s, start, ticks, instance and source, then CSV zone,region,t_s,available,spot_usd_h,on_demand_usd_h.

Columns are found by name, in any order.  `available` 1 is available, a count of nodes may stand there; without that column a price means that it could be had.
Every problem is told with its line; nothing is left out silently.
"""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from planner.model.diagnostic import Diagnostic, Location
from planner.replay.points import MOST_USD_H, Heading, Points, trace_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.replay.trace import Trace

NEEDED = ("zone", "t_s")
_MOST = 1e15
VALUES = ("available", "spot_usd_h", "on_demand_usd_h")
CODE = "SKY-MOVE-430"
FIRST, LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
"""Between these times markets are recorded."""
EPOCH_FROM_S = 1e8
"""Times from here on are counted since 1970, not since a beginning: three years of a trace are less."""


def is_given(lines: Sequence[str]) -> bool:
    """Whether the file looks like this format."""
    heads = [line for line in lines[:2] if not line.startswith("#")]
    return bool(heads) and set(NEEDED) <= {c.strip() for c in heads[0].split(",")}


def read_given(lines: Sequence[str], file: str, name: str) -> tuple[tuple[Trace, ...], list[Diagnostic]]:
    """The trace, or none where there are problems."""
    problems: list[Diagnostic] = []
    first = 1 if lines and lines[0].startswith("#") else 0
    heading = _heading(lines[0], file, name, problems) if first else Heading(name=name)
    rows = csv.reader(lines[first:])
    header = [c.strip() for c in next(rows)]
    at = {c: header.index(c) for c in (*NEEDED, "region", *VALUES) if c in header}
    if "available" not in at and "spot_usd_h" not in at:
        problems.append(_problem(file, first + 1, "neither `available` nor `spot_usd_h` is a column"))
        return (), problems
    points = Points()
    for line, row in enumerate(rows, start=first + 2):
        if not row or (len(row) == 1 and not row[0].strip()):
            continue
        _row(row, at, points, (file, line), problems)
    if not points.zone and not problems:
        problems.append(_problem(file, first + 1, "no row"))
    return ((), problems) if problems else ((trace_of(points, _begun(points, heading)),), [])


def _begun(points: Points, heading: Heading) -> Heading:
    """Times since 1970 become times since the first of them, where the heading does not say what they are counted from."""
    first = min(points.at_s)
    if heading.ticks or first < EPOCH_FROM_S:
        return heading
    points.at_s = [at - first for at in points.at_s]
    if heading.start or first >= LAST.timestamp():
        return heading
    return replace(heading, start=datetime.fromtimestamp(first, UTC))


def number(text: str) -> float:
    """A finite number that is not negative; nan for an empty field.  Raises ValueError otherwise."""
    text = text.strip()
    if not text:
        return math.nan
    value = float(text)
    if not math.isfinite(value) or value < 0:
        raise ValueError(text)
    return value


def price(text: str) -> float:
    """USD per hour; nan for an empty field.  Raises ValueError for what no node costs."""
    value = number(text)
    if value >= MOST_USD_H:
        raise ValueError(text)
    return value


def time(text: str) -> datetime:
    """UTC where it does not say.  Raises ValueError for what is no time at which a market could be recorded."""
    found = datetime.fromisoformat(text)
    found = found if found.tzinfo else found.replace(tzinfo=UTC)
    if not FIRST <= found < LAST:
        raise ValueError(f"{text} lies before {FIRST.year} or after {LAST.year}")
    return found


def _row(row: list[str], at: dict[str, int], points: Points, where: tuple[str, int], out: list[Diagnostic]) -> None:
    if len(row) <= max(at.values()):
        out.append(_problem(*where, f"{len(row)} fields, {max(at.values()) + 1} are needed"))
        return
    zone = row[at["zone"]].strip()
    if not zone:
        out.append(_problem(*where, "no zone"))
    found: dict[str, float] = {}
    for column in ("t_s", *VALUES):
        if column not in at:
            found[column] = math.nan
            continue
        try:
            found[column] = (price if column.endswith("_usd_h") else number)(row[at[column]])
        except ValueError:
            what = f"price below {MOST_USD_H:,}" if column.endswith("_usd_h") else "number of zero or more"
            out.append(_problem(*where, f"{column} `{row[at[column]][:40]}` is no {what}"))
            return
    if math.isnan(found["t_s"]):
        out.append(_problem(*where, "no t_s"))
        return
    region = row[at["region"]].strip() if "region" in at else ""
    points.add(zone, region, found["t_s"], (found["available"], found["spot_usd_h"], found["on_demand_usd_h"]))


def _heading(line: str, file: str, name: str, problems: list[Diagnostic]) -> Heading:
    try:
        said: Any = json.loads(line[1:])
    except (ValueError, RecursionError) as error:
        problems.append(_problem(file, 1, f"the heading is no JSON: {str(error)[:80]}"))
        return Heading(name=name)
    if not isinstance(said, dict):
        problems.append(_problem(file, 1, "the heading is no JSON object"))
        return Heading(name=name)
    document = cast("dict[str, Any]", said)
    gap, ticks, start = document.get("gap_s", 0), document.get("ticks", 0), document.get("start")
    if not _positive(gap) or not _positive(ticks) or int(ticks) != ticks:
        shown = f"gap_s `{str(gap)[:40]}` and ticks `{str(ticks)[:40]}`"
        problems.append(_problem(file, 1, f"{shown} are numbers above zero"))
        return Heading(name=name)
    when: datetime | None = None
    if start is not None:
        try:
            when = time(str(start))
        except ValueError:
            problems.append(_problem(file, 1, f"start `{start}` is no time"))
    return Heading(
        name=name,
        gap_s=float(gap),
        ticks=int(ticks),
        start=when,
        instance=str(document.get("instance", "")),
        source=str(document.get("source", "")),
    )


def _positive(value: object) -> bool:
    """A number above zero, or 0 for one that is not said."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST


def _problem(file: str, line: int, summary: str) -> Diagnostic:
    return Diagnostic(code=CODE, summary=summary, location=Location(file, line))
