"""The parts of an assignment (R12, R21): the relaxation's bound, exact answers, chains of moves, and a check that does not trust the rows."""

from __future__ import annotations

from dataclasses import replace

import highspy
import numpy as np
import pytest

from planner.model.ledger import Holding, Ledger
from planner.model.offer import CapacityType, Cloud
from planner.model.project import Budget, Project, Quota, Target
from planner.model.workload import AntiAffinity, Workload
from planner.placement.alone import Ground, context_of, ranked
from planner.placement.assign import exact
from planner.placement.assign.board import NOWHERE, Board
from planner.placement.assign.check import wrong
from planner.placement.assign.kinds import Catalogue
from planner.placement.assign.relax import Relaxation, demands
from planner.placement.assign.rescue import Rescue
from planner.placement.assign.rows import Scarce
from planner.placement.held import holding, holdings
from planner.placement.offers import Offers, offers_of
from planner.placement.rank import judge
from tests import builders as b

EAST = b.region("us-east-1")
P4DE, P5 = b.instance_type("p4de.24xlarge"), b.instance_type("p5.48xlarge", gpu="H100")
OD = CapacityType.ON_DEMAND
AWS = Target(name="default", cloud=Cloud.AWS)
ZONES = ("us-east-1-a", "us-east-1-b", "us-east-1-c")
MODELS = ("A100-80GB", "H100")


def job(name: str, *models: str, nodes: int = 1, **changes) -> Workload:
    options = tuple(b.GpuOption(model=m, count=8) for m in models or MODELS[:1])
    return b.workload(name, resources={"accelerators": options, "nodes": nodes}, **changes)


def world(project: Project, ledger: Ledger | None = None) -> tuple[Offers, Scarce, Catalogue]:
    rows = [(t, EAST, z, OD, usd + n) for t, usd in ((P4DE, 20.0), (P5, 70.0)) for n, z in enumerate(ZONES)]
    offers = offers_of(b.market(rows), project, as_of="2026-11-01")
    scarce = Scarce(offers, project, ledger or Ledger(), ())
    return offers, scarce, Catalogue(offers, scarce, {}, {})


def test_the_relaxation_is_a_bound_and_the_exact_answer_reaches_it_where_sizes_are_alike() -> None:
    _, scarce, catalogue = world(b.project(AWS, pool_cap_nodes=1))
    jobs = [job("a", *MODELS), job("b", *MODELS), job("c"), job("d"), job("e")]
    kinds = catalogue.kinds(jobs)
    wanted = demands({k.number: k for k in kinds}, {0: 2, 1: 3}, scarce.free)
    relaxed = Relaxation(highspy, wanted, scarce.free).solve([], holds=False)
    assert relaxed is not None
    columns = exact.every(wanted)
    assert columns is not None
    found = exact.cheapest(highspy, wanted, scarce.free, columns)
    assert found is not None
    by_number = {k.number: k for k in kinds}
    total = sum(int(by_number[k].shape.total[p]) * many for (k, p), many in found.items())
    assert relaxed.bound == total
    assert {(k, p): pytest.approx(many) for (k, p), many in found.items()} == relaxed.values
    # the three that need a p4de have them all; the other two are left the cheapest of the rest
    assert sorted(p for (k, p) in found if k == 1) == [0, 1, 2]
    assert (relaxed.prices >= 0).all()


def test_where_there_is_no_assignment_there_is_no_exact_answer() -> None:
    _, scarce, catalogue = world(b.project(AWS, pool_cap_nodes=1))
    (kind,) = {k.number: k for k in catalogue.kinds([job(n) for n in "abcd"])}.values()
    wanted = demands({0: kind}, {0: 4}, scarce.free)
    columns = exact.every(wanted)
    assert columns is not None
    assert exact.cheapest(highspy, wanted, scarce.free, columns) is None


def test_jobs_move_up_in_a_chain_for_one_that_has_no_place() -> None:
    """`x` needs the first p4de; its holder can go to the second alone, whose holder can go anywhere."""
    offers, scarce, catalogue = world(b.project(AWS, pool_cap_nodes=1))
    limits = [("us-east-1-a",), ("us-east-1-a", "us-east-1-b"), ("us-east-1-b", "us-east-1-c")]
    jobs = [job(f"j{n}") for n in range(3)]
    kinds = catalogue.kinds(jobs)
    # each may lie in its own zones only
    zones = [{offers.zone(int(i)) for i in kinds[0].shape.index}] * 3
    assert all(set(wanted) <= have for wanted, have in zip(limits, zones, strict=True))
    narrowed = []
    for n, (kind, wanted) in enumerate(zip(kinds, limits, strict=True)):
        at = np.array([p for p, i in enumerate(kind.shape.index.tolist()) if offers.zone(i) in wanted])
        shape = replace(kind.shape, number=n, index=kind.shape.index[at], total=kind.shape.total[at])
        columns = tuple(type(c)(c.rows[at], c.amounts[at]) for c in kind.columns)
        narrowed.append(replace(kind, number=n, shape=shape, columns=columns, first=np.arange(len(at))))
    board = Board(narrowed, scarce.free)
    board.take(1, 0)
    board.take(2, 0)
    assert board.first(narrowed[0]) == NOWHERE
    assert Rescue(board, lambda _: False)(0)
    assert board.at == [0, 1, 1]
    # who may not move keeps its place
    board = Board(narrowed, scarce.free)
    board.take(1, 0)
    board.take(2, 0)
    assert not Rescue(board, lambda _: False, frozenset({2}))(0)
    assert board.at == [NOWHERE, 0, 0]


def holds(name: str, zone: str = ZONES[0], nodes: int = 1, **more) -> Holding:
    values = {"instance_type": "p4de.24xlarge", "region": "us-east-1", "target": "default", "capacity": "on_demand"}
    return Holding(
        job=name,
        pool=f"aws:default/{zone}/p4de/on_demand",
        nodes=nodes,
        gpus=8 * nodes,
        vcpus=96 * nodes,
        **values,
        **more,
    )


GROUP = {"apart": (("eval", "zone"),)}


@pytest.mark.parametrize(
    ("project", "held", "taken", "expected"),
    [
        (b.project(AWS), [], [holds("a", nodes=2), holds("b", nodes=2)], ""),
        (b.project(AWS), [], [holds("a", nodes=9)], ""),
        (b.project(AWS), [], [holds("a", nodes=2), holds("b", nodes=3)], "pool "),
        (b.project(AWS), [holds("o")], [holds("a", nodes=9)], "pool "),
        (b.project(AWS, pool_cap_nodes=8), [], [holds("a", nodes=9)], "pool "),
        (
            b.project(replace(AWS, quotas=(Quota(instance_types=("p4*",), max_gpus=16),))),
            [holds("o")],
            [holds("a")],
            "",
        ),
        (
            b.project(replace(AWS, quotas=(Quota(instance_types=("p4*",), max_gpus=16),))),
            [holds("o")],
            [holds("a", nodes=2)],
            "quota ",
        ),
        (b.project(AWS, budgets=(Budget(usd_per_hour=1.0),)), [], [holds("a", usd_per_hour_ticks=10_000)], ""),
        (b.project(AWS, budgets=(Budget(usd_per_hour=1.0),)), [], [holds("a", usd_per_hour_ticks=10_001)], "budget "),
        (b.project(AWS, budgets=(Budget(teams=("x",), usd_total=1.0),)), [], [holds("a", usd_total_ticks=10_001)], ""),
        (b.project(AWS), [holds("o", **GROUP)], [holds("a", ZONES[1], **GROUP)], ""),
        (b.project(AWS), [holds("o", **GROUP)], [holds("a", **GROUP)], "a and o of eval share zone"),
        (b.project(AWS), [], [holds("a", "us-east-1", **GROUP), holds("b", **GROUP)], "a and b of eval share zone"),
    ],
)
def test_the_check_finds_what_is_broken(
    project: Project, held: list[Holding], taken: list[Holding], expected: str
) -> None:
    offers, *_ = world(project)
    found = wrong(offers, project, Ledger(tuple(sorted(held))), taken)
    assert bool(found) == bool(expected)
    assert all(f.startswith(expected) for f in found)


def test_a_holding_told_by_columns_is_that_told_by_the_placement() -> None:
    project = b.project(AWS)
    offers, *_ = world(project)
    one = job("a", nodes=2, team="vision", anti_affinity=(AntiAffinity(group="eval"),))
    ground = Ground(offers=offers, project=project, cool={}, unusable={}, standing={}, top=3)
    places = ranked(context_of(ground, one, judge(offers, one), Ledger()), 3)
    scarce = Scarce(offers, project, Ledger(), one.anti_affinity)
    kind = Catalogue(offers, scarce, {}, {}).kind(one)
    for position, place in enumerate(places):
        assert holdings(place, offers.market, workload=one) == (holding(offers, one, kind, position),)
    assert len(places) == 3


def test_jobs_that_differ_in_name_prefix_and_command_are_of_one_shape() -> None:
    *_, catalogue = world(b.project(AWS))
    policy = b.checkpoints()
    jobs = [
        replace(
            job(f"j{n}"), run=f"train --seed {n}", checkpoint=replace(policy, at=replace(policy.at, prefix=f"{n}/"))
        )
        for n in range(3)
    ]
    assert len({k.number for k in catalogue.kinds(jobs)}) == 1
    elsewhere = replace(policy, at=replace(policy.at, region="eu-west-1"))
    assert len({k.number for k in catalogue.kinds([*jobs, replace(jobs[0], checkpoint=elsewhere)])}) == 2
