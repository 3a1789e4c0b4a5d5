"""Crowding: quotas, networks, pool caps and recent failures.  Reads the ledger and the memory; changes neither.

Pool caps: what a reservation holds, or `pool_cap_nodes`, or the default.  The default never keeps a job out of an empty pool, for it is a guess about
other people's demand; quotas and reservations are facts and do.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from planner.model.offer import CAPACITY_ORDER
from planner.placement.cost import figure
from planner.placement.feasible import Reject
from planner.placement.networks import UNLIMITED, gpu_networks, nothing_held, over_quota
from planner.placement.offers import matching

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.model.ledger import AvailabilityMemory, Ledger
    from planner.model.project import Project, Quota, Target
    from planner.placement.networks import HeldNetworks
    from planner.placement.offers import Offers

FIRST_COOL_DOWN = timedelta(hours=1)
"""How long one refusal keeps an offer out; doubles with every further one.  Karpenter forgets after 3 minutes because it retries pods; a plan is read by
people first (docs/decisions/0007)."""
LONGEST_COOL_DOWN = timedelta(hours=24)
QUOTA_COOL_DOWN = timedelta(hours=24)
"""A quota does not heal by itself within hours."""


@dataclass(frozen=True, slots=True)
class CoolDown:
    """An offer or pool that is out until `until`, after `count` failures, the last with `code`."""

    code: str
    count: int
    until: datetime


def cool_downs(memory: AvailabilityMemory, as_of: datetime) -> dict[str, CoolDown]:
    """What is still out at `as_of`, by pool or offer id."""
    seen: dict[str, list[tuple[datetime, str, str]]] = {}
    for f in memory.failures:
        at = datetime.fromisoformat(f.at)
        if timedelta(0) <= as_of - at < 2 * LONGEST_COOL_DOWN:
            seen.setdefault(f.scope, []).append((at, f.kind, f.code))
    out: dict[str, CoolDown] = {}
    for scope, failures in seen.items():
        failures.sort()
        at, kind, code = failures[-1]
        recent = [f for f in failures if at - f[0] < LONGEST_COOL_DOWN]
        length = (
            QUOTA_COOL_DOWN if kind == "quota" else min(FIRST_COOL_DOWN * 2 ** (len(recent) - 1), LONGEST_COOL_DOWN)
        )
        if as_of < at + length:
            out[scope] = CoolDown(code, len(recent), at + length)
    return out


def failure_bits(offers: Offers, cool: dict[str, CoolDown]) -> NDArray[np.int32]:
    """FAILURE per offer."""
    bits = np.zeros(len(offers), dtype=np.int32)
    if not cool:
        return bits
    pools = np.zeros(len(offers.pool_first), dtype=bool)
    single: set[str] = set()
    for scope in cool:
        position = offers.pool_index.get(scope)
        if position is not None:
            pools[position] = True
        else:
            single.add(scope)
    bits[pools[offers.pool]] = Reject.FAILURE
    if single:
        pool_of_id = {offer: i for i in range(len(offers)) if (offer := offers.offer_id(i)) in single}
        bits[list(pool_of_id.values())] |= Reject.FAILURE
    return bits


def held_nodes(offers: Offers, ledger: Ledger) -> NDArray[np.int64]:
    """Nodes held per pool."""
    held = np.zeros(len(offers.pool_first), dtype=np.int64)
    for h in ledger.holdings:
        position = offers.pool_index.get(h.pool)
        if position is not None:
            held[position] += h.nodes
    return held


def pool_caps(offers: Offers, configured: int | None, default: int, nodes: int) -> NDArray[np.int64]:
    """Nodes that may be held per pool by all jobs together."""
    cap = configured if configured is not None else max(default, nodes)
    caps = np.full(len(offers.pool_first), cap, dtype=np.int64)
    for pool in np.unique(offers.pool[offers.reservation >= 0]):
        i = np.flatnonzero((offers.pool == pool) & (offers.reservation >= 0))
        caps[pool] = sum(r.nodes for k in i if (r := offers.reserved(int(k))))
    return caps


def pool_limits(offers: Offers, project: Project) -> NDArray[np.int64]:
    """Nodes that may be held per pool, the guess where there is only that."""
    return pool_caps(offers, project.pool_cap_nodes, int(figure(offers.market, "default_pool_cap_nodes")), 0)


def pool_bits(offers: Offers, held: NDArray[np.int64], caps: NDArray[np.int64], nodes: int) -> NDArray[np.int32]:
    """POOL per offer: what is held and what the job needs exceed the cap."""
    full = held + nodes > caps
    return np.where(full, int(Reject.POOL), 0).astype(np.int32)[offers.pool]


def pool_room(offers: Offers, held: NDArray[np.int64], configured: int | None, default: int) -> NDArray[np.int64]:
    """The most nodes per offer that `pool_bits` lets pass: any number in an empty pool that only the default caps."""
    caps = pool_caps(offers, configured, default, 0)
    room = caps - held
    if configured is None:
        guessed = np.ones(len(caps), dtype=bool)
        guessed[offers.pool[offers.reservation >= 0]] = False
        room[guessed & (held == 0)] = UNLIMITED
    return room[offers.pool]


def quota_bits(offers: Offers, ledger: Ledger, nodes: int) -> NDArray[np.int32]:
    """QUOTA per offer, from the targets' declared quotas less what the ledger holds of them."""
    return np.where(quota_room(offers, ledger) < nodes, int(Reject.QUOTA), 0).astype(np.int32)


def quota_room(offers: Offers, ledger: Ledger) -> NDArray[np.int64]:
    """The most nodes per offer for which the targets' declared quotas have room besides what the ledger holds of them."""
    room = np.full(len(offers), UNLIMITED, dtype=np.int64)
    types = offers.market.types
    gpus = np.array([t.gpu_count for t in types], dtype=np.int64)
    vcpus = np.array([t.vcpus for t in types], dtype=np.int64)
    for k, target in enumerate(offers.targets):
        for quota in target.quotas:
            kinds = matching(quota.instance_types, (t.name for t in types))
            hit = (offers.target_ix == k) & kinds[offers.type_ix]
            hit &= matching(quota.regions, (r.name for r in offers.market.regions))[offers.region_ix]
            if quota.capacity:
                hit &= offers.capacity == [c.value for c in CAPACITY_ORDER].index(quota.capacity)
            # a regional quota is one per region: what other regions hold does not count
            for region in np.unique(offers.region_ix[hit]):
                here = hit & (offers.region_ix == region)
                free = free_quota(quota, ledger, target, offers.market.regions[int(region)].name)
                most = np.full(len(types), UNLIMITED, dtype=np.int64)
                for limit, each in ((free[0], np.ones_like(gpus)), (free[1], gpus), (free[2], vcpus)):
                    if limit is not None:
                        most = np.minimum(most, limit // each)
                room[here] = np.minimum(room[here], most[offers.type_ix[here]])
    return room


def held_networks(offers: Offers, ledger: Ledger) -> HeldNetworks:
    """Per target and region, what the ledger's jobs hold: the network that all share, and those of their own GPUs."""
    held = nothing_held(offers)
    if not any(t.network_quota for t in offers.targets):
        return held
    targets = {(t.cloud.value, t.name): k for k, t in enumerate(offers.targets)}
    types = {(t.cloud.value, t.name): t for t in offers.market.types}
    for h in ledger.holdings:
        cloud = h.pool.partition(":")[0]
        k, region = targets.get((cloud, h.target)), offers.market.region_index.get((cloud, h.region))
        if k is None or region is None:
            continue
        held.stands[k, region] = True
        t = types.get((cloud, h.instance_type))
        held.gpu[k, region] += gpu_networks(t, h.nodes) if t else 0
    return held


def network_bits(offers: Offers, held: HeldNetworks, nodes: int) -> NDArray[np.int32]:
    """NETWORK per offer, where the quota of networks has no room besides what is held."""
    return np.where(over_quota(offers, nodes, held), int(Reject.NETWORK), 0).astype(np.int32)


def free_quota(quota: Quota, ledger: Ledger, target: Target, region: str) -> tuple[int | None, int | None, int | None]:
    """(nodes, GPUs, vCPUs) left of a quota in one region; None where it does not limit."""
    nodes = gpus = vcpus = 0
    for h in ledger.holdings:
        if h.target != target.name or not h.pool.startswith(f"{target.cloud.value}:") or h.region != region:
            continue
        if quota.capacity and h.capacity != quota.capacity:
            continue
        if any(fnmatchcase(h.instance_type, p) for p in quota.instance_types):
            nodes, gpus, vcpus = nodes + h.nodes, gpus + h.gpus, vcpus + h.vcpus
    return (
        None if quota.max_nodes is None else quota.max_nodes - nodes,
        None if quota.max_gpus is None else quota.max_gpus - gpus,
        None if quota.max_vcpus is None else quota.max_vcpus - vcpus,
    )
