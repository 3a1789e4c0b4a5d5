"""A chart as an SVG file of its own: lines that hold until they change, named below, with its colours inside; light, dark, or as the viewer's system has it.

Decides how many lines are readable and how many points are drawn of each.  No script, nothing loaded from elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final, Literal

from planner.render.plot_svg import COLOURS, HEIGHT, LEFT, WIDTH, Series, number, plot

Theme = Literal["auto", "light", "dark"]
THEMES: Final[tuple[Theme, ...]] = ("auto", "light", "dark")
MOST_LINES: Final = COLOURS
MOST_POINTS: Final = 2000
"""Of one line: more do not fit into its pixels."""
_ROW: Final = 18
_LIGHT: Final = (
    "#ffffff",
    "#1b1f24",
    "#57606a",
    "#d8dee4",
    "#0b5fc1",
    "#b4470b",
    "#1a7f37",
    "#8250df",
    "#9a6700",
    "#bf3989",
)
_DARK: Final = (
    "#0d1117",
    "#e6edf3",
    "#9198a1",
    "#30363d",
    "#58a6ff",
    "#f0883e",
    "#3fb950",
    "#bc8cff",
    "#d29922",
    "#f778ba",
)


def steps(at: Sequence[float], values: Sequence[float], until: float) -> tuple[tuple[float, float], ...]:
    """Corners of a line that holds each value until the next; of many only the ends, least and most of each stretch."""
    corners: list[tuple[float, float]] = []
    for x, y in zip(at, values, strict=True):
        if corners:
            corners.append((x, corners[-1][1]))
        corners.append((x, y))
    if corners:
        corners.append((until, corners[-1][1]))
    if len(corners) <= MOST_POINTS:
        return tuple(corners)
    out: list[tuple[float, float]] = []
    size = -(-len(corners) * 4 // MOST_POINTS)
    for begin in range(0, len(corners), size):
        part = corners[begin : begin + size]
        # a set of places, in their order
        kept = {0, len(part) - 1, *(f(range(len(part)), key=lambda k, part=part: part[k][1]) for f in (min, max))}
        out += [part[k] for k in sorted(kept)]
    return tuple(out)


def chart(series: Sequence[Series], *, title: str, unit: str, theme: Theme = "auto") -> str:
    """The SVG of at most MOST_LINES lines; those beyond are counted below it."""
    drawn = [s for s in series if s.points][:MOST_LINES]
    if not drawn:
        return _empty(title, theme)
    height = HEIGHT + _ROW * len(drawn) + 10
    svg = plot(drawn, title=title, unit=unit, legend=False)
    head, rest = svg.split("\n", 1)
    head = head.replace(
        f'viewBox="0 0 {WIDTH} {HEIGHT}"', f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    )
    words, body = rest.split("</desc>", 1)
    names = [line for k, s in enumerate(drawn) for line in _name(s, k)]
    under = [_style(theme), '<rect class="ground" width="100%" height="100%"/>']
    return (
        "\n".join([head, words + "</desc>", *under, body.strip().removesuffix("</svg>").strip(), *names, "</svg>"])
        + "\n"
    )


def _name(series: Series, k: int) -> list[str]:
    y = HEIGHT + _ROW * k + 8
    last = number(series.points[-1][1])
    return [
        f'<line class="line{k % COLOURS}" x1="{LEFT}" y1="{y - 4}" x2="{LEFT + 22}" y2="{y - 4}"/>',
        f'<text class="tick" x="{LEFT + 30}" y="{y}">{escape(series.name)} ({last})</text>',
    ]


def _empty(title: str, theme: Theme) -> str:
    said = f"{title}: nothing was observed."
    return (
        f'<svg class="plot" width="{WIDTH}" height="60" viewBox="0 0 {WIDTH} 60" role="img" xmlns="http://www.w3.org/2000/svg">\n'
        f"<title>{escape(said)}</title>\n{_style(theme)}\n"
        f'<rect class="ground" width="100%" height="100%"/>\n<text x="16" y="34">{escape(said)}</text>\n</svg>\n'
    )


def _style(theme: Theme) -> str:
    colours = _colours(_DARK if theme == "dark" else _LIGHT)
    if theme == "auto":
        colours += f"\n@media (prefers-color-scheme: dark) {{ {_colours(_DARK)} }}"
    fixed = (
        "text { font: 12px system-ui, 'DejaVu Sans', sans-serif; } text.name { font-weight: 600; font-size: 13px; }"
        " polyline, line { stroke-width: 1.6; } polyline { stroke-linejoin: round; } .grid, .axis { stroke-width: 1; }"
    )
    return f"<style>{fixed}\n{colours}</style>"


def _colours(of: tuple[str, ...]) -> str:
    ground, text, dim, edge, *lines = of
    rules = [
        f".ground {{ fill: {ground}; }} text {{ fill: {text}; }} text.tick {{ fill: {dim}; }}",
        f".axis {{ stroke: {dim}; }} .grid {{ stroke: {edge}; }} .dot {{ fill: none; }}",
        *(f".line{k} {{ stroke: {colour}; }}" for k, colour in enumerate(lines)),
    ]
    return " ".join(rules)
