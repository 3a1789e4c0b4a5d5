"""A report's picture for a chat: one job on 1200 x 630, light, with its colours inside: headline, scatter, the first five, what the choice costs.

Decides layout and what is left out.  What a style sheet does for the page stands here as attributes, since the rasteriser knows no custom properties.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from planner.render.plan_text import what, where
from planner.render.report_bars import TERM_WORDS, cut
from planner.render.report_scatter import CLOUDS, Frame, Scale, axes, edge_line, kind_of, names, scale
from planner.render.report_words import hardware, plain, tag, text
from planner.render.text import duration, usd

if TYPE_CHECKING:
    from planner.model.plan import Placement
    from planner.model.report import JobReport, Report, Row

_FILE_WORD: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
WIDTH: Final = 1200
HEIGHT: Final = 630
_FRAME: Final = Frame(width=690, height=372, left=70, right=18, top=24, bottom=48)
_AT: Final = (40, 218)
"""Left and top of the scatter."""
_SIDE: Final = 764
"""Left of the column beside it."""
_STYLE: Final = (
    "text { font-family: system-ui, 'DejaVu Sans', sans-serif; font-size: 12.5px; fill: #17202b; } "
    ".tick, .dim { fill: #525f6f; } .tick { font-size: 12px; } .label { font-weight: 500; paint-order: stroke; stroke: #fff; stroke-width: 4px; } "
    ".grid { stroke: #d7dde6; } .axis { stroke: #525f6f; } .pareto { stroke: #17202b; stroke-width: 1.4; stroke-dasharray: 5 4; } "
    ".aws { fill: #b45309; } .gcp { fill: #1d63c9; } .azure { fill: #0e7c70; } .nebius { fill: #8539c9; } .split { fill: #56606c; } "
    ".t-compute { fill: #2f6fb7; } .t-startup { fill: #b9770e; } .t-interruptions { fill: #b4541a; } .t-data_egress { fill: #c2325c; } "
    ".t-checkpoint_egress { fill: #8f3ca8; } .t-output_egress { fill: #d5659b; } .t-sync_egress { fill: #6a2f83; } .t-disk { fill: #5d8a3c; } "
    ".t-outbound { fill: #2b8a86; } .t-tunnel_addresses { fill: #7b8694; }"
)


def card(report: Report, job: JobReport) -> str:
    """The SVG."""
    name = cut(job.plan.name, 48)
    inner = [
        f"<style>{_STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/><rect width="{WIDTH}" height="8" fill="#0a56b5"/>',
        f'<text x="40" y="62" font-size="34" font-weight="700" style="font-size:34px">{text(name)}</text>',
        _words(
            WIDTH - 40,
            58,
            f"{plain(report.project)}  ·  skyplan, as of {report.as_of[:10]}",
            css="dim",
            size=15,
            end=True,
        ),
        *(_placed(job) if job.plan.ranked else _nothing(job)),
    ]
    return tag(
        "svg",
        "\n".join(inner),
        xmlns="http://www.w3.org/2000/svg",
        width=WIDTH,
        height=HEIGHT,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
    )


def _words(
    x: float, y: float, told: str, *, css: str = "", size: float = 14, bold: bool = False, end: bool = False
) -> str:
    weight = ";font-weight:700" if bold else ""
    anchor = ' text-anchor="end"' if end else ""
    return f'<text class="{css}" x="{x:g}" y="{y:g}"{anchor} style="font-size:{size:g}px{weight}">{text(told)}</text>'


def _nothing(job: JobReport) -> list[str]:
    reasons = sorted(job.reasons, key=lambda r: -r.count)[:6]
    rows = [_words(40, 200 + 40 * k, f"{r.count:,} offers: {r.code}", size=20) for k, r in enumerate(reasons)]
    return [_words(40, 120, "No feasible placement", size=26, bold=True), *rows]


def _placed(job: JobReport) -> list[str]:
    p = job.plan.choice
    facts = (
        ("to finish", usd(p.total_usd, lower_bound=p.lower_bound)),
        ("per hour", usd(p.usd_per_hour)),
        ("done in", duration(p.finish_hours)),
        ("GPUs", cut(hardware(p), 30)),
    )
    out = [_words(40, 98, cut(f"{where(p)}, {what(p)}", 92), css="dim", size=18)]
    for k, (name, value) in enumerate(facts):
        out += [
            _words(40 + 230 * k, 142, name, css="dim", size=14),
            _words(40 + 230 * k, 174, value, size=26, bold=True),
        ]
    row = job.choice_row
    out += [
        f'<g transform="translate({_AT[0]} {_AT[1]})">',
        *_scatter(job.rows, None if row is None else row.position),
        "</g>",
    ]
    return [*out, *_legend(job.rows), *_best(job.plan.ranked[:5]), *_terms(p)]


def _scatter(rows: tuple[Row, ...], chosen: int | None) -> list[str]:
    f = _FRAME
    x = scale([float(r.finish_hours) for r in rows], f.left, f.width - f.right)
    y = scale([float(r.total_usd) for r in rows], f.height - f.bottom, f.top)
    edge = [r for r in rows if r.edge]
    out = [*axes(x, y, f), *(_point(r, x, y) for r in rows if not r.edge), *edge_line(edge, x, y)]
    out += [_point(r, x, y, edge=True) for r in edge]
    for r in rows:
        if r.position == chosen:
            at = f'cx="{x.at(float(r.finish_hours)):.1f}" cy="{y.at(float(r.total_usd)):.1f}"'
            out.append(f'<circle {at} r="11" fill="none" stroke="#0a56b5" stroke-width="2.6"/>')
    return [*out, *names(rows, x, y, f)]


def _point(row: Row, x: Scale, y: Scale, *, edge: bool = False) -> str:
    cloud, sold = kind_of(row)
    a, b = x.at(float(row.finish_hours)), y.at(float(row.total_usd))
    if edge:
        return f'<circle class="{cloud}" cx="{a:.1f}" cy="{b:.1f}" r="6.5" stroke="#17202b" stroke-width="1.6"/>'
    if sold == "spot":
        return f'<circle class="{cloud}" cx="{a:.1f}" cy="{b:.1f}" r="3.5" opacity="0.75"/>'
    return f'<rect class="{cloud}" x="{a - 3:.1f}" y="{b - 3:.1f}" width="6" height="6" opacity="0.75"/>'


def _legend(rows: tuple[Row, ...]) -> list[str]:
    there = {kind_of(r) for r in rows}
    clouds = [(f'<circle class="{c}" r="5"/>', word) for c, word in CLOUDS.items() if any(c == one for one, _ in there)]
    shapes = [
        ('<circle class="split" r="4"/>', "spot"),
        ('<rect class="split" x="-4" y="-4" width="8" height="8"/>', "on-demand or reserved"),
    ]
    shapes = [
        shape for shape, sold in zip(shapes, ("spot", "fixed"), strict=True) if any(sold == one for _, one in there)
    ]
    out: list[str] = []
    x = float(_AT[0] + _FRAME.left)
    for shape, word in [*clouds, *shapes]:
        out.append(f'<g transform="translate({x:g} {_AT[1] + _FRAME.height + 14})">{shape}</g>')
        out.append(_words(x + 10, _AT[1] + _FRAME.height + 18, word, css="dim", size=12.5))
        x += 34 + 7 * len(word)
    return out


def _best(ranked: tuple[Placement, ...]) -> list[str]:
    out = [_words(_SIDE, 232, "The first five" if len(ranked) == 5 else "Ranked", size=16, bold=True)]  # noqa: PLR2004 - five
    for k, p in enumerate(ranked):
        y = 258 + 36 * k
        out += [
            _words(_SIDE, y, cut(f"{k + 1}. {what(p)}", 38), size=14, bold=k == 0),
            _words(_SIDE, y + 16, cut(f"{where(p)}, {duration(p.finish_hours)}", 48), css="dim", size=12),
            _words(WIDTH - 40, y, usd(p.total_usd, lower_bound=p.lower_bound), size=14, bold=k == 0, end=True),
        ]
    return out


def _terms(p: Placement) -> list[str]:
    out = [_words(_SIDE, 462, "What the first costs", size=16, bold=True)]
    room, x = WIDTH - 40 - _SIDE, float(_SIDE)
    amounts = [(t.name, t.usd) for t in p.terms if t.usd]
    total = float(sum(a for _, a in amounts)) or 1.0
    for name, amount in amounts:
        wide = float(amount) / total * room
        out.append(f'<rect class="t-{name}" x="{x:.1f}" y="476" width="{max(wide, 0.5):.1f}" height="20"/>')
        x += wide
    unknown = [(t.name, None) for t in p.terms if t.usd is None]
    largest = sorted(amounts, key=lambda one: -one[1])[: 6 - len(unknown)]
    for k, (name, amount) in enumerate([*largest, *unknown]):
        column, row = k % 2, k // 2
        left, y = _SIDE + 200 * column, 524 + 24 * row
        out.append(f'<rect class="t-{name}" x="{left}" y="{y - 11}" width="12" height="12" rx="2"/>')
        out.append(_words(left + 18, y, f"{TERM_WORDS.get(name, name)} {usd(amount)}", size=13))
    return out


def file_word(job: JobReport, number: int) -> str:
    """The job's name where it may be part of a file's, else its number."""
    return job.plan.name if _FILE_WORD.fullmatch(job.plan.name) else str(number + 1)
