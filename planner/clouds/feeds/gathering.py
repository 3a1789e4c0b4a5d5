"""One region's answer while it is gathered: what is wanted is kept, what makes no sense is named and left out.

The traps that are the same on every cloud are decided here: a price that is no positive number, one in other money or per another unit, a row from the future, a
row that comes twice, two rows of one moment that contradict each other.  What a cloud's rows look like is its adapter's business.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Final

from planner.clouds.feeds.port import Fed, Wanted
from planner.model.diagnostic import Diagnostic, Severity
from planner.model.errors import CloudError
from planner.model.readings import CapacityReading, CapacityWord, PriceReading, QuotaReading
from planner.model.record import stamp

FAILED: Final = "SKY-CAT-115"
SENSELESS: Final = "SKY-CAT-116"
FUTURE: Final = "SKY-CAT-117"
NOT_UNDERSTOOD: Final = "SKY-CAT-119"
SKEW: Final = timedelta(minutes=1)
#: of one kind and region: a list that is broken throughout must not drown the rest
MOST_NAMED: Final = 5
#: so that it is a price as a float too, and sums of some are
LEAST_USD: Final = Decimal("1e-12")
MOST_USD: Final = Decimal("1e9")
SHOWN: Final = 500
"""Characters of what a cloud said that a warning shows."""


def positive(text: object) -> Decimal | None:
    """A price as a cloud writes it, None for what is none.  Nothing is free on any of these lists, and nothing costs more than a state may spend."""
    if isinstance(text, bool) or not isinstance(text, str | int | float | Decimal):
        return None
    try:
        found = Decimal(str(text))
    except (InvalidOperation, ValueError):  # ValueError: a whole number too long to be written
        return None
    return found if found.is_finite() and LEAST_USD <= found < MOST_USD else None


@dataclass
class Gathering:
    """See the module.  `source` is what readings name as theirs unless told otherwise."""

    cloud: str
    region: str
    wanted: Wanted
    source: str
    _prices: dict[tuple[str, str], PriceReading | None] = field(
        default_factory=dict[tuple[str, str], "PriceReading | None"]
    )
    _capacity: dict[str, CapacityReading] = field(default_factory=dict[str, CapacityReading])
    _quotas: dict[tuple[str, str], QuotaReading] = field(default_factory=dict[tuple[str, str], QuotaReading])
    _named: dict[str, set[str]] = field(default_factory=dict[str, set[str]])

    @property
    def types(self) -> tuple[str, ...]:
        """What is wanted here."""
        return self.wanted.instance_types.get(self.region, ())

    @property
    def zones(self) -> tuple[str, ...] | None:
        """To which it is limited; None = every zone there is."""
        return self.wanted.zones.get(self.region)

    def wants(self, zone: str, instance_type: str) -> bool:
        """Whether readings of that type and zone are asked for.  What is told of a whole region (`zone` "") is of every zone of it."""
        return instance_type in self.types and (not zone or self.zones is None or zone in self.zones)

    def price(
        self,
        *,
        zone: str,
        instance_type: str,
        capacity: str,
        usd: Decimal,
        at: datetime | None = None,
        source: str = "",
    ) -> None:
        """Keep a price; `at` None = what holds now."""
        if not self.wants(zone, instance_type):
            return
        reading = PriceReading(
            cloud=self.cloud,
            region=self.region,
            zone=zone,
            instance_type=instance_type,
            capacity=capacity,
            usd_per_hour=usd,
            observed_at=stamp(at or self.wanted.now),
            source=source or self.source,
        )
        if at is not None and self.from_the_future(reading.series, at):
            return
        key = (reading.series, reading.observed_at)
        before = self._prices.setdefault(key, reading)
        if before is None or before.usd_per_hour != usd:
            self.senseless(f"{reading.series} has two prices at {reading.observed_at}")
            self._prices[key] = None

    def seen(
        self,
        *,
        zone: str,
        instance_type: str,
        capacity: str,
        word: CapacityWord,
        detail: str = "",
        at: datetime | None = None,
        source: str = "",
    ) -> None:
        """Keep a word on capacity, instead of an earlier one on the same offer; `at` None = what holds now."""
        if not self.wants(zone, instance_type):
            return
        reading = CapacityReading(
            cloud=self.cloud,
            region=self.region,
            zone=zone,
            instance_type=instance_type,
            capacity=capacity,
            word=word,
            observed_at=stamp(at or self.wanted.now),
            source=source or self.source,
            detail=detail,
        )
        if at is None or not self.from_the_future(reading.series, at):
            self._capacity[reading.series] = reading

    def quota(
        self,
        *,
        name: str,
        capacity: str,
        unit: str,
        limit: object,
        used: float | None,
        instance_types: tuple[str, ...],
        source: str = "",
    ) -> None:
        """Keep a limit, which may be 0."""
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 <= limit < float("inf"):
            self.senseless(f"quota {name}: the limit is `{limit}`")
            return
        self._quotas[name, capacity] = QuotaReading(
            cloud=self.cloud,
            region=self.region,
            name=name,
            capacity=capacity,
            unit=unit,
            limit=float(limit),
            used=used,
            observed_at=stamp(self.wanted.now),
            source=source or self.source,
            instance_types=tuple(sorted(instance_types)),
        )

    def from_the_future(self, what: str, at: datetime) -> bool:
        """Whether that is so; it is named then."""
        if at <= self.wanted.now + SKEW:
            return False
        self._name(FUTURE, f"{what} is of {stamp(at)}, and here it is {stamp(self.wanted.now)}")
        return True

    def senseless(self, row: str) -> None:
        """Name a row that was left out, or a price that could not be put together."""
        self._name(SENSELESS, row)

    def not_understood(self, row: str) -> None:
        """Name a price in other money or per another unit."""
        self._name(NOT_UNDERSTOOD, row)

    def failed(self, what: str, error: CloudError) -> None:
        """Part of the region was not answered."""
        self._name(FAILED, f"{what}: {error}")

    def _name(self, code: str, words: str) -> None:
        self._named.setdefault(code, set()).add(words)

    def fed(self) -> Fed:
        """All of it, in the order of series and time, whatever order it came in."""
        return Fed(
            region=self.region,
            complete=not self._named,
            prices=tuple(reading for _, reading in sorted(self._prices.items()) if reading is not None),
            capacity=tuple(reading for _, reading in sorted(self._capacity.items())),
            quotas=tuple(reading for _, reading in sorted(self._quotas.items())),
            warnings=tuple(
                w for code, named in sorted(self._named.items()) for w in self._warnings(code, sorted(named))
            ),
        )

    def _warnings(self, code: str, named: list[str]) -> list[Diagnostic]:
        rest = len(named) - MOST_NAMED
        words = [*named[:MOST_NAMED], *([f"and {rest} more of this kind"] if rest > 0 else [])]
        return [
            Diagnostic(code=code, summary=f"{self.cloud} {self.region}: {w[:SHOWN]}", severity=Severity.WARNING)
            for w in words
        ]
