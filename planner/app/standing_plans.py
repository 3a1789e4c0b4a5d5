"""The plans that stand in a folder, as planning needs them: of each what it chose, and what every place it ranked would cost.

Decides whether a plan file may stay as it is where its job is planned again with others.  Of a plan's twenty placements nineteen are not built, so that a fleet's files are read in seconds; the digest of each file is checked all the same.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from planner.app.inputs import PLAN_SUFFIX, read_plan, read_text
from planner.model.diagnostic import Diagnostic, Location
from planner.model.digest import canonical, digest_of_pretty
from planner.model.errors import InputError
from planner.model.plan import FORMAT_VERSION, PlacementPlan, PlanStatus, from_document, placement_from

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.placement.fleet import Placed


FRESH = timedelta(days=7)
"""As long as `apply` does not warn of a plan's age."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingPlan:
    """`plan` has its choice alone in `ranked`, and neither grants nor stacks.

    totals  offer id -> USD of every place it ranked
    path    its file; None where it is of none
    """

    plan: PlacementPlan
    totals: Mapping[str, Decimal]
    path: Path | None = None

    def still_holds(self, inputs: Mapping[str, Any], placed: Placed, *, top: int, by_the_clock: bool) -> bool:
        """Whether the file says what planning anew says: the same job from the same inputs, in the same place, or waiting for the same.

        What the other jobs of a call take is no input that counts here: their moves would write every file of a fleet anew, for words about places that this job
        does not take.  Where there are more places to fall back on than the file lists, or it lists more than `top`, it does not hold.
        by_the_clock  nobody asked for the moment that was planned at: a file of some days ago holds, and so it does where only refusals came or faded since
        """
        out = {"ledger"}
        if by_the_clock and _moment(inputs["as_of"]) - _moment(self.plan.inputs["as_of"]) <= FRESH:
            out |= {"as_of", "availability"}
        now, then = ({k: v for k, v in one.items() if k not in out} for one in (inputs, self.plan.inputs))
        if canonical(now) != canonical(then) or not len(placed.ranked) <= len(self.totals) <= top:
            return False
        if placed.waiting is not None:
            return self.plan.waits == f"{placed.waiting.text} [{placed.waiting.code}]"
        if not placed.ranked or not self.plan.ranked:
            return False
        best, stood = placed.ranked[0], self.plan.choice
        return (best.offer_id, best.nodes, best.total_usd, best.usd_per_hour) == (
            stood.offer_id,
            stood.nodes,
            stood.total_usd,
            stood.usd_per_hour,
        )

    def whole(self) -> PlacementPlan:
        """The plan, read again from its file.  Raises InputError where that is no plan any more."""
        return self.plan if self.path is None else read_plan(self.path)


def _moment(as_of: str) -> datetime:
    at = datetime.fromisoformat(as_of)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


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
            return _standing(cast("dict[str, Any]", document), path)
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError):
        pass  # what is wrong with it is told below
    return whole(from_document(document, str(path)), path)


def _standing(body: dict[str, Any], path: Path) -> StandingPlan:
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
    return StandingPlan(plan=plan, totals={str(p["offer_id"]): Decimal(p["total_usd"]) for p in ranked}, path=path)


def whole(plan: PlacementPlan, path: Path | None = None) -> StandingPlan:
    """Of a plan that is there whole."""
    return StandingPlan(plan=plan, totals={p.offer_id: p.total_usd for p in plan.ranked}, path=path)
