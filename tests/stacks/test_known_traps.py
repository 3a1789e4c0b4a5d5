"""Traps that others fell into, each with the thread that tells of it; numbers are those of the project's notes on peers, section 9."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import yaml

from catalog.load import load_market
from modules.user_data import node_of, user_data
from planner.app import compose
from planner.model.ledger import AvailabilityMemory, Ledger
from planner.model.offer import CapacityType, Cloud, Fabric
from planner.model.project import Project, default_targets
from planner.placement.address import tunnel_addresses
from planner.placement.fleet import Policy, plan
from tests import builders as b
from tests.stacks import cases, gcp_inputs
from tests.unit.app.world import planned

MARKET = load_market()
PROJECT = Project(targets=default_targets())

SPOT, ON_DEMAND, RESERVED = CapacityType.SPOT, CapacityType.ON_DEMAND, CapacityType.RESERVED


def scripts(case):
    """What a node of the case runs, by path."""
    given = case.compute if case.cloud is not Cloud.AWS else case.access
    node = node_of(case.template, given, case.access.data_paths, head=case.access.head_address or "10.7.16.10")
    return {f["path"]: f["content"] for f in yaml.safe_load(user_data(case.workload, node))["write_files"]}


def on_fabrics():
    return [
        pytest.param(cases.case("f", cloud, template, ON_DEMAND), id=f"{cloud.value}-{fabric.value}")
        for cloud in Cloud
        for fabric, template in cases.fabrics(cloud).items()
    ]


def test_4_several_nodes_lie_in_one_zone_of_one_cloud():
    """dstack#2300, #3250: fleets over clouds that cannot join nodes, and one fleet in two clouds."""
    job = b.workload("train", resources={"nodes": 2})
    assert not job.tunnel
    policy = Policy(project=PROJECT, memory=AvailabilityMemory(), as_of=MARKET.as_of)
    (one,) = plan([job], MARKET, Ledger(), policy)
    assert one.ranked
    for p in one.ranked:
        assert p.parts == ()
        assert p.nodes == 2
        assert " + " not in p.offer_id


@pytest.mark.parametrize("fabric", list(gcp_inputs.ON_FABRIC), ids=lambda fabric: fabric.value)
def test_5_gcps_placement_policy_only_where_it_is_taken_and_without_a_distance(render, fabric):
    """dstack#2591 "Placement policy is not applicable to machine type" (n1), #2586 (max_distance 1: no instances)."""
    acc = render(cases.case("f", Cloud.GCP, gcp_inputs.template(fabric), ON_DEMAND).access)
    for policy in acc["resource"].get("google_compute_resource_policy", {}).values():
        assert policy["group_placement_policy"] == {"collocation": "COLLOCATED"}
    plain = gcp_inputs.template(Fabric.ETHERNET, instance_type="n1-standard-8+t4x1", cluster=False)
    assert (
        "google_compute_resource_policy" not in render(cases.case("n1", Cloud.GCP, plain, ON_DEMAND).access)["resource"]
    )


def test_6_efa_may_reach_its_own_group_both_ways(render):
    """gardener-extension-provider-aws#1832: an outbound rule to 0.0.0.0/0 is not enough for EFA."""
    acc = render(cases.case("f", Cloud.AWS, cases.fabrics(Cloud.AWS)[Fabric.EFA], ON_DEMAND).access)["resource"]
    for direction in ("ingress", "egress"):
        rules = acc[f"aws_vpc_security_group_{direction}_rule"].values()
        own = [r for r in rules if r.get("referenced_security_group_id") == r["security_group_id"]]
        assert [r["ip_protocol"] for r in own] == ["-1"]


@pytest.mark.parametrize("in_group", [True, False])
def test_7_a_reservation_made_outside_the_placement_group_is_not_sought_inside_it(render, in_group):
    """terraform-aws-eks PR#3730: a cluster placement group that the reservation does not share has no capacity."""
    template = cases.fabrics(Cloud.AWS)[Fabric.EFA]
    cmp = render(cases.case("r", Cloud.AWS, template, RESERVED, in_group=in_group).compute)
    assert ("placement_group" in cmp["resource"]["aws_instance"]["node"]) is in_group


def test_8_spot_is_said_whole_on_gcp_and_its_eviction_only_with_spot_on_azure(render):
    """cloud-foundation-fabric PR#778, percona/mongo_terraform_ansible#34; magic_castle#199."""

    def node(cloud, capacity, kind):
        return render(cases.case("s", cloud, cases.single(cloud), capacity).compute)["resource"][kind]["node"]

    spot = node(Cloud.GCP, SPOT, "google_compute_instance")["scheduling"]
    assert {k: spot[k] for k in ("provisioning_model", "preemptible", "automatic_restart", "on_host_maintenance")} == {
        "provisioning_model": "SPOT",
        "preemptible": True,
        "automatic_restart": False,
        "on_host_maintenance": "TERMINATE",
    }
    assert spot["instance_termination_action"] == "DELETE"
    assert node(Cloud.GCP, ON_DEMAND, "google_compute_instance")["scheduling"].get("preemptible", False) is False
    kind = "azurerm_linux_virtual_machine"
    fields = {"priority", "eviction_policy", "max_bid_price"}
    assert fields <= set(node(Cloud.AZURE, SPOT, kind))
    assert not fields & set(node(Cloud.AZURE, ON_DEMAND, kind))


@pytest.mark.parametrize("case", on_fabrics())
def test_15_gloo_has_one_real_interface_and_ports_are_bounded(case):
    """aws-do-eks PR#51 (GLOO_SOCKET_IFNAME takes no pattern), nccl#1956 (a range too narrow, or not opened, hangs)."""
    found = scripts(case)
    nccl, start = found["/opt/skyplan/nccl.sh"], found["/opt/skyplan/start.sh"]
    assert not re.search(r"GLOO_SOCKET_IFNAME=\"?[\^=]", nccl)
    assert "export GLOO_SOCKET_IFNAME" in nccl
    low, high = map(int, re.search(r'ip_local_port_range="(\d+) (\d+)"', start).groups())
    assert high - low > 10_000, "outgoing sockets take ports of it too"
    assert low > 29_500, "torchrun's own ports lie outside"


def test_15_the_tunnels_mtu_is_said_and_nothing_is_translated():
    """constellation PR#1146 (1,380 where a network of Google's is on the way), nccl#1606 (an address that is translated is no rank's)."""
    assert compose.TUNNEL_MTU == 1460 - 80
    assert len(set(tunnel_addresses(300))) == 300
    assert all(address.startswith("10.251.") for address in tunnel_addresses(300))


def test_two_clouds_never_share_a_stacks_name():
    """Google and Nebius both have a `us-central1`, and targets of two clouds may have one name."""
    choice = planned()[0].choice
    names = {compose.network_name(replace(choice, cloud=cloud.value, region="us-central1")) for cloud in Cloud}
    assert len(names) == len(Cloud)
