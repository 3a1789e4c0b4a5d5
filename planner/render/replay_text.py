"""The table of a replay for a terminal: one per trace and checkpoint size, the optimum first.  Says in words which differences are noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.render.text import Paint, columns

HEAD = (
    "policy",
    "mean $",
    "above optimum",
    "2nd half",
    "vs failover, points [95 %]",
    "late",
    "moves",
    "lost",
    "on-demand h",
    "least slack h",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A policy's figures.  `points` against failover, `low` and `high` its interval; None where there is nothing to say."""

    policy: str
    mean_usd: float
    over_percent: float
    over_percent_second_half: float | None
    points: float | None
    low: float | None
    high: float | None
    noise: bool
    late: int
    moves: float
    preemptions: float
    on_demand_hours: float
    least_slack_hours: float


def table(rows: Sequence[Line], *, mean_least_usd: float, paint: Paint) -> list[str]:
    """Its lines."""
    body = [HEAD, ("optimum", f"{mean_least_usd:,.2f}", *("-",) * (len(HEAD) - 2)), *(_cells(row) for row in rows)]
    lines = columns(body, right=frozenset({1, 2, 3, 5, 6, 7, 8, 9}), indent="  ")
    shown = [paint(lines[0], "bold"), lines[1]]
    return shown + [paint(line, "red") if row.late else line for line, row in zip(lines[2:], rows, strict=True)]


def _cells(row: Line) -> tuple[str, ...]:
    half = row.over_percent_second_half
    return (
        row.policy,
        f"{row.mean_usd:,.2f}",
        f"{row.over_percent:+.1f} %",
        "-" if half is None else f"{half:+.1f} %",
        _difference(row),
        str(row.late),
        f"{row.moves:.1f}",
        f"{row.preemptions:.1f}",
        f"{row.on_demand_hours:.1f}",
        f"{row.least_slack_hours:.1f}",
    )


def _difference(row: Line) -> str:
    """`-3.2 [-5.8, -1.3]`, with `noise` where zero is inside."""
    if row.points is None:
        return "-"
    if row.low is None or row.high is None:
        return f"{row.points:+.1f} (too few windows to say)"
    return f"{row.points:+.1f} [{row.low:+.1f}, {row.high:+.1f}]{' noise' if row.noise else ''}"
