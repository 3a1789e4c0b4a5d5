"""A chart in the terminal, by plotext (extra `charts`): lines that hold until they change, one sign per line of it, named below.

Decides how a line is told from another without colour: by its sign.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from planner.render.plot_svg import Series, clock, number, time_ticks
from planner.render.png import missing_charts

if TYPE_CHECKING:
    from planner.render.text import Paint

SIGNS: Final = "*o+x#@"
_PAINTS: Final = ("cyan", "yellow", "green", "red", "bold", "dim")
_WIDEST: Final = 160
_LOWEST: Final = 8
_HIGHEST: Final = 24
_LABELS: Final = 5


def chart_lines(series: Sequence[Series], *, title: str, unit: str, width: int, height: int, paint: Paint) -> list[str]:
    """For a terminal of that size.  Raises MissingPart without plotext."""
    drawn = [s for s in series if s.points][: len(SIGNS)]
    if not drawn:
        return [f"{title}: nothing was observed."]
    try:
        from plotext import figure  # noqa: PLC0415 - optional, and slow  # pyright: ignore[reportMissingTypeStubs]
    except ImportError as error:
        raise missing_charts("plotext") from error
    width, height = min(max(width, 40), _WIDEST), min(max(height - len(drawn) - 4, _LOWEST), _HIGHEST)
    plot: Any = figure
    plot.clear()
    plot.theme("colorless")
    plot.plot_size(width, height)
    low, high = min(s.points[0][0] for s in drawn), max(s.points[-1][0] for s in drawn)
    for k, one in enumerate(drawn):
        at, values = _sampled(one, low, high, width)
        plot.draw(plot.signal(at, values, marker=SIGNS[k]))
    found, span = time_ticks(low, high, _LABELS)
    plot.ruler("x").ticks(found, [clock(at, span) for at in found])
    body = str(plot.build().string(colorless=True)).rstrip().split("\n")
    body = [paint_signs(line, paint) for line in body]
    names = [f"  {paint(SIGNS[k], _PAINTS[k])} {s.name}  {number(s.points[-1][1])}" for k, s in enumerate(drawn)]
    return [paint(f"{title} ({unit})", "bold"), *body, *names]


def _sampled(series: Series, low: float, high: float, width: int) -> tuple[list[float], list[float]]:
    """One value per column, where there is one."""
    times = [x for x, _ in series.points]
    columns = [low + (high - low) * k / max(1, width - 1) for k in range(width)]
    held = [(at, bisect_right(times, at) - 1) for at in columns]
    told = [(at, series.points[k][1]) for at, k in held if k >= 0]
    told = told or [series.points[-1]]
    return [at for at, _ in told], [value for _, value in told]


def paint_signs(line: str, paint: Paint) -> str:
    """Signs in their colours, within the frame only: the value axis has digits and no sign."""
    if not paint.on:
        return line
    colour = dict(zip(SIGNS, _PAINTS, strict=True))
    return "".join(paint(c, colour[c]) if c in colour else c for c in line)
