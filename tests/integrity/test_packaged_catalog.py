"""The packaged data itself: known facts, known traps, and what the check finds in it."""

from __future__ import annotations

import pytest

from catalog.load import load_market
from planner.app.catalog import checked
from planner.model.market import BLOCKING, Mark
from planner.model.offer import CAPACITY_ORDER, Fabric, Link
from planner.placement.egress import cost_usd

MARKET = load_market()
TYPES = {(t.cloud.value, t.name): t for t in MARKET.types}


def price(cloud: str, region: str, name: str, capacity: str = "on_demand", zone: str | None = None) -> set[float]:
    m = MARKET
    return {
        round(float(m.price_micros[i]) / 1e6, 4)
        for i in range(len(m))
        if (m.types[m.type_ix[i]].cloud.value, m.regions[m.region_ix[i]].name, m.types[m.type_ix[i]].name)
        == (cloud, region, name)
        and CAPACITY_ORDER[m.capacity[i]].value == capacity
        and (zone is None or m.zones[m.zone_ix[i]] == zone)
    }


@pytest.mark.parametrize(
    ("cloud", "name", "gpu", "count", "memory"),
    [
        ("aws", "p4d.24xlarge", "A100", 8, 40),
        ("aws", "p4de.24xlarge", "A100-80GB", 8, 80),
        ("gcp", "a2-highgpu-8g", "A100", 8, 40),
        ("gcp", "a2-ultragpu-8g", "A100-80GB", 8, 80),
        ("azure", "Standard_ND96asr_v4", "A100", 8, 40),
        ("azure", "Standard_ND96amsr_A100_v4", "A100-80GB", 8, 80),
        ("azure", "Standard_ND96isr_H100_v5", "H100", 8, 80),
        ("azure", "Standard_NC40ads_H100_v5", "H100-NVL", 1, 94),
        ("azure", "Standard_NCC40ads_H100_v5", "H100-NVL", 1, 94),
        ("aws", "p3dn.24xlarge", "V100-32GB", 8, 32),
        ("nebius", "gpu-h100-sxm_8gpu-128vcpu-1600gb", "H100", 8, 80),
    ],
)
def test_r07_known_parts(cloud: str, name: str, gpu: str, count: int, memory: float) -> None:
    t = TYPES[(cloud, name)]
    assert (t.gpu, t.gpu_count, t.gpu_memory_gib) == (gpu, count, memory)


@pytest.mark.parametrize(
    ("cloud", "region", "name", "usd"),
    [
        ("gcp", "us-central1", "a2-ultragpu-8g", 40.55),  # $23.57 circulates and is wrong
        ("gcp", "us-central1", "a3-highgpu-8g", 88.49),  # $43.07 circulates and is wrong
        ("aws", "us-east-1", "p4de.24xlarge", 27.447),
        ("aws", "us-east-1", "p5.48xlarge", 55.04),
        ("nebius", "eu-north1", "gpu-h100-sxm_8gpu-128vcpu-1600gb", 30.8),
    ],
)
def test_known_prices(cloud: str, region: str, name: str, usd: float) -> None:
    assert all(p == pytest.approx(usd, rel=0.002) for p in price(cloud, region, name))
    assert price(cloud, region, name)


def test_fabrics_of_known_types() -> None:
    known = {
        ("aws", "p4d.24xlarge"): (Fabric.EFA, 4, Link.NVSWITCH),
        ("aws", "p5.48xlarge"): (Fabric.EFA, 32, Link.NVSWITCH),
        ("gcp", "a3-highgpu-8g"): (Fabric.TCPX, 0, Link.NVSWITCH),
        ("gcp", "a3-megagpu-8g"): (Fabric.TCPXO, 0, Link.NVSWITCH),
        ("azure", "Standard_ND96isr_H100_v5"): (Fabric.INFINIBAND, 0, Link.NVSWITCH),
        ("nebius", "gpu-h200-sxm_1gpu-16vcpu-200gb"): (Fabric.ETHERNET, 0, Link.SINGLE),
        ("aws", "g5.48xlarge"): (Fabric.EFA, 1, Link.PCIE),
        ("aws", "p3.16xlarge"): (Fabric.ETHERNET, 0, Link.NVLINK),
    }
    assert {k: (TYPES[k].fabric, TYPES[k].efa_interfaces, TYPES[k].link) for k in known} == known


def test_hardware_that_runs_out_together_is_one_pool() -> None:
    assert TYPES[("gcp", "a3-edgegpu-8g")].hardware == TYPES[("gcp", "a3-edgegpu-8g-nolssd")].hardware
    assert TYPES[("aws", "p4d.24xlarge")].hardware != TYPES[("aws", "p4de.24xlarge")].hardware


def test_every_gpu_has_a_speed_and_every_type_a_positive_shape() -> None:
    for t in MARKET.types:
        assert MARKET.speeds[t.gpu] > 0
        assert min(t.gpu_count, t.vcpus, t.ram_gib, t.gpu_memory_gib) > 0
        assert t.source
        assert t.as_of


def test_every_figure_and_tariff_has_a_source_and_a_date() -> None:
    assert all(f.source and f.as_of for f in MARKET.figures.values())
    assert all(t.source and t.as_of for t in MARKET.links.tariffs)


def test_no_offer_is_free_and_none_below_its_band_is_open() -> None:
    open_now = (MARKET.marks & int(BLOCKING)) == 0
    assert (MARKET.price_micros[open_now] > 0).all()


def test_local_zones_and_opt_in_regions_never_win() -> None:
    for i in range(len(MARKET)):
        zone, region = MARKET.zones[MARKET.zone_ix[i]], MARKET.regions[MARKET.region_ix[i]]
        if zone in ("use1-atl2-az1", "usw2-lax1-az1", "usw2-lax1-az2") or region.opt_in:
            assert MARKET.marks[i] & Mark.OPT_IN_ZONE


def tariff(a: tuple[str, str], b: tuple[str, str]):
    ix = MARKET.region_index
    return MARKET.links.tariffs[MARKET.links.tariff_ix[ix[a], ix[b]]]


@pytest.mark.parametrize(
    ("gb", "usd"),
    [(100, 0), (1024, 83.16), (10_239, 912.5), (10_240, 912.6), (10_241, 912.7), (51_200, 4394.7), (153_601, 11564.3)],
)
def test_r12_aws_egress_follows_the_list_through_every_step(gb: float, usd: float) -> None:
    assert cost_usd(tariff(("aws", "us-east-1"), ("gcp", "us-central1")), gb) == pytest.approx(usd, rel=0.01, abs=0.01)


@pytest.mark.parametrize(
    ("a", "b", "usd"),
    [
        (("aws", "us-east-1"), ("aws", "us-east-1"), 0.0),
        (("aws", "us-east-1"), ("aws", "us-east-2"), 0.01),
        (("aws", "us-east-1"), ("aws", "us-west-2"), 0.02),
        (("aws", "sa-east-1"), ("aws", "us-east-1"), 0.138),
        (("gcp", "us-central1"), ("gcp", "us-east1"), 0.02),
        (("gcp", "us-central1"), ("gcp", "europe-west4"), 0.05),
        (("azure", "eastus"), ("azure", "westeurope"), 0.05),
        (("azure", "eastus"), ("azure", "westus2"), 0.02),
        (("gcp", "us-central1"), ("aws", "us-east-1"), 0.12),
        (("nebius", "eu-north1"), ("aws", "eu-north-1"), 0.0),
    ],
)
def test_r12_first_gb_between_places(a: tuple[str, str], b: tuple[str, str], usd: float) -> None:
    t = tariff(a, b)
    assert next((s.usd_per_gb for s in t.steps if s.usd_per_gb > 0), 0.0) == usd


def test_nebius_traffic_is_free_only_as_an_unverified_figure() -> None:
    assert tariff(("nebius", "eu-north1"), ("aws", "eu-north-1")).unverified


def test_measured_links_stand_and_the_rest_are_estimates() -> None:
    ix, links = MARKET.region_index, MARKET.links
    assert links.gbps[ix[("aws", "us-east-1")], ix[("gcp", "us-central1")]] == pytest.approx(5.09, abs=0.6)
    assert not links.gbps_estimated[ix[("aws", "us-east-1")], ix[("gcp", "us-central1")]]
    assert links.gbps_estimated[ix[("nebius", "eu-north1")], ix[("aws", "us-east-1")]]
    assert (links.gbps > 0).all()


def test_measured_round_trips_stand_and_the_rest_are_medians_of_their_areas() -> None:
    ix, links = MARKET.region_index, MARKET.links
    a, b, far = ix[("aws", "us-east-1")], ix[("gcp", "us-east4")], ix[("azure", "japaneast")]
    assert links.rtt_ms[a, b] < 10  # Virginia to Virginia
    assert links.rtt_ms[a, far] > 100  # Virginia to Tokyo
    assert not links.rtt_estimated[a, b]
    assert (links.rtt_ms == links.rtt_ms.T).all()
    assert (links.rtt_ms > 0).all()
    eu, na = ix[("nebius", "eu-north1")], ix[("aws", "us-east-2")]
    assert links.rtt_estimated[eu, na]
    assert links.rtt_ms[eu, na] == pytest.approx(110.4, abs=0.1)
    assert (~links.rtt_estimated).sum() == 2 * 1575


def test_light_in_fibre_is_not_outrun() -> None:
    """A round trip between areas that an ocean parts takes longer than 20 ms, whoever measured it."""
    links, area = MARKET.links, [r.area for r in MARKET.regions]
    apart = {
        frozenset(pair) for pair in (("na", "eu"), ("na", "asia"), ("na", "oceania"), ("sa", "eu"), ("na", "africa"))
    }
    times = [links.rtt_ms[i, j] for i in range(len(area)) for j in range(i) if frozenset((area[i], area[j])) in apart]
    assert times
    assert min(times) > 50


def test_networks_of_all_regions_are_disjoint() -> None:
    indices = [r.net_index for r in MARKET.regions]
    assert len(set(indices)) == len(indices)
    assert max(indices) <= 250


def test_what_the_check_finds_in_the_packaged_data_is_known() -> None:
    """A change of these counts is a change of the data, to be looked at line by line."""
    assert checked(None).counts == COUNTS


COUNTS = {
    "SKY-CAT-103": 20,
    "SKY-CAT-104": 61,
    "SKY-CAT-105": 7,
    "SKY-CAT-108": 104,
    "SKY-CAT-109": 3218,
    "SKY-CAT-111": 13,
    "SKY-CAT-112": 101,
    "SKY-CAT-113": 87,
    "SKY-CAT-114": 769,
}
