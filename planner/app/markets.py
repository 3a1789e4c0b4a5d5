"""The market that plans are made in: the catalog, with the newer prices and capacity words of the record's history, or of a snapshot file, laid over it.

Decides which price is newer (a day counts), what a word about capacity means for a plan (`withdrawn`: not offered; `none` and `reclaimed`: failures that decay like refused
launches, until the place is seen `available` again), and that a series which the catalog lacks is named and not sold.  Its moment is its newest observation, not the clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from catalog.overlay import Layer, overlaid
from planner.model.diagnostic import Diagnostic, Severity
from planner.model.digest import digest
from planner.model.ledger import Failure
from planner.model.market import Market
from planner.model.offer import CAPACITY_ORDER, offer_id, pool_id
from planner.model.readings import CapacityWord
from planner.model.record import moment
from planner.placement.crowd import LONGEST_COOL_DOWN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.model.project import Project
    from planner.state.history_values import Quotes, Seen

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
SECOND: Final = timedelta(seconds=1)
DAY: Final = timedelta(days=1)
REMEMBERED: Final = 2 * LONGEST_COOL_DOWN
"""Failures of before are over, whatever they were."""
NAMED: Final = 5
"""Unknown series that a warning names."""
KNOWN_LATELY: Final = timedelta(days=30)
"""A series that was not seen for longer is history of something that was sold once: nobody is warned of it."""
_BUYABLE: Final = (CapacityWord.OFFERED, CapacityWord.AVAILABLE)


class Reads(Protocol):
    """What is asked of a history, as `planner.state.history.History` gives it."""

    def newest(self) -> datetime | None:
        """When it was told something last."""
        ...

    def as_of(self, at: datetime | None = None, series: Sequence[str] | None = None) -> Quotes:
        """Prices."""
        ...

    def capacity_as_of(self, at: datetime, series: Sequence[str] | None = None) -> dict[str, Seen]:
        """Words."""
        ...

    def failures(self, since: datetime, at: datetime, series: Sequence[str] | None = None) -> tuple[Seen, ...]:
        """Oldest first."""
        ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Told:
    """All that a history or a snapshot says, as of `at`.  `source` as people know it: `record`, or a file."""

    at: datetime
    source: str
    quotes: Quotes
    capacity: Mapping[str, Seen] = field(default_factory=dict[str, "Seen"])
    failures: tuple[Seen, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Priced:
    """A market with what was told laid over its catalog.  `document` names it in a plan's inputs."""

    market: Market
    base: Market
    told: Told
    catalog: Path | None
    document: dict[str, Any]
    unknown: tuple[str, ...]

    def failures(self, project: Project, at: datetime) -> tuple[Failure, ...]:
        """What could not be had in the days before `at`, by the project's targets."""
        return failures_of(self.told, self.base, project, at)

    def warnings(self) -> tuple[Diagnostic, ...]:
        """Of series that the catalog lacks."""
        if not self.unknown:
            return ()
        named = ", ".join(self.unknown[:NAMED]) + (", …" if len(self.unknown) > NAMED else "")
        summary = f"{len(self.unknown)} series of {self.told.source} are not in the catalog and not offered: {named}"
        return (Diagnostic(code="SKY-CAT-110", summary=summary, severity=Severity.WARNING),)


def market_with_history(market: Market, history: Reads, at: datetime | None, *, catalog: Path | None = None) -> Market:
    """The market with what the history knew at `at`; now where None.  As it is where the history knew no price.  `catalog`: the folder it was loaded from, if not the packaged one."""
    told = told_by(history, at, least=market.as_of)
    return priced(market, told, catalog=catalog).market if told else market


def told_by(history: Reads, at: datetime | None, *, source: str = "record", least: str = "1970-01-01") -> Told | None:
    """What it knew at `at`; where None at its newest observation, or at `least` if that is later.  None where it knew nothing."""
    newest = history.newest()
    if newest is None:
        return None
    if at is None:
        at = max(newest + (EPOCH - newest) % SECOND, _moment(least))  # plans name whole seconds
    quotes, capacity = history.as_of(at), history.capacity_as_of(at)
    if not quotes.series and not capacity:
        return None
    failures = history.failures(at - REMEMBERED, at)
    return Told(at=at, source=source, quotes=quotes, capacity=capacity, failures=failures)


def priced(base: Market, told: Told, *, catalog: Path | None = None, at: datetime | None = None) -> Priced:
    """Lay it over; ages count at `at`, if that is later than what was told.  Raises InputError where the catalog is broken."""
    at = at or told.at
    layer, unknown = _layer(base, told, at)
    quotes = told.quotes
    seen = digest(
        [
            _second(at),
            list(zip(quotes.series, quotes.micro_usd.tolist(), quotes.at.tolist(), strict=True)),
            [[name, seen.word.value, seen.at] for name, seen in sorted(told.capacity.items())],
        ]
    )
    both = digest([base.digest, seen])
    market = overlaid(base, layer, as_of=_second(at), as_of_day=(at - EPOCH).days, digest=both, folder=catalog)
    document = {"source": told.source, "digest": seen, "as_of": _second(at)}
    return Priced(market=market, base=base, told=told, catalog=catalog, document=document, unknown=unknown)


def again_at(given: Priced, at: datetime) -> Priced:
    """The same observations at a later moment: a plan that counts by the clock."""
    return priced(given.base, given.told, catalog=given.catalog, at=at)


def failures_of(told: Told, base: Market, project: Project, at: datetime) -> tuple[Failure, ...]:
    """What could not be had in the days before `at`, for each target: of a refusal the offer, of nodes taken back the pool."""
    rows = _Rows(base)
    found: set[Failure] = set()
    for one in told.failures:
        last = told.capacity.get(one.series)
        healed = last is not None and last.word is CapacityWord.AVAILABLE and last.at >= one.at
        if healed or moment(one.at) <= at - REMEMBERED:
            continue
        for row in rows.of(one.series)[0]:
            t, region = base.types[int(base.type_ix[row])], base.regions[int(base.region_ix[row])]
            place = {
                "cloud": t.cloud.value,
                "region": region.name,
                "zone": base.zones[int(base.zone_ix[row])],
                "capacity": CAPACITY_ORDER[int(base.capacity[row])].value,
            }
            for target in project.targets:
                if target.cloud is not t.cloud:
                    continue
                if one.word is CapacityWord.RECLAIMED:
                    scope = pool_id(target=target.name, hardware=t.hardware, **place)
                else:
                    scope = offer_id(target=target.name, instance_type=t.name, **place)
                found.add(Failure(scope=scope, code=one.detail or one.word.value, kind="capacity", at=one.at))
    return tuple(sorted(found))


class _Rows:
    """Which offers of a market a series is about."""

    def __init__(self, market: Market) -> None:
        clouds = [t.cloud.value for t in market.types]
        names = [t.name for t in market.types]
        regions = [r.name for r in market.regions]
        words = [c.value for c in CAPACITY_ORDER]
        self._zonal: dict[str, int] = {}
        self._regional: dict[str, list[int]] = {}
        columns = (market.type_ix, market.region_ix, market.zone_ix, market.capacity)
        for row, (t, r, z, c) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            begin, end = f"{clouds[t]}/{regions[r]}/", f"/{names[t]}/{words[c]}"
            self._zonal[f"{begin}{market.zones[z] or '-'}{end}"] = row
            if z:
                self._regional.setdefault(f"{begin}-{end}", []).append(row)

    def of(self, series: str) -> tuple[list[int], bool]:
        """Rows, none where the market lacks it; and whether they are of the very zone that the series names."""
        row = self._zonal.get(series)
        return ([row], True) if row is not None else (self._regional.get(series, []), False)


def _layer(base: Market, told: Told, at: datetime) -> tuple[Layer, tuple[str, ...]]:
    """What is newer than the catalog, by offer; and the series that it lacks."""
    rows = _Rows(base)
    quotes, today = told.quotes, (at - EPOCH).days
    end = _us(at)
    seen = np.where(quotes.seen + _us_of(DAY) >= end, end, quotes.seen)
    days: list[int] = (seen // _us_of(DAY)).tolist()
    listed: list[int] = base.price_day.tolist()
    sources: dict[str, int] = {}
    chosen: dict[int, tuple[int, bool]] = {}
    unknown: list[str] = []
    for k, name in enumerate(quotes.series):
        found, zonal = rows.of(name)
        if not found and end - int(seen[k]) <= _us_of(KNOWN_LATELY):
            unknown.append(name)
        for row in found:
            # a price list that was made later than the moment planned for is none
            newer = days[k] >= listed[row] or listed[row] > today
            if newer and (zonal or row not in chosen):
                chosen[row] = (k, zonal)
    row_of = sorted(chosen)
    picked = [chosen[row][0] for row in row_of]
    withdrawn = [name for name, seen in told.capacity.items() if seen.word is CapacityWord.WITHDRAWN]
    unknown += [name for name in told.capacity if not rows.of(name)[0] and told.capacity[name].word in _BUYABLE]
    return (
        Layer(
            row=_whole(row_of),
            micros=quotes.micro_usd[picked],
            least=quotes.least_micro_usd[picked],
            day=_whole([days[k] for k in picked]),
            source=_whole([sources.setdefault(quotes.source[k], len(sources)) for k in picked]),
            zonal=np.array([chosen[row][1] for row in row_of], dtype=bool),
            sources=tuple(sources),
            withdrawn=_whole(sorted({row for name in withdrawn for row in rows.of(name)[0]})),
        ),
        tuple(sorted(set(unknown))),
    )


def _whole(values: list[int]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def _us_of(span: timedelta) -> int:
    return span // timedelta(microseconds=1)


def _us(at: datetime) -> int:
    return _us_of(at - EPOCH)


def _second(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _moment(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)
