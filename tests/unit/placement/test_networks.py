"""A quota of networks: what a candidate needs, what others hold, and the words for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.model.ledger import AvailabilityMemory, Holding, Ledger
from planner.model.offer import CapacityType, Cloud, Fabric, InstanceType
from planner.model.project import OwnNetwork, Target
from planner.placement.fleet import Placed, Policy, plan
from planner.placement.networks import gpu_networks
from tests import builders as b

OD = CapacityType.ON_DEMAND
EAST = b.region("us-east-1")
CENTRAL, EU = b.region("us-central1", Cloud.GCP, net_index=2), b.region("europe-west4", Cloud.GCP, net_index=3)
P4DE = b.instance_type("p4de.24xlarge")


def gcp(fabric: Fabric, name: str = "a3") -> InstanceType:
    return b.instance_type(name, cloud=Cloud.GCP, fabric=fabric, efa_interfaces=0)


TCPX = gcp(Fabric.TCPX)
GCP = b.market([(TCPX, CENTRAL, "c-a", OD, 20.0), (TCPX, EU, "e-a", OD, 30.0)])
AWS = b.market([(P4DE, EAST, "us-east-1-a", OD, 20.0)])


def place(market, target: Target, *, nodes: int = 1, ledger: Ledger | None = None) -> Placed:
    policy = Policy(project=b.project(target), memory=AvailabilityMemory(), as_of=market.as_of)
    return plan([b.workload(resources={"nodes": nodes})], market, ledger or Ledger(), policy)[0]


def target(cloud: Cloud, *quota: tuple[str, int], **more) -> Target:
    return Target(name="default", cloud=cloud, network_quota=quota, **more)


def held(instance_type: str, region: str, nodes: int, *, pool: str = "gcp:default/c-a/a3/on_demand", **more) -> Holding:
    values = {"job": "other", "capacity": "on_demand", "target": "default", "gpus": 8 * nodes, "vcpus": 96 * nodes}
    return Holding(instance_type=instance_type, region=region, nodes=nodes, pool=pool, **(values | more))


def refused(placed: Placed) -> list[str]:
    return [text for r in placed.rejected if r.code == "SKY-REJ-212" for text in r.examples]


@pytest.mark.parametrize(
    ("fabric", "nodes", "networks"),
    [
        (Fabric.TCPX, 2, 4),
        (Fabric.TCPXO, 2, 8),
        (Fabric.ROCE, 4, 2),
        (Fabric.ETHERNET, 2, 0),
        (Fabric.TCPXO, 1, 0),
    ],
)
def test_what_a_job_needs_besides_the_shared_network(fabric: Fabric, nodes: int, networks: int) -> None:
    assert gpu_networks(gcp(fabric), nodes) == networks
    assert gpu_networks(replace(gcp(fabric), cloud=Cloud.AWS), nodes) == 0
    market = b.market([(gcp(fabric), CENTRAL, "c-a", OD, 20.0)])
    assert place(market, target(Cloud.GCP, ("*", networks + 1)), nodes=nodes).ranked
    assert not place(market, target(Cloud.GCP, ("*", networks)), nodes=nodes).ranked


def test_a_quota_of_none_shuts_a_region_and_the_first_glob_that_matches_counts() -> None:
    shut = place(GCP, target(Cloud.GCP, ("us-central1", 0), ("*", 5)))
    assert [p.region for p in shut.ranked] == ["europe-west4"]
    (said,) = refused(shut)
    assert said == (
        "gcp:default/us-central1/c-a/a3/on_demand: needs 1 network(s) in us-central1 (1 shared), where `network_quota` "
        "allows 0 and other jobs hold 0"
    )
    assert [p.region for p in place(GCP, target(Cloud.GCP, ("us-*", 5), ("*", 0))).ranked] == ["us-central1"]
    assert len(place(GCP, target(Cloud.GCP, ("asia-*", 0))).ranked) == 2


def test_a_network_that_stands_is_not_counted_again_and_gpu_networks_are() -> None:
    one = Ledger((held("a3", "us-central1", 1),))
    assert len(place(GCP, target(Cloud.GCP, ("*", 1)), ledger=one).ranked) == 2
    assert len(place(GCP, target(Cloud.GCP, ("*", 5)), nodes=2, ledger=one).ranked) == 2
    two = Ledger((held("a3", "us-central1", 2),))
    assert len(place(GCP, target(Cloud.GCP, ("*", 9)), nodes=2, ledger=two).ranked) == 2
    full = place(GCP, target(Cloud.GCP, ("*", 8)), nodes=2, ledger=two)
    assert [p.region for p in full.ranked] == ["europe-west4"]
    (said,) = refused(full)
    assert said == (
        "gcp:default/us-central1/c-a/a3/on_demand: needs 4 network(s) in us-central1 (4 of its GPUs' own), where "
        "`network_quota` allows 8 and other jobs hold 5"
    )


def test_a_single_node_joins_a_network_that_stands_whatever_gpus_hold() -> None:
    two = Ledger((held("a3", "us-central1", 2),))
    assert len(place(GCP, target(Cloud.GCP, ("*", 2)), ledger=two).ranked) == 2


@pytest.mark.parametrize(
    "elsewhere",
    [
        held("a3", "europe-west4", 2),
        held("a3", "us-central1", 2, target="other"),
        held("a3", "us-central1", 2, pool="aws:default/x/a3/on_demand"),
        held("a3", "us-central1", 2, job="job"),
    ],
)
def test_other_regions_targets_clouds_and_the_jobs_own_holding_do_not_count(elsewhere: Holding) -> None:
    placed = place(GCP, target(Cloud.GCP, ("us-*", 5), ("*", 0)), nodes=2, ledger=Ledger((elsewhere,)))
    assert [p.region for p in placed.ranked] == ["us-central1"]


def test_a_type_that_the_catalog_lost_holds_the_shared_network_only() -> None:
    lost = Ledger((held("gone", "us-central1", 2),))
    assert len(place(GCP, target(Cloud.GCP, ("*", 5)), nodes=2, ledger=lost).ranked) == 2


def test_jobs_planned_together_see_each_others_networks() -> None:
    jobs = [b.workload(name, resources={"nodes": 2}) for name in ("job-a", "job-b")]
    policy = Policy(project=b.project(target(Cloud.GCP, ("*", 5))), memory=AvailabilityMemory(), as_of=GCP.as_of)
    first, second = plan(jobs, GCP, Ledger(), policy)
    assert (first.ranked[0].region, second.ranked[0].region) == ("us-central1", "europe-west4")


def test_the_users_own_network_needs_none_of_the_quota() -> None:
    own = OwnNetwork(region="us-east-1", vpc_id="vpc-1", subnets=(("us-east-1-a", "subnet-1"),))
    assert place(AWS, target(Cloud.AWS, ("*", 0), networks=(own,))).ranked
    assert not place(AWS, target(Cloud.AWS, ("*", 0))).ranked
    elsewhere = replace(own, region="us-west-2")
    (said,) = refused(place(AWS, target(Cloud.AWS, ("*", 5), networks=(elsewhere,))))
    assert "brings its own networks" in said


def test_a_target_without_a_quota_is_untouched_by_anothers() -> None:
    policy = Policy(
        project=b.project(target(Cloud.GCP, ("*", 0)), Target(name="free", cloud=Cloud.GCP)),
        memory=AvailabilityMemory(),
        as_of=GCP.as_of,
    )
    (placed,) = plan([b.workload()], GCP, Ledger(), policy)
    assert {p.target for p in placed.ranked} == {"free"}
