"""What can be bought: clouds, capacity types, instance types and regions.  Figures only; nothing is judged here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Cloud(StrEnum):
    """The four clouds."""

    AWS = "aws"
    GCP = "gcp"
    AZURE = "azure"
    NEBIUS = "nebius"


class CapacityType(StrEnum):
    """How capacity is bought.  `reserved` comes from `reserved:` in skyplan.yaml only."""

    ON_DEMAND = "on_demand"
    SPOT = "spot"
    RESERVED = "reserved"


#: order in which the capacity column of a Market counts
CAPACITY_ORDER: tuple[CapacityType, ...] = (CapacityType.ON_DEMAND, CapacityType.SPOT, CapacityType.RESERVED)


class Link(StrEnum):
    """How the GPUs of one node are joined, best first."""

    NVSWITCH = "nvswitch"
    NVLINK = "nvlink"
    PCIE = "pcie"
    SINGLE = "single"  # one GPU: nothing to join
    UNKNOWN = "unknown"


class Fabric(StrEnum):
    """How nodes are joined."""

    INFINIBAND = "infiniband"
    ROCE = "roce"
    EFA = "efa"
    TCPXO = "tcpxo"
    TCPX = "tcpx"
    ETHERNET = "ethernet"  # plain TCP: no fabric


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """One instance type.  Units in the names; `None` is unknown, never zero.

    gpu               canonical model name: the memory is part of it where a model has two ("A100-80GB", "V100-32GB")
    gpu_memory_gib    per GPU
    gpu_class         plausibility class of the price check (the model without its form factor)
    hardware          what runs out together in a zone; part of the pool id ("p5", "a3-high")
    topology          id of the layout in and between nodes; an interconnect-sensitive job never changes it in mid-run
    placement         the cloud can put nodes of this type close together
    od_sold           sold on demand (False: capacity blocks, reservations or spot only)
    """

    cloud: Cloud
    name: str
    gpu: str
    gpu_class: str
    gpu_count: int
    gpu_memory_gib: float
    vcpus: int
    ram_gib: float
    nvme_gb: int | None
    network_gbps: float | None
    link: Link
    link_note: str
    fabric: Fabric
    fabric_gbps: float | None
    fabric_note: str
    efa_interfaces: int
    placement: bool
    topology: str
    hardware: str
    arch: str
    od_sold: bool
    as_of: str
    source: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """One cloud region.  `net_index` is append-only: its networks are 10.<net_index>.0.0/16.  `area` is the tariff's and the
    flat-price check's continent: na, eu, asia, oceania, sa, africa, me.
    """

    cloud: Cloud
    name: str
    area: str
    net_index: int
    opt_in: bool
    zones: tuple[str, ...]


def offer_id(*, cloud: str, target: str, region: str, zone: str, instance_type: str, capacity: str) -> str:
    """`aws:TARGET/us-east-1/use1-az4/p5.48xlarge/spot`; `-` stands for a zone where prices and pools are regional."""
    return f"{cloud}:{target}/{region}/{zone or '-'}/{instance_type}/{capacity}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferName:
    """What an offer's id says, as text; `zone` "" where prices and pools are regional."""

    cloud: str
    target: str
    region: str
    zone: str
    instance_type: str
    capacity: str


def offer_name(text: str) -> OfferName:
    """The inverse of `offer_id`.  Raises ValueError."""
    match = _OFFER.fullmatch(text)
    if match is None:
        raise ValueError(f"`{text}` is no offer id")
    cloud, target, region, zone, instance_type, capacity = match.groups()
    return OfferName(
        cloud=cloud,
        target=target,
        region=region,
        zone="" if zone == "-" else zone,
        instance_type=instance_type,
        capacity=capacity,
    )


_OFFER: Final = re.compile(r"([^:/ ]+):([^/ ]+)/([^/ ]+)/([^/ ]+)/([^/ ]+)/([^/ ]+)")
_TIMES: Final = re.compile(r"(.+) x([1-9][0-9]*)")


def split_offer_id(parts: Iterable[tuple[str, int]]) -> str:
    """`OFFER x2 + OFFER x1`: what a job whose nodes lie in several clouds is bound to, the head's part first."""
    return " + ".join(f"{offer} x{nodes}" for offer, nodes in parts)


def parts_of_offer_id(text: str) -> tuple[tuple[str, int], ...]:
    """The parts of a split job's offer id; () for an id of one offer.  Raises ValueError for what is neither."""
    parts = text.split(" + ")
    if len(parts) == 1 and " " not in text:
        return ()
    found = [_TIMES.fullmatch(part) for part in parts]
    if len(parts) == 1 or not all(found):
        raise ValueError(f"`{text}` is no offer id")
    return tuple((match[1], int(match[2])) for match in found if match)


def pool_id(*, cloud: str, target: str, region: str, zone: str, hardware: str, capacity: str) -> str:
    """`aws:TARGET/use1-az4/p5/spot`: hardware that runs out together."""
    return f"{cloud}:{target}/{zone or region}/{hardware}/{capacity}"
