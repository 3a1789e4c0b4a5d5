"""One launch attempt: a generation, its compute stack, its nodes; and what to do with a half-made one.

A generation is issued per attempt and never used for another candidate.  What a refused attempt made is destroyed before the next begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from planner.app.steps import destroy_all, end_strangers, refuse
from planner.model.errors import TerraformError
from planner.model.offer import Cloud
from planner.model.record import Action, Node, NodeStatus, Run, RunStatus, Stack, StackStatus
from planner.model.stack import rank_key

if TYPE_CHECKING:
    from planner.app.ports import Ports
    from planner.model.plan import Placement, PlacementPlan
    from planner.model.workload import Constraints
    from planner.state.writer import Writer


#: codes that say something of one type in one place, not of its pool (stacks.failures has all)
ABOUT_THE_OFFER = (
    "Unsupported",
    "UNSUPPORTED_OPERATION",
    "MachineTypeNotFound",
    "SkuNotAvailable",
    "OverconstrainedAllocationRequest",
    "OverconstrainedZonalAllocationRequest",
)

#: how long rights that were just made may be refused.  AWS names no time, its Terraform provider waits 2 min for roles; Google says 2 min, at times 7
#: and more; Azure up to 10 (Cloud IAM "access change propagation", Azure RBAC "troubleshooting", 2026); nothing is said of Nebius
RIGHTS_SETTLE = {
    Cloud.AWS: timedelta(minutes=2),
    Cloud.GCP: timedelta(minutes=7),
    Cloud.AZURE: timedelta(minutes=10),
    Cloud.NEBIUS: timedelta(minutes=2),
}
#: the first wait; each is twice the one before
RIGHTS_LOOK_SECONDS = 5.0


def run_of(plan: PlacementPlan, placement: Placement, limits: Constraints, *, gpus: int, vcpus: int) -> Run:
    """The run of a ranked placement, without a generation yet.  `limits`: of the workload; each run has the whole of both its hard ends."""
    return Run(
        job=plan.name,
        generation=0,
        plan_digest=plan.digest,
        rank=placement.rank,
        placement_id=placement.placement_id,
        offer_id=placement.offer_id,
        cloud=placement.cloud,
        target=placement.target,
        region=placement.region,
        zone=placement.zone,
        pool=placement.pool,
        instance_type=placement.instance_type,
        capacity=placement.capacity,
        nodes=placement.nodes,
        gpus=gpus,
        vcpus=vcpus,
        addresses=placement.addresses,
        usd_per_hour=placement.usd_per_hour,
        stop_after_hours=limits.stop_after_hours,
        budget_usd=Decimal(str(limits.max_usd_total)) if limits.max_usd_total is not None else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A compute stack of a launch, and what a refusal of it is held against.

    rights_made  when the rights that it needs were made; None where they have long stood
    """

    stack: Stack
    pool: str
    offer_id: str
    rights_made: datetime | None = None


def launch(ports: Ports, writer: Writer, run: Run, stack: Stack) -> tuple[Node, ...]:
    """Apply the one compute stack of a run and record its nodes.  Raises Refused when nothing of it is left: the run has then failed."""
    return launch_parts(ports, writer, run, (Part(stack=stack, pool=run.pool, offer_id=run.offer_id),))


def launch_parts(ports: Ports, writer: Writer, run: Run, parts: Sequence[Part]) -> tuple[Node, ...]:
    """Apply the compute stacks of a run one after another; it runs once the last has its nodes.  All or none: raises Refused as `launch` does."""
    nodes: tuple[Node, ...] = ()
    for number, part in enumerate(parts, start=1):
        stack = part.stack
        intent = writer.intend(
            replace(stack, status=StackStatus.TOUCHED), Action.APPLY, ports.clock.now(), scope=part.pool
        )
        try:
            ports.terraform.prepare(stack)
            _apply_once_allowed(ports, part)
            made = nodes_from(ports.terraform.outputs(stack))
        except TerraformError as error:
            # some answers are about the type in that place alone; the pool may serve its siblings
            kinds = {"capacity": part.pool, "quota": part.pool, "unknown": part.offer_id}
            scopes = dict.fromkeys(ABOUT_THE_OFFER, part.offer_id) | kinds
            refused = refuse(ports, writer, intent, stack, error, scopes=scopes)
            begun = [p.stack for p in parts[:number]]
            give_up(ports, writer, run.generation, begun, "refused; what was half made is gone")
            raise refused from error
        end_strangers(ports, writer, stack, known={*(n.instance_id for n in made), *ports.terraform.holds(stack)})
        nodes += made
        if number < len(parts):
            writer.done(intent, StackStatus.APPLIED, ports.clock.now())
        else:
            writer.launched(intent, run.generation, nodes, ports.clock.now())
    return nodes


def _apply_once_allowed(ports: Ports, part: Part) -> None:
    """Apply; a refused permission is asked for again while the rights are so young that the cloud may not know them everywhere."""
    stack, wait = part.stack, RIGHTS_LOOK_SECONDS
    until = part.rights_made + RIGHTS_SETTLE[Cloud(stack.cloud)] if part.rights_made else None
    while True:
        try:
            return ports.terraform.apply(stack, ports.tell)
        except TerraformError as error:
            young = until is not None and ports.clock.now() < until
            if not young or ports.terraform.classify(error)[0] != "permission":
                raise
            ports.tell("", f"{stack.name}: refused; its rights are new, so it is tried again in {wait:.0f} s")
            ports.clock.sleep(wait)
            wait *= 2


def give_up(ports: Ports, writer: Writer, generation: int, stacks: Sequence[Stack], text: str) -> None:
    """Destroy what a launch made, and close its run.  Raises TerraformError where it cannot."""
    destroy_all(ports, writer, stacks)
    writer.run_status(generation, RunStatus.FAILED, ports.clock.now(), text)


def nodes_from(outputs: Mapping[str, Any]) -> tuple[Node, ...]:
    """The nodes as the compute stack's output has them."""
    nodes: Mapping[str, Mapping[str, str]] = outputs.get("nodes", {})
    return tuple(
        Node(rank=rank_of(key), instance_id=n["instance_id"], address=n["private_ip"], status=NodeStatus.RUNNING)
        for key, n in sorted(nodes.items())
    )


def rank_of(key: str) -> int:
    """`r07` -> 7."""
    return int(key.removeprefix("r"))


def rank_keys(nodes: int) -> tuple[str, ...]:
    """The keys of so many ranks."""
    return tuple(map(rank_key, range(nodes)))


def ended(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes that ran, now ended."""
    return tuple(replace(n, status=NodeStatus.ENDED) for n in nodes if n.status is NodeStatus.RUNNING)
