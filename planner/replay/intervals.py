"""How sure a difference is: moving-block bootstrap over windows, a block being as many windows as overlap.  Deterministic: the seed is fixed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from planner.replay.trace import Floats

SAMPLES = 2000
LEVEL = 0.95
FEWEST_BLOCKS = 3
"""With fewer windows than this many blocks, an interval would say more than is known."""
_SEED = 20261130


@dataclass(frozen=True, slots=True)
class Interval:
    """Percent points of the optimum."""

    low: float
    high: float

    @property
    def noise(self) -> bool:
        """Zero is inside: the difference may be chance."""
        return self.low <= 0 <= self.high


def difference(costs: Floats, others: Floats, least: Floats, block: int) -> Interval | None:
    """Of (sum of costs - sum of others) in percent of the sum of the optimum; None where the windows are too few."""
    count = len(least)
    block = max(1, min(block, count))
    if count < FEWEST_BLOCKS * block:
        return None
    draws = -(-count // block)
    first = np.random.default_rng(_SEED).integers(0, count - block + 1, size=(SAMPLES, draws))
    rows = (first[:, :, None] + np.arange(block)).reshape(SAMPLES, -1)[:, :count]
    points = 100 * (costs - others)[rows].sum(axis=1) / least[rows].sum(axis=1)
    low, high = np.quantile(points, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high))
