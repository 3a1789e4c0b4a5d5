"""From files to a Market.  Raises InputError with every problem of every file at once; a broken catalog gives no market.

Decides which price stands where two sources disagree by more than the tolerance (the dearer one) and how often spot is interrupted where no figure is
published (the default in figures.csv).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from catalog import check, files
from catalog.links import links
from catalog.prices import Prices, day_of, read_prices
from planner.model.diagnostic import ordered
from planner.model.errors import InputError
from planner.model.market import Mark, Market
from planner.model.words import Words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from catalog.table import Table
    from planner.model.diagnostic import Diagnostic

_S = TypeVar("_S", bound=np.generic)


def digest_of(folder: Path) -> str:
    """sha256 over names and bytes of the catalog's files, in order of names."""
    whole = hashlib.sha256()
    for name in sorted(files.COLUMNS):
        data = (folder / name).read_bytes() if (folder / name).is_file() else b""
        whole.update(f"{name}\0{len(data)}\0".encode() + data)
    return "sha256:" + whole.hexdigest()


def _tables(folder: Path, names: Iterable[str], problems: list[Diagnostic]) -> dict[str, Table]:
    """The files by name.  Raises InputError where one cannot be read to its end: its rows would seem missing to the others."""
    tables = {name: files.open_table(folder, name, problems) for name in names}
    if not all(table.whole for table in tables.values()):
        raise InputError(ordered(problems))
    return tables


def load_words(folder: Path | None = None) -> Words:
    """The names that job files may use, without prices, traffic and interruptions.  Raises InputError where one of those files is broken."""
    folder = folder or files.PACKAGED
    problems: list[Diagnostic] = []
    tables = _tables(folder, ("gpus.csv", "instance_types.csv", "regions.csv", "aliases.csv"), problems)
    gpus = files.read_gpus(tables["gpus.csv"])
    types = files.read_types(tables["instance_types.csv"], gpus)
    places = files.read_regions(tables["regions.csv"])
    aliases = files.read_aliases(tables["aliases.csv"], gpus)
    if problems:
        raise InputError(ordered(problems))
    regions: dict[str, list[str]] = {}
    for region in places.regions:
        regions.setdefault(region.cloud.value, []).append(region.name)
    return Words(
        gpus={t.gpu: t.gpu_memory_gib for t in types},
        aliases=aliases,
        regions={cloud: tuple(names) for cloud, names in regions.items()},
        instance_types=tuple(t.name for t in types),
    )


def load_facts(
    folder: Path | None = None, *, as_of: str | None = None
) -> tuple[check.Facts, dict[str, Table], dict[str, tuple[str, ...]]]:
    """Everything but traffic and interruptions; what `catalog check` reads.  Raises InputError, and ValueError for an `as_of` that is no date.

    Ages count at `as_of` (an ISO date), else at the newest observation.
    """
    folder = folder or files.PACKAGED
    problems: list[Diagnostic] = []
    tables = _tables(folder, files.COLUMNS, problems)
    gpus = files.read_gpus(tables["gpus.csv"])
    types = files.read_types(tables["instance_types.csv"], gpus)
    places = files.read_regions(tables["regions.csv"])
    figures = files.read_figures(tables["figures.csv"])
    aliases = files.read_aliases(tables["aliases.csv"], gpus)
    prices = read_prices(tables["prices.csv"], types, places.regions)
    if problems:
        raise InputError(ordered(problems))
    newest = int(prices.day.max()) if len(prices.day) else 0
    facts = check.Facts(
        prices=prices,
        types=types,
        regions=places.regions,
        local_zones=places.local_zones,
        gpus=gpus,
        figures=figures,
        as_of_day=newest if as_of is None else day_of(as_of),
    )
    return facts, tables, aliases


def load_market(folder: Path | None = None, *, as_of: str | None = None) -> Market:
    """The packaged snapshot, or the same files in a folder of the user's; ages count at `as_of`, else at the newest observation.

    Raises InputError, and ValueError for an `as_of` that is no date.
    """
    folder = folder or files.PACKAGED
    facts, tables, aliases = load_facts(folder, as_of=as_of)
    problems: list[Diagnostic] = tables["tariffs.csv"].problems
    tariffs = files.read_tariffs(tables["tariffs.csv"])
    traffic = links(
        tariffs,
        facts.regions,
        facts.figures,
        rules=tables["tariff_rules.csv"],
        rates=tables["throughput.csv"],
        times=tables["latency.csv"],
    )
    rates = _interruptions(tables["interruptions.csv"], facts)
    if problems:
        raise InputError(ordered(problems))
    p, found = facts.prices, check.marks(facts)
    dearer = np.maximum(p.micros, p.other)
    micros = np.where((found & int(Mark.SOURCES_DISAGREE)) != 0, dearer, p.micros)
    return Market(
        types=tuple(facts.types),
        regions=tuple(facts.regions),
        zones=p.zones,
        sources=p.sources,
        type_ix=_fixed(p.type_ix),
        region_ix=_fixed(p.region_ix),
        zone_ix=_fixed(p.zone_ix),
        capacity=_fixed(p.capacity),
        price_micros=_fixed(micros),
        price_day=_fixed(p.day),
        interruptions_per_hour=_fixed(rates),
        marks=_fixed(found),
        source_ix=_fixed(p.source_ix),
        links=traffic,
        speeds={name: gpu.speed for name, gpu in facts.gpus.items()},
        figures=facts.figures,
        as_of=(date(1970, 1, 1) + timedelta(days=facts.as_of_day)).isoformat(),
        digest=digest_of(folder),
        aliases=aliases,
    )


def _fixed(column: NDArray[_S]) -> NDArray[_S]:
    """Read-only."""
    column.flags.writeable = False
    return column


def _interruptions(table: Table, facts: check.Facts) -> NDArray[np.float64]:
    """Expected interruptions per node-hour of each offer: published bands, else the default; 0 for on-demand."""
    p: Prices = facts.prices
    types: dict[tuple[str, str], int] = {(t.cloud.value, t.name): i for i, t in enumerate(facts.types)}
    regions: dict[tuple[str, str], int] = {(r.cloud.value, r.name): i for i, r in enumerate(facts.regions)}
    default = facts.figures["default_interruptions_per_hour"].value
    grid = np.full((len(facts.types), len(facts.regions)), default)
    for k, row in enumerate(table.rows):
        kind, region = types.get((row[0], row[2])), regions.get((row[0], row[1]))
        if kind is None or region is None:
            table.wrong(k + 2, f"{row[0]} {row[1]} {row[2]}: type or region is not known", "SKY-CAT-110")
            continue
        grid[kind, region] = table.number(k, "per_hour")
    return np.where(p.capacity == check.SPOT, grid[p.type_ix, p.region_ix], 0.0)
