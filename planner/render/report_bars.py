"""What totals are made of, as stacked bars; and a move's steps as a timeline, with the time in which the job stops shaded.  Decides layout alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from planner.render.migration_text import minutes
from planner.render.plan_text import what, where
from planner.render.plot_svg import number, ticks
from planner.render.report_words import plain, tag, text
from planner.render.text import usd

if TYPE_CHECKING:
    from planner.model.migration import MigrationDiff, MigrationStep
    from planner.model.plan import Placement

TERM_WORDS: Final = {
    "compute": "compute",
    "startup": "start-up",
    "interruptions": "interruptions",
    "data_egress": "data egress",
    "checkpoint_egress": "checkpoint egress",
    "output_egress": "result egress",
    "sync_egress": "egress of the tunnel",
    "disk": "disk",
    "outbound": "NAT and its traffic",
    "tunnel_addresses": "addresses of the tunnel",
}
"""Every term that a placement may have, in the order of the bars; also their classes."""
SHOWN: Final = 8
WIDTH: Final = 960
_LEFT, _RIGHT, _ROW, _BAR, _TOP = 330, 110, 40, 20, 8
_LETTERS: Final = 46
_THIN: Final = 0.4
"""Of a unit: narrower pieces are not drawn, their amount stands in the table."""


def cut(told: str, letters: int) -> str:
    """Long names keep both ends, which tell them apart."""
    told = plain(told)
    half = (letters - 1) // 2
    return told if len(told) <= letters else f"{told[:half]}…{told[-half:]}"


def present(ranked: Sequence[Placement]) -> list[str]:
    """The terms that any of them has an amount of."""
    having = {t.name for p in ranked for t in p.terms if t.usd is None or t.usd}
    return [name for name in TERM_WORDS if name in having]


def bars(ranked: Sequence[Placement], *, key: str) -> str:
    """One bar for each, all on one scale that begins at 0."""
    most = max((float(p.total_usd) for p in ranked), default=0.0) or 1.0
    room = WIDTH - _LEFT - _RIGHT
    height = _TOP + _ROW * len(ranked) + 28
    said = "; ".join(f"{where(p)} {what(p)}: {usd(p.total_usd, lower_bound=p.lower_bound)}" for p in ranked)
    out = [f'<title id="{key}-bt">What the totals are made of</title><desc id="{key}-bd">{text(said)}</desc>']
    bottom = _TOP + _ROW * len(ranked)
    for value in ticks(0.0, most, 6):
        if value <= most * 1.001:
            x = _LEFT + value / most * room
            out.append(f'<line class="grid" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}"/>')
            out.append(f'<text class="tick" x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">${number(value)}</text>')
    for k, p in enumerate(ranked):
        y = _TOP + _ROW * k + (_ROW - _BAR) / 2
        first, second = f"{p.rank + 1}. {what(p)}", where(p)
        out.append(f'<text class="label" x="0" y="{y + 7:.1f}">{text(cut(first, _LETTERS))}</text>')
        out.append(f'<text class="tick" x="0" y="{y + 23:.1f}">{text(cut(second, _LETTERS + 4))}</text>')
        out += _pieces(p, y, most, room)
        total = usd(p.total_usd, lower_bound=p.lower_bound)
        x = _LEFT + float(p.total_usd) / most * room
        out.append(f'<text class="label" x="{x + 8:.1f}" y="{y + 15:.1f}">{total}</text>')
    return tag(
        "svg",
        "\n".join(out),
        class_="bars",
        viewBox=f"0 0 {WIDTH} {height}",
        role="img",
        aria_labelledby=f"{key}-bt {key}-bd",
        xmlns="http://www.w3.org/2000/svg",
    )


def _pieces(p: Placement, y: float, most: float, room: float) -> list[str]:
    amounts = {t.name: t.usd for t in p.terms}
    out: list[str] = []
    x = float(_LEFT)
    for name, word in TERM_WORDS.items():
        amount = amounts.get(name)
        if not amount:
            continue
        wide = float(amount) / most * room
        if wide >= _THIN:
            told = f"{word}: {usd(amount)}"
            out.append(
                f'<rect class="t-{name}" x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{_BAR}"><title>{told}</title></rect>'
            )
        x += wide
    return out


_LABEL, _LINE, _NOTE = 300, 30, 120


def timeline(move: MigrationDiff, *, key: str) -> str:
    """Each step from when all before it are done; the job makes no progress where the ground is shaded."""
    spans = _spans(move.steps)
    end = max((stop for _, stop in spans.values()), default=0.0) or 1.0
    room = WIDTH - _LABEL - _NOTE
    bottom = 14 + _LINE * len(move.steps)
    said = "; ".join(f"{s.title}, {minutes(s.minutes)}{', the job stops' if s.stops else ''}" for s in move.steps)
    out = [f'<title id="{key}-t">Steps of the move of {text(move.job)}</title><desc id="{key}-d">{text(said)}</desc>']
    for step in move.steps:
        start, stop = spans[step.key]
        if step.stops and stop > start:
            left, wide = _LABEL + start / end * room, (stop - start) / end * room
            out.append(f'<rect class="stop" x="{left:.1f}" y="4" width="{wide:.1f}" height="{bottom - 4}"/>')
    for value in ticks(0.0, end, 7):
        if value <= end * 1.001:
            x = _LABEL + value / end * room
            out.append(f'<line class="grid" x1="{x:.1f}" y1="8" x2="{x:.1f}" y2="{bottom}"/>')
            out.append(
                f'<text class="tick" x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{number(value)} min</text>'
            )
    for k, step in enumerate(move.steps):
        start, stop = spans[step.key]
        y, left = 14 + _LINE * k, _LABEL + start / end * room
        wide = max((stop - start) / end * room, 3.0)
        out.append(f'<text class="label" x="0" y="{y + 13}">{text(cut(f"{k + 1}. {step.title}", 48))}</text>')
        out.append(
            f'<rect class="{"halt" if step.stops else "step"}" x="{left:.1f}" y="{y}" width="{wide:.1f}" height="18" rx="3"/>'
        )
        told = minutes(step.minutes) + (", stops" if step.stops else "")
        out.append(f'<text class="tick" x="{left + wide + 6:.1f}" y="{y + 13}">{told}</text>')
    return tag(
        "svg",
        "\n".join(out),
        class_="timeline",
        viewBox=f"0 0 {WIDTH} {bottom + 28}",
        role="img",
        aria_labelledby=f"{key}-t {key}-d",
        xmlns="http://www.w3.org/2000/svg",
    )


def _spans(steps: Sequence[MigrationStep]) -> dict[str, tuple[float, float]]:
    """Minutes from the beginning; a step whose time is not known takes none here and says so."""
    out: dict[str, tuple[float, float]] = {}
    for step in _in_order(steps):
        start = max((out[name][1] for name in step.after if name in out), default=0.0)
        out[step.key] = (start, start + float(step.minutes or 0))
    return out


def _in_order(steps: Sequence[MigrationStep]) -> list[MigrationStep]:
    """As they may be done; of what waits for itself, as they stand."""
    out: list[MigrationStep] = []
    done: set[str] = set()
    keys = {s.key for s in steps}
    left = list(steps)
    while left:
        ready = [s for s in left if all(one in done or one not in keys for one in s.after)] or left[:1]
        out += ready
        done |= {s.key for s in ready}
        left = [s for s in left if s.key not in done]
    return out
