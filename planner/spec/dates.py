"""Moments as people write them -> UTC ISO text that sorts as time does.  Knows no clock: whether one has passed is judged elsewhere."""

from __future__ import annotations

from datetime import UTC, datetime

from planner.spec.units import Malformed

_HINT = "write a date such as 2026-09-01, or a time with its zone such as 2026-09-01T08:00:00Z"


def moment(text: str) -> str:
    """`2026-09-01` (its first moment, UTC) or `2026-09-01T10:00:00+02:00` -> `2026-09-01`, `2026-09-01T08:00:00Z`."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Malformed("is not a date", _HINT) from None
    if found.tzinfo is None:
        if found.time() != found.min.time():
            raise Malformed("has no time zone", _HINT)
        found = found.replace(tzinfo=UTC)
    try:
        found = found.astimezone(UTC).replace(microsecond=0)
    except OverflowError:
        raise Malformed("is out of range", _HINT) from None
    return f"{found:%Y-%m-%d}" if found.time() == found.min.time() else f"{found:%Y-%m-%dT%H:%M:%SZ}"
