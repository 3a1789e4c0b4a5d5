"""What a replay is shown as: the lines of its table, the JSON document, the plots.  Turns values into values; writes nothing."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from planner.render.replay_svg import Lane, Stretch, timeline, windows
from planner.render.replay_text import Line
from planner.replay.registry import REFERENCE
from planner.replay.simulate import NOWHERE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.replay.simulate import Run
    from planner.replay.table import Cell, Row

FORMAT_VERSION = "1.0"
DRAWN = ("skyplan", "failover", "uniform-progress-failover", "skynomad", "net-gain")
"""More lines than these, with the optimum, cannot be told apart in one plot."""


def heading(cell: Cell) -> str:
    """What the table is of."""
    trace, terms = cell.trace, cell.terms
    skipped = f", {_count(cell.impossible, 'window')} left out that nothing can finish" if cell.impossible else ""
    return (
        f"{trace.name}: {trace.instance or 'instances'} in {_count(len(trace.zones), 'zone')} of {_count(len(cell.market.regions), 'region')}, {trace.hours / 24:.1f} days; "
        f"{terms.work_hours:g} h of work in {terms.deadline_hours:g} h, checkpoint {terms.checkpoint_gb:g} GB, cold start {terms.cold_minutes:g} min; "
        f"{_count(len(cell.begins), 'window')}{skipped}"
    )


def lines(cell: Cell) -> list[Line]:
    """The table's, in the order of the policies."""
    return [_line(row) for row in cell.rows]


def document(cells: Sequence[Cell]) -> dict[str, Any]:
    """The JSON document.  A field that is null has nothing to say."""
    return {
        "format_version": FORMAT_VERSION,
        "kind": "replay",
        "reference": REFERENCE,
        "cells": [_cell(c) for c in cells],
    }


def plots(cell: Cell) -> dict[str, str]:
    """File name -> SVG: cost per window, slack per window, and the timeline of the window where policies differ most."""
    start = cell.trace.start.timestamp() if cell.trace.start else 0.0
    at = [start + b * cell.market.tick_hours * 3600 for b in cell.begins]
    by_name = {r.policy: r for r in cell.rows}
    drawn = [by_name[n] for n in DRAWN if n in by_name] or list(cell.rows)[:5]
    costs = [("optimum", cell.least_usd), *((r.policy, [run.cost_usd for run in r.runs]) for r in drawn)]
    slack = [(r.policy, [run.slack * cell.market.tick_hours for run in r.runs]) for r in drawn]
    shown = _telling(cell)
    lanes = [_lane(row.runs[shown], cell.market.zones) for row in cell.rows]
    hours = cell.begins[shown] * cell.market.tick_hours
    stem = f"{_file_name(cell.trace.name)}-{cell.terms.checkpoint_gb:g}gb"
    title = (
        f"{cell.trace.name}, window from {hours:.0f} h, checkpoint {cell.terms.checkpoint_gb:g} GB (striped: on demand)"
    )
    return {
        f"{stem}-cost.svg": windows(costs, at, title=f"{cell.trace.name}: cost of a window", unit="USD"),
        f"{stem}-slack.svg": windows(slack, at, title=f"{cell.trace.name}: done before the deadline", unit="hours"),
        f"{stem}-timeline.svg": timeline(
            lanes, ticks=cell.market.deadline, tick_hours=cell.market.tick_hours, title=title
        ),
    }


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _telling(cell: Cell) -> int:
    """The window in which the policies' costs differ most, but for on-demand's, which differs always; the first of equals."""
    runs = [row.runs for row in cell.rows if row.policy != "on-demand"] or [row.runs for row in cell.rows]
    spread = [max(r[k].cost_usd for r in runs) - min(r[k].cost_usd for r in runs) for k in range(len(cell.begins))]
    return spread.index(max(spread))


def _line(row: Row) -> Line:
    return Line(
        policy=row.policy,
        mean_usd=row.mean_usd,
        over_percent=row.over_percent,
        over_percent_second_half=row.over_percent_second_half,
        points=row.points,
        low=None if row.interval is None else row.interval.low,
        high=None if row.interval is None else row.interval.high,
        noise=row.noise,
        late=row.late,
        moves=row.moves,
        preemptions=row.preemptions,
        on_demand_hours=row.on_demand_hours,
        least_slack_hours=row.least_slack_hours,
    )


def _cell(cell: Cell) -> dict[str, Any]:
    trace, terms, hours = cell.trace, cell.terms, cell.market.tick_hours
    return {
        "trace": {
            "name": trace.name,
            "instance": trace.instance,
            "source": trace.source,
            "start": trace.start.isoformat() if trace.start else None,
            "hours": round(trace.hours, 4),
            "tick_seconds": trace.gap_s,
            "zones": list(trace.zones),
        },
        "job": {
            "work_hours": terms.work_hours,
            "deadline_hours": terms.deadline_hours,
            "cold_minutes": terms.cold_minutes,
            "checkpoint_gb": terms.checkpoint_gb,
        },
        "windows": [round(b * hours, 4) for b in cell.begins],
        "impossible_windows": cell.impossible,
        "optimum_usd": [round(x, 4) for x in cell.least_usd],
        "mean_optimum_usd": round(cell.mean_least_usd, 4),
        "policies": [
            {**_rounded(asdict(_line(row))), "cost_usd": [round(r.cost_usd, 4) for r in row.runs]} for row in cell.rows
        ],
    }


def _rounded(values: dict[str, Any]) -> dict[str, Any]:
    return {k: round(v, 4) if isinstance(v, float) and math.isfinite(v) else v for k, v in values.items()}


def _lane(run: Run, zones: int) -> Lane:
    stretches: list[Stretch] = []
    begin = 0
    for k in range(1, len(run.path) + 1):
        if k == len(run.path) or run.path[k] != run.path[begin]:
            place = int(run.path[begin])
            if place != NOWHERE:
                stretches.append(
                    Stretch(place=run.places[place], first=begin, end=k, on_demand=place >= _spot(run, zones))
                )
            begin = k
    return Lane(name=run.policy, cost_usd=run.cost_usd, stretches=tuple(stretches))


def _spot(run: Run, zones: int) -> int:
    """How many of its places are spot: a policy of one zone has fewer than the market."""
    return min(zones, sum(not p.endswith(" on demand") for p in run.places))


def _file_name(text: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in text)[:80]
