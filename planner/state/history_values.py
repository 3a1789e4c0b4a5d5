"""What the history takes and gives, as values, and how moments and money become whole numbers in it.

Decides nothing about markets.  Times are microseconds since 1970 (`us`), prices millionths of a USD.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from planner.model.readings import CapacityWord

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from planner.model.diagnostic import Diagnostic
    from planner.model.readings import QuotaReading

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
SECOND: Final = 1_000_000
HOUR: Final = 3600 * SECOND
DAY: Final = 24 * HOUR
MOST_USD: Final = 1_000_000
"""No node costs a million USD per hour."""
FAILED: Final = frozenset({CapacityWord.NONE, CapacityWord.RECLAIMED})


def us(at: datetime) -> int:
    """An aware moment."""
    since = at - EPOCH
    return (since.days * 86_400 + since.seconds) * SECOND + since.microseconds


def when(at: int) -> datetime:
    """The inverse of `us`."""
    return EPOCH + timedelta(microseconds=at)


@lru_cache(maxsize=65_536)
def micros(usd: Decimal) -> int | None:
    """None for what is no price: nothing, negative, no number, or a million and more."""
    if not usd.is_finite() or not 0 < usd < MOST_USD:
        return None
    return int((usd * SECOND).to_integral_value()) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What became of readings.  `new` are changes that were kept, `unchanged` told nothing new, `refused` says of the others why (SKY-CAT-102, 116, 117)."""

    new: int = 0
    unchanged: int = 0
    refused: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Quotes:
    """Prices as of one moment, one entry per series, sorted by series.

    at               when the price that stands was first observed
    seen             when it was last confirmed; the moment asked for where that was within a day before it
    least_micro_usd  what the cheapest says of the sources that were confirmed within a day: the dearest of them stands
    """

    series: tuple[str, ...]
    source: tuple[str, ...]
    micro_usd: NDArray[np.int64]
    at: NDArray[np.int64]
    seen: NDArray[np.int64]
    least_micro_usd: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.series)


@dataclass(frozen=True, eq=False, kw_only=True)
class Steps:
    """A price over time: `micro_usd[k]` holds from `at[k]` until `at[k + 1]`, the last until `until`."""

    at: NDArray[np.int64]
    micro_usd: NDArray[np.int64]
    until: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceWindow:
    """A series between two moments.  Median, mean and volatility are weighted by how long each price held.

    volatility  standard deviation over mean: 0 for a flat price
    points      changes in it, the price at its beginning included
    """

    min: Decimal
    median: Decimal
    max: Decimal
    mean: Decimal
    volatility: float
    points: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was seen of a series' capacity, `at` being `planner.model.record.stamp`'s form."""

    series: str
    word: CapacityWord
    at: str
    detail: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """A limit as it was last read, and of which target of the project."""

    target: str
    reading: QuotaReading


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """How much there is.  `newest` ISO, "" without a price."""

    series: int = 0
    prices: int = 0
    capacity: int = 0
    newest: str = ""
    sources: tuple[str, ...] = field(default=())
