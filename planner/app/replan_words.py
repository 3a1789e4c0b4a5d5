"""The sentences of a replan: why a job moves, why it stays.  Says what was decided; decides nothing."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from planner.model.codes import CODES
from planner.model.migration import MigrationReason

if TYPE_CHECKING:
    from planner.app.replan_judge import Case, Judged
    from planner.migration.costing import Shape


def place_words(offer: str, judged: Judged, shape: Shape, at: int) -> str:
    """`OFFER, $9.5000/h, $29.10 net`."""
    words = f"{offer}, ${shape.price_usd_per_hour[at]:.4f}/h"
    if judged.gains is not None:
        words += f", ${judged.gains.gain_usd[at]:.2f} net"
    return words


def diff_text(judged: Judged, case: Case, shape: Shape, why: str) -> str:
    """One sentence with the numbers that decided."""
    to = judged.to[0]
    stop = judged.stop_hours[to] * 60
    match judged.reason:
        case MigrationReason.SAVING if judged.gains is not None:
            gains, each = judged.gains, float(shape.usd_per_hour[case.running])
            gain = float(gains.gain_usd[to])
            words = (
                f"saves ${gain:.2f} net over {gains.horizon_hours[to]:.1f} h, worth {gain / each:.2f} h of what runs"
                f" (${gains.threshold_usd:.2f} are asked)"
            )
        case MigrationReason.DEADLINE:
            need = judged.numbers.get("work_hours", 0.0) / float(shape.work_rate[to])
            words = (
                f"{_hours(case.deadline_hours)} to the deadline, {need:.2f} h of work there: no slack is left for spot"
            )
        case _:
            words = why
    return f"{words}; stops for {stop:.1f} min"


def kept_text(judged: Judged, case: Case, shape: Shape) -> str:
    """The failing term, with its numbers."""
    n, best = judged.numbers, judged.best
    place = shape.names[best] if best is not None else ""
    match judged.code:
        case "SKY-MOVE-401":
            words = f"{place} would gain ${n.get('gain_usd', 0):.2f} net over {n.get('horizon_hours', 0):.2f} h, and ${n.get('threshold_usd', 0):.2f} are asked"
        case "SKY-MOVE-402":
            words = f"it moved {_hours(case.since_move_hours)} ago"
        case "SKY-MOVE-403":
            words = f"{place}: its pool failed or took nodes back lately"
        case "SKY-MOVE-404":
            words = f"{place} is another topology than {shape.topology[case.running] or 'what runs'}"
        case "SKY-MOVE-405":
            words = f"{place} would leave {n.get('slack_hours', 0):.2f} h of slack: too little for spot"
        case "SKY-MOVE-406":
            words = (
                f"nothing is better than what runs; the best of the others is {place}"
                if place
                else "there is no other place"
            )
        case "SKY-MOVE-410":
            need = n.get("work_hours", 0.0) / float(shape.work_rate[case.running])
            words = (
                f"{need:.2f} h of work are left and {_hours(case.deadline_hours)} to the deadline: it will be missed"
            )
        case "SKY-MOVE-411":
            words = f"waits for {place}: expected back in {n.get('return_hours', 0):.2f} h"
        case code:
            words = f"{place}: {CODES[code].meaning}" if place else CODES[code].meaning
    return words


def _hours(value: float) -> str:
    return f"{value:.2f} h" if isfinite(value) else "no limit"
