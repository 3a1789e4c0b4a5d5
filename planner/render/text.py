"""Words and colours that every table shares.  Meaning never rests on colour alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


@dataclass(frozen=True, slots=True)
class Paint:
    """Colours or none."""

    on: bool

    def __call__(self, text: str, *styles: str) -> str:
        """`text` in the given styles."""
        if not self.on or not text:
            return text
        return "".join(f"\033[{CODES[s]}m" for s in styles) + text + "\033[0m"


def usd(amount: Decimal | None, *, lower_bound: bool = False) -> str:
    """`$1,234.56`, `>= $1,234.56` for a lower bound, `unknown` for None.  Small amounts keep four places."""
    if amount is None:
        return "unknown"
    places = 2 if abs(amount) >= 1 or amount == 0 else 4
    return f"{'>= ' if lower_bound else ''}${amount:,.{places}f}"


def duration(hours: Decimal | float) -> str:
    """`31.2 h`, `12 min`."""
    value = float(hours)
    return f"{value * 60:.0f} min" if value < 1 else f"{value:,.1f} h"


def columns(rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset(), indent: str = "") -> list[str]:
    """Rows padded into columns; `right` are positions aligned to the right."""
    if not rows:
        return []
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    out: list[str] = []
    for row in rows:
        cells = [c.rjust(w) if k in right else c.ljust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True))]
        out.append((indent + "  ".join(cells)).rstrip())
    return out
