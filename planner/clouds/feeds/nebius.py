"""Nebius' prices, capacity and quotas: the billing calculator and the spot market, resource advice, quota allowances.  The SDK is imported when a feed is made.

A price is the calculator's for a whole machine, without disk, as the list has it: contracts are a customer's business.  Where the spot market has a price for the GPUs
of a machine, that part is taken from there with the moment since which it holds; the market keeps 30 days of history, read from `since` on.
Advice and quotas are the tenant's and need the right to read them there; a project's own share of a quota is not looked at.
Never run against live Nebius: held to the SDK's own descriptors (0.6.29) by a gRPC server of our own.
"""

# pyright: basic

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from planner.clouds import errors_map
from planner.clouds.asked import of_nebius
from planner.clouds.feeds.again import Again
from planner.clouds.feeds.gathering import Gathering
from planner.clouds.feeds.nebius_ask import Once, Tenant
from planner.clouds.feeds.nebius_rows import (
    Cost,
    Market,
    Offer,
    Offers,
    at_market,
    cost,
    limits,
    markets,
    offers,
    points,
    words,
)
from planner.clouds.feeds.port import Fed, Wanted
from planner.clouds.nebius import sdk_opener
from planner.clouds.port import Where
from planner.model.errors import CloudError, Unavailable

ASK_SECONDS = 60.0
KEPT = timedelta(days=30)
"""How far back the spot market's history goes."""
FINE = timedelta(days=7)
"""Up to which it is told by the quarter of an hour."""
STEP = timedelta(minutes=15)


class NebiusFeed:
    """One tenant.  `open_sdk` and `seconds` are for tests; each question opens the SDK and closes it, for it holds a thread while it is open."""

    def __init__(
        self,
        where: Where,
        *,
        again: Again | None = None,
        open_sdk: Callable[[], Any] | None = None,
        seconds: float = ASK_SECONDS,
    ) -> None:
        self._open = open_sdk or sdk_opener(where)
        self._where = where
        self._again = again or Again()
        self._seconds = seconds

    def prices(self, wanted: Wanted) -> Iterator[Fed]:
        """See `PriceSource`."""
        with self._tenant(wanted) as tenant:
            market = Once(lambda: _spot_prices(tenant))
            past = Once(lambda: _spot_history(tenant, wanted))
            for into, sold in self._places(tenant, wanted, "Nebius billing calculator"):
                if sold is not None:
                    now, before = _markets(market, into), _history(past, into)
                    for offer in sorted(sold.found.values(), key=lambda one: one.name):
                        if not self._priced(tenant, offer, now, before, into):
                            break
                yield into.fed()

    def capacity(self, wanted: Wanted) -> Iterator[Fed]:
        """See `CapacitySource`."""
        with self._tenant(wanted) as tenant:
            advice = Once(lambda: _advice(tenant))
            for into, sold in self._places(tenant, wanted, "Nebius resource advice"):
                if sold is not None:
                    found = _read(into, advice.get)
                    if found is not None:
                        words(sold, found, into)
                yield into.fed()

    def quotas(self, wanted: Wanted) -> Iterator[Fed]:
        """See `QuotaSource`."""
        with self._tenant(wanted) as tenant:
            allowances = Once(lambda: _allowances(tenant))
            for into, sold in self._places(tenant, wanted, "Nebius quota allowances"):
                if sold is not None:
                    limits(sold, _read(into, allowances.get) or [], into)
                yield into.fed()

    @contextmanager
    def _tenant(self, wanted: Wanted) -> Iterator[Tenant]:
        """The tenant, with the SDK open.  Raises CloudError where there are no credentials."""
        if not any(wanted.instance_types.get(region) for region in wanted.regions):
            yield Tenant(None, "", self._again, self._seconds)  # nobody will ask it
            return
        sdk = of_nebius("credentials", self._open)
        try:
            account = self._where.account or of_nebius("credentials", sdk.parent_id)
            if not account:
                hint = "set `project` of the target in skyplan.yaml, or parent-id in the CLI's profile"
                raise errors_map.no_account("Nebius", "project", hint)
            yield Tenant(sdk, account, self._again, self._seconds)
        finally:
            sdk.sync_close()

    def _places(self, tenant: Tenant, wanted: Wanted, source: str) -> Iterator[tuple[Gathering, Offers | None]]:
        """Each region and what it sells; None where nothing is wanted, or nothing was answered."""
        for region in wanted.regions:
            into = Gathering(cloud="nebius", region=region, wanted=wanted, source=source)
            found = _read(into, lambda here=region: _platforms(tenant, here)) if into.types else None
            yield into, None if found is None else offers(found, into)

    def _priced(
        self,
        tenant: Tenant,
        offer: Offer,
        now: dict[str, Market | None],
        before: dict[str, list[Market]],
        into: Gathering,
    ) -> bool:
        """Gather the prices of one type; False where the region does not answer any more."""
        for spot in (False, True) if offer.spot else (False,):
            if spot and now.get(offer.platform, offer) is None:
                continue  # the market's price makes no sense, and no other takes its place
            capacity = "spot" if spot else "on_demand"
            try:
                answer = _estimate(tenant, into.region, offer, spot=spot)
            except CloudError as error:
                into.failed(f"{offer.name} {capacity}", error)
                if isinstance(error, Unavailable):
                    return False
                continue
            whole = cost(answer, f"{offer.name} {capacity}", into)
            if whole is not None and spot:
                on_spot(offer, whole, now.get(offer.platform), before, into)
            elif whole is not None:
                into.price(zone="", instance_type=offer.name, capacity=capacity, usd=whole.usd)
        return True


def on_spot(offer: Offer, whole: Cost, market: Market | None, before: dict[str, list[Market]], into: Gathering) -> None:
    """Gather what a machine costs on spot: now, and as far back as was asked for."""

    def price(usd: Any, at: datetime | None) -> None:
        source = "Nebius billing calculator" if at is None else "Nebius spot market"
        into.price(zone="", instance_type=offer.name, capacity="spot", usd=usd, at=at, source=source)

    usd = None if market is None else at_market(whole, market, offer.gpus)
    if market is None or usd is None:
        price(whole.usd, None)
    else:
        price(usd, market.at)
    for sku in whole.parts:
        for point in before.get(sku, ()):
            then = at_market(whole, point, offer.gpus)
            # what holds now is told already, with the moment since which it does
            if then is not None and (market is None or usd is None or point.at < market.at):
                price(then, point.at)


def _read(into: Gathering, ask: Callable[[], list[Any]]) -> list[Any] | None:
    try:
        return ask()
    except CloudError as error:
        into.failed("not read", error)
        return None


def _markets(market: Once[list[Any]], into: Gathering) -> dict[str, Market | None]:
    """Without them the calculator's prices stand."""
    return markets(_read(into, market.get) or [], into)


def _history(past: Once[list[Any]], into: Gathering) -> dict[str, list[Market]]:
    return points(_read(into, past.get) or [], into)


def _platforms(tenant: Tenant, region: str) -> list[Any]:
    from nebius.api.nebius.compute.v1 import ListPlatformsRequest, PlatformServiceClient  # noqa: PLC0415 - slow

    project = tenant.project(region)
    return tenant.pages(
        "platforms.list", PlatformServiceClient(tenant.sdk).list, ListPlatformsRequest, parent_id=project
    )


def _advice(tenant: Tenant) -> list[Any]:
    from nebius.api.nebius.capacity.v1 import (  # noqa: PLC0415 - slow
        ListResourceAdviceRequest,
        ResourceAdviceServiceClient,
    )

    ask = ResourceAdviceServiceClient(tenant.sdk).list
    return tenant.pages("resource advice", ask, ListResourceAdviceRequest, parent_id=tenant.id)


def _allowances(tenant: Tenant) -> list[Any]:
    from nebius.api.nebius.quotas.v1 import (  # noqa: PLC0415 - slow
        ListQuotaAllowancesRequest,
        QuotaAllowanceServiceClient,
    )

    ask = QuotaAllowanceServiceClient(tenant.sdk).list
    return tenant.pages("quota allowances", ask, ListQuotaAllowancesRequest, parent_id=tenant.id)


def _spot_prices(tenant: Tenant) -> list[Any]:
    from nebius.api.nebius.billing.v1alpha1 import ListSpotPricesRequest, SpotPriceServiceClient  # noqa: PLC0415 - slow

    return tenant.pages("spot prices", SpotPriceServiceClient(tenant.sdk).list, ListSpotPricesRequest)


def _spot_history(tenant: Tenant, wanted: Wanted) -> list[Any]:
    """Whole steps that are over: the one that is not has its end in the future."""
    from nebius.api.nebius.billing.v1alpha1 import (  # noqa: PLC0415 - slow
        ListSpotPriceSeriesRequest,
        SpotPriceServiceClient,
    )

    if wanted.since is None:
        return []
    now = wanted.now.astimezone(UTC)
    since = max(wanted.since.astimezone(UTC), now - KEPT + STEP)
    fine = now - since <= FINE
    step = STEP if fine else timedelta(hours=1)
    end = now - (now - datetime(2000, 1, 1, tzinfo=UTC)) % step
    if since >= end:
        return []
    steps = ListSpotPriceSeriesRequest.Aggregation
    size = steps.Granularity.GRANULARITY_MINUTE_15 if fine else steps.Granularity.GRANULARITY_HOUR_1
    return tenant.pages(
        "spot price series",
        SpotPriceServiceClient(tenant.sdk).list_series,
        ListSpotPriceSeriesRequest,
        filters=ListSpotPriceSeriesRequest.Filters(start_time=since, end_time=end),
        aggregation=steps(granularity=size, method=steps.Method.METHOD_LAST_PRICE),
    )


def _estimate(tenant: Tenant, region: str, offer: Offer, *, spot: bool) -> Any:
    """One machine alone: the answer's total is then its price, and a preset that the calculator does not know spoils no other."""
    from nebius.api.google.protobuf import Any as Packed  # noqa: PLC0415 - slow
    from nebius.api.nebius.billing import v1 as billing  # noqa: PLC0415
    from nebius.api.nebius.common.v1 import ResourceMetadata  # noqa: PLC0415
    from nebius.api.nebius.compute import v1 as compute  # noqa: PLC0415

    preemptible = compute.PreemptibleSpec(on_preemption=compute.PreemptibleSpec.PreemptionPolicy.STOP)
    machine = compute.CreateInstanceRequest(
        metadata=ResourceMetadata(parent_id=tenant.project(region)),
        spec=compute.InstanceSpec(
            resources=compute.ResourcesSpec(platform=offer.platform, preset=offer.preset),
            preemptible=preemptible if spot else None,
        ),
    )
    packed = Packed(
        type_url="type.googleapis.com/nebius.compute.v1.CreateInstanceRequest", value=machine.SerializeToString()
    )
    hour = billing.FilterAggregationUnit.FilterAggregationUnitValue.FILTER_AGGREGATION_UNIT_HOUR
    asked = billing.EstimateBatchRequest(
        resource_specs=[billing.ResourceSpec(spec=packed)],
        currency="usd",
        filter_aggregation_unit=billing.FilterAggregationUnit(filter_aggregation_unit_values=[hour]),
    )
    return tenant.one("calculator.estimate", billing.CalculatorServiceClient(tenant.sdk).estimate_batch, asked)
