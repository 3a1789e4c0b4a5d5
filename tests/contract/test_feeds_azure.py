"""Azure's feed by the contract of all, with azure-mgmt-compute against a Resource Manager of our own and the Retail Prices API likewise; and what is particular to Azure."""

from __future__ import annotations

import re
import sys
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urljoin

import pytest

from planner.clouds.feeds import azure_ask
from planner.clouds.feeds.again import Again
from planner.clouds.feeds.azure import RETAIL, AzureFeed
from planner.clouds.feeds.azure_prices import priced
from planner.clouds.feeds.gathering import Gathering
from planner.clouds.port import Where
from planner.iam.operations.azure import OPERATIONS
from planner.model.errors import MissingPart, PermissionDenied
from planner.model.readings import CapacityWord
from tests.contract.feeds import Bed, FeedContract, Spoilt, Waits, codes, read
from tests.emulators.arm import Arm, BearerOverHttp, NoToken, Token, restricted, sku, usage
from tests.emulators.retail_prices import RetailPrices, row
from tests.unit.clouds.servers import serving

H100, A100, UNWANTED = "Standard_ND96isr_H100_v5", "Standard_ND96amsr_A100_v4", "Standard_D2s_v5"
FAMILIES = {H100: "standardNDSH100v5Family", A100: "StandardNDAMSv4_A100Family", UNWANTED: "standardDSv5Family"}
USD = {H100: (98.32, 41.5), A100: (32.77, 9.83), UNWANTED: (0.096, 0.02)}


class AzureBed(Bed):
    cloud = "azure"
    regions = ("eastus", "westeurope")
    types = {"eastus": (H100, A100), "westeurope": (A100, H100)}  # noqa: RUF012 - nobody changes it
    unwanted = UNWANTED
    now = datetime(2026, 11, 30, 12, tzinfo=UTC)

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        self.arm, self.retail = Arm(), RetailPrices()
        stack.enter_context(serving(self.arm))
        stack.enter_context(serving(self.retail))
        self.by_name: dict[tuple[str, str, bool], dict[str, Any]] = {}
        for region in self.regions:
            for size, (usd, spot) in USD.items():
                self.arm.skus.append(sku(size, region, FAMILIES[size]))
                self.by_name[size, region, False] = row(size, region, usd)
                self.by_name[size, region, True] = row(size, region, spot, spot=True)
            self.arm.usages[region] = [
                usage("cores", 1000, 96),
                usage("lowPriorityCores", 300),
                usage(
                    "StandardNDSH100v5Family", 192, 96
                ),  # the case is another than in the SKU's family, as it is in Azure
                usage("StandardNDAMSv4_A100Family", 0),
                usage("standardDSv5Family", 100),
            ]
        self.retail.rows = list(self.by_name.values())

    def feed(self, again: Again, credential: Any = None) -> AzureFeed:
        made = AzureFeed(
            Where(cloud="azure", target="prod", region="eastus", account=self.arm.subscription),
            again=again,
            credential=credential or Token(),
            base=self.arm.base,
            options={"authentication_policy": BearerOverHttp()},
            retail=self.retail.base + self.retail.path,
        )
        self.stack.callback(made.close)
        return made

    def nobody(self, again: Again) -> AzureFeed:
        return self.feed(again, NoToken())

    def calls(self) -> int:
        return self.arm.trouble.calls + self.retail.trouble.calls

    def both(self):
        return self.arm.trouble, self.retail.trouble

    def throttle(self, times: int, after: float | None = None) -> bool:
        for trouble in self.both():
            trouble.throttled, trouble.after = times, None if after is None else f"{after:.0f}"
        return True

    def down(self, region: str) -> None:
        for trouble in self.both():
            trouble.regions[region] = (503, "ServiceUnavailable")

    def deny(self, region: str) -> None:
        for trouble in self.both():
            trouble.regions[region] = (403, "AuthorizationFailed")

    def small_pages(self, what: str) -> bool:
        for trouble in self.both():
            trouble.page = 1
        return True

    def endless(self, what: str) -> bool:
        for trouble in self.both():
            trouble.page, trouble.endless = 1, True
        return True

    def shuffle(self) -> None:
        for trouble in self.both():
            trouble.shuffled = True

    def sold(self, size: str, region: str, *, spot: bool) -> dict[str, Any]:
        """The row of its price."""
        return self.by_name[size, region, spot]

    def malform(self, what: str):
        here, there = self.regions
        if what == "prices":
            self.sold(H100, here, spot=True)["retailPrice"] = -41.5
            self.sold(A100, here, spot=False)["retailPrice"] = "a lot"
            self.sold(H100, there, spot=False)["retailPrice"] = 0
            self.sold(A100, there, spot=True)["effectiveStartDate"] = "soon"
            return [
                Spoilt(here, f"azure/{here}/-/{H100}/spot"),
                Spoilt(here, f"azure/{here}/-/{A100}/on_demand"),
                Spoilt(there, f"azure/{there}/-/{H100}/on_demand"),
                Spoilt(there, f"azure/{there}/-/{A100}/spot"),
            ]
        if what == "capacity":
            for one in self.arm.skus:
                if one["name"] == H100:
                    one["restrictions"] = [{"type": "Planet", "reasonCode": "Gravity"}]
                elif one["name"] == A100 and one["locations"] == [there]:
                    one["locationInfo"] = [7]
            return [
                Spoilt(here, f"azure/{here}/-/{H100}"),
                Spoilt(there, f"azure/{there}/-/{H100}"),
                Spoilt(there, f"azure/{there}/-/{A100}"),
            ]
        self.arm.usages[here][0]["limit"] = -1
        self.arm.usages[here][1]["currentValue"] = None
        self.arm.usages[there][2]["limit"] = "many"
        return [Spoilt(here, "cores"), Spoilt(here, "lowPriorityCores"), Spoilt(there, "StandardNDSH100v5Family")]

    def currency(self):
        self.sold(H100, "eastus", spot=False)["currencyCode"] = "EUR"
        return Spoilt("eastus", f"azure/eastus/-/{H100}/on_demand")

    def unit(self):
        self.sold(H100, "westeurope", spot=True)["unitOfMeasure"] = "1/Month"
        return Spoilt("westeurope", f"azure/westeurope/-/{H100}/spot")


@pytest.fixture
def bed():
    with ExitStack() as stack:
        yield AzureBed(stack)


class TestAzure(FeedContract):
    @pytest.fixture
    def bed(self, bed):
        return bed

    def test_without_credentials_nothing_can_be_asked(self, bed, what, healthy, waits):
        if what == "prices":
            assert read(bed.nobody(waits.again()), what, bed.wanted()) == healthy, "prices need no credentials"
        else:
            super().test_without_credentials_nothing_can_be_asked(bed, what, waits)


def prices(bed, **changed):
    """By size and capacity, in eastus."""
    fed = read(bed.feed(Waits().again()), "prices", bed.wanted(regions=("eastus",), **changed))["eastus"]
    return {(one.instance_type, one.capacity): one.usd_per_hour for one in fed.prices}, fed


class TestPrices:
    def test_figures_are_those_of_the_list(self, bed):
        found, _ = prices(bed)
        assert found == {
            (H100, "on_demand"): Decimal("98.32"),
            (H100, "spot"): Decimal("41.5"),
            (A100, "on_demand"): Decimal("32.77"),
            (A100, "spot"): Decimal("9.83"),
        }

    @pytest.mark.parametrize(
        "other",
        [
            {"productName": "Virtual Machines NDv5 Series Windows"},
            {"productName": "NDv5 Series Cloud Services"},
            {"meterName": "ND96isr H100 v5 Low Priority", "skuName": "ND96isr H100 v5 Low Priority"},
            {"type": "Reservation", "reservationTerm": "1 Year"},
            {"type": "DevTestConsumption"},
            {"isPrimaryMeterRegion": False},
            {"tierMinimumUnits": 100.0},
            {"effectiveStartDate": "2027-01-01T00:00:00Z"},
            {"effectiveStartDate": "2025-01-01T00:00:00Z"},
            {"effectiveStartDate": "2026-07-01T00:00:00Z", "effectiveEndDate": "2026-08-01T00:00:00Z"},
            {"armRegionName": "eastus2"},
            {"armSkuName": UNWANTED},
            {"serviceName": "Azure Machine Learning"},
        ],
    )
    def test_other_rows_of_a_size_are_not_its_price(self, bed, other):
        expected = prices(bed)
        others = [row(H100, "eastus", 1.0, **other), row(H100, "eastus", 1.0, spot=True, **other)]
        into = Gathering(cloud="azure", region="eastus", wanted=bed.wanted(), source="Azure Retail Prices")
        priced([*bed.retail.rows, *others], into)
        assert into.fed() == expected[1], "and not where the API lets through what was filtered away"
        bed.retail.rows += others
        assert prices(bed) == expected

    def test_of_two_dates_the_newer_one_holds(self, bed):
        bed.retail.rows.insert(0, row(H100, "eastus", 55.0, effectiveStartDate="2026-11-01T00:00:00Z"))
        assert prices(bed)[0][H100, "on_demand"] == Decimal("55.0")

    def test_the_same_price_twice_is_one(self, bed):
        expected = prices(bed)
        bed.retail.rows += [row(H100, "eastus", 98.32)]
        assert prices(bed) == expected

    def test_two_prices_since_one_date_are_none(self, bed):
        bed.retail.rows += [row(H100, "eastus", 77.0)]
        found, fed = prices(bed)
        assert (H100, "on_demand") not in found
        assert (H100, "spot") in found
        assert codes(fed) == {"SKY-CAT-116"}

    @pytest.mark.parametrize(
        ("wrong", "code"),
        [
            ({"retailPrice": None}, "SKY-CAT-116"),
            ({"effectiveStartDate": None}, "SKY-CAT-116"),
            ({"currencyCode": "EUR"}, "SKY-CAT-119"),
            ({"unitOfMeasure": "1/Month"}, "SKY-CAT-119"),
        ],
    )
    def test_beside_a_row_that_makes_no_sense_no_other_is_taken(self, bed, wrong, code):
        bed.retail.rows += [row(H100, "eastus", 77.0, **{"effectiveStartDate": "2026-11-01T00:00:00Z", **wrong})]
        found, fed = prices(bed)
        assert codes(fed) == {code}
        assert set(found) == {(H100, "spot"), (A100, "spot"), (A100, "on_demand")}

    def test_a_row_whose_kind_is_unknown_spoils_both(self, bed):
        bed.retail.rows += [row(H100, "eastus", 77.0, meterName=None)]
        assert {size for size, _ in prices(bed)[0]} == {A100}

    def test_spot_above_on_demand_is_a_reading_like_any_other(self, bed):
        bed.sold(H100, "eastus", spot=True)["retailPrice"] = 120.0
        assert prices(bed)[0][H100, "spot"] == Decimal("120.0")

    def test_questions_are_short_enough_for_an_address(self, bed):
        many = tuple(f"Standard_ND{n}_with_a_long_name_v5" for n in range(60))
        prices(bed, instance_types={"eastus": (*many, H100)})
        assert len(bed.retail.filters) == 5
        assert max(map(len, bed.retail.filters)) < 1500

    def test_names_cannot_break_out_of_the_filter(self, bed):
        name = "Standard_O'Brien_v1"
        bed.retail.rows += [row(name, "eastus", 1.5)]
        found, fed = prices(bed, instance_types={"eastus": (name,)})
        assert fed.complete
        assert found == {(name, "on_demand"): Decimal("1.5")}

    def test_a_refusal_that_names_a_wait_is_a_refusal(self, bed):
        bed.deny("eastus")
        bed.throttle(0, after=5)
        waits = Waits()
        for kind in ("prices", "capacity", "quotas"):
            fed = read(bed.feed(waits.again()), kind, bed.wanted(regions=("eastus",)))["eastus"]
            assert codes(fed) == {"SKY-CAT-115"}
        assert waits.seconds == []

    def test_a_link_elsewhere_is_not_followed(self, bed):
        bed.small_pages("prices")
        bed.retail.leads_to = "http://example.invalid"
        found, fed = prices(bed)
        assert found == {}
        assert codes(fed) == {"SKY-CAT-115"}
        assert "elsewhere" in fed.warnings[0].summary

    @pytest.mark.parametrize(
        ("link", "same"),
        [
            ("https://prices.azure.com:443/api/retail/prices?$skip=100", True),
            ("/api/retail/prices?$skip=100", True),
            ("https://prices.azure.com:444/api/retail/prices", False),
            ("http://prices.azure.com/api/retail/prices", False),
            ("https://prices.azure.com.example.invalid/api", False),
            ("https://prices.azure.com:port/", False),
        ],
    )
    def test_a_link_that_names_the_port_is_the_same_place(self, link, same):
        assert azure_ask._is_same(urljoin(RETAIL, link), RETAIL) == same

    def test_no_credentials_are_sent(self, bed):
        prices(bed)
        assert bed.retail.tokens == {None}


def words(bed, **changed):
    fed = read(bed.feed(Waits().again()), "capacity", bed.wanted(regions=("eastus",), **changed))["eastus"]
    return {(one.instance_type, one.capacity, one.zone): (one.word, one.detail) for one in fed.capacity}


class TestCapacity:
    @pytest.mark.parametrize(
        ("reason", "word"),
        [("NotAvailableForSubscription", CapacityWord.NONE), ("QuotaId", CapacityWord.WITHDRAWN)],
    )
    def test_a_restricted_location(self, bed, reason, word):
        bed.arm.skus[0]["restrictions"] = [restricted("eastus", reason)]
        found = words(bed)
        assert found[H100, "on_demand", ""] == found[H100, "spot", ""] == (word, reason)
        assert found[A100, "spot", ""] == (CapacityWord.OFFERED, "")

    def test_the_worse_of_two_reasons_counts(self, bed):
        both = [restricted("eastus", "QuotaId"), restricted("eastus", "NotAvailableForSubscription")]
        bed.arm.skus[0]["restrictions"] = both
        assert words(bed)[H100, "spot", ""] == (CapacityWord.WITHDRAWN, "QuotaId")

    def test_a_restriction_of_another_location_is_none_here(self, bed):
        bed.arm.skus[0]["restrictions"] = [restricted("westus", "QuotaId")]
        assert words(bed)[H100, "spot", ""] == (CapacityWord.OFFERED, "")

    def test_restricted_zones_leave_the_region_open(self, bed):
        bed.arm.skus[0]["restrictions"] = [restricted("eastus", "NotAvailableForSubscription", "2", "3")]
        bed.arm.skus[0]["locationInfo"][0]["zones"] = ["1", "2"]
        zones = {"eastus": ("eastus-1", "eastus-2", "eastus-9")}
        found = words(bed, zones=zones)
        assert found[H100, "spot", "eastus-1"] == (CapacityWord.OFFERED, "")
        assert found[H100, "spot", "eastus-2"] == (CapacityWord.NONE, "NotAvailableForSubscription")
        assert found[H100, "spot", "eastus-9"] == (CapacityWord.WITHDRAWN, "not listed")
        word, detail = found[H100, "spot", ""]
        assert word is CapacityWord.OFFERED
        assert "zone 2" in detail

    def test_zones_are_told_of_only_where_they_were_asked_for(self, bed):
        assert {zone for _, _, zone in words(bed)} == {""}

    def test_what_is_not_listed_is_not_sold(self, bed):
        del bed.arm.skus[0]
        assert words(bed)[H100, "on_demand", ""] == (CapacityWord.WITHDRAWN, "not listed")

    def test_a_row_without_a_name_may_be_any_size(self, bed):
        del bed.arm.skus[0]["name"]
        assert {size for size, _, _ in words(bed)} == {A100}

    def test_what_is_not_sold_as_spot(self, bed):
        bed.arm.skus[0] = sku(H100, "eastus", FAMILIES[H100], spot="False")
        found = words(bed)
        assert found[H100, "spot", ""] == (CapacityWord.WITHDRAWN, "not sold as spot")
        assert found[H100, "on_demand", ""] == (CapacityWord.OFFERED, "")
        bed.arm.skus[0] = sku(H100, "eastus", FAMILIES[H100], spot="perhaps")
        assert (H100, "spot", "") not in words(bed)

    def test_other_resources_and_edge_zones_are_other_things(self, bed):
        expected = words(bed)
        edge = [{"location": "eastus", "type": "EdgeZone", "extendedLocations": ["losangeles"], "zones": []}]
        bed.arm.skus += [
            sku(H100, "eastus", "x", resourceType="hostGroups/hosts"),
            sku(H100, "eastus", "x", locationInfo=edge),
        ]
        assert words(bed) == expected

    def test_places_are_spelt_in_two_ways(self, bed):
        bed.arm.skus[0]["restrictions"] = [restricted("East US", "QuotaId")]
        assert words(bed)[H100, "spot", ""] == (CapacityWord.WITHDRAWN, "QuotaId")

    @pytest.mark.parametrize(
        "answer", [[], "text", 7, {"value": "text"}, {"value": 7}, {"value": {"a": 1}}, {"value": None}]
    )
    def test_an_answer_of_another_form_is_a_failure(self, bed, answer):
        bed.arm.instead = answer
        fed = read(bed.feed(Waits().again()), "capacity", bed.wanted(regions=("eastus",)))["eastus"]
        assert not fed.complete
        assert fed.capacity == ()
        assert codes(fed) <= {"SKY-CAT-115", "SKY-CAT-116"}

    def test_a_caller_that_is_nobody_is_told_so(self, bed):
        with pytest.raises(PermissionDenied, match="no usable Azure credentials"):
            list(bed.nobody(Waits().again()).capacity(bed.wanted()))

    def test_no_subscription(self, bed, monkeypatch):
        for name in ("ARM_SUBSCRIPTION_ID", "AZURE_SUBSCRIPTION_ID"):
            monkeypatch.delenv(name, raising=False)
        feed = AzureFeed(Where(cloud="azure", target="prod", region=""), credential=Token())
        bed.stack.callback(feed.close)
        with pytest.raises(PermissionDenied, match="subscription"):
            list(feed.quotas(bed.wanted()))

    def test_the_token_does_not_follow_a_link_elsewhere(self, bed):
        bed.small_pages("capacity")
        bed.arm.leads_to = "http://example.invalid"
        fed = read(bed.feed(Waits().again()), "capacity", bed.wanted(regions=("eastus",)))["eastus"]
        assert codes(fed) == {"SKY-CAT-115"}
        assert "elsewhere" in fed.warnings[0].summary
        assert bed.arm.trouble.calls == 1


def test_without_the_sdk_no_feed_is_made(monkeypatch):
    monkeypatch.setitem(sys.modules, "azure.mgmt", None)
    with pytest.raises(MissingPart, match="azure-mgmt-compute"):
        AzureFeed(Where(cloud="azure", target="prod", region="eastus"))


def test_a_feed_that_is_closed_holds_no_connection(bed):
    feed = bed.feed(Waits().again())
    list(feed.prices(bed.wanted()))
    feed.close()
    assert not any(adapter.poolmanager.pools.keys() for adapter in feed._session.adapters.values())


def quotas(bed):
    fed = read(bed.feed(Waits().again()), "quotas", bed.wanted(regions=("eastus",)))["eastus"]
    return {one.name: (one.capacity, one.unit, one.limit, one.used, one.instance_types) for one in fed.quotas}


class TestQuotas:
    def test_of_the_family_the_region_and_spot(self, bed):
        both = (A100, H100)
        assert quotas(bed) == {
            "StandardNDSH100v5Family": ("on_demand", "vcpus", 192.0, 96.0, (H100,)),
            "StandardNDAMSv4_A100Family": ("on_demand", "vcpus", 0.0, 0.0, (A100,)),
            "cores": ("on_demand", "vcpus", 1000.0, 96.0, both),
            "lowPriorityCores": ("spot", "vcpus", 300.0, 0.0, both),
        }

    def test_spot_bounds_only_what_is_sold_as_spot(self, bed):
        bed.arm.skus[0] = sku(H100, "eastus", FAMILIES[H100], spot="False")
        assert quotas(bed)["lowPriorityCores"][-1] == (A100,)


def test_what_is_announced_holds_when_its_time_comes(bed):
    at = bed.now + timedelta(days=1)
    bed.retail.rows += [row(H100, "eastus", 60.0, effectiveStartDate=at.isoformat())]
    assert prices(bed)[0][H100, "on_demand"] == Decimal("98.32")
    assert prices(bed, now=at)[0][H100, "on_demand"] == Decimal("60.0")


def test_the_feed_asks_for_what_the_planner_may(bed):
    feed = bed.feed(Waits().again())
    for kind in ("prices", "capacity", "quotas"):
        read(feed, kind, bed.wanted())
    granted = {a for one in OPERATIONS if one.resource == "planner.clouds.feeds.azure.AzureFeed" for a in one.actions}
    # `GET …/providers/Microsoft.Compute/locations/eastus/usages` takes `Microsoft.Compute/locations/usages/read`
    paths = {asked.removeprefix("GET ").partition("/providers/")[2] for asked in bed.arm.asked}
    assert {re.sub(r"/locations/\w+/", "/locations/", path) + "/read" for path in paths} == granted
