"""What feeds say of rows that they leave out, and the two things that every row is asked: is its price a price, is its time not later than now.

The words are the same for every cloud, so that a run over four of them reads as one.  Decides nothing about what a row means.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Final

from planner.model.diagnostic import Diagnostic, Severity
from planner.model.errors import CloudError

SKEW: Final = timedelta(minutes=1)
"""The clocks of two machines may differ by this much (`planner.clouds.feeds.port.Wanted`)."""
SHOWN: Final = 200
"""Characters of a row that a message shows: a cloud's answer may be of any length."""


def failed(place: str, error: CloudError) -> Diagnostic:
    """A region, or a part of one, did not answer."""
    words = "; ".join(d.summary for d in error.diagnostics) or str(error)
    return _warning("SKY-CAT-115", f"{place}: {words}")


def senseless(place: str, row: str, why: str) -> Diagnostic:
    """A row was left out."""
    return _warning("SKY-CAT-116", f"{place}: {row[:SHOWN]}: {why[:SHOWN]}")


def later(place: str, row: str, at: str) -> Diagnostic:
    """A row is from the future."""
    return _warning("SKY-CAT-117", f"{place}: {row[:SHOWN]}: seen at {at[:SHOWN]}, which is later than now")


def foreign(place: str, row: str, what: str) -> Diagnostic:
    """A price in other money than US dollars, or not per hour."""
    return _warning("SKY-CAT-119", f"{place}: {row[:SHOWN]}: {what[:SHOWN]}")


def is_later(at: datetime, now: datetime) -> bool:
    """Later than two clocks may differ."""
    return at - now > SKEW


def price(value: object) -> Decimal | None:
    """A finite number above zero, from a number or from text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        found = Decimal(str(value))
    except InvalidOperation:
        return None
    return found if found.is_finite() and found > 0 else None


def _warning(code: str, summary: str) -> Diagnostic:
    return Diagnostic(code=code, summary=summary, severity=Severity.WARNING)
