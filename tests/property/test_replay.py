"""What must hold of every replay, whatever the market: the optimum is not beaten, work is conserved, nobody looks ahead, the same comes out twice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.migration.constants import DEFAULT
from planner.replay.links import links_of
from planner.replay.market import Market, Terms, market_of, regions_of
from planner.replay.observed import observed_of
from planner.replay.optimum import hold, optimum_usd
from planner.replay.registry import POLICIES
from planner.replay.simulate import NOWHERE, simulate
from planner.replay.trace import Trace

ZONES = ("us-east-1a", "us-east-1b", "us-west-2a", "eu-west-1a")


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    zones = ZONES[: draw(st.integers(1, 4))]
    ticks = draw(st.integers(30, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    flips = rng.random((ticks, len(zones))) < draw(st.sampled_from([0.02, 0.1, 0.4]))
    up = (np.cumsum(flips, axis=0) + rng.integers(0, 2, len(zones))) % 2 == 0
    moves = np.cumsum(rng.normal(0, draw(st.sampled_from([0.0, 0.1, 0.5])), (ticks, len(zones))), axis=0)
    spot = np.round(np.clip(rng.uniform(0.5, 3, len(zones)) + moves, 0.1, 6), 3)
    return Trace(
        zones=zones,
        regions=tuple(z[:-1] for z in zones),
        available=up,
        spot_usd_h=spot,
        on_demand_usd_h=np.full(spot.shape, 4.0),
        gap_s=600.0,
    )


@st.composite
def markets(draw: st.DrawFn) -> Market:
    trace = draw(traces())
    work = draw(st.integers(2, trace.ticks // 2))
    deadline = draw(st.integers(work + 8, max(work + 8, trace.ticks)))
    terms = Terms(
        work_hours=work / 6,
        deadline_hours=min(deadline, trace.ticks) / 6,
        cold_minutes=draw(st.sampled_from([0.0, 5.0, 10.0, 25.0])),
        checkpoint_gb=draw(st.sampled_from([0.0, 5.0, 50.0, 800.0])),
    )
    return market_of(trace, terms, links_of(regions_of(trace)))


@given(market=markets())
def test_no_policy_beats_the_optimum_and_work_is_conserved(market: Market) -> None:
    least = optimum_usd(market)
    for policy in POLICIES:
        run = simulate(market, policy)
        hold(run, least)
        done = market.work - run.work_left
        assert run.spot + run.on_demand == done + run.starting, policy.name
        assert np.count_nonzero(run.path != NOWHERE) == run.spot + run.on_demand, policy.name
        assert run.cost_usd >= run.egress_usd >= 0, policy.name


@given(market=markets())
def test_the_same_market_gives_the_same_run(market: Market) -> None:
    again = replace(market, memo={})
    for policy in POLICIES:
        one, other = simulate(market, policy), simulate(again, policy)
        assert one == other
        assert np.array_equal(one.path, other.path), policy.name


@given(market=markets(), data=st.data())
def test_no_policy_looks_ahead(market: Market, data: st.DataObject) -> None:
    at = data.draw(st.integers(1, market.deadline - 1))
    trace = market.trace
    turned, dearer = trace.available.copy(), trace.spot_usd_h.copy()
    turned[at:], dearer[at:] = ~turned[at:], dearer[at:][::-1] + 0.7
    other = market_of(replace(trace, available=turned, spot_usd_h=dearer), market.terms, links_of(regions_of(trace)))
    for policy in POLICIES:
        assert np.array_equal(simulate(other, policy).path[:at], simulate(market, policy).path[:at]), policy.name


@given(market=markets())
def test_a_deadline_with_room_for_two_changeovers_is_never_missed(market: Market) -> None:
    if market.deadline < market.work + 2 * market.changeover:
        return
    for policy in POLICIES:
        assert not simulate(market, policy).late, policy.name


@given(market=markets(), data=st.data())
def test_what_is_observed_ends_at_the_tick(market: Market, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(market.usd) - 2))
    trace = market.trace
    cut = market_of(trace.part(0, at + 1), market.terms, links_of(regions_of(trace)))
    whole, part = observed_of(market, DEFAULT).at(at), observed_of(cut, DEFAULT).at(at)
    for name in ("price_usd_h", "usual_usd_h", "lifetime_hours", "return_hours", "fresh_hours", "up_share"):
        assert np.array_equal(getattr(whole, name), getattr(part, name))
