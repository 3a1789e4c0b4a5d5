"""What `stacks.tool` calls a node is what the stacks make of one, on every cloud."""

from __future__ import annotations

import re

import pytest

from planner.app.recover import IMPORTED
from planner.model.offer import Cloud
from planner.model.record import Stack
from planner.model.stack import rank_key
from stacks.tool import NODE_TYPES, _address
from tests.stacks import azure_inputs, gcp_inputs, inputs, nebius_inputs

LAUNCHES = {
    Cloud.AWS: inputs.compute,
    Cloud.GCP: gcp_inputs.compute,
    Cloud.AZURE: azure_inputs.compute,
    Cloud.NEBIUS: nebius_inputs.compute,
}
#: what hangs on a machine and is of no use without one; a lister shows it, or it goes with what it joins
HANGS_ON = {
    Cloud.AWS: set(),
    Cloud.GCP: set(),
    Cloud.AZURE: {
        "azurerm_network_interface",
        "azurerm_network_interface_security_group_association",
        "azurerm_network_interface_application_security_group_association",
    },
    Cloud.NEBIUS: {"nebius_vpc_v1_allocation"},
}


@pytest.fixture(params=Cloud)
def launch(request, render):
    given = LAUNCHES[request.param]()
    return given, render(given)


def test_every_cloud_has_one(launch):
    given, document = launch
    assert {Cloud(cloud) for cloud in NODE_TYPES} == set(Cloud)
    assert set(document["resource"]) == {NODE_TYPES[given.cloud], *HANGS_ON[given.cloud]}
    assert all(list(named) == ["node"] for named in document["resource"].values())


def test_a_machine_is_imported_only_where_it_is_all_there_is():
    assert {Cloud(cloud) for cloud in IMPORTED} == {cloud for cloud, others in HANGS_ON.items() if not others}


def test_the_address_of_a_rank_is_one_of_the_stacks(launch):
    given, document = launch
    stack = Stack(
        name=given.name,
        kind="compute",
        job=given.job,
        cloud=given.cloud.value,
        target=given.target,
        region=given.region,
        generation=given.generation,
        backend=given.backend,
        document=document,
        variables={},
    )
    for rank in range(given.nodes):
        kind, name, key = re.fullmatch(r'([\w]+)\.([\w]+)\["(r\d\d)"\]', _address(stack, rank_key(rank))).groups()
        assert key in document["resource"][kind][name]["for_each"]


def test_the_nodes_output_is_made_of_these(launch):
    given, document = launch
    assert f"in {NODE_TYPES[given.cloud]}.node :" in document["output"]["nodes"]["value"]
