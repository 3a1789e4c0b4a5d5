"""One job's decision: which reason holds, which places are open to it, and what `planner.migration.decide` says of them.

Decides the order in which reasons are looked at (lost, notice, quota, drift; deadline and saving are `decide`'s own), which places each may go to, and which
failing term is told where the job stays.  Pure but for the values handed in; reads nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from planner.migration.costing import Costs, Course, Outlook, Shape, costs_of, options_of, terms_of
from planner.migration.decide import Decision, Word, decide, failing, gains_of
from planner.migration.options import Options, Situation
from planner.model.migration import REASON_CODES, Kept, MigrationReason
from planner.placement.feasible import Reject

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from planner.app.situation import Left
    from planner.migration.constants import Rule
    from planner.migration.decide import Gains
    from planner.migration.options import Flags, Floats
    from planner.model.plan import ScoreTerm

MOST = 10
"""Places that a diff names: the first and what stands in for it."""
BELOW, COOLS, FAILED, TOPOLOGY, BEST, UNREVIEWED, UNPREPARED, UNKNOWN, LATE, WAITS, FULL = (
    f"SKY-MOVE-{n}" for n in (401, 402, 403, 404, 406, 407, 408, 409, 410, 411, 412)
)
_FULL = int(Reject.POOL | Reject.QUOTA | Reject.NETWORK | Reject.UNUSABLE | Reject.BUDGET | Reject.APART | Reject.FUNDS)
#: the nodes are going, or gone: nothing computes beside the new ones
GOING = frozenset({MigrationReason.INTERRUPTION, MigrationReason.RECOVERY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A job as the decision needs it.

    reason         that is known beforehand and needs no saving; None: it runs, and only money or its deadline may move it
    running        which candidate it stands on, or stood on
    refused        the ranker's reason bits of each candidate, for new nodes
    reviewed, prepared   candidates of the reviewed plan; those whose network and access stand
    left_lately    pools that it left of its own will within the cool-down
    saves          a checkpoint can be asked for: nothing is done twice
    only_ready     go to reviewed and prepared places only
    """

    job: str
    reason: MigrationReason | None
    running: int
    left: Left
    deadline_hours: float
    since_move_hours: float
    refused: NDArray[np.int32]
    reviewed: frozenset[str]
    prepared: Flags
    left_lately: frozenset[int]
    sensitive: bool
    saves: bool
    only_ready: bool


@dataclass(frozen=True, eq=False)
class Judged:
    """To move, or to stay.  `to`: candidates in the order in which they may be tried; () = it stays, and `code` says why.

    best     the place that was turned down; None = there was none
    """

    decision: Decision
    reason: MigrationReason | None
    code: str
    to: tuple[int, ...]
    best: int | None
    runner_up: int | None
    terms: tuple[ScoreTerm, ...]
    gains: Gains | None
    stop_hours: Floats
    options: Options
    numbers: dict[str, float]
    terms_to: Callable[[int], tuple[ScoreTerm, ...]]
    """What the rest of the work costs at a candidate, and the way there, as terms of a placement but negative."""


@dataclass(frozen=True, eq=False)
class _Table:
    """The columns of one case."""

    shape: Shape
    course: Course
    situation: Situation
    options: Options
    costs: Costs
    barred: NDArray[np.int16]
    ready: Flags
    rule: Rule

    def decide(self, allowed: Flags) -> Decision:
        return decide(self.situation, replace(self.options, allowed=self.options.allowed & allowed), self.rule)


def judge(case: Case, shape: Shape, outlook: Outlook, rule: Rule) -> Judged:
    """What becomes of the job."""
    table = _table(case, shape, outlook, rule)
    everywhere = np.ones(len(shape), dtype=bool)
    # where nothing has to be saved time counts: first to where it may go now, then anywhere
    scopes = [table.ready] if case.only_ready else [everywhere]
    if case.reason is not None and not case.only_ready:
        scopes = [table.ready, everywhere]
    if case.reason in GOING and not isfinite(case.deadline_hours):
        # without a deadline slack is no measure of patience: it waits only where there is no place to go to
        scopes = [*(scope & table.options.available for scope in scopes), scopes[-1]]
    decision, scope = table.decide(scopes[0]), scopes[0]
    for scope in scopes[1:]:
        if decision.word in {Word.START, Word.MOVE}:
            break
        decision = table.decide(scope)
    if decision.word in {Word.START, Word.MOVE} and decision.to is not None:
        return _going(case, table, decision, scope)
    return _staying(case, table, decision, scope)


def _table(case: Case, shape: Shape, outlook: Outlook, rule: Rule) -> _Table:
    going = case.reason in GOING
    # what has no checkpoint to go on from begins anew wherever it goes
    redo = case.left.redo_hours if going or not case.saves else 0.0
    course = Course(running=case.running, beside=not going, work_hours=case.left.work_hours + redo, redo_hours=redo)
    if going:
        course = replace(course, running=None, redo_hours=0.0)
    if case.reason is MigrationReason.DRIFT:
        course = replace(course, anew=True)
    costs = costs_of(shape, course, outlook, rule)
    mine = np.arange(len(shape)) == case.running
    failed = (case.refused & int(Reject.FAILURE)) != 0
    if case.reason in GOING:
        failed |= shape.pool == shape.pool[case.running]
    full = ((case.refused | shape.bits) & _FULL) != 0
    barred = _barred(case, shape, full)
    ready = case.prepared & _among(shape, case.reviewed)
    stands = case.reason is None
    available = ~failed & ~full
    if stands:
        available |= mine
    situation = Situation(
        running=case.running if stands else None,
        work_hours=case.left.work_hours + (redo if going else 0.0),
        deadline_hours=case.deadline_hours,
        since_move_hours=case.since_move_hours,
        home=shape.home,
    )
    allowed = barred == 0
    if case.reason is not None and not going:
        allowed &= available  # it computes: there is nothing to wait for
    options = options_of(shape, outlook, costs, available=available, allowed=allowed)
    return _Table(shape, course, situation, options, costs, barred, ready | (mine & stands), rule)


def _among(shape: Shape, offers: frozenset[str]) -> Flags:
    return np.array([name in offers for name in shape.names], dtype=bool)


def _barred(case: Case, shape: Shape, full: Flags) -> NDArray[np.int16]:
    """The number of the code that keeps the job from each candidate, whatever it would save; 0 = none.  The later, the stronger."""
    mine = np.arange(len(shape)) == case.running
    barred = np.where(full, 412, 0).astype(np.int16)
    if not shape.egress_known:
        barred[shape.region != shape.region[case.running]] = 409
    if case.reason is None and case.left_lately:
        barred[np.isin(shape.pool, list(case.left_lately))] = 402
    if case.sensitive:
        same = np.array([t == shape.topology[case.running] for t in shape.topology], dtype=bool)
        barred[~same] = 404
    barred[mine & ~full] = 0
    if case.reason is MigrationReason.QUOTA:
        barred[mine] = 412
    if case.reason is MigrationReason.DRIFT:
        # the very offer that it stands on may be the right one, made of something else now
        barred[~_among(shape, case.reviewed)] = 407
    return barred


def _going(case: Case, table: _Table, decision: Decision, scope: Flags) -> Judged:
    reason = case.reason
    if reason is None:
        reason = (
            MigrationReason.DEADLINE
            if decision.code == REASON_CODES[MigrationReason.DEADLINE]
            else MigrationReason.SAVING
        )
    order, runner_up = _order(table, decision, scope)
    first = order[0]
    gains = _gains(case, table)
    return Judged(
        decision=decision,
        reason=reason,
        code=REASON_CODES[reason],
        to=tuple(order[:MOST]),
        best=first,
        runner_up=runner_up if runner_up is not None else _other(table, case, first),
        terms=_terms(table, first, gains),
        gains=gains,
        stop_hours=table.costs.stop_hours,
        options=table.options,
        numbers=_numbers(table, decision, first, gains),
        terms_to=lambda at: _terms(table, at, None)[:-1],
    )


def _order(table: _Table, decision: Decision, scope: Flags) -> tuple[list[int], int | None]:
    """What stands in must pass the same rule: where the decision does not say, the same question again, each time without what was chosen."""
    if decision.to is not None and decision.code == REASON_CODES[MigrationReason.SAVING]:
        found = [decision.to, *decision.stand_ins][: MOST + 1]
        return found, found[1] if len(found) > 1 else None
    open_to, order = scope.copy(), list[int]()
    while decision.to is not None and decision.word in {Word.START, Word.MOVE} and len(order) <= MOST:
        order.append(decision.to)
        open_to[decision.to] = False
        decision = table.decide(open_to)
    return order, order[1] if len(order) > 1 else None


def _other(table: _Table, case: Case, first: int) -> int | None:
    """The next best by what the rest of the work would cost there, whether or not it may be gone to."""
    o = table.options
    cost = o.usd_per_hour * table.situation.work_hours / o.work_rate + o.start_usd
    cost = np.where(o.available & o.allowed, cost, np.inf)
    cost[[first, case.running]] = np.inf
    at = int(np.argmin(cost))
    return at if np.isfinite(cost[at]) else None


def _staying(case: Case, table: _Table, decision: Decision, scope: Flags) -> Judged:
    gains, best, code = _gains(case, table), None, decision.code
    if decision.word is Word.WAIT:
        best = decision.to if decision.to is not None else decision.runner_up
        code = decision.code
    elif gains is not None:
        best, code = _turned_down(case, table, gains, scope)
    if code == BEST and _late(case, table):
        code = LATE
    return Judged(
        decision=decision,
        reason=None,
        code=code,
        to=(),
        best=best,
        runner_up=None,
        terms=_terms(table, best, gains) if best is not None else (),
        gains=gains,
        stop_hours=table.costs.stop_hours,
        options=table.options,
        numbers=_numbers(table, decision, best, gains),
        terms_to=lambda at: _terms(table, at, None)[:-1],
    )


def _turned_down(case: Case, table: _Table, gains: Gains, scope: Flags) -> tuple[int | None, str]:
    """The place with the greatest gain that it does not go to, and the first term that fails there."""
    others = np.where(np.arange(len(table.shape)) == case.running, -np.inf, gains.gain_usd)
    o, pays = table.options, (others >= gains.threshold_usd) & (gains.saving_usd > 0)
    open_to = o.available & o.allowed & scope
    if (pays & ~open_to).any() and case.since_move_hours >= table.rule.cool_down_hours:
        # it would pay, and something else stands against it: that is what people want to know
        best = int(np.argmax(np.where(pays & ~open_to, others, -np.inf)))
        return best, _against(case, table, best)
    candidates = np.where(open_to, others, -np.inf)
    if not np.isfinite(candidates).any():
        candidates = others
    if not np.isfinite(candidates).any():
        return None, BEST
    best = int(np.argmax(candidates))
    code, _ = failing(table.situation, o, best, table.rule)
    if not (o.available[best] and o.allowed[best]):
        code = _against(case, table, best)
    return best, code


def _against(case: Case, table: _Table, at: int) -> str:
    """What keeps the job from a place, beside money."""
    if table.barred[at]:
        return f"SKY-MOVE-{table.barred[at]}"
    if case.refused[at] & int(Reject.FAILURE):
        return FAILED
    if table.shape.names[at] not in case.reviewed:
        return UNREVIEWED
    return FULL if case.prepared[at] else UNPREPARED


def _late(case: Case, table: _Table) -> bool:
    return case.deadline_hours < table.situation.work_hours / float(table.options.work_rate[case.running])


def _gains(case: Case, table: _Table) -> Gains | None:
    return gains_of(table.situation, table.options, table.rule, case.running) if case.reason is None else None


def _terms(table: _Table, at: int, gains: Gains | None) -> tuple[ScoreTerm, ...]:
    return terms_of(table.shape, table.course, table.costs, at, gains=gains, rule=table.rule)


def _numbers(table: _Table, decision: Decision, at: int | None, gains: Gains | None) -> dict[str, float]:
    """What the terms were made of; figures without a bound are left out."""
    s, found = table.shape, dict(decision.numbers)
    found |= {"work_hours": table.situation.work_hours, "deadline_hours": table.situation.deadline_hours}
    found["since_move_hours"] = table.situation.since_move_hours
    if at is not None:
        found |= {
            "usd_per_hour": float(s.usd_per_hour[at]),
            "work_rate": float(s.work_rate[at]),
            "stop_hours": float(table.costs.stop_hours[at]),
            "changeover_hours": float(table.costs.changeover_hours[at]),
            "start_usd": float(table.options.start_usd[at]),
            "lifetime_hours": float(table.options.lifetime_hours[at]),
        }
    if gains is not None and at is not None:
        found |= {
            "gain_usd": float(gains.gain_usd[at]),
            "saving_usd": float(gains.saving_usd[at]),
            "horizon_hours": float(gains.horizon_hours[at]),
            "threshold_usd": gains.threshold_usd,
        }
    return {name: value for name, value in sorted(found.items()) if np.isfinite(value)}


def kept(case: Case, judged: Judged, shape: Shape, text: str) -> Kept:
    """A job that stays, as a value."""
    from planner.migration.costing import usd  # noqa: PLC0415 - beside its use

    return Kept(
        job=case.job,
        code=judged.code,
        text=text,
        best=shape.names[judged.best] if judged.best is not None else "",
        terms=judged.terms,
        numbers={name: usd(value) for name, value in judged.numbers.items()},
    )
