"""What every price, capacity and quota feed must do, whatever its cloud: one class of tests, and the bed that a cloud gives it.

A cloud's tests are `class TestX(FeedContract)` with a fixture `bed`.  A bed serves a small market of at least two regions, with a price, a capacity word and a quota
in each, and can spoil it in one way at a time.  Every test reads the healthy market first and says how the spoilt one differs.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from planner.clouds.feeds.again import Again
from planner.clouds.feeds.port import Fed, Feed, Wanted
from planner.model.diagnostic import Severity
from planner.model.errors import CloudError
from planner.model.readings import CapacityReading, CapacityWord, PriceReading, QuotaReading
from planner.model.record import moment

KINDS = ("prices", "capacity", "quotas")
FAILED, SENSELESS, FUTURE, CURRENCY_OR_UNIT = "SKY-CAT-115", "SKY-CAT-116", "SKY-CAT-117", "SKY-CAT-119"


@dataclass(frozen=True)
class Spoilt:
    """What a spoilt row was about: only readings of this region that the pattern fits may be missing, and at least one is.

    lost   the start of `series` or of a quota's `name`; "" = any of the region
    """

    region: str
    lost: str = ""

    def about(self, region: str, reading: Any) -> bool:
        """Whether the row said this."""
        name = reading.name if isinstance(reading, QuotaReading) else reading.series
        return region == self.region and name.startswith(self.lost)


@dataclass
class Waits:
    """The waits of one feed: nobody sleeps."""

    drawn: float = 0.5
    seconds: list[float] = field(default_factory=list)

    def again(self, **changed: Any) -> Again:
        return Again(pause=self.seconds.append, draw=lambda: self.drawn, **changed)


class Bed(abc.ABC):
    """An emulated cloud with a market.  What a cloud cannot be made to do answers None or False, and its test is skipped.

    cloud     as series name it
    regions   two or more
    types     by region: wanted, and sold there
    unwanted  a type that the emulator sells as well and nobody asks for
    now       the caller's clock: no healthy row is later
    """

    cloud: str
    regions: tuple[str, ...]
    types: dict[str, tuple[str, ...]]
    unwanted: str
    now: datetime

    def wanted(self, **changed: Any) -> Wanted:
        return Wanted(**{"regions": self.regions, "instance_types": self.types, "now": self.now, **changed})

    @abc.abstractmethod
    def feed(self, again: Again) -> Feed:
        """A feed of this cloud with its real SDK, as who may read everything."""

    @abc.abstractmethod
    def nobody(self, again: Again) -> Feed:
        """A feed without any credentials; making it may raise already."""

    @abc.abstractmethod
    def calls(self) -> int:
        """Requests that reached the emulator, refused ones included."""

    @abc.abstractmethod
    def throttle(self, times: int, after: float | None = None) -> bool:
        """The next so many requests are told to come later; `after`: with so many seconds named."""

    @abc.abstractmethod
    def down(self, region: str) -> None:
        """From now on nothing of that region answers."""

    @abc.abstractmethod
    def deny(self, region: str) -> None:
        """From now on that region refuses the caller."""

    @abc.abstractmethod
    def small_pages(self, what: str) -> bool:
        """Every list comes in as many pages as it can."""

    def endless(self, what: str) -> bool:
        """A list has a next page for ever, always the same one."""
        return False

    @abc.abstractmethod
    def shuffle(self) -> None:
        """Every list comes in another order."""

    def malform(self, what: str) -> Sequence[Spoilt]:
        """Rows that make no sense (no number, a field missing, a negative price), each in turn of another kind."""
        return ()

    def future(self, what: str) -> Spoilt | None:
        """A row is an hour later than `now`."""
        return None

    def currency(self) -> Spoilt | None:
        """A price is in euros."""
        return None

    def unit(self) -> Spoilt | None:
        """A price is per second, or per month, or per something else."""
        return None


def read(feed: Feed, what: str, wanted: Wanted) -> dict[str, Fed]:
    """All of it, by region, in the order it came."""
    found = list(getattr(feed, what)(wanted))
    assert len({fed.region for fed in found}) == len(found), "a region came twice"
    return {fed.region: fed for fed in found}


def readings(fed: Fed) -> tuple[PriceReading | CapacityReading | QuotaReading, ...]:
    return (*fed.prices, *fed.capacity, *fed.quotas)


def everything(found: dict[str, Fed]) -> set[tuple[str, Any]]:
    return {(region, reading) for region, fed in found.items() for reading in readings(fed)}


def codes(fed: Fed) -> set[str]:
    return {warning.code for warning in fed.warnings}


class FeedContract:
    """See the module.  Each cloud's class brings the fixture `bed`."""

    @pytest.fixture(params=KINDS)
    def what(self, request: pytest.FixtureRequest) -> str:
        return request.param

    @pytest.fixture
    def waits(self) -> Waits:
        return Waits()

    @pytest.fixture
    def healthy(self, bed: Bed, what: str) -> dict[str, Fed]:
        return read(bed.feed(Waits().again()), what, bed.wanted())

    def test_every_region_is_answered_in_order_and_whole(self, bed, what, healthy):
        assert tuple(healthy) == bed.regions
        for fed in healthy.values():
            assert fed.complete, fed.warnings
            assert fed.warnings == ()
            assert getattr(fed, what)
            assert {bool(fed.prices), bool(fed.capacity), bool(fed.quotas)} == {True, False}

    def test_no_reading_is_of_what_nobody_wanted(self, bed, healthy):
        for region, fed in healthy.items():
            for one in readings(fed):
                assert (one.cloud, one.region) == (bed.cloud, region)
                assert one.source
                assert moment(one.observed_at) <= bed.now + timedelta(minutes=1)
                if isinstance(one, QuotaReading):
                    assert set(one.instance_types) <= set(bed.types[region])
                else:
                    assert one.instance_type in bed.types[region]

    def test_readings_are_values_that_can_be_kept(self, healthy):
        for fed in healthy.values():
            assert len(set(fed.prices)) == len(fed.prices)
            for price in fed.prices:
                assert isinstance(price.usd_per_hour, Decimal)
                assert price.usd_per_hour > 0
                assert price.capacity in {"on_demand", "spot"}
            for seen in fed.capacity:
                assert isinstance(seen.word, CapacityWord)
            for quota in fed.quotas:
                assert quota.unit in {"gpus", "vcpus"}
                assert quota.limit >= 0
                assert quota.name

    def test_one_series_is_said_once_per_moment(self, healthy):
        for fed in healthy.values():
            for said in (fed.prices, fed.capacity):
                keys = [(one.series, one.observed_at) for one in said]
                assert len(set(keys)) == len(keys)

    def test_regions_come_in_the_order_asked_for(self, bed, what, healthy, waits):
        turned = tuple(reversed(bed.regions))
        found = read(bed.feed(waits.again()), what, bed.wanted(regions=turned))
        assert tuple(found) == turned
        assert found == healthy

    def test_a_region_is_the_same_alone(self, bed, what, healthy, waits):
        first = bed.regions[0]
        assert read(bed.feed(waits.again()), what, bed.wanted(regions=(first,))) == {first: healthy[first]}

    def test_the_order_of_the_clouds_rows_says_nothing(self, bed, what, healthy, waits):
        bed.shuffle()
        found = read(bed.feed(waits.again()), what, bed.wanted())
        assert list(found.items()) == list(healthy.items())

    def test_fewer_types_are_fewer_readings_and_no_others(self, bed, what, healthy, waits):
        region = bed.regions[0]
        gone = bed.types[region][0]
        fewer = {**bed.types, region: tuple(t for t in bed.types[region] if t != gone)}
        found = read(bed.feed(waits.again()), what, bed.wanted(instance_types=fewer))
        if what == "quotas":
            assert all(gone not in quota.instance_types for quota in found[region].quotas)
        else:
            assert everything(found) == {
                (r, one) for r, one in everything(healthy) if (r, one.instance_type) != (region, gone)
            }

    def test_wanted_zones_bound_the_readings(self, bed, what, healthy, waits):
        region = bed.regions[0]
        zones = sorted({one.zone for one in (*healthy[region].prices, *healthy[region].capacity)} - {""})
        if not zones:
            pytest.skip("nothing of this is told by zone")
        found = read(bed.feed(waits.again()), what, bed.wanted(zones={region: (zones[0],)}))
        expected = {(r, one) for r, one in everything(healthy) if r != region or one.zone in {"", zones[0]}}
        assert everything(found) == expected

    def test_nothing_wanted_asks_nothing(self, bed, what, waits):
        feed, before = bed.feed(waits.again()), bed.calls()
        assert read(feed, what, bed.wanted(regions=())) == {}
        assert bed.calls() == before
        found = read(feed, what, bed.wanted(instance_types={}))
        assert tuple(found) == bed.regions
        if what != "quotas":
            assert everything(found) == set()

    def test_all_pages_are_read(self, bed, what, healthy, waits):
        before = bed.calls()
        read(bed.feed(waits.again()), what, bed.wanted())
        whole, before = bed.calls() - before, bed.calls()
        if not bed.small_pages(what):
            pytest.skip("this comes in one piece")
        assert read(bed.feed(waits.again()), what, bed.wanted()) == healthy
        assert bed.calls() - before > whole

    def test_pages_without_end_end(self, bed, what, waits):
        if not bed.endless(what):
            pytest.skip("this comes in one piece")
        found = read(bed.feed(waits.again()), what, bed.wanted())
        assert any(FAILED in codes(fed) and not fed.complete for fed in found.values())

    def test_what_is_throttled_is_asked_again(self, bed, what, healthy, waits):
        if not bed.throttle(2):
            pytest.skip("cannot be throttled")
        assert read(bed.feed(waits.again(base_seconds=1.0)), what, bed.wanted()) == healthy
        assert waits.seconds == [0.5, 1.0]  # half of 1, half of 2: the second wait is drawn from twice the span

    def test_waits_have_jitter(self, bed, what, waits):
        if not bed.throttle(2):
            pytest.skip("cannot be throttled")
        waits.drawn = 0.25
        read(bed.feed(waits.again(base_seconds=1.0)), what, bed.wanted())
        assert waits.seconds == [0.25, 0.5]

    def test_a_wait_that_the_cloud_names_is_kept(self, bed, what, healthy, waits):
        if not bed.throttle(1, after=7.0):
            pytest.skip("this cloud names no wait")
        assert read(bed.feed(waits.again()), what, bed.wanted()) == healthy
        assert waits.seconds == [7.0]

    def test_asking_again_ends(self, bed, what, waits):
        if not bed.throttle(1_000_000):
            pytest.skip("cannot be throttled")
        before = bed.calls()
        found = read(bed.feed(waits.again(attempts=3)), what, bed.wanted())
        assert tuple(found) == bed.regions
        for region, fed in found.items():
            assert not fed.complete
            assert readings(fed) == ()
            assert codes(fed) == {FAILED}
            assert all(region in warning.summary for warning in fed.warnings)
        assert bed.calls() - before < 200
        assert waits.seconds

    def test_one_region_down_is_a_warning_and_the_others_go_on(self, bed, what, healthy, waits):
        first, *others = bed.regions
        bed.down(first)
        found = read(bed.feed(waits.again(attempts=2)), what, bed.wanted())
        self._one_failed(found, healthy, first, others)

    def test_one_region_that_refuses_us_is_a_warning_and_is_not_asked_again(self, bed, what, healthy, waits):
        last = bed.regions[-1]
        others = bed.regions[:-1]
        bed.deny(last)
        found = read(bed.feed(waits.again()), what, bed.wanted())
        self._one_failed(found, healthy, last, others)
        assert waits.seconds == []

    @staticmethod
    def _one_failed(found, healthy, failed, others):
        assert tuple(found) == tuple(healthy)
        assert {r: found[r] for r in others} == {r: healthy[r] for r in others}
        assert not found[failed].complete
        assert codes(found[failed]) == {FAILED}
        assert all(failed in w.summary and w.severity is Severity.WARNING for w in found[failed].warnings)
        assert set(readings(found[failed])) < set(readings(healthy[failed]))

    def test_a_row_that_makes_no_sense_is_named_and_left_out(self, bed, what, healthy, waits):
        spoilt = bed.malform(what)
        if not spoilt:
            pytest.skip("no such row")
        found = read(bed.feed(waits.again()), what, bed.wanted())
        for one in spoilt:
            assert SENSELESS in codes(found[one.region])
        self._only_those_are_missing(found, healthy, spoilt)

    def test_a_row_from_the_future_is_named_and_left_out(self, bed, what, healthy, waits):
        spoilt = bed.future(what)
        if spoilt is None:
            pytest.skip("rows bear no time of their own")
        found = read(bed.feed(waits.again()), what, bed.wanted())
        assert codes(found[spoilt.region]) == {FUTURE}
        self._only_those_are_missing(found, healthy, [spoilt])

    def test_half_a_minute_is_no_skew(self, bed, what, healthy, waits):
        """The clocks of two machines differ."""
        newest = max(moment(one.observed_at) for fed in healthy.values() for one in readings(fed))
        at = min(newest - timedelta(seconds=30), bed.now)
        found = read(bed.feed(waits.again()), what, bed.wanted(now=at))
        assert all(FUTURE not in codes(fed) for fed in found.values())

    @pytest.mark.parametrize("trap", ["currency", "unit"])
    def test_a_price_in_other_money_or_another_unit_is_named_and_left_out(self, bed, trap, waits):
        healthy = read(bed.feed(Waits().again()), "prices", bed.wanted())
        spoilt = getattr(bed, trap)()
        if spoilt is None:
            pytest.skip("prices bear none")
        found = read(bed.feed(waits.again()), "prices", bed.wanted())
        assert codes(found[spoilt.region]) == {CURRENCY_OR_UNIT}
        self._only_those_are_missing(found, healthy, [spoilt])

    @staticmethod
    def _only_those_are_missing(found, healthy, spoilt):
        missing = everything(healthy) - everything(found)
        assert everything(found) <= everything(healthy), "nothing may be made up"
        assert missing
        for region, reading in missing:
            assert any(one.about(region, reading) for one in spoilt), reading
        for one in spoilt:
            assert any(one.about(region, reading) for region, reading in missing), f"{one} went unnoticed"
            assert not found[one.region].complete
            assert all(w.severity is Severity.WARNING for w in found[one.region].warnings)

    def test_without_credentials_nothing_can_be_asked(self, bed, what, waits):
        with pytest.raises(CloudError):
            list(getattr(bed.nobody(waits.again()), what)(bed.wanted()))

    def test_a_feed_can_be_asked_twice(self, bed, what, healthy, waits):
        feed = bed.feed(waits.again())
        assert read(feed, what, bed.wanted()) == read(feed, what, bed.wanted()) == healthy

    def test_a_later_clock_changes_no_figure(self, bed, what, healthy, waits):
        later = bed.now + timedelta(minutes=5)
        found = read(bed.feed(waits.again()), what, bed.wanted(now=later))
        still = {(region, replace(one, observed_at="")) for region, one in everything(found)}
        assert still == {(region, replace(one, observed_at="")) for region, one in everything(healthy)}
