"""What `skyplan doctor` found, for people: a line a check, and below what is not well what to do about it.  Meaning never rests on colour alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from planner.render.text import Paint

STYLE = {"ok": "green", "warn": "yellow", "fail": "red", "skipped": "dim"}


class Row(Protocol):
    """See `planner.app.doctor.Row`."""

    @property
    def check(self) -> str:
        """Its name."""
        ...

    @property
    def state(self) -> str:
        """ok, warn, fail or skipped."""
        ...

    @property
    def fact(self) -> str:
        """One sentence."""
        ...

    @property
    def mend(self) -> str:
        """A command, or what to do."""
        ...

    @property
    def code(self) -> str:
        """For `skyplan explain`."""
        ...


def lines(rows: Sequence[Row], paint: Paint) -> list[str]:
    """A table, and a last line that counts."""
    width = max((len(row.check) for row in rows), default=0)
    out: list[str] = []
    for row in rows:
        state = str(row.state)
        code = f" [{row.code}]" if row.code else ""
        out.append(f"{paint(state.ljust(7), STYLE[state])}  {row.check.ljust(width)}  {row.fact}{code}")
        if row.mend and state != "ok":
            out.append(f"{'':7}  {'':{width}}  {paint('mend', 'cyan')}: {row.mend}")
    counts = [f"{n} {state}" for state in STYLE if (n := sum(str(row.state) == state for row in rows))]
    return [*out, "", ", ".join(counts)]


def hints(rows: Sequence[Row]) -> list[str]:
    """What to do alone, each once, worst first, with why after a `#`."""
    found: dict[str, str] = {}
    for wanted in ("fail", "warn"):
        for row in rows:
            if str(row.state) == wanted and row.mend:
                found.setdefault(row.mend, f"{row.check}: {row.fact}")
    return [f"{mend}   # {why}" for mend, why in found.items()]
