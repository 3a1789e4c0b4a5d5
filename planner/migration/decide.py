"""The decision: stay, start, move or wait.  Pure: a situation, columns of options and a rule in, one decision with its numbers out.

One function serves the replay of a recorded market and the replanning of a real job.  Knows no cloud, no clock, no record; who makes the columns says what they hold.

  runs      moves only if the gain, net of the whole move, over min(remaining runtime, expected lifetime there, horizon) is worth the threshold
  does not  the option with the least cost per hour of work, its start spread over what it is expected to do before it is taken back; waiting for a pool to
            return, at no cost but the slack, is one of them
  net       on-demand as soon as the deadline leaves no more than a few changeovers
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from planner.migration.ahead import NEVER
from planner.migration.constants import DEFAULT, Rule
from planner.migration.placing import Prospect, prospect, to_end

if TYPE_CHECKING:
    from planner.migration.options import Flags, Floats, Options, Situation

BELOW, COOLS, FAILED, SHORT, BEST, LATE, WAITS, FULL = (
    f"SKY-MOVE-{n}" for n in (401, 402, 403, 405, 406, 410, 411, 412)
)
SAVES, AT_RISK, AGAIN = (f"SKY-MOVE-{n}" for n in (413, 415, 418))
EPSILON = 1e-9
TIE = 1e-4
"""Costs to the end that differ by less are the same: the tables are single precision."""


class Word(StrEnum):
    """What is to be done."""

    STAY = "stay"
    START = "start"
    MOVE = "move"
    WAIT = "wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is to be done, and why.

    to             which option; None to wait wherever, or to stay
    code           SKY-MOVE-…: the reason of a move, or the term that failed
    gain_usd       of the best candidate, net of the whole move, over the horizon; of a start: what it saves against on-demand
    horizon_hours  over which it was counted
    threshold_usd  what it had to be worth
    runner_up      the next best option; None where there is none
    stand_ins      of a move that pays, whatever else passes the same rule, best first
    numbers        what the code speaks of, unit in the name
    """

    word: Word
    to: int | None
    code: str
    gain_usd: float = 0.0
    horizon_hours: float = 0.0
    threshold_usd: float = 0.0
    runner_up: int | None = None
    numbers: dict[str, float] = field(default_factory=dict[str, float])
    stand_ins: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Gains:
    """What moving to each option would bring, one entry each; the same figures decide and explain."""

    gain_usd: Floats
    horizon_hours: Floats
    saving_usd: Floats
    slack_hours: Floats
    threshold_usd: float


def decide(situation: Situation, options: Options, rule: Rule = DEFAULT) -> Decision:
    """What the job does next."""
    if situation.running is None or not options.available[situation.running]:
        return _place(situation, options, rule)
    return _keep(situation, options, rule, situation.running)


def failing(situation: Situation, options: Options, index: int, rule: Rule = DEFAULT) -> tuple[str, dict[str, float]]:
    """Why a running job does not move to this option: the first term that fails, and its numbers.

    Where each holds by itself it is the slack (SKY-MOVE-405): to the end the move would cost more than it gains over the next hours.
    """
    running = situation.running
    if running is None or index == running:
        return BEST, {}
    gains = gains_of(situation, options, rule, running)
    roomy = _roomy(situation, gains, options, rule)
    code, numbers = _failing(situation, options, index, rule, gains=gains, roomy=roomy)
    return SHORT if code == SAVES else code, numbers


def _failing(
    situation: Situation, options: Options, index: int, rule: Rule, *, gains: Gains, roomy: Flags
) -> tuple[str, dict[str, float]]:
    numbers = _numbers(gains, options, index)
    tests = (
        (bool(options.available[index]), FULL),
        (bool(options.allowed[index]), FAILED),
        (gains.saving_usd[index] > EPSILON, BEST),
        (situation.since_move_hours >= rule.cool_down_hours, COOLS),
        (bool(roomy[index]), SHORT),
        (gains.gain_usd[index] >= gains.threshold_usd, BELOW),
    )
    return next((code for passed, code in tests if not passed), SAVES), numbers


def gains_of(situation: Situation, options: Options, rule: Rule, running: int) -> Gains:
    """What a voluntary move to each option is expected to gain, net."""
    there = situation.work_hours / options.work_rate
    horizon = np.minimum(np.minimum(there, options.lifetime_hours - options.stop_hours), rule.horizon_hours)
    horizon = np.maximum(horizon, 0.0)
    saving = _gap(options.usd_per_hour, options, running) * horizon
    if options.steady_hours is not None:
        # prices that flap are back before the move has paid: beyond that what is usual counts, if it is less
        lasts = np.minimum(horizon, np.minimum(options.steady_hours, options.steady_hours[running]))
        usual = np.maximum(_gap(options.usual_usd_per_hour, options, running), 0.0) * (horizon - lasts)
        saving = np.minimum(saving, saving * lasts / np.maximum(horizon, EPSILON) + usual)
    return Gains(
        gain_usd=saving - options.start_usd,
        horizon_hours=horizon,
        saving_usd=saving,
        slack_hours=situation.deadline_hours - options.stop_hours - there,
        threshold_usd=rule.threshold_hours * float(options.usd_per_hour[running]),
    )


def _gap(usd_per_hour: Floats, options: Options, running: int) -> Floats:
    """USD saved per hour there."""
    gap: Floats = usd_per_hour[running] / options.work_rate[running] * options.work_rate - usd_per_hour
    return gap


def _keep(situation: Situation, options: Options, rule: Rule, running: int) -> Decision:
    """Whether what runs goes elsewhere."""
    spot = bool(options.spot[running])
    net = _net(situation, options, rule) if spot else None
    if net is not None:
        return Decision(word=Word.MOVE, to=net, code=AT_RISK, numbers=_hours(situation, options, net))
    gains = gains_of(situation, options, rule, running)
    others = options.available & options.allowed
    others[running] = False
    roomy = _roomy(situation, gains, options, rule)
    best, second = _two(np.where(others, -gains.gain_usd, np.inf), options)
    fine = others & (gains.gain_usd >= gains.threshold_usd) & (gains.saving_usd > EPSILON) & roomy
    if situation.since_move_hours < rule.cool_down_hours:
        fine[:] = False
    if spot and fine.any() and np.isfinite(situation.deadline_hours):
        fine &= _ends_cheaper(situation, options, rule, running)
    chosen, _ = _two(np.where(fine, -gains.gain_usd, np.inf), options)
    seen: dict[str, float] = {}
    order: tuple[int, ...] = ()
    if chosen is not None and (spot or not np.isfinite(situation.deadline_hours)):
        # without a deadline no slack is scarce: what follows need not be reckoned
        order = _sorted(-gains.gain_usd, fine, options)
    elif chosen is not None:
        chosen, order, seen = _back(situation, options, rule, fine=fine, chosen=chosen, gains=gains)
    if chosen is not None:
        best, second = chosen, best if best != chosen else second
    if best is None:
        return Decision(word=Word.STAY, to=None, code=BEST, threshold_usd=gains.threshold_usd)
    code, numbers = _failing(situation, options, best, rule, gains=gains, roomy=roomy)
    return Decision(
        word=Word.STAY if chosen is None else Word.MOVE,
        to=chosen,
        code=SHORT if chosen is None and code == SAVES else code,
        gain_usd=float(gains.gain_usd[best]),
        horizon_hours=float(gains.horizon_hours[best]),
        threshold_usd=gains.threshold_usd,
        runner_up=second,
        numbers=numbers | seen,
        stand_ins=tuple(at for at in order if at != chosen),
    )


def _sorted(key: Floats, among: Flags, options: Options) -> tuple[int, ...]:
    """As `_two` would choose them one after the other."""
    return tuple(sorted(np.flatnonzero(among).tolist(), key=lambda at: (float(key[at]), options.names[at])))


def _ends_cheaper(situation: Situation, options: Options, rule: Rule, running: int) -> Flags:
    """Where a move costs less to the end too: the slack that it takes has its price, which no gain over the next hours shows."""
    costs = to_end(situation, options, rule, _fallback(situation, options))
    if costs is None or costs[running] >= NEVER / 2:
        return np.ones(len(options.names), dtype=np.bool_)
    cheaper: Flags = np.isinf(costs) | (costs < costs[running])
    return cheaper


def _back(
    situation: Situation, options: Options, rule: Rule, *, fine: Flags, chosen: int, gains: Gains
) -> tuple[int | None, tuple[int, ...], dict[str, float]]:
    """From on-demand back to spot: slack is scarce there, so what follows is reckoned too.  None where staying costs no more, to the end, but the threshold."""
    ahead = prospect(
        situation, replace(options, available=options.available & (fine | ~options.spot)), rule, situation.running
    )
    if ahead is None:
        # what gains is on demand too
        return chosen, _sorted(-gains.gain_usd, fine, options), {}
    seen = {"to_end_usd": ahead.start_usd, "stay_to_end_usd": ahead.on_demand_usd}
    if ahead.start is None or ahead.start_usd + gains.threshold_usd >= ahead.on_demand_usd:
        if options.spot[chosen]:
            return None, (), seen
        return chosen, _sorted(-gains.gain_usd, fine & ~options.spot, options), seen
    most = ahead.on_demand_usd - gains.threshold_usd
    return ahead.start, tuple(at for at, usd in ahead.starts if usd < most), seen


def _place(situation: Situation, options: Options, rule: Rule) -> Decision:
    """Where to start a job that does not run, or whether to wait."""
    fallback = _fallback(situation, options)
    net = _net(situation, options, rule)
    ahead = prospect(situation, options, rule, fallback) if net is None else None
    if fallback is not None and (net is not None or ahead is None or _bridges(ahead)):
        numbers = _hours(situation, options, fallback) | _costs(ahead)
        return Decision(word=Word.START, to=net if net is not None else fallback, code=AT_RISK, numbers=numbers)
    if ahead is None or (ahead.start is None and ahead.wait is None):
        return Decision(word=Word.WAIT, to=None, code=FULL, numbers={"deadline_hours": situation.deadline_hours})
    if ahead.start is None or ahead.wait_usd < ahead.start_usd:
        numbers = _costs(ahead)
        if ahead.wait is not None:
            numbers["return_hours"] = float(options.return_hours[ahead.wait])
        return Decision(word=Word.WAIT, to=ahead.wait, code=WAITS, runner_up=ahead.start, numbers=numbers)
    gain = min(ahead.on_demand_usd, ahead.wait_usd) - ahead.start_usd
    return Decision(
        word=Word.START,
        to=ahead.start,
        code=AGAIN,
        gain_usd=gain if gain < NEVER / 2 else 0.0,
        horizon_hours=float(options.lifetime_hours[ahead.start]),
        runner_up=ahead.second,
        numbers=_costs(ahead),
    )


def _bridges(ahead: Prospect) -> bool:
    """To run on demand until a pool is back costs less than to start on one now, and no more than to wait."""
    return ahead.on_demand_usd < ahead.start_usd and ahead.on_demand_usd <= ahead.wait_usd * (1.0 + TIE)


def _costs(ahead: Prospect | None) -> dict[str, float]:
    """To the end, of each thing it could do."""
    if ahead is None:
        return {}
    told = {"start_to_end_usd": ahead.start_usd, "wait_to_end_usd": ahead.wait_usd}
    told["on_demand_to_end_usd"] = ahead.on_demand_usd
    return {name: usd for name, usd in told.items() if usd < NEVER / 2}


def _fallback(situation: Situation, options: Options) -> int | None:
    """Where to go on demand: what costs least to the end, among those that end in time if any does."""
    sure = ~options.spot & options.available & options.allowed
    if not sure.any():
        return None
    need = situation.work_hours / options.work_rate
    ends = need + options.stop_hours
    cost = need * options.usd_per_hour + options.start_usd
    in_time = sure & (ends <= situation.deadline_hours)
    best, _ = _two(np.where(in_time, cost, np.inf) if in_time.any() else np.where(sure, ends, np.inf), options)
    return best


def _net(situation: Situation, options: Options, rule: Rule) -> int | None:
    """The on-demand place to fall back to, once the deadline leaves no more than a few changeovers; None as long as it does."""
    to = _fallback(situation, options)
    if to is None:
        return None
    many = rule.net_changeovers
    if situation.running is not None and options.available[situation.running]:
        many = float(_net_changeovers(situation, options, rule)[situation.running])
    need = situation.work_hours / options.work_rate[to]
    # a start under way is one of the changeovers: to leave it for another gains no time
    left = situation.deadline_hours + situation.starting_hours
    return to if left < need + many * options.stop_hours[to] - EPSILON else None


def _roomy(situation: Situation, gains: Gains, options: Options, rule: Rule) -> Flags:
    """Where a voluntary move leaves enough slack.  From on-demand it takes no more than to come back, as it went there for want of slack."""
    if situation.running is None or options.spot[situation.running]:
        many = np.full(len(options.names), rule.net_changeovers + rule.slack_changeovers)
        changeover = options.stop_hours
    else:
        many = _net_changeovers(situation, options, rule, options.stop_hours)
        changeover = options.stop_hours[options.stop_hours > 0].min(initial=np.inf)
    room: Flags = ~options.spot | (gains.slack_hours >= many * changeover)
    return room


def _net_changeovers(situation: Situation, options: Options, rule: Rule, stop_hours: Floats | float = 0.0) -> Floats:
    """Slack that the safety net wants while a job runs there: one changeover less where it is expected to last until the job's end."""
    lasts = options.lifetime_hours - stop_hours >= situation.work_hours / options.work_rate
    return np.where(lasts, max(rule.net_changeovers - 1.0, 1.0), rule.net_changeovers)


def _two(key: Floats, options: Options) -> tuple[int | None, int | None]:
    """The best two by key, ties by name; infinite keys are none."""
    best = _first(key, options)
    if best is None:
        return None, None
    rest = key.copy()
    rest[best] = np.inf
    return best, _first(rest, options)


def _first(key: Floats, options: Options) -> int | None:
    least = key.min(initial=np.inf)
    if not np.isfinite(least):
        return None
    return min((int(at) for at in np.flatnonzero(key == least)), key=lambda at: options.names[at])


def _hours(situation: Situation, options: Options, net: int) -> dict[str, float]:
    return {
        "deadline_hours": situation.deadline_hours,
        "work_hours": float(situation.work_hours / options.work_rate[net]),
        "changeover_hours": float(options.stop_hours[net]),
    }


def _numbers(gains: Gains, options: Options, index: int) -> dict[str, float]:
    return {
        "saving_usd": float(gains.saving_usd[index]),
        "start_usd": float(options.start_usd[index]),
        "gain_usd": float(gains.gain_usd[index]),
        "threshold_usd": gains.threshold_usd,
        "horizon_hours": float(gains.horizon_hours[index]),
        "stop_hours": float(options.stop_hours[index]),
        "slack_hours": float(gains.slack_hours[index]),
    }
