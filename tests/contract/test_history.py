"""Prices, capacity, quotas and moves as they are kept, on both databases (R20)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

from planner.app import state_files
from planner.model.errors import StateConflict
from planner.model.readings import CapacityReading, CapacityWord, PriceReading, QuotaReading
from planner.model.record import stamp
from planner.state.history import History
from planner.state.history_values import us
from tests.contract.beds import MINUTE, NOW, PROJECT, Bed

HOUR = 60 * MINUTE
DAY = 24 * HOUR
SERIES = "aws/us-east-1/use1-az1/p5.48xlarge/spot"


@pytest.fixture
def history(made: str) -> Iterator[History]:
    it = History.open(made, PROJECT)
    yield it
    it.close()


def price(usd: str, at: datetime, *, source: str = "feed", zone: str = "use1-az1") -> PriceReading:
    return PriceReading(
        cloud="aws",
        region="us-east-1",
        zone=zone,
        instance_type="p5.48xlarge",
        capacity="spot",
        usd_per_hour=Decimal(usd),
        observed_at=stamp(at),
        source=source,
    )


def seen(word: CapacityWord, at: datetime, detail: str = "", zone: str = "use1-az1") -> CapacityReading:
    return CapacityReading(
        cloud="aws",
        region="us-east-1",
        zone=zone,
        instance_type="p5.48xlarge",
        capacity="spot",
        word=word,
        observed_at=stamp(at),
        source="feed",
        detail=detail,
    )


def steps(history: History, since: datetime = NOW - 1000 * DAY, until: datetime = NOW + DAY) -> list[tuple[int, float]]:
    """(minutes after NOW, USD)."""
    found = history.changes([SERIES], since, until).get(SERIES)
    if found is None:
        return []
    return [(int(at - us(NOW)) // 60_000_000, int(m) / 1e6) for at, m in zip(found.at, found.micro_usd, strict=True)]


def now_of(history: History, at: datetime | None = None) -> float | None:
    found = history.as_of(at, [SERIES])
    return int(found.micro_usd[0]) / 1e6 if len(found) else None


def test_a_flat_price_is_one_row(history: History) -> None:
    told = [price("3.5", NOW - k * MINUTE) for k in range(500)]
    first = history.record(told[250:], now=NOW, live=False)
    again = history.record(told, now=NOW, live=False)
    assert (first.new, first.unchanged, first.refused) == (1, 249, ())
    assert (again.new, again.unchanged) == (0, 500)
    assert history.stored().prices == 1
    quote = history.as_of(NOW, [SERIES])
    assert (int(quote.at[0]), int(quote.seen[0])) == (us(NOW - 499 * MINUTE), us(NOW))
    assert (quote.series, quote.source) == ((SERIES,), ("feed",))


@pytest.mark.parametrize("newest_first", [False, True])
def test_pages_come_in_either_order(history: History, newest_first: bool) -> None:
    """And changes within a page in any."""
    random = Random(3)
    told = [price(str(random.choice((3, 4, 5))), NOW + k * MINUTE) for k in range(60)]
    want = [float(reading.usd_per_hour) for reading in told]
    pages = [told[k : k + 7] for k in range(0, 60, 7)]
    for page in reversed(pages) if newest_first else pages:
        assert not history.record(random.sample(page, len(page)), now=NOW + DAY, live=False).refused
    assert [now_of(history, NOW + k * MINUTE) for k in range(60)] == want


def test_in_whatever_order_readings_come_the_newest_stands_and_none_is_made_up(history: History) -> None:
    random = Random(4)
    told = [price(str(random.choice((3, 4, 5))), NOW + k * MINUTE) for k in range(60)]
    want = {k: float(reading.usd_per_hour) for k, reading in enumerate(told)}
    random.shuffle(told)
    for k in range(0, 60, 3):
        history.record(told[k : k + 3], now=NOW + DAY, live=False)
    assert now_of(history) == want[59]
    assert all(want[k] == usd for k, usd in steps(history))


def test_a_late_price_lasts_until_the_older_one_was_seen_again(history: History) -> None:
    history.record([price("3", NOW), price("3", NOW + 50 * MINUTE)], now=NOW + DAY, live=False)
    late = history.record([price("4", NOW + 20 * MINUTE)], now=NOW + DAY, live=False)
    assert (late.new, late.unchanged) == (1, 0)
    assert steps(history) == [(0, 3.0), (20, 4.0), (50, 3.0)]
    assert now_of(history) == 3.0


def test_what_a_feed_tells_late_is_new_all_the_same(history: History) -> None:
    """A cloud publishes changes minutes after they held: what was confirmed at a poll meanwhile does not come back."""
    history.record([price("3", NOW)], now=NOW)
    history.record([price("3", NOW)], now=NOW + 60 * MINUTE)
    told = history.record([price("4", NOW + 58 * MINUTE)], now=NOW + 65 * MINUTE)
    assert told.new == 1
    assert now_of(history) == 4.0
    assert steps(history) == [(0, 3.0), (58, 4.0)]
    # nobody knew of it before
    assert now_of(history, NOW + 60 * MINUTE) == 3.0
    assert now_of(history, NOW + 65 * MINUTE) == 4.0


def test_two_prices_of_one_moment(history: History) -> None:
    told = history.record([price("3", NOW), price("4", NOW), price("4", NOW + MINUTE)], now=NOW + DAY, live=False)
    assert (told.new, told.unchanged, [d.code for d in told.refused]) == (2, 0, ["SKY-CAT-116"])
    again = history.record([price("5", NOW + MINUTE), price("6", NOW)], now=NOW + DAY, live=False)
    assert (again.new, len(again.refused)) == (0, 2)
    assert steps(history) == [(0, 3.0), (1, 4.0)]


def test_two_watchers_write_no_row_twice(made: str) -> None:
    two = [History.open(made, PROJECT), History.open(made, PROJECT)]
    told = [price(str(3 + k % 3), NOW + k * MINUTE, zone=f"use1-az{k % 40}") for k in range(2000)]
    with ThreadPoolExecutor(2) as pool:
        for begin in range(0, 2000, 250):
            part = told[begin : begin + 250]
            done = list(pool.map(lambda h, part=part: h.record(part, now=NOW + 100 * HOUR), two))
            assert {d.refused for d in done} == {()}
    assert (
        two[0].stored().prices
        == two[1].stored().prices
        == 2000 - sum(a.usd_per_hour == b.usd_per_hour for a, b in zip(told, told[40:], strict=False))
    )
    for it in two:
        it.close()


def test_what_cannot_be_is_refused_and_the_rest_is_kept(history: History) -> None:
    told = [price("0", NOW), price("-1", NOW), price("NaN", NOW), price("1e7", NOW), price("3", NOW + 2 * MINUTE)]
    done = history.record([*told, price("3", NOW + MINUTE), seen(CapacityWord.NONE, NOW + HOUR)], now=NOW)
    assert [d.code for d in done.refused] == [*["SKY-CAT-102"] * 4, *["SKY-CAT-117"] * 2]
    assert done.new == 1


def test_all_or_nothing(history: History) -> None:
    def told() -> Iterator[PriceReading]:
        yield price("3", NOW)
        raise RuntimeError("gone")

    with pytest.raises(RuntimeError):
        history.record(told(), now=NOW)
    assert not history.stored().prices
    history.record([price("3", NOW)], now=NOW)
    assert now_of(history) == 3.0


def test_where_sources_disagree_the_dearer_one_stands_while_it_is_told(history: History) -> None:
    history.record([price("3", NOW), price("5", NOW, source="list")], now=NOW)
    both = history.as_of(None, [SERIES])
    assert (now_of(history), both.source, both.least_micro_usd.tolist()) == (5.0, ("list",), [3_000_000])
    later = NOW + 3 * DAY
    history.record([price("3", NOW)], now=later)
    alone = history.as_of(None, [SERIES])
    assert (now_of(history), alone.source, alone.least_micro_usd.tolist()) == (3.0, ("feed",), [3_000_000])
    assert now_of(history, NOW + HOUR) == 5.0
    assert now_of(history, later) == 3.0
    assert steps(history, until=later + DAY) == [(0, 5.0), (3 * 24 * 60, 3.0)]


def test_a_replayed_moment_stays_what_it_was(history: History) -> None:
    """Whatever live readings come later: prices, and the days on which they count as seen."""
    random = Random(5)
    moments: list[tuple[datetime, list[list[int]]]] = []
    at = NOW
    for _ in range(40):
        at += random.choice((MINUTE, HOUR, 20 * HOUR, 30 * HOUR))
        known = at - random.choice((MINUTE, 5 * HOUR, 40 * HOUR))
        history.record([price(str(random.choice((3, 4))), known, zone=f"z{random.randrange(3)}")], now=at)
        found = history.as_of(at)
        moments.append((at, [found.micro_usd.tolist(), found.at.tolist(), found.seen.tolist()]))
    for then, was in moments:
        found = history.as_of(then)
        assert [found.micro_usd.tolist(), found.at.tolist(), found.seen.tolist()] == was


def test_a_window_is_weighted_by_time(history: History) -> None:
    told = [price("2", NOW - DAY), price("4", NOW), price("8", NOW + 50 * MINUTE), price("2", NOW + 60 * MINUTE)]
    history.record(told, now=NOW + DAY, live=False)
    found = history.window(SERIES, NOW - 30 * MINUTE, NOW + 70 * MINUTE)
    assert found is not None
    assert (found.min, found.median, found.max, found.points) == (2, 4, 8, 4)
    assert found.mean == Decimal("3.6")  # 40 min at 2, 50 at 4, 10 at 8
    assert found.volatility == pytest.approx(((40 * 1.6**2 + 50 * 0.4**2 + 10 * 4.4**2) / 100) ** 0.5 / 3.6)
    flat = history.window(SERIES, NOW + MINUTE, NOW + 9 * MINUTE)
    assert flat is not None
    assert (flat.volatility, flat.points) == (0, 1)
    assert history.window("aws/x", NOW, NOW + DAY) is None
    assert history.window(SERIES, NOW - 3 * DAY, NOW - 2 * DAY) is None


def test_failures_are_told_once_an_hour_and_words_when_they_change(history: History) -> None:
    word = CapacityWord
    told = [seen(word.AVAILABLE, NOW + k * MINUTE) for k in range(10)]
    told += [seen(word.NONE, NOW + k * MINUTE) for k in range(10, 130)]
    told += [seen(word.SCARCE, NOW + 130 * MINUTE, "score 2"), seen(word.SCARCE, NOW + 131 * MINUTE, "score 2")]
    done = history.record(told, now=NOW + 131 * MINUTE, live=False)
    assert (done.new, done.unchanged) == (4, len(told) - 4)
    assert history.record(reversed(told), now=NOW + 131 * MINUTE, live=False).new == 0
    found = history.failures(NOW, NOW + DAY)
    assert [f.at for f in found] == [stamp(NOW + 10 * MINUTE), stamp(NOW + 70 * MINUTE)]
    assert history.failures(NOW, NOW + 60 * MINUTE) == found[:1]
    assert history.last_failure(SERIES, NOW + DAY) == history.last_failure(["x", SERIES], NOW + DAY) == found[1]
    assert history.last_failure("x", NOW + DAY) is None
    assert history.capacity_as_of(NOW + 11 * MINUTE)[SERIES].word is word.NONE
    assert history.capacity_as_of(NOW + DAY, [SERIES])[SERIES].detail == "score 2"
    changes = history.capacity_changes([SERIES], NOW + 5 * MINUTE, NOW + 60 * MINUTE)[SERIES]
    assert [c.word for c in changes] == [word.AVAILABLE, word.NONE]


def test_quotas_are_the_projects_own(history: History, made: str) -> None:
    quota = QuotaReading(
        cloud="aws",
        region="us-east-1",
        name="L-417A185B",
        capacity="spot",
        unit="vcpus",
        limit=192.0,
        used=None,
        observed_at=stamp(NOW),
        source="quotas",
        instance_types=("p5.48xlarge",),
    )
    assert history.record_quotas("prod", [quota, quota]).new == 1
    (found,) = history.quotas()
    assert (found.target, found.reading) == ("prod", quota)
    assert history.quotas("other") == ()
    assert history.quotas(at=NOW - MINUTE) == ()
    other = History.open(made, "other")
    assert other.quotas() == ()
    other.close()


def test_a_record_put_in_anothers_place_is_the_one_that_is_used(tmp_path: Path) -> None:
    path = tmp_path / "record.sqlite"
    history, other = History.open(f"sqlite:///{path}", PROJECT), History.open(f"sqlite:///{tmp_path / 'b'}", PROJECT)
    history.record([price("3", NOW)], now=NOW)
    other.record([price("9", NOW, zone="other"), price("4", NOW)], now=NOW)
    other.close()
    for end in ("-wal", "-shm"):
        (tmp_path / f"record.sqlite{end}").unlink(missing_ok=True)
    (tmp_path / "b").replace(path)
    assert now_of(history) == 4.0
    history.record([price("5", NOW + MINUTE)], now=NOW + MINUTE)
    with sqlite3.connect(path) as plain:
        assert plain.execute("SELECT micro_usd FROM price ORDER BY at, line_ix").fetchall() == [
            (9_000_000,),
            (4_000_000,),
            (5_000_000,),
        ]
    assert now_of(history) == 5.0
    plain.close()
    history.close()


def test_an_export_takes_the_history_along(history: History, made: str, tmp_path: Path) -> None:
    history.record(
        [price("3", NOW), price("5", NOW + MINUTE, source="list"), seen(CapacityWord.NONE, NOW)], now=NOW + HOUR
    )
    history.record([price("4", NOW + 3 * DAY)], now=NOW + 3 * DAY)
    archive = state_files.opened(made, PROJECT, make=False)
    written = state_files.export(archive, tmp_path / "record.jsonl", project=PROJECT, at=NOW)
    archive.close()
    assert written.rows == {"line": 2, "price": 3, "price_now": 2, "price_seen": 1, "capacity": 1}
    url = f"sqlite:///{tmp_path / 'other.sqlite'}"
    archive = state_files.opened(url, PROJECT, make=True)
    state_files.take_in(archive, tmp_path / "record.jsonl", project=PROJECT)
    archive.close()
    other = History.open(url, PROJECT)
    for at in (None, NOW + HOUR, NOW + 2 * DAY):
        assert [c.tolist() for c in _columns(other, at)] == [c.tolist() for c in _columns(history, at)]
    assert other.failures(NOW, NOW + DAY) == history.failures(NOW, NOW + DAY)
    assert other.record([price("4", NOW + 3 * DAY)], now=NOW + 3 * DAY).new == 0
    other.close()


def _columns(history: History, at: datetime | None) -> list[Any]:
    found = history.as_of(at)
    return [found.micro_usd, found.least_micro_usd, found.at, found.seen]


@pytest.mark.parametrize("every", [None, HOUR])
def test_compaction_leaves_what_is_asked_about(history: History, every: timedelta | None) -> None:
    told = [price(str(3 + k % 5), NOW - k * 10 * MINUTE) for k in range(600)]
    told += [price("7", NOW - 50 * DAY, zone="old")]
    history.record(told, now=NOW, live=False)
    keep = NOW - DAY
    within = [now_of(history, keep + k * 10 * MINUTE) for k in range(144)]
    hours = [now_of(history, NOW - k * HOUR + 50 * MINUTE) for k in range(30, 90)]
    gone = history.compact(keep, every)
    assert [now_of(history, keep + k * 10 * MINUTE) for k in range(144)] == within
    assert history.stored().prices == 601 - gone
    assert len(history.as_of()) == len(history.as_of(NOW)) == 2
    if every:
        assert [now_of(history, NOW - k * HOUR + 50 * MINUTE) for k in range(30, 90)] == hours
        assert gone > 300
    else:
        assert now_of(history, keep - HOUR) is None
    assert history.compact(keep, every) == 0
    assert history.record(told[:100], now=NOW, live=False).new == 0


def test_a_record_of_before_gets_the_new_tables(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'record.sqlite'}"
    History.open(url, PROJECT).close()
    with sqlite3.connect(tmp_path / "record.sqlite") as plain:
        for table in ("line", "price", "price_now", "price_seen", "capacity", "quota"):
            plain.execute(f"DROP TABLE {table}")
        plain.execute("CREATE TABLE price (series TEXT, observed_at TEXT, micro_usd BIGINT, source TEXT)")
        plain.execute("CREATE TABLE availability (pool TEXT)")
        plain.execute("ALTER TABLE stack DROP COLUMN outputs")
        plain.execute("UPDATE alembic_version SET version_num = '0002'")
    plain.close()
    history = History.open(url, PROJECT)
    assert history.record([price("3", NOW)], now=NOW).new == 1
    history.close()
    again = History.open(url, PROJECT, upgrade=False)
    assert now_of(again) == 3.0
    again.close()


def test_a_move_goes_on_once_per_step(bed: Bed, history: History) -> None:
    bed.launch("i-0")
    move = history.decide("train", 1, "cheaper", {"saves": "3.00"}, NOW, status="decided")
    on = history.go_on(move, "launched", NOW + MINUTE, to_generation=2)
    assert (on.status, on.to_generation, on.document) == ("launched", 2, {"saves": "3.00"})
    with pytest.raises(StateConflict):
        history.go_on(move, "given-up", NOW)
    done = history.go_on(on, "done", NOW)
    assert history.moves() == history.moves("train") == (done,)
    assert done.to_generation == 2
    assert history.moves("other") == ()


def test_what_no_database_can_write_is_left_out_and_the_rest_is_kept(history: History) -> None:
    told = [
        price("1", NOW - HOUR, source="fe\0ed"),
        price("2", NOW - HOUR, source="\udcff"),
        price("3", NOW - HOUR),
        seen(CapacityWord.NONE, NOW - HOUR, "Quota\0Id \udcff"),
    ]
    done = history.record(told, now=NOW)
    assert (done.new, [d.code for d in done.refused]) == (2, ["SKY-CAT-116"] * 2)
    assert now_of(history) == 3.0
    (word,) = history.capacity_as_of(NOW).values()
    assert word.detail == "Quota?Id ?"
    assert history.record(told[2:], now=NOW).new == 0
