"""What could be known at a tick: nothing after it, and of prices only what somebody could have paid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.migration.constants import DEFAULT
from planner.replay.links import links_of
from planner.replay.market import Market, Terms, market_of, regions_of
from planner.replay.observed import observed_of
from tests.unit.replay.markets import trace

TERMS = Terms(work_hours=1.0, deadline_hours=2.0, cold_minutes=10.0, checkpoint_gb=0.0)


def made(up: str, prices: list[float]) -> Market:
    """One zone, available where `up` has a `#`, with a price in every tick."""
    word = trace({"us-east-1a": "1" * len(up)})
    flags = np.array([[c == "#"] for c in up])
    told = replace(word, available=flags, spot_usd_h=np.array(prices)[:, None])
    return market_of(told, TERMS, links_of(regions_of(told)))


def test_the_usual_price_is_of_hours_in_which_the_pool_could_be_had() -> None:
    """Above on-demand in most hours, in which it could not be had: it usually cost what it cost when it could."""
    dear = made("##" + "." * 8 + "##", [3.0] * 2 + [40.0] * 8 + [3.0] * 2)
    assert observed_of(dear, DEFAULT).at(11).usual_usd_h[0] == 3.0
    # of a pool that never could be had there is nothing but what was asked for it
    never = made("." * 12, [4.0] * 12)
    assert observed_of(never, DEFAULT).at(11).usual_usd_h[0] == 4.0


def test_nothing_after_the_tick_changes_what_is_known_at_it() -> None:
    up = "##..##.###.#"
    prices = [3.0, 3.0, 9.0, 9.0, 4.0, 4.0, 9.0, 5.0, 5.0, 5.0, 9.0, 3.0]
    one, other = made(up, prices), made(up[:7] + ".....", prices[:7] + [1.0] * 5)
    for tick in range(7):
        a, b = observed_of(one, DEFAULT).at(tick), observed_of(other, DEFAULT).at(tick)
        for name in type(a).__slots__:
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
