"""Reads availability JSON, whose numbers mean opposite things in files that look alike: 1 is "available" in some and "preempted" in others.

What they mean must be declared, by `--polarity` or by `polarity` in the file; it is never guessed.  Files of one zone each make one market together.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from planner.model.diagnostic import Diagnostic, Location
from planner.replay.given import CODE
from planner.replay.points import MOST_GAP_S, MOST_USD_H, Heading, Points, trace_of

if TYPE_CHECKING:
    from planner.replay.trace import Trace

UNDECLARED = "SKY-MOVE-431"
POLARITIES = ("available", "preempted")
_GAPS = ("gap_s", "gap_seconds", "gap")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The numbers of a zone, already meaning "available"."""

    zone: str
    region: str
    gap_s: float
    available: tuple[bool, ...]
    spot_usd_h: float
    on_demand_usd_h: float


def read_availability(text: str, file: str, name: str, polarity: str) -> tuple[list[Seen], list[Diagnostic]]:
    """The zones of a file.  `name` is the zone of a file that names none."""
    try:
        document: Any = json.loads(text)
    except json.JSONDecodeError as error:
        return [], [_problem(file, f"no JSON: {error.msg}", line=error.lineno)]
    except (ValueError, RecursionError) as error:  # a number too long to be read, lists in lists without end
        return [], [_problem(file, f"no JSON: {str(error)[:80]}")]
    if not isinstance(document, dict | list):
        return [], [_problem(file, "no JSON object with `data`")]
    body: dict[str, Any] = {"data": document} if isinstance(document, list) else cast("dict[str, Any]", document)
    told = body.get("metadata")
    said: dict[str, Any] = {**(cast("dict[str, Any]", told) if isinstance(told, dict) else {}), **body}
    data = said.get("data")
    by_zone = cast("dict[str, Any]", data) if isinstance(data, dict) else {str(said.get("zone") or name): data}
    means = said.get("polarity") or polarity
    problems: list[Diagnostic] = []
    if means not in POLARITIES:
        problems.append(_problem(file, "does not say whether 1 is available or preempted", code=UNDECLARED))
    elif polarity and means != polarity:
        problems.append(_problem(file, f"says `{means}`, and --polarity says `{polarity}`", code=UNDECLARED))
    gap = next((said[n] for n in _GAPS if n in said), None)
    if not isinstance(gap, int | float) or isinstance(gap, bool) or not 0 < gap <= MOST_GAP_S:
        problems.append(_problem(file, f"one of {', '.join(_GAPS)} must be a number of seconds"))
    prices = [_price(said.get(n), n, file, problems) for n in ("spot_usd_h", "on_demand_usd_h")]
    for zone, values in by_zone.items():
        problems += _checked(values, zone, file, str(means))
    if problems or not isinstance(gap, int | float):
        return [], problems
    one = means == "available"
    region = str(said.get("region", ""))
    return [
        Seen(
            zone=zone,
            region=region,
            gap_s=float(gap),
            available=tuple((v > 0) is one for v in values),
            spot_usd_h=prices[0],
            on_demand_usd_h=prices[1],
        )
        for zone, values in cast("dict[str, list[float]]", by_zone).items()
    ], []


def market_of_zones(zones: list[Seen], files: tuple[str, ...]) -> tuple[tuple[Trace, ...], list[Diagnostic]]:
    """One trace of them all, as long as the shortest."""
    problems = [
        _problem(files[0], f"gap of {z.zone} is {z.gap_s:g} s, of {zones[0].zone} {zones[0].gap_s:g} s")
        for z in zones
        if z.gap_s != zones[0].gap_s
    ]
    names = [z.zone for z in zones]
    problems += [_problem(files[0], f"zone `{n}` twice") for n in sorted({n for n in names if names.count(n) > 1})]
    if problems:
        return (), problems
    ticks, points = min(len(z.available) for z in zones), Points()
    for z in zones:
        for k in range(ticks):
            if not k or z.available[k] != z.available[k - 1]:
                values = (float(z.available[k]), z.spot_usd_h, z.on_demand_usd_h)
                points.add(z.zone, z.region, k * z.gap_s, values)
    name = files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
    return (trace_of(points, Heading(name=name, gap_s=zones[0].gap_s, ticks=ticks, source=name)),), []


def _checked(values: Any, zone: str, file: str, means: str) -> list[Diagnostic]:
    if not isinstance(values, list) or not values:
        return [_problem(file, f"`data` of {zone} is no list of numbers")]
    listed = cast("list[Any]", values)
    out: list[Diagnostic] = []
    for k, value in enumerate(listed):
        good = isinstance(value, int | float) and 0 <= value < math.inf
        if not good or (means == "preempted" and value not in {0, 1}):
            out.append(
                _problem(file, f"`data` of {zone}, number {k}: `{str(value)[:40]}` is not what `{means}` allows")
            )
    return out


def _price(value: Any, what: str, file: str, problems: list[Diagnostic]) -> float:
    if value is None:
        return math.nan
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < MOST_USD_H:
        return float(value)
    problems.append(_problem(file, f"{what} `{str(value)[:40]}` is no price"))
    return math.nan


def _problem(file: str, summary: str, *, code: str = CODE, line: int = 1) -> Diagnostic:
    return Diagnostic(code=code, summary=summary, location=Location(file, line))
