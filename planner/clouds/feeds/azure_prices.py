"""Rows of Azure's Retail Prices API as prices: which of them is that of a Linux machine on demand or on spot in one region, and which is something else.

Several rows stand for one machine size: Windows, spot, low priority (Batch's, which no machine of ours is), dev/test, reservations, meters that are not charged, prices
that are announced, prices that have ended.  What is another product is passed over; what should be the price and is none is named, and nothing is put in its place.
Held to the documented rows (Microsoft, 2026-11); never run against the live API.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final, cast

from planner.clouds.feeds.gathering import SKEW, Gathering, positive

SERVICE: Final = "Virtual Machines"
TYPE: Final = "Consumption"
CURRENCY: Final = "USD"
UNIT: Final = "1 Hour"
OTHER_PRODUCTS: Final = ("Windows", "Cloud Services", "CloudServices", "Dedicated Host", "Low Priority")
"""In one of the names: the same size as something else."""
NAMES: Final = ("meterName", "productName", "skuName")
SHOWN: Final = 60
"""Characters of a value that a message shows."""

Row = Mapping[str, object]
Key = tuple[str, str]


class _Found:
    """What rows said of each (size, capacity): prices by the moment since which they hold; None where one row of it makes no sense."""

    def __init__(self) -> None:
        self.prices: dict[Key, set[tuple[datetime, Decimal]]] = {}
        self.spoilt: set[Key] = set()


def priced(rows: Iterable[object], into: Gathering) -> None:
    """Gather the prices that hold now of the wanted sizes.  The order of the rows says nothing.

    Nothing is read of a size of which one row makes no sense: which of its others would hold then is a guess.
    """
    found = _Found()
    for row in rows:
        if isinstance(row, Mapping):
            _read(cast("Row", row), found, into)
        else:
            into.senseless(f"{_shown(row)} is no row")
    for key in sorted(found.prices.keys() - found.spoilt):
        newest, usd = max(found.prices[key])
        if (other := min(one for since, one in found.prices[key] if since == newest)) != usd:
            into.senseless(f"{key[0]} {key[1]}: both {other} and {usd} since {newest.isoformat()}")
            continue
        into.price(zone="", instance_type=key[0], capacity=key[1], usd=usd)


def _read(row: Row, found: _Found, into: Gathering) -> None:
    size = row.get("armSkuName")
    if row.get("armRegionName") != into.region or row.get("serviceName") != SERVICE or row.get("type") != TYPE:
        return
    if not isinstance(size, str) or not size:
        into.senseless(f"meter {_shown(row.get('meterId'))}: `armSkuName` is {_shown(size)}")
        return
    if size not in into.types:
        return
    names = [name for one in NAMES if isinstance(name := row.get(one), str) and name]
    if len(names) != len(NAMES):
        found.spoilt |= {(size, "on_demand"), (size, "spot")}  # it may be either
        into.senseless(f"{size}: one of {', '.join(NAMES)} is missing")
    elif not _is_other(names, row):
        capacity = "spot" if any(name.endswith(" Spot") for name in names) else "on_demand"
        _charged(row, (size, capacity), found, into)


def _charged(row: Row, key: Key, found: _Found, into: Gathering) -> None:
    def spoil(say: Callable[[str], None], name: str) -> None:
        found.spoilt.add(key)
        say(f"{key[0]} {key[1]}: `{name}` is {_shown(row.get(name))}")

    now = into.wanted.now
    since, until = _moment(row.get("effectiveStartDate")), _moment(row.get("effectiveEndDate"))
    usd = positive(row.get("retailPrice"))
    if since is None:
        spoil(into.senseless, "effectiveStartDate")
    elif since > now + SKEW or (until is not None and until <= now):
        pass  # announced, or over
    elif row.get("currencyCode") != CURRENCY:
        spoil(into.not_understood, "currencyCode")
    elif row.get("unitOfMeasure") != UNIT:
        spoil(into.not_understood, "unitOfMeasure")
    elif usd is None:
        spoil(into.senseless, "retailPrice")
    else:
        found.prices.setdefault(key, set()).add((since, usd))


def _is_other(names: Iterable[str], row: Row) -> bool:
    """Another product by its names, a meter that is not charged, or the price of what is used beyond some amount."""
    other = any(word in name for name in names for word in OTHER_PRODUCTS)
    return other or row.get("isPrimaryMeterRegion") is False or row.get("tierMinimumUnits", 0) != 0


def _moment(value: object) -> datetime | None:
    """`2026-11-01T00:00:00Z`."""
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _shown(value: object) -> str:
    return f"`{value}`"[:SHOWN]
