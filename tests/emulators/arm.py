"""The two lists of Azure Resource Manager that feeds read, on loopback: compute SKUs of a location, and usages there.

Answers have the form of the documented ones (SKUs 2021-07-01, usages of azure-mgmt-compute 39.0).  A bearer token and an api-version are asked for; of filters only
the documented one is known.
"""

from __future__ import annotations

import re
from typing import Any

from azure.core.credentials import AccessToken
from azure.core.pipeline.policies import SansIOHTTPPolicy
from azure.identity import CredentialUnavailableError

from tests.emulators.retail_prices import Answer, Trouble

TOKEN = "secret"
VERSION = re.compile(r"20\d\d-\d\d-\d\d")
FILTER = re.compile(r"location eq '(\w+)'")
REASONS = ("NotAvailableForSubscription", "QuotaId")


def sku(size: str, region: str, family: str, **changed: Any) -> dict[str, Any]:
    """A documented row: sold in three zones, as spot too, without restrictions."""
    spot = changed.pop("spot", "True")
    return {
        "resourceType": "virtualMachines",
        "name": size,
        "tier": "Standard",
        "size": size.removeprefix("Standard_"),
        "family": family,
        "locations": [region],
        "locationInfo": [{"location": region, "zones": ["1", "2", "3"], "zoneDetails": []}],
        "capabilities": [
            {"name": "vCPUs", "value": "96"},
            {"name": "GPUs", "value": "8"},
            {"name": "LowPriorityCapable", "value": spot},
        ],
        "restrictions": [],
        **changed,
    }


def restricted(region: str, reason: str, *zones: str) -> dict[str, Any]:
    """A restriction of the whole location, or of zones."""
    where: dict[str, Any] = {"locations": [region], **({"zones": list(zones)} if zones else {})}
    kind = "Zone" if zones else "Location"
    return {"type": kind, "values": [region], "restrictionInfo": where, "reasonCode": reason}


def usage(name: str, limit: Any, used: Any = 0) -> dict[str, Any]:
    return {
        "unit": "Count",
        "limit": limit,
        "currentValue": used,
        "name": {"value": name, "localizedValue": f"{name} vCPUs"},
    }


class Arm:
    """`skus` of all locations, `usages` by location.  Serve it with `tests.unit.clouds.servers.serving`."""

    subscription = "11111111-2222-3333-4444-555555555555"

    def __init__(self) -> None:
        self.skus: list[Any] = []
        self.usages: dict[str, list[Any]] = {}
        self.trouble = Trouble()
        self.asked: list[str] = []
        self.tokens: set[str | None] = set()
        self.base = ""
        self.leads_to = ""
        self.instead: Any = None

    def answer(self, method: str, path: str, query: dict[str, str]) -> Answer:
        root = f"/subscriptions/{self.subscription}/providers/Microsoft.Compute"
        usages = re.fullmatch(root + r"/locations/(\w+)/usages", path)
        filtered = FILTER.fullmatch(query.get("$filter", ""))
        if self.tokens != {f"Bearer {TOKEN}"}:
            return 401, Trouble.error("InvalidAuthenticationToken", "no such token"), {}
        if not VERSION.fullmatch(query.get("api-version", "")):
            return 400, Trouble.error("MissingApiVersionParameter", "api-version"), {}
        if method == "GET" and usages:
            return self.listed(self.usages.get(usages[1], []), usages[1], path, query)
        if method == "GET" and path == f"{root}/skus" and filtered:
            region = filtered[1]
            found = [one for one in self.skus if region in (one.get("locations") or ()) or "locations" not in one]
            return self.listed(found, region, path, query)
        return 404, Trouble.error("ResourceNotFound", path), {}

    def listed(self, found: list[Any], region: str, path: str, query: dict[str, str]) -> Answer:
        if refused := self.trouble.refused(region):
            return refused
        if self.instead is not None:
            return 200, self.instead, {}
        part, more = self.trouble.part(found, int(query.get("skip", 0)))
        asked = "&".join(f"{key}={value}" for key, value in query.items() if key != "skip")
        link = {} if more is None else {"nextLink": f"{self.leads_to or self.base}{path}?{asked}&skip={more}"}
        return 200, {"value": part, **link}, {}


class Token:
    """A credential of azure-identity's form."""

    def get_token(self, *_: Any, **__: Any) -> AccessToken:
        return AccessToken(TOKEN, 4_000_000_000)


class NoToken:
    """A chain at whose end there was nothing."""

    def get_token(self, *_: Any, **__: Any) -> AccessToken:
        raise CredentialUnavailableError("none of the credentials gave a token")


class BearerOverHttp(SansIOHTTPPolicy[Any, Any]):
    """The SDK's own sends no token without TLS."""

    def on_request(self, request: Any) -> None:
        request.http_request.headers["Authorization"] = f"Bearer {TOKEN}"
