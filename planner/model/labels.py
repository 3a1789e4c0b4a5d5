"""Text as a cloud's label: GCP and Nebius allow [a-z0-9_-] only, at most 63 of them, and a key begins with a letter.  Pure.

Legal text stays as it is.  Where anything is lost, the end is 8 hex digits of the whole, so that two texts that look alike stay two labels.
skyplan's own keys are not hashed: `skyplan:job` is the label `skyplan-job` (GCP and Nebius), and the tag `skyplan:job` elsewhere.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping

LONGEST = 63
TAG_PREFIX = "skyplan:"
LABEL_PREFIX = "skyplan-"
_HASH_DIGITS = 8
_ILLEGAL = re.compile(r"[^a-z0-9_-]")


def label_value(text: str) -> str:
    """The text as a label's value."""
    return _fitted(text, _ILLEGAL.sub("-", text.lower()))


def label_key(text: str) -> str:
    """The text as a label's key."""
    kept = _ILLEGAL.sub("-", text.lower())
    return _fitted(text, kept if re.match(r"[a-z]", kept) else f"x{kept}")


def own_key(word: str) -> str:
    """The label's key for one of skyplan's own words: `job` -> `skyplan-job`."""
    return LABEL_PREFIX + word


def labels_of(tags: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Tags as labels.  The first of two equal keys wins: skyplan's own tags stand first."""
    found: dict[str, str] = {}
    for key, value in tags:
        own = key.startswith(TAG_PREFIX)
        found.setdefault(own_key(key.removeprefix(TAG_PREFIX)) if own else label_key(key), label_value(value))
    return found


def tags_of(labels: Mapping[str, str]) -> dict[str, str]:
    """Skyplan's own tags, by the keys that every cloud shares; their values are what the label kept of them."""
    return {
        TAG_PREFIX + key.removeprefix(LABEL_PREFIX): value
        for key, value in labels.items()
        if key.startswith(LABEL_PREFIX)
    }


def _fitted(text: str, kept: str) -> str:
    if kept == text and len(kept) <= LONGEST:
        return kept
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]
    return f"{kept[: LONGEST - _HASH_DIGITS - 1]}-{digest}"
