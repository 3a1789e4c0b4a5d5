"""A fleet as people and machines see it: every number of the summary, in plain words, and as its schema has it."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import jsonschema
import pytest

from planner.model.fleet import BudgetUse, FleetSummary, Kept, PoolUse, Waiting
from planner.model.plan import PlacementPlan, PlanStatus
from planner.render.fleet_json import fleet_document
from planner.render.fleet_text import fleet_lines, job_table
from planner.render.plan_text import plan_lines
from planner.render.text import Paint
from planner.spec.schema_fleet import fleet_schema
from tests.unit.app.split import planned

PLAIN = Paint(on=False)
PLAN, _ = planned()
WAITS = replace(
    PLAN,
    job={**PLAN.job, "name": "late"},
    ranked=(),
    notes=("waits: it needs 2 nodes, and the pool has 1 [SKY-REJ-207]", "before it: train, other"),
    status=PlanStatus(complete=False, applyable=False, errored=False),
)
LOST = replace(WAITS, job={**PLAN.job, "name": "lost"}, notes=())
FLEET = FleetSummary(
    jobs=3,
    placed=1,
    method="HiGHS 1.11.0",
    total_usd=Decimal("1000.0000"),
    one_by_one_usd=Decimal("1020.5000"),
    bound_usd=Decimal("998.0000"),
    waiting=(
        Waiting(
            job="late",
            priority=-2,
            team="vision",
            code="SKY-REJ-207",
            text="it needs 2 nodes, and the pool has 1",
            behind=("train", "other"),
        ),
    ),
    kept=(Kept(job="train", offer_id="a/b", better_offer_id="c/d", saving_usd=Decimal("0.1200")),),
    pools=(
        PoolUse(pool="p-roomy", held=0, planned=5, cap=None),
        PoolUse(pool="p-full", held=1, planned=1, cap=2),
    ),
    budgets=(
        BudgetUse(
            teams=("nlp-*", "vision"),
            kind="per_hour",
            held_usd=Decimal("10.0000"),
            planned_usd=Decimal("30.5000"),
            limit_usd=Decimal(400),
        ),
    ),
)


def text(fleet: FleetSummary = FLEET, *plans: PlacementPlan) -> str:
    return "\n".join(fleet_lines(fleet, [(plan, None) for plan in plans or (PLAN, WAITS, LOST)], PLAIN))


def test_the_summary_counts_and_says_every_sum_beside_what_it_is_held_against() -> None:
    said = text()
    assert said.startswith("fleet  1 of 3 jobs placed, 1 waits, 1 without a feasible placement\n")
    hourly = f"${PLAN.choice.usd_per_hour:,.2f}/h while all run; HiGHS 1.11.0"
    assert f"$1,000.00  to finish, {hourly}" in said
    assert "$1,020.50  the same jobs in order of priority and name: $20.50 more (2.05%)" in said
    assert "$998.00  no assignment of these jobs costs less; the total is $2.00 (0.20%) above" in said


def test_sums_stand_under_each_other_to_the_right() -> None:
    money = [line for line in text().splitlines() if line.startswith(("    total", "    one by one", "    bound"))]
    assert len({line.index(".") for line in money}) == 1


@pytest.mark.parametrize(
    ("change", "there", "words"),
    [
        ({"one_by_one_usd": None}, False, "one by one"),
        ({"bound_usd": None}, False, "no assignment"),
        ({"method": "one by one"}, False, "in order of priority"),
        ({"one_by_one_usd": Decimal(900)}, True, "name: $100.00 less (10.00%)"),
        ({"one_by_one_usd": Decimal(1000)}, True, "name: the same"),
        ({"bound_usd": Decimal(1000)}, True, "the total is that"),
        ({"waiting": ()}, False, "waiting"),
        ({"kept": ()}, False, "kept"),
    ],
)
def test_what_is_not_known_or_not_so_is_not_said(change: dict[str, object], there: bool, words: str) -> None:
    assert (words in text(replace(FLEET, **change))) is there


def test_full_pools_come_first_and_are_called_so() -> None:
    lines = text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("  pools: 2"))
    assert lines[at + 2].split() == ["p-full", "1", "1", "2", "full"]
    assert lines[at + 3].split() == ["p-roomy", "5", "0", "none"]


def test_a_budget_says_what_is_left() -> None:
    (line,) = [line for line in text().splitlines() if "nlp-*, vision" in line]
    assert line.split()[2:] == ["per", "hour", "$30.50", "$10.00", "$400.00", "$359.50"]


def test_who_waits_is_told_with_the_reason_and_who_is_before_it() -> None:
    said = text()
    assert "  waiting: 1 (SKY-REJ-207 1)\n    . late  priority -2, team vision\n" in said
    assert "        it needs 2 nodes, and the pool has 1 [SKY-REJ-207]\n        before it: train, other\n" in said


def test_of_many_the_first_are_told_and_the_rest_counted() -> None:
    many = replace(FLEET, jobs=32, waiting=tuple(replace(FLEET.waiting[0], job=f"late-{k:02}") for k in range(30)))
    said = text(many)
    assert "waiting: 30 (SKY-REJ-207 30)" in said
    assert "late-11" in said
    assert "late-12" not in said
    assert "… and 18 more" in said


def test_a_line_a_job_says_where_or_why_not() -> None:
    head, *lines = job_table([(PLAN, None), (PLAN, PLAN.choice.placement_id), (WAITS, "p0"), (LOST, None)], PLAIN)
    assert head.split() == ["job", "where", "what", "total", "per", "hour", "finish"]
    assert lines[0].startswith("+  train")
    assert lines[0].endswith("create")
    assert lines[1].endswith("keep")
    assert lines[2].startswith(".  late")
    assert lines[2].endswith("waits: it needs 2 nodes, and the pool has 1 [SKY-REJ-207]")
    assert lines[3].startswith("!  lost")
    assert lines[3].endswith("no feasible placement")


def test_a_waiting_job_in_full_is_its_reason_and_not_the_offers_that_fell() -> None:
    lines = plan_lines(WAITS, before=None, runners_up=5, explain=False, paint=PLAIN)
    assert lines[0] == ". late  waits"
    assert "    it needs 2 nodes, and the pool has 1 [SKY-REJ-207]" in lines
    assert "    before it: train, other" in lines
    assert not [line for line in lines if "rejected" in line]


def test_without_colour_nothing_is_lost() -> None:
    colours = fleet_lines(FLEET, [(PLAN, None), (WAITS, None), (LOST, None)], Paint(on=True))
    bare = "\n".join(colours)
    for code in ("0", "1", "2", "31", "32", "33", "36"):
        bare = bare.replace(f"\033[{code}m", "")
    assert bare == text()


def test_the_document_is_as_its_schema_has_it_and_holds_every_figure() -> None:
    document = fleet_document(FLEET, [PLAN, WAITS])
    jsonschema.Draft202012Validator(fleet_schema() | {"additionalProperties": False}).validate(document)
    assert document["usd_per_hour"] == f"{PLAN.choice.usd_per_hour:.4f}"
    assert document["kept"][0]["saving_usd"] == "0.1200"
    assert document["pools"][0] == {"pool": "p-roomy", "held": 0, "planned": 5, "cap": None}
    assert set(document) == {*FleetSummary.__slots__, "usd_per_hour"}
