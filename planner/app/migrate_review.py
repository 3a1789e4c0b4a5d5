"""From a diff file to an order that may be carried out: which plan it was made from, what the project's policy and today's prices say.

The diff itself is held against the record under the job's lease (`planner.app.migrate_judge`).
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from planner.app import inputs, revalidate
from planner.app.migrate import Order, Waits
from planner.app.revalidate import Today
from planner.migration.document import from_document
from planner.model.diagnostic import Diagnostic, Location, ordered
from planner.model.digest import digest
from planner.model.errors import InputError, StalePlan
from planner.spec.normal import project_document, workload_from_document

if TYPE_CHECKING:
    from planner.app.review import Setting
    from planner.model.migration import MigrationDiff
    from planner.model.plan import PlacementPlan


def read_diff(path: Path) -> MigrationDiff:
    """A diff file.  Raises InputError (SKY-MOVE-423) where it is none or was edited."""
    try:
        document = json.loads(inputs.read_text(path))
    except json.JSONDecodeError as error:
        at = Location(str(path), error.lineno, error.colno)
        raise InputError([Diagnostic(code="SKY-MOVE-423", summary=f"not JSON: {error.msg}", location=at)]) from error
    return from_document(document, str(path))


def plan_of(diff: MigrationDiff, path: Path, given: Path | None, plans_folder: Path) -> PlacementPlan:
    """The plan that the diff names by its digest: `given`, else the job's in the folder of plans, else beside the diff.  Raises InputError, StalePlan (422)."""
    name = f"{diff.job}{inputs.PLAN_SUFFIX}"
    beside = (path.parent / name, path.parent.parent / inputs.PLANS_FOLDER / name)  # as `replan --out` lays them down
    files = (given,) if given is not None else (plans_folder / name, *beside)
    found = [plan for plan in (inputs.read_plan(f) for f in files if f.exists()) if plan.digest == diff.plan_digest]
    if not found:
        looked = ", ".join(inputs.shown(f) for f in files)
        summary = f"{looked}: not the plan that the diff was made from ({diff.plan_digest})"
        raise StalePlan([Diagnostic(code="SKY-MOVE-422", summary=summary, hint="give it with --plan, or replan")])
    return found[0]


def review(
    diff: MigrationDiff, plan: PlacementPlan, given: Setting, now: datetime, *, waits: Waits, lease_timeout: float = 0.0
) -> Order:
    """The order to carry a diff out.  Raises InputError (SKY-RUN-501), StalePlan where the project's policy is against it."""
    needs_control(given)
    against = revalidate.policy(plan, given.project.policy)
    if against:
        raise StalePlan(ordered(against))
    today = Today(
        job_digest=None,
        project_digest=digest(project_document(given.project)),
        project=given.project,
        market=given.market,
    )
    prices, workload = revalidate.prices_now(diff.to, today, now), workload_from_document(plan.job)
    moved = {p.offer_id: revalidate.price(p, prices, workload, given.project) for p in diff.to}
    barred = {offer: problems[0].summary.removeprefix(f"{offer}: ") for offer, problems in moved.items() if problems}
    return Order(job=diff.job, diff=diff, plan=plan, barred=barred, waits=waits, lease_timeout=lease_timeout)


def needs_control(given: Setting) -> None:
    """Without a control plane nobody could be asked for a checkpoint, or would tell of progress.  Raises InputError."""
    if given.project.control_plane is None:
        summary = "a job is moved through its control plane, and skyplan.yaml names none"
        raise InputError([Diagnostic(code="SKY-RUN-501", summary=summary, hint="see `agent`, `control_plane`")])
