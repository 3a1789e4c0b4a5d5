"""What rows of AWS' lists mean, trap by trap."""

import json

import pytest

from catalog.load import load_market
from planner.clouds.feeds.aws_rows import Trouble, asked_first, product, quota, word_of_score
from planner.model.readings import CapacityWord
from tests.emulators.aws_lists import product as line

TYPES = (
    "g4dn.xlarge",
    "g6e.48xlarge",
    "gr6.4xlarge",
    "p3.2xlarge",
    "p4de.24xlarge",
    "p5.4xlarge",
    "p5en.48xlarge",
    "p6-b200.48xlarge",
)


@pytest.mark.parametrize(
    ("name", "capacity", "limited"),
    [
        ("Running On-Demand P instances", "on_demand", TYPES[3:]),
        ("Running On-Demand G and VT instances", "on_demand", TYPES[:3]),
        ("All G and VT Spot Instance Requests", "spot", TYPES[:3]),
        ("All P4, P3 and P2 Spot Instance Requests", "spot", ("p3.2xlarge", "p4de.24xlarge")),
        ("All P5 Spot Instance Requests", "spot", ("p5.4xlarge", "p5en.48xlarge")),
        ("All P6 Spot Instance Requests", "spot", ("p6-b200.48xlarge",)),
    ],
)
def test_a_quota_limits_the_families_in_its_name(name, capacity, limited):
    assert quota(name, TYPES) == (capacity, limited)


@pytest.mark.parametrize(
    "name",
    [
        "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances",
        "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests",
        "All Trn Spot Instance Requests",
        "All Inf Spot Instance Requests",
        "Running Dedicated p4d Hosts",
        "Running On-Demand P Spot Instance Requests",
        "All P instances",
        "EC2-VPC Elastic IPs",
        "",
    ],
)
def test_other_quotas_limit_none_of_ours(name):
    assert quota(name, TYPES) is None


def test_every_gpu_type_of_the_catalog_counts_towards_a_quota_on_demand():
    ours = tuple(t.name for t in load_market().types if t.cloud.value == "aws")
    names = ("Running On-Demand P instances", "Running On-Demand G and VT instances")
    counted = [t for name in names for t in (quota(name, ours) or ("", ()))[1]]
    assert sorted(counted) == sorted(ours)


@pytest.mark.parametrize(
    ("score", "word"),
    [
        (1, CapacityWord.SCARCE),
        (2, CapacityWord.OFFERED),
        (3, CapacityWord.AVAILABLE),
        (10, CapacityWord.AVAILABLE),
        (0, None),
        (11, None),
        (None, None),
        ("3", None),
        (True, None),
    ],
)
def test_scores_are_words(score, word):
    assert word_of_score(score) is word


def test_newest_p_types_are_scored_first():
    assert sorted(("g4dn.xlarge", "p3.2xlarge", "g6.xlarge", "p5.48xlarge"), key=asked_first) == [
        "p5.48xlarge",
        "p3.2xlarge",
        "g6.xlarge",
        "g4dn.xlarge",
    ]


def test_the_plain_product_has_a_price():
    found = product(json.dumps(line("p5.48xlarge", "us-east-1", "55.0400000000")))
    assert found is not None
    assert (found.instance_type, str(found.usd), found.begins, found.trouble) == (
        "p5.48xlarge",
        "55.0400000000",
        "2026-11-01T00:00:00Z",
        None,
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"operatingSystem": "Windows"},
        {"tenancy": "Host"},
        {"preInstalledSw": "SQL Std"},
        {"capacitystatus": "UnusedCapacityReservation"},
        {"marketoption": "CapacityBlock"},
    ],
)
def test_other_products_are_none_of_ours(changed):
    assert product(json.dumps(line("p5.48xlarge", "us-east-1", "0.0", **changed))) is None


def term(**changed):
    made = line("p5.48xlarge", "us-east-1", "55.04")
    (only,) = made["terms"]["OnDemand"].values()
    only["priceDimensions"]["SKU.JRTC.6YS6"].update(changed)
    return made


@pytest.mark.parametrize(
    ("made", "trouble"),
    [
        (term(unit="Quantity"), Trouble.NOT_UNDERSTOOD),
        (term(pricePerUnit={"CNY": "300"}), Trouble.NOT_UNDERSTOOD),
        (term(pricePerUnit={"USD": "0.0000000000"}), Trouble.SENSELESS),
        (term(pricePerUnit={"USD": "free"}), Trouble.SENSELESS),
        (term(pricePerUnit=[]), Trouble.NOT_UNDERSTOOD),
        ({**term(), "terms": {}}, Trouble.SENSELESS),
        ({**term(), "terms": {"OnDemand": {"a": {}, "b": {}}}}, Trouble.SENSELESS),
        ({"product": {}}, Trouble.SENSELESS),
        ([], Trouble.SENSELESS),
    ],
)
def test_what_cannot_be_read_is_named(made, trouble):
    found = product(json.dumps(made))
    assert found is not None
    assert (found.usd, found.trouble) == (None, trouble)


def test_what_is_no_json_is_named():
    found = product("{")
    assert found is not None
    assert found.trouble is Trouble.SENSELESS
