"""The market made of a history: which price stands, what words about capacity mean for a plan, and that any past plan can be made again byte for byte (R20, R22, R24)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random

import numpy as np
import pytest

from catalog.load import load_market
from planner.app import inputs
from planner.app.markets import market_with_history, priced, told_by
from planner.app.plan import Planned, Request, run
from planner.app.snapshots import read_snapshot, snapshot_text
from planner.model.errors import InputError
from planner.model.market import BLOCKING, UNKNOWN_PRICE, Mark, Market
from planner.model.offer import CAPACITY_ORDER
from planner.model.plan import PlacementPlan
from planner.model.readings import CapacityReading, CapacityWord, PriceReading
from planner.model.record import stamp
from planner.state.engine import sqlite_url
from planner.state.history import History

NOW = datetime(2026, 11, 30, 12, 0, 0, 500_000, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
JOB = """name: next
resources: {accelerators: ["H100:8"], capacity: [spot]}
work: {hours: 10, on: "H100:8"}
run: "true"
constraints: {clouds: [aws], regions: [us-east-1]}
"""


@pytest.fixture(scope="module")
def catalog() -> Market:
    return load_market()


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[History]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text(JOB)
    it = History.open(sqlite_url(inputs.RECORD_FILE), "default")
    yield it
    it.close()


def place(series: str) -> dict[str, str]:
    cloud, region, zone, kind, capacity = series.split("/")
    zone = zone.removeprefix("-")
    return {"cloud": cloud, "region": region, "zone": zone, "instance_type": kind, "capacity": capacity}


def price(series: str, usd: str | Decimal, at: datetime, source: str = "feed") -> PriceReading:
    return PriceReading(usd_per_hour=Decimal(usd), observed_at=stamp(at), source=source, **place(series))


def word(series: str, said: CapacityWord, at: datetime, detail: str = "") -> CapacityReading:
    return CapacityReading(word=said, observed_at=stamp(at), source="feed", detail=detail, **place(series))


def row_of(market: Market, series: str) -> int:
    want = place(series)
    for row in range(len(market)):
        t, r = market.types[market.type_ix[row]], market.regions[market.region_ix[row]]
        found = (t.cloud.value, r.name, market.zones[market.zone_ix[row]], t.name, CAPACITY_ORDER[market.capacity[row]])
        if found == tuple(want.values()):
            return row
    raise AssertionError(series)


def spot_of_job(market: Market) -> list[str]:
    """Series that JOB can have, cheapest first."""
    kinds = {k for k, t in enumerate(market.types) if t.name == "p5.48xlarge"}
    rows = [
        row
        for row in range(len(market))
        if market.type_ix[row] in kinds
        and market.regions[market.region_ix[row]].name == "us-east-1"
        and CAPACITY_ORDER[market.capacity[row]] == "spot"
        and market.price_micros[row] != UNKNOWN_PRICE
        and not market.marks[row] & int(BLOCKING)
    ]
    rows.sort(key=lambda row: market.price_micros[row])
    return [f"aws/us-east-1/{market.zones[market.zone_ix[row]]}/p5.48xlarge/spot" for row in rows]


def planned(now: datetime = NOW, **given: object) -> Planned:
    (one,) = run(Request(job_files=(Path("job.yaml"),), **given), now).planned  # pyright: ignore[reportArgumentType]
    return one


def choice(now: datetime = NOW, **given: object) -> tuple[str, Decimal]:
    best = planned(now, **given).plan.choice
    return best.zone, best.node_usd_per_hour


def test_newer_prices_replace_the_catalogs_and_are_judged_by_its_rules(catalog: Market, history: History) -> None:
    first, second, third = spot_of_job(catalog)[:3]
    history.record([price(first, "17.25", NOW), price(second, "0.01", NOW), price(third, "5000", NOW)], now=NOW)
    found = market_with_history(catalog, history, None)
    row, cheap, dear = (row_of(catalog, name) for name in (first, second, third))
    assert found.price_micros[row] == 17_250_000
    assert found.sources[found.source_ix[row]] == "feed"
    assert found.price_day[row] == (NOW.date() - datetime(1970, 1, 1, tzinfo=UTC).date()).days
    assert not found.marks[row] & ~int(Mark.OPT_IN_ZONE)
    assert found.marks[cheap] & int(Mark.IMPLAUSIBLE)
    assert found.marks[dear] & int(Mark.IMPLAUSIBLE)
    assert found.as_of == "2026-11-30T12:00:01Z"
    assert found.digest != catalog.digest
    others = np.ones(len(catalog), dtype=bool)
    others[[row, cheap, dear]] = False
    assert (found.price_micros == catalog.price_micros)[others].all()
    # what the catalog has of other rows grows old, and nothing else
    changed = (found.marks ^ catalog.marks)[others]
    assert not np.any(changed & ~int(Mark.STALE | Mark.SPOT_NOT_CHEAPER | Mark.UNVERIFIED))
    assert np.any(changed & int(Mark.STALE))
    with pytest.raises(ValueError, match="read-only"):
        found.price_micros[0] = 1


def test_an_older_price_does_not_replace_a_newer_one_but_for_a_plan_of_then(catalog: Market, history: History) -> None:
    first = spot_of_job(catalog)[0]
    row = row_of(catalog, first)
    old = datetime(2022, 5, 1, tzinfo=UTC)
    history.record([price(first, "17.25", old)], now=NOW, live=False)
    assert market_with_history(catalog, history, None).price_micros[row] == catalog.price_micros[row]
    then = market_with_history(catalog, history, old + DAY)
    assert (then.price_micros[row], then.as_of) == (17_250_000, "2022-05-02T00:00:00Z")
    before = market_with_history(catalog, history, old - DAY)
    assert before is catalog


def test_a_regional_price_holds_in_every_zone_without_its_own(catalog: Market, history: History) -> None:
    names = spot_of_job(catalog)
    regional = "aws/us-east-1/-/p5.48xlarge/spot"
    history.record([price(regional, "20", NOW), price(names[1], "19", NOW)], now=NOW)
    found = market_with_history(catalog, history, None)
    prices = [int(found.price_micros[row_of(catalog, name)]) for name in names]
    assert prices == [19_000_000 if k == 1 else 20_000_000 for k in range(len(names))]


def test_of_two_sources_that_disagree_the_dearer_is_paid_and_the_offer_marked(
    catalog: Market, history: History
) -> None:
    first, second = spot_of_job(catalog)[:2]
    told = [price(first, "17", NOW), price(first, "21", NOW, "list"), price(second, "20", NOW)]
    history.record([*told, price(second, "20.1", NOW, "list")], now=NOW)
    found = market_with_history(catalog, history, None)
    row, near = row_of(catalog, first), row_of(catalog, second)
    assert (found.price_micros[row], found.marks[row] & int(Mark.SOURCES_DISAGREE) != 0) == (21_000_000, True)
    assert (found.price_micros[near], found.marks[near] & int(Mark.SOURCES_DISAGREE) != 0) == (20_100_000, False)


def test_a_plan_buys_at_the_records_prices(catalog: Market, history: History) -> None:
    before = choice()
    names = spot_of_job(catalog)
    last = names[-1].split("/")[2]
    history.record([price(name, "20" if name.split("/")[2] != last else "17", NOW) for name in names], now=NOW)
    assert before == choice(offline=True) != (last, Decimal(17))
    assert choice() == (last, Decimal(17))
    (best,) = planned().plan.ranked[:1]
    assert (best.price_source, best.price_as_of) == ("feed", "2026-11-30")
    named = planned().plan.inputs
    assert named["market"]["source"] == "record"
    assert named["catalog"] == {"digest": catalog.digest, "as_of": catalog.as_of}
    Path("skyplan.yaml").write_text("project: default\nmarket: {source: catalog}\n")
    assert choice() == before
    assert "market" not in planned().plan.inputs


def test_a_snapshot_says_what_the_record_said(catalog: Market, history: History) -> None:
    names = spot_of_job(catalog)
    history.record([price(name, str(17 + k), NOW) for k, name in enumerate(names)], now=NOW)
    history.record(
        [word(names[0], CapacityWord.NONE, NOW, "ICE"), word(names[1], CapacityWord.WITHDRAWN, NOW)], now=NOW
    )
    told = told_by(history, None)
    assert told is not None
    with_record = planned().plan
    Path("conf").mkdir()
    Path("conf/market.json").write_text(snapshot_text(told))
    Path("conf/skyplan.yaml").write_text("project: default\nmarket: {source: market.json}\n")
    for offline in (False, True):
        found = planned(project_file=Path("conf/skyplan.yaml"), offline=offline).plan
        assert [(p.offer_id, p.total_usd) for p in found.ranked] == [
            (p.offer_id, p.total_usd) for p in with_record.ranked
        ]
        assert found.inputs["availability"] == with_record.inputs["availability"]
        assert found.inputs["market"] == with_record.inputs["market"] | {"source": "market.json"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"17"', '"0"'),
        ('"17"', '"sNaN"'),
        ('"1.0"', '"9.0"'),
        ("p5.48xlarge/", ""),
        ('"prices"', '"cost"'),
        ("2026-11", "11"),
        ("2026-11", "0001-11"),
        ("2026-11", "9999-11"),
        ('"at": "2026-11', '"at": "2027-11'),
        ('"seen": "2026-11', '"seen": "2027-11'),
        ("spot", "spot\\u0000"),
        ('"17"', "9" * 5000),
        ("}\n", ""),
    ],
)
def test_a_broken_snapshot_is_refused(catalog: Market, history: History, old: str, new: str) -> None:
    history.record([price(spot_of_job(catalog)[0], "17", NOW)], now=NOW)
    told = told_by(history, None)
    assert told is not None
    text = snapshot_text(told)
    assert old in text
    path = Path("m.json")
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError) as error:
        read_snapshot(path, shown="m.json", at=None, least="2026-01-01")
    assert [d.code for d in error.value.diagnostics] == ["SKY-CAT-101"]


def test_capacity_words_bend_a_plan_and_fade(catalog: Market, history: History) -> None:
    names = spot_of_job(catalog)
    zones = [name.split("/")[2] for name in names]
    history.record([price(name, str(17 + k), NOW) for k, name in enumerate(names)], now=NOW)
    assert choice()[0] == zones[0]
    history.record([word(names[0], CapacityWord.NONE, NOW, "InsufficientInstanceCapacity")], now=NOW)
    assert choice()[0] == zones[1]
    rejected = {r.code for r in planned().plan.rejected}
    assert "SKY-REJ-208" in rejected or any("InsufficientInstanceCapacity" in str(r) for r in planned().plan.rejected)
    # an hour later it may be tried again, or as soon as it was seen
    history.record([price(names[0], "17", NOW)], now=NOW + 2 * HOUR)
    assert choice(NOW + 2 * HOUR)[0] == zones[0]
    history.record([word(names[0], CapacityWord.RECLAIMED, NOW + 2 * HOUR)], now=NOW + 2 * HOUR)
    assert choice(NOW + 2 * HOUR)[0] == zones[1]
    history.record([word(names[0], CapacityWord.AVAILABLE, NOW + 2 * HOUR + HOUR / 9)], now=NOW + 2 * HOUR + HOUR / 9)
    assert choice(NOW + 3 * HOUR)[0] == zones[0]
    history.record([word(names[0], CapacityWord.WITHDRAWN, NOW + 3 * HOUR)], now=NOW + 3 * HOUR)
    assert choice(NOW + 3 * HOUR)[0] == zones[1]


def test_series_that_the_catalog_lacks_are_named_and_not_sold(catalog: Market, history: History) -> None:
    first = spot_of_job(catalog)[0]
    strange = ["aws/us-east-1/use1-az1/p9.48xlarge/spot", "aws/mars-1/m1/p5.48xlarge/spot"]
    long_ago = price("aws/us-east-1/use1-az1/p1.gone/spot", "1", NOW - 90 * DAY)
    history.record([long_ago], now=NOW, live=False)
    history.record([price(first, "17", NOW), *(price(name, "1", NOW) for name in strange)], now=NOW)
    result = run(Request(job_files=(Path("job.yaml"),)), NOW)
    (warning,) = [d for d in result.warnings if d.code == "SKY-CAT-110"]
    assert all(name in warning.summary for name in strange)
    assert "gone" not in warning.summary
    assert choice() == (first.split("/")[2], Decimal(17))


def test_every_past_plan_can_be_made_again_byte_for_byte(catalog: Market, history: History) -> None:
    """Whatever was observed since, however late."""
    random = Random(11)
    names = spot_of_job(catalog)
    made: list[PlacementPlan] = []
    at = NOW
    for _ in range(12):
        at += random.choice((HOUR / 7, 5 * HOUR, 26 * HOUR))
        told: list[PriceReading | CapacityReading] = [
            price(random.choice(names), str(random.choice((15, 17, 20, 24))), at - random.choice((0, 1, 30)) * HOUR)
            for _ in range(3)
        ]
        told += [word(random.choice(names), random.choice(list(CapacityWord)), at - random.choice((0, 2)) * HOUR)]
        history.record(told, now=at)
        made.append(planned(at).plan)
    for plan in made:
        again = planned(at + 300 * DAY, as_of=plan.inputs["as_of"]).plan
        assert again.inputs == plan.inputs
        assert again.digest == plan.digest
    assert len({plan.digest for plan in made}) > 6


def test_without_prices_the_market_is_the_catalog(catalog: Market, history: History) -> None:
    assert market_with_history(catalog, history, None) is catalog
    assert "market" not in planned().plan.inputs


def test_counting_at_a_later_moment_ages_prices_only(catalog: Market, history: History) -> None:
    first = spot_of_job(catalog)[0]
    history.record([price(first, "17", NOW)], now=NOW)
    told = told_by(history, None)
    assert told is not None
    row = row_of(catalog, first)
    later = priced(catalog, told, at=NOW + 9 * DAY).market
    assert later.price_micros[row] == 17_000_000
    assert later.marks[row] & int(Mark.STALE)
