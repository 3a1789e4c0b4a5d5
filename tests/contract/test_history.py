"""Observations and moves, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from planner.model.errors import StateConflict
from planner.model.record import stamp
from planner.state.history import AvailabilityPoint, History, PricePoint
from tests.contract.beds import MINUTE, NOW, PROJECT, Bed


@pytest.fixture
def history(made: str) -> Iterator[History]:
    it = History.open(made, PROJECT)
    yield it
    it.close()


def test_observations_only_grow(history: History) -> None:
    points = [
        PricePoint(series="aws:x", observed_at=stamp(NOW + k * MINUTE), micro_usd=3_000_000_000 + k, source="feed")
        for k in range(1200)
    ]
    history.observe(points[:3])
    history.observe([replace(points[0], micro_usd=1), *points])
    assert history.prices("aws:x") == tuple(points)
    assert history.prices("aws:x", since=points[5].observed_at, until=points[7].observed_at) == tuple(points[5:7])
    assert history.prices("aws:y") == ()
    seen = AvailabilityPoint(pool="p", observed_at=stamp(NOW), source="launch", word="refused", detail="d")
    history.observe(availability=[seen, seen])
    assert history.availability("p") == (seen,)


def test_a_move_goes_on_once_per_step(bed: Bed, history: History) -> None:
    bed.launch("i-0")
    move = history.decide("train", 1, "cheaper", {"saves": "3.00"}, NOW, status="decided")
    on = history.go_on(move, "launched", NOW + MINUTE, to_generation=2)
    assert (on.status, on.to_generation, on.document) == ("launched", 2, {"saves": "3.00"})
    with pytest.raises(StateConflict):
        history.go_on(move, "given-up", NOW)
    done = history.go_on(on, "done", NOW)
    assert history.moves() == history.moves("train") == (done,)
    assert done.to_generation == 2
    assert history.moves("other") == ()
