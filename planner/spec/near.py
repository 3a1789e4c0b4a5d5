"""The names closest to one that is not known.  Decides nothing else."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def near(name: str, known: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """Up to `limit` names that look like `name`, best first; case does not count."""
    by_lower: dict[str, str] = {}
    for word in sorted(known):
        by_lower.setdefault(word.lower(), word)
    found = get_close_matches(name.lower()[:80], by_lower, n=limit, cutoff=0.6)
    return tuple(by_lower[word] for word in found)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint naming the near misses; "" where there are none."""
    found = near(name, known)
    return f"did you mean {_or([f'`{word}`' for word in found])}?" if found else ""


def one_of(name: str, known: Iterable[str]) -> str:
    """The near misses, else all that may be written."""
    words = list(known)
    if not words:
        return ""
    return did_you_mean(name, words) or f"write {_or([f'`{word}`' for word in words])}"


def _or(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
