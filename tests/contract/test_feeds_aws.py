"""AWS' feed by the contract, with boto3 against moto, and the traps of AWS' own lists.  Never run against live AWS."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

pytest.importorskip("boto3", reason="boto3 is not installed (extra `aws`)")
pytest.importorskip("moto", reason="moto is not installed")

from botocore.loaders import create_loader

from planner.clouds.feeds.aws import AwsFeed, _once
from planner.clouds.port import Where
from planner.iam.operations.aws import OPERATIONS
from planner.model.errors import CloudError
from planner.model.grants import Identity
from planner.model.readings import CapacityWord
from planner.model.record import moment
from tests.contract.feeds import Bed, FeedContract, Spoilt, Waits, codes, read
from tests.emulators.aws import CREDENTIALS, AwsProcess
from tests.emulators.aws_lists import product, quota

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
EAST, IRELAND = "us-east-1", "eu-west-1"
P5, G6, P4 = "p5.48xlarge", "g6.xlarge", "p4d.24xlarge"
#: moto's names and ids
ZONES = {EAST: {"us-east-1a": "use1-az6", "us-east-1b": "use1-az1"}, IRELAND: {"eu-west-1a": "euw1-az3"}}
LIST = {P5: "55.0400000000", G6: "0.8048000000", P4: "21.9576000000", "m5.large": "0.0960000000"}

LOADER = create_loader()


def at(**before: float) -> str:
    return (NOW - timedelta(**before)).isoformat()


def market() -> dict[str, Any]:
    """Two regions; in the first p5 costs differently in each zone."""
    products = [
        made
        for region in ZONES
        for instance_type, usd in LIST.items()
        for made in (
            product(instance_type, region, usd),
            product(instance_type, region, "60.0", tenancy="Dedicated"),
            product(instance_type, region, "61.0", operatingSystem="Windows"),
            product(instance_type, region, "62.0", preInstalledSw="SQL Ent"),
            product(instance_type, region, "0.0000000000", capacitystatus="AllocatedCapacityReservation"),
            product(instance_type, region, "0.0000000000", marketoption="CapacityBlock"),
        )
    ]
    quotas = [
        quota("L-417A185B", "Running On-Demand P instances", 384.0),
        quota("L-DB2E81BA", "Running On-Demand G and VT instances", 64.0),
        quota("L-C4BD4855", "All P5 Spot Instance Requests", 192.0),
        quota("L-7212CCBC", "All P4, P3 and P2 Spot Instance Requests", 0.0),
        quota("L-3819A6DF", "All G and VT Spot Instance Requests", 32.0),
        quota("L-1216C47A", "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", 640.0),
        quota("L-86A789C3", "Running Dedicated p4d Hosts", 1.0),
    ]
    return {
        "spot": {
            EAST: {
                "us-east-1a": {
                    P5: [[at(days=3), "30.0"], [at(hours=5), "28.5000"], [at(days=80), "40.0"]],
                    G6: [[at(hours=1), "0.31"]],
                },
                "us-east-1b": {P5: [[at(days=60), "55.04"]]},
            },
            IRELAND: {"eu-west-1a": {P4: [[at(hours=2), "9.8765"]], G6: [[at(hours=3), "0.4"]]}},
        },
        "scores": {
            EAST: {"use1-az6": {P5: 9, G6: 3}, "use1-az1": {P5: 1}},
            IRELAND: {"euw1-az3": {P4: 2, G6: 3}},
        },
        "products": products,
        "quotas": {EAST: quotas, IRELAND: copy.deepcopy(quotas)},
        "offerings": {
            region: [
                {"InstanceType": t, "LocationType": "availability-zone-id", "Location": zone}
                for zone in zones.values()
                for t in (P5, G6, P4, "m5.large")
                if (region, t) not in {(IRELAND, P5), (EAST, P4)} and (t, zone) != (G6, "use1-az1")
            ]
            for region, zones in ZONES.items()
        },
    }


class AwsBed(Bed):
    cloud = "aws"
    regions = (EAST, IRELAND)
    types = {EAST: (P5, G6), IRELAND: (P4, G6)}  # noqa: RUF012 - a bed's facts
    unwanted = "m5.large"
    now = NOW

    def __init__(self, process: AwsProcess, monkeypatch: pytest.MonkeyPatch):
        self.process, self.monkeypatch = process, monkeypatch
        self.market = market()
        self.made: list[AwsFeed] = []
        for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_CA_BUNDLE"):
            monkeypatch.delenv(name, raising=False)
        for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
            monkeypatch.setenv(name, os.devnull)
        given = {**CREDENTIALS, "AWS_EC2_METADATA_DISABLED": "true", "AWS_ENDPOINT_URL": process.url}
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        # each session would read EC2's model, ten megabytes, anew
        monkeypatch.setattr("botocore.session.create_loader", lambda _paths: LOADER)
        self.sell()

    def sell(self, **changed: Any) -> None:
        self.market.update(changed)
        self.process.post("/strict/market", json.dumps(self.market).encode())

    def close(self) -> None:
        for feed in self.made:
            feed.close()

    def feed(self, again, at_once=1):
        feed = AwsFeed(Where(cloud="aws", target="prod", region=EAST), again=again, at_once=at_once)
        self.made.append(feed)
        return feed

    def nobody(self, again):
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            self.monkeypatch.delenv(name)
        return self.feed(again)

    def calls(self):
        return json.loads(self.process.post("/strict/market/calls"))

    def throttle(self, times, after=None):
        self.sell(throttle=times, after=after)
        return True

    def down(self, region):
        self.sell(down=[region])

    def deny(self, region):
        self.sell(denied=[region])

    def small_pages(self, what):
        self.sell(page=1)
        return True

    def endless(self, what):
        self.sell(endless=["ec2", "pricing", "service-quotas"])
        return True

    def shuffle(self):
        self.sell(turned=True)

    def malform(self, what):
        if what == "prices":
            self.market["spot"][EAST]["us-east-1a"][G6] = [[at(hours=1), "cheap"]]
            self.market["spot"][EAST]["us-east-1b"][P5] = [[at(hours=1), "-3.0"]]
            broken = [p for p in self.market["products"] if p["product"]["attributes"]["instanceType"] != P4]
            self.sell(products=[*broken, {"product": {}}, product(P4, IRELAND, "0.0000000000")])
            return (
                Spoilt(EAST, f"aws/{EAST}/use1-az6/{G6}/spot"),
                Spoilt(EAST, f"aws/{EAST}/use1-az1/{P5}/spot"),
                Spoilt(IRELAND, f"aws/{IRELAND}/euw1-az3/{P4}/on_demand"),
            )
        if what == "capacity":
            for row in self.market["offerings"][IRELAND]:
                if row["InstanceType"] == G6:
                    row["Location"] = ""
            self.sell()
            # and no type is taken to be withdrawn from a list that cannot be read whole
            return (Spoilt(IRELAND),)
        del self.market["quotas"][EAST][0]["Value"]
        self.sell()
        return (Spoilt(EAST, "L-417A185B"),)

    def future(self, what):
        if what != "prices":
            return None
        self.market["spot"][EAST]["us-east-1a"][G6] = [[at(hours=-1), "0.31"]]
        self.sell()
        return Spoilt(EAST, f"aws/{EAST}/use1-az6/{G6}/spot")

    def _product(self, instance_type: str, region: str) -> dict[str, Any]:
        (found,) = (
            p["terms"]["OnDemand"]["SKU.JRTC"]["priceDimensions"]["SKU.JRTC.6YS6"]
            for p in self.market["products"]
            if p["product"]["attributes"] == product(instance_type, region, "1")["product"]["attributes"]
        )
        return found

    def currency(self):
        self._product(P4, IRELAND)["pricePerUnit"] = {"CNY": "150.0"}
        self.sell()
        return Spoilt(IRELAND, f"aws/{IRELAND}/euw1-az3/{P4}/on_demand")

    def unit(self):
        self._product(P4, IRELAND)["unit"] = "Quantity"
        self.sell()
        return Spoilt(IRELAND, f"aws/{IRELAND}/euw1-az3/{P4}/on_demand")


@pytest.fixture(scope="module")
def aws_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsProcess]:
    process = AwsProcess(tmp_path_factory.mktemp("aws"))
    yield process
    process.close()


@pytest.fixture
def bed(socket_enabled: None, aws_process: AwsProcess, monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsBed]:
    made = AwsBed(aws_process, monkeypatch)
    yield made
    made.close()


class TestAws(FeedContract):
    @pytest.fixture
    def bed(self, bed):
        return bed


def prices(bed, **changed):
    found = read(bed.feed(Waits().again()), "prices", bed.wanted(**changed))
    return {one.series: one for fed in found.values() for one in fed.prices}


def spot(bed, region, zone, instance_type, **changed):
    return prices(bed, **changed)[f"aws/{region}/{zone}/{instance_type}/spot"]


class TestPrices:
    def test_what_holds_now_is_the_last_change_with_its_own_time(self, bed):
        found = spot(bed, EAST, "use1-az6", P5)
        assert found.usd_per_hour == Decimal("28.5000")
        assert moment(found.observed_at) == NOW - timedelta(hours=5)
        assert found.source == "EC2 spot price history"
        assert moment(spot(bed, EAST, "use1-az1", P5).observed_at) == NOW - timedelta(days=60), "a flat price is old"

    @pytest.mark.parametrize("turned", [False, True])
    def test_a_change_while_we_ask_is_newer_than_what_held_before(self, bed, turned):
        bed.market["spot"][EAST]["us-east-1a"][P5].append([at(seconds=-30), "27.0"])
        bed.sell(turned=turned)
        assert spot(bed, EAST, "use1-az6", P5).usd_per_hour == Decimal("27.0")

    def test_what_holds_now_is_not_read_out_of_three_months_of_changes(self, bed):
        bed.market["spot"][EAST]["us-east-1a"][P5] = [[at(hours=h), f"{20 + h / 100}"] for h in range(1, 200)]
        bed.sell(page=1)
        before = bed.calls()
        assert spot(bed, EAST, "use1-az6", P5).usd_per_hour == Decimal("20.01")
        assert bed.calls() - before < 60

    def test_a_history_is_every_change_since_then_and_none_before(self, bed):
        (fed,) = read(
            bed.feed(Waits().again()), "prices", bed.wanted(regions=(EAST,), since=NOW - timedelta(days=4))
        ).values()
        told = [
            (one.zone, moment(one.observed_at), one.usd_per_hour)
            for one in fed.prices
            if (one.instance_type, one.capacity) == (P5, "spot")
        ]
        assert told == [
            ("use1-az6", NOW - timedelta(days=3), Decimal("30.0")),
            ("use1-az6", NOW - timedelta(hours=5), Decimal("28.5000")),
        ]

    def test_on_demand_is_the_plain_linux_product_in_every_zone_that_has_the_type(self, bed):
        found = prices(bed)
        on_demand = {series: float(one.usd_per_hour) for series, one in found.items() if one.capacity == "on_demand"}
        assert on_demand == {
            f"aws/{EAST}/use1-az1/{P5}/on_demand": 55.04,
            f"aws/{EAST}/use1-az6/{P5}/on_demand": 55.04,
            f"aws/{EAST}/use1-az6/{G6}/on_demand": 0.8048,
            f"aws/{IRELAND}/euw1-az3/{P4}/on_demand": 21.9576,
            f"aws/{IRELAND}/euw1-az3/{G6}/on_demand": 0.8048,
        }
        assert {one.source for one in found.values() if one.capacity == "on_demand"} == {"AWS Price List"}

    def test_a_type_that_is_sold_in_capacity_blocks_alone_has_no_price_on_demand(self, bed):
        bed.sell(
            products=[
                p for p in bed.market["products"] if p["product"]["attributes"]["marketoption"] == "CapacityBlock"
            ]
        )
        found = read(bed.feed(Waits().again()), "prices", bed.wanted())
        assert {one.capacity for fed in found.values() for one in fed.prices} == {"spot"}
        assert all(fed.complete for fed in found.values())

    def test_products_without_a_market_option_are_older_than_the_option(self, bed):
        for one in bed.market["products"]:
            if one["product"]["attributes"]["marketoption"] == "OnDemand":
                del one["product"]["attributes"]["marketoption"]
        bed.sell()
        assert f"aws/{EAST}/use1-az6/{P5}/on_demand" in prices(bed)

    def test_a_price_that_holds_from_tomorrow_does_not_hold(self, bed):
        for one in bed.market["products"]:
            one["terms"]["OnDemand"]["SKU.JRTC"]["effectiveDate"] = "2026-12-01T00:00:00Z"
        bed.sell()
        found = read(bed.feed(Waits().again()), "prices", bed.wanted())
        assert all(codes(fed) == {"SKY-CAT-117"} for fed in found.values())
        assert {one.capacity for fed in found.values() for one in fed.prices} == {"spot"}

    def test_two_products_that_disagree_are_named_and_neither_is_taken(self, bed):
        bed.sell(products=[*bed.market["products"], product(P5, EAST, "98.32")])
        (fed,) = read(bed.feed(Waits().again()), "prices", bed.wanted(regions=(EAST,))).values()
        assert codes(fed) == {"SKY-CAT-116"}
        assert not [one for one in fed.prices if (one.instance_type, one.capacity) == (P5, "on_demand")]

    def test_a_price_of_a_zone_that_nobody_knows_is_named(self, bed):
        bed.market["spot"][EAST]["us-east-1q"] = {P5: [[at(hours=1), "1.0"]]}
        bed.sell()
        (fed,) = read(bed.feed(Waits().again()), "prices", bed.wanted(regions=(EAST,))).values()
        assert codes(fed) == {"SKY-CAT-116"}
        assert Decimal("1.0") not in {one.usd_per_hour for one in fed.prices}

    def test_the_price_list_may_fail_alone(self, bed):
        """Spot prices of the region are kept, and the region is not whole."""
        bed.sell(endless=["pricing"], page=1)
        found = read(bed.feed(Waits().again()), "prices", bed.wanted())
        for fed in found.values():
            assert codes(fed) == {"SKY-CAT-115"}
            assert "on demand" in fed.warnings[0].summary
            assert "spot" in {one.capacity for one in fed.prices}

    def test_many_broken_rows_are_counted_not_listed(self, bed):
        zones = bed.market["spot"][EAST]
        for n in range(20):
            zones[f"us-east-1{chr(103 + n)}"] = {P5: [[at(hours=1), "1.0"]]}
        bed.sell()
        (fed,) = read(bed.feed(Waits().again()), "prices", bed.wanted(regions=(EAST,))).values()
        assert len(fed.warnings) == 6
        assert "and 15 more" in fed.warnings[-1].summary


class TestCapacity:
    def words(self, bed):
        found = read(bed.feed(Waits().again()), "capacity", bed.wanted())
        return {one.series: (one.word, one.detail) for fed in found.values() for one in fed.capacity}

    def test_scores_speak_of_spot_in_their_zone_and_offerings_of_the_rest(self, bed):
        found = self.words(bed)
        assert found[f"aws/{EAST}/use1-az6/{P5}/spot"] == (CapacityWord.AVAILABLE, "score 9")
        assert found[f"aws/{EAST}/use1-az6/{G6}/spot"] == (CapacityWord.AVAILABLE, "score 3")
        assert found[f"aws/{EAST}/use1-az1/{P5}/spot"] == (CapacityWord.SCARCE, "score 1")
        assert found[f"aws/{IRELAND}/euw1-az3/{P4}/spot"] == (CapacityWord.OFFERED, "score 2")
        assert found[f"aws/{EAST}/use1-az6/{P5}/on_demand"] == (CapacityWord.OFFERED, "")

    def test_what_a_zone_does_not_sell_is_withdrawn_there(self, bed):
        found = self.words(bed)
        for capacity in ("spot", "on_demand"):
            assert found[f"aws/{EAST}/use1-az1/{G6}/{capacity}"] == (CapacityWord.WITHDRAWN, "")

    def test_a_zone_that_the_account_has_not_is_not_spoken_of(self, bed):
        """A local zone lists nothing until the account opts in to it."""
        zones = {EAST: ("use1-az6", "use1-atl2-az1")}
        (fed,) = read(bed.feed(Waits().again()), "capacity", bed.wanted(regions=(EAST,), zones=zones)).values()
        assert {one.zone for one in fed.capacity} == {"use1-az6"}

    def test_a_score_for_a_zone_without_the_type_is_none(self, bed):
        bed.market["scores"][EAST]["use1-az1"][G6] = 10
        bed.sell()
        assert self.words(bed)[f"aws/{EAST}/use1-az1/{G6}/spot"] == (CapacityWord.WITHDRAWN, "")

    def test_what_is_no_score_is_named_and_the_offering_stays(self, bed):
        bed.market["scores"][EAST]["use1-az6"][P5] = 0
        bed.sell()
        (fed,) = read(bed.feed(Waits().again()), "capacity", bed.wanted(regions=(EAST,))).values()
        assert codes(fed) == {"SKY-CAT-116"}
        (word,) = (one.word for one in fed.capacity if one.series == f"aws/{EAST}/use1-az6/{P5}/spot")
        assert word is CapacityWord.OFFERED

    def test_after_the_days_last_question_the_offerings_stay(self, bed):
        """AWS limits how many different questions for scores it answers in a day."""
        healthy = self.words(bed)
        bed.sell(config_limit=1)
        waits = Waits()
        (fed,) = read(bed.feed(waits.again()), "capacity", bed.wanted(regions=(EAST,))).values()
        assert codes(fed) == {"SKY-CAT-115"}
        assert "MaxConfigLimitExceeded" in fed.warnings[0].summary
        assert {one.series for one in fed.capacity} == {series for series in healthy if EAST in series}
        assert {one.detail for one in fed.capacity} == {"", "score 9", "score 1"}, (
            "the one of the newest P was answered"
        )
        assert waits.seconds == [], "it is no throttling: it lasts until tomorrow"


class TestQuotas:
    def test_quotas_count_vcpus_of_the_families_that_their_names_tell(self, bed):
        (fed,) = read(bed.feed(Waits().again()), "quotas", bed.wanted(regions=(EAST,))).values()
        told = {one.name: (one.capacity, one.unit, one.limit, one.instance_types) for one in fed.quotas}
        assert told == {
            "L-417A185B": ("on_demand", "vcpus", 384.0, (P5,)),
            "L-DB2E81BA": ("on_demand", "vcpus", 64.0, (G6,)),
            "L-C4BD4855": ("spot", "vcpus", 192.0, (P5,)),
            "L-3819A6DF": ("spot", "vcpus", 32.0, (G6,)),
        }
        assert {one.used for one in fed.quotas} == {None}, "Service Quotas does not say"

    def test_a_quota_of_none_is_a_limit(self, bed):
        (fed,) = read(bed.feed(Waits().again()), "quotas", bed.wanted(regions=(IRELAND,))).values()
        assert [one.limit for one in fed.quotas if one.name == "L-7212CCBC"] == [0.0]


class TestSeveralRegionsAtOnce:
    @pytest.mark.parametrize("what", ["prices", "capacity", "quotas"])
    def test_they_say_the_same_in_the_same_order(self, bed, what):
        alone = read(bed.feed(Waits().again()), what, bed.wanted())
        assert list(read(bed.feed(Waits().again(), at_once=4), what, bed.wanted()).items()) == list(alone.items())

    def test_who_has_enough_waits_for_no_region_that_was_not_begun(self, bed):
        fed = bed.feed(Waits().again(), at_once=1).quotas(bed.wanted(regions=(EAST, IRELAND)))
        before = bed.calls()
        next(fed)
        fed.close()
        assert bed.calls() - before <= 2

    def test_a_feed_that_was_closed_asks_no_more(self, bed):
        """Whoever interrupts a refresh waits for the question that is out, and for no other."""
        feed, before = bed.feed(Waits().again(), at_once=4), bed.calls()
        feed.close()
        assert all(codes(fed) == {"SKY-CAT-115"} for fed in feed.prices(bed.wanted()))
        assert bed.calls() == before


class TestThrottling:
    @pytest.mark.parametrize("code", ["TooManyRequestsException", "SlowDown", "ThrottledException"])
    def test_services_have_several_words_for_it(self, code):
        from botocore.exceptions import ClientError

        answers = iter([ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": 400}}, "Any")])

        def ask():
            for error in answers:
                raise error
            return "answer"

        assert Waits().again().ask(lambda: _once("Any", ask)) == "answer"


class TestRights:
    def test_what_is_called_is_what_the_planner_is_granted(self, bed, monkeypatch):
        """Neither more, which would be refused, nor less, which nobody needs."""
        called = set()
        client = AwsFeed._client

        def watched(feed, service, region):
            made = client(feed, service, region)
            made.meta.events.register(
                "before-call.*", lambda model, **_: called.add((service, model.name)), unique_id="w"
            )
            return made

        monkeypatch.setattr(AwsFeed, "_client", watched)
        feed = bed.feed(Waits().again())
        for what in ("prices", "capacity", "quotas"):
            read(feed, what, bed.wanted())
        prefixes = {"service-quotas": "servicequotas"}
        granted = {a for one in OPERATIONS if one.resource == "planner.clouds.feeds.aws.AwsFeed" for a in one.actions}
        assert {f"{prefixes.get(service, service)}:{name}" for service, name in called} == granted
        assert {one.identity for one in OPERATIONS if one.resource == "planner.clouds.feeds.aws.AwsFeed"} == {
            Identity.PLANNER
        }


class TestCredentials:
    def test_a_role_is_taken_on(self, bed):
        role = "arn:aws:iam::123456789012:role/skyplan/planner"
        feed = AwsFeed(Where(cloud="aws", target="prod", region=EAST, role=role), again=Waits().again())
        bed.made.append(feed)
        assert feed._session.get_credentials().access_key != CREDENTIALS["AWS_ACCESS_KEY_ID"]
        assert read(feed, "quotas", bed.wanted())[EAST].complete

    def test_without_any_the_feed_is_not_even_made(self, bed):
        with pytest.raises(CloudError, match="no usable AWS credentials"):
            bed.nobody(Waits().again())
