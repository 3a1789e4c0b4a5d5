"""GCP's images, machines and names: a driver for every packaged type, signed modules or no Secure Boot, names that fit and stay apart."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog import load
from modules.gcp.fabric import subnet_range
from modules.gcp.images import family_of, machine_image, secure_boot
from modules.gcp.machines import fabric_interfaces, machine_of
from modules.gcp.names import account_id, resource_name
from planner.model.errors import InputError
from planner.model.offer import Cloud, Fabric
from tests.builders import instance_type

TYPES = [kind for kind in load.load_market().types if kind.cloud is Cloud.GCP]
WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=90)


def gcp(name, **changes):
    return instance_type(name, cloud=Cloud.GCP, **changes)


def test_every_packaged_type_boots_an_image_with_a_driver():
    assert TYPES
    for kind in TYPES:
        found = family_of(machine_image(kind, "us-central1"))
        assert found is not None, kind.name
        assert "nvidia" in found[1], kind.name


@pytest.mark.parametrize("name", ["n1-standard-8+p4x1", "n1-standard-8+p100x1", "n1-standard-64+v100x8"])
def test_open_kernel_modules_are_not_given_to_gpus_older_than_turing(name):
    image = machine_image(gcp(name), "us-central1")
    assert "ubuntu-accelerator" not in image
    assert not secure_boot(image)


@pytest.mark.parametrize(
    "name", ["n1-standard-16+t4x2", "g2-standard-8", "a2-ultragpu-8g", "a3-megagpu-8g", "a4-highgpu-8g"]
)
def test_newer_gpus_boot_signed_modules_under_secure_boot(name):
    image = machine_image(gcp(name), "us-central1")
    assert family_of(image) == ("ubuntu-os-accelerator-images", "ubuntu-accelerator-2204-amd64-with-nvidia-580")
    assert secure_boot(image)


def test_the_first_matching_pin_wins_and_is_not_trusted_to_be_signed():
    pins = (
        ("gcp/us-*/a3-mega*", "projects/acme-ml/global/images/tcpxo-v7"),
        ("gcp/*/*", "projects/acme-ml/global/images/any"),
    )
    image = machine_image(gcp("a3-megagpu-8g"), "us-central1", pins)
    assert image == "projects/acme-ml/global/images/tcpxo-v7"
    assert not secure_boot(image)
    assert machine_image(gcp("g2-standard-8"), "us-central1", pins).endswith("/any")


@pytest.mark.parametrize("kind", [gcp("z9-standard-8"), gcp("g2-standard-8", arch="arm64"), gcp("n1-standard-8+k80x1")])
def test_an_unknown_type_is_refused_with_the_way_out(kind):
    with pytest.raises(InputError) as refused:
        machine_image(kind, "us-central1")
    assert f"gcp/us-central1/{kind.name}" in refused.value.diagnostics[0].hint


@pytest.mark.parametrize(
    ("image", "family"),
    [
        ("projects/p/global/images/family/f", ("p", "f")),
        ("https://www.googleapis.com/compute/v1/projects/p/global/images/family/f", ("p", "f")),
        ("projects/p/global/images/f", None),
        ("train-v7", None),
    ],
)
def test_a_family_is_told_from_an_image(image, family):
    assert family_of(image) == family


def test_every_packaged_type_is_a_machine():
    for kind in TYPES:
        machine = machine_of(kind.name, kind.gpu_count, nvme=bool(kind.nvme_gb))
        assert "+" not in machine.machine_type
        assert (machine.accelerator is not None) == kind.name.startswith("n1-"), kind.name
        if machine.accelerator:
            assert machine.accelerator[1] == kind.gpu_count


def test_local_ssds_are_asked_for_where_the_type_does_not_bring_them():
    """The catalog says how much there is; 375 GB is one disk."""
    for kind in TYPES:
        asked = machine_of(kind.name, kind.gpu_count, nvme=bool(kind.nvme_gb)).local_ssds
        assert asked == ((kind.nvme_gb or 0) // 375 if kind.name.startswith("g2-") else 0), kind.name


@pytest.mark.parametrize(
    ("name", "disk"),
    [
        ("a3-ultragpu-8g", "hyperdisk-balanced"),
        ("a3-ultragpu-8g-nolssd", "hyperdisk-balanced"),
        ("a4-highgpu-8g", "hyperdisk-balanced"),
        ("a3-megagpu-8g", "pd-balanced"),
        ("n1-standard-16+t4x2", "pd-balanced"),
    ],
)
def test_the_boot_disk_is_one_that_the_family_takes(name, disk):
    assert machine_of(name, 8, nvme=True).disk_type == disk


def test_an_accelerator_that_is_not_known_is_no_guess():
    with pytest.raises(KeyError):
        machine_of("n1-standard-8+h900x1", 1, nvme=False)


def test_interfaces_of_each_fabric():
    assert fabric_interfaces(Fabric.TCPX) == ("GVNIC",) * 4
    assert fabric_interfaces(Fabric.TCPXO) == ("GVNIC",) * 8
    assert fabric_interfaces(Fabric.ROCE) == ("GVNIC", *("MRDMA",) * 8)
    assert fabric_interfaces(Fabric.ETHERNET) == ()


def test_ranges_of_a_fabric_stay_clear_of_docker():
    made = [subnet_range(place) for place in range(16)]
    assert made[:3] == ["172.16.0.0/20", "172.16.16.0/20", "172.16.32.0/20"]
    assert len(set(made)) == 16
    for place in (-1, 16):
        with pytest.raises(ValueError, match="range"):
            subnet_range(place)


@given(st.lists(WORDS, min_size=1, max_size=4), st.integers(30, 63))
def test_names_fit_the_clouds_alphabet_and_length(parts, limit):
    name = resource_name(*parts, limit=limit)
    assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name)
    assert len(name) <= limit


@given(WORDS, WORDS)
def test_two_texts_stay_two_names(one, other):
    if one != other:
        assert resource_name(one) != resource_name(other)
        assert account_id("acme", "acc", one) != account_id("acme", f"acc-{other}", one)


@given(WORDS, WORDS, WORDS)
def test_an_account_id_fits(project, stack, job):
    assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])", made := account_id(project, stack, job))
    assert 6 <= len(made) <= 30


def test_a_legal_name_stays_as_it_is():
    assert resource_name("acme", "net-prod-us-central1") == "skyplan-acme-net-prod-us-central1"
