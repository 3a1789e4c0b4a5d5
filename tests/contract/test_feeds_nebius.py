"""Nebius' feed by the contract of all, with its SDK against a gRPC server of our own; and what is particular to Nebius."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import grpc
import pytest

from planner.clouds.feeds.again import Again
from planner.clouds.feeds.nebius import NebiusFeed
from planner.clouds.port import Where
from planner.model.errors import PermissionDenied
from planner.model.readings import CapacityWord
from tests.contract.feeds import Bed, FeedContract, Spoilt, Waits, codes, read
from tests.emulators.nebius_grpc import TOKEN, Nebius, advice, allowance, estimate, level, platform, serving, spot_price

NORTH, WEST = "eu-north1", "eu-west1"
H100, H200, L40S = "gpu-h100-sxm", "gpu-h200-sxm", "gpu-l40s-a"
ONE, EIGHT, SMALL = "1gpu-16vcpu-200gb", "8gpu-128vcpu-1600gb", "1gpu-8vcpu-32gb"
SEEN, SINCE = "2026-11-30T11:58:00Z", "2026-11-30T09:00:00Z"
GPU_HOUR = {ONE: ("1", "1"), EIGHT: ("8", "8")}


def name(kind: str, preset: str) -> str:
    return f"{kind}_{preset}"


class NebiusBed(Bed):
    cloud = "nebius"
    regions = (NORTH, WEST)
    types = {  # noqa: RUF012 - nobody changes it
        NORTH: (name(H100, EIGHT), name(H100, ONE), name(L40S, SMALL)),
        WEST: (name(H200, ONE), name(H200, EIGHT)),
    }
    unwanted = name(H100, "2gpu-32vcpu-400gb")
    now = datetime(2026, 11, 30, 12, tzinfo=UTC)

    def __init__(self, stack: ExitStack) -> None:
        self.token = TOKEN
        self.api = api = Nebius()
        self.address = stack.enter_context(serving(api))
        api.projects = {"project-e00north": NORTH, "project-e01west": WEST, "project-e02west": WEST}
        api.platforms = {
            NORTH: [
                platform(H100, {ONE: 1, EIGHT: 8, "2gpu-32vcpu-400gb": 2}, quota="compute.instance.gpu.h100"),
                platform(L40S, {SMALL: 1}, spot=False, quota="compute.instance.gpu.l40s"),
                platform("cpu-d3", {"4vcpu-16gb": 0}),
            ],
            WEST: [platform(H200, {ONE: 1, EIGHT: 8}, quota="compute.instance.gpu.h200")],
        }
        for region, kind, sku, value in ((NORTH, H100, "sku-h100", "1.25"), (WEST, H200, "sku-h200", "1.45")):
            api.spot_prices.append(spot_price(region, kind, sku, value, SINCE))
            for preset, gpus in ((ONE, 1), (EIGHT, 8), ("2gpu-32vcpu-400gb", 2)):
                part = str(Decimal(value) * gpus)
                api.costs[region, kind, preset, False] = estimate(f"{Decimal('3.85') * gpus}")
                api.costs[region, kind, preset, True] = estimate(part, {sku: (str(gpus), part)})
                now = level("HIGH", SEEN)
                api.advice.append(advice(region, kind, preset, on_demand=level("LOW", SEEN), preemptible=now))
        api.costs[NORTH, L40S, SMALL, False] = estimate("1.55")
        api.advice.append(advice(NORTH, L40S, SMALL, on_demand=level("LIMIT_REACHED", SEEN)))
        for region in self.regions:
            api.allowances += [
                allowance("compute.instance.gpu.h100", region, 16, usage=8),
                allowance("compute.instance.gpu.h200", region, 0, usage_state="USAGE_STATE_NOT_USED"),
                allowance("compute.instance.gpu.l40s", region, 4),
                allowance("compute.instance.preemptible.count", region, 128),
                allowance("compute.disk.size.network-ssd", region, 2**40, unit="byte"),
            ]

    def opened(self) -> Any:
        from nebius.base.options import INSECURE
        from nebius.base.resolver import Constant
        from nebius.sdk import SDK

        return SDK(
            resolver=Constant(self.address),
            options=[(INSECURE, True)],
            credentials=self.token,
            user_agent_prefix="skyplan",
        )

    def feed(self, again: Again, account: str | None = "project-e00north") -> NebiusFeed:
        where = Where(cloud="nebius", target="prod", region=NORTH, account=account)
        return NebiusFeed(where, again=again, open_sdk=self.opened, seconds=20.0)

    def nobody(self, again: Again) -> NebiusFeed:
        def opened() -> Any:
            raise FileNotFoundError("no configuration of the CLI's")

        return NebiusFeed(Where(cloud="nebius", target="prod", region=NORTH), again=again, open_sdk=opened)

    def calls(self) -> int:
        return self.api.trouble.calls

    def throttle(self, times: int, after: float | None = None) -> bool:
        self.api.trouble.throttled = times
        return after is None  # Nebius names no wait

    def down(self, region: str) -> None:
        self.api.trouble.regions[region] = (503, "")

    def deny(self, region: str) -> None:
        self.api.trouble.regions[region] = (403, "")

    def small_pages(self, what: str) -> bool:
        self.api.trouble.page = 1
        return True

    def endless(self, what: str) -> bool:
        self.api.trouble.page, self.api.trouble.endless = 1, True
        return True

    def shuffle(self) -> None:
        self.api.trouble.shuffled = True

    def advised(self, region: str, preset: str) -> dict[str, Any]:
        (found,) = (
            one["status"]
            for one in self.api.advice
            if one["spec"]["region"] == region and one["spec"]["compute_instance"]["preset"]["name"] == preset
        )
        return found

    def malform(self, what: str):
        if what == "prices":
            for preset, spot, cost in ((ONE, False, "-3.85"), (EIGHT, False, "NaN")):
                self.api.costs[NORTH, H100, preset, spot] = estimate(cost)
            self.api.costs[WEST, H200, ONE, True] = estimate("")
            self.api.costs[WEST, H200, EIGHT, False]["total_costs"] *= 2
            return [
                Spoilt(NORTH, f"nebius/{NORTH}/-/{name(H100, ONE)}/on_demand"),
                Spoilt(NORTH, f"nebius/{NORTH}/-/{name(H100, EIGHT)}/on_demand"),
                Spoilt(WEST, f"nebius/{WEST}/-/{name(H200, ONE)}/spot"),
                Spoilt(WEST, f"nebius/{WEST}/-/{name(H200, EIGHT)}/on_demand"),
            ]
        if what == "capacity":
            self.advised(NORTH, ONE)["on_demand"]["availability_level"] = 99
            self.api.platforms[WEST][0]["spec"]["presets"][0]["name"] = ""
            return [
                Spoilt(NORTH, f"nebius/{NORTH}/-/{name(H100, ONE)}/on_demand"),
                Spoilt(WEST, f"nebius/{WEST}/-/{name(H200, ONE)}"),
            ]
        del self.api.allowances[0]["spec"]["limit"]
        del self.api.allowances[6]["spec"]["limit"]
        return [Spoilt(NORTH, "compute.instance.gpu.h100"), Spoilt(WEST, "compute.instance.gpu.h200")]

    def future(self, what: str):
        at = "2026-11-30T13:00:00Z"
        if what == "prices":
            self.api.spot_prices[0]["effective_time"] = at
            return Spoilt(NORTH, f"nebius/{NORTH}/-/{H100}")
        if what == "capacity":
            self.advised(WEST, EIGHT)["preemptible"]["effective_at"] = at
            return Spoilt(WEST, f"nebius/{WEST}/-/{name(H200, EIGHT)}/spot")
        return None

    def currency(self):
        self.api.costs[NORTH, H100, ONE, False]["currency"] = "eur"
        return Spoilt(NORTH, f"nebius/{NORTH}/-/{name(H100, ONE)}/on_demand")

    def unit(self):
        month = {"unit": "month", "unit_type": "UNIT_TYPE_TIME_BASED"}
        self.api.costs[WEST, H200, ONE, True]["total_costs"][0]["aggregation_unit"] = month
        return Spoilt(WEST, f"nebius/{WEST}/-/{name(H200, ONE)}/spot")


@pytest.fixture
def bed():
    with ExitStack() as stack:
        yield NebiusBed(stack)


class TestNebius(FeedContract):
    @pytest.fixture
    def bed(self, bed):
        return bed


def prices(bed, region=NORTH, **changed):
    fed = read(bed.feed(Waits().again()), "prices", bed.wanted(regions=(region,), **changed))[region]
    return {(p.instance_type, p.capacity, p.observed_at[11:16]): p.usd_per_hour for p in fed.prices}, fed


class TestPrices:
    def test_spot_is_the_markets_since_it_holds(self, bed):
        bed.api.spot_prices[0]["price"]["value"] = "1.50"  # the calculator lags behind
        found, fed = prices(bed)
        assert fed.complete
        assert found == {
            (name(H100, ONE), "on_demand", "12:00"): Decimal("3.85"),
            (name(H100, EIGHT), "on_demand", "12:00"): Decimal("30.80"),
            (name(H100, ONE), "spot", "09:00"): Decimal("1.50"),
            (name(H100, EIGHT), "spot", "09:00"): Decimal("12.00"),
            (name(L40S, SMALL), "on_demand", "12:00"): Decimal("1.55"),
        }

    def test_vcpus_that_are_paid_for_stay_the_calculators(self, bed):
        parts = {"sku-h100": ("1", "1.25"), "sku-vcpu": ("16", "0.30"), "sku-ram": ("200", "0.20")}
        bed.api.costs[NORTH, H100, ONE, True] = estimate("1.75", parts)
        bed.api.spot_prices[0]["price"]["value"] = "2.25"
        assert prices(bed)[0][name(H100, ONE), "spot", "09:00"] == Decimal("2.75")

    @pytest.mark.parametrize(
        "parts", [{}, {"sku-other": ("1", "1.25")}, {"sku-h100": ("730", "1.25")}, {"sku-h100": ("1", "9.99")}]
    )
    def test_a_price_that_is_not_made_of_the_markets_stands_as_it_is(self, bed, parts):
        bed.api.costs[NORTH, H100, ONE, True] = estimate("1.99", parts)
        found, _ = prices(bed)
        assert found[name(H100, ONE), "spot", "12:00"] == Decimal("1.99")

    def test_without_a_market_the_calculators_price_stands(self, bed):
        bed.api.spot_prices.clear()
        found, fed = prices(bed)
        assert fed.complete
        assert found[name(H100, EIGHT), "spot", "12:00"] == Decimal("10.00")

    @pytest.mark.parametrize(
        ("changed", "code"),
        [
            ({"currency": "eur"}, "SKY-CAT-119"),
            ({"unit_title": "GPU second"}, "SKY-CAT-119"),
            ({"value": "-1"}, "SKY-CAT-116"),
            ({"value": "Infinity"}, "SKY-CAT-116"),
        ],
    )
    def test_a_market_that_makes_no_sense_leaves_spot_out(self, bed, changed, code):
        bed.api.spot_prices[0]["price"].update(changed)
        found, fed = prices(bed)
        assert codes(fed) == {code}
        assert {capacity for _, capacity, _ in found} == {"on_demand"}

    def test_two_markets_of_one_platform_are_none(self, bed):
        bed.api.spot_prices.append(spot_price(NORTH, H100, "sku-h100", "9", SINCE))
        found, fed = prices(bed)
        assert codes(fed) == {"SKY-CAT-116"}
        assert {capacity for _, capacity, _ in found} == {"on_demand"}

    def test_spot_above_on_demand_is_a_reading_like_any_other(self, bed):
        bed.api.spot_prices[0]["price"]["value"] = "5"
        assert prices(bed)[0][name(H100, ONE), "spot", "09:00"] == Decimal(5)

    def test_what_the_calculator_does_not_know_keeps_no_other_from_being_told(self, bed):
        del bed.api.costs[NORTH, H100, EIGHT, False]
        found, fed = prices(bed)
        assert codes(fed) == {"SKY-CAT-115"}
        assert (name(H100, EIGHT), "spot", "09:00") in found
        assert (name(H100, EIGHT), "on_demand", "12:00") not in found

    def test_a_market_that_does_not_answer_leaves_the_calculators_prices(self, bed):
        bed.api.refused["billing.v1alpha1.SpotPriceService/List"] = (grpc.StatusCode.UNIMPLEMENTED, "alpha")
        found, fed = prices(bed)
        assert codes(fed) == {"SKY-CAT-115"}
        assert (name(H100, EIGHT), "spot", "12:00") in found

    def test_a_range_is_no_price(self, bed):
        total = bed.api.costs[NORTH, H100, ONE, False]["total_costs"][0]
        total["range"] = {"min": total["general"]["total"], "max": total.pop("general")["total"]}
        found, fed = prices(bed)
        assert (name(H100, ONE), "on_demand", "12:00") not in found
        assert codes(fed) == {"SKY-CAT-116"}

    @pytest.mark.parametrize("unit", ["request", "hour"])
    def test_what_is_paid_by_use_is_not_the_hours(self, bed, unit):
        costs = bed.api.costs[NORTH, H100, ONE, False]["total_costs"]
        general = {"total": {"cost": "0.01"}}
        costs.insert(0, {"aggregation_unit": {"unit": unit, "unit_type": 2}, "general": general})
        assert prices(bed)[0][name(H100, ONE), "on_demand", "12:00"] == Decimal("3.85")


def series(bed, *points, **changed):
    bed.api.series = [
        {
            "sku_id": "sku-h100",
            "region": NORTH,
            "compute_instance": {"platform": H100},
            "currency": "usd",
            "unit_title": "GPU hour",
            "points": [{"timestamp": at, "value": value} for at, value in points],
            **changed,
        }
    ]


class TestHistory:
    since = datetime(2026, 11, 30, 6, tzinfo=UTC)

    def spots(self, bed, **changed):
        found, fed = prices(bed, **{"since": self.since, **changed})
        return {
            at: usd for (kind, capacity, at), usd in found.items() if (kind, capacity) == (name(H100, ONE), "spot")
        }, fed

    def test_since_then_up_to_the_price_of_now(self, bed):
        points = [(f"2026-11-30T{hour:02}:00:00Z", f"{hour}") for hour in (5, 7, 8, 9, 10)]
        series(bed, *points)
        found, fed = self.spots(bed)
        assert fed.complete
        assert found == {"07:00": Decimal(7), "08:00": Decimal(8), "09:00": Decimal("1.25")}

    def test_nothing_of_the_past_is_asked_without_since(self, bed):
        series(bed, ("2026-11-30T07:00:00Z", "7"))
        assert self.spots(bed, since=None)[0] == {"09:00": Decimal("1.25")}
        assert not any(method.endswith("ListSeries") for method, _ in bed.api.asked)

    @pytest.mark.parametrize(
        ("since", "granularity"),
        [(timedelta(hours=1), "MINUTE_15"), (timedelta(days=8), "HOUR_1"), (timedelta(days=90), "HOUR_1")],
    )
    def test_only_what_the_market_keeps_is_asked_for_in_whole_steps(self, bed, since, granularity):
        now = bed.now + timedelta(minutes=7)
        _, fed = self.spots(bed, since=now - since, now=now)
        assert fed.complete, fed.warnings
        (asked,) = [asked for method, asked in bed.api.asked if method.endswith("ListSeries")]
        kind = asked.aggregation.DESCRIPTOR.enum_types_by_name
        assert kind["Granularity"].values_by_number[asked.aggregation.granularity].name == f"GRANULARITY_{granularity}"
        assert kind["Method"].values_by_number[asked.aggregation.method].name == "METHOD_LAST_PRICE"
        assert asked.filters.end_time.ToJsonString() == "2026-11-30T12:00:00Z"
        start = asked.filters.start_time.ToDatetime(tzinfo=UTC)
        assert max(now - since, now - timedelta(days=30)) <= start

    def test_a_step_that_is_not_over_is_not_asked_for(self, bed):
        self.spots(bed, since=bed.now + timedelta(minutes=3), now=bed.now + timedelta(minutes=7))
        assert not any(method.endswith("ListSeries") for method, _ in bed.api.asked)

    def test_points_that_make_no_sense(self, bed):
        series(bed, ("2026-11-30T07:00:00Z", "seven"), ("2026-11-30T08:00:00Z", "8"))
        found, fed = self.spots(bed)
        assert codes(fed) == {"SKY-CAT-116"}
        assert found == {"08:00": Decimal(8), "09:00": Decimal("1.25")}

    @pytest.mark.parametrize("changed", [{"currency": "eur"}, {"unit_title": "GPU second"}])
    def test_a_history_in_other_money_or_unit(self, bed, changed):
        series(bed, ("2026-11-30T07:00:00Z", "7"), **changed)
        found, fed = self.spots(bed)
        assert codes(fed) == {"SKY-CAT-119"}
        assert found == {"09:00": Decimal("1.25")}

    def test_a_history_of_another_place_is_not_this_ones(self, bed):
        series(bed, ("2026-11-30T07:00:00Z", "7"), region=WEST)
        assert self.spots(bed)[0] == {"09:00": Decimal("1.25")}


def words(bed, region=NORTH):
    fed = read(bed.feed(Waits().again()), "capacity", bed.wanted(regions=(region,)))[region]
    return {(c.instance_type, c.capacity): (c.word, c.detail, c.observed_at[11:16]) for c in fed.capacity}


class TestCapacity:
    def test_levels(self, bed):
        assert words(bed) == {
            (name(H100, ONE), "on_demand"): (CapacityWord.SCARCE, "LOW", "11:58"),
            (name(H100, ONE), "spot"): (CapacityWord.AVAILABLE, "HIGH", "11:58"),
            (name(H100, EIGHT), "on_demand"): (CapacityWord.SCARCE, "LOW", "11:58"),
            (name(H100, EIGHT), "spot"): (CapacityWord.AVAILABLE, "HIGH", "11:58"),
            (name(L40S, SMALL), "on_demand"): (CapacityWord.OFFERED, "LIMIT_REACHED", "12:00"),
            (name(L40S, SMALL), "spot"): (CapacityWord.WITHDRAWN, "not allowed for preemptibles", "12:00"),
        }

    def test_the_best_fabric_speaks_for_the_region(self, bed):
        low, high = level("LOW", "2026-11-30T11:59:00Z"), level("MEDIUM", "2026-11-30T11:50:00Z")
        bed.api.advice[:0] = [
            advice(NORTH, H100, ONE, on_demand=low, preemptible=low),
            advice(NORTH, H100, ONE, on_demand=high, preemptible=high),
        ]
        found = words(bed)
        assert found[name(H100, ONE), "on_demand"] == (CapacityWord.AVAILABLE, "MEDIUM", "11:50")
        assert found[name(H100, ONE), "spot"] == (CapacityWord.AVAILABLE, "HIGH", "11:58")

    @pytest.mark.parametrize("turn", [1, -1])
    def test_of_two_fabrics_alike_the_newer_word_counts(self, bed, turn):
        times = ["2026-11-30T11:40:00Z", "2026-11-30T11:59:00Z"][::turn]
        bed.api.advice = [advice(NORTH, H100, ONE, preemptible=level("HIGH", at)) for at in times]
        assert words(bed)[name(H100, ONE), "spot"] == (CapacityWord.AVAILABLE, "HIGH", "11:59")

    @pytest.mark.parametrize("state", ["STALE", "UNKNOWN"])
    def test_what_is_stale_says_nothing_of_now(self, bed, state):
        bed.advised(NORTH, ONE)["preemptible"] = level("HIGH", SEEN, state)
        assert words(bed)[name(H100, ONE), "spot"] == (CapacityWord.OFFERED, "UNKNOWN", "12:00")

    def test_without_advice_a_type_is_offered(self, bed):
        bed.api.advice.clear()
        assert words(bed)[name(H100, ONE), "spot"] == (CapacityWord.OFFERED, "", "12:00")

    def test_what_is_not_listed_is_not_sold(self, bed):
        del bed.api.platforms[NORTH][0]["spec"]["presets"][1]
        found = words(bed)
        assert found[name(H100, EIGHT), "spot"][:2] == (CapacityWord.WITHDRAWN, "not listed")
        assert found[name(H100, ONE), "spot"][0] is CapacityWord.AVAILABLE


def quotas(bed, region=NORTH):
    fed = read(bed.feed(Waits().again()), "quotas", bed.wanted(regions=(region,)))[region]
    return {q.name: (q.capacity, q.unit, q.limit, q.used, q.instance_types) for q in fed.quotas}, fed


class TestQuotas:
    def test_of_gpus_by_platform(self, bed):
        assert quotas(bed)[0] == {
            "compute.instance.gpu.h100": ("on_demand", "gpus", 16.0, 8.0, (name(H100, ONE), name(H100, EIGHT))),
            "compute.instance.gpu.l40s": ("on_demand", "gpus", 4.0, 0.0, (name(L40S, SMALL),)),
        }

    @pytest.mark.parametrize(
        ("status", "expected"),
        [
            ({"state": "STATE_FROZEN"}, (0.0, 0.0)),
            ({"state": "STATE_DELETED"}, None),
            ({"state": "STATE_PROVISIONING"}, None),
            ({"usage_state": "USAGE_STATE_UNKNOWN"}, (16.0, None)),
        ],
    )
    def test_states(self, bed, status, expected):
        bed.api.allowances[0] = allowance("compute.instance.gpu.h100", NORTH, 16, **status)
        found, fed = quotas(bed)
        assert fed.complete
        assert found.get("compute.instance.gpu.h100", (None,) * 5)[2:4] == (expected or (None, None))

    def test_in_bytes_it_is_no_quota_of_gpus(self, bed):
        bed.api.allowances[0]["status"]["unit"] = "byte"
        found, fed = quotas(bed)
        assert set(found) == {"compute.instance.gpu.l40s"}
        assert codes(fed) == {"SKY-CAT-119"}


class TestPlaces:
    def test_a_region_is_asked_through_a_project_that_lies_there(self, bed):
        prices(bed, WEST)
        (asked,) = {asked.parent_id for method, asked in bed.api.asked if method.endswith("PlatformService/List")}
        assert asked == "project-e01west"

    def test_and_through_ones_own_where_that_is_one(self, bed):
        feed = bed.feed(Waits().again(), account="project-e02west")
        read(feed, "capacity", bed.wanted(regions=(WEST,)))
        assert [asked.parent_id for method, asked in bed.api.asked if method.endswith("PlatformService/List")] == [
            "project-e02west"
        ]
        assert not any(method.endswith("ProjectService/List") for method, _ in bed.api.asked)

    def test_a_region_without_a_project_cannot_be_asked(self, bed):
        bed.api.projects = {"project-e00north": NORTH}
        found = read(bed.feed(Waits().again()), "prices", bed.wanted())
        assert found[NORTH].complete
        assert codes(found[WEST]) == {"SKY-CAT-115"}
        assert "none of the tenant's lies in eu-west1" in found[WEST].warnings[0].summary

    def test_a_wrong_token_is_a_failure_of_every_region(self, bed):
        bed.token = "other"
        feed = bed.feed(Waits().again())
        found = read(feed, "capacity", bed.wanted())
        assert {code for fed in found.values() for code in codes(fed)} == {"SKY-CAT-115"}
        assert all(not fed.complete for fed in found.values())

    def test_what_is_one_for_all_regions_is_asked_for_once(self, bed):
        read(bed.feed(Waits().again()), "capacity", bed.wanted())
        asked = [method.rpartition(".")[2] for method, _ in bed.api.asked]
        assert sorted(asked) == [
            "PlatformService/List",
            "PlatformService/List",
            "ProjectService/Get",
            "ProjectService/List",
            "ResourceAdviceService/List",
        ]

    def test_nor_is_it_asked_for_again_where_it_was_refused(self, bed):
        ask = "capacity.v1.ResourceAdviceService/List"
        bed.api.refused[ask] = (grpc.StatusCode.PERMISSION_DENIED, "its words")
        found = read(bed.feed(Waits().again()), "capacity", bed.wanted())
        assert {region: codes(fed) for region, fed in found.items()} == {key: {"SKY-CAT-115"} for key in (NORTH, WEST)}
        assert [method for method, _ in bed.api.asked].count(ask) == 1

    def test_a_viewer_may_ask_all_of_it(self, bed):
        series(bed)
        feed = bed.feed(Waits().again())
        for kind in ("prices", "capacity", "quotas"):
            read(feed, kind, bed.wanted(since=bed.now - timedelta(hours=2)))
        asked = {method.rpartition("/")[2] for method, _ in bed.api.asked}
        assert asked == {"Get", "List", "ListSeries", "EstimateBatch"}, "nothing that changes anything"

    def test_no_project(self, bed):
        with pytest.raises(PermissionDenied, match="project"):
            list(bed.feed(Waits().again(), account="").prices(bed.wanted()))

    def test_a_reader_that_stops_early_leaves_no_sdk_open(self, bed, monkeypatch):
        closed = []
        feed = bed.feed(Waits().again())
        sdk = bed.opened()
        end = sdk.sync_close
        monkeypatch.setattr(sdk, "sync_close", lambda: (closed.append(True), end()))
        monkeypatch.setattr(feed, "_open", lambda: sdk)
        reading = feed.prices(bed.wanted())
        next(reading)
        reading.close()
        assert closed == [True]
