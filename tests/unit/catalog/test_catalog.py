"""The catalog's rules on small tables: the packaged files, copied and changed in one place."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from catalog import check, files
from catalog.load import load_facts, load_market
from catalog.prices import day_of, micros_of
from planner.model.errors import InputError
from planner.model.market import BLOCKING, MARK_CODES, Mark
from planner.model.offer import CAPACITY_ORDER

HEAD = ",".join(files.COLUMNS["prices.csv"].split())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(files.PACKAGED, tmp_path / "catalog"))


def prices(folder: Path, *rows: str) -> None:
    (folder / "prices.csv").write_text("\n".join([HEAD, *rows]) + "\n")


def marked(folder: Path) -> dict[str, Mark]:
    m = load_market(folder)
    return {
        f"{m.regions[m.region_ix[i]].name}/{m.zones[m.zone_ix[i]]}/{m.types[m.type_ix[i]].name}/{CAPACITY_ORDER[m.capacity[i]].value}": Mark(
            int(m.marks[i])
        )
        for i in range(len(m))
    }


ROW = "aws,us-east-1,use1-az1,p4de.24xlarge,on_demand,{},2026-07-20,test,,,"


@pytest.mark.parametrize("price", ["0", "0.0", "-1", "nan", "inf", "", "abc"])
def test_a_price_that_is_no_positive_number_is_unknown_and_marked(folder: Path, price: str) -> None:
    prices(folder, ROW.format(price))
    market = load_market(folder)
    assert market.price_micros.tolist() == [-1]
    assert market.marks[0] & Mark.BAD_VALUE


@pytest.mark.parametrize(
    ("price", "believed"), [("0.01", False), ("7.99", False), ("8.0", True), ("27.45", True), ("73", False)]
)
def test_a_price_outside_its_class_is_marked(folder: Path, price: str, believed: bool) -> None:
    prices(folder, ROW.format(price))
    assert bool(load_market(folder).marks[0] & Mark.IMPLAUSIBLE) != believed


@pytest.mark.parametrize(
    ("spot", "dear", "suspect"), [("27.44", False, False), ("27.45", True, False), ("30", True, True)]
)
def test_spot_at_or_above_on_demand_is_no_capacity_and_above_it_the_list_is_suspect(
    folder: Path, spot: str, dear: bool, suspect: bool
) -> None:
    prices(folder, ROW.format("27.45"), ROW.format(spot).replace("on_demand", "spot"))
    got = marked(folder)
    assert bool(got["us-east-1/use1-az1/p4de.24xlarge/spot"] & Mark.SPOT_NOT_CHEAPER) == dear
    assert bool(got["us-east-1/use1-az1/p4de.24xlarge/on_demand"] & Mark.UNVERIFIED) == suspect


def gcp(region: str, price: str, name: str = "a3-highgpu-8g") -> str:
    return f"gcp,{region},{region}-a,{name},on_demand,{price},2026-07-30,test,,,"


def test_one_low_price_flat_over_continents_is_another_products(folder: Path) -> None:
    flat = [gcp(r, "43.07") for r in ("us-central1", "europe-west4", "asia-southeast1")]
    prices(folder, *flat, gcp("us-east4", "88.56"), gcp("us-east5", "88.49"))
    got = marked(folder)
    assert all(
        got[f"{r}/{r}-a/a3-highgpu-8g/on_demand"] & Mark.FLAT
        for r in ("us-central1", "europe-west4", "asia-southeast1")
    )
    assert not got["us-east4/us-east4-a/a3-highgpu-8g/on_demand"] & Mark.FLAT


def test_an_honest_tie_is_not_flat(folder: Path) -> None:
    prices(
        folder, *(gcp(r, "88.49") for r in ("us-central1", "europe-west4", "asia-southeast1")), gcp("us-east4", "88.56")
    )
    assert not any(m & Mark.FLAT for m in marked(folder).values())


@pytest.mark.parametrize("zone", ["use1-atl2-az1", "usw2-lax1-az1"])
def test_local_zones_need_opting_in(folder: Path, zone: str) -> None:
    region = "us-east-1" if zone.startswith("use1") else "us-west-2"
    prices(folder, ROW.format("27").replace("us-east-1,use1-az1", f"{region},{zone}"))
    assert load_market(folder).marks[0] & Mark.OPT_IN_ZONE


def test_regions_that_need_opting_in_are_closed_by_default(folder: Path) -> None:
    prices(folder, ROW.format("27").replace("us-east-1,use1-az1", "eu-south-2,eus2-az1"))
    assert load_market(folder).marks[0] & Mark.OPT_IN_ZONE


def test_a_price_older_than_its_time_to_live_counts_from_the_newest_observation(folder: Path) -> None:
    prices(folder, ROW.format("27"), ROW.format("9").replace("on_demand", "spot").replace("2026-07-20", "2026-07-12"))
    got = marked(folder)
    assert got["us-east-1/use1-az1/p4de.24xlarge/spot"] & Mark.STALE
    assert not got["us-east-1/use1-az1/p4de.24xlarge/on_demand"] & Mark.STALE


@pytest.mark.parametrize(
    ("other", "stands", "disagrees"), [("27.00", 24.0, False), ("30.00", 30.0, True), ("20.00", 24.0, True)]
)
def test_where_sources_disagree_the_dearer_one_stands(folder: Path, other: str, stands: float, disagrees: bool) -> None:
    prices(folder, f"aws,us-east-1,use1-az1,p4de.24xlarge,on_demand,24,2026-07-20,test,{other},second,")
    market = load_market(folder)
    assert market.price_micros[0] == round(stands * 1e6)
    assert bool(market.marks[0] & Mark.SOURCES_DISAGREE) == disagrees


def test_a_region_wide_price_stands_for_each_zone_and_says_so(folder: Path) -> None:
    prices(folder, ROW.format("27").replace("use1-az1", "*"))
    market = load_market(folder)
    zones = {market.zones[z] for z in market.zone_ix}
    assert {"use1-az1", "use1-az6"} <= zones
    assert "use1-atl2-az1" not in zones
    assert all(m & Mark.ZONE_UNCONFIRMED for m in market.marks)


def test_what_is_not_sold_on_demand_is_marked(folder: Path) -> None:
    prices(folder, ROW.format("40").replace("p4de.24xlarge", "p5e.48xlarge"))
    assert load_market(folder).marks[0] & Mark.NOT_SOLD


def broken(folder: Path) -> list[str]:
    with pytest.raises(InputError) as error:
        load_market(folder)
    return [f"{d.location} {d.code}" for d in error.value.diagnostics]


def test_a_repeated_row_names_both_lines(folder: Path) -> None:
    prices(folder, ROW.format("27"), ROW.format("28"))
    assert broken(folder) == ["prices.csv:3 SKY-CAT-107"]


def test_dangling_references_of_every_file_are_told_at_once(folder: Path) -> None:
    prices(folder, ROW.format("27").replace("p4de", "p9"), ROW.format("27").replace("us-east-1", "us-nowhere-1"))
    with (folder / "aliases.csv").open("a") as file:
        file.write("X900,X900\n")
    assert [b.split()[1] for b in broken(folder)] == ["SKY-CAT-110"] * 3


def test_name_and_memory_that_disagree_are_an_error(folder: Path) -> None:
    path = folder / "instance_types.csv"
    path.write_text(path.read_text().replace("p4d.24xlarge,A100,8,40.0", "p4d.24xlarge,A100,8,80.0"))
    assert [b.split()[1] for b in broken(folder)] == ["SKY-CAT-106"]


@pytest.mark.parametrize(
    ("row", "line"), [("a,b,c", 2), (ROW.format("1") + ",extra", 2), (ROW.format("1").replace("2026-07-20", "soon"), 2)]
)
def test_a_broken_line_is_named(folder: Path, row: str, line: int) -> None:
    prices(folder, row)
    assert f"prices.csv:{line}" in broken(folder)[0]


def test_a_missing_file_is_named(folder: Path) -> None:
    (folder / "gpus.csv").unlink()
    assert "gpus.csv:1 SKY-CAT-101" in broken(folder)


def test_columns_are_read_only() -> None:
    market = load_market()
    with pytest.raises(ValueError, match="read-only"):
        market.price_micros[0] = 0


@pytest.mark.parametrize(("text", "day"), [("1970-01-02", 1), ("1970-02", 31), ("1971", 365)])
def test_dates_of_three_precisions(text: str, day: int) -> None:
    assert day_of(text) == day


def test_micros() -> None:
    assert micros_of("0.1234567") == 123457


def test_every_mark_has_a_code_and_findings_carry_lines(folder: Path) -> None:
    assert set(MARK_CODES) == set(Mark) - {Mark.NONE}
    prices(folder, ROW.format("nan"))
    facts, _, _ = load_facts(folder)
    found = check.findings(facts, check.marks(facts))
    assert [(str(d.location), d.code) for d in found] == [("prices.csv:2", "SKY-CAT-102")]


def test_blocking_marks_are_those_that_make_a_price_or_place_wrong() -> None:
    assert Mark.STALE not in BLOCKING
    assert Mark.FLAT in BLOCKING
    assert np.int32(int(BLOCKING)) > 0


def times(folder: Path, *rows: str) -> None:
    (folder / "latency.csv").write_text("\n".join([",".join(files.COLUMNS["latency.csv"].split()), *rows]) + "\n")


def test_a_pair_of_areas_without_a_measurement_is_taken_for_slow(folder: Path) -> None:
    times(folder, "aws,us-east-1,gcp,us-east4,2.0,2026-01-01,test", "aws,us-east-1,gcp,europe-west4,90,2026-01-01,test")
    m = load_market(folder)
    ix, links = m.region_index, m.links
    a, eu = ix[("aws", "us-east-1")], ix[("gcp", "europe-west1")]
    assert (links.rtt_ms[a, ix[("gcp", "us-east4")]], links.rtt_estimated[a, ix[("gcp", "us-east4")]]) == (2.0, False)
    assert (links.rtt_ms[a, eu], links.rtt_estimated[a, eu]) == (90.0, True)
    assert links.rtt_ms[a, ix[("gcp", "asia-east1")]] == m.figures["rtt_ms.unmeasured"].value
    times(folder)
    assert (load_market(folder).links.rtt_ms == m.figures["rtt_ms.unmeasured"].value).all()


@pytest.mark.parametrize(
    "row",
    [
        "aws,us-east-1,gcp,nowhere,2.0,2026-01-01,test",
        "aws,us-east-1,aws,us-east-2,2.0,2026-01-01,test",
        "aws,us-east-1,gcp,us-east4,0,2026-01-01,test",
        "aws,us-east-1,gcp,us-east4,9999,2026-01-01,test",
        "aws,us-east-1,gcp,us-east4,,2026-01-01,test",
    ],
)
def test_a_round_trip_that_is_none_is_a_problem_of_its_line(folder: Path, row: str) -> None:
    times(folder, row)
    with pytest.raises(InputError) as caught:
        load_market(folder)
    assert {(d.location.file, d.location.line) for d in caught.value.diagnostics if d.location} == {("latency.csv", 2)}
