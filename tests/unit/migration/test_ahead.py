"""Tables of looking ahead, on sets whose cost can be reckoned by hand."""

import numpy as np
import pytest

from planner.migration import ahead as tables
from planner.migration.ahead import NEVER, Settled, ahead
from planner.migration.constants import DEFAULT
from planner.migration.placing import prospect
from planner.migration.pools import field_of, sets_of
from tests.unit.migration.test_decide import options, situation

STEADY = Settled(usd=1.0, on_demand_usd=3.0, lasts=1e9, away=1e-3, start=1, start_usd=0.0, fall=1, net=4)


def still(one, time, work):
    return float(ahead([one], 40, 30).still(0, np.array([float(time)]), np.array([float(work)]))[0])


def test_what_lasts_for_ever_costs_its_price_and_one_start():
    assert still(STEADY, 40, 20) == pytest.approx(21.0, rel=1e-4)


def test_what_never_comes_back_costs_on_demand():
    assert still(Settled(1.0, 3.0, 10.0, 1e9, 1, 0.0, 1, 4), 40, 20) == pytest.approx(63.0, rel=1e-3)


def test_less_time_never_costs_less_and_no_time_is_never():
    costs = [still(Settled(1.0, 3.0, 6.0, 3.0, 1, 0.0, 1, 4), time, 20) for time in range(21, 41)]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > costs[-1]
    assert still(STEADY, 15, 20) >= NEVER / 2


def test_a_start_that_costs_more_costs_more_each_time_it_is_lost():
    free, dear = (Settled(1.0, 9.0, 4.0, 1.0, 1, usd, 1, 4) for usd in (0.0, 1.0))
    assert 3.0 < still(dear, 40, 20) - still(free, 40, 20) < 9.0


def test_tables_are_kept_and_bounded(monkeypatch):
    made = []
    solve = tables._solve
    monkeypatch.setattr(tables, "_solve", lambda *a: made.append(a) or solve(*a))
    monkeypatch.setattr(tables, "KEPT_VALUES", 20_000)
    for lasts in (3.0, 3.0, 4.0, 5.0, 6.0):
        ahead([Settled(1.0, 3.0, lasts, 2.0, 1, 0.123, 1, 4)], 40, 30)
    assert len(made) == 4
    assert sum(2 * table.still.size for table in tables._KEPT.values()) <= 20_000


def test_pools_that_go_together_are_away_longer():
    given = options(up_share=[0.8, 0.8, 0.8, 1.0], fresh_hours=[8.0, 8, 8, np.inf], outage_hours=[2.0, 2, 2, 0])
    field = field_of(situation(running=None), given, DEFAULT, 3)
    sets = sets_of(field, DEFAULT)
    away = {tuple(m): hours for m, hours in zip(map(tuple, sets.members), sets.away_hours, strict=True)}
    assert 2.0 * 0.2 < away[0, 1] < 2.0 == pytest.approx(away[0,])


def test_on_demand_leaves_for_spot_only_where_that_pays_to_the_end():
    given = options(stop_hours=[0.2, 0.2, 0.2, 0.0], start_usd=[0.2, 0.2, 1.2, 0.0])
    seen = prospect(situation(running=3), given, DEFAULT, 3)
    assert seen.start in {0, 1}
    assert seen.start_usd + 1.5 < seen.on_demand_usd == pytest.approx(72.0)
