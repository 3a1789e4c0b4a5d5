"""Rates: per caller, refilled by time, bounded in number."""

from __future__ import annotations

import pytest

from planner.server.answers import TooMany
from planner.server.limits import Limit


class Steady:
    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def test_a_burst_then_the_rate() -> None:
    steady = Steady()
    limit = Limit(2.0, 4.0, steady)
    for _ in range(4):
        limit.take("a")
    with pytest.raises(TooMany) as refused:
        limit.take("a")
    assert refused.value.after_seconds == pytest.approx(0.5)
    limit.take("b")
    steady.at += 0.5
    limit.take("a")
    with pytest.raises(TooMany):
        limit.take("a")
    steady.at += 3600
    for _ in range(4):
        limit.take("a")
    with pytest.raises(TooMany):
        limit.take("a")


def test_to_check_counts_nothing_and_to_spend_refuses_nothing() -> None:
    limit = Limit(1.0, 2.0, Steady())
    for _ in range(5):
        limit.check("a")
    for _ in range(5):
        limit.spend("a")
    with pytest.raises(TooMany):
        limit.check("a")


def test_the_longest_unheard_is_forgotten_first() -> None:
    limit = Limit(1.0, 1.0, Steady(), max_callers=2)
    limit.take("a")
    limit.take("b")
    with pytest.raises(TooMany):
        limit.take("b")
    limit.take("c")
    with pytest.raises(TooMany):
        limit.take("b")
    limit.take("a")
