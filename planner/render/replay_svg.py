"""Plots of a replay as SVG files of their own: cost per window, slack per window, and one window's timeline, a row for each policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from planner.render.chart_svg import chart
from planner.render.plot_svg import Series, number

WIDTH: Final = 960
LEFT: Final = 190
ROW: Final = 26
TOP: Final = 46
_PALETTE: Final = (
    "#0b5fc1",
    "#b4470b",
    "#1a7f37",
    "#8250df",
    "#9a6700",
    "#bf3989",
    "#57606a",
    "#0a7ea4",
    "#7d4e00",
    "#4d2d8f",
    "#116329",
    "#a40e26",
    "#3b5b8c",
)


_STRIPES: Final = """<defs><pattern id="od" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="2" height="6" fill="#fff" fill-opacity="0.75"/></pattern></defs>"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Ticks from `first` to before `end` at a place; on demand is striped."""

    place: str
    first: int
    end: int
    on_demand: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A policy's way through a window."""

    name: str
    cost_usd: float
    stretches: tuple[Stretch, ...]


def windows(series: Sequence[tuple[str, Sequence[float]]], at: Sequence[float], *, title: str, unit: str) -> str:
    """A line for each policy over the windows' begins (seconds since 1970)."""
    lines = [Series(name=name, points=tuple(zip(at, values, strict=True))) for name, values in series]
    return chart(lines, title=title, unit=unit)


def timeline(lanes: Sequence[Lane], *, ticks: int, tick_hours: float, title: str) -> str:
    """Where each policy ran, over the hours of the window; a gap is where it stood still."""
    places = sorted({s.place for lane in lanes for s in lane.stretches})
    colour = {p: _PALETTE[k % len(_PALETTE)] for k, p in enumerate(places)}
    legend = -(-len(places) // 4)
    height = TOP + ROW * len(lanes) + 44 + 20 * legend
    scale = (WIDTH - LEFT - 20) / max(ticks, 1)
    out = [
        f'<svg width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img" xmlns="http://www.w3.org/2000/svg">',
        f"<title>{escape(title)}</title>",
        f"<desc>{escape(_said(lanes))}</desc>",
        "<style>text{font:12px system-ui,'DejaVu Sans',sans-serif;fill:#1b1f24}.name{font-size:15px}.axis{stroke:#57606a}</style>",
        _STRIPES,
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text class="name" x="12" y="24">{escape(title)}</text>',
    ]
    for k, lane in enumerate(lanes):
        y = TOP + ROW * k
        out.append(f'<text x="12" y="{y + 15}">{escape(lane.name)}  ${number(round(lane.cost_usd, 2))}</text>')
        for s in lane.stretches:
            box = f'x="{LEFT + s.first * scale:.1f}" y="{y}" width="{max((s.end - s.first) * scale, 0.5):.1f}" height="{ROW - 8}"'
            hours = f"{s.first * tick_hours:.1f} to {s.end * tick_hours:.1f} h"
            out.append(f'<rect {box} fill="{colour[s.place]}"><title>{escape(s.place)}, {hours}</title></rect>')
            if s.on_demand:
                out.append(f'<rect {box} fill="url(#od)" pointer-events="none"/>')
    out += _axis(TOP + ROW * len(lanes), ticks, tick_hours, scale)
    for k, place in enumerate(places):
        x, y = 12 + (k % 4) * 235, TOP + ROW * len(lanes) + 44 + 20 * (k // 4)
        out.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{colour[place]}"/>')
        out.append(f'<text x="{x + 18}" y="{y + 10}">{escape(place)}</text>')
    return "\n".join([*out, "</svg>"])


def _axis(y: int, ticks: int, tick_hours: float, scale: float) -> list[str]:
    end = LEFT + ticks * scale
    out = [f'<line class="axis" x1="{LEFT}" y1="{y}" x2="{end:.1f}" y2="{y}"/>']
    hours = ticks * tick_hours
    step = next((s for s in (1, 2, 3, 6, 12, 24, 48) if hours / s <= 12), 96)  # noqa: PLR2004 - ticks that fit
    for k in range(int(hours / step) + 1):
        x = LEFT + k * step / tick_hours * scale
        out.append(f'<line class="axis" x1="{x:.1f}" y1="{y}" x2="{x:.1f}" y2="{y + 4}"/>')
        out.append(f'<text x="{x:.1f}" y="{y + 18}" text-anchor="middle">{k * step} h</text>')
    return out


def _said(lanes: Sequence[Lane]) -> str:
    return "; ".join(f"{lane.name} ${lane.cost_usd:.2f} in {len(lane.stretches)} stretches" for lane in lanes)
