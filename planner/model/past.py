"""What a series' price did over some time, as values to show: the changes, and what they come to.

`median`, `mean` and `volatility` (standard deviation over mean) are weighted by how long each price held.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """One series.  `changes` as (seconds since 1970, USD per node-hour), the first the price that held at the beginning.  `last_failure` as (ISO time, word, detail)."""

    series: str
    changes: tuple[tuple[float, Decimal], ...]
    least: Decimal
    median: Decimal
    mean: Decimal
    most: Decimal
    volatility: float
    last_failure: tuple[str, str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pasts:
    """Those of a request, in the order of its offers, best first.  `others`: offers without any price in that time."""

    since: datetime
    until: datetime
    found: tuple[Past, ...]
    others: int
