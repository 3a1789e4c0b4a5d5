"""The market of one job as rows for a report: every feasible offer, splits among them, and what each region has.

Reads what the ranker judged, column by column; ranks nothing, scores nothing.  Of a plan file only its ranked set is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import numpy as np

from planner.model.plan import Placement
from planner.model.report import GROUPS, Rate, RegionRow, Row
from planner.placement.describe import hours, known_terms, money
from planner.placement.feasible import CODES, Reject
from planner.placement.split_words import split_placement
from planner.render.plan_text import where

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from planner.model.workload import ObjectPrefix, Workload
    from planner.placement.explain import Context
    from planner.placement.offers import Offers

MOST_SPLITS: Final = 50
"""Splits over clouds are combinations of offers, thousands of them: the best tell enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """`feasible` and `splits` count all there are."""

    rows: tuple[Row, ...]
    feasible: int
    splits: int


def row_of(p: Placement) -> Row:
    """A placement as a row."""
    amounts = {t.name: t.usd for t in p.terms}
    pieces = p.pieces
    return Row(
        position=p.rank,
        offer_id=p.offer_id,
        place=where(p),
        what=" + ".join(_what(piece.nodes, piece.instance_type) for piece in pieces),
        cloud=_joined(piece.cloud for piece in pieces),
        region=_joined(piece.region for piece in pieces),
        capacity=_joined(piece.capacity for piece in pieces),
        gpu=_joined(piece.gpu for piece in pieces),
        gpus=sum(piece.nodes * piece.gpu_count for piece in pieces),
        usd_per_hour=p.usd_per_hour,
        total_usd=p.total_usd,
        lower_bound=p.lower_bound,
        finish_hours=p.finish_hours,
        groups=tuple(_sum(amounts[name] for name in names if name in amounts) for names in GROUPS.values()),
    )


def _joined(names: Iterator[str]) -> str:
    return " + ".join(dict.fromkeys(names))


def _what(nodes: int, instance_type: str) -> str:
    return f"{nodes} x {instance_type}" if nodes > 1 else instance_type


def _sum(amounts: Iterator[Decimal | None]) -> Decimal | None:
    found = list(amounts)
    return None if any(a is None for a in found) else sum((a for a in found if a is not None), Decimal("0.0000"))


def of_placements(ranked: Sequence[Placement]) -> Found:
    """What a plan file tells."""
    rows = _numbered([row_of(p) for p in ranked])
    splits = sum(bool(p.parts) for p in ranked)
    return Found(rows=rows, feasible=len(rows) - splits, splits=splits)


def of_context(context: Context, most: int) -> Found:
    """Every feasible offer, at most `most` rows, the cheapest first."""
    s = context.ranking.judged.scores
    alive = context.ranking.judged.order
    alive = alive[context.ranking.bits[s.index[alive]] == 0]
    rows = list(_singles(context, alive[:most]))
    splits = 0
    found = context.splits
    if found is not None:
        splits = len(found.feasible)
        rows += [
            row_of(
                split_placement(
                    context.offers, context.workload, context.ranking.judged.cells, found, int(k), rank=position
                )
            )
            for position, k in enumerate(found.feasible[:MOST_SPLITS])
        ]
    return Found(rows=_numbered(rows)[:most], feasible=len(alive), splits=splits)


def _numbered(rows: list[Row]) -> tuple[Row, ...]:
    """By total, then finish, as plans are ranked; who is on the edge of cost and finish is told."""
    rows.sort(key=lambda r: (r.total_usd, r.finish_hours))
    out: list[Row] = []
    earliest: Decimal | None = None
    for position, row in enumerate(rows):
        edge = earliest is None or row.finish_hours < earliest
        earliest = row.finish_hours if edge else earliest
        out.append(replace(row, position=position, edge=edge))
    return tuple(out)


def _singles(context: Context, at: NDArray[np.int64]) -> Iterator[Row]:
    offers, nodes = context.offers, context.workload.resources.nodes
    s, known = context.ranking.judged.scores, known_terms(context.ranking.judged.cells)
    lower = not all(known.values())
    index = s.index[at]
    groups: list[NDArray[np.int64] | None] = []
    for names in GROUPS.values():
        mine = [name for name in names if name in s.terms]
        groups.append(
            np.sum([s.terms[name][at] for name in mine], axis=0) if all(known.get(n, True) for n in mine) else None
        )
    for k, (i, here) in enumerate(zip(index.tolist(), at.tolist(), strict=True)):
        t, target, region, zone = offers.kind(i), offers.target(i), offers.region(i).name, offers.zone(i)
        named = t.cloud.value if target.name == "default" else f"{t.cloud.value}:{target.name}"
        yield Row(
            position=k,
            offer_id=offers.offer_id(i),
            place=" ".join(filter(None, (named, region, "" if zone == region else zone))),
            what=_what(nodes, t.name),
            cloud=t.cloud.value,
            region=region,
            capacity=offers.sold_as(i).value,
            gpu=t.gpu,
            gpus=t.gpu_count * nodes,
            usd_per_hour=money(int(s.usd_per_hour[here])),
            total_usd=money(int(s.total[here])),
            lower_bound=lower,
            finish_hours=hours(float(s.finish_hours[here])),
            groups=tuple(None if g is None else money(int(g[k])) for g in groups),
        )


def regions(context: Context, rows: Sequence[Row]) -> tuple[RegionRow, ...]:
    """Every region that the targets may use: those with a feasible offer by its total, then the others by name."""
    offers, bits = context.offers, context.ranking.bits
    main = bits & -bits
    best: dict[tuple[str, str], Row] = {}
    for row in rows:
        best.setdefault((row.cloud, row.region), row)
    out: list[RegionRow] = []
    for at in map(int, np.unique(offers.region_ix)):
        here = np.flatnonzero(offers.region_ix == at)
        region = offers.market.regions[at]
        alive = int((bits[here] == 0).sum())
        counts = [(int((main[here] == r).sum()), r) for r in Reject]
        _, reason = max(counts, key=lambda c: c[0])
        out.append(
            RegionRow(
                cloud=region.cloud.value,
                region=region.name,
                area=region.area,
                offers=len(here),
                feasible=alive,
                best=best.get((region.cloud.value, region.name)) if alive else None,
                code="" if alive else CODES[reason],
                read=_slowest(offers, at, reads(context.workload), writing=False),
                write=_slowest(offers, at, writes(context.workload), writing=True),
            )
        )
    return tuple(sorted(out, key=lambda r: (r.best is None, r.best.total_usd if r.best else 0, r.cloud, r.region)))


def reads(workload: Workload) -> tuple[ObjectPrefix, ...]:
    """Stores that data comes from."""
    return tuple(d.at for d in workload.data)


def writes(workload: Workload) -> tuple[ObjectPrefix, ...]:
    """Stores that checkpoints and results go to."""
    return tuple(one.at for one in (workload.checkpoint, workload.output) if one is not None)


def _slowest(offers: Offers, here: int, stores: Sequence[ObjectPrefix], *, writing: bool) -> Rate | None:
    """None where there is no store, or none whose place is known."""
    links, found = offers.market.links, list[Rate]()
    for store in stores:
        there = offers.market.region_index.get((store.store.cloud, store.region or ""))
        if there is not None:
            way = (here, there) if writing else (there, here)
            found.append(Rate(uri=store.uri, gbps=float(links.gbps[way]), estimated=bool(links.gbps_estimated[way])))
    return min(found, key=lambda r: (r.gbps, r.uri), default=None)
