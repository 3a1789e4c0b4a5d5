"""From a plan to an order that may be applied: reads what the files say today and holds the plan against it.

Every reason against is gathered before one is raised.  A plan whose run is standing or half launched is not judged anew: it was, and leaving machines
half made would be worse.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from planner.app import inputs, revalidate
from planner.app.apply import Order
from planner.app.revalidate import Today
from planner.app.usable import no_tunnel
from planner.model.diagnostic import Diagnostic, Severity, ordered
from planner.model.digest import digest
from planner.model.errors import InputError, StalePlan
from planner.model.offer import Cloud
from planner.model.record import LIVE, RunStatus
from planner.model.words import words_of
from planner.spec.normal import project_document, workload_document, workload_from_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.market import Market
    from planner.model.plan import Placement, PlacementPlan
    from planner.model.project import Project
    from planner.model.record import Run
    from planner.model.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The market and the project as they are now."""

    market: Market
    project: Project


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """An order that may be applied, and what should be known about it."""

    order: Order
    warnings: tuple[Diagnostic, ...]


def setting(project_file: Path | None, catalog: Path | None, *, priced: bool = False) -> Setting:
    """`priced`: with the prices that hold now by the project's source, not the catalog's alone.  Raises InputError with every error of the files, Unavailable."""
    market = inputs.load_market(catalog)
    project = inputs.checked_project(project_file, words_of(market))
    found = inputs.priced_market(market, project, project_file=project_file, catalog=catalog) if priced else None
    return Setting(market=found.market if found else market, project=project)


def review(
    plan: PlacementPlan,
    given: Setting,
    runs: Sequence[Run],
    now: datetime,
    *,
    saved: bool,
    prepare: int = 2,
    again: bool = False,
    own_credentials: bool = False,
    lease_timeout: float = 0.0,
) -> Reviewed:
    """`saved`: the plan is a file that people may have reviewed, not one made a moment ago.  Raises StalePlan, InputError.

    own_credentials  the job brings credentials for stores that its nodes would have none for
    """
    workload = workload_from_document(plan.job)
    under_way = any(r.plan_digest == plan.digest and r.status in {*LIVE, RunStatus.STARTING} for r in runs)
    against = _always(plan, given.project)
    warnings: list[Diagnostic] = []
    barred: dict[str, str] = {}
    if against and not under_way:
        raise StalePlan(ordered(against))
    lacking = {p.offer_id: why for p in plan.ranked if (why := _lacking(plan, p, given.project, own_credentials))}
    if found := lacking.pop(plan.choice.offer_id, None) if plan.ranked else None:
        against.append(found)
    barred |= {offer: found.summary for offer, found in lacking.items()}
    if saved and plan.ranked:
        today = Today(
            job_digest=_job_digest(plan, given),
            project_digest=digest(project_document(given.project)),
            project=given.project,
            market=given.market,
        )
        against += revalidate.changed_files(plan, today)
        moved, dearer = _prices(plan, workload, today, now)
        against += moved
        barred |= dearer
        warnings += revalidate.age(plan, now)
    against += revalidate.policy(plan, given.project.policy)
    if against and not under_way:
        raise StalePlan(ordered(against))
    order = Order(
        plan=plan,
        workload=workload,
        barred=barred,
        prepare=prepare,
        again=again or not saved,
        lease_timeout=lease_timeout,
        stale=ordered(against),
    )
    return Reviewed(order=order, warnings=tuple(warnings))


def _always(plan: PlacementPlan, project: Project) -> list[Diagnostic]:
    """What no plan may be applied with."""
    found: list[Diagnostic] = []
    if plan.waits:
        found.append(Diagnostic(code="SKY-APPLY-360", summary=f"`{plan.name}` waits: {plan.waits}"))
    elif not plan.ranked:
        found.append(Diagnostic(code="SKY-APPLY-301", summary=f"`{plan.name}` has no feasible placement"))
    if project.backend.kind == "local" and os.environ.get("CI", "").lower() not in {"", "0", "false"}:
        summary = "CI is set, and the state would be a file in this working folder, lost with it"
        found.append(Diagnostic(code="SKY-APPLY-306", summary=summary))
    return found


def _lacking(plan: PlacementPlan, p: Placement, project: Project, own_credentials: bool) -> Diagnostic | None:
    """What a placement would need before its nodes could work: credentials for its stores, the Nebius project to make things in."""
    for piece in p.pieces:
        target = next((t for t in project.targets if (t.name, t.cloud.value) == (piece.target, piece.cloud)), None)
        if piece.cloud == Cloud.NEBIUS and (target is None or not target.account):
            summary = f"{piece.offer_id}: target `{piece.target}` names no `project`, in which Nebius makes resources"
            return Diagnostic(code="SKY-APPLY-302", summary=summary, hint="name it under `targets` in skyplan.yaml")
        if why := no_tunnel(piece, project):
            return Diagnostic(code="SKY-RUN-505", summary=f"{piece.offer_id}: {why}", hint="see `agent`, `rendezvous`")
        paths = plan.access.get(f"{piece.cloud}:{piece.target}", ())
        without = [path.uri for path in paths if path.out_of_reach]
        if without and not own_credentials:
            summary = f"{piece.offer_id}: nodes there would have no credentials for {', '.join(without)}"
            return Diagnostic(code="SKY-APPLY-327", summary=summary)
    return None


def _job_digest(plan: PlacementPlan, given: Setting) -> str | None:
    """Of the job as its file has it now, narrowed to the project; None where it is not there."""
    from planner.spec.foreign import parse_any  # noqa: PLC0415 - yaml
    from planner.spec.foreign.shelf import shelf_of  # noqa: PLC0415 - yaml
    from planner.spec.limits import narrow  # noqa: PLC0415 - yaml

    file = Path(plan.inputs["job"]["file"])
    try:
        text = inputs.read_text(file)
    except InputError:
        return None
    words = words_of(given.market)
    jobs, problems = parse_any(text, str(file), words, given.project, shelf_of(given.market, words))
    job = next((j for j in jobs if j.name == plan.name), None)
    if job is None:
        errors = [d for d in problems if d.severity is Severity.ERROR]
        if errors:
            raise InputError(ordered(errors))
        return None
    return digest(workload_document(narrow(job, given.project)[0]))


def _prices(
    plan: PlacementPlan, workload: Workload, today: Today, now: datetime
) -> tuple[list[Diagnostic], dict[str, str]]:
    """Against the choice; and the runners-up that may not be tried any more, with the reason."""
    prices = revalidate.prices_now(plan.ranked, today, now)
    judged = {p.offer_id: revalidate.price(p, prices, workload, today.project) for p in plan.ranked}
    against = judged.pop(plan.choice.offer_id)
    return against, {offer: found[0].summary for offer, found in judged.items() if found}
