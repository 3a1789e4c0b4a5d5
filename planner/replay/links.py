"""What moving a checkpoint between two regions costs and how fast it goes, by the regions' names alone.  A coarse table: whoever has a catalog overlays its prices.

Rates are SkyNomad's S3 measurements (arXiv 2601.06520, 2026-01): 8.20 Gbit/s to another region of the continent, 3.59 to another continent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.replay.trace import Floats

NEAR_GBPS = 8.20
FAR_GBPS = 3.59

CONTINENTS: tuple[tuple[str, str], ...] = (
    ("us-gov", "na"),
    ("us", "na"),
    ("northamerica", "na"),
    ("ca", "na"),
    ("mx", "na"),
    ("eu", "eu"),
    ("uk", "eu"),
    ("sa-", "sa"),
    ("southamerica", "sa"),
    ("ap-southeast-2", "oceania"),
    ("ap-southeast-4", "oceania"),
    ("ap-southeast-6", "oceania"),
    ("australia", "oceania"),
    ("ap-", "asia"),
    ("asia", "asia"),
    ("me-", "me"),
    ("il-", "me"),
    ("af-", "africa"),
    ("africa", "africa"),
    ("central", "na"),
    ("east", "na"),
    ("north", "na"),
    ("south", "na"),
    ("west", "na"),
)
"""Beginnings of region names -> continent; the first that fits counts, so that longer ones stand before shorter ones."""
SUFFIXES: tuple[tuple[str, str], ...] = (
    ("europe", "eu"),
    ("asia", "asia"),
    ("india", "asia"),
    ("japan", "asia"),
    ("korea", "asia"),
    ("africa", "africa"),
    ("uae", "me"),
    ("brazil", "sa"),
)
"""What a region's name may hold or begin with on Azure, tried before CONTINENTS."""
NEAR_USD_PER_GB: dict[str, float] = {
    "na": 0.02,
    "eu": 0.02,
    "asia": 0.08,
    "oceania": 0.08,
    "sa": 0.138,
    "me": 0.11,
    "africa": 0.147,
}
FAR_USD_PER_GB: dict[str, float] = {
    "na": 0.02,
    "eu": 0.02,
    "asia": 0.09,
    "oceania": 0.098,
    "sa": 0.138,
    "me": 0.11,
    "africa": 0.147,
}
"""By the continent of origin: AWS's price list between regions (export 2026-08-08), which stands for clouds that are not known."""
PAIRS: dict[frozenset[str], float] = {frozenset({"us-east-1", "us-east-2"}): 0.01}
_UNKNOWN_USD_PER_GB = 0.09


@dataclass(frozen=True, eq=False, slots=True)
class Links:
    """usd_per_gb[from, to] and gbps[from, to], regions in the order that they were asked for.  The diagonals mean nothing."""

    usd_per_gb: Floats
    gbps: Floats


def continent(region: str) -> str:
    """Where a region is, by its name; the name itself where it says nothing, so that it is far from everything else."""
    name = region.lower()
    for part, found in SUFFIXES:
        if part in name and not name.startswith("asia"):
            return found
    return next((found for begin, found in CONTINENTS if name.startswith(begin)), name)


def links_of(regions: Sequence[str]) -> Links:
    """The coarse table for these regions."""
    where = [continent(r) for r in regions]
    usd, gbps = np.zeros((len(regions),) * 2), np.full((len(regions),) * 2, NEAR_GBPS)
    for i, origin in enumerate(regions):
        for j, destination in enumerate(regions):
            near = where[i] == where[j]
            gbps[i, j] = NEAR_GBPS if near else FAR_GBPS
            table = NEAR_USD_PER_GB if near else FAR_USD_PER_GB
            price = PAIRS.get(frozenset({origin, destination}), table.get(where[i], _UNKNOWN_USD_PER_GB))
            usd[i, j] = 0.0 if i == j else price
    return Links(usd, gbps)
