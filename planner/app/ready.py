"""Making places ready for a job without launching anything: network and access of a reviewed plan's first regions, by the deployer.

So an unattended move (`skyplan migrate`, `watch --apply`) finds them standing and touches compute stacks only.  What runs is left alone, wherever it runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from planner.app import compose, secrets_guard
from planner.app.apply import CODES
from planner.app.lease import held
from planner.app.prepare import Preparer
from planner.app.steps import Refused
from planner.model.diagnostic import Diagnostic
from planner.model.errors import StalePlan, TerraformError

if TYPE_CHECKING:
    from planner.app.apply import Order
    from planner.app.ports import Ports
    from planner.model.plan import Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """`places` as CLOUD:TARGET/REGION, that stand now; `refused` the others, each with the code and the reason."""

    job: str
    places: tuple[str, ...]
    refused: tuple[tuple[str, str, str], ...]


def make_ready(order: Order, ports: Ports) -> Ready:
    """The regions of the plan's choice and of the next `order.prepare`; those of a split need its launch and are left out.

    Raises LeaseHeld, StalePlan, InputError (SKY-IAM-504); TerraformError where none of them could be made ready.
    """
    plan = order.plan
    with held(ports, plan.name, wait_seconds=order.lease_timeout) as lease:
        if order.stale:
            raise StalePlan(order.stale)
        secrets_guard.refuse_plan(plan)
        guarded = replace(ports, synth=secrets_guard.guarded(ports.synth))
        preparer = Preparer(guarded, ports.record.writer(lease))
        first: dict[str, Placement] = {}
        for p in plan.ranked:
            if not p.parts and p.offer_id not in order.barred:
                first.setdefault(f"{p.cloud}:{p.target}/{p.region}", p)
        wanted = dict(list(first.items())[: order.prepare + 1])
        refused: list[tuple[str, str, str]] = []
        for place, p in wanted.items():
            sets = compose.stack_sets(plan.ranked, p, order.workload, ports.project, ports.market, generation=None)
            secrets_guard.refuse_stacks(sets)
            ports.tell("", f"making {place} ready")
            try:
                preparer.prepare(*sets)
            except Refused as answer:
                refused.append(
                    (place, CODES[answer.kind], f"{answer.stack}: {answer.code or 'refused'}: {answer.error}")
                )
        unready = {place for place, _, _ in refused}
        if wanted and len(unready) == len(wanted):
            raise TerraformError([Diagnostic(code=code, summary=why) for _, code, why in refused])
        return Ready(job=plan.name, places=tuple(w for w in wanted if w not in unready), refused=tuple(refused))
