"""The plans that stand in a folder, as planning needs them: of each what it chose, and what every place it ranked would cost.

Decides nothing.  Of a plan's twenty placements nineteen are not built, so that a fleet's files are read in seconds; the digest of each file is checked all the same.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from planner.app.inputs import PLAN_SUFFIX, read_text
from planner.model.diagnostic import Diagnostic, Location
from planner.model.digest import digest_of_pretty
from planner.model.errors import InputError
from planner.model.plan import FORMAT_VERSION, PlacementPlan, PlanStatus, from_document, placement_from

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingPlan:
    """`plan` has its choice alone in `ranked`, and neither grants nor stacks.  `totals`: offer id -> USD of every place it ranked."""

    plan: PlacementPlan
    totals: Mapping[str, Decimal]


def standing_choices(folder: Path) -> dict[str, StandingPlan]:
    """By job name.  Raises InputError on one that is broken: a ledger must not lose an entry silently."""
    if folder.exists() and not folder.is_dir():
        at = Location(str(folder))
        raise InputError([Diagnostic(code="SKY-SPEC-101", summary="is no folder of plans", location=at)])
    found = map(_read, sorted(folder.glob(f"*{PLAN_SUFFIX}")))
    return {standing.plan.name: standing for standing in found}


def _read(path: Path) -> StandingPlan:
    text = read_text(path)
    try:
        document: Any = json.loads(text)
    except json.JSONDecodeError as error:
        at = Location(str(path), error.lineno, error.colno)
        raise InputError([Diagnostic(code="SKY-APPLY-301", summary=f"not JSON: {error.msg}", location=at)]) from error
    try:
        if (
            document["digest"] == digest_of_pretty(text)
            and document["format_version"].partition(".")[0] == FORMAT_VERSION.partition(".")[0]
        ):
            return _standing(cast("dict[str, Any]", document))
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError):
        pass  # what is wrong with it is told below
    return whole(from_document(document, str(path)))


def _standing(body: dict[str, Any]) -> StandingPlan:
    ranked: list[dict[str, Any]] = list(body["ranked"])
    plan = PlacementPlan(
        job=body["job"],
        inputs=body["inputs"],
        ranked=tuple(map(placement_from, ranked[:1])),
        rejected=(),
        notes=tuple(body["notes"]),
        grants={},
        stacks=(),
        status=PlanStatus(**body["status"]),
    )
    if not (isinstance(plan.job["name"], str) and isinstance(plan.inputs["job"]["digest"], str)):
        raise TypeError("job")
    return StandingPlan(plan=plan, totals={str(p["offer_id"]): Decimal(p["total_usd"]) for p in ranked})


def whole(plan: PlacementPlan) -> StandingPlan:
    """Of a plan that is there whole."""
    return StandingPlan(plan=plan, totals={p.offer_id: p.total_usd for p in plan.ranked})
