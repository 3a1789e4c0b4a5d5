"""Lifetimes and returns from change points."""

import numpy as np

from planner.migration.constants import Rule
from planner.migration.lifetimes import Past, expected


def past(*rows):
    pool, at, up = zip(*rows, strict=True) if rows else ((), (), ())
    return Past(
        pool=np.array(pool, dtype=np.int32), at_hours=np.array(at, dtype=float), available=np.array(up, dtype=bool)
    )


def test_nothing_seen_is_the_default():
    found = expected(past(), 2, 0.0)
    assert not found.known.any()
    assert (found.lifetime_hours == Rule().lifetime_hours).all()
    assert (found.return_hours == 0).all()


def test_a_steady_pool_outlasts_one_that_flaps():
    flaps = [(0, float(hour), hour % 2 == 0) for hour in range(40)]
    found = expected(past(*flaps, (1, 0.0, True)), 3, 40.0)
    assert found.lifetime_hours[0] < found.lifetime_hours[2] < found.lifetime_hours[1]
    assert found.return_hours[0] > 0
    assert found.return_hours[1] == 0
    assert found.known.tolist() == [True, True, False]
