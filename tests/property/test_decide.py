"""What must hold of the decision on any market: it moves for nothing less than a saving, more readily for more, seldom, and never where it may not (R09, R19)."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from planner.migration.constants import DEFAULT
from planner.migration.decide import Word, decide, failing, gains_of
from planner.migration.options import Options, Situation

prices = st.floats(min_value=0.1, max_value=40.0)
hours = st.floats(min_value=0.05, max_value=1.5)
EXAMPLES = settings(max_examples=60, deadline=None)


@st.composite
def markets(draw, running=True):
    """Two to six spot pools and one place on demand; the first pool runs."""
    n = draw(st.integers(min_value=2, max_value=6))

    def column(values):
        return np.array(draw(st.lists(values, min_size=n + 1, max_size=n + 1)))

    usd = column(prices)
    stop = column(hours)
    start = stop * usd + column(st.floats(min_value=0, max_value=20))
    if running:
        stop[0] = start[0] = 0.0
    available = column(st.booleans())
    available[-1] = True
    available[0] = running
    spot = np.arange(n + 1) < n
    return Options(
        names=tuple(f"p{k}" for k in range(n + 1)),
        pool=np.arange(n + 1, dtype=np.int32),
        region=np.array(draw(st.lists(st.integers(0, 2), min_size=n + 1, max_size=n + 1)), dtype=np.int32),
        usd_per_hour=usd,
        work_rate=column(st.floats(min_value=0.5, max_value=2.0)),
        spot=spot,
        available=available,
        stop_hours=stop,
        start_usd=start,
        lifetime_hours=np.where(spot, column(st.floats(min_value=0.1, max_value=48)), np.inf),
        return_hours=np.where(available, 0.0, column(st.floats(min_value=0.1, max_value=8))),
        usual_usd_per_hour=column(prices),
        allowed=np.where(np.arange(n + 1) == n, True, column(st.booleans())),
    )


@st.composite
def situations(draw, running=0):
    work = draw(st.floats(min_value=0.2, max_value=100))
    slack = draw(st.one_of(st.just(math.inf), st.floats(min_value=-2, max_value=60)))
    since = draw(st.one_of(st.just(math.inf), st.floats(min_value=0, max_value=5)))
    return Situation(running=running, work_hours=work, deadline_hours=work * 2 + slack, since_move_hours=since, home=0)


@EXAMPLES
@given(options=markets(), situation=situations())
def test_no_saving_never_moves(options, situation):
    now = options.usd_per_hour[0] / options.work_rate[0]
    dear = replace(options, usd_per_hour=np.maximum(options.usd_per_hour, now * options.work_rate))
    assume(situation.deadline_hours > situation.work_hours / options.work_rate.min() + 4)
    assert decide(situation, dear).word is Word.STAY


@EXAMPLES
@given(options=markets(), situation=situations())
def test_no_saving_never_leaves_on_demand(options, situation):
    on_demand = replace(
        options, spot=np.zeros(len(options.names), dtype=bool), available=np.ones(len(options.names), dtype=bool)
    )
    on_demand.spot[1:] = True
    now = options.usd_per_hour[0] / options.work_rate[0]
    dear = replace(on_demand, usd_per_hour=np.maximum(options.usd_per_hour, now * options.work_rate))
    assert decide(situation, dear).word is Word.STAY


@EXAMPLES
@given(options=markets(), situation=situations(), factor=st.floats(min_value=0.1, max_value=1.0))
def test_a_greater_saving_moves_too(options, situation, factor):
    before = decide(situation, options)
    assume(before.code == "SKY-MOVE-413")
    usd = options.usd_per_hour.copy()
    usd[before.to] *= factor
    after = decide(situation, replace(options, usd_per_hour=usd))
    assert (after.word, after.code) == (Word.MOVE, "SKY-MOVE-413")
    assert after.gain_usd >= before.gain_usd - 1e-9


@EXAMPLES
@given(options=markets(), situation=situations(), factor=st.floats(min_value=1.0, max_value=5.0))
def test_a_dearer_move_is_not_made_where_a_cheaper_was_not(options, situation, factor):
    before = decide(situation, options)
    assume(before.word is Word.STAY)
    dearer = replace(options, start_usd=options.start_usd * factor)
    after = decide(situation, dearer)
    assert after.word is Word.STAY
    assert after.gain_usd <= before.gain_usd + 1e-9 or after.code != before.code


@EXAMPLES
@given(options=markets(), situation=situations())
def test_a_voluntary_move_passes_every_term(options, situation):
    decision = decide(situation, options)
    if decision.code == "SKY-MOVE-413":
        assert options.available[decision.to]
        assert options.allowed[decision.to]
        assert situation.since_move_hours >= DEFAULT.cool_down_hours
        gains = gains_of(situation, options, DEFAULT, 0)
        assert gains.gain_usd[decision.to] >= gains.threshold_usd
        left = (
            situation.deadline_hours
            - options.stop_hours[decision.to]
            - situation.work_hours / options.work_rate[decision.to]
        )
        assert not options.spot[decision.to] or left >= 2 * options.stop_hours[decision.to]
    for index in range(1, len(options.names)):
        code, numbers = failing(situation, options, index)
        assert code.startswith("SKY-MOVE-4")
        assert {"saving_usd", "start_usd", "gain_usd", "threshold_usd"} <= set(numbers)
        if decision.word is Word.STAY:
            assert code != "SKY-MOVE-413"


@EXAMPLES
@given(options=markets(running=False), situation=situations(running=None))
def test_what_stands_still_goes_only_where_it_may(options, situation):
    decision = decide(situation, options)
    assert decision.word in {Word.START, Word.WAIT}
    if decision.word is Word.START:
        assert options.available[decision.to]
        assert options.allowed[decision.to]
    on_demand = len(options.names) - 1
    need = situation.work_hours / options.work_rate[on_demand]
    if situation.deadline_hours < need + 2 * options.stop_hours[on_demand]:
        assert (decision.word, decision.to, decision.code) == (Word.START, on_demand, "SKY-MOVE-415")


@settings(max_examples=15, deadline=None)
@given(
    path=st.lists(st.lists(prices, min_size=4, max_size=4), min_size=24, max_size=96),
    cool_down=st.sampled_from([0.5, 1.0, 3.0]),
)
def test_churn_is_bounded_on_any_price_path(path, cool_down):
    rule, step, at, since, moves = replace(DEFAULT, cool_down_hours=cool_down), 0.25, 0, math.inf, []
    for tick, usd in enumerate(path):
        stop = np.where(np.arange(5) == at, 0.0, 0.1)
        options = Options(
            names=("a", "b", "c", "d", "od"),
            pool=np.arange(5, dtype=np.int32),
            region=np.zeros(5, dtype=np.int32),
            usd_per_hour=np.array([*usd, 60.0]),
            work_rate=np.ones(5),
            spot=np.array([True] * 4 + [False]),
            available=np.ones(5, dtype=bool),
            stop_hours=stop,
            start_usd=stop * np.array([*usd, 60.0]),
            lifetime_hours=np.array([8.0] * 4 + [np.inf]),
            return_hours=np.zeros(5),
            usual_usd_per_hour=np.full(5, 1.0),
            allowed=np.ones(5, dtype=bool),
        )
        situation = Situation(
            running=at, work_hours=200 - tick * step, deadline_hours=400, since_move_hours=since, home=0
        )
        decision = decide(situation, options, rule)
        since += step
        if decision.word is Word.MOVE:
            moves.append((tick * step, at, decision.to))
            at, since = decision.to, step
    times = [when for when, _, _ in moves]
    assert all(later - earlier >= cool_down for earlier, later in pairwise(times))
    assert len(moves) <= len(path) * step / cool_down + 1
