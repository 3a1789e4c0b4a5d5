"""Networks: which zones a target's own ones open, and whether a quota of networks has room for a candidate.

Decides what a candidate needs: the one network that jobs share per target and region, and on GCP the networks of its GPUs, which are the job's
own.  Columns over offers; who holds what comes in as HeldNetworks (see `crowd`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

import numpy as np

from planner.model.offer import Cloud, Fabric, InstanceType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.model.project import Target
    from planner.placement.offers import Offers

GPU_NETWORKS: Final = {Fabric.TCPX: 4, Fabric.TCPXO: 8, Fabric.ROCE: 2}
"""GCP: networks besides the node's own that a fabric between nodes needs, one per data NIC; with RoCE one more for the second gVNIC and one with
the RDMA profile (GoogleCloudPlatform/cluster-toolkit's examples for A3 High, Mega and Ultra, as noted 2026-08; never run live)."""
UNLIMITED: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class HeldNetworks:
    """What other jobs hold, [target, region]: whether the shared network `stands`, and how many GPU networks there are."""

    stands: NDArray[np.bool_]
    gpu: NDArray[np.int64]


def nothing_held(offers: Offers) -> HeldNetworks:
    """No network stands."""
    shape = (len(offers.targets), len(offers.market.regions))
    return HeldNetworks(stands=np.zeros(shape, dtype=bool), gpu=np.zeros(shape, dtype=np.int64))


def gpu_networks(t: InstanceType, nodes: int) -> int:
    """Networks of its own that a job on `nodes` nodes of this type needs."""
    return GPU_NETWORKS.get(t.fabric, 0) if t.cloud is Cloud.GCP and nodes > 1 else 0


def allowed_networks(target: Target, region: str) -> int | None:
    """The target's quota of networks there; None where it has none, or brings networks of its own."""
    if target.networks:
        return None
    return next((most for glob, most in target.network_quota if fnmatchcase(region, glob)), None)


def over_quota(offers: Offers, nodes: int, held: HeldNetworks) -> NDArray[np.bool_]:
    """Offers for which the quota of networks has no room, given what is held."""
    over = np.zeros(len(offers), dtype=bool)
    if not any(t.network_quota for t in offers.targets):
        return over
    regions = offers.market.regions
    needed = np.array([gpu_networks(t, nodes) for t in offers.market.types], dtype=np.int64)
    for k, target in enumerate(offers.targets):
        if not target.network_quota:
            continue
        quota = np.array(
            [
                UNLIMITED if r.cloud is not target.cloud or (most := allowed_networks(target, r.name)) is None else most
                for r in regions
            ],
            dtype=np.int64,
        )
        free = np.maximum(quota - held.gpu[k] - held.stands[k], 0)
        here = np.flatnonzero(offers.target_ix == k)
        region = offers.region_ix[here]
        over[here] = needed[offers.type_ix[here]] + ~held.stands[k][region] > free[region]
    return over


def without_subnet(offers: Offers, nodes: int) -> NDArray[np.bool_]:
    """Offers of targets that bring their own networks, where none has a subnet; for several nodes, none with a known CIDR."""
    out = np.zeros(len(offers), dtype=bool)
    market = offers.market
    zones = {zone: i for i, zone in enumerate(market.zones)}
    for k, target in enumerate(offers.targets):
        if not target.networks:
            continue
        cells = [
            market.region_index[target.cloud.value, n.region] * len(zones) + zones[zone]
            for n in target.networks
            for zone, _ in (n.subnets if nodes == 1 else n.cidrs)
            if zone in zones and (target.cloud.value, n.region) in market.region_index
        ]
        here = np.flatnonzero(offers.target_ix == k)
        cell = offers.region_ix[here].astype(np.int64) * len(zones) + offers.zone_ix[here]
        out[here] = ~np.isin(cell, np.array(cells, dtype=np.int64))
    return out
