"""Names of Google Cloud resources: [a-z0-9-], a letter first, at most 63 characters, and unique in the whole project of the cloud.  Pure.

The cloud has no path or folder for names, so skyplan's project is part of each.  The same name twice is refused by the cloud: that is wanted,
a second create fails instead of doubling.
"""

from __future__ import annotations

import hashlib
import re

LONGEST = 63
#: of a service account: 6 to 30
LONGEST_ACCOUNT = 30
_DIGITS = 8
_ILLEGAL = re.compile(r"[^a-z0-9-]+")


def resource_name(*parts: str, limit: int = LONGEST) -> str:
    """`skyplan-PART-PART…`.  Where anything is lost, the end is 8 hex digits of the whole, so that two texts stay two names."""
    text = "-".join(("skyplan", *parts))
    kept = _kept(text)
    if kept == text and len(kept) <= limit:
        return kept
    return f"{kept[: limit - _DIGITS - 1].rstrip('-')}-{_digits(text)}"


def account_id(project: str, stack: str, job: str) -> str:
    """Name of the nodes' service account: `skyplan-JOB-HASH`.  30 characters hold no whole path, so the hash of it is always there."""
    room = LONGEST_ACCOUNT - len("skyplan--") - _DIGITS
    return f"skyplan-{_kept(job)[:room].strip('-')}-{_digits(f'{project}/{stack}')}"


def _kept(text: str) -> str:
    return _ILLEGAL.sub("-", text.lower()).strip("-")


def _digits(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
