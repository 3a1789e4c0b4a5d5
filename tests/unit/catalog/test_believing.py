"""What the catalog believes: whatever stands in a cell, no offer is open without a sound price; verified prices judge unverified ones."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog import check, files
from catalog.load import load_facts, load_market, load_words
from catalog.prices import MOST_USD, micros_of
from planner.model.errors import InputError
from planner.model.market import BLOCKING, UNKNOWN_PRICE, Mark, Market
from planner.model.offer import CAPACITY_ORDER
from planner.model.words import words_of

HEAD = ",".join(files.COLUMNS["prices.csv"].split())


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(files.PACKAGED, tmp_path_factory.mktemp("catalog") / "data"))


@pytest.fixture
def folder(packaged: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(packaged, tmp_path / "data"))


def row(name: str, usd: str, *, trust: str = "", region: str = "us-east4", capacity: str = "on_demand") -> str:
    return f"gcp,{region},{region}-a,{name},{capacity},{usd},2026-07-30,test,,,{trust}"


def prices(folder: Path, *rows: str) -> Market:
    (folder / "prices.csv").write_text("\n".join([HEAD, *rows]) + "\n")
    return load_market(folder)


def mark_of(market: Market, name: str, capacity: str = "on_demand") -> Mark:
    (found,) = [
        int(market.marks[i])
        for i in range(len(market))
        if market.types[market.type_ix[i]].name == name and CAPACITY_ORDER[market.capacity[i]].value == capacity
    ]
    return Mark(found)


@given(st.one_of(st.floats().map(repr), st.text(max_size=12), st.integers().map(str)))
def test_a_cell_gives_a_positive_price_or_none(text: str) -> None:
    micros = micros_of(text)
    assert micros == UNKNOWN_PRICE or 0 < micros <= MOST_USD * 1e6


@given(st.floats(min_value=0.0001, max_value=1000))
def test_a_price_is_kept_to_the_millionth(usd: float) -> None:
    assert abs(micros_of(repr(usd)) - usd * 1e6) <= 0.5


@given(
    st.lists(
        st.tuples(
            st.one_of(st.floats(-10, 400).map(repr), st.sampled_from(["0", "nan", "inf", "-inf", "", "1e-9", "1e300"])),
            st.sampled_from(["", "unverified"]),
        ),
        min_size=4,
        max_size=4,
    )
)
def test_whatever_the_cells_hold_no_open_offer_lacks_a_sound_price(
    packaged: Path, cells: list[tuple[str, str]]
) -> None:
    places = [("a3-highgpu-8g", c) for c in ("on_demand", "spot")] + [
        ("a3-edgegpu-8g", c) for c in ("on_demand", "spot")
    ]
    m = prices(packaged, *(row(n, usd, trust=t, capacity=c) for (n, c), (usd, t) in zip(places, cells, strict=True)))
    usd = {
        (m.types[m.type_ix[i]].name, CAPACITY_ORDER[m.capacity[i]].value): m.price_micros[i] / 1e6
        for i in range(len(m))
    }
    for i in np.flatnonzero((m.marks & int(BLOCKING)) == 0):
        name, capacity = m.types[m.type_ix[i]].name, CAPACITY_ORDER[m.capacity[i]].value
        gpu = load_gpus()[m.types[m.type_ix[i]].gpu]
        least = gpu.spot_min_usd if capacity == "spot" else gpu.od_min_usd
        assert 8 * least <= usd[name, capacity] <= 8 * gpu.od_max_usd
        if capacity == "spot" and usd[name, "on_demand"] > 0:
            assert usd[name, "spot"] < usd[name, "on_demand"]


def load_gpus() -> dict[str, files.Gpu]:
    return files.read_gpus(files.open_table(files.PACKAGED, "gpus.csv", []))


@pytest.mark.parametrize(
    ("usd", "trust", "believed"),
    [("43.07", "unverified", False), ("66.3", "unverified", False), ("66.5", "unverified", True), ("43.07", "", True)],
)
def test_a_verified_price_judges_an_unverified_one_of_the_same_gpu(
    folder: Path, usd: str, trust: str, believed: bool
) -> None:
    m = prices(folder, row("a3-highgpu-8g", "88.49", region="us-central1"), row("a3-edgegpu-8g", usd, trust=trust))
    assert bool(mark_of(m, "a3-edgegpu-8g") & Mark.IMPLAUSIBLE) != believed
    assert not mark_of(m, "a3-highgpu-8g") & Mark.IMPLAUSIBLE


def test_per_gpu_and_not_per_node_is_compared(folder: Path) -> None:
    m = prices(folder, row("a2-ultragpu-8g", "40.55"), row("a2-ultragpu-1g", "5.07", trust="unverified"))
    assert not mark_of(m, "a2-ultragpu-1g") & Mark.IMPLAUSIBLE


def test_where_nothing_is_verified_nothing_is_judged_so(folder: Path) -> None:
    m = prices(folder, row("a3-edgegpu-8g", "43.07", trust="unverified"))
    assert mark_of(m, "a3-edgegpu-8g") & BLOCKING == Mark.NONE


def test_an_unverified_spot_price_is_not_measured_by_on_demand(folder: Path) -> None:
    m = prices(folder, row("a3-highgpu-8g", "88.49"), row("a3-edgegpu-8g", "20", trust="unverified", capacity="spot"))
    assert not mark_of(m, "a3-edgegpu-8g", "spot") & Mark.IMPLAUSIBLE


@pytest.mark.parametrize("usd", ["0.01", "0.94"])
def test_a_hosts_price_without_its_gpu_is_implausible(folder: Path, usd: str) -> None:
    assert mark_of(prices(folder, row("a2-highgpu-1g", usd)), "a2-highgpu-1g") & Mark.IMPLAUSIBLE


@pytest.mark.parametrize("name", ["a3-ultragpu-8g", "a4-highgpu-8g", "a3-highgpu-1g"])
def test_on_demand_that_is_not_sold_never_wins_and_spot_may(folder: Path, name: str) -> None:
    m = prices(folder, row(name, "60"), row(name, "30" if name != "a3-highgpu-1g" else "5", capacity="spot"))
    assert mark_of(m, name) & Mark.NOT_SOLD
    assert mark_of(m, name, "spot") & BLOCKING == Mark.NONE


def test_order_of_the_rows_changes_no_offer(folder: Path) -> None:
    lines = (files.PACKAGED / "prices.csv").read_text().splitlines()[1:]
    some = random.Random(7).sample(lines, 400)
    a = prices(folder, *some)
    b = prices(folder, *reversed(some))
    for column in ("type_ix", "region_ix", "zone_ix", "capacity", "price_micros", "marks", "price_day"):
        assert np.array_equal(getattr(a, column), getattr(b, column)), column
    assert [a.sources[i] for i in a.source_ix] == [b.sources[i] for i in b.source_ix]


def test_rows_are_in_total_order() -> None:
    m = load_market()
    keys = [
        (r.cloud.value, r.name, m.zones[z], m.types[t].name, int(c))
        for r, z, t, c in zip((m.regions[i] for i in m.region_ix), m.zone_ix, m.type_ix, m.capacity, strict=True)
    ]
    assert keys == sorted(set(keys))


def test_ages_count_at_the_moment_asked_for(folder: Path) -> None:
    prices(folder, row("a3-highgpu-8g", "88.49"))
    assert not mark_of(load_market(folder), "a3-highgpu-8g") & Mark.STALE
    later = load_market(folder, as_of="2026-12-01")
    assert mark_of(later, "a3-highgpu-8g") & Mark.STALE
    assert later.as_of == "2026-12-01"
    with pytest.raises(ValueError):
        load_market(folder, as_of="tomorrow")


def test_words_are_those_of_the_market_without_its_prices(folder: Path) -> None:
    (folder / "prices.csv").unlink()
    assert load_words(folder) == words_of(load_market())


def broken(folder: Path) -> list[str]:
    with pytest.raises(InputError) as error:
        load_market(folder)
    return [f"{d.location} {d.code} {d.summary}" for d in error.value.diagnostics]


def test_a_figure_that_is_missing_is_named(folder: Path) -> None:
    path = folder / "figures.csv"
    kept = [
        line for line in path.read_text().splitlines() if not line.startswith(("below_trusted", "acquire_minutes.gcp"))
    ]
    path.write_text("\n".join(kept) + "\n")
    assert broken(folder) == [
        "figures.csv:1 SKY-CAT-110 figure `acquire_minutes.gcp` is missing",
        "figures.csv:1 SKY-CAT-110 figure `below_trusted` is missing",
    ]


def test_a_figure_without_a_source_is_no_figure(folder: Path) -> None:
    path = folder / "figures.csv"
    path.write_text(path.read_text() + "extra,1,minutes,2026,\n")
    assert broken(folder)[0].endswith("SKY-CAT-101 `extra` lacks a unit, a date or a source")


def test_a_file_that_cannot_be_read_to_its_end_is_told_alone(folder: Path) -> None:
    path = folder / "gpus.csv"
    lines = path.read_text().splitlines()
    lines[6] = lines[6].rsplit(",", 1)[0] + ',"never closed'
    path.write_text("\n".join(lines) + "\n")
    (folder / "regions.csv").write_text("cloud,place\n")
    assert [b.split(" ", 2)[:2] for b in broken(folder)] == [
        ["gpus.csv:7", "SKY-CAT-101"],
        ["regions.csv:1", "SKY-CAT-101"],
    ]


def test_a_cell_over_two_lines_is_told_at_its_first(folder: Path) -> None:
    path = folder / "gpus.csv"
    lines = path.read_text().splitlines()
    lines[6] = lines[6].rsplit(",", 1)[0] + ',"two\nlines"'
    path.write_text("\n".join(lines) + "\n")
    assert broken(folder) == ["gpus.csv:7 SKY-CAT-101 a cell runs over the end of its line; is a quote missing?"]


def test_a_byte_order_mark_and_windows_line_ends_are_read(folder: Path) -> None:
    path = folder / "prices.csv"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join([HEAD, row("a3-highgpu-8g", "88.49"), ""]).encode())
    assert len(load_market(folder)) == 1


def test_findings_are_told_once_a_line_and_in_order() -> None:
    facts, _, _ = load_facts()
    found = check.findings(facts, check.marks(facts))
    keys = [(d.location, d.code) for d in found]
    assert len(set(keys)) == len(keys)
    assert [d.sort_key() for d in found] == sorted(d.sort_key() for d in found)
