"""What a price, capacity or quota feed of a cloud is.  Adapters map every SDK error to `planner.model.errors`; none escapes.

A feed answers region by region and goes on after one that failed: a region that is down is a warning, not the end.  It retries what the cloud throttles, with
back-off and jitter, and holds nothing but its client.  Rows that make no sense are named and left out, never guessed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from planner.clouds.port import Where
from planner.model.diagnostic import Diagnostic
from planner.model.readings import CapacityReading, PriceReading, QuotaReading


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to ask for.

    regions         of that cloud, as the catalog names them
    instance_types  by region, as the catalog names them; what is not among them is not for GPU jobs
    zones           by region: AZ ids on AWS, zone names elsewhere
    since           of a price history: only what is newer; None = what holds now
    now             the caller's clock: a reading later than a minute from it is clock skew, named (SKY-CAT-117) and left out
    """

    regions: tuple[str, ...]
    instance_types: dict[str, tuple[str, ...]]
    zones: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    since: datetime | None = None
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Fed:
    """One region's answer.  `complete` False: it failed in part or in whole, `warnings` say why (SKY-CAT-115, 116, 117, 119)."""

    region: str
    complete: bool = True
    prices: tuple[PriceReading, ...] = ()
    capacity: tuple[CapacityReading, ...] = ()
    quotas: tuple[QuotaReading, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()


class PriceSource(Protocol):
    """On-demand and spot prices."""

    def prices(self, wanted: Wanted) -> Iterator[Fed]:
        """Region by region, in order.  Raises CloudError only where nothing at all can be asked (no credentials)."""
        ...


class CapacitySource(Protocol):
    """Which types are sold where, and what the cloud says of having them now."""

    def capacity(self, wanted: Wanted) -> Iterator[Fed]:
        """Region by region, in order.  Raises CloudError as `prices`."""
        ...


class QuotaSource(Protocol):
    """What an account may have."""

    def quotas(self, wanted: Wanted) -> Iterator[Fed]:
        """Region by region, in order.  Raises CloudError as `prices`."""
        ...


class Feed(PriceSource, CapacitySource, QuotaSource, Protocol):
    """All three, of one cloud and account."""


class Feeds(Protocol):
    """Feeds by account."""

    def feed(self, where: Where) -> Feed:
        """`where.region` is any: a feed asks each region in turn.  Raises MissingPart where the cloud's SDK is not installed, CloudError."""
        ...
