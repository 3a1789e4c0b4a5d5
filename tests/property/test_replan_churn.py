"""Whatever prices do: no second voluntary move within the cool-down, never A, B, A in it, nothing moves for nothing, and the same path gives the same moves.

`data/azure_flapping_t4.csv`: spot and on-demand prices of Standard_NC16as_T4_v3 in the six Azure regions where they flap most, from Azure's public retail prices as
observed 2026-04-02 to 2026-05-20 (60 snapshots; an excerpt of the history that the project keeps beside its notes).
"""

from __future__ import annotations

import csv
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from planner.app.replan import Request, Sources, replan
from planner.migration.constants import DEFAULT
from planner.model.ledger import AvailabilityMemory
from planner.model.market import Market
from planner.model.migration import MigrationReason
from planner.model.record import RunStatus, stamp
from planner.model.runtime import Progress, Seat
from planner.state.history import Move
from planner.state.newest import Ends
from tests.builders import checkpoints, instance_type, market, project, region, workload
from tests.unit.app.replanning import SPOT, Bench, checkpoint, inputs, run_of

T0 = datetime(2026, 4, 2, 11, 17, tzinfo=UTC)
REGIONS = tuple(region(f"us-flap-{n}", net_index=n + 1) for n in range(6))
TYPE = instance_type()
JOB = workload(
    "train",
    work=replace(workload().work, hours=5000.0),
    resources={"capacity": (SPOT,)},
    checkpoint=checkpoints(5.0, 0.5, region_name="us-flap-0"),
)
OPEN = project(pool_cap_nodes=100)
Prices = tuple[float | None, ...]


def _market(prices: Prices) -> Market:
    return market([(TYPE, r, f"{r.name}-a", SPOT, usd) for r, usd in zip(REGIONS, prices, strict=False)])


def _offer(at: int) -> str:
    name = REGIONS[at].name
    return f"aws:default/{name}/{name}-a/{TYPE.name}/spot"


def drive(
    path: list[tuple[float, Prices]], reason: list[MigrationReason] | None = None
) -> list[tuple[float, str, str]]:
    """(hours, from, to) of every move of a job that starts in the first region and does as it is told."""
    width = len(path[0][1])
    bench = Bench(_market((1.0,) * width), job=JOB, project=OPEN, runs_on=_offer(0))
    told, plan = bench.told, bench.plan
    run = replace(bench.run, started_at=stamp(T0 - timedelta(hours=1)))
    told.jobs_ = [replace(told.jobs_[0], first_applied_at=run.started_at)]
    moves: list[tuple[float, str, str]] = []
    for hours, prices in path:
        now = T0 + timedelta(hours=hours)
        step = round(hours * 100) + 100
        told.runs_ = [*told.runs_[:-1], run]
        seat = Seat(job="train", generation=run.generation, rank=0)
        first = Progress(seat=seat, step=0, at=run.started_at)
        told.ends = {("train", run.generation): Ends(first=first, last=replace(first, step=step, at=stamp(now)))}
        told.checkpoints = {"train": checkpoint(step - 10, generation=run.generation)}
        request = Request(
            read=inputs(_market(prices), JOB, OPEN),
            plans={"train": plan},
            holdings=(run.holding,),
            memory=AvailabilityMemory(()),
        )
        found = replan(request, Sources(record=told, told=told), now)
        for diff in found.diffs:
            if reason is not None:
                reason.append(diff.reason)
            moves.append((hours, run.offer_id, diff.to[0].offer_id))
            done: dict[str, Any] = {"job": "train", "from_generation": run.generation, "reason": diff.reason.value}
            told.moves_ = [
                *told.moves_,
                Move(id=len(moves), to_generation=run.generation + 1, status="retired", at=stamp(now), **done),
            ]
            old = replace(run, status=RunStatus.ENDED, ended_at=stamp(now))
            run = replace(run_of(plan, diff.to[0].offer_id), generation=run.generation + 1, started_at=stamp(now))
            told.runs_ = [*told.runs_[:-1], old, run]
    return moves


def held_to_the_rule(moves: list[tuple[float, str, str]]) -> None:
    for (before, left, _), (after, _, to) in pairwise(moves):
        assert after - before >= DEFAULT.cool_down_hours - 1e-6
        assert to != left or after - before >= DEFAULT.cool_down_hours - 1e-6
    assert all(a != b for _, a, b in moves)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.1, 0.3, 0.5, 1.0, 1.5]),
            st.tuples(*[st.sampled_from([1.0, 2.0, 5.0, 10.0, 20.0, None])] * 3),
        ),
        min_size=2,
        max_size=14,
    )
)
def test_churn_is_bounded_on_any_path(steps: list[tuple[float, Prices]]) -> None:
    path: list[tuple[float, Prices]] = []
    hours = 0.0
    for apart, prices in steps:
        hours += apart
        path.append((hours, prices))
    moves = drive(path)
    held_to_the_rule(moves)
    assert moves == drive(path), "the same path, the same moves"


def test_where_nothing_is_saved_nothing_moves() -> None:
    assert drive([(0.5 * k, (5.0, 5.0, 5.0)) for k in range(20)]) == []
    assert drive([(0.5 * k, (5.0, 6.0, 7.0)) for k in range(20)]) == []


def test_two_prices_that_change_places_each_half_hour_are_not_chased() -> None:
    flips = [(0.5 * k, (1.0, 9.0) if k % 2 else (9.0, 1.0)) for k in range(48)]
    moves = drive(flips)
    held_to_the_rule(moves)
    assert 0 < len(moves) <= 24


def flapping() -> list[tuple[float, Prices]]:
    """Each change of any region, with the last known prices of all; "" is not for sale."""
    file = Path(__file__).parent / "data" / "azure_flapping_t4.csv"
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    names = sorted({row["region"] for row in rows})
    at: dict[str, float | None] = dict.fromkeys(names)
    out: list[tuple[float, Prices]] = []
    for when in sorted({row["at"] for row in rows}):
        for row in rows:
            if row["at"] == when:
                at[row["region"]] = float(row["spot_usd_per_hour"]) * 10 if row["spot_usd_per_hour"] else None
        hours = (datetime.fromisoformat(when) - T0).total_seconds() / 3600
        # looked at every half hour for four hours after each change
        out += [(hours + 0.5 * k, tuple(at.values())) for k in range(4)]
    return sorted(out, key=lambda p: p[0])


def test_the_flapping_history_is_not_chased() -> None:
    path, reasons = flapping(), list[MigrationReason]()
    moves = drive(path, reasons)
    held_to_the_rule(moves)
    changes = sum(a[1] != b[1] for a, b in pairwise(path))
    assert 0 < len(moves) < changes, f"{len(moves)} moves, {changes} changes"
    assert set(reasons) <= {MigrationReason.SAVING}
