"""Cost against finish: where each offer stands, on which scales, and the edge that no offer beats in both; as SVG for the page and for the picture.

Decides scales and layout.  Points are one path per cloud and capacity, which keeps a thousand of them small; those on the edge are drawn apart, named and
linked to their rows.  The script finds the nearest point by the scale that the element states.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from planner.render.plot_svg import number, ticks
from planner.render.report_words import capacity, plain, tag, text
from planner.render.text import duration, usd

if TYPE_CHECKING:
    from planner.model.report import Row

CLOUDS: Final = {"aws": "AWS", "gcp": "Google Cloud", "azure": "Azure", "nebius": "Nebius", "split": "several clouds"}
WIDE_RANGE: Final = 12.0
"""Largest over least beyond which a scale is logarithmic: half of the points would lie in its first tenth."""
_ROOM: Final = 0.04
_LETTERS: Final = 60
_LINE: Final = 2
"""A name across the edge's line is as bad as one across so many points."""
_MOST_CROSSED: Final = 2
Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""
NAMED: Final = 6
"""Points of the edge that are named beside; the others by their tooltip and row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Where the drawing lies in its box."""

    width: int = 960
    height: int = 430
    left: int = 78
    right: int = 24
    top: int = 22
    bottom: int = 52


@dataclass(frozen=True, slots=True)
class Scale:
    """From a figure to a place: linear or logarithmic, `low` to `high` over `start` to `end`."""

    low: float
    high: float
    log: bool
    start: float
    end: float

    def at(self, value: float) -> float:
        """The place."""
        low, high = self._told(self.low), self._told(self.high)
        return self.start + (self._told(value) - low) / (high - low) * (self.end - self.start)

    def _told(self, value: float) -> float:
        return math.log(value) if self.log else value

    def marks(self, most: int) -> list[float]:
        """Round values inside it; at least two."""
        if not self.log:
            return [v for v in ticks(self.low, self.high, most) if self.low <= v <= self.high]
        for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            found = [float(f"{m * 10.0**p:.6g}") for p in powers for m in steps]
            found = [v for v in found if self.low <= v <= self.high]
            if len(found) >= 4:  # noqa: PLR2004 - enough to read a value by
                break
        return found


def scale(values: Sequence[float], start: float, end: float) -> Scale:
    """Around those values, with some room."""
    low, high = min(values), max(values)
    if low > 0 and high / low > WIDE_RANGE:
        room = (high / low) ** _ROOM
        return Scale(low / room, high * room, True, start, end)
    room = (high - low) * _ROOM or max(abs(high) * _ROOM, 0.5)
    return Scale(max(low - room, 0.0) if low >= 0 else low - room, high + room, False, start, end)


def kind_of(row: Row) -> tuple[str, str]:
    """Cloud and capacity as classes of a style sheet."""
    cloud = row.cloud if row.cloud in {"aws", "gcp", "azure", "nebius"} else "split"
    return cloud, "spot" if row.capacity == "spot" else "fixed"


def scatter(rows: Sequence[Row], *, key: str, choice: int | None, frame: Frame | None = None) -> str:
    """The SVG of at least one row.  `key` makes ids the job's own, those of its rows among them."""
    f = frame or Frame()
    x = scale([float(r.finish_hours) for r in rows], f.left, f.width - f.right)
    y = scale([float(r.total_usd) for r in rows], f.height - f.bottom, f.top)
    edge = [r for r in rows if r.edge]
    said = (
        f"{len(rows):,} ways to run the job: total cost from {usd(min(r.total_usd for r in rows))} to {usd(max(r.total_usd for r in rows))}, "
        f"done in {duration(min(r.finish_hours for r in rows))} to {duration(max(r.finish_hours for r in rows))}. "
        f"On the edge, cheapest first: "
        + "; ".join(
            f"{r.what} {capacity(r.capacity)} in {r.place}, {usd(r.total_usd)}, {duration(r.finish_hours)}"
            for r in edge[:NAMED]
        )
    )
    parts = [
        f'<title id="{key}-st">Cost against finish</title><desc id="{key}-sd">{text(said)}</desc>',
        *axes(x, y, f),
        *_points(rows, x, y),
        *edge_line(edge, x, y),
        *(_edge_point(r, x, y, key, chosen=r.position == choice) for r in edge),
        *(_chosen(r, x, y) for r in rows if r.position == choice),
        *names(rows, x, y, f),
    ]
    return tag(
        "svg",
        "\n".join(parts),
        class_="scatter",
        viewBox=f"0 0 {f.width} {f.height}",
        role="group",
        aria_labelledby=f"{key}-st {key}-sd",
        data_x=_told(x),
        data_y=_told(y),
        xmlns="http://www.w3.org/2000/svg",
    )


def _told(s: Scale) -> str:
    return f"{s.low!r} {s.high!r} {int(s.log)} {s.start:g} {s.end:g}"


def axes(x: Scale, y: Scale, f: Frame) -> list[str]:
    """Grid, ticks and what they count."""
    bottom, right = f.height - f.bottom, f.width - f.right
    out: list[str] = []
    for value in y.marks(6):
        at = y.at(value)
        out.append(f'<line class="grid" x1="{f.left}" y1="{at:.1f}" x2="{right}" y2="{at:.1f}"/>')
        out.append(f'<text class="tick" x="{f.left - 8}" y="{at + 4:.1f}" text-anchor="end">${number(value)}</text>')
    for value in x.marks(9):
        at = x.at(value)
        out.append(f'<line class="grid" x1="{at:.1f}" y1="{f.top}" x2="{at:.1f}" y2="{bottom}"/>')
        out.append(f'<text class="tick" x="{at:.1f}" y="{bottom + 18}" text-anchor="middle">{number(value)} h</text>')
    out.append(f'<path class="axis" d="M{f.left} {f.top}V{bottom}H{right}" fill="none"/>')
    log = (" (logarithmic)" if x.log else "", " (logarithmic)" if y.log else "")
    out.append(
        f'<text class="tick" x="{right}" y="{bottom + 38}" text-anchor="end">hours from launch to result{log[0]} →</text>'
    )
    out.append(f'<text class="tick" x="{f.left}" y="{f.top - 8}">↑ USD to finish{log[1]}</text>')
    return out


def _points(rows: Sequence[Row], x: Scale, y: Scale) -> list[str]:
    """A dot is a line of no length with a round end, a square one with a square end."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        place = f"M{x.at(float(row.finish_hours)):.1f} {y.at(float(row.total_usd)):.1f}h0"
        found.setdefault(kind_of(row), []).append(place)
    return [
        f'<path class="dots {cloud} {sold}" data-cloud="{cloud}" data-sold="{sold}" d="{"".join(places)}"/>'
        for (cloud, sold), places in sorted(found.items())
    ]


def edge_line(edge: Sequence[Row], x: Scale, y: Scale) -> list[str]:
    """Steps: between two of its points nothing is cheaper than the one that finishes later."""
    if len(edge) < 2:  # noqa: PLR2004 - no line of one point
        return []
    places = [
        (x.at(float(r.finish_hours)), y.at(float(r.total_usd))) for r in sorted(edge, key=lambda r: r.finish_hours)
    ]
    path = f"M{places[0][0]:.1f} {places[0][1]:.1f}" + "".join(f"H{a:.1f}V{b:.1f}" for a, b in places[1:])
    return [f'<path class="pareto" d="{path}" fill="none"/>']


def sentence(row: Row, *, chosen: bool = False) -> str:
    """What a tooltip says."""
    which = "the plan's choice" if chosen else f"number {row.position + 1} by total"
    return (
        f"{row.what} {capacity(row.capacity)}, {row.place}: {usd(row.total_usd, lower_bound=row.lower_bound)} to finish, "
        f"{usd(row.usd_per_hour)}/h, done in {duration(row.finish_hours)}; {which}"
    )


def _edge_point(row: Row, x: Scale, y: Scale, key: str, *, chosen: bool) -> str:
    cloud, sold = kind_of(row)
    at = (x.at(float(row.finish_hours)), y.at(float(row.total_usd)))
    told = text(sentence(row, chosen=chosen))
    mark = (
        f'<circle class="mark {cloud} {sold}" cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="6.5"><title>{told}</title></circle>'
    )
    return f'<a class="point" href="#{key}-r{row.position}" data-row="{row.position}" aria-label="{told}">{mark}</a>'


def _chosen(row: Row, x: Scale, y: Scale) -> str:
    return f'<circle class="chosen" cx="{x.at(float(row.finish_hours)):.1f}" cy="{y.at(float(row.total_usd)):.1f}" r="10.5" fill="none"/>'


def names(rows: Sequence[Row], x: Scale, y: Scale, f: Frame, *, letter: float = 6.3) -> list[str]:
    """Beside the points of the edge: the cheapest and the fastest first, then those between where little is in their way."""
    at = [(x.at(float(r.finish_hours)), y.at(float(r.total_usd))) for r in rows]
    edge = [(row, place) for row, place in zip(rows, at, strict=True) if row.edge]
    taken: list[Box] = [(a - 8, b - 8, a + 8, b + 8) for _, (a, b) in edge]
    steps = list(_steps(sorted(place for _, place in edge)))
    places = sorted({(round(a), round(b)) for a, b in at})  # zones of one region often cost the same
    out: list[str] = []
    for k in sorted(range(len(edge)), key=lambda k: (min(k, len(edge) - 1 - k), k))[:NAMED]:
        row, (a, b) = edge[k]
        total = usd(row.total_usd, lower_bound=row.lower_bound)
        told = plain(f"{row.what} {capacity(row.capacity)} · {total} · {duration(row.finish_hours)}")
        told = told if len(told) <= _LETTERS else told[: _LETTERS - 1] + "…"
        free = [
            (_crossed(box, places) + _LINE * sum(_touch(box, step) for step in steps), number_, box, anchor)
            for number_, (box, anchor) in enumerate(_beside(a, b, len(told) * letter))
            if _within(box, f) and not any(_touch(box, other) for other in taken)
        ]
        if not free or (0 < k < len(edge) - 1 and min(free)[0] > _MOST_CROSSED):
            continue
        _, _, box, anchor = min(free)
        taken.append(box)
        left = box[0] if anchor == "start" else box[2]
        out.append(
            f'<text class="label" x="{left:.1f}" y="{box[3] - 4:.1f}" text-anchor="{anchor}">{text(told)}</text>'
        )
    return out


def _crossed(box: Box, at: Iterable[tuple[float, float]]) -> int:
    return sum(_touch(box, (p - 3, q - 3, p + 3, q + 3)) for p, q in at)


def _steps(places: Sequence[tuple[float, float]]) -> Iterator[Box]:
    """The edge's line as boxes."""
    for (a, b), (c, d) in pairwise(places):
        yield (a, b - 1, c, b + 1)
        yield (c - 1, min(b, d), c + 1, max(b, d))


def _beside(a: float, b: float, wide: float) -> Iterator[tuple[Box, str]]:
    """Where a name of a point may stand, the best first: below the edge there is no other point, so first there."""
    for down, anchor in (
        (21, "start"),
        (5, "end"),
        (21, "end"),
        (-8, "start"),
        (-8, "end"),
        (37, "start"),
        (37, "end"),
        (-24, "start"),
        (-24, "end"),
        (-40, "end"),
    ):
        left = a + 12 if anchor == "start" else a - 12 - wide
        yield (left, b + down - 12, left + wide, b + down + 4), anchor


def _within(box: Box, f: Frame) -> bool:
    return box[0] >= f.left + 2 and box[2] <= f.width - 4 and box[1] >= f.top and box[3] <= f.height - f.bottom


def _touch(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
