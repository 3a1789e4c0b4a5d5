"""Nebius' answers as readings: machine types from platforms and presets, words on capacity, quotas, prices.  Reads messages of the SDK by their fields and asks nothing.

A machine type is `platform_preset`, as in the catalog.  Zones there are none: fabrics are parts of a region that a launch does not choose, so the best one speaks for it.
A level that is about the caller's quota (`LIMIT_REACHED`) says nothing of the place, nor does one that Nebius calls stale: the type is offered there, no more.
Held to the SDK's descriptors (0.6.29) and their comments; never run against live Nebius.
"""

# pyright: basic

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from planner.clouds.feeds.gathering import Gathering, positive
from planner.model.readings import CapacityWord

CURRENCY: Final = "usd"
HOUR: Final = "hour"
GPU_HOUR: Final = "gpu hour"
EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""Nothing was sold before."""
_Said = tuple[CapacityWord, str, datetime | None]
Key = tuple[str, str]
#: best first
WORDS: Final = {
    "AVAILABILITY_LEVEL_HIGH": CapacityWord.AVAILABLE,
    "AVAILABILITY_LEVEL_MEDIUM": CapacityWord.AVAILABLE,
    "AVAILABILITY_LEVEL_LOW": CapacityWord.SCARCE,
    "AVAILABILITY_LEVEL_LIMIT_REACHED": CapacityWord.OFFERED,
    "AVAILABILITY_LEVEL_UNKNOWN": CapacityWord.OFFERED,
    "AVAILABILITY_LEVEL_UNSPECIFIED": CapacityWord.OFFERED,
}
STALE: Final = frozenset({"DATA_STATE_STALE", "DATA_STATE_UNKNOWN"})
COUNTED: Final = frozenset({"", "count", "gpu", "gpus"})
"""Units of a quota of GPUs, whose name says already what is counted."""
#: a quota in these states may be used, in FROZEN it is 0, in the others it is none
USABLE: Final = frozenset({"STATE_ACTIVE", "STATE_UNSPECIFIED"})
FROZEN: Final = "STATE_FROZEN"
UNTOLD: Final = frozenset({"USAGE_STATE_UNKNOWN", "USAGE_STATE_NOT_APPLICABLE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A machine type as a region has it."""

    name: str
    platform: str
    preset: str
    gpus: int
    spot: bool
    quota: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """The wanted ones of a region.  `whole`: it is known of each platform which one it is, so what is not among them is not sold."""

    found: dict[str, Offer]
    whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one machine costs per hour, and its parts: quantity and cost by SKU."""

    usd: Decimal
    parts: dict[str, tuple[Decimal, Decimal]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Market:
    """The spot price of one GPU of a platform since `at`."""

    sku: str
    usd: Decimal
    at: datetime


def offers(platforms: Iterable[Any], into: Gathering) -> Offers:
    """The wanted machine types among a region's platforms."""
    found: dict[str, Offer] = {}
    whole = True
    for one in platforms:
        platform = one.metadata.name
        for preset in one.spec.presets:
            if not platform or not preset.name:
                whole = False
                into.senseless(f"platform `{platform}` with preset `{preset.name}`: a name is missing")
                continue
            name = f"{platform}_{preset.name}"
            if name in into.types:
                found[name] = Offer(
                    name=name,
                    platform=platform,
                    preset=preset.name,
                    gpus=preset.resources.gpu_count,
                    spot=one.status.allowed_for_preemptibles,
                    quota=one.spec.gpu_count_quota_type,
                )
    return Offers(found=found, whole=whole)


def words(sold: Offers, advice: Iterable[Any], into: Gathering) -> None:
    """Gather a word per type and capacity: what the region sells, and the best that Nebius says of having it now."""
    said: dict[Key, list[_Said]] = {}
    for one in advice:
        details = one.spec.compute_instance
        if one.spec.region != into.region or details is None:
            continue
        name = f"{details.platform}_{details.preset.name}"
        if name in sold.found:
            for capacity, seen in (("on_demand", one.status.on_demand), ("spot", one.status.preemptible)):
                said.setdefault((name, capacity), []).extend(_said(f"{name} {capacity}", seen, into))
    for name in into.types:
        offer = sold.found.get(name)
        if offer is None and not sold.whole:
            continue  # it may be the one that could not be read
        for capacity in ("on_demand", "spot"):
            best = _sold(offer, capacity) or _best(said.get((name, capacity)))
            if best is not None:
                word, detail, at = best
                into.seen(zone="", instance_type=name, capacity=capacity, word=word, detail=detail, at=at)


def _sold(offer: Offer | None, capacity: str) -> _Said | None:
    """That it is not; None where it is."""
    if offer is None:
        return CapacityWord.WITHDRAWN, "not listed", None
    if capacity == "spot" and not offer.spot:
        return CapacityWord.WITHDRAWN, "not allowed for preemptibles", None
    return None


def _said(what: str, seen: Any, into: Gathering) -> list[_Said]:
    """What one row says; nothing where it makes no sense, which is named."""
    level, at = seen.availability_level.name, _moment(seen, "effective_at")
    if level not in WORDS:
        into.senseless(f"{what}: availability level `{level}`")
        return []
    if at is not None and into.from_the_future(what, at):
        return []
    if seen.data_state.name in STALE:
        level = "AVAILABILITY_LEVEL_UNKNOWN"
    word = WORDS[level]
    # a word that says nothing of now is of no other moment either
    return [(word, level.removeprefix("AVAILABILITY_LEVEL_"), None if word is CapacityWord.OFFERED else at)]


def _best(said: list[_Said] | None) -> _Said | None:
    """Of several fabrics that of the best word, and of these the newest; None where every row made no sense."""
    if said is None:
        return CapacityWord.OFFERED, "", None
    order = [level.removeprefix("AVAILABILITY_LEVEL_") for level in WORDS]
    return min(said, key=lambda one: (order.index(one[1]), -one[2].timestamp() if one[2] else 0.0), default=None)


def limits(sold: Offers, allowances: Iterable[Any], into: Gathering) -> None:
    """Gather the quotas of GPUs that wanted types count against.  Those of spot count machines, which is neither GPUs nor vCPUs, and are left out."""
    types: dict[str, set[str]] = {}
    for offer in sold.found.values():
        if offer.quota:
            types.setdefault(offer.quota, set()).add(offer.name)
    for one in allowances:
        name, status = one.metadata.name, one.status
        if one.spec.region != into.region or name not in types:
            continue
        if status.unit.lower() not in COUNTED:
            into.not_understood(f"quota {name} is in `{status.unit}`")
            continue
        if status.state.name not in USABLE | {FROZEN}:
            continue
        used = None if status.usage_state.name in UNTOLD else float(status.usage)
        into.quota(
            name=name,
            capacity="on_demand",
            unit="gpus",
            limit=0 if status.state.name == FROZEN else one.spec.limit,
            used=used,
            instance_types=tuple(types[name]),
        )


def cost(answer: Any, what: str, into: Gathering) -> Cost | None:
    """The calculator's answer on one machine; None where it is no price per hour in US dollars, which is named."""
    if answer.currency.lower() != CURRENCY:
        into.not_understood(f"{what}: in `{answer.currency}`")
        return None
    hourly = [one for one in answer.total_costs if _is_hour(one.aggregation_unit)]
    if not hourly:
        units = ", ".join(sorted({one.aggregation_unit.unit for one in answer.total_costs}))
        into.not_understood(f"{what}: no price per hour, but per `{units}`")
        return None
    general = hourly[0].general
    if len(hourly) > 1 or general is None:
        into.senseless(f"{what}: several prices per hour")
        return None
    usd = positive(general.total.cost)
    if usd is None:
        into.senseless(f"{what}: the cost is `{general.total.cost}`")
        return None
    parts: dict[str, tuple[Decimal, Decimal]] = {}
    for part in general.total.sku_costs:
        quantity, share = positive(part.quantity), positive(part.cost)
        if quantity is not None and share is not None:
            parts[part.sku_id] = (quantity, share)
    return Cost(usd=usd, parts=parts)


def _is_hour(unit: Any) -> bool:
    return unit.unit.lower() == HOUR and unit.unit_type.name != "UNIT_TYPE_USAGE_BASED"


def markets(prices: Iterable[Any], into: Gathering) -> dict[str, Market | None]:
    """The spot prices of a region by platform; None where one could not be read, which is named."""
    found: dict[str, Market | None] = {}
    for one in prices:
        platform = one.compute_instance.platform
        if one.region != into.region or not any(name.startswith(f"{platform}_") for name in into.types):
            continue
        market = _market(one, platform, into)
        if platform in found and found[platform] != market:
            into.senseless(f"{platform}: several spot prices")
            market = None
        found[platform] = market
    return found


def _market(one: Any, platform: str, into: Gathering) -> Market | None:
    usd, at = positive(one.price.value), _moment(one, "effective_time")
    if one.price.currency.lower() != CURRENCY or one.price.unit_title.lower() != GPU_HOUR:
        into.not_understood(f"{platform}: a spot price in `{one.price.currency}` per `{one.price.unit_title}`")
    elif usd is None or at is None or not one.sku_id:
        into.senseless(f"{platform}: a spot price of `{one.price.value}` for `{one.sku_id}` since `{at}`")
    elif not into.from_the_future(f"{platform}: a spot price", at):
        return Market(sku=one.sku_id, usd=usd, at=at)
    return None


def points(series: Iterable[Any], into: Gathering) -> dict[str, list[Market]]:
    """The history of a region's spot prices by SKU."""
    found: dict[str, list[Market]] = {}
    for one in series:
        platform = one.compute_instance.platform
        if one.region != into.region or not any(name.startswith(f"{platform}_") for name in into.types):
            continue
        if one.currency.lower() != CURRENCY or one.unit_title.lower() != GPU_HOUR:
            into.not_understood(f"{platform}: spot prices in `{one.currency}` per `{one.unit_title}`")
            continue
        for point in one.points:
            usd, at = positive(point.value), _moment(point, "timestamp")
            if usd is None or at is None:
                into.senseless(f"{platform}: a spot price of `{point.value}` at `{at}`")
            else:
                found.setdefault(one.sku_id, []).append(Market(sku=one.sku_id, usd=usd, at=at))
    return found


def at_market(whole: Cost, market: Market, gpus: int) -> Decimal | None:
    """What a machine costs per hour while its GPUs cost that.  The rest of it (vCPUs and RAM where they are paid for) is as the calculator said.

    None where the calculator's price is not made of this market's.
    """
    part = whole.parts.get(market.sku)
    if part is None or part[0] != gpus or part[1] > whole.usd:
        return None
    return whole.usd - part[1] + market.usd * gpus


def _moment(message: Any, field: str) -> datetime | None:
    """None where there is none, or none of this age: the SDK falls over years that no calendar has."""
    try:
        at = getattr(message, field)
        found = None if at is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return found if found is not None and found >= EPOCH else None
