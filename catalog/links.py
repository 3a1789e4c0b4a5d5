"""Traffic between regions as matrices: which tariff, how many Gbit/s, how many milliseconds.

Decides which rule wins: the one that names the destination more precisely, then the origin.  A place is `*` (any), `@area` or a region's name.  Traffic inside a
region (storage to compute) is the tariff `free`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from planner.model.market import Figure, Links, Tariff
from planner.model.offer import Region

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from catalog.table import Table

FREE = "free"


def _level(place: str) -> int:
    return 0 if place == "*" else 1 if place.startswith("@") else 2


class _Places:
    """Which regions a (cloud, place) pair covers, as index arrays, each worked out once."""

    def __init__(self, regions: Sequence[Region]) -> None:
        self._regions = regions
        self._known: dict[tuple[str, str], NDArray[np.int64]] = {}

    def __call__(self, cloud: str, place: str) -> NDArray[np.int64]:
        key = (cloud, place)
        if key not in self._known:
            self._known[key] = np.array(
                [
                    i
                    for i, r in enumerate(self._regions)
                    if cloud in ("*", r.cloud.value) and place in ("*", f"@{r.area}", r.name)
                ],
                dtype=np.int64,
            )
        return self._known[key]


def tariff_matrix(rules: Table, tariffs: dict[str, Tariff], regions: Sequence[Region]) -> NDArray[np.int16]:
    """tariff_ix[from, to].  A pair that no rule covers is a problem of the file."""
    position = {name: i for i, name in enumerate(tariffs)}
    matrix = np.full((len(regions), len(regions)), -1, dtype=np.int16)
    covers = _Places(regions)
    order = sorted(
        range(len(rules.rows)),
        key=lambda k: (rules.rows[k][2] != "*", _level(rules.rows[k][3]), _level(rules.rows[k][1]), k),
    )
    for k in order:
        from_cloud, from_place, to_cloud, to_place, name = rules.rows[k]
        origin, destination = covers(from_cloud, from_place), covers(to_cloud, to_place)
        if name not in position or not len(origin) or not len(destination):
            rules.wrong(k + 2, f"tariff `{name}`, or a place of the rule, is not known", "SKY-CAT-110")
            continue
        matrix[origin[:, None], destination[None, :]] = position[name]
    np.fill_diagonal(matrix, position.get(FREE, -1))
    if (matrix < 0).any():
        i, j = (int(x) for x in np.argwhere(matrix < 0)[0])
        rules.wrong(1, f"no rule covers {regions[i].name} to {regions[j].name}")
    return matrix


def throughput(
    table: Table, regions: Sequence[Region], figures: dict[str, Figure]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """gbps[from, to] and where it is an estimate: measured pairs, else the medians of figures.csv by cloud and area."""
    cloud = np.array([r.cloud.value for r in regions])
    area = np.array([r.area for r in regions])
    same_cloud, same_area = cloud[:, None] == cloud[None, :], area[:, None] == area[None, :]
    gbps = np.where(
        same_cloud,
        np.where(same_area, figures["gbps.same_cloud.same_area"].value, figures["gbps.same_cloud.other_area"].value),
        np.where(same_area, figures["gbps.other_cloud.same_area"].value, figures["gbps.other_cloud.other_area"].value),
    )
    estimated = np.ones(gbps.shape, dtype=bool)
    position = {(r.cloud.value, r.name): i for i, r in enumerate(regions)}
    origins: list[int] = []
    destinations: list[int] = []
    values: list[float] = []
    for k, row in enumerate(table.rows):
        i, j = position.get((row[0], row[1])), position.get((row[2], row[3]))
        try:
            value = float(row[4])
        except ValueError:
            value = -1.0
        if i is None or j is None or not 0 < value < 10_000:  # noqa: PLR2004 - 10 Tbit/s: a typo
            table.wrong(k + 2, "a region is not known, or `gbps` is no rate", "SKY-CAT-110")
            continue
        origins.append(i)
        destinations.append(j)
        values.append(value)
    gbps[origins, destinations] = values
    estimated[origins, destinations] = False
    np.fill_diagonal(gbps, figures["gbps.same_region"].value)
    np.fill_diagonal(estimated, val=False)
    return gbps, estimated


def latency(
    table: Table, regions: Sequence[Region], figures: dict[str, Figure]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """rtt_ms[a, b] and where it is an estimate: measured pairs, else the median of the pairs measured between the same two areas."""
    position = {(r.cloud.value, r.name): i for i, r in enumerate(regions)}
    pairs: list[tuple[int, int]] = []
    values: list[float] = []
    for k, row in enumerate(table.rows):
        i, j = position.get((row[0], row[1])), position.get((row[2], row[3]))
        value = table.number(k, "rtt_ms")
        if i is None or j is None or row[0] == row[2] or not 0 < value < 1000:  # noqa: PLR2004 - a second: a typo
            table.wrong(k + 2, "a region is not known, both are of one cloud, or `rtt_ms` is no time", "SKY-CAT-110")
            continue
        pairs.append((i, j))
        values.append(value)
    areas = sorted({r.area for r in regions})
    area = np.array([areas.index(r.area) for r in regions], dtype=np.int64)
    by_area = np.full((len(areas), len(areas)), figures["rtt_ms.unmeasured"].value)
    ends, measured = np.array(pairs, dtype=np.int64).reshape(-1, 2), np.array(values)
    low, high = np.sort(area[ends], axis=1).T
    for a, b in set(zip(low.tolist(), high.tolist(), strict=True)):
        by_area[a, b] = by_area[b, a] = np.median(measured[(low == a) & (high == b)])
    rtt = by_area[area[:, None], area[None, :]]
    estimated = np.ones(rtt.shape, dtype=bool)
    for i, j in (ends.T, ends.T[::-1]):
        rtt[i, j] = measured
        estimated[i, j] = False
    return rtt, estimated


def links(
    tariffs: dict[str, Tariff],
    regions: Sequence[Region],
    figures: dict[str, Figure],
    *,
    rules: Table,
    rates: Table,
    times: Table,
) -> Links:
    """All matrices."""
    gbps, estimated = throughput(rates, regions, figures)
    rtt, rtt_estimated = latency(times, regions, figures)
    return Links(
        tariffs=tuple(tariffs.values()),
        tariff_ix=tariff_matrix(rules, tariffs, regions),
        gbps=gbps,
        gbps_estimated=estimated,
        rtt_ms=rtt,
        rtt_estimated=rtt_estimated,
    )
