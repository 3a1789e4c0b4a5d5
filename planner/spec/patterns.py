"""Shell globs over region and type names: `*` and `?`, nothing more.

Decides what two patterns have in common, exactly: the set of names both match, again as patterns.  So a job's limits and the project's can
be intersected without a list of all names.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_STARS: Final = 3
MAX_LENGTH: Final = 64
_PATTERN: Final = re.compile(r"[A-Za-z0-9._*?/-]+", re.ASCII)


def is_pattern(text: str) -> bool:
    """A name or glob of at most 64 characters with at most 3 `*`."""
    return bool(_PATTERN.fullmatch(text)) and len(text) <= MAX_LENGTH and text.count("*") <= MAX_STARS


def is_glob(text: str) -> bool:
    """It holds a wildcard."""
    return "*" in text or "?" in text


def matches(patterns: Iterable[str], name: str) -> bool:
    """One of the patterns matches the name."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def covers(wide: str, narrow: str) -> bool:
    """What `narrow` matches, `wide` matches too.  May say False of an odd pair for which it holds, never True of one for which it fails."""
    return wide in {"*", narrow} or (not is_glob(narrow) and fnmatchcase(narrow, wide)) or _covers(wide, narrow)


@cache
def _covers(wide: str, narrow: str) -> bool:
    if not wide:
        return not narrow
    if wide[0] == "*":
        return _covers(wide[1:], narrow) or (bool(narrow) and _covers(wide, narrow[1:]))
    if not narrow or narrow[0] == "*":
        return False
    return wide[0] in {"?", narrow[0]} and _covers(wide[1:], narrow[1:])


def specific_first(pattern: str) -> tuple[int, int, str]:
    """Sort key that puts the most specific pattern first, for tables of which the first that matches wins."""
    return sum(pattern.count(wild) for wild in "*?"), -len(pattern), pattern


def intersect(ours: tuple[str, ...], theirs: tuple[str, ...]) -> tuple[str, ...]:
    """Patterns for what both lists match, sorted, none covered by another; () where nothing is left.  An empty list limits nothing."""
    if not ours or not theirs:
        return simplest(ours or theirs)
    return simplest({common for a in ours for b in theirs for common in both(a, b)})


def simplest(patterns: Iterable[str]) -> tuple[str, ...]:
    """The patterns without those that another covers, sorted."""
    every = sorted(set(patterns))
    kept: list[str] = []
    for pattern in sorted(every, key=lambda p: (not is_glob(p), len(p), p)):
        if not any(covers(other, pattern) for other in kept):
            kept = [other for other in kept if not covers(pattern, other)]
            kept.append(pattern)
    return tuple(sorted(kept))


def both(a: str, b: str) -> tuple[str, ...]:
    """Patterns for the names that match `a` and `b`."""
    if covers(a, b):
        return (b,)
    if covers(b, a):
        return (a,)
    return simplest(re.sub(r"\*+", "*", found) for found in _both(a, b))


@cache
def _both(a: str, b: str) -> frozenset[str]:
    if not a or not b:
        rest = a or b
        return frozenset({""}) if not rest.strip("*") else frozenset()
    if a[0] == "*" and b[0] == "*":
        return frozenset("*" + rest for rest in _both(a[1:], b) | _both(a, b[1:]))
    if a[0] == "*":
        return _both(a[1:], b) | frozenset(b[0] + rest for rest in _both(a, b[1:]))
    if b[0] == "*":
        return _both(b, a)
    if a[0] == b[0] or "?" in {a[0], b[0]}:
        char = b[0] if a[0] == "?" else a[0]
        return frozenset(char + rest for rest in _both(a[1:], b[1:]))
    return frozenset()
