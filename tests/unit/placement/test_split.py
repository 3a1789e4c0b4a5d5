"""Splits over two clouds: hand-computed hours and egress, node counts, and why a job is split or not."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.ledger import AvailabilityMemory, Failure, Holding, Ledger
from planner.model.market import Figure, Mark, Market
from planner.model.offer import CapacityType, Cloud, Fabric, Link, parts_of_offer_id, split_offer_id
from planner.model.plan import Placement
from planner.model.project import Project, Quota, Reservation, Target
from planner.model.workload import Store, Workload
from planner.placement.explain import verdict
from planner.placement.fleet import Placed, Policy, holdings, plan
from planner.placement.offers import offers_of
from planner.placement.room import room
from planner.placement.split import fill, may_split
from planner.placement.split_cost import ring_latency
from tests import builders as b

AWS, GCP = b.region("us-east-1"), b.region("europe-west4", Cloud.GCP, area="eu", net_index=2)
AZURE = b.region("eastus", Cloud.AZURE, net_index=3)
P4, A2 = b.instance_type("p4de.24xlarge"), b.instance_type("a2-ultragpu-8g", cloud=Cloud.GCP)
ND = b.instance_type("Standard_ND96amsr_A100_v4", cloud=Cloud.AZURE)
OD = CapacityType.ON_DEMAND
#: 9 GB once a minute of computing on the reference: 10 GB with headers each way between two nodes
SYNC: dict[str, Any] = {"tunnel": True, "sync_bytes": 9_000_000_000, "sync_seconds": 60.0}


def market(aws: float = 30.0, gcp: float = 40.0, **changes: Any) -> Market:
    gbps = changes.pop("gbps", 8.0)
    return b.market([(P4, AWS, "", OD, aws), (A2, GCP, "", OD, gcp)], gbps=gbps, **changes)


def job(nodes: int = 2, **changes: Any) -> Workload:
    return b.workload(**({"resources": {"nodes": nodes}} | SYNC | changes))


def run(m: Market, *jobs: Workload, project: Project | None = None, as_of: str | None = None, **more: Any) -> Placed:
    policy = Policy(
        project=project or b.project(pool_cap_nodes=1),
        memory=more.pop("memory", AvailabilityMemory()),
        as_of=as_of or m.as_of,
    )
    return plan(jobs, m, more.pop("ledger", Ledger()), policy)[0]


def choice(placed: Placed) -> Placement:
    return placed.ranked[0]


def usd(p: Placement, term: str) -> Decimal | None:
    return next(t.usd for t in p.terms if t.name == term)


def test_two_nodes_in_two_clouds_by_hand() -> None:
    """24 h on one node are 12 h on two; 1,440 times 10 GB at 8 Gbit/s and 50 ms take 10.05 s each: 4.02 h more."""
    p = choice(run(market(), job()))
    assert p.offer_id == (
        "aws:default/us-east-1/-/p4de.24xlarge/on_demand x1 + gcp:default/europe-west4/-/a2-ultragpu-8g/on_demand x1"
    )
    assert p.compute_hours == Decimal("16.0200")
    assert p.usd_per_hour == 70
    assert usd(p, "compute") == Decimal("1121.4000")
    # 14,400 GB each way: 100 free, 10,240 at 0.09, 4,060 at 0.085
    assert usd(p, "sync_egress") == 2 * Decimal("1266.7000")
    # set-up 5 min; a lone address is priced in aws only
    held = 16.02 + 5 / 60
    assert usd(p, "tunnel_addresses") == pytest.approx(Decimal(repr(0.005 * held)), abs=Decimal("0.0001"))
    assert usd(p, "disk") == pytest.approx(Decimal(repr(2 * 200 * 0.08 / 730 * held)), abs=Decimal("0.0001"))
    assert usd(p, "outbound") == pytest.approx(Decimal(repr(2 * 0.045 * held)), abs=Decimal("0.0001"))
    assert p.lower_bound
    assert p.total_usd == sum(t.usd for t in p.terms if t.usd is not None)
    detail = next(t.detail for t in p.terms if t.name == "compute")
    assert "stretched 1.33 times from 12.00 h by 1,440 synchronisations of 10.05 s, one every 30.0 s" in detail


@pytest.mark.parametrize(
    ("nodes", "gbps", "rtt_ms", "size_gb", "every", "hours"),
    [
        # base: 24 h x 8 GPUs over N x 8; parts of two nodes and more do without their fabric: x 0.85
        (2, 8.0, 50.0, 9.0, 60.0, 12 + 1440 * (10 + 0.050) / 3600),
        (2, 4.0, 50.0, 9.0, 60.0, 12 + 1440 * (20 + 0.050) / 3600),
        (2, 8.0, 250.0, 9.0, 60.0, 12 + 1440 * (10 + 0.250) / 3600),
        (2, 8.0, 50.0, 9.0, 600.0, 12 + 144 * (10 + 0.050) / 3600),
        (3, 8.0, 50.0, 9.0, 60.0, 8 / 0.85 + 1440 * (40 / 3 + 0.075) / 3600),  # 4/3 x 9 GB / 0.9
        (4, 8.0, 50.0, 9.0, 60.0, 6 / 0.85 + 1440 * (15 + 0.100) / 3600),  # 3 + 1: every crossing twice
    ],
)
def test_stretch_by_hand(nodes, gbps, rtt_ms, size_gb, every, hours) -> None:  # noqa: PLR0917 - a table's columns
    m = market(gbps=gbps)
    m = replace(m, links=replace(m.links, rtt_ms=np.full((2, 2), rtt_ms)))
    one = job(nodes, sync_bytes=round(size_gb * 1e9), sync_seconds=every)
    p = choice(run(m, one, project=b.project(pool_cap_nodes=nodes - 1)))
    assert [part.nodes for part in p.parts] == [nodes - 1, 1]
    assert float(p.compute_hours) == pytest.approx(hours, abs=1e-4)


def test_the_slower_direction_the_nic_and_a_cap_on_one_flow_bound_the_tunnel() -> None:
    m = market()
    links = replace(m.links, gbps=np.array([[100.0, 8.0], [2.0, 100.0]]))
    slow = choice(run(replace(m, links=links), job()))
    assert "2 Gbit/s" in next(d for d in slow.differs if d.startswith("tunnel"))
    narrow = b.market(
        [(replace(P4, network_gbps=4.0), AWS, "", OD, 30.0), (A2, GCP, "", OD, 40.0)],
        gbps=8.0,
        figures=m.figures,
    )
    assert "4 Gbit/s" in next(d for d in choice(run(narrow, job())).differs if d.startswith("tunnel"))
    capped = replace(m, figures=m.figures | {"tunnel_flow_gbps.gcp": Figure(3.0, "", "test", "2026-01-01")})
    assert "3 Gbit/s" in next(d for d in choice(run(capped, job())).differs if d.startswith("tunnel"))


def test_data_is_read_by_share_and_checkpoints_are_written_once_and_read_by_every_part() -> None:
    one = job(
        4,
        data=(b.dataset(1000.0),),
        checkpoint=b.checkpoints(200.0, every_hours=5.0),
        sync_bytes=9000,
    )
    # three of four nodes read in the bucket's own region, the fourth 250 GB from elsewhere
    p = choice(run(market(rate=0.0), one, project=b.project(pool_cap_nodes=3)))
    assert [(part.cloud, part.nodes) for part in p.parts] == [("aws", 3), ("gcp", 1)]
    assert usd(p, "data_egress") == Decimal("13.5000")  # 100 GB free, 150 at 0.09
    assert usd(p, "checkpoint_egress") == 0  # written where they lie; nothing is interrupted
    spot = b.market(
        [(P4, AWS, "", CapacityType.SPOT, 30.0), (A2, GCP, "", CapacityType.SPOT, 40.0)], gbps=8.0, rate=0.01
    )
    one = replace(one, resources=replace(one.resources, capacity=(CapacityType.SPOT,)))
    p = choice(run(spot, one, project=b.project(pool_cap_nodes=3)))
    # 4 nodes x 0.01 x hours restores, each bringing 200 GB (100 free) to gcp
    restores = 0.04 * float(p.compute_hours)
    assert float(usd(p, "checkpoint_egress") or 0) == pytest.approx(9.0 * restores, rel=1e-4)


def test_parts_of_one_store_under_one_tariff_have_one_free_allowance() -> None:
    m = b.market([(A2, GCP, "", OD, 40.0), (ND, AZURE, "", OD, 30.0), (P4, AWS, "", OD, None)], gbps=8.0)
    p = choice(run(m, job(data=(b.dataset(400.0),), sync_bytes=9000)))
    assert {part.cloud for part in p.parts} == {"azure", "gcp"}
    assert usd(p, "data_egress") == Decimal("27.0000")  # 400 GB, 100 free once


def test_the_slowest_node_sets_the_pace_and_topologies_that_differ_are_told() -> None:
    slow = replace(A2, link=Link.PCIE, link_note="PCIe", fabric=Fabric.ETHERNET, topology="other")
    m = b.market([(P4, AWS, "", OD, 30.0), (slow, GCP, "", OD, 40.0)], gbps=8.0)
    p = choice(run(m, job(sync_bytes=9000)))
    assert float(p.compute_hours) == pytest.approx(12 / 0.9 + 1440 * 0.05 / 3600, abs=1e-3)
    assert any("topologies differ: other and t-p4de.24xlarge" in c.text for c in p.caveats)
    assert any("PCIe" in d and d.startswith("gcp: 1 x a2-ultragpu-8g") for d in p.differs)


@given(st.lists(st.tuples(st.integers(1, 5), st.floats(0.0, 1.0)), min_size=2, max_size=4))
def test_ring_latency_is_that_of_the_longest_path(parts: list[tuple[int, float]]) -> None:
    edges = [edge for nodes, way in parts for edge in (*[0.0] * (nodes - 1), way)]
    hops = 2 * (len(edges) - 1)
    longest = max(sum(edges[(start + k) % len(edges)] for k in range(hops)) for start in range(len(edges)))
    got = ring_latency(np.array([[way for _, way in parts]]), np.array([[nodes for nodes, _ in parts]]))
    assert got[0] == pytest.approx(longest, abs=1e-12)


@pytest.mark.parametrize(
    ("most", "nodes", "filled"),
    [
        ([7, 7], 8, [7, 1]),
        ([3, 7], 8, [3, 5]),
        ([4, 4], 8, [4, 4]),
        ([4, 3], 8, [0, 0]),
        ([1, 1], 2, [1, 1]),
        ([5, 5, 5], 8, [5, 2, 1]),
        ([9, 1, 1], 3, [1, 1, 1]),
        ([2, 2, 1], 6, [0, 0, 0]),
    ],
)
def test_the_first_part_is_filled_first_and_none_is_left_empty(most: list[int], nodes: int, filled: list[int]) -> None:
    assert fill(np.array([most]), nodes).tolist() == [filled]


def test_offer_ids_of_splits_are_read_back() -> None:
    parts = (("aws:a/us-east-1/use1-az4/p5.48xlarge/spot", 2), ("gcp:b/us-central1/-/a3-highgpu-8g/spot", 14))
    text = split_offer_id(parts)
    assert text == "aws:a/us-east-1/use1-az4/p5.48xlarge/spot x2 + gcp:b/us-central1/-/a3-highgpu-8g/spot x14"
    assert parts_of_offer_id(text) == parts
    assert parts_of_offer_id(parts[0][0]) == ()
    for wrong in ("a x2", "a x2 + b", "a x0 + b x1", "a + b"):
        with pytest.raises(ValueError, match="no offer id"):
            parts_of_offer_id(wrong)


def test_one_place_wins_where_it_holds_all_nodes_and_the_note_says_what_a_split_would_cost() -> None:
    placed = run(market(), job(), project=b.project())
    assert choice(placed).parts == ()
    assert [bool(p.parts) for p in placed.ranked] == [False, False, True]
    split = placed.ranked[2]
    gap = split.total_usd - choice(placed).total_usd
    assert placed.notes[-1] == (
        f"a split over aws and gcp would cost ${gap:.2f} more: all-reduce over 8 Gbit/s and 50 ms there and back "
        "stretches the run 1.3 times and pays $2533.40 for egress"
    )
    assert [p.rank for p in placed.ranked] == [0, 1, 2]


def test_a_full_pool_splits_the_job_and_the_note_says_so() -> None:
    placed = run(market(), job())
    assert len(placed.ranked) == 1
    assert placed.notes[0] == "split over aws and gcp: no single offer may hold all 2 nodes"
    assert placed.notes[1].startswith("all-reduce over 8 Gbit/s")
    assert {r.code for r in placed.rejected} == {"SKY-REJ-207"}


def test_quotas_split_the_job_by_what_is_granted() -> None:
    quotas = [
        Quota(instance_types=("*",), regions=(), max_gpus=24),
        Quota(instance_types=("*",), regions=(), max_nodes=3),
    ]
    targets = [
        Target(name="a", cloud=Cloud.AWS, quotas=(quotas[0],)),
        Target(name="g", cloud=Cloud.GCP, quotas=(quotas[1],)),
    ]
    placed = run(market(), job(5), project=b.project(*targets))
    assert [(part.target, part.nodes, part.first_rank) for part in choice(placed).parts] == [("a", 3, 0), ("g", 2, 3)]
    assert run(market(), job(7), project=b.project(*targets)).ranked == ()
    assert run(market(), job(7), project=b.project(*targets)).notes == (
        "no split: no two clouds have room for 7 nodes of one kind of GPU",
    )


def reservation(name: str, target: str, nodes: int, **more: Any) -> Reservation:
    values = {"starts": "2026-01-01", "expires": "2027-01-01"}
    return Reservation(id=name, target=target, nodes=nodes, **(values | more))


def test_reservations_in_two_clouds_are_used_together_as_they_are_paid_for() -> None:
    m = b.market([(P4, AWS, "z1", OD, 30.0), (A2, GCP, "z2", OD, 40.0)], gbps=8.0)
    reserved = (
        reservation("cr-a", "a", 2, region="us-east-1", zone="z1", instance_type="p4de.24xlarge"),
        reservation("cr-g", "g", 2, region="europe-west4", zone="z2", instance_type="a2-ultragpu-8g"),
    )
    targets = (Target(name="a", cloud=Cloud.AWS), Target(name="g", cloud=Cloud.GCP))
    project = b.project(*targets, reserved=reserved)
    placed = run(m, job(4, sync_bytes=9_000_000), project=project, as_of="2026-06-01")
    best = choice(placed)
    assert [(part.reservation, part.nodes) for part in best.parts] == [("cr-a", 2), ("cr-g", 2)]
    assert best.usd_per_hour == 0
    assert "less than aws:a/us-east-1/z1/p4de.24xlarge/on_demand, the best in one place" in placed.notes[0]


def test_each_of_two_reservations_of_one_pool_holds_its_own_nodes_only() -> None:
    m = b.market([(P4, AWS, "z1", OD, 30.0), (A2, GCP, "z2", OD, 40.0)], gbps=8.0)
    place = {"region": "us-east-1", "zone": "z1", "instance_type": "p4de.24xlarge"}
    reserved = (reservation("small", "a", 1, **place), reservation("large", "a", 2, **place))
    whole = b.project(Target(name="a", cloud=Cloud.AWS), Target(name="g", cloud=Cloud.GCP), reserved=reserved)
    offers = offers_of(m, whole, as_of="2026-06-01")
    most = room(offers, job(9), project=whole, ledger=Ledger(), cool={})
    held = {r.id: int(most[i]) for i in range(len(offers)) if (r := offers.reserved(i))}
    assert held == {"small": 1, "large": 2}


def test_of_the_offers_of_one_place_the_cheapest_that_holds_enough_is_joined() -> None:
    """Three pools of one region with room for one, three and five nodes: three are needed beside the three in the other cloud."""
    m = b.market(
        [(P4, AWS, "z1", OD, 10.0), (P4, AWS, "z2", OD, 11.0), (P4, AWS, "z3", OD, 30.0), (A2, GCP, "", OD, 40.0)]
    )
    quota = Quota(instance_types=("*",), max_nodes=3)
    targets = (Target(name="a", cloud=Cloud.AWS), Target(name="g", cloud=Cloud.GCP, quotas=(quota,)))
    ledger = Ledger(
        tuple(sorted(other(f"aws:a/{zone}/p4de/on_demand", nodes) for zone, nodes in (("z1", 4), ("z2", 2))))
    )
    placed = run(m, job(6), project=b.project(*targets, pool_cap_nodes=5), ledger=ledger)
    assert [(part.zone, part.nodes) for part in choice(placed).parts] == [("z2", 3), ("", 3)]


def other(pool: str, nodes: int) -> Holding:
    place = {"region": "us-east-1", "target": "a", "capacity": "on_demand", "instance_type": "p4de.24xlarge"}
    return Holding(job="other", pool=pool, nodes=nodes, gpus=8 * nodes, vcpus=96 * nodes, **place)


def test_the_default_cap_keeps_no_part_out_of_an_empty_pool() -> None:
    quota = Quota(instance_types=("*",), max_nodes=6)
    targets = tuple(Target(name="t", cloud=c, quotas=(quota,)) for c in (Cloud.AWS, Cloud.GCP))
    assert [part.nodes for part in choice(run(market(), job(12), project=b.project(*targets))).parts] == [6, 6]


def test_a_network_quota_with_room_for_one_node_only_gives_a_part_of_one() -> None:
    """Two nodes with GPUDirect-TCPX would need four networks of their own; one node needs the shared one."""
    tcpx = replace(A2, fabric=Fabric.TCPX)
    m = b.market([(P4, AWS, "", OD, 30.0), (tcpx, GCP, "", OD, 20.0)], gbps=8.0)
    narrow = Target(name="g", cloud=Cloud.GCP, network_quota=(("*", 4),))
    quota = Quota(instance_types=("*",), max_nodes=2)
    placed = run(m, job(3), project=b.project(narrow, Target(name="a", cloud=Cloud.AWS, quotas=(quota,))))
    assert [(part.cloud, part.nodes) for part in choice(placed).parts] == [("aws", 2), ("gcp", 1)]


def test_limits_hold_for_the_whole_job() -> None:
    slow = run(market(), job(constraints=b.limits(deadline_hours=14.0)))
    assert slow.ranked == ()
    assert slow.notes[0].startswith("no split: over aws and gcp it would cost $")
    assert slow.notes[0].endswith("(SKY-REJ-209)")
    assert run(market(), job(constraints=b.limits(deadline_hours=17.0))).ranked
    assert run(market(), job(constraints=b.limits(max_usd_per_hour=69.0))).notes[0].endswith("(SKY-REJ-208)")
    assert run(market(), job(constraints=b.limits(max_usd_per_hour=70.0))).ranked


def test_a_split_that_failed_lately_is_out_and_so_is_one_of_a_pool_that_did() -> None:
    scope = choice(run(market(), job())).offer_id
    for failed in (scope, "gcp:default/europe-west4/a2-ultragpu-8g/on_demand"):
        memory = AvailabilityMemory((Failure(scope=failed, code="X", kind="capacity", at="2026-01-01T00:00:00+00:00"),))
        placed = run(market(), job(), memory=memory, as_of="2026-01-01T00:10:00+00:00")
        assert placed.ranked == ()
        assert placed.notes[0].startswith("no split")


@pytest.mark.parametrize(
    "changes",
    [
        {"tunnel": False},
        {"sync_bytes": None},
        {"sync_seconds": None},
        {"resources": {"nodes": 1}},
        {"resources": {"nodes": 2, "interconnect_sensitive": True}},
    ],
)
def test_nothing_is_split_that_did_not_ask_for_it_with_all_that_it_takes(changes: dict[str, Any]) -> None:
    one = job(**changes)
    assert not may_split(one)
    assert not any(p.parts for p in run(market(), one).ranked)


def test_parts_have_one_kind_of_gpu_and_lie_in_two_clouds() -> None:
    other = b.instance_type("a3-highgpu-8g", cloud=Cloud.GCP, gpu="H100")
    far = b.region("us-west-2", net_index=4)
    m = b.market([(P4, AWS, "", OD, 30.0), (P4, far, "", OD, 30.0), (other, GCP, "", OD, 40.0)])
    assert run(m, job()).ranked == ()


def test_what_a_part_says_of_itself() -> None:
    whole = choice(run(market(), job(3), project=b.project(pool_cap_nodes=2)))
    head, tail = whole.parts
    assert (whole.cloud, whole.region, whole.pool, whole.instance_type) == (
        head.cloud,
        head.region,
        head.pool,
        head.instance_type,
    )
    assert (whole.nodes, head.nodes, tail.nodes) == (3, 2, 1)
    assert (head.first_rank, tail.first_rank) == (0, 2)
    assert (head.usd_per_hour, tail.usd_per_hour, whole.usd_per_hour) == (60, 40, 100)
    compute = sum(t.usd or 0 for t in whole.terms if t.name in ("compute", "startup", "interruptions"))
    assert head.total_usd + tail.total_usd == pytest.approx(compute, abs=Decimal("0.01"))
    assert head.terms == tail.terms == ()
    assert whole.pieces == (head, tail)


def test_each_part_holds_of_its_own_pool_and_a_second_job_sees_it() -> None:
    m = market()
    placed = run(m, job())
    held = holdings(choice(placed), m, workload=job())
    assert [(h.job, h.pool, h.nodes, h.gpus) for h in held] == [
        ("job", "aws:default/us-east-1/p4de/on_demand", 1, 8),
        ("job", "gcp:default/europe-west4/a2-ultragpu-8g/on_demand", 1, 8),
    ]
    assert run(m, b.workload("other"), ledger=Ledger(tuple(sorted(held)))).ranked == ()
    policy = Policy(project=b.project(pool_cap_nodes=1), memory=AvailabilityMemory(), as_of=m.as_of)
    first, second = plan([replace(job(), name="a"), replace(job(), name="b")], m, Ledger(), policy)
    assert (len(first.ranked), len(second.ranked)) == (1, 0)


def test_estimates_are_told() -> None:
    m = market()
    yes = np.ones((2, 2), dtype=bool)
    doubted = replace(m.links.tariffs[2], unverified=True, source="hearsay")
    links = replace(m.links, rtt_estimated=yes, gbps_estimated=yes, tariffs=(*m.links.tariffs[:2], doubted))
    texts = [c.text for c in choice(run(replace(m, links=links), job())).caveats]
    assert "tunnel: 50 ms there and back between aws and gcp is an estimate" in texts
    assert "tunnel: gcp to aws: 8 Gbit/s is an estimate" in texts
    assert "tunnel: aws to gcp: the traffic tariff is unverified (hearsay)" in texts
    assert "tunnel: gcp's price of public addresses is not known and not in the total" in texts
    assert len(texts) == len(set(texts))


def test_what_holds_of_all_parts_is_told_once_and_a_part_without_the_head_only_reads() -> None:
    m = market(marks={0: Mark.STALE | Mark.SOURCES_DISAGREE, 1: Mark.STALE})
    links = replace(m.links, gbps_estimated=np.ones((2, 2), dtype=bool), gbps=np.array([[9.0, 5.0], [6.0, 9.0]]))
    m = replace(m, links=links)
    here = b.checkpoints(1.0, every_hours=1.0)
    p = choice(run(m, job(checkpoint=here)))
    assert p.parts[0].cloud == "aws"
    texts = [c.text for c in p.caveats]
    assert texts.count("a price is older than its time to live") == 1
    assert "aws: two sources disagree on a price" in texts
    assert not any("older" in text and text.startswith(("aws", "gcp")) for text in texts)
    assert [text for text in texts if "checkpoint" in text] == ["gcp: checkpoint s3://ckpt/x/: 5 Gbit/s is an estimate"]


def test_places_of_single_offers_count_the_splits_before_them() -> None:
    dear = b.market([(P4, AWS, "", OD, 30.0), (A2, GCP, "", OD, 40.0), (ND, AZURE, "", OD, 900.0)], gbps=8.0)
    targets = tuple(
        Target(name="t", cloud=c, quotas=(Quota(instance_types=("*",), regions=(), max_nodes=1),))
        for c in (Cloud.AWS, Cloud.GCP)
    )
    placed = run(dear, job(), project=b.project(*targets, Target(name="t", cloud=Cloud.AZURE)))
    c = placed.context
    positions = {v.offer_id: v.position for i in range(len(c.offers)) if (v := verdict(c, i)).position is not None}
    ids = [p.offer_id for p in placed.ranked]
    assert positions == {offer: ids.index(offer) for offer in positions}
    assert ids[0].startswith("aws:t/us-east-1")
    assert positions == {"azure:t/eastus/-/Standard_ND96amsr_A100_v4/on_demand": 3}  # after the three splits


def test_a_plan_holds_fewer_splits_than_single_placements() -> None:
    regions = [b.region(f"us-{k}", net_index=10 + k) for k in range(30)]
    m = b.market([*((P4, r, "", OD, 30.0 + k) for k, r in enumerate(regions)), (A2, GCP, "", OD, 40.0)], gbps=8.0)
    placed = run(m, job())
    assert len(placed.ranked) == 7
    assert all(p.parts for p in placed.ranked)


def test_the_bucket_of_a_store_decides_which_side_is_the_head() -> None:
    """Checkpoints are written by the head's part: it lies where they are kept, although that side is dearer."""
    policy = b.checkpoints(2000.0, every_hours=1.0, region_name="europe-west4", store=Store.GCS)
    one = job(checkpoint=policy, sync_bytes=9000)
    assert choice(run(market(30.0, 31.0), one)).parts[0].cloud == "gcp"
    assert choice(run(market(30.0, 31.0), replace(one, checkpoint=None))).parts[0].cloud == "aws"
