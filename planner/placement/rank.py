"""One workload over all offers: reject, score, order.

Decides the order (price, then finish, then offer) and which offers are in the ranked set.  Returns positions and columns, not objects: a million Rejection
objects cost seconds, a million scored rows a fraction of one.  `explain` turns rows into words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.placement.cost import TICKS_PER_USD, Cells, Scores, cells_of, figure, score
from planner.placement.crowd import (
    CoolDown,
    failure_bits,
    held_networks,
    held_nodes,
    network_bits,
    pool_bits,
    pool_caps,
    quota_bits,
)
from planner.placement.feasible import Reject, place_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.model.ledger import Ledger
    from planner.model.project import Project
    from planner.model.workload import Constraints, Workload
    from planner.placement.networks import HeldNetworks
    from planner.placement.offers import Offers
    from planner.placement.split_cost import SplitScores

RANKED = 20
"""How many placements a plan holds; never fewer than 15 where they exist (Karpenter's spot-to-spot minimum, notes in docs/decisions/0008)."""


#: (target, cloud, instance type, region or `*`) -> why nodes there could not run the job: no image with a driver, secrets out of reach
Unusable = Mapping[tuple[str, str, str, str], str]


@dataclass(frozen=True, eq=False)
class Judged:
    """What does not depend on the ledger: reused for every job with the same needs.

    bits    reason bits per offer (placement, then budget and deadline where it was scored)
    cells   per type x region
    scores  of the offers that pass placement, in ranked order
    """

    bits: NDArray[np.int32]
    cells: Cells
    scores: Scores
    order: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ranking:
    """`best` are positions in the offers, best first; `at` the same in `judged.scores`.  `bits` holds every reason of every offer.

    choice   position in the scores of what an assignment of many jobs chose, which is told first; -1 where the order alone decides
    """

    judged: Judged
    bits: NDArray[np.int32]
    best: NDArray[np.int64]
    at: NDArray[np.int64]
    feasible: int
    held: NDArray[np.int64]
    caps: NDArray[np.int64]
    networks: HeldNetworks
    unusable: Unusable
    choice: int = -1

    def alive(self) -> NDArray[np.int64]:
        """What is feasible, as positions in the scores, in order."""
        order = self.judged.order
        return with_first(order[self.bits[self.judged.scores.index[order]] == 0], self.choice)


def with_first(alive: NDArray[np.int64], choice: int) -> NDArray[np.int64]:
    """The same, `choice` before the others; nothing else where it is not among them."""
    if choice < 0 or not (alive == choice).any():
        return alive
    return np.concatenate([np.array([choice], dtype=alive.dtype), alive[alive != choice]])


def judge(offers: Offers, workload: Workload) -> Judged:
    """Reject by place and price, score the rest, reject by budget and deadline, order."""
    bits = place_bits(offers, workload)
    cells = cells_of(offers, workload)
    scores = score(offers, workload, cells, np.flatnonzero(bits == 0))
    bits[scores.index] |= limit_bits(scores, workload.constraints)
    order = np.lexsort((scores.index, scores.finish_hours, scores.total))
    return Judged(bits=bits, cells=cells, scores=scores, order=order)


def unusable_bits(offers: Offers, unusable: Unusable) -> NDArray[np.int32]:
    """UNUSABLE per offer."""
    targets = {(t.name, t.cloud.value): k for k, t in enumerate(offers.targets)}
    types = {(t.cloud.value, t.name): k for k, t in enumerate(offers.market.types)}
    hit = np.zeros((len(targets), len(types), len(offers.market.regions)), dtype=bool)
    for target, cloud, kind, region in unusable:
        where = slice(None) if region == "*" else offers.market.region_index[cloud, region]
        hit[targets[target, cloud], types[cloud, kind], where] = True
    return np.where(hit[offers.target_ix, offers.type_ix, offers.region_ix], int(Reject.UNUSABLE), 0).astype(np.int32)


def limit_bits(scores: Scores | SplitScores, limits: Constraints) -> NDArray[np.int32]:
    """BUDGET and DEADLINE per entry: limits on the whole job.  A job that its hard end would cut off does not finish there."""
    bits = np.zeros(len(scores.total), dtype=np.int32)
    if limits.max_usd_per_hour is not None:
        bits[scores.usd_per_hour > round(limits.max_usd_per_hour * TICKS_PER_USD)] |= Reject.BUDGET
    if limits.max_usd_total is not None:
        bits[scores.total > round(limits.max_usd_total * TICKS_PER_USD)] |= Reject.BUDGET
    if limits.deadline_hours is not None:
        bits[scores.finish_hours > limits.deadline_hours] |= Reject.DEADLINE
    if limits.stop_after_hours is not None:
        bits[scores.finish_hours > limits.stop_after_hours] |= Reject.DEADLINE
    return bits


def rank(
    offers: Offers,
    workload: Workload,
    judged: Judged,
    *,
    project: Project,
    ledger: Ledger,
    cool: dict[str, CoolDown],
    unusable: Unusable | None = None,
    top: int = RANKED,
    standing: int | None = None,
    own: NDArray[np.int32] | None = None,
    choice: int | None = None,
) -> Ranking:
    """The ranked set, given who holds what, what failed lately and what the job cannot run on.

    standing   the offer that it runs on, which needs no room
    choice     the offer that an assignment of many jobs chose
    own        bits of what is the job's own affair: whom it must be apart from, its team's budget (`assign.own`)
    """
    nodes = workload.resources.nodes
    held = held_nodes(offers, ledger)
    default = int(figure(offers.market, "default_pool_cap_nodes"))
    caps = pool_caps(offers, project.pool_cap_nodes, default, nodes)
    bits = judged.bits | failure_bits(offers, cool) | pool_bits(offers, held, caps, nodes)
    if any(t.quotas for t in offers.targets):
        bits |= quota_bits(offers, ledger, nodes)
    if unusable:
        bits |= unusable_bits(offers, unusable)
    networks = held_networks(offers, ledger)
    bits |= network_bits(offers, networks, nodes)
    if own is not None:
        bits |= own
    if standing is not None:
        bits[standing] = judged.bits[standing]
    found = np.flatnonzero(judged.scores.index == choice) if choice is not None else judged.order[:0]
    first = int(found[0]) if len(found) else -1
    alive = with_first(judged.order[bits[judged.scores.index[judged.order]] == 0], first)
    at = alive[:top]
    return Ranking(
        judged=judged,
        bits=bits,
        best=judged.scores.index[at],
        at=at,
        feasible=len(alive),
        held=held,
        caps=caps,
        networks=networks,
        unusable=unusable or {},
        choice=first,
    )
