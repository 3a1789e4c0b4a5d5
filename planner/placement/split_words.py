"""Splits to values and sentences: a scored split becomes a Placement with parts; why a job that asked for a tunnel is split, or is not.

Decides no order and no figure, as `describe` and `explain` for single placements.  On a part stands what its own offer says: place, node price, its nodes'
USD per hour and, as `total_usd`, what they cost while they are held; egress, disks and all that belongs to the job stands on the whole, with every term.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from planner.model.plan import Caveat, ScoreTerm
from planner.placement.cost import TICKS_PER_USD, figure
from planner.placement.describe import (
    bound,
    caveats,
    hours,
    known_terms,
    money,
    shape,
    speed_words,
    stands_in,
)
from planner.placement.egress import GB
from planner.placement.explain import notes, runner_up, spread
from planner.placement.feasible import CODES, Reject
from planner.placement.split_cost import SECONDS_PER_HOUR, SPLIT_TERMS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.plan import Placement
    from planner.model.workload import Workload
    from planner.placement.cost import Cells
    from planner.placement.explain import Context
    from planner.placement.offers import Offers
    from planner.placement.split import Splits

NOTED_STRETCH = 1.01
"""Below this a link is not worth a word."""


def split_placement(offers: Offers, workload: Workload, cells: Cells, found: Splits, k: int, *, rank: int) -> Placement:
    """The ranked set's entry for split `k`, without the ids that `app` adds."""
    s, pieces = found.scores, found.parts(k)
    held = Decimal(repr(float(s.held_hours[k])))
    known = known_terms(cells)
    parts: list[Placement] = []
    first = 0
    for i, nodes in pieces:
        part = bound(offers, i, nodes)
        parts.append(
            replace(
                part,
                first_rank=first,
                total_usd=(part.usd_per_hour * held).quantize(part.usd_per_hour),
                compute_hours=hours(s.hours[k]),
                finish_hours=hours(s.finish_hours[k]),
            )
        )
        first += nodes
    details = _details(offers, workload, cells, found, k)
    return replace(
        bound(offers, pieces[0][0], workload.resources.nodes),
        rank=rank,
        offer_id=found.offer_id(offers, k),
        usd_per_hour=money(s.usd_per_hour[k]),
        total_usd=money(s.total[k]),
        lower_bound=not (all(known.values()) and bool(s.addresses_known[k])),
        compute_hours=hours(s.hours[k]),
        finish_hours=hours(s.finish_hours[k]),
        terms=tuple(
            ScoreTerm(name=n, usd=money(s.terms[n][k]) if known.get(n, True) else None, detail=details[n])
            for n in SPLIT_TERMS
        ),
        caveats=_caveats(offers, workload, found, k),
        differs=_differs(offers, workload, found, k),
        parts=tuple(parts),
    )


def clouds(offers: Offers, found: Splits, k: int) -> str:
    """`aws and gcp`, in the order of the parts."""
    return " and ".join(offers.kind(i).cloud.value for i, _ in found.parts(k))


def stretch(found: Splits, k: int) -> float:
    """How many times longer than computing alone the run takes with its synchronisations."""
    return float(found.scores.synced_hours[k] / found.scores.base_hours[k])


def link_words(found: Splits, k: int) -> str:
    """`1.2 Gbit/s and 34 ms there and back`."""
    way = found.scores.tunnel
    return f"{way.gbps[k]:.3g} Gbit/s and {way.rtt_ms[k]:.3g} ms there and back"


def tunnel_note(found: Splits, k: int) -> str:
    """What the tunnel does to the run."""
    egress = found.scores.terms["sync_egress"][k] / TICKS_PER_USD
    return f"all-reduce over {link_words(found, k)} stretches the run {stretch(found, k):.1f} times and pays ${egress:.2f} for egress"


def _details(offers: Offers, workload: Workload, cells: Cells, found: Splits, k: int) -> dict[str, str]:
    s, way, many = found.scores, found.scores.tunnel, workload.resources.nodes
    price, held = s.usd_per_hour[k] / TICKS_PER_USD, float(s.held_hours[k])
    stretched = (
        f", stretched {stretch(found, k):.2f} times from {s.base_hours[k]:.2f} h by {way.syncs:,.0f} synchronisations "
        f"of {way.seconds[k]:.2f} s, one every {s.base_hours[k] * SECONDS_PER_HOUR / way.syncs:.1f} s"
    )
    if s.hours[k] > s.synced_hours[k] * NOTED_STRETCH:
        stretched += f", and from {s.synced_hours[k]:.2f} h by the links to the stores"
    data = sum(d.size_bytes * d.reads for d in workload.data) / GB
    restores = f", each part reads one {s.interruptions[k]:.2f} times" if s.interruptions[k] >= 0.005 else ""  # noqa: PLR2004 - as shown
    each = [
        (i, n, figure(offers.market, f"public_ipv4_usd_per_hour.{offers.kind(i).cloud.value}", -1.0))
        for i, n in found.parts(k)
    ]
    addresses = ", ".join(
        f"{offers.kind(i).cloud.value} {n} x " + (f"${usd:.4f}/h" if usd >= 0 else "unknown") for i, n, usd in each
    )
    start = float(cells.start_hours[offers.pair[found.parts(k)[0][0]]])
    return {
        "compute": f"{s.hours[k]:.2f} h x ${price:.4f}/h on {many} nodes{stretched}",
        "startup": f"{start * 60:.1f} min to pull the image and set up",
        "interruptions": f"{s.interruptions[k]:.2f} expected, {s.lost_hours[k]:.2f} h lost",
        "data_egress": f"{data:.0f} GB read, by each part its nodes' share"
        if cells.data_known
        else "unknown: the bucket's region is not given",
        "checkpoint_egress": f"{s.checkpoints[k]:.0f} checkpoints written by the head's part{restores}"
        if cells.checkpoint_known
        else "unknown: no region given",
        "output_egress": "result written once by the head's part"
        if cells.output_known
        else "unknown: the bucket's region is not given",
        "disk": f"{held:.2f} h on {many} nodes",
        "outbound": f"{held:.2f} h of NAT in {len(each)} clouds, and traffic",
        "sync_egress": f"{way.syncs:,.0f} x {way.sent_gb:.3g} GB each way",
        "tunnel_addresses": f"{held:.2f} h of public IPv4 addresses: {addresses}",
    }


def _caveats(offers: Offers, workload: Workload, found: Splits, k: int) -> tuple[Caveat, ...]:
    """What is to be known of each part, of the tunnel's estimate, and of the ways between the parts."""
    m, index = offers.market, [i for i, _ in found.parts(k)]
    cloud = {i: offers.kind(i).cloud.value for i in index}
    own = [frozenset(caveats(offers, workload, i, writes=p == 0)) for p, i in enumerate(index)]
    common = own[0].intersection(*own[1:])
    out = set(common)
    for i, theirs in zip(index, own, strict=True):
        out |= {Caveat(code=c.code, text=f"{cloud[i]}: {c.text}") for c in theirs - common}
    layouts = sorted({offers.kind(i).topology for i in index})
    also = f", also as topologies differ: {' and '.join(layouts)}" if len(layouts) > 1 else ""
    many = workload.resources.nodes
    doubts = [
        f"the stretch is an estimate: a ring over {many} nodes, overlapping nothing; NCCL may do better or worse{also}"
    ]
    doubts += [
        f"{cloud[i]}'s price of public addresses is not known and not in the total"
        for i in index
        if f"public_ipv4_usd_per_hour.{cloud[i]}" not in m.figures
    ]
    for i, j in zip(index, (*index[1:], index[0]), strict=True):
        a, b = int(offers.region_ix[i]), int(offers.region_ix[j])
        way, tariff = f"{cloud[i]} to {cloud[j]}", m.links.tariffs[int(m.links.tariff_ix[a, b])]
        if tariff.unverified:
            doubts.append(f"{way}: the traffic tariff is unverified ({tariff.source})")
        if m.links.gbps_estimated[a, b]:
            doubts.append(f"{way}: {m.links.gbps[a, b]:g} Gbit/s is an estimate")
        if m.links.rtt_estimated[a, b]:
            ends = " and ".join(sorted((cloud[i], cloud[j])))
            doubts.append(f"{m.links.rtt_ms[a, b]:.3g} ms there and back between {ends} is an estimate")
    return tuple(sorted(out | {Caveat(code="SKY-CAT-114", text=f"tunnel: {doubt}") for doubt in doubts}))


def _differs(offers: Offers, workload: Workload, found: Splits, k: int) -> tuple[str, ...]:
    """How the hardware and the tunnel differ from what the job names (R08)."""
    pieces = found.parts(k)
    speed = workload.work.hours / float(found.scores.base_hours[k])
    out = [
        *stands_in(workload, offers.kind(pieces[0][0])),
        f"{speed_words(workload, speed)}, {speed / stretch(found, k):.2f}x through the tunnel",
        f"tunnel between {clouds(offers, found, k)}: {link_words(found, k)}",
    ]
    for i, nodes in pieces:
        t = offers.kind(i)
        words = shape(offers, t, "none used: TCP through the tunnel")
        out.append(f"{t.cloud.value}: {nodes} x {t.name}: {'; '.join(words)}")
    return tuple(out)


def split_notes(context: Context, ranked: Sequence[Placement]) -> tuple[str, ...]:
    """Why a job that asked for a tunnel is split, or is not."""
    offers, ranking, found = context.offers, context.ranking, context.splits
    if found is None or not ranked or not ranked[0].parts:
        return (*notes(offers, ranking, ranked), _not_split(context))
    k = int(found.feasible[0])
    feasible = f"{ranking.feasible} offers and {len(found.feasible)} splits are feasible"
    return (_why_split(context, found, k), tunnel_note(found, k), *runner_up(ranked), *spread(feasible, ranked))


def _why_split(context: Context, found: Splits, k: int) -> str:
    offers, ranking = context.offers, context.ranking
    names = clouds(offers, found, k)
    if not ranking.feasible:
        return f"split over {names}: no single offer may hold all {context.workload.resources.nodes} nodes"
    gap = (ranking.judged.scores.total[ranking.at[0]] - found.scores.total[k]) / TICKS_PER_USD
    return f"split over {names}: ${gap:.2f} less than {offers.offer_id(int(ranking.best[0]))}, the best in one place"


def _not_split(context: Context) -> str:
    offers, ranking, found = context.offers, context.ranking, context.splits
    if found is None:
        return f"no split: no two clouds have room for {context.workload.resources.nodes} nodes of one kind of GPU"
    s = found.scores
    k = int(found.feasible[0]) if len(found.feasible) else 0
    names = clouds(offers, found, k)
    if found.bits[k]:
        codes = ", ".join(CODES[r] for r in Reject if int(found.bits[k]) & r)
        usd, hours_ = s.total[k] / TICKS_PER_USD, s.finish_hours[k]
        return f"no split: over {names} it would cost ${usd:.2f} and take {hours_:.1f} h ({codes})"
    gap = (s.total[k] - ranking.judged.scores.total[ranking.at[0]]) / TICKS_PER_USD
    return f"a split over {names} would cost ${gap:.2f} more: {tunnel_note(found, k)}"
