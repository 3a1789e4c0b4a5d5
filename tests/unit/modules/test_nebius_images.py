"""Nebius: a boot image for every packaged platform, pins first; the fabric of every place that sells eight GPUs."""

from __future__ import annotations

import pytest

from catalog import load
from modules.nebius.fabrics import fabric_name
from modules.nebius.images import image_source, machine_image
from modules.nebius.names import node_stem, platform_and_preset, resource_name
from planner.model.errors import InputError
from planner.model.offer import Cloud, Fabric
from tests.builders import instance_type

H100 = "gpu-h100-sxm_8gpu-128vcpu-1600gb"


def kind(name, **changes):
    return instance_type(name, **{"cloud": Cloud.NEBIUS, "arch": "amd64", **changes})


def test_every_packaged_type_boots_an_image():
    types = [one for one in load.load_market().types if one.cloud is Cloud.NEBIUS]
    assert types
    for one in types:
        assert machine_image(one, "eu-north1") == "family:ubuntu24.04-cuda13.0"


def test_every_packaged_type_names_its_platform_and_preset():
    for one in load.load_market().types:
        if one.cloud is Cloud.NEBIUS:
            platform, preset = platform_and_preset(one.name)
            assert platform.startswith("gpu-")
            assert preset.startswith(f"{one.gpu_count}gpu-")
            assert f"{one.vcpus}vcpu-" in preset


def test_the_first_matching_pin_wins():
    pins = (("nebius/eu-north1/gpu-h100*", "computeimage-e00pinned"), ("nebius/*/*", "family:acme"))
    assert machine_image(kind(H100), "eu-north1", pins) == "computeimage-e00pinned"
    assert machine_image(kind(H100), "eu-west1", pins) == "family:acme"


@pytest.mark.parametrize(
    ("name", "arch"), [("gpu-q9_8gpu-1vcpu-1gb", "amd64"), (H100, "arm64"), ("cpu-d3_4vcpu-16gb", "amd64")]
)
def test_what_no_driver_is_known_for_is_refused_with_the_way_out(name, arch):
    with pytest.raises(InputError) as refused:
        machine_image(kind(name, arch=arch), "eu-north1")
    assert f"nebius/eu-north1/{name}" in refused.value.diagnostics[0].hint


def test_a_family_and_an_id_are_different_arguments():
    assert image_source("family:acme") == {"source_image_family": {"image_family": "acme"}}
    assert image_source("computeimage-e00acme") == {"source_image_id": "computeimage-e00acme"}


def test_every_place_that_sells_infiniband_has_a_fabric():
    market = load.load_market()
    places = {
        (market.types[kind_ix], market.regions[region_ix].name)
        for kind_ix, region_ix in zip(market.type_ix, market.region_ix, strict=True)
    }
    sold = [
        (platform_and_preset(one.name)[0], region)
        for one, region in places
        if one.cloud is Cloud.NEBIUS and one.fabric is Fabric.INFINIBAND
    ]
    assert len(sold) >= 5
    assert [place for place in sold if fabric_name(*place) is None] == []


def test_where_no_fabric_is_known_none_is_made_up():
    assert fabric_name("gpu-h100-sxm", "us-central1") is None
    assert fabric_name("gpu-l40s-a", "eu-north1") is None


@pytest.mark.parametrize("name", ["gpu-h100-sxm", "_8gpu", "gpu-h100-sxm_"])
def test_a_name_that_is_no_platform_and_preset_is_refused(name):
    with pytest.raises(ValueError, match="PLATFORM_PRESET"):
        platform_and_preset(name)


def test_names_fit_whatever_the_job_is_called():
    project, job = "p" * 40, "j" * 40
    stem = node_stem(project, job, 12345)
    assert len(f"{stem}-r00-boot") <= 63
    assert stem != node_stem(project, job, 12346)
    assert len(resource_name(f"acc-{job}-prod-us-central1", project, "-x")) <= 63
