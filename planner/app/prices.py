"""The history for people: importing recorded ones, what a request's prices did, snapshots, and letting old parts go.

Decides which series a request is about (those that `skyplan offers` would list, best first) and that an import is checked whole before its first row is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from planner.app import inputs, offers
from planner.app.markets import told_by
from planner.app.price_files import PriceFile
from planner.app.snapshots import snapshot_text
from planner.model.diagnostic import Diagnostic, Location
from planner.model.errors import InputError
from planner.model.offer import Cloud
from planner.model.past import Past, Pasts
from planner.model.readings import series_of_offer
from planner.state.history_read import usd, window
from planner.state.history_values import us

if TYPE_CHECKING:
    from planner.app.price_files import Reading
    from planner.model.market import Market
    from planner.model.plan import Placement
    from planner.state.history import History
    from planner.state.history_values import Steps

CHUNK: Final = 250_000
"""Readings per transaction of an import: a few seconds, in which no other writer comes through."""
TOLD_EVERY: Final = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What became of files.  `left_out`: rows by reason."""

    files: int
    rows: int
    new: int
    unchanged: int
    left_out: dict[str, int] = field(default_factory=dict[str, int])
    warnings: tuple[Diagnostic, ...] = ()


def import_files(
    paths: Sequence[Path],
    history: History,
    market: Market,
    now: datetime,
    *,
    source: str | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Imported:
    """Read every file whole, then keep what is new in them.  Raises InputError with every bad row of every file; then nothing was written."""
    zones = _az_ids(market)
    files = [PriceFile(p, inputs.shown(p), source=source, zones=zones, now=us(now)) for p in paths]
    problems: list[Diagnostic] = []
    left_out: Counter[str] = Counter()
    for file in files:
        try:
            for k, _ in enumerate(file.readings()):
                if k % TOLD_EVERY == 0:
                    tell(f"checking {file.shown}: {k:,} readings")
        except InputError as error:
            problems += error.diagnostics
        problems += file.problems
        if file.more_problems:
            summary = f"{file.more_problems:,} more rows cannot be read"
            problems.append(Diagnostic(code="SKY-CAT-118", summary=summary, location=Location(file.shown)))
        left_out += file.left_out
    if problems:
        raise InputError(problems)
    new = unchanged = 0
    warnings: list[Diagnostic] = []
    for file in files:
        checked, readings = file.rows, file.readings()
        while chunk := list(islice(readings, CHUNK)):
            done = history.record(_told(chunk, file, tell), now=now, live=False)
            new, unchanged = new + done.new, unchanged + done.unchanged
            warnings += done.refused
        if file.problems or file.rows != checked:
            summary = f"changed while it was read: {checked:,} rows were checked, {file.rows:,} were there then; import it again"
            raise InputError([Diagnostic(code="SKY-CAT-118", summary=summary, location=Location(file.shown))])
    return Imported(
        files=len(files),
        rows=sum(f.rows for f in files),
        new=new,
        unchanged=unchanged,
        left_out=dict(left_out),
        warnings=tuple(warnings),
    )


def _told(chunk: list[Reading], file: PriceFile, tell: Callable[[str], None]) -> Iterator[Reading]:
    for k, reading in enumerate(chunk):
        if k % TOLD_EVERY == 0:
            tell(f"writing {file.shown}: {file.rows:,} rows read")
        yield reading


def _az_ids(market: Market) -> dict[str, str]:
    """Region of each AZ id that the catalog knows."""
    pairs: set[tuple[int, int]] = set(zip(market.zone_ix.tolist(), market.region_ix.tolist(), strict=True))
    found: dict[str, str] = {market.zones[z]: market.regions[r].name for z, r in pairs if "-az" in market.zones[z]}
    return found | {zone: r.name for r in market.regions if r.cloud is Cloud.AWS for zone in r.zones if "-az" in zone}


def past(request: offers.Request, history: History, since: datetime, until: datetime) -> Pasts:
    """What prices a request's offers had."""
    return past_of(offers.run(request).placements, history, since, until)


def past_of(placements: Sequence[Placement], history: History, since: datetime, until: datetime) -> Pasts:
    """What prices those offers had, in their order; those of placements over several clouds are left out."""
    series = list(dict.fromkeys(series_of_offer(p.offer_id) for p in placements if not p.parts))
    # a cloud that prices by region tells no zone's price
    regional = {name: _regional(name) for name in series}
    steps = history.changes([*series, *dict.fromkeys(regional.values())], since, until)
    chosen = list(dict.fromkeys(name if name in steps else regional[name] for name in series))
    failures = {f.series: (f.at, f.word.value, f.detail) for f in history.failures(since, until, chosen)}
    found = tuple(_past(name, steps[name], failures.get(name)) for name in chosen if name in steps)
    return Pasts(since=since, until=until, found=found, others=len(chosen) - len(found))


def _past(series: str, steps: Steps, failure: tuple[str, str, str] | None) -> Past:
    held = window(steps)
    return Past(
        series=series,
        changes=tuple((at / 1e6, usd(m)) for at, m in zip(steps.at.tolist(), steps.micro_usd.tolist(), strict=True)),
        least=held.min,
        median=held.median,
        mean=held.mean,
        most=held.max,
        volatility=held.volatility,
        last_failure=failure,
    )


def _regional(series: str) -> str:
    cloud, region, _, rest = series.split("/", 3)
    return f"{cloud}/{region}/-/{rest}"


def snapshot(history: History, at: datetime | None) -> str:
    """A snapshot file's text.  Raises InputError where nothing was known then."""
    told = told_by(history, at)
    if told is None:
        summary = "the record has no prices" + (f" as of {at:%Y-%m-%dT%H:%M:%SZ}" if at else "")
        raise InputError([Diagnostic(code="SKY-APPLY-319", summary=summary)])
    return snapshot_text(told)


def compact(history: History, now: datetime, *, keep_days: float, every: timedelta | None, dry: bool = False) -> int:
    """Rows that went, or would.  See `History.compact`."""
    return history.compact(now - timedelta(days=keep_days), every, dry=dry)
