"""Whether a plan may still be applied: what changed since it was made, all of it at once.

Pure but for `policy`, which runs the project's own command.  Mere age only warns.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from planner.model.diagnostic import Diagnostic, Location, Severity
from planner.model.digest import pretty
from planner.model.market import UNKNOWN_PRICE
from planner.model.plan import to_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from planner.model.market import Market
    from planner.model.plan import Placement, PlacementPlan
    from planner.model.project import Project
    from planner.model.workload import Workload
    from planner.placement.offers import Offers

OLD = timedelta(days=7)
POLICY_SECONDS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Today:
    """What the files say now.  `job_digest` None: the job file is gone, or has no such job."""

    job_digest: str | None
    project_digest: str
    project: Project
    market: Market


def changed_files(plan: PlacementPlan, today: Today) -> list[Diagnostic]:
    """SKY-APPLY-302 for the job and for the project file."""
    found: list[Diagnostic] = []
    job = plan.inputs["job"]
    if today.job_digest != job["digest"]:
        what = "is not to be found" if today.job_digest is None else "changed since the plan was made"
        summary = f"job `{plan.name}` {what}"
        found.append(Diagnostic(code="SKY-APPLY-302", summary=summary, location=Location(job["file"])))
    if today.project_digest != plan.inputs["project"]["digest"]:
        file = plan.inputs["project"]["file"] or "skyplan.yaml"
        summary = f"the project's settings changed since the plan was made ({file})"
        found.append(Diagnostic(code="SKY-APPLY-302", summary=summary))
    return found


def age(plan: PlacementPlan, now: datetime) -> list[Diagnostic]:
    """SKY-APPLY-312, a warning, for prices older than a week."""
    made = datetime.fromisoformat(plan.inputs["as_of"])
    made = made if made.tzinfo else made.replace(tzinfo=UTC)
    if now - made <= OLD:
        return []
    summary = f"the plan's prices are of {made:%Y-%m-%d}, {(now - made).days} days ago"
    return [Diagnostic(code="SKY-APPLY-312", summary=summary, severity=Severity.WARNING)]


def prices_now(placements: Iterable[Placement], today: Today, now: datetime) -> dict[str, Decimal | None]:
    """Node price in USD per hour by offer id, of every part, as the market and the project have it now; None is unknown or not offered."""
    from planner.placement.offers import offers_of  # noqa: PLC0415 - beside its use

    offers = offers_of(today.market, today.project, as_of=now.strftime("%Y-%m-%dT%H:%M:%SZ"))
    return {piece.offer_id: _price(offers, piece) for p in placements for piece in p.pieces}


def _price(offers: Offers, p: Placement) -> Decimal | None:
    market = offers.market
    kind = next((i for i, t in enumerate(market.types) if (t.cloud.value, t.name) == (p.cloud, p.instance_type)), -1)
    region = market.region_index.get((p.cloud, p.region), -1)
    for i in np.flatnonzero((offers.type_ix == kind) & (offers.region_ix == region)):
        if offers.offer_id(int(i)) == p.offer_id and offers.price_micros[i] != UNKNOWN_PRICE:
            return Decimal(int(offers.price_micros[i])) / 1_000_000
    return None


def price(p: Placement, now: Mapping[str, Decimal | None], workload: Workload, project: Project) -> list[Diagnostic]:
    """SKY-APPLY-304 for a placement, or a part of it, whose price rose beyond the tolerance, over a cap, or is not known any more.

    `now`: node prices, as `prices_now` gives them.
    """
    known = {piece.offer_id: usd for piece in p.pieces if (usd := now.get(piece.offer_id)) is not None}
    found = [_moved(piece, "its price is not known any more") for piece in p.pieces if piece.offer_id not in known]
    if found:
        return found
    for piece in p.pieces:
        usd, then = known[piece.offer_id], piece.node_usd_per_hour
        if usd > then * (1 + Decimal(str(project.price_tolerance))):
            rise = (
                f" (+{(usd / then - 1) * 100:.0f} %, allowed are {project.price_tolerance * 100:.0f} %)" if then else ""
            )
            found.append(_moved(piece, f"it costs ${usd:.4f} per node-hour now, ${then:.4f} in the plan{rise}"))
    hourly = sum((known[piece.offer_id] * piece.nodes for piece in p.pieces), Decimal(0))
    total = p.total_usd + (hourly - p.usd_per_hour) * p.finish_hours
    limits = workload.constraints
    for cap, amount, words in (
        (limits.max_usd_per_hour, hourly, "per hour"),
        (limits.max_usd_total, total, "in all"),
    ):
        if cap is not None and amount > Decimal(str(cap)):
            found.append(_moved(p, f"it would cost ${amount:.2f} {words} now; the limit is ${cap:.2f}"))
    return found


def _moved(p: Placement, words: str) -> Diagnostic:
    return Diagnostic(code="SKY-APPLY-304", summary=f"{p.offer_id}: {words}")


def policy(plan: PlacementPlan, command: str | None) -> list[Diagnostic]:
    """SKY-APPLY-313 where the project's policy command, given the plan's JSON on stdin, exits other than 0."""
    if not command:
        return []
    try:
        done = subprocess.run(  # noqa: S602 - the platform team's own command line, from skyplan.yaml
            command,
            shell=True,
            input=pretty(to_document(plan)),
            capture_output=True,
            timeout=POLICY_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return [Diagnostic(code="SKY-APPLY-313", summary=f"the policy command did not run: {error}")]
    if done.returncode == 0:
        return []
    said = (done.stdout + done.stderr).decode(errors="replace").strip()
    summary = f"{plan.name}: `{command}` exited {done.returncode}" + (f": {said}" if said else "")
    return [Diagnostic(code="SKY-APPLY-313", summary=summary)]
