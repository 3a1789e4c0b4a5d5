"""What Resource Manager says of machine sizes and of quotas.  Works on plain JSON, so that it can be tested without an SDK.

A size that a location does not list is not sold there.  One that is restricted is: by `NotAvailableForSubscription`, which is about capacity in the datacentre, it
cannot be had just now; by `QuotaId` it is not sold to such a subscription.  Zones are logical: zone 1 of one subscription is another's zone 2.
The catalog knows no zones of Azure, so a zone is told of only where it was asked for; a region's word is that of a machine in no zone.
Held to the documented answers (SKUs of api-version 2021-07-01, azure-mgmt-compute 39.0); never run against live Azure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar, cast

from planner.clouds.feeds.gathering import Gathering
from planner.model.readings import CapacityWord

MACHINES: Final = "virtualMachines"
#: the later of two is the worse one: no waiting helps against it
REASONS: Final = {"NotAvailableForSubscription": CapacityWord.NONE, "QuotaId": CapacityWord.WITHDRAWN}
SPOT_CORES: Final = "lowprioritycores"
ALL_CORES: Final = "cores"
EDGE: Final = "EdgeZone"
SHOWN: Final = 60
"""Characters of a value that a message shows."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A machine size in one location.

    family      the name of its quota
    zones       where it is sold, as the subscription numbers them
    spot        None where nothing is said of spot
    here        why it cannot be had in the location: the worst reason, "" = it can
    restricted  the same by zone
    """

    name: str
    family: str
    zones: frozenset[str]
    spot: bool | None
    here: str
    restricted: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The wanted ones of a location.  `whole`: it is known of each row which size it is of, so one that is not among them is not sold."""

    found: dict[str, Size]
    spoilt: frozenset[str]
    whole: bool


class _Wrong(Exception):
    """A row makes no sense, and why; goes no further than its row."""


def sizes(rows: Iterable[object], into: Gathering) -> Sizes:
    """What the SKUs of a location say of the wanted sizes."""
    found: dict[str, Size] = {}
    spoilt: set[str] = set()

    def read(row: object) -> None:
        name = ""
        try:
            sku = _mapping(row, "a SKU")
            if sku.get("resourceType") != MACHINES or _is_elsewhere(sku, into.region):
                return
            name = _text(sku, "name")
            if name in into.types:
                _once(found, name, _size(sku, name, into.region))
        except _Wrong:
            spoilt.add(name)
            raise

    _each(rows, read, into, "a SKU")
    kept = {name: found[name] for name in found if name not in spoilt}
    return Sizes(found=kept, spoilt=frozenset(spoilt), whole="" not in spoilt)


def offered(seen: Sizes, into: Gathering) -> None:
    """Gather a word per size, capacity and place: the region, and the wanted zones of it (`eastus-1`)."""
    places = ("", *sorted({*(into.zones or ())} - {""}))
    for name in sorted(set(into.types) - seen.spoilt):
        size = seen.found.get(name)
        if size is None and not seen.whole:
            continue  # it may be the one that could not be read
        for zone in places:
            word, detail = _word(size, into.region, zone)
            into.seen(zone=zone, instance_type=name, capacity="on_demand", word=word, detail=detail)
            if size is not None and size.spot is None:
                continue
            if size is not None and not size.spot:
                word, detail = CapacityWord.WITHDRAWN, "not sold as spot"
            into.seen(zone=zone, instance_type=name, capacity="spot", word=word, detail=detail)


def limits(rows: Iterable[object], seen: Sizes, into: Gathering) -> None:
    """Gather the quotas, in vCPUs, that wanted sizes count against: their family's, the region's, and that of spot, which is of all families together."""
    families: dict[str, set[str]] = {}
    for size in seen.found.values():
        families.setdefault(size.family.lower(), set()).add(size.name)
    families[ALL_CORES] = set(seen.found)
    families[SPOT_CORES] = {size.name for size in seen.found.values() if size.spot}
    found: dict[str, tuple[int, int]] = {}
    spoilt: set[str] = set()

    def read(row: object) -> None:
        name = ""
        try:
            usage = _mapping(row, "a usage")
            name = _text(_mapping(usage.get("name"), "`name`"), "value")
            if families.get(name.lower()):
                _once(found, name, (_count(usage, "limit"), _count(usage, "currentValue")))
        except _Wrong:
            spoilt.add(name)
            raise

    _each(rows, read, into, "a quota")
    for name in found.keys() - spoilt:
        limit, used = found[name]
        types = tuple(sorted(families[name.lower()]))
        capacity = "spot" if name.lower() == SPOT_CORES else "on_demand"
        into.quota(name=name, capacity=capacity, unit="vcpus", limit=limit, used=float(used), instance_types=types)


def _each(rows: Iterable[object], read: Callable[[object], None], into: Gathering, what: str) -> None:
    """Read every row; one that makes no sense keeps no other from being read."""
    for row in rows:
        try:
            read(row)
        except _Wrong as wrong:
            name = cast("Mapping[str, object]", row).get("name") if isinstance(row, Mapping) else row
            into.senseless(f"{what} {_shown(name)}: {wrong}")


def _once(found: dict[str, T], name: str, value: T) -> None:
    if found.setdefault(name, value) != value:
        raise _Wrong("listed twice, and not the same")


def _word(size: Size | None, region: str, zone: str) -> tuple[CapacityWord, str]:
    """What holds of a size in a zone of a region, and Azure's own word for it."""
    if size is None:
        return CapacityWord.WITHDRAWN, "not listed"
    if size.here:
        return REASONS[size.here], size.here
    if not zone:
        return CapacityWord.OFFERED, "; ".join(f"{why} in zone {one}" for one, why in size.restricted)
    number = zone.removeprefix(f"{region}-")
    if number not in size.zones:
        return CapacityWord.WITHDRAWN, "not listed"
    why = dict(size.restricted).get(number, "")
    return (REASONS[why], why) if why else (CapacityWord.OFFERED, "")


def _size(sku: Mapping[str, object], name: str, region: str) -> Size:
    zones: set[str] = set()
    for place in _rows(sku, "locationInfo"):
        if _place(place.get("location")) == region and place.get("type") != EDGE:
            zones |= set(_texts(place, "zones"))
    capabilities = {_text(one, "name"): one.get("value") for one in _rows(sku, "capabilities")}
    here: set[str] = set()
    restricted: dict[str, set[str]] = {}
    for one in _rows(sku, "restrictions"):
        reason, kind = _text(one, "reasonCode"), _text(one, "type")
        if reason not in REASONS or kind not in {"Location", "Zone"}:
            raise _Wrong(f"a restriction of type {_shown(kind)} for {_shown(reason)}")
        where = _mapping(one.get("restrictionInfo") or {}, "`restrictionInfo`")
        places = {_place(place) for place in (*_texts(one, "values"), *_texts(where, "locations"))}
        if places and region not in places:
            continue
        if kind == "Location":
            here.add(reason)
        for zone in _texts(where, "zones") if kind == "Zone" else ():
            restricted.setdefault(zone, set()).add(reason)
    return Size(
        name=name,
        family=_text(sku, "family"),
        zones=frozenset(zones),
        spot={"True": True, "False": False}.get(str(capabilities.get("LowPriorityCapable"))),
        here=_worst(here),
        restricted=tuple(sorted((zone, _worst(reasons)) for zone, reasons in restricted.items())),
    )


def _worst(reasons: set[str]) -> str:
    return max(reasons, key=list(REASONS).index, default="")


def _is_elsewhere(sku: Mapping[str, object], region: str) -> bool:
    """Another location's, or sold in a location's extension only."""
    if region not in {_place(one) for one in _texts(sku, "locations")}:
        return True
    places = _rows(sku, "locationInfo")
    return bool(places) and all(place.get("type") == EDGE for place in places)


def _place(value: object) -> str:
    """`East US` and `eastus` are one."""
    return str(value).replace(" ", "").lower()


def _mapping(value: object, what: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise _Wrong(f"{what} is {_shown(value)}")
    return cast("Mapping[str, object]", value)


def _list(found: Mapping[str, object], key: str) -> list[object]:
    """Absent and null are empty."""
    value = found.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise _Wrong(f"`{key}` is {_shown(value)}")
    return cast("list[object]", value)


def _rows(found: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    return [_mapping(one, f"one of `{key}`") for one in _list(found, key)]


def _texts(found: Mapping[str, object], key: str) -> list[str]:
    texts = _list(found, key)
    if not all(isinstance(one, str) for one in texts):
        raise _Wrong(f"`{key}` is {_shown(texts)}")
    return cast("list[str]", texts)


def _text(found: Mapping[str, object], key: str) -> str:
    value = found.get(key)
    if not isinstance(value, str) or not value:
        raise _Wrong(f"`{key}` is {_shown(value)}")
    return value


def _count(found: Mapping[str, object], key: str) -> int:
    """A whole number from nought up."""
    value = found.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _Wrong(f"`{key}` is {_shown(value)}")
    return value


def _shown(value: object) -> str:
    return f"`{value}`"[:SHOWN]
