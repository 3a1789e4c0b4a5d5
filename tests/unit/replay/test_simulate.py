"""The simulator's book-keeping, on markets small enough to reckon by hand."""

from __future__ import annotations

import pytest

from planner.replay import policies
from planner.replay.optimum import OptimumBeaten, hold, optimum_usd
from planner.replay.simulate import NOWHERE, simulate
from tests.unit.replay.markets import market

FAILOVER = policies.Failover()


def test_a_start_is_billed_and_makes_no_progress() -> None:
    run = simulate(market({"us-east-1a": "2" * 20}, work=6, deadline=20), FAILOVER)
    assert run.cost_usd == pytest.approx(2 * 7 / 6)
    assert (run.spot, run.starting, run.work_left, run.slack) == (7, 1, 0, 13)


def test_a_preemption_costs_the_restart_alone() -> None:
    run = simulate(market({"us-east-1a": "222..222222222222222"}, work=6, deadline=20), FAILOVER)
    assert (run.preemptions, run.starting, run.spot, run.slack) == (1, 2, 8, 10)


def test_what_moves_between_regions_pays_egress_once_and_starts_longer() -> None:
    made = market({"us-east-1a": "111.................", "us-west-2a": "3" * 20}, work=6, deadline=20, gb=50)
    run = simulate(made, FAILOVER)
    assert run.egress_usd == pytest.approx(50 * 0.02)
    assert run.starting == 1 + 2
    assert run.cost_usd == pytest.approx((3 * 1 + 6 * 3) / 6 + 1.0)


def test_inside_a_region_the_checkpoint_stays() -> None:
    run = simulate(market({"us-east-1a": "111......", "us-east-1b": "333333333"}, work=4, deadline=9, gb=500), FAILOVER)
    assert run.egress_usd == 0
    assert run.starting == 2


def test_the_net_goes_on_demand_in_time_where_the_checkpoint_is() -> None:
    made = market({"us-east-1a": "1" * 5 + "." * 15, "us-west-2a": "." * 20}, work=6, deadline=20, gb=50)
    run = simulate(made, FAILOVER)
    assert not run.late
    assert (run.on_demand, run.egress_usd) == (3, 0)
    assert run.slack >= 0


def test_without_on_demand_a_deadline_may_be_missed_and_is_told() -> None:
    made = market({"us-east-1a": "11.................."}, work=6, deadline=20, on_demand=float("nan"))
    run = simulate(made, FAILOVER)
    assert run.late
    assert run.work_left == 5
    assert optimum_usd(made) == float("inf")


def test_spot_at_or_above_on_demand_is_not_there() -> None:
    made = market({"us-east-1a": "2" * 20}, work=6, deadline=20, on_demand=2.0)
    assert not made.up[:, 0].any()
    assert simulate(made, FAILOVER).spot == 0


def test_a_place_that_is_not_there_cannot_be_gone_to() -> None:
    class Wrong(policies.EveryZone):
        name = "wrong"

        def begin(self, market, begin):
            return lambda seen: 0

    with pytest.raises(ValueError, match="cannot be had"):
        simulate(market({"us-east-1a": "." * 20}, work=6, deadline=20), Wrong())


def test_the_optimum_by_hand() -> None:
    # 4 ticks of work: a costs 1 for the first 3 ticks only, b costs 2 always; start in a, move to b, or b alone
    made = market({"us-east-1a": "111.........", "us-east-1b": "222222222222"}, work=4, deadline=12)
    assert optimum_usd(made) == pytest.approx((1 + 1 + 1 + 2 + 2 + 2) / 6)
    # waiting is free: b is cheap later
    made = market({"us-east-1a": "9" * 5 + "1" * 15}, work=4, deadline=20)
    assert optimum_usd(made) == pytest.approx(5 / 6)


def test_a_run_below_the_optimum_is_an_alarm() -> None:
    made = market({"us-east-1a": "2" * 20}, work=6, deadline=20)
    run = simulate(made, FAILOVER)
    hold(run, run.cost_usd)
    with pytest.raises(OptimumBeaten):
        hold(run, run.cost_usd + 0.01)


def test_never_move_has_one_zone_and_waits_for_it() -> None:
    made = market({"us-east-1a": "1..111111111", "us-east-1b": "222222222222"}, work=4, deadline=12)
    run = simulate(made, policies.NeverMove())
    assert set(run.path) == {NOWHERE, 0}
    assert run.places[0] == "us-east-1a"


def test_always_cheapest_follows_every_price() -> None:
    made = market({"us-east-1a": "121212121212", "us-east-1b": "212121212121"}, work=4, deadline=40)
    assert simulate(made, policies.AlwaysCheapest()).moves >= 5
    assert simulate(made, FAILOVER).moves == 0
