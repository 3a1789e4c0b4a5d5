"""What a job holds, as the ledger says it, and the digest of a ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.model.digest import digest
from planner.model.ledger import Holding
from planner.placement.cost import TICKS_PER_USD

if TYPE_CHECKING:
    from planner.model.ledger import Ledger
    from planner.model.market import Market
    from planner.model.plan import Placement
    from planner.model.workload import Workload
    from planner.placement.assign.kinds import Kind
    from planner.placement.offers import Offers


def holdings(p: Placement, market: Market, *, workload: Workload) -> tuple[Holding, ...]:
    """What a placement of `workload` holds: of one pool, or of one per part; what it costs in total goes by the parts' rates, all of it told."""
    pieces = p.pieces
    hourly = [int(piece.usd_per_hour * TICKS_PER_USD) for piece in pieces]
    total, out = int(p.total_usd * TICKS_PER_USD), list[Holding]()
    for k, piece in enumerate(pieces):
        t = next(t for t in market.types if t.cloud.value == piece.cloud and t.name == piece.instance_type)
        before, upto, every = sum(hourly[:k]), sum(hourly[: k + 1]), sum(hourly)
        part = total * upto // every - total * before // every if every else total if k == 0 else 0
        out.append(
            Holding(
                job=workload.name,
                pool=piece.pool,
                instance_type=piece.instance_type,
                region=piece.region,
                target=piece.target,
                capacity=piece.capacity,
                nodes=piece.nodes,
                gpus=piece.nodes * t.gpu_count,
                vcpus=piece.nodes * t.vcpus,
                addresses=piece.addresses,
                usd_per_hour_ticks=hourly[k],
                usd_total_ticks=part,
                team=workload.team,
                apart=tuple(sorted((a.group, a.by.value) for a in workload.anti_affinity)),
                gang=workload.gang.group if workload.gang else "",
            )
        )
    return tuple(out)


def holding(offers: Offers, job: Workload, kind: Kind, position: int) -> Holding:
    """The holding of a job on one of its candidates; no addresses yet, as the app gives them."""
    i, shape, nodes = int(kind.shape.index[position]), kind.shape, job.resources.nodes
    t = offers.kind(i)
    return Holding(
        job=job.name,
        pool=offers.pool_id(int(offers.pool[i])),
        instance_type=t.name,
        region=offers.region(i).name,
        target=offers.target(i).name,
        capacity=offers.sold_as(i).value,
        nodes=nodes,
        gpus=nodes * t.gpu_count,
        vcpus=nodes * t.vcpus,
        usd_per_hour_ticks=int(shape.hourly[position]),
        usd_total_ticks=int(shape.total[position]),
        team=job.team,
        apart=tuple(sorted((a.group, a.by.value) for a in job.anti_affinity)),
        gang=job.gang.group if job.gang else "",
    )


def ledger_digest(ledger: Ledger) -> str:
    """Digest of the holdings, for `inputs`."""
    return digest([_told(h) for h in ledger.holdings])


def _told(h: Holding) -> list[Any]:
    """What a plan can depend on; money and groups only where there are any, so that a ledger without them has one digest."""
    own = [h.usd_per_hour_ticks, h.usd_total_ticks, h.team, [list(a) for a in h.apart], h.gang]
    return [h.job, h.pool, h.instance_type, h.nodes, list(h.addresses), *(own if any(own[2:]) else ())]
