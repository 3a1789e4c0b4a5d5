"""Terraform's own opinion of the stacks, with the real AWS provider."""

from __future__ import annotations

import shutil

import pytest

from planner.model.offer import CapacityType, Cloud
from planner.model.project import Backend, OwnNetwork
from stacks.runner import Terraform
from tests.emulators import terraform as machine
from tests.stacks import inputs
from tests.stacks.tunnel_inputs import PARTS

pytestmark = pytest.mark.terraform
TUNNEL = PARTS[Cloud.AWS]
OWN = OwnNetwork(region="us-east-1", vpc_id="vpc-1", subnets=(("use1-az1", "subnet-1"),))


@pytest.fixture(scope="session")
def ready(tmp_path_factory):
    if reason := machine.missing(aws=True):
        pytest.skip(reason)
    return machine.prepare(tmp_path_factory.mktemp("terraform"))


@pytest.mark.parametrize(
    "given",
    [
        inputs.network(),
        inputs.network(own=OWN),
        inputs.access(),
        inputs.access(templates=(inputs.efa_template(instance_type="p5.48xlarge", efa_interfaces=32),)),
        inputs.compute(),
        inputs.access(templates=(inputs.plain_template(session=True),)),
        inputs.compute(capacity=CapacityType.RESERVED, reservation="cr-0123456789abcdef0", addresses=()),
        inputs.compute(
            capacity=CapacityType.RESERVED, reservation="cr-0123456789abcdef0", in_group=True, capacity_block=True
        ),
        TUNNEL.addresses,
        TUNNEL.access,
        TUNNEL.compute,
    ],
    ids=[
        "network",
        "own-network",
        "access",
        "access-32-efa",
        "compute-spot",
        "access-session",
        "compute-reserved",
        "compute-capacity-block",
        "addresses",
        "access-tunnel",
        "compute-tunnel",
    ],
)
def test_terraform_finds_nothing_wrong(render, ready, tmp_path, given):
    terraform = Terraform(tmp_path, environment=ready.environment)
    terraform.write(render(given), {})
    terraform.init(given.backend, "k.tfstate")
    assert terraform.validate() == ()


def test_a_state_in_the_work_folder_outlives_every_init(tmp_path):
    """A new provider, a moved project, a copy of it: Terraform must not take its own state for another one."""
    if reason := machine.missing(aws=False):
        pytest.skip(reason)
    ready = machine.prepare(tmp_path / "home", stubs={})
    terraform = Terraform(tmp_path / "work", environment=ready.environment)
    made = {
        "terraform": {"backend": {"local": {}}},
        "resource": {"terraform_data": {"node": {"input": "i-1"}}},
        "output": {"node": {"value": "${terraform_data.node.output}"}},
    }
    terraform.write(made, {})
    terraform.init(Backend(), "k.tfstate")
    terraform.apply()
    terraform.write({**made, "terraform": {"backend": {"local": {}}, "required_version": ">= 1.5"}}, {})
    terraform.init(Backend(), "k.tfstate")
    assert terraform.output() == {"node": "i-1"}
    shutil.copytree(tmp_path / "work", tmp_path / "copy", symlinks=True)
    (tmp_path / "work").rename(tmp_path / "moved")
    for name in ("copy", "moved"):
        other = Terraform(tmp_path / name, environment=ready.environment)
        other.init(Backend(), "k.tfstate")
        assert other.output() == {"node": "i-1"}
        assert not other.plan(), "nothing is to be made a second time"
