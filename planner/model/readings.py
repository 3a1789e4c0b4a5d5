"""What a feed says of a market, as values: a price, whether a pool has capacity, a quota.  And the names under which they are kept.

A series is an offer without the account it is bought from: prices and capacity are a place's, not a customer's.  Zones of AWS are AZ ids.
Nothing here is judged: an implausible price is a reading like any other, and the catalog check speaks of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum


class CapacityWord(StrEnum):
    """What was seen of a pool.

    offered    the type is sold there; nothing is said of capacity now
    available  it can be had now, as far as the cloud says, or was had just now
    scarce     the cloud says that it will probably not be had, or not for long
    none       it could not be had just now
    reclaimed  a machine of ours was taken back there
    withdrawn  the type is not sold there (any more)
    """

    OFFERED = "offered"
    AVAILABLE = "available"
    SCARCE = "scarce"
    NONE = "none"
    RECLAIMED = "reclaimed"
    WITHDRAWN = "withdrawn"


def series_id(*, cloud: str, region: str, zone: str, instance_type: str, capacity: str) -> str:
    """`aws/us-east-1/use1-az4/p5.48xlarge/spot`; `-` stands for a zone where prices are regional."""
    return f"{cloud}/{region}/{zone or '-'}/{instance_type}/{capacity}"


def series_of_offer(offer_id: str) -> str:
    """The series of an offer `aws:TARGET/us-east-1/…`.  Raises ValueError for what is no offer id."""
    cloud, colon, rest = offer_id.partition(":")
    target, slash, place = rest.partition("/")
    if not (colon and slash and target and place):
        raise ValueError(f"`{offer_id}` is no offer id")
    return f"{cloud}/{place}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceReading:
    """USD per hour and node, as a source said at `observed_at` (aware UTC ISO, `planner.model.record.stamp`'s form)."""

    cloud: str
    region: str
    zone: str
    instance_type: str
    capacity: str
    usd_per_hour: Decimal
    observed_at: str
    source: str

    @property
    def series(self) -> str:
        """Under which it is kept."""
        return series_id(
            cloud=self.cloud,
            region=self.region,
            zone=self.zone,
            instance_type=self.instance_type,
            capacity=self.capacity,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityReading:
    """What a source said of a type's capacity in a place; `detail` is the source's own word (`score 7`, `QuotaId`, `NotAvailableForSubscription`)."""

    cloud: str
    region: str
    zone: str
    instance_type: str
    capacity: str
    word: CapacityWord
    observed_at: str
    source: str
    detail: str = ""

    @property
    def series(self) -> str:
        """Under which it is kept: capacity is observed per type, and a pool is what its types say."""
        return series_id(
            cloud=self.cloud,
            region=self.region,
            zone=self.zone,
            instance_type=self.instance_type,
            capacity=self.capacity,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaReading:
    """A limit of one account in one region.  `name` is the cloud's own (`L-417A185B`, `NVIDIA_H100_GPUS`, `standardNDSH100v5Family`); `unit` gpus or vcpus.

    used  None where the source does not say
    """

    cloud: str
    region: str
    name: str
    capacity: str
    unit: str
    limit: float
    used: float | None
    observed_at: str
    source: str
    instance_types: tuple[str, ...] = ()
