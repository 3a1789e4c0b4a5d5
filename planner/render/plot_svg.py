"""A line plot as one SVG element: axes with ticks and units, one line per series, readable without JavaScript and by a screen reader.

Colours come from the page's style sheet by class (`line0` … `line5`), so that light and dark differ in one place.  All text is escaped here.  Decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Final

WIDTH: Final = 720
HEIGHT: Final = 240
LEFT: Final = 76
RIGHT: Final = 16
TOP: Final = 30
BOTTOM: Final = 46
COLOURS: Final = 6
_Y_TICKS: Final = 6
_X_TICKS: Final = 6
_DAY: Final = 86_400
_LARGEST: Final = 1e30
"""A job may tell any number; one beyond this is not drawn, and none may break the page."""
_SMALLEST: Final = 1e-30
#: distances between times that people count in, in seconds
_SPANS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, _DAY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A line: (seconds since 1970, value), in order of time."""

    name: str
    points: tuple[tuple[float, float], ...]


def plot(series: Sequence[Series], *, title: str, unit: str, from_zero: bool = False, legend: bool = True) -> str:
    """The SVG; without a single point, a sentence that says so.  `from_zero`: the value axis begins at 0.  Without `legend` the caller names the lines."""
    drawn = [
        Series(name=s.name, points=tuple(p for p in s.points if abs(p[1]) <= _LARGEST and math.isfinite(p[0])))
        for s in series
    ]
    drawn = [s for s in drawn if s.points]
    if not drawn:
        return f'<p class="empty">{escape(title)}: nothing was told yet.</p>'
    xs = [x for s in drawn for x, _ in s.points]
    ys = [y for s in drawn for _, y in s.points] + ([0.0] if from_zero else [])
    frame = _Frame(_apart(min(xs), max(xs), 60.0), _apart(min(ys), max(ys), 1.0))
    last = drawn[-1].points[-1][1]
    said = (
        f"{title} in {unit} over time (UTC), {clock(min(xs), _DAY)} to {clock(max(xs), _DAY)}; "
        f"from {number(min(ys))} to {number(max(ys))}, last {number(last)}."
    )
    parts = [
        f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" xmlns="http://www.w3.org/2000/svg">',
        f"<title>{escape(title)}</title><desc>{escape(said)}</desc>",
        f'<text class="name" x="{LEFT}" y="18">{escape(title)} ({escape(unit)})</text>',
        *_y_axis(frame),
        *_x_axis(frame),
        *(line for k, s in enumerate(drawn) for line in _line(s, k, frame)),
        *(_legend(drawn) if legend else ()),
        "</svg>",
    ]
    return "\n".join(parts)


class _Frame:
    """From values to places."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.x0, self.x1 = x
        self.ticks = ticks(*y, _Y_TICKS)
        self.y0, self.y1 = min(y[0], self.ticks[0]), max(y[1], self.ticks[-1])

    def x(self, value: float) -> float:
        return LEFT + (value - self.x0) / (self.x1 - self.x0) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (value - self.y0) / (self.y1 - self.y0) * (HEIGHT - TOP - BOTTOM)


def _apart(low: float, high: float, least: float) -> tuple[float, float]:
    """A single value gets some room on both sides, and so does what differs by less than numbers can tell."""
    if high - low > _SMALLEST and high - low >= 1e-9 * max(abs(low), abs(high)):
        return low, high
    room = max(least, 1e-6 * max(abs(low), abs(high))) / 2
    return low - room, high + room


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round values (1, 2 or 5 times a power of ten) that enclose low to high, about `most` of them."""
    raw = (high - low) / max(1, most - 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((m * power for m in (1, 2, 5) if m * power >= raw * 0.999), 10 * power)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def time_ticks(low: float, high: float, most: int) -> tuple[list[float], float]:
    """Times that people count in, and the distance between them."""
    raw = (high - low) / most
    span = next((s for s in _SPANS if s >= raw), math.ceil(raw / _DAY) * _DAY)
    first = math.ceil(low / span)
    found = [float(k * span) for k in range(first, math.floor(high / span) + 1)]
    return found or [low], span


def clock(at: float, span: float, *, days: bool = True) -> str:
    """A time as the axis writes it: as much of it as differs from tick to tick."""
    when = datetime.fromtimestamp(at, UTC)
    if span >= _DAY and at % _DAY == 0:
        return when.strftime("%Y-%m-%d")
    if span < 60:  # noqa: PLR2004 - a minute
        return when.strftime("%H:%M:%S")
    return when.strftime("%m-%d %H:%M" if days else "%H:%M")


def number(value: float) -> str:
    """`1,200`, `0.31`, `2e-05`: short, and never rounded to nothing."""
    if value == 0:
        return "0"
    if abs(value) >= 1e6 or abs(value) < 1e-3:  # noqa: PLR2004 - beyond these people count zeros
        return f"{value:.3g}"
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.1f}"  # noqa: PLR2004


def _y_axis(frame: _Frame) -> list[str]:
    right, out = WIDTH - RIGHT, [f'<line class="axis" x1="{LEFT}" y1="{TOP}" x2="{LEFT}" y2="{HEIGHT - BOTTOM}"/>']
    for value in frame.ticks:
        y = frame.y(value)
        out.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>')
        out.append(f'<text class="tick" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{number(value)}</text>')
    return out


def _x_axis(frame: _Frame) -> list[str]:
    bottom = HEIGHT - BOTTOM
    found, span = time_ticks(frame.x0, frame.x1, _X_TICKS)
    days = int(frame.x0 // _DAY) != int(frame.x1 // _DAY)
    out = [f'<line class="axis" x1="{LEFT}" y1="{bottom}" x2="{WIDTH - RIGHT}" y2="{bottom}"/>']
    for at in found:
        x = frame.x(at)
        out.append(f'<line class="axis" x1="{x:.1f}" y1="{bottom}" x2="{x:.1f}" y2="{bottom + 4}"/>')
        out.append(
            f'<text class="tick" x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{clock(at, span, days=days)}</text>'
        )
    began = datetime.fromtimestamp(frame.x0, UTC).strftime("%Y-%m-%d")
    label = "time (UTC)" if days else f"time (UTC), {began}"
    middle = (LEFT + WIDTH - RIGHT) / 2
    out.append(f'<text class="tick" x="{middle:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{label}</text>')
    return out


def _line(series: Series, number_: int, frame: _Frame) -> list[str]:
    name, colour = escape(series.name), f"line{number_ % COLOURS}"
    places = [(frame.x(x), frame.y(y)) for x, y in series.points]
    if len(places) == 1:
        (x, y) = places[0]
        return [f'<circle class="{colour} dot" cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{name}</title></circle>']
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return [f'<polyline class="{colour}" fill="none" points="{path}"><title>{name}</title></polyline>']


def _legend(series: Sequence[Series]) -> list[str]:
    """Only where there is more than one line; the newest ones where they are many."""
    if len(series) < 2:  # noqa: PLR2004 - one line needs no name
        return []
    shown = list(enumerate(series))[-COLOURS:]
    out: list[str] = []
    x = WIDTH - RIGHT
    for k, one in reversed(shown):
        x -= 7 * len(one.name) + 30
        out.append(f'<line class="line{k % COLOURS}" x1="{x}" y1="14" x2="{x + 16}" y2="14"/>')
        out.append(f'<text class="tick" x="{x + 20}" y="18">{escape(one.name)}</text>')
    return out
