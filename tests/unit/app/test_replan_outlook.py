"""What a history leads to expect: lifetimes of pools, usual prices, how long prices last; nothing of the future."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from planner.app.replan_outlook import Told, outlook_of
from planner.migration.constants import DEFAULT
from planner.migration.costing import shape_of
from planner.model.readings import CapacityReading, CapacityWord, PriceReading
from planner.model.record import stamp
from planner.placement.offers import offers_of
from planner.state.engine import sqlite_url
from planner.state.history import History
from tests.builders import project
from tests.unit.app.replanning import JOB, NOW, TYPE, market_of, offer

SHAPE = shape_of(offers_of(market_of(10, 10), project(), as_of="2026-01-01"), JOB)
HERE, THERE = SHAPE.names.index(offer()), SHAPE.names.index(offer("us-west-2"))
PLACE = {"cloud": "aws", "region": "us-east-1", "zone": "us-east-1-a", "instance_type": TYPE.name, "capacity": "spot"}


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History.open(sqlite_url(tmp_path / "h.sqlite"), "acme")


def _price(hours_ago: float, usd: float) -> PriceReading:
    at = stamp(NOW - timedelta(hours=hours_ago))
    return PriceReading(**PLACE, usd_per_hour=Decimal(str(usd)), observed_at=at, source="test")


def _word(hours_ago: float, word: CapacityWord) -> CapacityReading:
    return CapacityReading(**PLACE, word=word, observed_at=stamp(NOW - timedelta(hours=hours_ago)), source="test")


def test_without_a_history_the_defaults_stand() -> None:
    found, known = outlook_of(SHAPE, None, NOW, DEFAULT)
    assert not known
    assert found.lifetime_hours[HERE] == DEFAULT.lifetime_hours
    assert np.isinf(found.lifetime_hours[~SHAPE.spot]).all()


def test_a_pool_that_often_went_away_is_expected_to_go_again(history: History) -> None:
    words = [_word(h, CapacityWord.NONE if h % 2 else CapacityWord.AVAILABLE) for h in range(100, 0, -1)]
    history.record(words, now=NOW, live=False)
    found, known = outlook_of(SHAPE, Told(history, NOW, DEFAULT), NOW, DEFAULT)
    assert known
    assert found.lifetime_hours[HERE] < DEFAULT.lifetime_hours
    assert found.return_hours[HERE] < 2 * DEFAULT.return_hours
    assert found.lifetime_hours[THERE] == DEFAULT.lifetime_hours, "nothing was seen of it"
    history.close()


def test_the_usual_price_is_the_median_over_time_and_one_that_flaps_does_not_last(history: History) -> None:
    prices = [_price(h, 10.0 if h > 5 else 4.0 if h % 2 else 10.0) for h in (200, 5, 4, 3, 2, 1)]
    history.record(prices, now=NOW, live=False)
    found, _ = outlook_of(SHAPE, Told(history, NOW, DEFAULT), NOW, DEFAULT)
    besides = SHAPE.usd_per_hour[HERE] - SHAPE.price_usd_per_hour[HERE]
    assert found.usual_usd_per_hour[HERE] - besides == pytest.approx(10.0)
    assert found.steady_hours is not None
    assert found.steady_hours[HERE] < found.steady_hours[THERE]
    history.close()


def test_nothing_of_the_future_counts(history: History) -> None:
    history.record([_price(200, 10.0), _price(1, 1.0)], now=NOW, live=False)
    earlier = NOW - timedelta(hours=50)
    before, _ = outlook_of(SHAPE, Told(history, earlier, DEFAULT), earlier, DEFAULT)
    history.record([_word(2, CapacityWord.NONE), _word(1, CapacityWord.AVAILABLE)], now=NOW, live=False)
    again, known = outlook_of(SHAPE, Told(history, earlier, DEFAULT), earlier, DEFAULT)
    assert not known
    assert (before.usual_usd_per_hour == again.usual_usd_per_hour).all()
    history.close()
