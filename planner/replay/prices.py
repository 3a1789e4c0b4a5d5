"""Reads price histories that list every change or every look: SpotLake's CSV, the public archive of AWS' spot prices (TSV, zone ids), and plain price events.

They hold many instance types: one trace comes of each.  Prices say nothing of capacity, so that a price below on-demand's counts as "could be had", but for SpotLake's
placement score: 1 of 3 counts as not.  Its scale changed for the P family on 2025-09-25 (notes of 2026-11); from then on their score is not read.
The archive's columns are found by what stands in them: the order was never checked against the archive itself.
"""

from __future__ import annotations

import csv
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from planner.model.diagnostic import Diagnostic, Location
from planner.replay.given import CODE, price, time
from planner.replay.points import Heading, Points, trace_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from planner.replay.trace import Trace

LOW_SCORE = 1
NEW_SCALE_FROM = datetime(2025, 9, 25, tzinfo=UTC).timestamp()
PRODUCT = "Linux/UNIX"
SPOTLAKE = ("Time", "InstanceType", "AZ", "SpotPrice")
EVENTS = ("availability_zone", "instance_type")
_ZONE_ID = re.compile(r"^(us|eu|ap|ca|sa|af|me|il|mx|usg)(ne|nw|se|sw|n|e|s|w|c)(\d+)-(?:[a-z]+\d-)?az\d+$")
_SIDES = {"n": "north", "e": "east", "s": "south", "w": "west", "c": "central"}
_TYPE = re.compile(r"^[a-z][a-z0-9-]*\d[a-z0-9-]*\.[a-z0-9-]+$")
_TIME_NAMES = ("timestamp_utc", "timestamp", "time")
_PRICE_NAMES = ("spot_usd_h", "spot_price", "price")


@dataclass(frozen=True, slots=True)
class Change:
    """A row: epoch seconds; nan is unknown."""

    instance: str
    zone: str
    region: str
    at: float
    available: float
    spot_usd_h: float
    on_demand_usd_h: float


def zone_id_region(zone: str) -> str:
    """`use1-az4` is in us-east-1; empty where it is no zone id."""
    found = _ZONE_ID.match(zone)
    if not found:
        return ""
    area, side, count = found.groups()
    side = _SIDES[side] if side in _SIDES else _SIDES[side[0]] + _SIDES[side[1]]
    return f"{'us-gov' if area == 'usg' else area}-{side}-{count}"


def is_spotlake(lines: Sequence[str]) -> bool:
    """Whether the header is SpotLake's."""
    return bool(lines) and set(SPOTLAKE) <= _header(lines[0])


def is_events(lines: Sequence[str]) -> bool:
    """Whether the header is that of plain price events."""
    return bool(lines) and set(EVENTS) <= _header(lines[0])


def is_archive(lines: Sequence[str]) -> bool:
    """Whether the first row looks like the archive's."""
    return bool(lines) and "\t" in lines[0] and _archive_columns(lines[0].split("\t")) is not None


def read_spotlake(lines: Sequence[str], file: str, name: str) -> tuple[tuple[Trace, ...], list[Diagnostic]]:
    """One trace per instance type."""

    def parse(row: dict[str, str]) -> Change:
        at, instance = seconds(row["Time"]), row["InstanceType"].strip()
        spot, score = _price(row["SpotPrice"]), _price(row.get("SPS", ""))
        readable = not (instance.startswith("p") and at >= NEW_SCALE_FROM)
        up = math.nan if math.isnan(score) or not readable else float(score > LOW_SCORE)
        return Change(
            instance=instance,
            zone=row["AZ"].strip(),
            region=row.get("Region", "").strip(),
            at=at,
            available=0.0 if math.isnan(spot) else up,
            spot_usd_h=spot,
            on_demand_usd_h=_price(row.get("OndemandPrice", "")),
        )

    return _read(csv.DictReader(lines), 2, parse, file, name)


def read_events(lines: Sequence[str], file: str, name: str) -> tuple[tuple[Trace, ...], list[Diagnostic]]:
    """One trace per instance type; of the products, Linux alone."""
    header = _header(lines[0])
    when = next((n for n in _TIME_NAMES if n in header), "")
    paid_as = next((n for n in _PRICE_NAMES if n in header), "")
    if not when or not paid_as:
        return (), [_problem(file, 1, f"a time ({', '.join(_TIME_NAMES)}) and a price ({', '.join(_PRICE_NAMES)})")]

    def parse(row: dict[str, str]) -> Change | None:
        if not row.get("product", PRODUCT).startswith(PRODUCT):
            return None
        zone = row["availability_zone"].strip()
        paid, listed = price(row[paid_as]), price(row.get("on_demand_usd_h", ""))
        return Change(
            row["instance_type"].strip(), zone, zone_id_region(zone), seconds(row[when]), math.nan, paid, listed
        )

    return _read(csv.DictReader(lines), 2, parse, file, name)


def read_archive(lines: Sequence[str], file: str, name: str) -> tuple[tuple[Trace, ...], list[Diagnostic]]:
    """One trace per instance type; of the products, Linux alone.  The file has no header."""
    columns = _archive_columns(lines[0].split("\t"))
    if columns is None:
        return (), [_problem(file, 1, "a time, a zone, an instance type and a price, separated by tabs")]

    def parse(row: dict[str, str]) -> Change | None:
        if not row.get("product", PRODUCT).startswith(PRODUCT):
            return None
        zone = row["zone"]
        region = zone_id_region(zone)
        return Change(row["type"], zone, region, seconds(row["time"]), math.nan, price(row["price"]), math.nan)

    split = (line.split("\t") for line in lines)
    rows = ({n: r[k].strip() for n, k in columns.items() if k < len(r)} for r in split)
    return _read(rows, 1, parse, file, name)


def seconds(text: str) -> float:
    """Epoch seconds of a time as text; UTC where it does not say.  Raises ValueError."""
    text = text.strip()
    if re.fullmatch(r"\d{9,11}(\.\d+)?", text):
        return time(datetime.fromtimestamp(float(text), UTC).isoformat()).timestamp()
    return time(text).timestamp()


def _read(
    rows: Iterable[dict[str, str]], first: int, parse: Callable[[dict[str, str]], Change | None], file: str, name: str
) -> tuple[tuple[Trace, ...], list[Diagnostic]]:
    problems: list[Diagnostic] = []
    found: dict[str, list[Change]] = {}
    for line, row in enumerate(rows, start=first):
        try:
            change = parse(row)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            problems.append(_problem(file, line, f"a whole row: {str(error)[:80]}"))
            continue
        if change is not None:
            found.setdefault(change.instance, []).append(change)
    if not found and not problems:
        problems.append(_problem(file, first, f"any row of {PRODUCT}"))
    if problems:
        return (), problems
    return tuple(_trace(changes, instance, name) for instance, changes in sorted(found.items())), []


def _trace(changes: list[Change], instance: str, name: str) -> Trace:
    begin = min(c.at for c in changes)
    points = Points()
    for c in changes:
        points.add(c.zone, c.region, c.at - begin, (c.available, c.spot_usd_h, c.on_demand_usd_h))
    start = datetime.fromtimestamp(begin, UTC)
    return trace_of(points, Heading(name=f"{name} {instance}", start=start, instance=instance, source=name))


def _archive_columns(cells: list[str]) -> dict[str, int] | None:
    """Which field is what, by what stands in the first row."""
    found: dict[str, int] = {}
    for k, cell in enumerate(c.strip() for c in cells):
        for what, fits in _KINDS:
            if what not in found and fits(cell):
                found[what] = k
                break
    return found if {"time", "zone", "type", "price"} <= set(found) else None


def _is_time(text: str) -> bool:
    try:
        seconds(text)
    except ValueError:
        return False
    return True


def _is_price(text: str) -> bool:
    return re.fullmatch(r"\d+\.\d+|\d{1,4}", text) is not None


_KINDS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("zone", lambda t: bool(_ZONE_ID.match(t)) or re.fullmatch(r"[a-z]{2}(-[a-z]+)+-\d[a-z]", t) is not None),
    ("type", lambda t: bool(_TYPE.match(t))),
    ("time", _is_time),
    ("price", _is_price),
    ("product", lambda t: t.startswith(("Linux", "Windows", "Red Hat", "SUSE"))),
)


def _header(line: str) -> set[str]:
    return {c.strip().strip('"') for c in line.lstrip("\ufeff").split(",")}


def _price(text: str) -> float:
    """A price or a score; SpotLake writes -1 and `N/A` for what it has none of."""
    text = text.strip()
    if text in {"", "N/A", "NA", "nan", "None"} or text.startswith("-"):
        return math.nan
    return price(text)


def _problem(file: str, line: int, wanted: str) -> Diagnostic:
    return Diagnostic(code=CODE, summary=f"not {wanted}", location=Location(file, line))
