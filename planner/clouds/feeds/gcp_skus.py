"""Google's price list, and the price of a machine put together from it.  Pure: no SDK.

Every part is taken from SKUs of the machine's own region; a part that has two prices there, or none, leaves the machine without one, and is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from planner.clouds.feeds.gathering import Gathering, positive
from planner.clouds.feeds.gcp_families import (
    HOURS_PER_MONTH,
    LOCAL_SSD,
    SSD_GIB,
    Family,
    family_of,
    part_of,
)

#: a vCPU, a GiB or a GPU for an hour: far above any, and small enough to reckon with
MOST_USD: Final = 10_000
NANO: Final = Decimal("1e-9")
MICRO: Final = Decimal("1e-6")
#: usage unit -> hours that one is
HOURLY: Final = {"h": 1, "GiBy.h": 1}
MONTHLY: Final = {"GiBy.mo": HOURS_PER_MONTH}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A machine as Compute Engine describes it."""

    vcpus: int
    ram_gib: Decimal
    gpus: int
    ssd_gib: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A SKU that cannot be used: `words`, and whether it is one that makes no sense, is from the future, or is in other money or another unit."""

    words: str
    senseless: bool = False
    begins: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sku:
    """A part's price: per hour and vCPU, GiB or GPU.  Either `usd` or `trouble`."""

    part: str
    spot: bool
    regions: tuple[str, ...]
    usd: Decimal | None = None
    begins: datetime | None = None
    trouble: Trouble | None = None


def sku(row: Any) -> Sku | None:
    """None for a SKU that is no part of a machine here."""
    try:
        found = part_of(row["description"], row["category"]["usageType"])
        regions = tuple(row.get("serviceRegions", ()))
    except (KeyError, TypeError, AttributeError):
        return None  # which part it is of cannot be told: what lacks it is named when it is put together
    if found is None:
        return None
    part, spot = found
    words = f"SKU {row.get('skuId', '?')} ({row['description']})"
    try:
        # in the order of time; the last one holds
        latest = row["pricingInfo"][-1]
        begins = _moment(latest.get("effectiveTime") or "")
        usd = _rate(latest["pricingExpression"])
    except _NotUnderstood as error:
        return Sku(part=part, spot=spot, regions=regions, trouble=Trouble(words=f"{words}: {error}"))
    except (KeyError, IndexError, TypeError, ValueError, ArithmeticError, AttributeError):
        trouble = Trouble(words=f"{words} has no price that can be read", senseless=True)
        return Sku(part=part, spot=spot, regions=regions, trouble=trouble)
    if positive(usd) is None or usd > MOST_USD:
        trouble = Trouble(words=f"{words}: the price is {usd}", senseless=True)
        return Sku(part=part, spot=spot, regions=regions, trouble=trouble)
    return Sku(part=part, spot=spot, regions=regions, usd=usd, begins=begins)


class _NotUnderstood(Exception):
    """Other money, another unit."""


def _rate(expression: Mapping[str, Any]) -> Decimal:
    unit = expression["usageUnit"]
    hours = {**HOURLY, **MONTHLY}.get(unit)
    prices = [rate["unitPrice"] for rate in expression["tieredRates"]]
    money = {price.get("currencyCode") for price in prices}
    if hours is None or money != {"USD"}:
        raise _NotUnderstood(f"{', '.join(sorted(str(m) for m in money))} per {unit}")
    # where the first units are free or dearer than the rest, a node is planned at the dearest
    return max(_amount(price) for price in prices) / hours


def _amount(price: Mapping[str, Any]) -> Decimal:
    """Whole units as text and billionths as a number; either may be missing where it is 0."""
    units, nanos = Decimal(price.get("units", "0")), price.get("nanos", 0)
    if isinstance(nanos, bool) or not isinstance(nanos, int):
        raise TypeError(nanos)
    return units + nanos * NANO


def _moment(text: str) -> datetime | None:
    if not text:
        return None
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


@dataclass(slots=True)
class Parts:
    """What parts cost in one region.  `spoilt`: (part, spot) with a SKU that was named already."""

    prices: dict[tuple[str, bool], set[Decimal]] = field(default_factory=dict[tuple[str, bool], set[Decimal]])
    spoilt: set[tuple[str, bool]] = field(default_factory=set[tuple[str, bool]])

    def usd(self, names: Iterable[str], *, spot: bool) -> set[Decimal]:
        """Every price of a part under any of its names."""
        return set[Decimal]().union(*(self.prices.get((name, spot), set[Decimal]()) for name in names))

    def named(self, names: Iterable[str], *, spot: bool) -> bool:
        """Whether it was said already why the part has no price."""
        return any((name, spot) in self.spoilt for name in names)


def parts_of(skus: Iterable[Sku], into: Gathering) -> Parts:
    """The parts that wanted types of the region need, and a word on each SKU of theirs that cannot be used."""
    needed = {name for t in into.types if (f := family_of(t)) for name in (*f.core, *f.ram, *f.gpu, LOCAL_SSD)}
    parts = Parts()
    for one in skus:
        if one.part not in needed or into.region not in one.regions:
            continue
        key = (one.part, one.spot)
        if one.trouble is not None:
            (into.senseless if one.trouble.senseless else into.not_understood)(one.trouble.words)
            parts.spoilt.add(key)
        elif one.begins is not None and into.from_the_future(f"the price of {one.part}", one.begins):
            parts.spoilt.add(key)
        elif one.usd is not None:
            parts.prices.setdefault(key, set()).add(one.usd)
    return parts


def price(
    instance_type: str, family: Family, shape: Shape, parts: Parts, into: Gathering, *, spot: bool
) -> Decimal | None:
    """The machine's, on demand or spot; None where it is not sold so, or where it could not be put together, which is named."""
    bill = [(family.gpu, Decimal(shape.gpus))]
    if family.core:
        bill += [(family.core, Decimal(shape.vcpus)), (family.ram, shape.ram_gib)]
        bill += [((LOCAL_SSD,), Decimal(shape.ssd_gib))] if shape.ssd_gib else []
    found = [(names, count, parts.usd(names, spot=spot)) for names, count in bill]
    if any(parts.named(names, spot=spot) for names, _ in bill):
        return None
    # local SSD is sold so everywhere, and alone says nothing of this machine
    if not any(prices for names, _, prices in found if names != (LOCAL_SSD,)):
        return None
    wrong = [
        f"{names[0]} {'has two prices' if prices else 'has none'}" for names, _, prices in found if len(prices) != 1
    ]
    if wrong:
        into.senseless(f"{instance_type} {'spot' if spot else 'on demand'}: {'; '.join(wrong)}")
        return None
    return sum((count * next(iter(prices)) for _, count, prices in found), Decimal(0)).quantize(MICRO)


def ssd_gib(partitions: int) -> int:
    """Of so many partitions."""
    return partitions * SSD_GIB
