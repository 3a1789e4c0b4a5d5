"""What runs is one more candidate: no start-up, its own rate, and no refusal of new nodes keeps it out."""

from __future__ import annotations

import pytest

from planner.model.ledger import AvailabilityMemory, Failure, Holding, Ledger
from planner.model.offer import CapacityType
from planner.model.plan import Placement
from planner.placement.fleet import Policy, plan
from planner.placement.standing import Standing
from tests.builders import instance_type, market, project, region, workload

EAST, WEST = region(), region("us-west-2", net_index=2)
TYPE = instance_type()
MARKET = market(
    [
        (TYPE, EAST, "us-east-1-a", CapacityType.ON_DEMAND, 10.0),
        (TYPE, WEST, "us-west-2-a", CapacityType.ON_DEMAND, 9.9),
    ]
)
HERE = "aws:default/us-east-1/us-east-1-a/p4de.24xlarge/on_demand"
POOL = "aws:default/us-east-1-a/p4de/on_demand"


def _ranked(standing: Standing | None, *failures: Failure, held: int = 0) -> dict[str, Placement]:
    others = Holding(
        job="other",
        pool=POOL,
        instance_type=TYPE.name,
        region="us-east-1",
        target="default",
        capacity="on_demand",
        nodes=held,
        gpus=0,
        vcpus=0,
    )
    policy = Policy(
        project=project(),
        memory=AvailabilityMemory(failures),
        as_of="2026-01-01",
        standing={"job": standing} if standing else {},
    )
    (placed,) = plan([workload()], MARKET, Ledger((others,)), policy)
    return {p.offer_id: p for p in placed.ranked}


def test_it_bears_no_start_up_and_the_others_do() -> None:
    bare, stands = _ranked(None), _ranked(Standing(offer_id=HERE))
    before, after = bare[HERE], stands[HERE]
    startup = next(t.usd for t in before.terms if t.name == "startup")
    assert startup
    assert before.total_usd - after.total_usd == startup
    assert float(before.finish_hours - after.finish_hours) == pytest.approx(10 / 60, abs=1e-3)
    other = next(iter(set(bare) - {HERE}))
    assert bare[other].total_usd == stands[other].total_usd


def test_its_own_rate_counts() -> None:
    dear = _ranked(Standing(offer_id=HERE, usd_per_hour=20.0))[HERE]
    assert next(t.usd for t in dear.terms if t.name == "compute") == 480
    assert float(dear.usd_per_hour) == 20


def test_neither_a_failure_nor_a_full_pool_keeps_it_out() -> None:
    failed = Failure(scope=POOL, code="InsufficientInstanceCapacity", kind="capacity", at="2025-12-31T23:59:00+00:00")
    assert HERE not in _ranked(None, failed)
    assert HERE in _ranked(Standing(offer_id=HERE), failed)
    assert HERE not in _ranked(None, held=4)
    assert HERE in _ranked(Standing(offer_id=HERE), held=4)


@pytest.mark.parametrize(
    "offer", ["gone", HERE.replace("us-east-1", "us-east-9"), f"{HERE} x1 + {HERE} x1", HERE[:-9] + "spot"]
)
def test_what_the_market_has_lost_is_no_candidate(offer: str) -> None:
    assert set(_ranked(Standing(offer_id=offer))) == set(_ranked(None))
