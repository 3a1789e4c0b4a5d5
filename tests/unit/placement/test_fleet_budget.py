"""R12, R21: where a budget keeps somebody of a large call waiting, all are looked at at once before anybody is left out."""

from __future__ import annotations

import pytest

from planner.model.ledger import AvailabilityMemory, Ledger
from planner.model.offer import CapacityType, Cloud
from planner.model.project import Budget, Target
from planner.placement.assign import exact, rescue, solve
from planner.placement.fleet import Fleet, Policy, plan_fleet
from tests import builders as b

P4DE, EAST = b.instance_type("p4de.24xlarge"), b.region("us-east-1")
CHEAP, DEAR = (10.0, 11.0, 12.0), (13.0, 30.0, 31.0, 32.0)


def fleet(usd_per_hour: float) -> Fleet:
    """Four jobs that no budget counts, first by name, and three of a team that has one."""
    offers = [
        (P4DE, EAST, f"us-east-1-{'abcdefg'[n]}", CapacityType.ON_DEMAND, usd) for n, usd in enumerate(CHEAP + DEAR)
    ]
    m = b.market(offers)
    budgets = (Budget(teams=("vision",), usd_per_hour=usd_per_hour),)
    given = b.project(Target(name="default", cloud=Cloud.AWS), budgets=budgets, pool_cap_nodes=1)
    jobs = [b.workload(f"a{n}", team="nlp") for n in range(4)] + [b.workload(f"v{n}", team="vision") for n in range(3)]
    return plan_fleet(jobs, m, Ledger(), Policy(project=given, memory=AvailabilityMemory(), as_of=m.as_of))


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a large call: no exact search, and nobody is asked to move up."""
    monkeypatch.setattr(exact, "FEW_COLUMNS", 0)
    monkeypatch.setattr(rescue, "ASKED", 1)


def test_who_has_a_budget_gets_the_cheap_places_where_all_fit_only_so() -> None:
    found = fleet(sum(CHEAP))
    assert not found.summary.waiting
    (use,) = found.summary.budgets
    assert float(use.planned_usd) == sum(CHEAP)


def test_where_not_all_can_fit_nobody_of_the_others_waits_for_it() -> None:
    found = fleet(sum(CHEAP) - 1)
    assert {w.job for w in found.summary.waiting} < {"v0", "v1", "v2"}
    assert all(use.planned_usd <= use.limit_usd for use in found.summary.budgets)


def test_without_looking_at_all_at_once_somebody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve, "_everyone", lambda *_: None)
    assert fleet(sum(CHEAP)).summary.waiting
