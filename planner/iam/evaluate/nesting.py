"""What the readers of users' expressions share: a text as words, and how deep it nests, so that a reader that descends can refuse in time."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

#: deeper than any condition that Google or Azure takes, shallower than Python's stack
DEEPEST: Final = 40


def too_deep(words: Iterable[str]) -> bool:
    """Whether brackets and negations stand within each other more than `DEEPEST` times.  Takes words, in order, without texts."""
    depth = negations = 0
    for word in words:
        if word in {"!", "not"}:
            negations += 1
        else:
            depth += (word in {"(", "["}) - (word in {")", "]"})
            negations = negations if word in {"(", "["} else 0
        if depth + negations > DEEPEST:
            return True
    return False


def words_of(text: str, word: re.Pattern[str], error: type[ValueError]) -> list[tuple[str, str]]:
    """(kind, word) in order, by the named groups of `word`; what matches none of them is blank.  Raises `error` where nothing matches."""
    out: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        found = word.match(text, at)
        if found is None:
            raise error(f"{text[at : at + 20]!r} is not understood")
        if found.lastgroup:
            out.append((found.lastgroup, found[0]))
        at = found.end()
    return out
