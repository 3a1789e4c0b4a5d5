"""Azure's prices, capacity and quotas: Retail Prices, resource SKUs with their restrictions, compute usages.  The SDK is imported when a feed is made.

Prices ask for no credentials, the rest for the rights of `skyplan-catalog-reader`: `Microsoft.Compute/skus/read` and `Microsoft.Compute/locations/usages/read`.
Azure keeps no price history: `since` changes nothing, and what holds now is read.  Spot prices are regional.
Never run against live Azure: held to the documented API (2026-11) by servers of our own.
"""

# pyright: basic

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.clouds import errors_map
from planner.clouds.azure import BASE, credential_of, subscription_of
from planner.clouds.feeds import azure_ask
from planner.clouds.feeds.again import Again
from planner.clouds.feeds.azure_prices import SERVICE, TYPE, priced
from planner.clouds.feeds.azure_skus import Sizes, limits, offered, sizes
from planner.clouds.feeds.gathering import Gathering
from planner.clouds.feeds.port import Fed, Wanted
from planner.clouds.port import Where
from planner.model.errors import CloudError

RETAIL = "https://prices.azure.com/api/retail/prices"
SIZES_AT_ONCE = 15
"""Per question of prices: the filter is part of the address, which may be about 2,000 characters long."""


class AzureFeed:
    """One subscription.  What is not `where` or `again` is for tests; `options` are the SDK client's."""

    def __init__(
        self,
        where: Where,
        *,
        again: Again | None = None,
        credential: Any = None,
        base: str = BASE,
        options: dict[str, Any] | None = None,
        retail: str = RETAIL,
    ) -> None:
        self._sdk = _sdk()
        self._where = where
        self._again = again or Again()
        self._credential = credential
        self._base, self._options = base, options or {}
        self._client: Any = None
        self._session = _session()
        self._retail = azure_ask.Retail(self._session, retail)

    def prices(self, wanted: Wanted) -> Iterator[Fed]:
        """See `PriceSource`."""
        for region in wanted.regions:
            into = Gathering(cloud="azure", region=region, wanted=wanted, source="Azure Retail Prices")
            rows: list[object] = []
            types = sorted(set(into.types))
            for first in range(0, len(types), SIZES_AT_ONCE):
                some = _read(
                    into, self._retail.rows(_filter(region, types[first : first + SIZES_AT_ONCE]), self._again)
                )
                if some is None:
                    break
                rows += some
            priced(rows, into)
            yield into.fed()

    def capacity(self, wanted: Wanted) -> Iterator[Fed]:
        """See `CapacitySource`."""
        for into, seen in self._places(wanted, "Azure resource SKUs"):
            if seen is not None:
                offered(seen, into)
            yield into.fed()

    def quotas(self, wanted: Wanted) -> Iterator[Fed]:
        """See `QuotaSource`."""
        for into, seen in self._places(wanted, "Azure compute usages"):
            if seen is not None and seen.found:
                ask = self._compute().usage.list
                rows = _read(into, azure_ask.listed("usages", self._base, ask, self._again, location=into.region))
                limits(rows or [], seen, into)
            yield into.fed()

    def close(self) -> None:
        """Let the connections go."""
        self._session.close()
        if self._client is not None:
            self._client.close()

    def _places(self, wanted: Wanted, source: str) -> Iterator[tuple[Gathering, Sizes | None]]:
        """Each region and what is sold there; None where nothing is wanted, or nothing was answered."""
        if wanted.regions:
            self._compute()
            self._again.ask(lambda: azure_ask.token(self._credential))
        for region in wanted.regions:
            into = Gathering(cloud="azure", region=region, wanted=wanted, source=source)
            if not into.types:
                yield into, None
                continue
            here = f"location eq '{_quoted(region)}'"
            ask = self._compute().resource_skus.list
            rows = _read(into, azure_ask.listed("skus", self._base, ask, self._again, filter=here))
            yield into, None if rows is None else sizes(rows, into)

    def _compute(self) -> Any:
        """The SDK's client, made when it is first needed: prices ask for no subscription."""
        if self._client is None:
            subscription = subscription_of(self._where)
            self._credential = self._credential or credential_of(self._where)
            connect, answer = azure_ask.TIMEOUT_SECONDS
            self._client = self._sdk.ComputeManagementClient(
                self._credential,
                subscription,
                base_url=self._base,
                retry_total=0,
                connection_timeout=connect,
                read_timeout=answer,
                **self._options,
            )
        return self._client


def _read(into: Gathering, rows: Iterator[object]) -> list[object] | None:
    """All rows of a list; None where Azure failed on the way: the rest may hold what makes another row senseless, or old."""
    try:
        return list(rows)
    except CloudError as error:
        into.failed("not read", error)
        return None


def _filter(region: str, types: list[str]) -> str:
    """Consumption of some machine sizes in a region."""
    sizes = " or ".join(f"armSkuName eq '{_quoted(one)}'" for one in types)
    place = f"armRegionName eq '{_quoted(region)}'"
    return f"serviceName eq '{SERVICE}' and priceType eq '{TYPE}' and {place} and ({sizes})"


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def _session() -> Any:
    import requests  # noqa: PLC0415 - optional

    from planner.clouds.feeds.bounded import bounded  # noqa: PLC0415

    return bounded(requests.Session())


def _sdk() -> Any:
    """The SDK, and the other two that will be needed."""
    try:
        import azure.identity  # noqa: F401, PLC0415 - optional
        import requests  # noqa: F401, PLC0415
        from azure.mgmt import compute  # noqa: PLC0415
    except ImportError as error:
        raise errors_map.missing("Azure", "azure-identity, azure-mgmt-compute and requests", "azure") from error
    return compute
