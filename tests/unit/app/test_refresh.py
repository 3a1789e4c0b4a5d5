"""Clouds asked at once: what is kept, what is a warning, and that nobody waits for anybody (R17)."""

import itertools
import threading
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from catalog.load import load_market
from planner.app import refresh as refreshing
from planner.app.markets import told_by
from planner.app.refresh import Asked, refresh
from planner.clouds.feeds.port import Fed
from planner.model.diagnostic import Diagnostic, Severity
from planner.model.errors import MissingPart, PermissionDenied, Unavailable
from planner.model.offer import Cloud
from planner.model.project import Project, Target, default_targets
from planner.model.readings import CapacityReading, CapacityWord, PriceReading, QuotaReading
from planner.model.record import stamp
from planner.state.history import History

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
MARKET = load_market()


@dataclass
class Feed:
    """Says one price, one word and one quota per region; `broken` regions fail, `error` is raised instead of any answer."""

    where: object = None
    broken: tuple = ()
    error: Exception | None = None
    asked: list = field(default_factory=list)
    gate: threading.Barrier | None = None

    def _each(self, wanted, kind):
        if self.gate is not None:
            self.gate.wait(10)  # passes only when the other clouds are asked too
        self.asked.append((kind, wanted))
        if self.error is not None:
            raise self.error
        for region in wanted.regions:
            if region in self.broken:
                summary = f"x {region}: down"
                warning = Diagnostic(code="SKY-CAT-115", summary=summary, severity=Severity.WARNING)
                yield Fed(region=region, complete=False, warnings=(warning,))
                continue
            common = {
                "cloud": self.where.cloud,
                "region": region,
                "capacity": "spot",
                "observed_at": stamp(wanted.now),
                "source": "s",
            }
            place = {"zone": "", "instance_type": wanted.instance_types[region][0]}
            yield {
                "prices": Fed(region=region, prices=(PriceReading(**common, **place, usd_per_hour=Decimal(1)),)),
                "capacity": Fed(
                    region=region, capacity=(CapacityReading(**common, **place, word=CapacityWord.OFFERED),)
                ),
                "quotas": Fed(
                    region=region, quotas=(QuotaReading(**common, name="q", unit="gpus", limit=1.0, used=None),)
                ),
            }[kind]

    def prices(self, wanted):
        return self._each(wanted, "prices")

    def capacity(self, wanted):
        return self._each(wanted, "capacity")

    def quotas(self, wanted):
        return self._each(wanted, "quotas")


@dataclass
class Feeds:
    """A feed by target name and cloud; an exception in its place is raised."""

    made: dict
    asked: list = field(default_factory=list)

    def feed(self, where):
        self.asked.append(where)
        found = self.made[where.cloud, where.target]
        if isinstance(found, Exception):
            raise found
        found.where = where
        return found


@dataclass(frozen=True)
class Took:
    new: int = 0
    unchanged: int = 0
    refused: tuple = ()


@dataclass
class Kept:
    """What was given to be kept, and by which thread."""

    taken: list = field(default_factory=list)
    quotas: list = field(default_factory=list)
    live: set = field(default_factory=set)
    threads: set = field(default_factory=set)
    error: Exception | None = None

    def record(self, readings, *, now, live=True):
        if self.error is not None:
            raise self.error
        self.threads.add(threading.current_thread())
        self.live.add(live)
        known = {r.series for r in self.taken}
        new = [r for r in readings if r.series not in known]
        self.taken += readings
        return Took(new=len(new), unchanged=len(readings) - len(new))

    def record_quotas(self, target, quotas):
        self.quotas += [(target, q) for q in quotas]
        return Took(new=len(quotas))


def project(*targets):
    return Project(name="acme", targets=targets or default_targets(), default_targets=not targets)


def target(cloud, name="default", **given):
    return Target(name=name, cloud=Cloud(cloud), **given)


def feeds(**special):
    made = {(c.value, "default"): Feed() for c in Cloud}
    return Feeds({**made, **{(cloud, "default"): feed for cloud, feed in special.items()}})


def regions(cloud):
    return {(a, r.name) for a in [cloud] for r in MARKET.regions if r.cloud.value == cloud}


def test_every_cloud_region_and_kind_is_asked_and_kept():
    kept = Kept()
    done = refresh(Asked(now=NOW), project(), MARKET, feeds(), kept)
    assert done.anything
    assert done.warnings == ()
    assert {a.cloud for a in done.answers} == {"aws", "gcp", "azure", "nebius"}
    assert {a.kind for a in done.answers} == {"prices", "capacity", "quotas"}
    assert all(a.complete and a.new == 1 for a in done.answers if a.kind in {"prices", "quotas"})
    assert len(kept.taken) == sum(a.kind != "quotas" for a in done.answers)
    assert kept.threads == {threading.current_thread()}, "one writer"
    assert kept.live == {True}
    assert [(a.cloud, a.target, a.region) for a in done.answers] == sorted(
        (a.cloud, a.target, a.region) for a in done.answers
    )


def test_what_is_wanted_is_what_the_catalog_has_there():
    asked = feeds()
    refresh(Asked(now=NOW, clouds=("aws",), kinds=("prices",)), project(), MARKET, asked, None)
    ((_, wanted),) = asked.made["aws", "default"].asked
    assert "p5.48xlarge" in wanted.instance_types["us-east-1"]
    assert {"use1-az1", "use1-az4"} <= set(wanted.zones["us-east-1"])
    assert set(wanted.instance_types) == set(wanted.regions)
    assert wanted.now == NOW
    opt_in = {r.name for r in MARKET.regions if r.cloud is Cloud.AWS and r.opt_in}
    assert opt_in
    assert not opt_in & set(wanted.regions)


def test_zones_of_a_cloud_with_regional_prices_are_left_open():
    asked = feeds()
    refresh(Asked(now=NOW, clouds=("azure",), kinds=("prices",)), project(), MARKET, asked, None)
    ((_, wanted),) = asked.made["azure", "default"].asked
    assert wanted.regions
    assert wanted.zones == {}


def test_an_opt_in_region_is_asked_where_the_target_or_the_caller_names_it():
    opt_in = next(
        r.name
        for r in MARKET.regions
        if r.cloud is Cloud.AWS and r.opt_in and ("aws", r.name) in refreshing._sold(MARKET)
    )
    for given, asked in (
        (target("aws", opt_in_zones=(opt_in,)), Asked(now=NOW)),
        (target("aws"), Asked(now=NOW, regions=(opt_in,))),
    ):
        (account,) = refreshing.accounts(asked, project(given), MARKET)["aws"]
        assert opt_in in account.wanted.regions


def test_regions_are_those_that_target_and_caller_allow():
    given = project(target("aws", regions=("us-*",)))
    done = refresh(Asked(now=NOW, regions=("*-east-*", "eu-*")), given, MARKET, feeds(), None)
    assert {a.region for a in done.answers} == {"us-east-1", "us-east-2"}


def test_clouds_are_asked_at_once():
    gate = threading.Barrier(2)
    asked = feeds(aws=Feed(gate=gate), gcp=Feed(gate=gate))
    done = refresh(Asked(now=NOW, clouds=("aws", "gcp"), kinds=("prices",)), project(), MARKET, asked, None)
    assert done.warnings == ()


@pytest.mark.parametrize(
    "error",
    [
        MissingPart([Diagnostic(code="SKY-APPLY-316", summary="install it")]),
        PermissionDenied([Diagnostic(code="SKY-APPLY-317", summary="no usable credentials")]),
        Unavailable([Diagnostic(code="SKY-APPLY-326", summary="not there")]),
    ],
)
@pytest.mark.parametrize("when", ["made", "asked"])
def test_one_cloud_that_cannot_be_asked_is_a_warning_and_the_others_go_on(error, when):
    asked = feeds(gcp=error if when == "made" else Feed(error=error))
    done = refresh(Asked(now=NOW), project(), MARKET, asked, Kept())
    assert {a.cloud for a in done.answers} == {"aws", "azure", "nebius"}
    assert all("gcp:default" in w.summary and w.severity is Severity.WARNING for w in done.warnings)
    assert [w.code for w in done.warnings] == [error.diagnostics[0].code], "said once"
    assert done.anything


def test_one_region_down_is_a_warning_and_the_others_are_kept():
    kept = Kept()
    asked = Asked(now=NOW, clouds=("aws",), kinds=("prices",))
    done = refresh(asked, project(), MARKET, feeds(aws=Feed(broken=("us-east-1",))), kept)
    by_region = {a.region: a for a in done.answers}
    assert not by_region["us-east-1"].complete
    assert by_region["us-west-2"].new == 1
    assert [w.code for w in done.warnings] == ["SKY-CAT-115"]


def test_nothing_at_all_is_nothing():
    nobody = PermissionDenied([Diagnostic(code="SKY-APPLY-317", summary="no")])
    done = refresh(Asked(now=NOW), project(), MARKET, feeds(**{c.value: nobody for c in Cloud}), Kept())
    assert not done.anything
    assert len(done.warnings) == 4


def test_regions_that_are_all_down_are_nothing():
    down = Feed(broken=tuple(r.name for r in MARKET.regions))
    done = refresh(Asked(now=NOW, clouds=("nebius",)), project(), MARKET, feeds(nebius=down), Kept())
    assert not done.anything


def test_a_second_target_is_asked_only_for_quotas_and_for_what_the_first_did_not_answer():
    given = project(target("aws", "prod"), target("aws", "test"))
    first, second = Feed(broken=("us-east-1",)), Feed()
    kept = Kept()
    done = refresh(Asked(now=NOW), given, MARKET, Feeds({("aws", "prod"): first, ("aws", "test"): second}), kept)
    by_kind = dict(second.asked)
    assert by_kind["prices"].regions == ("us-east-1",)
    assert len(by_kind["quotas"].regions) > 10
    assert {t for t, _ in kept.quotas} == {"prod", "test"}
    assert ("aws", "test", "us-east-1", "prices") in {(a.cloud, a.target, a.region, a.kind) for a in done.answers}


def test_without_a_keeper_everything_is_read_and_nothing_kept():
    done = refresh(Asked(now=NOW, clouds=("nebius",)), project(), MARKET, feeds(), None)
    assert {(a.read, a.new, a.unchanged) for a in done.answers} == {(1, 0, 0)}


def test_a_second_refresh_is_unchanged():
    kept, asked = Kept(), Asked(now=NOW, clouds=("aws",), kinds=("prices",))
    refresh(asked, project(), MARKET, feeds(), kept)
    done = refresh(replace(asked, now=NOW + timedelta(hours=1)), project(), MARKET, feeds(), kept)
    assert {(a.new, a.unchanged) for a in done.answers} == {(0, 1)}


def test_a_history_is_kept_as_what_was_known_then():
    kept = Kept()
    refresh(Asked(now=NOW, since=NOW - timedelta(days=30), clouds=("aws",)), project(), MARKET, feeds(), kept)
    assert kept.live == {False}


def test_what_the_keeper_cannot_take_is_raised():
    """A database that is gone is no cloud's fault."""
    with pytest.raises(Unavailable):
        refresh(Asked(now=NOW), project(), MARKET, feeds(), Kept(error=Unavailable([])))


def test_a_fault_of_ours_is_raised():
    with pytest.raises(ZeroDivisionError):
        refresh(Asked(now=NOW), project(), MARKET, feeds(aws=Feed(error=ZeroDivisionError())), None)


def test_progress_is_told_once_per_answer():
    told = []
    asked = Asked(now=NOW, clouds=("nebius", "gcp"))
    done = refresh(asked, project(), MARKET, feeds(), None, advance=told.append)
    assert len(told) == len(done.answers) == refreshing.pieces(asked, project(), MARKET)


def test_the_caller_asks_and_not_the_orchestrator():
    """The orchestrator's role may launch, end and describe, and not read prices."""
    given = project(target("aws", orchestrator_role="arn:o", deployer_role="arn:d", account="123456789012"))
    asked = feeds()
    refresh(Asked(now=NOW), given, MARKET, asked, None)
    assert {(w.role, w.account) for w in asked.asked} == {(None, "123456789012")}


def test_what_is_kept_later_was_not_known_before(tmp_path):
    """A plan that is made while a refresh goes on stays what it is, whatever the refresh learns after it."""
    history = History.open(f"sqlite:///{tmp_path / 'record.sqlite'}", "acme")
    told = []

    class Watched(Kept):
        def record(self, readings, *, now, live=True):
            took = history.record(readings, now=now, live=live)
            told.append(told_by(history, None))
            return took

    clock = itertools.count(0, 7)
    asked = Asked(clouds=("nebius",), kinds=("prices", "capacity"), now=NOW)
    refresh(asked, project(), MARKET, feeds(), Watched(), elapsed=lambda: float(next(clock)))
    assert len(told) > 3
    for then in told:
        again = told_by(history, then.at)
        assert again.quotes.series == then.quotes.series
        assert again.capacity == then.capacity
    assert told[0].at == NOW + timedelta(seconds=7)
    history.close()


def test_the_clock_runs_by_itself():
    moments = []

    class Timed(Kept):
        def record(self, readings, *, now, live=True):
            moments.append(now)
            return super().record(readings, now=now, live=live)

    refresh(Asked(clouds=("aws",), now=NOW), project(), MARKET, feeds(), Timed())
    assert moments == sorted(moments)
    assert NOW < moments[0] < moments[-1] < NOW + timedelta(minutes=5)
