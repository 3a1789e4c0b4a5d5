"""The decision's words and codes on situations small enough to reckon by hand (R19)."""

import math

import numpy as np
import pytest

from planner.migration.decide import Word, decide, failing
from planner.migration.options import Options, Situation


def options(**columns):
    """Two spot pools of one region, a third elsewhere, and on-demand."""
    names = columns.pop("names", ("a", "b", "c", "od"))
    n = len(names)
    base = {
        "pool": np.arange(n, dtype=np.int32),
        "region": np.array([0, 0, 1, 0][:n], dtype=np.int32),
        "usd_per_hour": np.array([1.0, 1.0, 1.0, 3.0][:n]),
        "work_rate": np.ones(n),
        "spot": np.array([True, True, True, False][:n]),
        "available": np.ones(n, dtype=bool),
        "stop_hours": np.full(n, 0.2),
        "start_usd": np.array([0.2, 0.2, 1.2, 0.6][:n]),
        "lifetime_hours": np.array([8.0, 8.0, 8.0, np.inf][:n]),
        "return_hours": np.zeros(n),
        "usual_usd_per_hour": np.array([1.0, 1.0, 1.0, 3.0][:n]),
        "allowed": np.ones(n, dtype=bool),
    }
    base |= {key: np.asarray(value) for key, value in columns.items()}
    return Options(names=tuple(names), **base)


def situation(**fields):
    return Situation(
        **({"running": 0, "work_hours": 24.0, "deadline_hours": 36.0, "since_move_hours": math.inf, "home": 0} | fields)
    )


RUNS_ON_A = {"stop_hours": [0, 0.2, 0.2, 0.2], "start_usd": [0, 0.2, 1.2, 0.6]}


def test_equal_prices_stay():
    decision = decide(situation(), options(**RUNS_ON_A))
    assert (decision.word, decision.to, decision.code) == (Word.STAY, None, "SKY-MOVE-406")


def test_five_percent_over_eight_hours_less_a_twenty_minute_move_stays():
    third = 1 / 3
    given = options(
        usd_per_hour=[1, 0.95, 1, 3], stop_hours=[0, third, third, third], start_usd=[0, third * 0.95, 2, 1]
    )
    decision = decide(situation(), given)
    assert (decision.word, decision.code) == (Word.STAY, "SKY-MOVE-401")
    assert decision.numbers["saving_usd"] - decision.numbers["start_usd"] == pytest.approx(decision.gain_usd)
    assert decision.gain_usd < decision.threshold_usd == 0.5


def test_a_saving_that_pays_for_the_move_moves():
    decision = decide(situation(), options(**RUNS_ON_A | {"usd_per_hour": [1, 0.8, 0.7, 3]}))
    assert (decision.word, decision.to, decision.code) == (Word.MOVE, 1, "SKY-MOVE-413")
    assert decision.runner_up == 2


@pytest.mark.parametrize(
    ("changed", "columns", "code"),
    [
        ({"since_move_hours": 0.5}, {}, "SKY-MOVE-402"),
        ({}, {"allowed": [True, False, True, True]}, "SKY-MOVE-403"),
        ({}, {"available": [True, False, True, True]}, "SKY-MOVE-412"),
        ({"deadline_hours": 24.7}, {}, "SKY-MOVE-405"),
        ({"work_hours": 0.9}, {}, "SKY-MOVE-401"),
        ({}, {"lifetime_hours": [8, 1, 8, np.inf]}, "SKY-MOVE-401"),
    ],
)
def test_the_failing_term_is_named(changed, columns, code):
    given = options(**RUNS_ON_A | {"usd_per_hour": [1, 0.5, 1, 3]} | columns)
    assert decide(situation(**changed), given).word is Word.STAY
    assert failing(situation(**changed), given, 1)[0] == code


def test_what_was_taken_back_starts_again_where_work_is_cheapest():
    decision = decide(situation(running=None), options(available=[False, True, True, True], return_hours=[9, 0, 0, 0]))
    assert (decision.word, decision.to, decision.code) == (Word.START, 1, "SKY-MOVE-418")


def test_it_waits_where_its_data_is_when_moving_costs_more():
    given = options(available=[False, False, True, True], return_hours=[0.5, 3, 0, 0], start_usd=[0.2, 0.2, 10, 0.6])
    decision = decide(situation(running=None), given)
    assert (decision.word, decision.code) == (Word.WAIT, "SKY-MOVE-411")
    assert decide(situation(running=None, deadline_hours=25.0), given).word is Word.START


@pytest.mark.parametrize("running", [None, 0])
def test_short_of_slack_it_goes_on_demand(running):
    decision = decide(situation(running=running, deadline_hours=24.3), options(**RUNS_ON_A))
    assert (decision.to, decision.code) == (3, "SKY-MOVE-415")


def test_with_no_deadline_it_never_falls_back():
    given = options(available=[False, False, False, True], return_hours=[5, 5, 5, 0], allowed=[True, True, True, False])
    assert decide(situation(running=None, deadline_hours=math.inf), given).word is Word.WAIT


def test_prices_that_flap_are_counted_only_as_long_as_they_last():
    cheap = RUNS_ON_A | {"usd_per_hour": [1.4, 1.0, 1.4, 3], "usual_usd_per_hour": [1.2, 1.2, 1.2, 3]}
    assert decide(situation(), options(**cheap)).word is Word.MOVE
    flaps = decide(situation(), options(**cheap, steady_hours=[2.0, 2, 2, 99]))
    assert (flaps.word, flaps.code) == (Word.STAY, "SKY-MOVE-401")
    assert flaps.numbers["saving_usd"] == pytest.approx(0.8)
    assert decide(situation(), options(**cheap, steady_hours=[80.0, 80, 80, 99])).word is Word.MOVE


def test_what_is_expected_to_last_to_the_end_runs_on_with_one_changeover_of_slack():
    short = {"work_hours": 5.0, "deadline_hours": 5.3}
    assert decide(situation(**short), options(**RUNS_ON_A)).word is Word.STAY
    fleeting = options(**RUNS_ON_A, lifetime_hours=[4.0, 8, 8, np.inf])
    assert decide(situation(**short), fleeting).code == "SKY-MOVE-415"
    assert decide(situation(work_hours=5.0, deadline_hours=5.1), options(**RUNS_ON_A)).code == "SKY-MOVE-415"


def test_a_start_under_way_is_one_of_the_changeovers():
    columns = RUNS_ON_A | {"stop_hours": [0, 0.5, 0.5, 0.5]}
    tight = {"work_hours": 30.0, "deadline_hours": 30.7}
    assert decide(situation(**tight), options(**columns)).code == "SKY-MOVE-415"
    assert decide(situation(**tight, starting_hours=0.4), options(**columns)).word is Word.STAY


def test_a_move_that_gains_now_and_costs_slack_that_is_dear_stays():
    columns = RUNS_ON_A | {
        "usd_per_hour": [1, 0.8, 1, 6],
        "usual_usd_per_hour": [0.8, 0.8, 1, 6],
        "stop_hours": [0, 0.5, 0.5, 0.5],
        "start_usd": [0, 0.4, 1.5, 3],
        "lifetime_hours": [20, 6, 8, np.inf],
        "fresh_hours": [3, 3, 3, np.inf],
    }
    roomy, scarce = situation(deadline_hours=math.inf), situation(deadline_hours=26.5)
    assert decide(roomy, options(**columns)).word is Word.MOVE
    assert decide(scarce, options(**columns)).word is Word.STAY
