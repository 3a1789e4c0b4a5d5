"""How deep an expression of a user's nests, so that a reader that descends into it can refuse in time."""

from __future__ import annotations

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
