"""What must hold of every plan, whatever the market (R10, R12, R21)."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from planner.model.ledger import AvailabilityMemory, Holding, Ledger
from planner.model.market import Mark, Tariff, Tier
from planner.model.offer import CapacityType, Cloud, Fabric, Link
from planner.model.project import Quota, Target
from planner.model.workload import GpuOption
from planner.placement.cost import node_speed
from planner.placement.egress import TariffTable, cost_usd
from planner.placement.explain import verdict
from planner.placement.fleet import Policy, plan
from planner.placement.offers import offers_of
from planner.placement.rank import judge, rank
from planner.placement.room import room
from tests import builders as b

REGIONS = [
    b.region("us-east-1"),
    b.region("us-west-2", net_index=2),
    b.region("europe-west4", Cloud.GCP, area="eu", net_index=3),
]
TYPES = [
    b.instance_type("p4de.24xlarge"),
    b.instance_type("p4d.24xlarge", gpu="A100"),
    b.instance_type("p5.48xlarge", gpu="H100"),
    b.instance_type("a2-ultragpu-8g", cloud=Cloud.GCP),
    b.instance_type("small", gpu_count=4),
]
CAPACITY = [CapacityType.ON_DEMAND, CapacityType.SPOT]
prices = st.one_of(st.none(), st.just(0.0), st.floats(0.01, 500, allow_nan=False).map(lambda x: round(x, 4)))


@st.composite
def rows(draw: st.DrawFn, least: int = 1):
    keys = draw(
        st.lists(
            st.tuples(
                st.integers(0, len(TYPES) - 1),
                st.integers(0, 2),
                st.sampled_from(["", "z1", "z2"]),
                st.sampled_from(CAPACITY),
            ),
            min_size=least,
            max_size=14,
            unique=True,
        )
    )
    # the buckets' region is in every market: which regions are known is the catalog's matter, not an offer's
    out = [(TYPES[4], REGIONS[0], "anchor", CapacityType.ON_DEMAND, None)]
    for kind, place, zone, capacity in keys:
        t = TYPES[kind]
        r = REGIONS[2] if t.cloud is Cloud.GCP else REGIONS[place % 2]
        row = (t, r, zone and f"{r.name}-{zone}", capacity, draw(prices))
        if row[:4] not in [x[:4] for x in out]:
            out.append(row)
    return out


@st.composite
def jobs(draw: st.DrawFn):
    options = draw(
        st.lists(
            st.sampled_from(
                [
                    GpuOption(model="A100-80GB", count=8),
                    GpuOption(model="A100", count=8),
                    GpuOption(model="H100", count=8),
                    GpuOption(min_memory_gib=60.0, count=8),
                ]
            ),
            min_size=1,
            max_size=3,
            unique=True,
        )
    )
    return b.workload(
        resources={
            "accelerators": tuple(options),
            "capacity": tuple(draw(st.lists(st.sampled_from(CAPACITY), min_size=1, max_size=2, unique=True))),
            "nodes": draw(st.integers(1, 3)),
        },
        data=tuple(b.dataset(gb) for gb in draw(st.lists(st.floats(0, 50_000), max_size=2))),
        checkpoint=draw(st.one_of(st.none(), st.builds(b.checkpoints, st.floats(0, 2000), st.floats(0.1, 4)))),
        image=draw(st.one_of(st.none(), st.builds(b.image, st.floats(0, 50)))),
    )


EMPTY, NO_FAILURES = Ledger(), AvailabilityMemory()


def run(market, *workloads, ledger=EMPTY, **project):
    return plan(
        list(workloads),
        market,
        ledger,
        Policy(project=b.project(**project), memory=AvailabilityMemory(), as_of=market.as_of),
    )


@given(rows(), jobs(), st.randoms(use_true_random=False))
def test_permuting_offers_changes_nothing(given_rows, job, random) -> None:
    shuffled = list(given_rows)
    random.shuffle(shuffled)
    assume(len(b.market(given_rows)) > 0)
    one, other = run(b.market(given_rows, rate=0.01), job)[0], run(b.market(shuffled, rate=0.01), job)[0]
    assert (one.ranked, one.rejected, one.notes) == (other.ranked, other.rejected, other.notes)


@given(rows(), jobs())
def test_adding_an_infeasible_offer_changes_no_ranking(given_rows, job) -> None:
    never = (b.instance_type("zzz", gpu="V100"), REGIONS[0], "", CapacityType.ON_DEMAND, 0.05)
    before, after = run(b.market(given_rows), job)[0], run(b.market([*given_rows, never]), job)[0]
    assert before.ranked == after.ranked


@given(rows(), jobs(), st.floats(1.0, 3.0))
def test_adding_a_dominated_offer_changes_no_choice(given_rows, job, factor: float) -> None:
    before = run(b.market(given_rows), job)[0]
    assume(before.ranked)
    best = before.ranked[0]
    row = next(
        r
        for r in given_rows
        if (r[0].name, r[1].name, r[2], r[3].value) == (best.instance_type, best.region, best.zone, best.capacity)
    )
    worse = (replace(row[0], name="zz-" + row[0].name), *row[1:4], row[4] * factor + 0.01)
    after = run(b.market([*given_rows, worse]), job)[0]
    assert after.ranked[0].offer_id == best.offer_id
    assert after.ranked[0].total_usd == best.total_usd


@given(rows(), jobs())
def test_every_offer_is_ranked_feasible_or_rejected_with_a_reason(given_rows, job) -> None:
    placed = run(b.market(given_rows), job)[0]
    c = placed.context
    verdicts = [verdict(c, i) for i in range(len(c.offers))]
    for v in verdicts:
        assert (v.position is None) == bool(v.rejections)
        assert all(r.text for r in v.rejections)
    assert sum(r.count for r in placed.rejected) + c.ranking.feasible == len(c.offers)


@given(rows(), jobs())
def test_terms_sum_to_the_total_and_order_is_by_price_finish_offer(given_rows, job) -> None:
    ranked = run(b.market(given_rows, rate=0.02), job)[0].ranked
    for p in ranked:
        assert sum((t.usd for t in p.terms if t.usd is not None), Decimal(0)) == p.total_usd
        assert p.total_usd > 0
        assert p.finish_hours >= p.compute_hours > 0
    assert [p.total_usd for p in ranked] == sorted(p.total_usd for p in ranked)


@given(rows(), jobs())
def test_a_price_of_zero_or_nothing_never_wins(given_rows, job) -> None:
    for p in run(b.market(given_rows), job)[0].ranked:
        assert p.node_usd_per_hour > 0


@given(rows(), jobs())
def test_r07_gpu_memory_is_never_lowered(given_rows, job) -> None:
    for p in run(b.market(given_rows), job)[0].ranked:
        assert any(
            float(p.gpu_memory_gib) >= 0.93 * (o.min_memory_gib or b.MEMORY[str(o.model)])
            for o in job.resources.accelerators
        )


@given(rows(), jobs(), st.sampled_from(list(Mark)))
def test_marking_an_offer_never_makes_the_choice_cheaper(given_rows, job, mark) -> None:
    plain = run(b.market(given_rows), job)[0]
    marked = run(b.market(given_rows, marks={0: mark}), job)[0]
    if plain.ranked and marked.ranked:
        assert marked.ranked[0].total_usd >= plain.ranked[0].total_usd


@given(rows(), st.integers(1, 12), st.integers(1, 3))
def test_r21_no_pool_is_filled_beyond_its_cap(given_rows, count: int, cap: int) -> None:
    fleet = [b.workload(f"job-{k:02d}") for k in range(count)]
    placed = run(b.market(given_rows), *fleet, pool_cap_nodes=cap)
    pools = [p.ranked[0].pool for p in placed if p.ranked]
    assert all(pools.count(pool) <= cap for pool in set(pools))


@given(rows(least=3), st.integers(1, 20), st.integers(1, 3))
def test_r21_identical_jobs_cost_what_the_cheapest_assignment_costs(given_rows, count: int, cap: int) -> None:
    market = b.market(given_rows)
    fleet = [b.workload(f"job-{k:02d}", resources={"capacity": tuple(CAPACITY)}) for k in range(count)]
    alone = plan(
        fleet[:1],
        market,
        Ledger(),
        Policy(project=b.project(), memory=AvailabilityMemory(), as_of=market.as_of, top=1000),
    )[0]
    cheapest: dict[str, Decimal] = {}
    for p in alone.ranked:
        cheapest.setdefault(p.pool, p.total_usd)
    slots = sorted(usd for usd in cheapest.values() for _ in range(cap))[:count]
    placed = [p.ranked[0].total_usd for p in run(market, *fleet, pool_cap_nodes=cap) if p.ranked]
    assert len(placed) == len(slots)
    assert sum(placed) <= sum(slots) * Decimal("1.02")


SPLIT_TYPES = [
    b.instance_type("p4de.24xlarge"),
    b.instance_type("p5.48xlarge", gpu="H100"),
    b.instance_type("a2-ultragpu-8g", cloud=Cloud.GCP),
    b.instance_type("a3-highgpu-8g", cloud=Cloud.GCP, gpu="H100", fabric=Fabric.TCPX),
    b.instance_type("Standard_ND96amsr_A100_v4", cloud=Cloud.AZURE, link=Link.PCIE),
]
HOME = {Cloud.AWS: REGIONS[0], Cloud.GCP: REGIONS[2], Cloud.AZURE: b.region("eastus", Cloud.AZURE, net_index=4)}


@st.composite
def split_jobs(draw: st.DrawFn):
    return b.workload(
        draw(st.sampled_from(["one", "two"])),
        resources={
            "accelerators": (GpuOption(model="A100-80GB", count=8), GpuOption(model="H100", count=8)),
            "capacity": tuple(CAPACITY),
            "nodes": draw(st.integers(2, 9)),
        },
        tunnel=True,
        sync_bytes=draw(st.integers(1, 10**11)),
        sync_seconds=draw(st.floats(1, 10_000)),
        data=tuple(b.dataset(gb) for gb in draw(st.lists(st.floats(0, 5_000), max_size=1))),
        checkpoint=draw(st.one_of(st.none(), st.builds(b.checkpoints, st.floats(0, 500), st.floats(0.1, 4)))),
    )


@st.composite
def split_markets(draw: st.DrawFn):
    rows = [
        (t, HOME[t.cloud], "", capacity, draw(st.floats(0.5, 100).map(lambda x: round(x, 4))))
        for t in SPLIT_TYPES
        for capacity in CAPACITY
        if draw(st.booleans())
    ]
    anchor = (TYPES[4], REGIONS[0], "anchor", CapacityType.ON_DEMAND, None)
    return b.market([anchor, *rows], rate=draw(st.sampled_from([0.0, 0.01])), gbps=draw(st.floats(0.1, 50)))


@st.composite
def quotas(draw: st.DrawFn):
    """Targets of three clouds, each with room for so many nodes."""
    return tuple(
        Target(name="t", cloud=c, quotas=(Quota(instance_types=("*",), max_nodes=draw(st.integers(0, 9))),))
        for c in HOME
    )


def plan_on(market, targets, *workloads, top: int = 20, **project):
    whole = b.project(*targets, **project)
    return plan(
        list(workloads),
        market,
        EMPTY,
        Policy(project=whole, memory=NO_FAILURES, as_of=market.as_of, top=top),
    )


@given(split_markets(), split_jobs(), quotas(), st.one_of(st.none(), st.integers(1, 9)))
def test_parts_hold_all_nodes_and_each_is_feasible_with_its_own_number(market, job, targets, cap) -> None:
    placed = plan_on(market, targets, job, pool_cap_nodes=cap)[0]
    for p in placed.ranked:
        assert sum(piece.nodes for piece in p.pieces) == p.nodes == job.resources.nodes
        if not p.parts:
            continue
        assert len({part.cloud for part in p.parts}) == len(p.parts) > 1
        assert len({(part.gpu, part.gpu_count) for part in p.parts}) == 1
        assert [part.first_rank for part in p.parts] == [0, p.parts[0].nodes]
        assert p.total_usd == sum((t.usd for t in p.terms if t.usd is not None), Decimal(0))
        for part in p.parts:
            alone = replace(job, tunnel=False, resources=replace(job.resources, nodes=part.nodes))
            c = plan_on(market, targets, alone, pool_cap_nodes=cap)[0].context
            verdicts = [verdict(c, i) for i in range(len(c.offers)) if c.offers.offer_id(i) == part.offer_id]
            assert [v.rejections for v in verdicts] == [()]
    assert [p.total_usd for p in placed.ranked] == sorted(p.total_usd for p in placed.ranked)


@given(split_markets(), split_jobs(), quotas())
def test_a_split_costs_no_less_than_its_parts_without_the_tunnel(market, job, targets) -> None:
    nothing = replace(job, sync_bytes=1, sync_seconds=1e12)
    free = {p.offer_id: p for p in plan_on(market, targets, nothing, top=1000)[0].ranked}
    for p in plan_on(market, targets, job)[0].ranked:
        if not p.parts:
            continue
        speed = min(node_speed(market, next(t for t in market.types if t.name == q.instance_type), 1) for q in p.parts)
        computing = job.work.hours * 8 / (speed * p.nodes)
        assert float(p.compute_hours) >= computing - 1e-3
        assert float(p.total_usd) >= float(p.usd_per_hour) * computing * (1 - 1e-4) - 0.01
        if p.offer_id in free:
            assert p.total_usd >= free[p.offer_id].total_usd
            assert p.finish_hours >= free[p.offer_id].finish_hours


@given(split_markets(), split_jobs(), quotas())
def test_a_job_that_did_not_ask_or_is_sensitive_is_never_split_and_asking_changes_no_single_placement(
    market, job, targets
) -> None:
    asked = plan_on(market, targets, job, top=1000)[0]
    plain = plan_on(market, targets, replace(job, tunnel=False), top=1000)[0]
    sensitive = replace(job, resources=replace(job.resources, interconnect_sensitive=True))
    assert not any(p.parts for p in (*plain.ranked, *plan_on(market, targets, sensitive, top=1000)[0].ranked))
    singles = [replace(p, rank=0) for p in asked.ranked if not p.parts]
    assert singles == [replace(p, rank=0) for p in plain.ranked]


@given(split_markets(), split_jobs(), split_jobs(), quotas(), st.integers(1, 9))
def test_the_order_of_split_jobs_is_irrelevant_and_no_pool_is_overfilled(market, one, other, targets, cap) -> None:
    one, other = replace(one, name="one"), replace(other, name="other")
    there, back = (plan_on(market, targets, *jobs, pool_cap_nodes=cap) for jobs in ((one, other), (other, one)))
    assert [(p.workload, p.ranked, p.notes) for p in there] == [(p.workload, p.ranked, p.notes) for p in back]
    held: dict[str, int] = {}
    for p in there:
        for piece in p.ranked[0].pieces if p.ranked else ():
            held[piece.pool] = held.get(piece.pool, 0) + piece.nodes
    assert all(nodes <= cap for nodes in held.values())


@given(split_markets(), split_jobs(), quotas(), st.one_of(st.none(), st.integers(1, 9)), st.integers(1, 12))
def test_room_says_for_every_number_of_nodes_what_the_rejections_say(market, job, targets, cap, nodes: int) -> None:
    held = Holding(
        job="x", pool="aws:t/us-east-1/p4de/spot", instance_type="p4de.24xlarge", region="us-east-1", target="t",
        capacity="spot", nodes=2, gpus=16, vcpus=192,
    )  # fmt: skip
    project, ledger = b.project(*targets, pool_cap_nodes=cap), Ledger((held,))
    offers = offers_of(market, project, as_of=market.as_of)
    sized = replace(job, tunnel=False, resources=replace(job.resources, nodes=nodes))
    ranking = rank(offers, sized, judge(offers, sized), project=project, ledger=ledger, cool={})
    most = room(offers, job, project=project, ledger=ledger, cool={})
    assert ((most >= nodes) == (ranking.bits == 0)).all()


@st.composite
def tariffs(draw: st.DrawFn) -> Tariff:
    froms = sorted({0.0, *draw(st.lists(st.floats(1, 1e6), max_size=5))})
    return Tariff(steps=tuple(Tier(f, draw(st.floats(0, 1))) for f in froms), source="t", as_of="2026")


@given(tariffs(), st.floats(0, 2e6), st.floats(0, 2e6))
def test_r12_egress_is_monotone(tariff: Tariff, x: float, y: float) -> None:
    low, high = sorted((x, y))
    assert cost_usd(tariff, low) <= cost_usd(tariff, high) * (1 + 1e-12) + 1e-9


@given(tariffs())
def test_r12_egress_is_continuous_at_every_step(tariff: Tariff) -> None:
    for step in tariff.steps:
        below, above = max(step.from_gb - 1e-6, 0.0), step.from_gb + 1e-6
        assert cost_usd(tariff, above) - cost_usd(tariff, below) <= 2.1e-6 + 1e-6 * cost_usd(tariff, above)


@given(st.lists(tariffs(), min_size=1, max_size=4), st.lists(st.floats(0, 2e6), min_size=1, max_size=6))
def test_many_amounts_at_once_cost_what_each_costs(given_tariffs, amounts) -> None:
    table = TariffTable(tuple(given_tariffs))
    for j, tariff in enumerate(given_tariffs):
        got = table.cost_usd(np.full(len(amounts), j, dtype=np.int16), np.array(amounts))
        for have, gb in zip(got, amounts, strict=True):
            assert math.isclose(have, cost_usd(tariff, gb), rel_tol=1e-9, abs_tol=1e-9)
