"""How many nodes of each offer a part of a job may have, everything considered that keeps an offer out but the job's own money and time.

The same rules as for a whole job (`feasible`, `crowd`, `rank`), asked for the number instead of for a yes or no.  What depends on the number: pools,
quotas and reservations have so much room; networks differ between one node and several, and no further.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.placement.cost import figure
from planner.placement.crowd import failure_bits, held_networks, held_nodes, network_bits, pool_room, quota_room
from planner.placement.feasible import place_bits
from planner.placement.rank import unusable_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.model.ledger import Ledger
    from planner.model.project import Project
    from planner.model.workload import Workload
    from planner.placement.crowd import CoolDown
    from planner.placement.offers import Offers
    from planner.placement.rank import Unusable


def room(
    offers: Offers,
    workload: Workload,
    *,
    project: Project,
    ledger: Ledger,
    cool: dict[str, CoolDown],
    unusable: Unusable | None = None,
) -> NDArray[np.int64]:
    """The most nodes per offer; 0 where not even one may lie there."""
    networks = held_networks(offers, ledger)
    always = failure_bits(offers, cool)
    if unusable:
        always |= unusable_bits(offers, unusable)
    alone, joined = (
        (place_bits(offers, _on(workload, n)) | network_bits(offers, networks, n) | always) == 0 for n in (1, 2)
    )
    default = int(figure(offers.market, "default_pool_cap_nodes"))
    most = pool_room(offers, held_nodes(offers, ledger), project.pool_cap_nodes, default)
    most = np.minimum(most, quota_room(offers, ledger))
    for i in np.flatnonzero(offers.reservation >= 0):
        reserved = offers.reserved(int(i))
        most[i] = min(most[i], reserved.nodes if reserved else 0)
    most = np.where(joined, most, np.minimum(most, 1))
    return np.where(alone, np.maximum(most, 0), 0)


def _on(workload: Workload, nodes: int) -> Workload:
    """The workload on that many nodes."""
    return replace(workload, resources=replace(workload.resources, nodes=nodes))
