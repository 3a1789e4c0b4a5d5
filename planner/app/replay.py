"""Replay recorded markets: read the files, fill what they leave open, run every policy through every window.  The only file access of `planner.replay`'s world.

Egress comes from the catalog where it knows both regions on one cloud, else from the coarse table of planner.replay.links.  An on-demand price that a trace lacks comes
from the options, else from the catalog by instance type; where neither has one, there is no safety net, and the report says so.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from planner.app import inputs
from planner.model.diagnostic import Diagnostic, Location, Severity, ordered
from planner.model.errors import InputError
from planner.model.offer import CAPACITY_ORDER, CapacityType
from planner.placement.egress import cost_usd
from planner.replay.links import Links, links_of
from planner.replay.market import Terms, regions_of
from planner.replay.points import MOST_CELLS
from planner.replay.reading import Text, read
from planner.replay.registry import chosen
from planner.replay.table import Cell, cell_of, windows
from planner.replay.trace import Trace

if TYPE_CHECKING:
    from planner.model.market import Market as Catalog
    from planner.replay.simulate import Policy

CODE = "SKY-MOVE-430"
MOST_BYTES = 1 << 29
"""Of a file, unpacked: ten million rows.  What unpacks to more is no recording."""
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What `skyplan replay` was asked.  None prices: as the trace says."""

    files: tuple[Path, ...]
    policies: tuple[str, ...] = ()
    checkpoints_gb: tuple[float, ...] = (50.0,)
    work_hours: float = 24.0
    deadline_hours: float = 36.0
    cold_minutes: float = 10.0
    zones: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()
    every_hours: float = 12.0
    tick_minutes: float = 10.0
    form: str = "auto"
    polarity: str = ""
    spot_usd_h: float | None = None
    on_demand_usd_h: float | None = None
    catalog: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """A cell for each trace and checkpoint size."""

    cells: tuple[Cell, ...]
    warnings: tuple[Diagnostic, ...]


def load(request: Request) -> tuple[tuple[Trace, ...], tuple[Diagnostic, ...]]:
    """The traces in ticks of the request, and warnings.  Raises InputError with every problem of every file."""
    problems: list[Diagnostic] = []
    texts: list[Text] = []
    for path in request.files:
        try:
            texts.append(Text(str(path), _name(path), _text(path)))
        except _Unreadable as error:
            problems.append(_problem(str(path), str(error)))
    read_, wrong = read(texts, form=request.form, polarity=request.polarity)
    problems += wrong
    if problems:
        raise InputError(ordered(problems))
    warnings: list[Diagnostic] = []
    catalog = inputs.load_market(request.catalog)
    where = str(request.files[0])
    traces: list[Trace] = []
    for trace in read_:
        if request.instances and not any(fnmatchcase(trace.instance, g) for g in request.instances):
            continue
        kept = [z for z, r in zip(trace.zones, trace.regions, strict=True) if _wanted(z, r, request.zones)]
        if not kept:
            problems.append(_problem(where, f"{trace.name}: no zone is {', '.join(request.zones)}"))
            continue
        ticked = _ticked(_with_prices(trace.only(kept), request, catalog, warnings, problems), request, problems)
        traces.append(ticked)
    if not traces and not problems:
        problems.append(_problem(where, f"no instance type is {', '.join(request.instances)}"))
    if problems:
        raise InputError(ordered(problems))
    return tuple(traces), ordered(warnings)


def _ticked(trace: Trace, request: Request, problems: list[Diagnostic]) -> Trace:
    """In the request's ticks, if so many are bearable and long enough for a window."""
    where = str(request.files[0])
    cells = trace.hours * 60 / request.tick_minutes * len(trace.zones)
    if cells > MOST_CELLS:
        words = f"{trace.name}: {cells:.3g} ticks of its zones, {MOST_CELLS:,} are bearable: make them longer"
        problems.append(_problem(where, words))
        return trace
    ticked = trace.at_ticks_of(request.tick_minutes * 60)
    if ticked.hours < request.deadline_hours:
        words = f"{trace.name}: {ticked.hours:.1f} h long, a window needs {request.deadline_hours:g} h"
        problems.append(_problem(where, words))
    return ticked


def pieces(traces: Sequence[Trace], request: Request) -> int:
    """How often `run` tells of its progress."""
    policies = len(chosen(request.policies))
    return sum(len(windows(t, _terms(request, 0.0), request.every_hours)) + policies for t in traces) * len(
        request.checkpoints_gb
    )


def run(traces: Sequence[Trace], request: Request, tell: Tell) -> tuple[Cell, ...]:
    """Every cell.  Raises OptimumBeaten where a number cannot be right, InputError where no window can be finished at all."""
    policies: tuple[Policy, ...] = chosen(request.policies)
    catalog = inputs.load_market(request.catalog)
    cells: list[Cell] = []
    for trace in traces:
        links = _links(regions_of(trace), catalog)
        for gb in request.checkpoints_gb:
            terms = _terms(request, gb)
            cell = cell_of(trace, terms, links, policies, windows(trace, terms, request.every_hours), tell=tell)
            if not cell.begins:
                words = "nothing can finish in any window: no spot for long enough, and no on-demand price"
                raise InputError([_problem(str(request.files[0]), f"{trace.name}: {words}")])
            cells.append(cell)
    return tuple(cells)


class _Unreadable(Exception):
    """Why a file gave no text."""


def _terms(request: Request, gb: float) -> Terms:
    return Terms(
        work_hours=request.work_hours,
        deadline_hours=request.deadline_hours,
        cold_minutes=request.cold_minutes,
        checkpoint_gb=gb,
    )


def _name(path: Path) -> str:
    """The file's name without what says how it is written."""
    name = path.name
    for suffix in (".gz", ".zst", ".csv", ".tsv", ".json"):
        name = name.removesuffix(suffix)
    return name if name != "full" else path.parent.name


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
        if raw[:2] == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=io.BytesIO(raw)) as packed:
                raw = packed.read(MOST_BYTES + 1)
        elif raw[:4] == b"\x28\xb5\x2f\xfd":
            raw = _zstd(raw)
        if len(raw) > MOST_BYTES:
            raise _Unreadable(f"holds more than {MOST_BYTES >> 20} MiB of text")
        return raw.decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        said = getattr(error, "strerror", None) or type(error).__name__
        raise _Unreadable(f"cannot be read: {said}") from error


def _zstd(raw: bytes) -> bytes:
    try:
        zstandard = import_module("zstandard")
    except ImportError as error:
        raise _Unreadable("is compressed with zstd: install `zstandard`, or unpack it with `zstd -d`") from error
    try:
        reader = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(raw), read_across_frames=True)
        found = reader.read(MOST_BYTES + 1)
    except zstandard.ZstdError as error:
        raise _Unreadable(f"cannot be read: {error}") from error
    return bytes(found)


def _wanted(zone: str, region: str, globs: tuple[str, ...]) -> bool:
    return not globs or any(fnmatchcase(zone, g) or fnmatchcase(region, g) for g in globs)


def _with_prices(
    trace: Trace, request: Request, catalog: Catalog, warnings: list[Diagnostic], problems: list[Diagnostic]
) -> Trace:
    """Gaps filled from the options and the catalog, with a word on what was filled."""
    where = Location(str(request.files[0]))

    def warn(text: str) -> None:
        words, hint = f"{trace.name}: {text}", "give --on-demand-usd"
        warnings.append(Diagnostic(code=CODE, summary=words, location=where, hint=hint, severity=Severity.WARNING))

    spot, listed = trace.spot_usd_h, trace.on_demand_usd_h
    if np.isnan(spot).all():
        if request.spot_usd_h is None:
            problems.append(_problem(where.file, f"{trace.name}: no spot price in it; give --spot-usd"))
        else:
            spot = np.full_like(spot, request.spot_usd_h)
    if request.on_demand_usd_h is not None:
        listed = np.where(np.isnan(listed), request.on_demand_usd_h, listed)
    elif np.isnan(listed).all():
        found = _catalog_price(catalog, trace.instance)
        if found is None:
            warn("no on-demand price: no safety net, deadlines may be missed")
        else:
            listed = np.full_like(listed, found)
            warn(f"no on-demand price in it: the catalog's lowest for {trace.instance} stands, ${found:.4g}/h")
    return replace(trace, spot_usd_h=spot, on_demand_usd_h=listed)


def _catalog_price(catalog: Catalog, instance: str) -> float | None:
    """The lowest on-demand price of an instance type, USD per hour."""
    types = [k for k, t in enumerate(catalog.types) if t.name == instance]
    bought = catalog.capacity == CAPACITY_ORDER.index(CapacityType.ON_DEMAND)
    rows = np.isin(catalog.type_ix, types) & bought & (catalog.price_micros > 0)
    return float(catalog.price_micros[rows].min()) / 1e6 if types and rows.any() else None


def _links(regions: tuple[str, ...], catalog: Catalog) -> Links:
    """The catalog's egress between regions of one cloud; the coarse table's speeds, which are the model's."""
    coarse = links_of(regions)
    usd = coarse.usd_per_gb.copy()
    known: dict[str, dict[str, int]] = {}
    for k, region in enumerate(catalog.regions):
        known.setdefault(region.cloud.value, {})[region.name] = k
    cloud = next((c for c, names in known.items() if all(r in names for r in regions)), None)
    if cloud is not None:
        at = [known[cloud][r] for r in regions]
        for i, origin in enumerate(at):
            for j, destination in enumerate(at):
                if i != j:
                    tariff = catalog.links.tariffs[int(catalog.links.tariff_ix[origin, destination])]
                    usd[i, j] = cost_usd(tariff, 1000.0) / 1000.0
    return Links(usd, coarse.gbps)


def _problem(file: str, summary: str) -> Diagnostic:
    return Diagnostic(code=CODE, summary=summary, location=Location(file))
