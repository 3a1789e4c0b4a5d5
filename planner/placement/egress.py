"""What moving bytes costs under a tiered tariff: monotone and continuous at every step.

Cumulative cost is the sum over steps of (what lies in the step) x (its price), so no step is ever skipped.  GB are 10^9 bytes, as users write them; a
cloud that bills GiB charges up to 7 % less, so the figure is an upper bound (docs/decisions/0006).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.model.market import Tariff

if TYPE_CHECKING:
    from numpy.typing import NDArray

GB = 1e9
"""Bytes in a GB."""


def cost_usd(tariff: Tariff, gb: float) -> float:
    """USD for `gb` (10^9 bytes) under the tariff."""
    total = 0.0
    for i, step in enumerate(tariff.steps):
        top = tariff.steps[i + 1].from_gb if i + 1 < len(tariff.steps) else gb
        total += max(0.0, min(gb, top) - step.from_gb) * step.usd_per_gb
    return total


class TariffTable:
    """The tariffs as arrays, for many amounts at once."""

    def __init__(self, tariffs: tuple[Tariff, ...]) -> None:
        """`tariffs` in the order that `Links.tariff_ix` counts in."""
        width = max((len(t.steps) for t in tariffs), default=1)
        self._from = np.full((width, len(tariffs)), np.inf)
        self._price = np.zeros((width, len(tariffs)))
        for j, tariff in enumerate(tariffs):
            for i, step in enumerate(tariff.steps):
                self._from[i, j] = step.from_gb
                self._price[i, j] = step.usd_per_gb

    def cost_usd(self, tariff_ix: NDArray[np.int16], gb: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """USD per entry; `gb` broadcasts against `tariff_ix`."""
        amount = np.broadcast_to(np.asarray(gb, dtype=np.float64), tariff_ix.shape)
        total = np.zeros(tariff_ix.shape)
        width = len(self._from)
        for i in range(width):
            low = self._from[i][tariff_ix]
            top = amount if i + 1 == width else np.minimum(amount, self._from[i + 1][tariff_ix])
            within = np.maximum(top - np.where(np.isinf(low), top, low), 0.0)
            total += within * self._price[i][tariff_ix]
        return total
