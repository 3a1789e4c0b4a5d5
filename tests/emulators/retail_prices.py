"""Azure's Retail Prices API on loopback, and what can go wrong with any HTTP API: throttling, a region that is down or refuses, pages.

Answers have the form of the documented ones (api-version 2023-01-01-preview).  The filter is read strictly: what the documentation does not show is a 400, as is a
value in the wrong case of an attribute's name.  Values are compared with their case.  No credentials are expected, and any that come are an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

Answer = tuple[int, Any, dict[str, str]]

#: `$filter` name to the row's
ATTRIBUTES = {
    "armRegionName": "armRegionName",
    "armSkuName": "armSkuName",
    "serviceName": "serviceName",
    "priceType": "type",
    "currencyCode": "currencyCode",
}
CLAUSE = re.compile(r"(\w+) eq '((?:[^']|'')*)'")
LONGEST = 2000
"""Characters of an address, about: longer ones are refused on the way."""


@dataclass
class Trouble:
    """How an API's answers are spoilt.  `regions`: status and code by region; `page`: rows per page."""

    page: int = 100
    shuffled: bool = False
    endless: bool = False
    throttled: int = 0
    after: str | None = None
    regions: dict[str, tuple[int, str]] = field(default_factory=dict)
    calls: int = 0

    def refused(self, region: str) -> Answer | None:
        """The answer that is given instead of one."""
        self.calls += 1
        wait = {"Retry-After": self.after} if self.after else {}
        if self.throttled > 0:
            self.throttled -= 1
            return 429, self.error("TooManyRequests", "its words"), wait
        if region in self.regions:
            status, code = self.regions[region]
            return status, self.error(code, "its words"), wait
        return None

    def part(self, rows: list[Any], skip: int) -> tuple[list[Any], int | None]:
        """A page, and where the next one begins."""
        rows = rows[::-1] if self.shuffled else rows
        more = skip + self.page
        if self.endless:
            return rows[: self.page], 0
        return rows[skip:more], more if more < len(rows) else None

    @staticmethod
    def error(code: str, message: str) -> dict[str, Any]:
        return {"error": {"code": code, "message": message}}


def row(size: str, region: str, usd: Any, **changed: Any) -> dict[str, Any]:
    """A documented row: Linux, on demand; `spot=True` for the other."""
    short = size.removeprefix("Standard_").replace("_", " ")
    name = f"{short} Spot" if changed.pop("spot", False) else short
    return {
        "currencyCode": "USD",
        "tierMinimumUnits": 0.0,
        "retailPrice": usd,
        "unitPrice": usd,
        "armRegionName": region,
        "location": region,
        "effectiveStartDate": "2026-06-01T00:00:00Z",
        "meterId": f"meter {size} {name}",
        "meterName": name,
        "productId": "DZH318Z08M22",
        "skuId": "DZH318Z08M22/0001",
        "productName": "Virtual Machines NDv5 Series",
        "skuName": name,
        "serviceName": "Virtual Machines",
        "serviceId": "DZH313Z7MMC8",
        "serviceFamily": "Compute",
        "unitOfMeasure": "1 Hour",
        "type": "Consumption",
        "isPrimaryMeterRegion": True,
        "armSkuName": size,
        **changed,
    }


class RetailPrices:
    """`rows` are what it sells.  Serve it with `tests.unit.clouds.servers.serving`, which fills the rest."""

    path = "/api/retail/prices"

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.trouble = Trouble()
        self.asked: list[str] = []
        self.tokens: set[str | None] = set()
        self.base = ""
        self.leads_to = ""
        self.filters: list[str] = []

    def answer(self, method: str, path: str, query: dict[str, str]) -> Answer:
        where = query.get("$filter", "")
        self.filters.append(where)
        if self.tokens - {None}:
            return 400, Trouble.error("BadRequest", "credentials were sent"), {}
        if (method, path) != ("GET", self.path) or len(where) > LONGEST:
            return 404, Trouble.error("NotFound", path), {}
        wanted = read_filter(where)
        if wanted is None:
            return 400, Trouble.error("BadRequest", f"Invalid OData parameters supplied: {where}"), {}
        regions = wanted.get("armRegionName", {""})
        if refused := self.trouble.refused(next(iter(regions))):
            return refused
        found = [one for one in self.rows if all(one.get(ATTRIBUTES[k], "") in vs for k, vs in wanted.items())]
        part, more = self.trouble.part(found, int(query.get("$skip", 0)))
        link = f"{self.leads_to or self.base}{path}?$filter={where}&$skip={more}" if more is not None else None
        return (
            200,
            {
                "BillingCurrency": "USD",
                "CustomerEntityId": "Default",
                "CustomerEntityType": "Retail",
                "Items": part,
                "NextPageLink": link,
                "Count": len(part),
            },
            {},
        )


def read_filter(text: str) -> dict[str, set[str]] | None:
    """`a eq 'x' and (b eq 'y' or b eq 'z')`: the values by attribute; None for anything else."""
    found: dict[str, set[str]] = {}
    for part in text.split(" and "):
        clauses = [CLAUSE.fullmatch(one) for one in part.removeprefix("(").removesuffix(")").split(" or ")]
        names = {clause[1] for clause in clauses if clause}
        if not all(clauses) or len(names) != 1 or not names <= ATTRIBUTES.keys() or names & found.keys():
            return None
        found[names.pop()] = {clause[2].replace("''", "'") for clause in clauses if clause}
    return found
