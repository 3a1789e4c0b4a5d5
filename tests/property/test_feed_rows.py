"""Whatever a cloud answers, a feed raises nothing but CloudError, and tells no price that is none: of what nobody wanted, not finite, not above zero, of another time.

Rows are healthy ones with a few fields replaced by anything, and rows that are anything at all.  The order of rows says nothing, either.
"""

from __future__ import annotations

import copy
import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import pytest
from azure.core.pipeline.policies import SansIOHTTPPolicy
from azure.core.pipeline.transport import RequestsTransport
from azure.mgmt.compute import ComputeManagementClient
from google.protobuf import json_format
from hypothesis import assume, given
from hypothesis import strategies as st
from nebius.api.nebius.billing.v1alpha1 import ListSpotPricesResponse
from requests import PreparedRequest, Response, Session
from requests.adapters import BaseAdapter

from planner.clouds.feeds import azure_ask, nebius_rows
from planner.clouds.feeds.again import Again
from planner.clouds.feeds.aws import AwsFeed
from planner.clouds.feeds.aws_rows import product, quota, word_of_score
from planner.clouds.feeds.azure_prices import priced
from planner.clouds.feeds.azure_skus import limits, offered, sizes
from planner.clouds.feeds.gathering import Gathering
from planner.clouds.feeds.gcp_families import family_of
from planner.clouds.feeds.gcp_skus import Shape, parts_of, price, sku
from planner.clouds.feeds.nebius import on_spot
from planner.clouds.feeds.port import Fed, Wanted
from planner.model.diagnostic import Severity
from planner.model.errors import CloudError
from planner.model.record import moment
from tests.emulators import arm, nebius_grpc, retail_prices

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
REGION = "eastus"
SIZES = ("Standard_ND96isr_H100_v5", "Standard_NC40ads_H100_v5")
PLATFORM, PRESETS = "gpu-h100-sxm", {"1gpu-16vcpu-200gb": 1, "8gpu-128vcpu-1600gb": 8}
TYPES = {
    "azure": SIZES,
    "nebius": tuple(f"{PLATFORM}_{preset}" for preset in PRESETS),
    "gcp": ("a2-highgpu-1g", "a4-highgpu-8g"),
    "aws": ("p5.48xlarge", "p4d.24xlarge"),
}
SIMPLE = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(
        ["USD", "1 Hour", "NaN", "-1", "1e400", "Infinity", "2026-11-30T13:00:00Z", "9" * 5000, "1_0", "٣"]
    )
)
FIGURE = re.compile(r"[\d.]+")
WORDS = ["NaN", "sNaN", "-1", "0", "1e400", "1e40", "1e-400", "Infinity", "-Infinity", "9" * 5000, "", "1,5"]
NO_FIGURE = st.sampled_from([*WORDS, float("nan"), float("inf"), -1, 0, True, None, 10**300, 1e308, 5e-324, {}, []])
ANYTHING = st.recursive(
    SIMPLE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def gathering(cloud: str) -> Gathering:
    wanted = Wanted(regions=(REGION,), instance_types={REGION: TYPES[cloud]}, now=NOW, since=NOW - timedelta(days=1))
    return Gathering(cloud=cloud, region=REGION, wanted=wanted, source="a test")


def hurt(data: st.DataObject, row: Any) -> Any:
    """The row with up to three of its parts replaced by anything, or gone; figures by what figures are not, more often than by the rest."""
    row = copy.deepcopy(row)
    for _ in range(data.draw(st.integers(0, 3))):
        parts = list(paths(row))
        if not parts:
            return row
        kind = data.draw(st.sampled_from(["gone", "anything", "no figure", "no figure"]))
        figures = [way for way in parts if kind == "no figure" and FIGURE.fullmatch(str(at(row, way)))]
        *way, last = data.draw(st.sampled_from(figures or parts))
        here = at(row, way)
        if kind == "gone":
            del here[last]
        else:
            here[last] = data.draw(ANYTHING if kind == "anything" else NO_FIGURE)
    return row


def at(row: Any, way: Any) -> Any:
    for step in way:
        row = row[step]
    return row


def paths(row: Any) -> Any:
    keys = row.keys() if isinstance(row, dict) else range(len(row)) if isinstance(row, list) else ()
    for key in keys:
        yield (key,)
        for rest in paths(row[key]):
            yield (key, *rest)


def rows(data: st.DataObject, healthy: list[Any]) -> list[Any]:
    """Some healthy rows, hurt ones and ones that are anything, in any order."""
    kinds = st.sampled_from(healthy)
    found = [hurt(data, data.draw(kinds)) for _ in range(data.draw(st.integers(0, 5)))]
    return data.draw(
        st.permutations([*found, *data.draw(st.lists(ANYTHING, max_size=2)), *data.draw(st.lists(kinds, max_size=3))])
    )


def checked(into: Gathering) -> Fed:
    fed = into.fed()
    for one in fed.prices:
        assert one.usd_per_hour.is_finite()
        assert 0 < float(one.usd_per_hour) < float("inf")
        assert one.capacity in {"on_demand", "spot"}
    for one in (*fed.prices, *fed.capacity):
        assert one.instance_type in TYPES[into.cloud]
    for limit in fed.quotas:
        assert 0 <= limit.limit < float("inf")
        assert set(limit.instance_types) <= set(TYPES[into.cloud])
    for one in (*fed.prices, *fed.capacity, *fed.quotas):
        assert (one.cloud, one.region) == (into.cloud, REGION)
        assert moment(one.observed_at) <= NOW + timedelta(minutes=1)
    assert all(warning.severity is Severity.WARNING and len(warning.summary) < 2000 for warning in fed.warnings)
    assert fed.complete == (not fed.warnings)
    return fed


RETAIL = [
    retail_prices.row(SIZES[0], REGION, 98.32),
    retail_prices.row(SIZES[0], REGION, 41.5, spot=True),
    retail_prices.row(SIZES[1], REGION, 6.98, effectiveStartDate="2026-11-01T00:00:00Z"),
    retail_prices.row(SIZES[1], REGION, 7.5),
]
SKUS = [
    arm.sku(SIZES[0], REGION, "a", restrictions=[arm.restricted(REGION, "QuotaId")]),
    arm.sku(SIZES[1], REGION, "b", restrictions=[arm.restricted(REGION, "NotAvailableForSubscription", "1", "2")]),
]
USAGES = [arm.usage("a", 96, 8), arm.usage("b", 0), arm.usage("cores", 1000), arm.usage("lowPriorityCores", 10)]


class TestAzure:
    @given(data=st.data())
    def test_prices(self, data):
        some = rows(data, RETAIL)
        into, turned = gathering("azure"), gathering("azure")
        priced(some, into)
        priced(some[::-1], turned)
        assert checked(into) == turned.fed()

    @given(data=st.data())
    def test_sizes_and_quotas(self, data):
        skus, usages = rows(data, SKUS), rows(data, USAGES)
        fed = []
        for turn in (1, -1):
            into = gathering("azure")
            seen = sizes(skus[::turn], into)
            offered(seen, into)
            limits(usages[::turn], seen, into)
            fed.append(checked(into))
        assert fed[0] == fed[1]

    @given(page=ANYTHING | st.fixed_dictionaries({"Items": ANYTHING, "NextPageLink": ANYTHING}))
    def test_pages_of_prices(self, page):
        class Answer:
            status_code, reason, headers = 200, "OK", {}

            def json(self):
                return page

        class Session:
            def get(self, *_, **__):
                return Answer()

        retail = azure_ask.Retail(Session(), "http://127.0.0.1/api/retail/prices")
        try:
            priced(retail.rows("any", Again(attempts=1)), into := gathering("azure"))
        except CloudError:
            return
        checked(into)

    @given(page=ANYTHING | st.fixed_dictionaries({"value": ANYTHING, "nextLink": ANYTHING}))
    def test_pages_of_resource_manager(self, page):
        client, adapter = manager()
        adapter.page = json.dumps(page).encode()
        into = gathering("azure")
        for ask, asked in ((client.resource_skus.list, {"filter": "x"}), (client.usage.list, {"location": REGION})):
            try:
                found = list(azure_ask.listed("any", "http://127.0.0.1", ask, Again(attempts=1), **asked))
            except CloudError:
                continue
            limits(found, sizes(found, into), into)
        checked(into)


class Adapter(BaseAdapter):
    """Answers everything with one page."""

    page = b""

    def send(self, request: PreparedRequest, *_: Any, **__: Any) -> Response:
        answer = Response()
        answer.status_code, answer.request, answer.url = 200, request, str(request.url)
        answer._content = self.page
        answer.headers["Content-Type"] = "application/json"
        return answer

    def close(self) -> None:
        pass


@cache
def manager() -> tuple[ComputeManagementClient, Adapter]:
    session, adapter = Session(), Adapter()
    for scheme in ("http://", "https://"):
        session.mount(scheme, adapter)
    transport = RequestsTransport(session=session, session_owner=False)
    given: dict[str, Any] = {"authentication_policy": SansIOHTTPPolicy(), "transport": transport, "retry_total": 0}
    return ComputeManagementClient(arm.Token(), "subscription", base_url="http://127.0.0.1", **given), adapter


class TestAws:
    OFFER = {  # noqa: RUF012 - nobody changes it
        "product": {"attributes": {"instanceType": "p5.48xlarge", "operatingSystem": "Linux", "tenancy": "Shared"}},
        "terms": {
            "OnDemand": {
                "a": {
                    "effectiveDate": "2026-11-01T00:00:00Z",
                    "priceDimensions": {"b": {"unit": "Hrs", "pricePerUnit": {"USD": "55.04"}}},
                }
            }
        },
    }

    @given(data=st.data())
    def test_products(self, data):
        into = gathering("aws")
        for one in rows(data, [self.OFFER]):
            row = product(json.dumps(one))
            if row is not None:
                AwsFeed._list_price(into, row, {("use1-az1", "p5.48xlarge")})
        checked(into)

    @given(text=st.text())
    def test_texts(self, text):
        product(text)
        quota(text, TYPES["aws"])

    @given(score=ANYTHING)
    def test_scores(self, score):
        word_of_score(score)


def listed(description: str, units: str, nanos: int, unit: str = "h", usage: str = "OnDemand") -> dict[str, Any]:
    """A SKU of Google's list."""
    rate = {"startUsageAmount": 0, "unitPrice": {"currencyCode": "USD", "units": units, "nanos": nanos}}
    pricing = {"usageUnit": unit, "tieredRates": [rate]}
    return {
        "skuId": "0000-0000-0000",
        "description": description,
        "category": {"usageType": usage},
        "serviceRegions": [REGION],
        "pricingInfo": [{"effectiveTime": "2026-11-01T00:00:00Z", "pricingExpression": pricing}],
    }


class TestGcp:
    SKUS = [  # noqa: RUF012 - nobody changes it
        listed("A2 Instance Core running in Americas", "0", 31_000_000),
        listed("A2 Instance Ram running in Americas", "0", 4_000_000, "GiBy.h"),
        listed("Nvidia Tesla A100 GPU running in Americas", "2", 930_000_000),
        listed("A4 Nvidia B200 (1 gpu slice) running in Americas", "8", 0),
        listed("SSD backed Local Storage in Americas", "0", 80_000_000, "GiBy.mo"),
    ]

    @given(data=st.data())
    def test_prices(self, data):
        some = rows(data, self.SKUS)
        fed = []
        for turn in (1, -1):
            into = gathering("gcp")
            parts = parts_of([one for row in some[::turn] if (one := sku(row)) is not None], into)
            for instance_type in into.types:
                family = family_of(instance_type)
                assert family is not None
                shape = Shape(vcpus=12, ram_gib=Decimal(85), gpus=1, ssd_gib=375)
                for spot in (False, True):
                    usd = price(instance_type, family, shape, parts, into, spot=spot)
                    if usd is not None:
                        into.price(
                            zone="", instance_type=instance_type, capacity="spot" if spot else "on_demand", usd=usd
                        )
            fed.append(checked(into))
        assert fed[0] == fed[1]


AT = st.none() | st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1)).map(lambda at: f"{at.isoformat()}Z")  # noqa: DTZ001
TEXT = st.text(max_size=10) | st.sampled_from(
    ["1.25", "8", "NaN", "-1", "0", "Infinity", "1e999", "usd", "hour", "GPU hour"]
)


def answered(method: str, said: dict[str, Any]) -> Any:
    """As the SDK reads it from the wire."""
    from nebius.base.protos.dynamic import REGISTRY

    _, kind = nebius_grpc.kinds(method)
    try:
        sent = json_format.ParseDict(said, kind())
    except json_format.ParseError:
        assume(False)  # no such message can be sent
    return REGISTRY.message_class(kind.DESCRIPTOR.full_name).FromString(sent.SerializeToString())


class TestNebius:
    PLATFORMS = [nebius_grpc.platform(PLATFORM, PRESETS, quota="gpus")]  # noqa: RUF012 - nobody changes it

    def sold(self, into: Gathering) -> nebius_rows.Offers:
        found = answered("/nebius.compute.v1.PlatformService/List", {"items": self.PLATFORMS})
        return nebius_rows.offers(found.items, into)

    def typed(self, data: st.DataObject, row: Any) -> Any:
        """Hurt in a way that can be sent: texts by texts, moments by moments, names of an enum by numbers."""
        row = copy.deepcopy(row)
        for *way, last in paths(row):
            here = at(row, way)
            text = here[last]
            if isinstance(text, dict | list) or data.draw(st.integers(0, 3)):
                continue
            if not isinstance(text, str):
                here[last] = data.draw(st.none() | st.integers(0, 2**31))
            elif FIGURE.fullmatch(text):
                here[last] = data.draw(st.sampled_from(WORDS))
            elif text.endswith("Z"):
                here[last] = data.draw(AT)
            elif text.isupper() and "_" in text:
                here[last] = data.draw(st.integers(0, 20))
            else:
                here[last] = data.draw(TEXT)
        return row

    def some(self, data: st.DataObject, row: Any) -> list[Any]:
        return [self.typed(data, row) for _ in range(data.draw(st.integers(0, 3)))]

    @given(data=st.data())
    def test_platforms(self, data):
        into = gathering("nebius")
        said = {"items": [self.typed(data, self.PLATFORMS[0])]}
        sold = nebius_rows.offers(answered("/nebius.compute.v1.PlatformService/List", said).items, into)
        nebius_rows.words(sold, (), into)
        checked(into)

    @given(data=st.data())
    def test_advice(self, data):
        row = nebius_grpc.advice(
            REGION,
            PLATFORM,
            next(iter(PRESETS)),
            on_demand=nebius_grpc.level("LOW", "2026-11-30T11:00:00Z"),
            preemptible=nebius_grpc.level("HIGH", "2026-11-30T11:30:00Z"),
        )
        found = answered("/nebius.capacity.v1.ResourceAdviceService/List", {"items": self.some(data, row)}).items
        fed = []
        for turn in (1, -1):
            into = gathering("nebius")
            nebius_rows.words(self.sold(into), list(found)[::turn], into)
            fed.append(checked(into))
        assert fed[0] == fed[1]

    @given(data=st.data())
    def test_allowances(self, data):
        into, row = gathering("nebius"), nebius_grpc.allowance("gpus", REGION, 8)
        found = answered("/nebius.quotas.v1.QuotaAllowanceService/List", {"items": self.some(data, row)})
        nebius_rows.limits(self.sold(into), found.items, into)
        checked(into)

    @given(data=st.data())
    def test_prices(self, data):
        into = gathering("nebius")
        row = nebius_grpc.spot_price(REGION, PLATFORM, "sku", "1.25", "2026-11-30T11:00:00Z")
        market = answered("/nebius.billing.v1alpha1.SpotPriceService/List", {"items": self.some(data, row)})
        past = {
            **{key: row[key] for key in ("sku_id", "region", "compute_instance")},
            **{key: row["price"][key] for key in ("currency", "unit_title")},
            "points": [{"timestamp": f"2026-11-30T{hour:02}:00:00Z", "value": "1.25"} for hour in (9, 10, 12)],
        }
        series = answered("/nebius.billing.v1alpha1.SpotPriceService/ListSeries", {"items": self.some(data, past)})
        cost = self.typed(data, nebius_grpc.estimate("1.75", {"sku": ("1", "1.25"), "ram": ("200", "0.5")}))
        answer = answered("/nebius.billing.v1.CalculatorService/EstimateBatch", cost)
        now, before = nebius_rows.markets(market.items, into), nebius_rows.points(series.items, into)
        whole = nebius_rows.cost(answer, "a machine", into)
        for offer in self.sold(into).found.values() if whole is not None else ():
            on_spot(offer, whole, now.get(PLATFORM), before, into)
        checked(into)

    @pytest.mark.parametrize("seconds", [-(10**14), -1, 2**62])
    def test_a_moment_that_no_calendar_has(self, seconds):
        """The message can hold it, Python's clock cannot."""
        _, kind = nebius_grpc.kinds("/nebius.billing.v1alpha1.SpotPriceService/List")
        row = nebius_grpc.spot_price(REGION, PLATFORM, "sku", "1.25", "2026-11-30T11:00:00Z")
        sent = json_format.ParseDict({"items": [row]}, kind())
        sent.items[0].effective_time.seconds = seconds
        into = gathering("nebius")
        found = nebius_rows.markets(ListSpotPricesResponse.FromString(sent.SerializeToString()).items, into)
        assert found == {PLATFORM: None}
        assert {warning.code for warning in into.fed().warnings} == {"SKY-CAT-116"}
