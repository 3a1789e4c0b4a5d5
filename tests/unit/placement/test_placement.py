"""Placement on small markets with prices one can check by head (R07, R08, R09, R10, R22)."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal

import pytest

from planner.model.ledger import AvailabilityMemory, Failure, Holding, Ledger
from planner.model.market import Mark
from planner.model.offer import CapacityType, Cloud, Fabric, Link
from planner.model.project import OwnNetwork, PriceOverride, Quota, Reservation, Target
from planner.model.workload import GpuOption, Resources
from planner.placement.explain import verdict
from planner.placement.fleet import Placed, Policy, plan
from tests import builders as b

OD, SPOT = CapacityType.ON_DEMAND, CapacityType.SPOT
EAST = b.region("us-east-1")
WEST = b.region("us-west-2", net_index=2)
EU = b.region("europe-west4", Cloud.GCP, area="eu", net_index=3)
P4DE = b.instance_type("p4de.24xlarge")
P4D = b.instance_type("p4d.24xlarge", gpu="A100")
ULTRA = b.instance_type("a2-ultragpu-8g", cloud=Cloud.GCP, fabric=Fabric.ETHERNET, efa_interfaces=0)
UNPRICED = (P4DE, WEST, "", OD, None)
P5 = b.instance_type("p5.48xlarge", gpu="H100")

EMPTY, NO_FAILURES = Ledger(), AvailabilityMemory()


def run(market, job, *, ledger=EMPTY, project=None, memory=NO_FAILURES, as_of=None) -> Placed:
    policy = Policy(project=project or b.project(), memory=memory, as_of=as_of or market.as_of)
    return plan([job], market, ledger, policy)[0]


def codes(placed: Placed) -> dict[str, int]:
    return {r.code: r.count for r in placed.rejected}


def fate(placed: Placed, needle: str) -> set[str]:
    c = placed.context
    found = [i for i in range(len(c.offers)) if needle in c.offers.offer_id(i)]
    assert len(found) == 1, found
    return {r.code for r in verdict(c, found[0]).rejections}


def test_r07_a_40_gb_part_never_serves_an_80_gb_request() -> None:
    placed = run(b.market([(P4DE, EAST, "", OD, 27.0), (P4D, EAST, "", OD, 1.0)]), b.workload())
    assert [p.instance_type for p in placed.ranked] == ["p4de.24xlarge"]
    assert codes(placed) == {"SKY-REJ-202": 1}


def test_r07_more_memory_of_the_same_class_may_serve_and_is_said() -> None:
    job = b.workload(resources={"accelerators": (GpuOption(model="A100", count=8),)})
    placed = run(b.market([(P4DE, EAST, "", OD, 20.0), (P4D, EAST, "", OD, 22.0)]), job)
    assert placed.ranked[0].instance_type == "p4de.24xlarge"
    assert any("A100-80GB" in d and "stands in for A100" in d for d in placed.ranked[0].differs)


def test_any_of_compares_work_done_not_price_per_hour() -> None:
    job = b.workload(
        resources={"accelerators": (GpuOption(model="A100-80GB", count=8), GpuOption(model="H100", count=8))}
    )
    placed = run(b.market([(P4DE, EAST, "", OD, 27.0), (P5, EAST, "", OD, 55.0)]), job)
    assert placed.ranked[0].instance_type == "p5.48xlarge"  # 2.5x the speed for 2x the price
    assert placed.ranked[0].compute_hours == Decimal("9.6000")


def test_every_feasible_type_is_a_candidate_not_the_cheapest_per_cloud() -> None:
    other = b.instance_type("p4de.other")
    placed = run(b.market([(P4DE, EAST, "", OD, 27.0), (other, EAST, "", OD, 28.0)]), b.workload())
    assert [p.instance_type for p in placed.ranked] == ["p4de.24xlarge", "p4de.other"]


def test_terms_are_those_one_computes_by_head_and_sum_to_the_total() -> None:
    placed = run(b.market([(P4DE, EAST, "", OD, 10.0)]), b.workload(image=b.image(18.0)))
    best = placed.ranked[0]
    terms = {t.name: t.usd for t in best.terms}
    assert terms["compute"] == Decimal("240.0000")  # 24 h x $10
    assert terms["startup"] == Decimal("1.3333")  # 3 min pull (18 GB at 100 MB/s) + 5 min set-up, at $10/h
    held = Decimal(24) + Decimal(8) / 60
    assert terms["disk"] == (Decimal("0.08") * 200 * held / 730).quantize(Decimal("0.0001"))
    assert terms["outbound"] == (Decimal("0.045") * held + Decimal("0.045") * 18).quantize(Decimal("0.0001"))
    assert best.total_usd == sum((t for t in terms.values() if t is not None), Decimal(0))
    assert best.finish_hours == Decimal("24.2167")  # plus 5 min to acquire


def test_r12_the_same_cloud_wins_when_egress_eats_the_discount() -> None:
    rows = [(P4DE, EAST, "", OD, 27.0), (ULTRA, EU, "", OD, 24.0)]
    near = run(b.market(rows), b.workload(data=(b.dataset(500, reads=3),)))
    assert near.ranked[0].cloud == "aws"
    assert any("cheaper compute" in n and "data_egress" in n for n in near.notes)
    far = run(b.market(rows), b.workload())
    assert far.ranked[0].cloud == "gcp"


def test_r12_a_thin_link_stretches_the_run() -> None:
    rows = [(P4DE, EAST, "", OD, 27.0), (P4DE, WEST, "", OD, 20.0)]
    job = b.workload(data=(b.dataset(20_000),))
    placed = run(b.market(rows, gbps=1.0), job)
    west = next(p for p in placed.ranked if p.region == "us-west-2")
    assert west.compute_hours == Decimal("44.4444")  # 20 TB at 1 Gbit/s
    assert placed.ranked[0].region == "us-east-1"


def test_cross_region_inside_a_cloud_costs_money() -> None:
    placed = run(
        b.market([(P4DE, WEST, "", OD, 20.0), (P4DE, EAST, "", OD, 99.0)]), b.workload(data=(b.dataset(1000),))
    )
    west = next(p for p in placed.ranked if p.region == "us-west-2")
    assert {t.name: t.usd for t in west.terms}["data_egress"] == Decimal("20.0000")


def test_an_unknown_bucket_region_makes_the_total_a_lower_bound_not_zero() -> None:
    placed = run(b.market([(P4DE, EAST, "", OD, 20.0)]), b.workload(data=(b.dataset(1000, region_name=None),)))
    best = placed.ranked[0]
    assert {t.name: t.usd for t in best.terms}["data_egress"] is None
    assert best.lower_bound


def test_spot_pays_for_interruptions_by_rate_half_interval_and_restart() -> None:
    market = b.market([(P4DE, EAST, "", SPOT, 10.0)], rate=0.05)
    job = b.workload(resources={"capacity": (SPOT,)}, checkpoint=b.checkpoints(gb=0.0, every_hours=0.5))
    best = run(market, job).ranked[0]
    lost = 0.05 * 24 * (0.25 + 10 / 60)  # acquire 5 min, set up 5 min
    assert {t.name: t.usd for t in best.terms}["interruptions"] == Decimal(f"{lost * 10:.4f}")


def test_spot_without_checkpoints_costs_a_run_in_one_piece() -> None:
    market = b.market([(P4DE, EAST, "", SPOT, 10.0), (P4DE, EAST, "", OD, 30.0)], rate=0.2)
    placed = run(market, b.workload(resources={"capacity": (SPOT, OD)}))
    assert placed.ranked[0].capacity == "on_demand"
    spot = placed.ranked[1]
    import math

    x = 0.2 * 24
    lost = 24 * ((math.exp(x) - 1) / x - 1) + (math.exp(x) - 1) * (10 / 60)
    assert float({t.name: t.usd for t in spot.terms}["interruptions"]) == pytest.approx(lost * 10, rel=1e-6)


@pytest.mark.parametrize("price", [0.0, None])
def test_a_price_that_is_zero_or_unknown_never_wins(price: float | None) -> None:
    placed = run(b.market([(P4DE, EAST, "", OD, price), (P4D, EAST, "", OD, 5.0)]), b.workload())
    assert placed.ranked == ()
    assert codes(placed)["SKY-REJ-213"] == 1


@pytest.mark.parametrize(
    "mark", [Mark.BAD_VALUE, Mark.IMPLAUSIBLE, Mark.SPOT_NOT_CHEAPER, Mark.FLAT, Mark.OPT_IN_ZONE, Mark.NOT_SOLD]
)
def test_a_blocking_mark_keeps_an_offer_out(mark: Mark) -> None:
    placed = run(b.market([(P4DE, EAST, "", OD, 1.0), (P4DE, WEST, "", OD, 30.0)], marks={0: mark}), b.workload())
    assert [p.region for p in placed.ranked] == ["us-west-2"]


@pytest.mark.parametrize("mark", [Mark.STALE, Mark.SOURCES_DISAGREE, Mark.ZONE_UNCONFIRMED, Mark.UNVERIFIED])
def test_other_marks_are_shown_as_caveats(mark: Mark) -> None:
    placed = run(b.market([(P4DE, EAST, "", OD, 1.0)], marks={0: mark}), b.workload())
    assert [c.code for c in placed.ranked[0].caveats] == [
        {
            "STALE": "SKY-CAT-109",
            "SOURCES_DISAGREE": "SKY-CAT-111",
            "ZONE_UNCONFIRMED": "SKY-CAT-113",
            "UNVERIFIED": "SKY-CAT-114",
        }[str(mark.name)]
    ]


def test_an_override_makes_a_marked_price_believable() -> None:
    market = b.market([(P4DE, EAST, "", OD, 1.0)], marks={0: Mark.IMPLAUSIBLE})
    project = b.project(prices=(PriceOverride(instance_types=("p4de*",), usd_per_hour=21.5),))
    assert run(market, b.workload(), project=project).ranked[0].node_usd_per_hour == Decimal("21.5000")


def test_a_discount_does_not_make_a_bad_price_good() -> None:
    market = b.market([(P4DE, EAST, "", OD, None), (P4DE, WEST, "", OD, 20.0)])
    project = b.project(prices=(PriceOverride(discount=0.10),))
    placed = run(market, b.workload(), project=project)
    assert [(p.region, p.node_usd_per_hour) for p in placed.ranked] == [("us-west-2", Decimal("18.0000"))]


RESERVATION = Reservation(
    target="default",
    region="us-east-1",
    zone="us-east-1-a",
    instance_type="p4de.24xlarge",
    nodes=1,
    id="cr-1",
    starts="2025-01-01",
    expires="2026-06-01",
)


@pytest.mark.parametrize(
    ("as_of", "first"), [("2026-01-01", "reserved"), ("2026-06-01", "on_demand"), ("2024-12-31", "on_demand")]
)
def test_a_reservation_is_sunk_cost_while_it_is_open(as_of: str, first: str) -> None:
    market = b.market([(P4DE, EAST, "us-east-1-a", OD, 20.0)])
    placed = run(market, b.workload(), project=b.project(reserved=(RESERVATION,)), as_of=as_of)
    assert placed.ranked[0].capacity == first


def test_a_reservation_holds_no_more_nodes_than_it_has() -> None:
    market = b.market([(P4DE, EAST, "us-east-1-a", OD, 20.0)])
    jobs = [b.workload("a"), b.workload("b")]
    policy = Policy(project=b.project(reserved=(RESERVATION,)), memory=AvailabilityMemory(), as_of="2026-01-01")
    assert [p.ranked[0].capacity for p in plan(jobs, market, Ledger(), policy)] == ["reserved", "on_demand"]


def test_r09_an_interconnect_sensitive_job_needs_a_fabric_between_nodes() -> None:
    job = b.workload(resources={"nodes": 2, "interconnect_sensitive": True})
    placed = run(b.market([(ULTRA, EU, "", OD, 1.0), (P4DE, EAST, "", OD, 30.0)]), job)
    assert [p.cloud for p in placed.ranked] == ["aws"]
    assert fate(placed, "a2-ultragpu") == {"SKY-REJ-211"}


def test_topology_loss_slows_multi_node_work_on_plain_ethernet() -> None:
    job = b.workload(resources={"nodes": 2}, work=replace(b.workload().work, nodes=2))
    placed = run(b.market([(ULTRA, EU, "", OD, 10.0)]), job)
    assert placed.ranked[0].compute_hours == Decimal("28.2353")  # 24 h / 0.85


def test_pcie_is_out_for_an_interconnect_sensitive_node() -> None:
    pcie = b.instance_type("nc96", gpu="A100-80GB-PCIe", link=Link.PCIE)
    placed = run(
        b.market([(pcie, EAST, "", OD, 1.0), UNPRICED]), b.workload(resources={"interconnect_sensitive": True})
    )
    assert codes(placed) == {"SKY-REJ-210": 1, "SKY-REJ-213": 1}


def test_a_request_by_memory_does_not_bring_parts_that_need_other_software() -> None:
    amd = b.instance_type("mi300x", gpu="MI300X")
    job = b.workload(resources={"accelerators": (GpuOption(min_memory_gib=80.0, count=8),)})
    placed = run(b.market([(amd, EAST, "", OD, 1.0), (P4DE, EAST, "", OD, 27.0)]), job)
    assert [p.gpu for p in placed.ranked] == ["A100-80GB"]


def test_the_count_is_exact() -> None:
    four = b.instance_type("half", gpu_count=4)
    assert codes(run(b.market([(four, EAST, "", OD, 1.0)]), b.workload())) == {"SKY-REJ-201": 1}


def test_ram_and_vcpus_below_the_request_are_rejected() -> None:
    job = b.workload(resources={"min_ram_gib": 1200.0})
    assert codes(run(b.market([(P4DE, EAST, "", OD, 1.0)]), job)) == {"SKY-REJ-203": 1}


def test_capacity_that_was_not_asked_for_is_rejected() -> None:
    assert codes(run(b.market([(P4DE, EAST, "", SPOT, 1.0)]), b.workload())) == {"SKY-REJ-204": 1}


def test_budget_and_deadline_reject_with_numbers() -> None:
    job = b.workload(constraints=b.limits(max_usd_per_hour=20.0))
    assert codes(run(b.market([(P4DE, EAST, "", OD, 20.01)]), job)) == {"SKY-REJ-208": 1}
    assert codes(run(b.market([(P4DE, EAST, "", OD, 20.0)]), job)) == {}
    late = b.workload(constraints=b.limits(deadline_hours=24.0))
    assert codes(run(b.market([(P4DE, EAST, "", OD, 20.0)]), late)) == {"SKY-REJ-209": 1}


def test_clouds_regions_and_types_limit() -> None:
    rows = [(P4DE, EAST, "", OD, 20.0), (P4DE, WEST, "", OD, 20.0), (ULTRA, EU, "", OD, 20.0)]
    job = b.workload(constraints=b.limits(clouds=("aws",), regions=("us-w*",)))
    placed = run(b.market(rows), job)
    assert [p.region for p in placed.ranked] == ["us-west-2"]
    assert codes(placed) == {"SKY-REJ-214": 2}


def test_ties_break_by_finish_then_by_offer() -> None:
    rows = [(P4DE, EAST, z, OD, 20.0) for z in ("us-east-1-b", "us-east-1-a")]
    assert [p.zone for p in run(b.market(rows), b.workload()).ranked] == ["us-east-1-a", "us-east-1-b"]


def holding(pool: str, nodes: int, job: str = "other", **more) -> Holding:
    values = {
        "instance_type": "p4de.24xlarge",
        "region": "us-east-1",
        "target": "default",
        "capacity": "on_demand",
        "gpus": 8 * nodes,
        "vcpus": 96 * nodes,
    }
    return Holding(job=job, pool=pool, nodes=nodes, **(values | more))


def test_r21_a_pool_that_others_fill_is_out() -> None:
    market = b.market([(P4DE, EAST, "us-east-1-a", OD, 20.0), (P4DE, EAST, "us-east-1-b", OD, 21.0)])
    placed = run(market, b.workload(), ledger=Ledger((holding("aws:default/us-east-1-a/p4de/on_demand", 4),)))
    assert [p.zone for p in placed.ranked] == ["us-east-1-b"]
    assert codes(placed) == {"SKY-REJ-207": 1}
    assert any("in pools that other jobs fill" in n for n in placed.notes)


def test_a_job_larger_than_the_default_cap_may_have_an_empty_pool() -> None:
    market = b.market([(P4DE, EAST, "", OD, 20.0)])
    assert run(market, b.workload(resources={"nodes": 8})).ranked
    assert not run(market, b.workload(resources={"nodes": 8}), project=b.project(pool_cap_nodes=4)).ranked


def test_what_a_job_holds_itself_does_not_count_against_it() -> None:
    market = b.market([(P4DE, EAST, "us-east-1-a", OD, 20.0)])
    assert run(
        market, b.workload("me"), ledger=Ledger((holding("aws:default/us-east-1-a/p4de/on_demand", 4, "me"),))
    ).ranked


def test_r21_identical_jobs_spread_and_order_of_input_changes_nothing() -> None:
    rows = [(P4DE, EAST, z, OD, 20.0 + k) for k, z in enumerate(("z1", "z2", "z3", "z4", "z5"))]
    market = b.market(rows)
    jobs = [b.workload(f"job-{k:02d}") for k in range(20)]
    policy = Policy(project=b.project(), memory=AvailabilityMemory(), as_of=market.as_of)
    forward, backward = plan(jobs, market, Ledger(), policy), plan(jobs[::-1], market, Ledger(), policy)
    zones = [p.ranked[0].zone for p in forward]
    assert zones == [p.ranked[0].zone for p in backward]
    assert {z: zones.count(z) for z in set(zones)} == {f"z{k}": 4 for k in range(1, 6)}


def test_r22_quota_below_need_is_rejected_and_counts_what_is_held() -> None:
    market = b.market([(P4DE, EAST, "us-east-1-a", OD, 20.0)])
    target = Target(name="default", cloud=Cloud.AWS, quotas=(Quota(instance_types=("p4*",), max_vcpus=192),))
    project = b.project(target)
    assert run(market, b.workload(resources={"nodes": 2}), project=project).ranked
    assert fate(run(market, b.workload(resources={"nodes": 3}), project=project), "p4de") == {"SKY-REJ-205"}
    held = Ledger((holding("aws:default/us-east-1-b/p4de/on_demand", 1),))
    assert fate(run(market, b.workload(resources={"nodes": 2}), project=project, ledger=held), "p4de") == {
        "SKY-REJ-205"
    }
    elsewhere = Ledger((holding("aws:default/us-west-2-b/p4de/on_demand", 1, region="us-west-2"),))
    assert run(market, b.workload(resources={"nodes": 2}), project=project, ledger=elsewhere).ranked


POOL = "aws:default/us-east-1-a/p4de/on_demand"


@pytest.mark.parametrize(
    ("failures", "as_of", "out"),
    [
        (["2026-01-01T00:00:00Z"], "2026-01-01T00:59:00Z", True),
        (["2026-01-01T00:00:00Z"], "2026-01-01T01:00:00Z", False),
        (["2026-01-01T00:00:00Z", "2026-01-01T00:30:00Z"], "2026-01-01T02:29:00Z", True),
        (["2026-01-01T00:00:00Z", "2026-01-01T00:30:00Z"], "2026-01-01T02:30:00Z", False),
        (["2026-01-02T00:00:00Z"], "2026-01-01T00:00:00Z", False),  # not known yet at that moment
    ],
)
def test_r22_a_recent_capacity_failure_keeps_a_pool_out_and_decays(failures: list[str], as_of: str, out: bool) -> None:
    market = b.market([(P4DE, EAST, "us-east-1-a", OD, 20.0)])
    memory = AvailabilityMemory(
        tuple(Failure(scope=POOL, code="InsufficientInstanceCapacity", kind="capacity", at=at) for at in failures)
    )
    placed = run(market, b.workload(), memory=memory, as_of=as_of)
    assert (not placed.ranked) == out
    assert codes(placed) == ({"SKY-REJ-206": 1} if out else {})


def test_a_failure_of_one_offer_leaves_its_pool_mates_in() -> None:
    mate = b.instance_type("p4de.other", hardware="p4de")
    market = b.market([(P4DE, EAST, "us-east-1-a", OD, 20.0), (mate, EAST, "us-east-1-a", OD, 21.0)])
    scope = "aws:default/us-east-1/us-east-1-a/p4de.24xlarge/on_demand"
    memory = AvailabilityMemory((Failure(scope=scope, code="Unsupported", kind="capacity", at="2026-01-01T00:00:00Z"),))
    assert [p.instance_type for p in run(market, b.workload(), memory=memory).ranked] == ["p4de.other"]


def test_a_part_that_runs_out_together_is_one_pool() -> None:
    mate = b.instance_type("p4de.other", hardware="p4de")
    placed = run(b.market([(P4DE, EAST, "us-east-1-a", OD, 20.0), (mate, EAST, "us-east-1-a", OD, 21.0)]), b.workload())
    assert {p.pool for p in placed.ranked} == {POOL}


def test_targets_multiply_offers_and_limit_regions() -> None:
    market = b.market([(P4DE, EAST, "", OD, 20.0), (P4DE, WEST, "", OD, 20.0)])
    project = b.project(
        Target(name="prod", cloud=Cloud.AWS), Target(name="lab", cloud=Cloud.AWS, regions=("us-west-*",))
    )
    ids = [p.offer_id for p in run(market, b.workload(), project=project).ranked]
    assert ids == [
        "aws:lab/us-west-2/-/p4de.24xlarge/on_demand",
        "aws:prod/us-east-1/-/p4de.24xlarge/on_demand",
        "aws:prod/us-west-2/-/p4de.24xlarge/on_demand",
    ]


def test_explanations_hold_numbers() -> None:
    placed = run(b.market([(P4D, EAST, "", OD, 5.0), UNPRICED]), b.workload())
    assert placed.rejected[0].examples == (
        "aws:default/us-east-1/-/p4d.24xlarge/on_demand: A100 has 40 GiB per GPU, asked for A100-80GB:8",
    )


def test_a_thousand_words_of_nothing_feasible_still_count_every_offer() -> None:
    placed = run(b.market([UNPRICED, *((P4D, EAST, z, OD, 5.0) for z in ("a", "b", "c", "d", "e"))]), b.workload())
    assert placed.rejected[0].count == 5
    assert len(placed.rejected[0].examples) == 3
    assert json.dumps([r.examples for r in placed.rejected])


def test_resources_default_to_on_demand() -> None:
    assert Resources(accelerators=()).capacity == (OD,)


def test_own_networks_offer_only_their_zones_and_several_nodes_need_a_cidr() -> None:
    market = b.market([(P4DE, EAST, "us-east-1-a", OD, 20.0), (P4DE, EAST, "us-east-1-b", OD, 19.0)])
    own = OwnNetwork(region="us-east-1", vpc_id="vpc-1", subnets=(("us-east-1-a", "subnet-1"),))
    one = run(market, b.workload(), project=b.project(Target(name="default", cloud=Cloud.AWS, networks=(own,))))
    assert [p.zone for p in one.ranked] == ["us-east-1-a"]
    assert codes(one) == {"SKY-REJ-212": 1}
    two = b.workload(resources={"nodes": 2})
    assert not run(market, two, project=b.project(Target(name="default", cloud=Cloud.AWS, networks=(own,)))).ranked
    sized = replace(own, cidrs=(("us-east-1-a", "10.9.0.0/24"),))
    assert run(market, two, project=b.project(Target(name="default", cloud=Cloud.AWS, networks=(sized,)))).ranked


@pytest.mark.parametrize(
    ("listed", "opened"), [("us-east-1-a", ["us-east-1-a"]), ("us-east-1", ["us-east-1-a", ""]), ("us-west-2", [])]
)
def test_a_closed_place_opens_by_its_zone_or_its_region(listed: str, opened: list[str]) -> None:
    rows = [(P4DE, EAST, "us-east-1-a", OD, 20.0), (P4DE, EAST, "", OD, 21.0)]
    market = b.market(rows, marks={0: Mark.OPT_IN_ZONE, 1: Mark.OPT_IN_ZONE})
    target = Target(name="default", cloud=Cloud.AWS, opt_in_zones=(listed,))
    assert [p.zone for p in run(market, b.workload(), project=b.project(target)).ranked] == opened
