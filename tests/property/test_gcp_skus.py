"""Google's price list: whatever a row holds it is read or left out, and a machine costs what its parts do, of one region."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.clouds.feeds.gathering import Gathering
from planner.clouds.feeds.gcp_families import FAMILIES, family_of, machine_of, part_of
from planner.clouds.feeds.gcp_skus import Shape, parts_of, price, sku
from planner.clouds.feeds.port import Wanted

NOW = datetime(2026, 11, 30, tzinfo=UTC)
HERE, THERE = "us-central1", "europe-west4"
TYPES = {
    "a2-highgpu-8g": "nvidia-tesla-a100",
    "a2-megagpu-16g": "nvidia-tesla-a100",
    "a2-ultragpu-1g": "nvidia-a100-80gb",
    "a3-highgpu-8g": "nvidia-h100-80gb",
    "a3-megagpu-8g": "nvidia-h100-mega-80gb",
    "a3-ultragpu-8g": "nvidia-h200-141gb",
    "a3-ultragpu-8g-nolssd": "nvidia-h200-141gb",
    "a4-highgpu-8g": "nvidia-b200",
    "g2-standard-96": "nvidia-l4",
    "n1-standard-8+t4x1": "nvidia-tesla-t4",
    "n1-standard-16+p100x2": "nvidia-tesla-p100",
    "n1-standard-64+v100x8": "nvidia-tesla-v100",
    "n1-standard-32+p4x4": "nvidia-tesla-p4",
}
NANOS = st.integers(1, 20 * 10**9)


def row(description, nanos, unit="h", region=HERE, usage="OnDemand"):
    return {
        "skuId": "AAAA-BBBB",
        "description": description,
        "category": {"resourceFamily": "Compute", "resourceGroup": "CPU", "usageType": usage},
        "serviceRegions": [region],
        "pricingInfo": [
            {
                "effectiveTime": "2026-11-29T00:00:00Z",
                "pricingExpression": {
                    "usageUnit": unit,
                    "tieredRates": [
                        {"unitPrice": {"currencyCode": "USD", "units": str(nanos // 10**9), "nanos": nanos % 10**9}}
                    ],
                },
            }
        ],
    }


def listed(family, costs, region=HERE):
    """A SKU for every part; what is sold by the month costs 730 times as much."""
    core, ram, gpu, ssd = costs
    rows = [row(f"{family.gpu[0]} running in Americas", gpu, region=region)]
    if family.core:
        rows += [row(f"{family.core[0]} running in Americas", core, region=region)]
        rows += [row(f"{family.ram[0]} running in Americas", ram, "GiBy.h", region)]
        rows += [row("SSD backed Local Storage", ssd * 730, "GiBy.mo", region)]
    return rows


def gathering(instance_type, region=HERE):
    wanted = Wanted(regions=(region,), instance_types={region: (instance_type,)}, now=NOW)
    return Gathering(cloud="gcp", region=region, wanted=wanted, source="test")


def costs_of(instance_type, rows, shape, *, spot=False):
    into = gathering(instance_type)
    parts = parts_of([one for r in rows if (one := sku(r)) is not None], into)
    return price(instance_type, family_of(instance_type), shape, parts, into, spot=spot), into.fed()


@pytest.mark.parametrize(("instance_type", "accelerator"), TYPES.items())
def test_every_type_of_the_catalog_is_of_one_family(instance_type, accelerator):
    assert [f.accelerator for f in FAMILIES if f.types.fullmatch(instance_type)] == [accelerator]


def test_a_type_of_the_catalog_without_a_family_is_known_to_have_none():
    from catalog.load import load_market

    without = {t.name for t in load_market().types if t.cloud.value == "gcp" and family_of(t.name) is None}
    assert without == {"a3-edgegpu-8g", "a3-edgegpu-8g-nolssd"}


def test_attached_gpus_are_counted_by_the_name():
    assert machine_of("n1-standard-16+p100x2") == ("n1-standard-16", 2)
    assert machine_of("a3-highgpu-8g") == ("a3-highgpu-8g", None)
    assert machine_of("a3-edgegpu-8g") == ("a3-edgegpu-8g", None)


@pytest.mark.parametrize(
    ("description", "usage", "part"),
    [
        ("A3 Instance Core running in Americas", "OnDemand", ("A3 Instance Core", False)),
        ("Spot Preemptible A3 Instance Ram running in Tokyo", "Preemptible", ("A3 Instance Ram", True)),
        (
            "Preemptible N1 Predefined Instance Core running in EMEA",
            "Preemptible",
            ("N1 Predefined Instance Core", True),
        ),
        ("Nvidia L4 GPU attached to Spot Preemptible VMs running in Virginia", "Preemptible", ("Nvidia L4 GPU", True)),
        (
            "Spot Preemptible A4 Nvidia B200 (1 gpu slice) running in Americas",
            "OnDemand",
            ("A4 Nvidia B200 (1 gpu slice)", True),
        ),
        ("SSD backed Local Storage", "OnDemand", ("SSD backed Local Storage", False)),
        ("SSD backed Local Storage in Mumbai", "OnDemand", ("SSD backed Local Storage", False)),
        (
            "SSD backed Local Storage attached to Spot Preemptible VMs",
            "Preemptible",
            ("SSD backed Local Storage", True),
        ),
        ("Commitment v1: Nvidia H100 80GB GPU in Americas for 1 Year", "Commit1Yr", None),
        ("Commitment v1: N4A Core in Johannesburg for 5 Years", "Commit", None),
        ("Reserved Nvidia H100 80GB Mega GPU in Americas in Calendar Mode", "OnDemand", None),
        ("Nvidia H100 Mega 80GB GPU attached to DWS Defined Duration VMs running in Americas", "OnDemand", None),
        ("DWS Defined Duration A2 Core running in Americas", "OnDemand", None),
        ("SSD backed Local Storage attached to DWS Defined Duration VMs running in Americas", "OnDemand", None),
        ("Nvidia Tesla T4 GPU attached to Sole Tenancy VMs running in Americas", "OnDemand", None),
        ("A3 Sole Tenancy Instance Core running in Americas", "OnDemand", None),
        ("Custom Instance Core running in Americas", "OnDemand", None),
        ("A2 Instance Core running in Americas", "CmtCudPremium", None),
        ("M3 Memory-optimized Instance Core running in Americas", "OnDemand", None),
        ("", "OnDemand", None),
    ],
)
def test_only_what_is_known_from_its_first_word_on_is_a_part(description, usage, part):
    assert part_of(description, usage) == part


SHAPES = st.builds(
    Shape,
    vcpus=st.integers(1, 256),
    ram_gib=st.integers(1, 4096).map(Decimal),
    gpus=st.integers(1, 16),
    ssd_gib=st.integers(0, 32).map(lambda partitions: partitions * 375),
)
COSTS = st.tuples(NANOS, NANOS, NANOS, NANOS)


@given(instance_type=st.sampled_from(sorted(TYPES)), costs=COSTS, elsewhere=COSTS, shape=SHAPES, data=st.data())
def test_a_machine_costs_what_its_parts_do_in_its_own_region(instance_type, costs, elsewhere, shape, data):
    family = family_of(instance_type)
    rows = data.draw(st.permutations(listed(family, costs) + listed(family, elsewhere, THERE)))
    usd, fed = costs_of(instance_type, rows, shape)
    core, ram_cost, gpu, ssd_cost = costs
    host = shape.vcpus * core + int(shape.ram_gib) * ram_cost + shape.ssd_gib * ssd_cost
    bill = shape.gpus * gpu + (host if family.core else 0)
    assert fed.warnings == ()
    assert float(usd) == pytest.approx(bill / 1e9, abs=2e-6, rel=1e-9)


@given(instance_type=st.sampled_from(sorted(TYPES)), data=st.data())
def test_without_one_of_its_parts_it_has_no_price_and_is_named(instance_type, data):
    family = family_of(instance_type)
    rows = listed(family, (1, 2, 3, 4))
    lost = data.draw(st.integers(0, len(rows) - 1))
    shape = Shape(vcpus=8, ram_gib=Decimal(64), gpus=1, ssd_gib=375)
    usd, fed = costs_of(instance_type, rows[:lost] + rows[lost + 1 :], shape)
    assert usd is None
    if len(rows) > 1:
        assert {w.code for w in fed.warnings} == {"SKY-CAT-116"}


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**400), 10**400),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["9" * 5000, "NaN", "Infinity", "-0", "1e999999", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


def places(value, path=()):
    """Every place in a document."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*path, key))


@given(data=st.data())
def test_a_hurt_row_is_read_or_left_out_and_makes_nothing_up(data):
    instance_type = "a3-highgpu-8g"
    family = family_of(instance_type)
    rows = listed(family, (29_000_000, 2_500_000, 9_796_551_000, 100_000))
    shape = Shape(vcpus=208, ram_gib=Decimal(1872), gpus=8, ssd_gib=6000)
    whole, _ = costs_of(instance_type, rows, shape)
    hurt = copy.deepcopy(rows)
    which = data.draw(st.integers(0, len(hurt) - 1))
    path = data.draw(st.sampled_from([p for p in places(hurt[which]) if p]))
    at = hurt[which]
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = data.draw(VALUES)
    usd, _ = costs_of(instance_type, hurt, shape)
    priced = {"units", "nanos", "usageUnit", "tieredRates", "unitPrice", "pricingExpression", "pricingInfo"}
    assert usd is None or usd == whole or set(path) & priced
    assert usd is None or 0 < usd < 10**9


def test_a_price_from_tomorrow_is_named():
    rows = listed(family_of("g2-standard-4"), (1, 2, 3, 4))
    rows[0]["pricingInfo"][0]["effectiveTime"] = (NOW + timedelta(days=1)).isoformat()
    usd, fed = costs_of("g2-standard-4", rows, Shape(vcpus=4, ram_gib=Decimal(16), gpus=1, ssd_gib=0))
    assert usd is None
    assert {w.code for w in fed.warnings} == {"SKY-CAT-117"}
