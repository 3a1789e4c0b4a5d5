"""What rows of AWS' price list, quotas and placement scores mean.  Pure: no SDK, no clock.

Traps of the price list (2026-11): one type has dozens of products (dedicated, reserved but unused, Windows, with SQL Server, capacity blocks), of which one is
what a Linux node costs; its price stands in a JSON text inside the JSON.  A quota counts vCPUs of families, which only its name tells.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from planner.clouds.feeds.gathering import positive
from planner.model.readings import CapacityWord

#: attributes of the one product that is wanted; those that a product lacks do not rule it out
PLAIN: Final = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
}
#: what the API filters by itself; `marketoption` is younger than some products
FILTERED: Final = tuple(name for name in PLAIN if name != "marketoption")
HOURS: Final = frozenset({"Hrs", "Hours"})


class Trouble(Enum):
    """Why a product has no price for us."""

    SENSELESS = "senseless"
    NOT_UNDERSTOOD = "not understood"


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One line of the price list.  `usd` or `trouble`; `begins` is when the price holds from, ISO, "" where nothing says so."""

    instance_type: str
    usd: Decimal | None = None
    begins: str = ""
    trouble: Trouble | None = None
    words: str = ""


def product(text: str) -> Product | None:
    """A product that a Linux node on demand is; None for one of the others."""
    try:
        found = json.loads(text)
        attributes = found["product"]["attributes"]
        instance_type = attributes["instanceType"]
    except (ValueError, KeyError, TypeError):
        return Product(instance_type="", trouble=Trouble.SENSELESS, words="a product without attributes")
    if any(attributes.get(name, value) != value for name, value in PLAIN.items()):
        return None
    try:
        (term,) = found["terms"]["OnDemand"].values()
        (dimension,) = term["priceDimensions"].values()
        return _price(instance_type, str(term.get("effectiveDate") or ""), dimension["unit"], dimension["pricePerUnit"])
    except (KeyError, TypeError, ValueError, AttributeError):
        words = f"{instance_type} has no one price on demand"
        return Product(instance_type=instance_type, trouble=Trouble.SENSELESS, words=words)


def _price(instance_type: str, begins: str, unit: str, prices: dict[str, str]) -> Product:
    if unit not in HOURS or "USD" not in prices:
        words = f"{instance_type} on demand: {', '.join(sorted(prices))} per {unit}"
        return Product(instance_type=instance_type, trouble=Trouble.NOT_UNDERSTOOD, words=words)
    usd = positive(prices["USD"])
    if usd is None:
        words = f"{instance_type} on demand: the price is `{prices['USD']}`"
        return Product(instance_type=instance_type, trouble=Trouble.SENSELESS, words=words)
    return Product(instance_type=instance_type, usd=usd, begins=begins)


#: "Running On-Demand P instances", "All G and VT Spot Instance Requests", "All P4, P3 and P2 Spot Instance Requests"
_QUOTA: Final = re.compile(r"(Running On-Demand|All) (.+?) (instances|Spot Instance Requests)")
_FAMILY: Final = re.compile(r"([A-Z]+)(\d*)")
_TYPE: Final = re.compile(r"([a-z]+)(\d+)")
#: letters of GPU types -> letter of their quota (EC2 user guide, 2026-11): gr6 counts as a G
_LETTER: Final = {"p": "P", "g": "G", "gr": "G"}


def quota(name: str, instance_types: tuple[str, ...]) -> tuple[str, tuple[str, ...]] | None:
    """(capacity, those of the types that it limits); None where it limits something else, such as dedicated hosts."""
    found = _QUOTA.fullmatch(name)
    if found is None or (found[1] == "All") != (found[3] != "instances"):
        return None
    families = [_FAMILY.fullmatch(word) for word in re.split(r", | and ", found[2])]
    limited = tuple(t for t in instance_types if any(f is not None and _of_family(t, f[1], f[2]) for f in families))
    return ("spot" if found[1] == "All" else "on_demand", limited) if limited else None


def _of_family(instance_type: str, letter: str, generation: str) -> bool:
    found = _TYPE.match(instance_type)
    return found is not None and _LETTER.get(found[1]) == letter and generation in {"", found[2]}


def asked_first(instance_type: str) -> tuple[bool, int, str]:
    """The order in which scores are asked for, of which AWS answers so many a day: P before G, new before old."""
    found = _TYPE.match(instance_type)
    return (True, 0, instance_type) if found is None else (found[1] != "p", -int(found[2]), instance_type)


#: AWS documents 1 as "not likely to succeed" and 10 as "highly likely", and that a request for one or two types alone always scores low (EC2 user guide,
#: 2026-11).  Requests for one type were answered 1 to 3 (SpotLake, IISWC 2022), since 2025-09 with more for some.  So 1 is bad news, 3 and up is as good as a
#: request like ours gets, and 2 is no news.
SCARCE_AT: Final = 1
AVAILABLE_FROM: Final = 3
_SCORES: Final = range(1, 11)


def word_of_score(score: Any) -> CapacityWord | None:
    """None for what is no score."""
    if isinstance(score, bool) or score not in _SCORES:
        return None
    if score <= SCARCE_AT:
        return CapacityWord.SCARCE
    return CapacityWord.AVAILABLE if score >= AVAILABLE_FROM else CapacityWord.OFFERED
