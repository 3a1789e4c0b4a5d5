"""Rows to values: a ranked row becomes a Placement with its terms, caveats and differences in words.

Decides no order and no figure; it only says what the columns hold.  Objects are made for the ranked set and for what is explained, never for all offers.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from planner.model.codes import CODES as CODE_TABLE
from planner.model.market import MARK_CODES, Mark
from planner.model.offer import Fabric, InstanceType, Link
from planner.model.plan import Caveat, Placement, ScoreTerm
from planner.placement.cost import TERMS, TICKS_PER_USD, node_speed, topology_loss
from planner.placement.egress import GB

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.workload import ObjectPrefix, Workload
    from planner.placement.cost import Cells
    from planner.placement.offers import Offers
    from planner.placement.rank import Judged

CENT_OF_CENT = Decimal("0.0001")


def money(ticks: int) -> Decimal:
    """Ten-thousandths of a dollar as a Decimal with four places."""
    return Decimal(int(ticks)).scaleb(-4).quantize(CENT_OF_CENT)


def hours(value: float) -> Decimal:
    """Hours with four places, half-even."""
    return Decimal(round(float(value) * TICKS_PER_USD)).scaleb(-4).quantize(CENT_OF_CENT)


def bound(offers: Offers, i: int, nodes: int) -> Placement:
    """A job on so many nodes of offer `i`: all that the offer says by itself, with neither score nor words."""
    m, t, region, reserved, row = (
        offers.market,
        offers.kind(i),
        offers.region(i),
        offers.reserved(i),
        int(offers.row[i]),
    )
    micros, own = int(offers.price_micros[i]), bool(offers.overridden[i])
    return Placement(
        rank=0,
        offer_id=offers.offer_id(i),
        pool=offers.pool_id(int(offers.pool[i])),
        target=offers.target(i).name,
        cloud=t.cloud.value,
        region=region.name,
        zone=offers.zone(i),
        instance_type=t.name,
        capacity=offers.sold_as(i).value,
        nodes=nodes,
        gpu=t.gpu,
        gpu_count=t.gpu_count,
        gpu_memory_gib=Decimal(str(t.gpu_memory_gib)),
        topology=t.topology,
        node_usd_per_hour=Decimal(micros).scaleb(-6).quantize(CENT_OF_CENT),
        usd_per_hour=Decimal(micros * nodes).scaleb(-6).quantize(CENT_OF_CENT),
        total_usd=Decimal(0),
        lower_bound=False,
        compute_hours=Decimal(0),
        finish_hours=Decimal(0),
        terms=(),
        caveats=(),
        differs=(),
        addresses=(),
        placement_id="",
        grants_digest="",
        price_as_of="skyplan.yaml" if own else day(int(m.price_day[row])),
        price_source="skyplan.yaml" if own else m.sources[int(m.source_ix[row])],
        reservation=reserved.id if reserved else "",
    )


def placement(offers: Offers, workload: Workload, judged: Judged, at: int, *, rank: int) -> Placement:
    """The ranked set's entry for the score at `at`, without the ids that `app` adds (placement_id, grants_digest, addresses)."""
    i = int(judged.scores.index[at])
    scores, known = judged.scores, known_terms(judged.cells)
    details = _details(offers, workload, judged, at)
    return replace(
        bound(offers, i, workload.resources.nodes),
        rank=rank,
        usd_per_hour=money(scores.usd_per_hour[at]),
        total_usd=money(scores.total[at]),
        lower_bound=not all(known.values()),
        compute_hours=hours(scores.hours[at]),
        finish_hours=hours(scores.finish_hours[at]),
        terms=tuple(
            ScoreTerm(name=n, usd=money(scores.terms[n][at]) if known.get(n, True) else None, detail=details[n])
            for n in TERMS
        ),
        caveats=caveats(offers, workload, i),
        differs=differs(offers, workload, offers.kind(i)),
    )


def known_terms(cells: Cells) -> dict[str, bool]:
    """False where a term is unknown, as a store's region is not given."""
    return {
        "data_egress": cells.data_known,
        "checkpoint_egress": cells.checkpoint_known,
        "output_egress": cells.output_known,
    }


def day(days: int) -> str:
    """Days since 1970-01-01 as an ISO date."""
    return (date(1970, 1, 1) + timedelta(days=days)).isoformat()


def _details(offers: Offers, workload: Workload, judged: Judged, at: int) -> dict[str, str]:
    i = int(judged.scores.index[at])
    scores, cells, pair = judged.scores, judged.cells, int(offers.pair[i])
    price = scores.usd_per_hour[at] / TICKS_PER_USD
    rate = float(offers.market.interruptions_per_hour[offers.row[i]]) * workload.resources.nodes
    nodes = f" on {workload.resources.nodes} nodes" if workload.resources.nodes > 1 else ""
    stretched = ""
    slowest = max(cells.read_hours[pair], cells.write_hours[pair])
    if slowest > cells.speed_hours[pair]:
        why = "input" if cells.read_hours[pair] >= cells.write_hours[pair] else "checkpoints"
        stretched = f", stretched from {cells.speed_hours[pair]:.2f} h by the {why} link"
    data = sum(d.size_bytes * d.reads for d in workload.data) / GB
    every = workload.checkpoint.every_hours if workload.checkpoint else 0
    written = int(cells.hours[pair] / every) if every else 0
    held = float(cells.hours[pair] + cells.start_hours[pair] + scores.lost_hours[at])
    return {
        "compute": f"{scores.hours[at]:.2f} h x ${price:.4f}/h{nodes}{stretched}",
        "startup": f"{cells.start_hours[pair] * 60:.1f} min to pull the image and set up",
        "interruptions": f"{rate * scores.hours[at]:.2f} expected, {scores.lost_hours[at]:.2f} h lost",
        "data_egress": f"{data:.0f} GB read" if cells.data_known else "unknown: the bucket's region is not given",
        "checkpoint_egress": f"{written} checkpoints written" if cells.checkpoint_known else "unknown: no region given",
        "output_egress": "result written once" if cells.output_known else "unknown: the bucket's region is not given",
        "disk": f"{held:.2f} h x ${cells.disk_usd_per_hour[pair]:.4f}/h",
        "outbound": f"{held:.2f} h of NAT x ${cells.nat_usd_per_hour[pair]:.4f}/h + ${cells.nat_usd[pair]:.2f} of traffic",
    }


def caveats(offers: Offers, workload: Workload, i: int, *, writes: bool = True) -> tuple[Caveat, ...]:
    """What the reader should know about offer `i`.  A part of a job without its head only reads: not `writes`."""
    m = offers.market
    found = [
        Caveat(code=MARK_CODES[mark], text=CODE_TABLE[MARK_CODES[mark]].meaning)
        for mark in Mark
        if mark is not Mark.NONE and int(offers.marks[i]) & mark
    ]
    here = int(offers.region_ix[i])
    for what, at, ways in _stores(workload):
        if not writes and ways is _OUT:
            continue
        directions = ways if writes else _IN
        there = m.region_index.get((at.store.cloud, at.region or ""))
        if there is None:
            found.append(Caveat(code="SKY-SPEC-114", text=f"{what}: region unknown, so its egress is not in the total"))
            continue
        if there == here:
            continue
        for origin, destination in ((there, here), (here, there))[directions]:
            tariff = m.links.tariffs[int(m.links.tariff_ix[origin, destination])]
            if tariff.unverified:
                text = f"{what}: the traffic tariff is unverified ({tariff.source})"
                found.append(Caveat(code="SKY-CAT-114", text=text))
            if m.links.gbps_estimated[origin, destination]:
                text = f"{what}: {m.links.gbps[origin, destination]:g} Gbit/s is an estimate"
                found.append(Caveat(code="SKY-CAT-114", text=text))
    return tuple(sorted(set(found)))


_IN, _OUT, _BOTH = slice(0, 1), slice(1, 2), slice(0, 2)


def _stores(workload: Workload) -> Iterator[tuple[str, ObjectPrefix, slice]]:
    """Words, place, and which ways bytes go: data comes in, results go out, checkpoints do both."""
    for d in workload.data:
        yield f"data {d.at.uri}", d.at, _IN
    if workload.checkpoint:
        yield f"checkpoint {workload.checkpoint.at.uri}", workload.checkpoint.at, _BOTH
    if workload.output:
        yield f"output {workload.output.at.uri}", workload.output.at, _OUT


def differs(offers: Offers, workload: Workload, t: InstanceType) -> tuple[str, ...]:
    """How the type differs from what the job names: part, link, fabric, RAM, storage, speed (R08)."""
    nodes = workload.resources.nodes
    speed = node_speed(offers.market, t, nodes) * nodes / reference_speed(offers, workload)
    fabric = t.fabric_note or t.fabric.value
    if nodes == 1:
        fabric = "" if t.fabric is Fabric.ETHERNET else f"{fabric} (unused by one node)"
    return (*stands_in(workload, t), speed_words(workload, speed), *shape(offers, t, fabric))


def reference_speed(offers: Offers, workload: Workload) -> float:
    """Relative speed of the hardware that the job's hours were told for, all nodes."""
    return offers.market.speeds[workload.work.model] * workload.work.count * workload.work.nodes


def speed_words(workload: Workload, speed: float) -> str:
    """`speed 1.20x of 2 x A100:8`."""
    return f"speed {speed:.2f}x of {workload.work.nodes} x {workload.work.model}:{workload.work.count}"


def stands_in(workload: Workload, t: InstanceType) -> tuple[str, ...]:
    """The GPU, where it is none of those named."""
    named = [o.model for o in workload.resources.accelerators if o.model and o.count == t.gpu_count]
    if not named or t.gpu in named:
        return ()
    return (f"GPU {t.gpu} ({t.gpu_memory_gib:g} GiB) stands in for {' or '.join(sorted(set(named)))}",)


def shape(offers: Offers, t: InstanceType, fabric: str) -> tuple[str, ...]:
    """Links, fabric in the caller's words, RAM and storage of the type."""
    out: list[str] = []
    if t.gpu_count > 1:
        loss = topology_loss(offers.market, t, 1)
        out.append(f"link {t.link_note}" + (f", all-reduce {loss:.0%} slower than NVSwitch" if loss else ""))
    if fabric:
        out.append(f"fabric {fabric}")
    out.append(f"RAM {t.ram_gib:g} GiB, {t.vcpus} vCPU")
    out.append(
        "local NVMe unknown" if t.nvme_gb is None else f"local NVMe {t.nvme_gb} GB" if t.nvme_gb else "no local NVMe"
    )
    if t.link is Link.UNKNOWN:
        out.append("link between GPUs unknown")
    return tuple(out)
