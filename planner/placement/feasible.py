"""Which offers may serve a workload, and for each that may not, every reason as a bit.

Decides nothing about cost.  The equivalence rule stands here: GPU class and count must be what was asked for, GPU memory is never lowered (p4d.24xlarge
and a2-highgpu-8g are 40 GB parts and never serve an 80 GB request), parts that need other software (AMD, arm64) serve only requests that name them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from planner.model.market import BLOCKING, UNKNOWN_PRICE, Mark
from planner.model.offer import CAPACITY_ORDER, CapacityType, Fabric, InstanceType, Link
from planner.model.workload import GpuOption, Workload
from planner.placement.networks import nothing_held, over_quota, without_subnet
from planner.placement.offers import RESERVED, Offers, matching

MEMORY_TOLERANCE = 0.93
"""A 24 GB card reports 22.4 GiB usable (g5: 22,888 MiB); a request by memory accepts a part whose usable memory is at least this share of its nominal."""


class Reject(IntFlag):
    """Reason bits, in the order they are told: the lowest bit is an offer's main reason."""

    GPU = 1 << 0
    GPU_MEMORY = 1 << 1
    RAM = 1 << 2
    LIMITS = 1 << 3
    NOT_OFFERED = 1 << 4
    PRICE = 1 << 5
    FABRIC = 1 << 6
    TOPOLOGY = 1 << 7
    NETWORK = 1 << 8
    QUOTA = 1 << 9
    FAILURE = 1 << 10
    POOL = 1 << 11
    BUDGET = 1 << 12
    DEADLINE = 1 << 13
    UNUSABLE = 1 << 14
    APART = 1 << 15
    FUNDS = 1 << 16


CODES: dict[Reject, str] = {
    Reject.GPU: "SKY-REJ-201",
    Reject.GPU_MEMORY: "SKY-REJ-202",
    Reject.RAM: "SKY-REJ-203",
    Reject.LIMITS: "SKY-REJ-214",
    Reject.NOT_OFFERED: "SKY-REJ-204",
    Reject.PRICE: "SKY-REJ-213",
    Reject.FABRIC: "SKY-REJ-211",
    Reject.TOPOLOGY: "SKY-REJ-210",
    Reject.NETWORK: "SKY-REJ-212",
    Reject.QUOTA: "SKY-REJ-205",
    Reject.FAILURE: "SKY-REJ-206",
    Reject.POOL: "SKY-REJ-207",
    Reject.BUDGET: "SKY-REJ-208",
    Reject.DEADLINE: "SKY-REJ-209",
    Reject.UNUSABLE: "SKY-REJ-215",
    Reject.APART: "SKY-REJ-216",
    Reject.FUNDS: "SKY-REJ-218",
}

#: fabrics that carry NCCL without the CPU's TCP stack
FAST_FABRICS = frozenset({Fabric.INFINIBAND, Fabric.ROCE, Fabric.EFA, Fabric.TCPXO, Fabric.TCPX})
_NOT_FOR_SALE = Mark.OPT_IN_ZONE | Mark.NOT_SOLD
_BAD_PRICE = BLOCKING & ~_NOT_FOR_SALE


@dataclass(frozen=True, eq=False)
class TypeVerdicts:
    """Reason bits per instance type, before place, price and ledger."""

    bits: NDArray[np.int32]


def gpu_bits(t: InstanceType, options: tuple[GpuOption, ...], classes: dict[str, tuple[str, float]]) -> int:
    """GPU and GPU_MEMORY bits of one type against "any of these".  `classes`: model -> (class, memory GiB)."""
    short_of_memory = False
    for option in options:
        if t.gpu_count != option.count:
            continue
        if option.model is not None:
            if t.gpu == option.model:
                return 0
            wanted_class, wanted_memory = classes.get(option.model, ("", 0.0))
            if t.gpu_class == wanted_class:
                if t.gpu_memory_gib >= wanted_memory * MEMORY_TOLERANCE:
                    return 0
                short_of_memory = True
        elif option.min_memory_gib is not None and needs_no_port(t):
            if t.gpu_memory_gib >= option.min_memory_gib * MEMORY_TOLERANCE:
                return 0
            short_of_memory = True
    return int(Reject.GPU_MEMORY if short_of_memory else Reject.GPU)


def needs_no_port(t: InstanceType) -> bool:
    """Runs an ordinary x86-64 CUDA image: not AMD (ROCm), not arm64."""
    return t.arch in ("amd64", "x86_64") and not t.gpu.startswith("MI")


def type_verdicts(offers: Offers, workload: Workload) -> TypeVerdicts:
    """Reason bits of every instance type of the market."""
    r = workload.resources
    types = offers.market.types
    classes = {t.gpu: (t.gpu_class, t.gpu_memory_gib) for t in types}
    bits = np.zeros(len(types), dtype=np.int32)
    for i, t in enumerate(types):
        b = gpu_bits(t, r.accelerators, classes)
        if (r.min_ram_gib and t.ram_gib < r.min_ram_gib) or (r.min_vcpus and t.vcpus < r.min_vcpus):
            b |= Reject.RAM
        if r.nodes > 1 and r.interconnect_sensitive and t.fabric not in FAST_FABRICS:
            b |= Reject.FABRIC
        if r.nodes == 1 and r.interconnect_sensitive and t.gpu_count > 1 and t.link is Link.PCIE:
            b |= Reject.TOPOLOGY
        bits[i] = b
    wanted = workload.constraints.instance_types
    if wanted:
        bits[~matching(wanted, (t.name for t in types))] |= Reject.LIMITS
    return TypeVerdicts(bits)


def region_bits(offers: Offers, workload: Workload) -> NDArray[np.int32]:
    """LIMITS per region: clouds and regions that the job (narrowed by the project) may use."""
    c, regions = workload.constraints, offers.market.regions
    ok = matching(c.regions, (r.name for r in regions))
    if c.clouds:
        ok &= np.array([r.cloud.value in c.clouds for r in regions], dtype=bool)
    return np.where(ok, 0, int(Reject.LIMITS)).astype(np.int32)


def place_bits(offers: Offers, workload: Workload) -> NDArray[np.int32]:
    """Reason bits per offer from type, region, capacity type, marks, price and the target's networks."""
    bits = type_verdicts(offers, workload).bits[offers.pair_type]
    bits = (bits | region_bits(offers, workload)[offers.pair_region])[offers.pair]
    sold = np.full(len(CAPACITY_ORDER), int(Reject.NOT_OFFERED), dtype=np.int32)
    for capacity in (*workload.resources.capacity, CapacityType.RESERVED):
        sold[CAPACITY_ORDER.index(capacity)] = 0
    bits |= sold[offers.capacity]
    bits |= _own_bits(offers, workload.resources.nodes)
    return bits


_OWN: WeakKeyDictionary[Offers, dict[int, NDArray[np.int32]]] = WeakKeyDictionary()
_SIZES = 16
"""Numbers of nodes for which they are kept: four bytes per offer each."""


def _own_bits(offers: Offers, nodes: int) -> NDArray[np.int32]:
    """What of `place_bits` hangs on the number of nodes alone, kept while the offers are."""
    known = _OWN.setdefault(offers, {})
    if nodes not in known:
        if len(known) >= _SIZES:
            known.clear()
        known[nodes] = _sale_bits(offers) | _network_bits(offers, nodes) | _reservation_bits(offers, nodes)
    return known[nodes]


def _sale_bits(offers: Offers) -> NDArray[np.int32]:
    """What is not for sale to anybody, and what has no price."""
    bits = np.zeros(len(offers), dtype=np.int32)
    bits[(offers.marks & int(_NOT_FOR_SALE)) != 0] |= Reject.NOT_OFFERED
    bad = (offers.price_micros == UNKNOWN_PRICE) | ((offers.marks & int(_BAD_PRICE)) != 0)
    bad |= (offers.price_micros <= 0) & (offers.capacity != RESERVED)
    bits[bad] |= Reject.PRICE
    return bits


def _network_bits(offers: Offers, nodes: int) -> NDArray[np.int32]:
    """Out is where a target that brings its own networks has none, and where its quota of networks is below the need even if nothing stands."""
    out = without_subnet(offers, nodes) | over_quota(offers, nodes, nothing_held(offers))
    return np.where(out, int(Reject.NETWORK), 0).astype(np.int32)


def _reservation_bits(offers: Offers, nodes: int) -> NDArray[np.int32]:
    """A reservation with fewer nodes than the job needs cannot hold it."""
    bits = np.zeros(len(offers), dtype=np.int32)
    for i in np.flatnonzero(offers.reservation >= 0):
        reserved = offers.reserved(int(i))
        if reserved and reserved.nodes < nodes:
            bits[i] = Reject.NOT_OFFERED
    return bits
