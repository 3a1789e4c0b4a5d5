"""Errors in circulation and places one cannot use: none of them may win with the packaged data (R07)."""

from __future__ import annotations

import csv
import re
from collections import Counter
from datetime import date

import pytest

from catalog import files
from catalog.load import load_market
from planner.model.market import BLOCKING, Mark
from planner.model.offer import CAPACITY_ORDER

MARKET = load_market()


def rows_of(name: str, capacity: str, region: str | None = None) -> list[tuple[str, float, Mark]]:
    """(region, USD per hour, marks) of one type."""
    m = MARKET
    return [
        (m.regions[m.region_ix[i]].name, m.price_micros[i] / 1e6, Mark(int(m.marks[i])))
        for i in range(len(m))
        if m.types[m.type_ix[i]].name == name
        and CAPACITY_ORDER[m.capacity[i]].value == capacity
        and region in (None, m.regions[m.region_ix[i]].name)
    ]


def is_open(mark: Mark) -> bool:
    return mark & BLOCKING == Mark.NONE


SPLIT = {"us-central1", "us-west1", "us-west4", "asia-northeast1", "asia-southeast1", "northamerica-northeast2"}


@pytest.mark.parametrize("name", ["a3-edgegpu-8g", "a3-edgegpu-8g-nolssd"])
def test_prices_of_split_hosts_and_gpus_are_blocked_and_sound_ones_of_the_same_type_are_not(name: str) -> None:
    """H100 at $4.20 per GPU in these regions is another product's price: half the list price."""
    for region, usd, mark in rows_of(name, "on_demand"):
        assert is_open(mark) != (region in SPLIT), (region, usd)
        assert mark & Mark.UNVERIFIED


@pytest.mark.parametrize(
    "name", ["a3-ultragpu-8g", "a3-ultragpu-8g-nolssd", "a4-highgpu-8g", "a3-highgpu-1g", "p5e.48xlarge"]
)
def test_what_is_not_sold_on_demand_is_not_open_on_demand(name: str) -> None:
    assert not any(is_open(mark) for _, _, mark in rows_of(name, "on_demand"))


@pytest.mark.parametrize("name", ["a3-ultragpu-8g", "a4-highgpu-8g", "a3-highgpu-1g", "p5e.48xlarge"])
def test_and_still_is_on_spot(name: str) -> None:
    assert any(is_open(mark) for _, _, mark in rows_of(name, "spot"))


@pytest.mark.parametrize("region", ["australiacentral2", "norwaywest", "switzerlandwest", "southafricawest"])
def test_azure_regions_by_request_are_closed(region: str) -> None:
    ix = MARKET.region_index["azure", region]
    assert all(MARKET.marks[i] & Mark.OPT_IN_ZONE for i in range(len(MARKET)) if MARKET.region_ix[i] == ix)


def test_every_cloud_has_a_market() -> None:
    open_now = Counter(
        (MARKET.types[MARKET.type_ix[i]].cloud.value, CAPACITY_ORDER[MARKET.capacity[i]].value)
        for i in range(len(MARKET))
        if is_open(Mark(int(MARKET.marks[i])))
    )
    assert open_now == OPEN


OPEN = {
    ("aws", "on_demand"): 576,
    ("aws", "spot"): 439,
    ("azure", "on_demand"): 614,
    ("azure", "spot"): 587,
    ("gcp", "on_demand"): 821,
    ("gcp", "spot"): 938,
    ("nebius", "on_demand"): 21,
    ("nebius", "spot"): 8,
}


def test_no_open_spot_price_reaches_on_demand_of_its_place() -> None:
    m = MARKET
    listed = {
        (m.type_ix[i], m.region_ix[i], m.zone_ix[i]): m.price_micros[i]
        for i in range(len(m))
        if CAPACITY_ORDER[m.capacity[i]].value == "on_demand" and m.price_micros[i] > 0
    }
    for i in range(len(m)):
        key = (m.type_ix[i], m.region_ix[i], m.zone_ix[i])
        if CAPACITY_ORDER[m.capacity[i]].value == "spot" and is_open(Mark(int(m.marks[i]))) and key in listed:
            assert m.price_micros[i] < listed[key]


def test_where_sources_disagree_the_dearer_price_stands() -> None:
    assert {round(usd, 2) for _, usd, _ in rows_of("gpu-h100-sxm_8gpu-128vcpu-1600gb", "on_demand")} == {30.8}
    assert {round(usd, 2) for _, usd, _ in rows_of("Standard_NCC40ads_H100_v5", "on_demand", "eastus2")} == {8.82}
    assert all(
        mark & Mark.SOURCES_DISAGREE for _, _, mark in rows_of("Standard_NCC40ads_H100_v5", "on_demand", "eastus2")
    )


@pytest.mark.parametrize(
    ("spelling", "models"),
    [
        ("A100", ["A100"]),
        ("a100-80gb", ["A100-80GB"]),
        ("A100 80GB", ["A100-80GB"]),
        ("A100-40GB", ["A100"]),
        ("nvidia-tesla-a100", ["A100"]),
        ("A100-80GB-PCIe", ["A100-80GB-PCIe"]),
        ("H100-80GB", ["H100"]),
        ("H100_SXM", ["H100"]),
        ("nvidia-h100-mega-80gb", ["H100"]),
        ("H100-NVL", ["H100-NVL"]),
        ("V100-32GB", ["V100-32GB"]),
        ("V100-SXM2", ["V100", "V100-32GB"]),
        ("nvidia-a100", ["A100", "A100-80GB", "A100-80GB-PCIe"]),
    ],
)
def test_spellings(spelling: str, models: list[str]) -> None:
    assert list(MARKET.aliases[files.fold(spelling)]) == models


@pytest.mark.parametrize("spelling", ["A100-8", "H100-PCIe", "A100-60GB", "H100-40GB"])
def test_a_spelling_that_is_none_is_not_guessed(spelling: str) -> None:
    assert files.fold(spelling) not in MARKET.aliases


def test_a_spelling_with_a_memory_means_a_model_with_that_memory() -> None:
    gpus = files.read_gpus(files.open_table(files.PACKAGED, "gpus.csv", []))
    with (files.PACKAGED / "aliases.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found = re.search(r"-(\d+)GB?\b", row["spelling"])
            for model in row["gpus"].split() if found else ():
                assert found
                assert gpus[model].memory_gib == float(found[1])


@pytest.mark.parametrize(
    ("name", "gbps"),
    [("g5.xlarge", 2.5), ("g4dn.xlarge", 5), ("g6e.xlarge", 2.5), ("p4d.24xlarge", 400), ("p6-b200.48xlarge", 3200)],
)
def test_network_rates_are_those_one_can_hold(name: str, gbps: float) -> None:
    assert [t.network_gbps for t in MARKET.types if t.name == name] == [gbps]


def test_an_open_ended_interruption_band_is_no_better_than_no_figure() -> None:
    with (files.PACKAGED / "interruptions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    default = MARKET.figures["default_interruptions_per_hour"].value
    assert {float(r["per_hour"]) for r in rows if r["band"] == "4"} == {default}
    assert max(float(r["per_hour"]) for r in rows if r["band"] != "4") < default


@pytest.mark.parametrize("name", [n for n, columns in files.COLUMNS.items() if "source" in columns.split()])
def test_every_row_has_a_source_and_a_date(name: str) -> None:
    with (files.PACKAGED / name).open(newline="") as file:
        for row in csv.DictReader(file):
            assert row["source"]
            assert date.fromisoformat((row["as_of"] + "-01-01")[:10]), row


@pytest.mark.parametrize("origin", [("aws", "ap-southeast-5"), ("gcp", "asia-east1"), ("gcp", "australia-southeast1")])
def test_tariffs_of_origins_that_no_list_names_say_so(origin: tuple[str, str]) -> None:
    ix = MARKET.region_index
    assert MARKET.links.tariffs[MARKET.links.tariff_ix[ix[origin], ix["azure", "eastus"]]].unverified
    assert not MARKET.links.tariffs[MARKET.links.tariff_ix[ix["aws", "us-east-1"], ix["azure", "eastus"]]].unverified


def test_no_file_names_a_machines_path() -> None:
    for path in files.PACKAGED.parent.rglob("*"):
        if path.suffix in {".csv", ".md", ".py"}:
            assert not re.search(r"(?<![\w.])/(work|home|root|tmp|Users)/", path.read_text()), path
