"""Deadlines as reports have them: UTC ISO text."""

from __future__ import annotations

import calendar
import time
from email.utils import parsedate_to_datetime


def iso(seconds: float) -> str:
    """Of seconds since 1970."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def from_iso(text: str) -> str | None:
    """Of AWS's text; None where it is none."""
    try:
        return iso(calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ")))
    except (ValueError, TypeError):
        return None


def from_http(text: str) -> str | None:
    """Of `Mon, 30 Nov 2026 12:00:30 GMT`; None where it is none."""
    try:
        return iso(parsedate_to_datetime(text).timestamp())
    except (ValueError, TypeError, IndexError):  # TypeError: Python before 3.10, on what is no date
        return None
