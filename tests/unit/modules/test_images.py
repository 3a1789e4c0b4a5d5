"""Machine images: a driver for every packaged type, pins first, words where there is none."""

from __future__ import annotations

import pytest

from catalog import load
from modules.aws.images import machine_image
from planner.model.errors import InputError
from planner.model.offer import Cloud
from tests.builders import instance_type


def test_every_packaged_aws_type_boots_an_image():
    types = [kind for kind in load.load_market().types if kind.cloud is Cloud.AWS]
    assert types
    for kind in types:
        assert machine_image(kind, "us-east-1").startswith("/aws/service/deeplearning/ami/")


@pytest.mark.parametrize(
    ("name", "driver"), [("p3.2xlarge", "base-proprietary"), ("p5.48xlarge", "base-oss"), ("g4dn.xlarge", "base-oss")]
)
def test_volta_needs_the_proprietary_driver(name, driver):
    assert driver in machine_image(instance_type(name), "us-east-1")


@pytest.mark.parametrize("arch", ["amd64", "arm64"])
def test_the_architecture_is_in_the_path(arch):
    expected = {"amd64": "/x86_64/", "arm64": "/arm64/"}[arch]
    assert expected in machine_image(instance_type("g5g.xlarge", arch=arch), "us-east-1")


def test_the_first_matching_pin_wins():
    pins = (("aws/eu-*/*", "ami-eu"), ("aws/us-east-1/p4*", "ami-p4"), ("aws/*/*", "ami-any"))
    assert machine_image(instance_type("p4d.24xlarge"), "us-east-1", pins) == "ami-p4"
    assert machine_image(instance_type("p5.48xlarge"), "us-east-1", pins) == "ami-any"


def test_an_unknown_family_is_refused_with_the_way_out():
    with pytest.raises(InputError) as refused:
        machine_image(instance_type("q9.huge"), "us-east-1")
    assert "aws/us-east-1/q9.huge" in refused.value.diagnostics[0].hint
