"""What must hold of every assignment of many jobs (R12, R21): rules, order, cost against brute force, against one by one and with more capacity.

The rules are told here once more, by hand and on placements, so that an error in the planner's own check does not vouch for itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import product

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from planner.model.ledger import AvailabilityMemory, Holding, Ledger
from planner.model.market import Market
from planner.model.offer import CapacityType, Cloud, Fabric
from planner.model.plan import Placement
from planner.model.project import Budget, Project, Quota, Target
from planner.model.workload import AntiAffinity, Apart, Gang, Workload
from planner.placement.alone import Ground, context_of
from planner.placement.alone import ranked as ranked_alone
from planner.placement.assign.call import Call
from planner.placement.explain import notes, rejected_counts
from planner.placement.fleet import Fleet, Policy, holdings, plan_fleet
from planner.placement.offers import offers_of
from planner.placement.rank import judge, rank
from planner.placement.told import assigned
from tests import builders as b

EAST, WEST = b.region("us-east-1"), b.region("us-west-2", net_index=2)
IOWA = b.region("us-central1", Cloud.GCP, net_index=3)
AWS = [b.instance_type("p4de.24xlarge"), b.instance_type("p5.48xlarge", gpu="H100")]
GCP = [
    b.instance_type("a2-ultragpu-8g", cloud=Cloud.GCP),
    b.instance_type("a3-highgpu-8g", cloud=Cloud.GCP, gpu="H100", fabric=Fabric.TCPX),
]
CAPACITY = [CapacityType.ON_DEMAND, CapacityType.SPOT]
WIDTH = ["pool", "zone", "region", "cloud"]


@dataclass(frozen=True)
class World:
    market: Market
    project: Project
    jobs: tuple[Workload, ...]
    ledger: Ledger

    def plan(self, **changes) -> Fleet:
        policy = Policy(project=self.project, memory=AvailabilityMemory(), as_of=self.market.as_of, **changes)
        return plan_fleet(self.jobs, self.market, self.ledger, policy)


@st.composite
def rows(draw: st.DrawFn, most: int = 8):
    keys = draw(
        st.lists(
            st.tuples(st.integers(0, 3), st.integers(0, 1), st.sampled_from(["", "a", "b"]), st.sampled_from(CAPACITY)),
            min_size=min(3, most),
            max_size=most,
            unique=True,
        )
    )
    out = []
    for kind, place, zone, capacity in keys:
        t = [*AWS, *GCP][kind]
        r = IOWA if t.cloud is Cloud.GCP else (EAST, WEST)[place]
        row = (t, r, zone and f"{r.name}-{zone}", capacity, draw(st.integers(10, 40)))
        if row[:4] not in [x[:4] for x in out]:
            out.append(row)
    return out


@st.composite
def jobs(
    draw: st.DrawFn, most: int = 6, nodes: tuple[int, ...] = (1, 1, 2, 2, 3, 6), teams: tuple[str, ...] = ("",), **fixed
):
    many = draw(st.integers(2, most))
    shapes = draw(
        st.lists(
            st.tuples(
                st.sampled_from([("A100-80GB",), ("H100",), ("A100-80GB", "H100"), ("A100-80GB", "H100")]),
                st.sampled_from(nodes),
                st.sampled_from([(CAPACITY[0],), tuple(CAPACITY), tuple(CAPACITY)]),
                st.sampled_from([4.0, 24.0]),
            ),
            min_size=1,
            max_size=3,
        )
    )
    out = []
    for n in range(many):
        models, count, capacity, hours = draw(st.sampled_from(shapes))
        job = b.workload(
            f"job-{n}",
            resources={
                "accelerators": tuple(b.GpuOption(model=m, count=8) for m in models),
                "nodes": count,
                "capacity": capacity,
            },
            priority=draw(st.integers(0, 1)) if fixed.get("classes", True) else 0,
            team=draw(st.sampled_from(teams)),
        )
        # every job has a prefix of its own, as real ones have
        policy = b.checkpoints(region_name=draw(st.sampled_from(["us-east-1", None])))
        policy = replace(policy, at=replace(policy.at, prefix=f"{job.name}/"))
        out.append(replace(job, work=replace(job.work, hours=hours), checkpoint=draw(st.sampled_from([None, policy]))))
    return tuple(out)


@st.composite
def projects(draw: st.DrawFn, *, budgets: bool = True):
    quota = st.builds(
        Quota,
        instance_types=st.sampled_from([("*",), ("p4*",), ("p*", "a2*")]),
        regions=st.sampled_from([("*",), ("us-east-1",)]),
        capacity=st.sampled_from([None, "spot"]),
        max_nodes=st.sampled_from([None, 2, 5]),
        max_gpus=st.sampled_from([None, 16, 40]),
        max_vcpus=st.sampled_from([None, 300]),
    )
    targets = (
        Target(name="default", cloud=Cloud.AWS, quotas=tuple(draw(st.lists(quota, max_size=2)))),
        Target(name="default", cloud=Cloud.GCP, network_quota=draw(st.sampled_from([(), (("*", 5),), (("*", 1),)]))),
    )
    money = st.sampled_from(
        [(), (Budget(usd_per_hour=90.0),), (Budget(teams=("red",), usd_total=700.0), Budget(usd_per_hour=200.0))]
    )
    return b.project(
        *targets, pool_cap_nodes=draw(st.sampled_from([None, 2, 3, 6])), budgets=draw(money) if budgets else ()
    )


@st.composite
def groups(draw: st.DrawFn, given_jobs: tuple[Workload, ...]):
    by = draw(st.sampled_from(list(Apart)))
    out = []
    for job in given_jobs:
        apart = (AntiAffinity(group="eval", by=by),) if draw(st.integers(0, 2)) == 0 else ()
        gang = Gang(group="sweep", least=2) if draw(st.integers(0, 3)) == 0 else None
        out.append(replace(job, anti_affinity=apart, gang=gang))
    return tuple(out)


@st.composite
def worlds(draw: st.DrawFn):
    market = b.market(draw(rows()))
    project = draw(projects())
    found = draw(groups(draw(jobs(teams=("", "red", "blue")))))
    held: tuple[Holding, ...] = ()
    if draw(st.booleans()):
        other = replace(
            b.workload("other", team="red"),
            anti_affinity=draw(st.sampled_from([(), (AntiAffinity(group="eval", by=Apart.ZONE),)])),
        )
        free = plan_fleet(
            [other], market, Ledger(), Policy(project=project, memory=AvailabilityMemory(), as_of=market.as_of)
        )
        for placed in free.placed:
            held += holdings(placed.ranked[0], market, workload=other) if placed.ranked else ()
    return World(market=market, project=project, jobs=found, ledger=Ledger(held))


def breaks(world: World, places: dict[str, Placement]) -> list[str]:  # noqa: PLR0912 - all rules in one place
    """The rules, by hand."""
    found: list[str] = []
    of = {j.name: j for j in world.jobs}
    nodes, guests = Counter[str](), defaultdict(list)
    for name, p in places.items():
        nodes[p.pool] += p.nodes
        guests[p.pool].append(name)
    others = Counter[str]()
    for h in world.ledger.holdings:
        others[h.pool] += h.nodes
    cap = world.project.pool_cap_nodes
    for pool, n in nodes.items():
        alone = cap is None and len(guests[pool]) == 1 and others[pool] == 0
        if n + others[pool] > (4 if cap is None else cap) and not alone:
            found.append(f"pool {pool}")
    kinds = {(t.cloud.value, t.name): t for t in world.market.types}
    lying = [(p.cloud, p.instance_type, p.region, p.capacity, p.nodes, True) for p in places.values()]
    lying += [
        (h.pool.split(":")[0], h.instance_type, h.region, h.capacity, h.nodes, False) for h in world.ledger.holdings
    ]
    for target in world.project.targets:
        for quota, region in product(target.quotas, {place[2] for place in lying}):
            if not any(fnmatchcase(region, r) for r in quota.regions):
                continue
            hit = [
                x
                for x in lying
                if x[0] == target.cloud.value
                and x[2] == region
                and quota.capacity in (None, x[3])
                and any(fnmatchcase(x[1], t) for t in quota.instance_types)
            ]
            for limit, each in (
                (quota.max_nodes, lambda t: 1),
                (quota.max_gpus, lambda t: t.gpu_count),
                (quota.max_vcpus, lambda t: t.vcpus),
            ):
                if (
                    limit is not None
                    and any(x[5] for x in hit)
                    and sum(x[4] * each(kinds[x[0], x[1]]) for x in hit) > limit
                ):
                    found.append(f"quota {quota}")
        for glob, most in target.network_quota:
            here = [x for x in lying if x[0] == target.cloud.value and fnmatchcase(x[2], glob)]
            own = sum(4 for x in here if kinds[x[0], x[1]].fabric is Fabric.TCPX and x[4] > 1)
            if any(x[5] for x in here) and own + 1 > most:
                found.append("networks")
    for budget in world.project.budgets:
        mine = [p for name, p in places.items() if any(fnmatchcase(of[name].team, t) for t in budget.teams)]
        held = [h for h in world.ledger.holdings if any(fnmatchcase(h.team, t) for t in budget.teams)]
        hourly = sum(float(p.usd_per_hour) for p in mine) + sum(h.usd_per_hour_ticks for h in held) / 1e4
        total = sum(float(p.total_usd) for p in mine) + sum(h.usd_total_ticks for h in held) / 1e4
        if mine and budget.usd_per_hour is not None and hourly > budget.usd_per_hour + 1e-6:
            found.append("budget per hour")
        if mine and budget.usd_total is not None and total > budget.usd_total + 1e-6:
            found.append("budget in total")
    wide = [a.by.value for j in world.jobs for a in j.anti_affinity] + [
        by for h in world.ledger.holdings for _, by in h.apart
    ]
    members = [(p.pool, p.cloud, p.region, p.zone, True) for n, p in places.items() if of[n].anti_affinity]
    for h in world.ledger.holdings:
        zone = h.pool.split("/")[1]
        members += (
            [(h.pool, h.pool.split(":")[0], h.region, "" if zone == h.region else zone, False)] if h.apart else []
        )
    by = max(wide, key=WIDTH.index, default="pool")
    for n, one in enumerate(members):
        for other in members[n + 1 :]:
            zones = one[1:3] == other[1:3] and (one[3] == other[3] or "" in (one[3], other[3]))
            near = {
                "pool": one[0] == other[0],
                "zone": zones,
                "region": one[1:3] == other[1:3],
                "cloud": one[1] == other[1],
            }
            if (one[4] or other[4]) and near[by]:
                found.append(f"apart by {by}")
    gang = [n for n in places if of[n].gang]
    if 0 < len(gang) < 2:
        found.append("gang")
    return found


def places_of(fleet: Fleet) -> dict[str, Placement]:
    return {p.workload.name: p.ranked[0] for p in fleet.placed if p.ranked}


def cost(places: dict[str, Placement]) -> int:
    return sum(int(p.total_usd * 10_000) for p in places.values())


@settings(max_examples=300, deadline=None)
@given(worlds())
def test_no_rule_is_ever_broken_and_everybody_has_an_answer(world: World) -> None:
    fleet = world.plan()
    assert breaks(world, places_of(fleet)) == []
    assert [p.workload.name for p in fleet.placed] == [
        j.name for j in sorted(world.jobs, key=lambda j: (-j.priority, j.name))
    ]
    for placed in fleet.placed:
        assert not (placed.ranked and placed.waiting)
        if placed.waiting:
            assert placed.waiting.code.startswith("SKY-REJ-2")
            assert len(placed.waiting.text) > 20
            assert placed.workload.name not in placed.waiting.behind
    assert fleet.summary.placed == len(places_of(fleet))
    assert fleet.summary.total_usd == sum(p.total_usd for p in places_of(fleet).values())


@settings(max_examples=100, deadline=None)
@given(worlds(), st.randoms(use_true_random=False))
def test_the_order_of_jobs_in_the_call_changes_nothing(world: World, random) -> None:
    shuffled = list(world.jobs)
    random.shuffle(shuffled)
    one, other = world.plan(), replace(world, jobs=tuple(shuffled)).plan()
    assert one.summary == other.summary
    for a, c in zip(one.placed, other.placed, strict=True):
        assert (a.workload, a.ranked, a.rejected, a.notes, a.waiting) == (
            c.workload,
            c.ranked,
            c.rejected,
            c.notes,
            c.waiting,
        )
        assert a.ledger_digest == c.ledger_digest


@settings(max_examples=150, deadline=None)
@given(worlds())
def test_what_is_told_of_many_is_what_is_told_of_each(world: World) -> None:
    fleet = world.plan()
    for placed in fleet.placed:
        context = placed.context
        assert rejected_counts(context) == placed.rejected
        if not placed.ranked:
            continue
        assert ranked_alone(context, 20) == placed.ranked
        said = notes(context.offers, context.ranking, placed.ranked)
        assert placed.notes[: len(said)] == said


def one_by_one(world: World) -> dict[str, int]:
    """The ticks of each job that has a place, taken in order as was done before there were fleets."""
    offers = offers_of(world.market, world.project, as_of=world.market.as_of)
    ledger, out = world.ledger, {}
    for job in sorted(world.jobs, key=lambda j: (-j.priority, j.name)):
        ranking = rank(offers, job, judge(offers, job), project=world.project, ledger=ledger, cool={})
        if not len(ranking.at):
            continue
        ground = Ground(offers=offers, project=world.project, cool={}, unusable={}, standing={}, top=1)
        (choice,) = ranked_alone(context_of(ground, job, judge(offers, job), ledger), 1)
        out[job.name] = int(choice.total_usd * 10_000)
        for held in holdings(choice, world.market, workload=job):
            ledger = ledger.plus(held)
    return out


@st.composite
def plain(draw: st.DrawFn, offers: int = 7, *, tight: bool = False, **changes):
    """Without teams, budgets, groups and holdings; `tight`: pools so small that most jobs are in another's way."""
    project = draw(projects(budgets=False))
    if tight:
        project = replace(project, pool_cap_nodes=draw(st.sampled_from([1, 2, 2, 3])))
        changes["nodes"] = (1, 1, 1, 2)
    return World(
        market=b.market(draw(rows(offers))),
        project=project,
        jobs=draw(jobs(**changes)),
        ledger=Ledger(),
    )


def per_class(world: World, names: set[str]) -> tuple[int, int]:
    return tuple(sum(j.priority == c and j.name in names for j in world.jobs) for c in (1, 0))


@settings(max_examples=200, deadline=None)
@given(plain())
def test_never_worse_than_one_by_one_and_the_same_where_nobody_contends(world: World) -> None:
    before, fleet = one_by_one(world), world.plan()
    now = places_of(fleet)
    assert per_class(world, set(now)) >= per_class(world, set(before))
    if set(now) == set(before):
        assert cost(now) <= sum(before.values())
    if fleet.summary.method == "one by one":
        assert {n: int(p.total_usd * 10_000) for n, p in now.items()} == before
    if fleet.summary.bound_usd is not None:
        assert fleet.summary.bound_usd <= fleet.summary.total_usd


def feasible(world: World) -> dict[str, dict[str, Placement]]:
    """By job, its places on an empty market."""
    out = {}
    for job in world.jobs:
        policy = Policy(project=world.project, memory=AvailabilityMemory(), as_of=world.market.as_of, top=50)
        (placed,) = plan_fleet([replace(job, gang=None)], world.market, Ledger(), policy).placed
        out[job.name] = {p.offer_id: p for p in placed.ranked}
    return out


def brute(world: World, names: list[str], candidates: dict[str, dict[str, Placement]]) -> int | None:
    """The least cost of placing exactly these; None where they do not fit together."""
    costs = [
        cost(places)
        for chosen in product(*(candidates[n].values() for n in names))
        if not breaks(world, places := dict(zip(names, chosen, strict=True)))
    ]
    return min(costs, default=None)


@settings(max_examples=120, deadline=None)
@given(plain(most=4, offers=6, tight=True))
def test_small_fleets_cost_the_least_there_is_and_nobody_waits_who_need_not(world: World) -> None:
    fleet, candidates = world.plan(), feasible(world)
    now = places_of(fleet)
    assert cost(now) == brute(world, sorted(now), candidates)
    for placed in fleet.placed:
        if placed.waiting:
            ahead = [n for n in now if next(j for j in world.jobs if j.name == n).priority >= placed.workload.priority]
            assert brute(world, sorted([*ahead, placed.workload.name]), candidates) is None
        elif not placed.ranked:
            assert not candidates[placed.workload.name]


@settings(max_examples=120, deadline=None)
@given(plain(nodes=(1,), classes=False), st.integers(1, 3))
def test_more_room_in_pools_never_costs_more_nor_places_fewer(world: World, cap: int) -> None:
    targets = tuple(Target(name="default", cloud=c) for c in (Cloud.AWS, Cloud.GCP))
    less, more = (replace(world, project=b.project(*targets, pool_cap_nodes=n)).plan() for n in (cap, cap + 1))
    assert set(places_of(less)) <= set(places_of(more))
    assert len(places_of(less)) <= len(places_of(more))
    if set(places_of(less)) == set(places_of(more)):
        assert more.summary.total_usd <= less.summary.total_usd


@settings(max_examples=120, deadline=None)
@given(plain(most=4, offers=5), st.integers(1, 4))
def test_a_larger_quota_never_costs_more(world: World, nodes: int) -> None:
    def with_quota(limit: int) -> Fleet:
        targets = (
            Target(name="default", cloud=Cloud.AWS, quotas=(Quota(instance_types=("p*",), max_nodes=limit),)),
            Target(name="default", cloud=Cloud.GCP),
        )
        return replace(world, project=b.project(*targets)).plan()

    less, more = with_quota(nodes), with_quota(nodes + 1)
    assume(set(places_of(less)) == set(places_of(more)))
    assert more.summary.total_usd <= less.summary.total_usd


@settings(max_examples=150, deadline=None)
@given(worlds(), st.data())
def test_planned_again_with_what_was_chosen_it_is_the_same_to_the_byte(world: World, data: st.DataObject) -> None:
    first = world.plan()
    again = world.plan(earlier={n: p.offer_id for n, p in places_of(first).items()})
    assert again.summary == first.summary
    for a, c in zip(first.placed, again.placed, strict=True):
        assert (a.ranked, a.rejected, a.notes, a.kept, a.waiting) == (c.ranked, c.rejected, c.notes, c.kept, c.waiting)
    # and from any earlier places at all: the rules hold, and who stays for less than a percent says so
    earlier = {
        n: data.draw(st.sampled_from([p.offer_id for p in placed.ranked]))
        for placed in first.placed
        if placed.ranked and (n := placed.workload.name)
    }
    moved = world.plan(earlier=earlier)
    assert breaks(world, places_of(moved)) == []
    assert per_class(world, set(places_of(moved))) >= per_class(world, set(places_of(first)))
    for placed in moved.placed:
        if placed.kept:
            assert placed.kept.offer_id == earlier[placed.workload.name] == placed.ranked[0].offer_id
            assert placed.kept.saving_usd > 0


@settings(max_examples=60, deadline=None)
@given(worlds())
def test_the_planner_s_own_check_agrees(world: World) -> None:
    offers = offers_of(world.market, world.project, as_of=world.market.as_of)
    ground = Ground(offers=offers, project=world.project, cool={}, unusable={}, standing={}, top=20)
    ordered = sorted(world.jobs, key=lambda j: (-j.priority, j.name))
    call, solved, _ = assigned(ground, ordered, world.ledger, {})
    assert isinstance(call, Call)
    assert call.task.sound(solved.board)
    assert call.task.sound(solved.greedy)
