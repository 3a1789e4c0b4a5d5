"""The record learns what really runs: nodes that were lost, and launches that the user's own pipeline made.

Starts and ends nothing.  A node that is gone is noted as lost; since every launch has a stack of its own, no later apply makes it again by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from planner.app import compose
from planner.app.launch import nodes_from, run_of
from planner.app.lease import held
from planner.app.lookup import instance_type
from planner.app.recover import IMPORTED, take_in
from planner.app.steps import stack_of
from planner.model.diagnostic import Diagnostic, Severity
from planner.model.errors import InputError, StalePlan, TerraformError
from planner.model.record import LIVE, Action, Node, NodeStatus, Run, RunStatus, StackStatus
from planner.state.moves import under_way

if TYPE_CHECKING:
    from planner.app.ports import Ports
    from planner.model.plan import Placement, PlacementPlan
    from planner.model.workload import Workload
    from planner.state.writer import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """What was learnt about one job: run ids taken in, (run id, rank) of nodes lost, machines tagged as the job's that are no node of a run."""

    job: str
    taken_in: tuple[str, ...]
    lost: tuple[tuple[str, int], ...]
    strangers: tuple[str, ...]
    warnings: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """A plan whose compute stack somebody else's pipeline applied with this generation."""

    plan: PlacementPlan
    workload: Workload
    generation: int


def sync(job: str, ports: Ports, *, foreign: Foreign | None = None, lease_timeout: float = 0.0) -> Synced:
    """Raises InputError (323) for an unknown job without a plan, StalePlan (SKY-MOVE-419), LeaseHeld, TerraformError, CloudError."""
    if foreign is None and ports.record.job(job) is None:
        summary = f"no job `{job}` in project `{ports.project.name}` was ever applied"
        hint = "give its plan file and --generation to take in what a pipeline of your own applied"
        raise InputError([Diagnostic(code="SKY-APPLY-323", summary=summary, hint=hint)])
    with held(ports, job, wait_seconds=lease_timeout) as lease:
        writer = ports.record.writer(lease)
        move = ports.record.open_move(job)
        if foreign and move:
            raise StalePlan([under_way(move)])
        warnings = _unfinished(ports, writer)
        taken = _take_in(foreign, ports, writer) if foreign else ()
        lost: list[tuple[str, int]] = []
        strangers: list[str] = []
        for run in ports.record.runs(job):
            if run.status in LIVE:
                gone, unknown = look(run, ports, writer)
                lost += [(run.id, rank) for rank in gone]
                strangers += unknown
    warnings += [
        Diagnostic(code="SKY-APPLY-318", summary=f"{run}: node of rank {rank} was lost", severity=Severity.WARNING)
        for run, rank in lost
    ]
    return Synced(job=job, taken_in=taken, lost=tuple(lost), strangers=tuple(strangers), warnings=tuple(warnings))


def look(run: Run, ports: Ports, writer: Writer) -> tuple[list[int], list[str]]:
    """Ranks newly lost, and machines of this generation that are no node."""
    alive = {
        i.id
        for place in _places(run, ports)
        for i in ports.lister(*place).instances(project=ports.project.name, job=run.job, generation=run.generation)
    }
    nodes = ports.record.nodes(run.job, run.generation)
    gone = [n for n in nodes if n.status is NodeStatus.RUNNING and n.instance_id not in alive]
    strangers = sorted(alive - {n.instance_id for n in nodes})
    left = sum(n.status is NodeStatus.RUNNING for n in nodes) - len(gone)
    if not gone:
        return [], strangers
    # of a job that has exited no node is lost: its agents ended them
    exited = run.status is RunStatus.EXITED
    whole, part = (RunStatus.ENDED, RunStatus.EXITED) if exited else (RunStatus.LOST, RunStatus.DEGRADED)
    status = NodeStatus.ENDED if exited else NodeStatus.LOST
    text = ", ".join(f"r{n.rank:02d} ({n.instance_id})" for n in gone) + f" {status.value}"
    writer.seen(
        run.generation, [replace(n, status=status) for n in gone], part if left else whole, ports.clock.now(), text
    )
    return [] if exited else [n.rank for n in gone], strangers


def _places(run: Run, ports: Ports) -> list[tuple[str, str, str]]:
    """Where its nodes are: in several clouds for a job that is split."""
    stacks = [s for s in ports.record.stacks(run.job) if s.kind == "compute" and s.generation == run.generation]
    return sorted({(run.cloud, run.target, run.region), *((s.cloud, s.target, s.region) for s in stacks)})


def _unfinished(ports: Ports, writer: Writer) -> list[Diagnostic]:
    """A launch that died: if all its machines are there it runs from now on; otherwise apply or destroy has to decide."""
    found: list[Diagnostic] = []
    runs = {r.generation: r for r in ports.record.runs(writer.job)}
    for intent in ports.record.unfinished(writer.job):
        stack, run = ports.record.stack(intent.stack), runs.get(intent.generation or 0)
        if stack is None:
            continue
        ports.terraform.settle(stack, ports.tell)
        if run is None or intent.action is not Action.APPLY or run.status is not RunStatus.STARTING:
            continue
        if len(run.parts) > 1:
            found.append(_half(run, "begins it anew"))
            continue
        if stack.cloud in IMPORTED:  # elsewhere taking in would end machines, and that is for apply or destroy to do
            take_in(ports, writer, run, stack)
        try:
            nodes = nodes_from(ports.terraform.outputs(stack))
        except TerraformError:
            nodes = ()
        if len(nodes) == run.nodes:
            writer.launched(intent.id, run.generation, nodes, ports.clock.now())
        else:
            found.append(_half(run, "goes on with it"))
    return found


def _half(run: Run, what_apply_does: str) -> Diagnostic:
    summary = f"{run.id} is half launched; `skyplan apply` {what_apply_does}, `skyplan destroy {run.job}` ends it"
    return Diagnostic(code="SKY-APPLY-314", summary=summary, severity=Severity.WARNING)


def _take_in(foreign: Foreign, ports: Ports, writer: Writer) -> tuple[str, ...]:
    """Note a launch that the record has not issued, from its stacks' outputs."""
    plan, generation = foreign.plan, foreign.generation
    if plan.choice.parts:
        summary = f"`{plan.name}` lies in several clouds: only `skyplan apply` launches it, and the record knows that"
        raise InputError([Diagnostic(code="SKY-APPLY-323", summary=summary)])
    if any(r.generation == generation for r in ports.record.runs(plan.name)):
        return ()
    outputs = _outputs(foreign, plan.choice, "compute", ports)
    p = next((p for p in plan.ranked if p.placement_id == outputs.get("plan_id")), None)
    nodes = nodes_from(outputs)
    if p is None or not nodes:
        summary = f"no stack `{compose.compute_name(plan.name, generation)}` with a placement of this plan was applied"
        raise InputError(
            [Diagnostic(code="SKY-APPLY-323", summary=summary, hint="give the --generation it was synthesised with")]
        )
    return (_adopt(foreign, p, nodes, ports, writer).id,)


def _adopt(foreign: Foreign, p: Placement, nodes: tuple[Node, ...], ports: Ports, writer: Writer) -> Run:
    from stacks.wiring import access_variables, compute_variables  # noqa: PLC0415 - beside its use

    plan, generation, now = foreign.plan, foreign.generation, ports.clock.now()
    (given,) = compose.stack_sets(plan.ranked, p, foreign.workload, ports.project, ports.market, generation=generation)
    network, access = (_outputs(foreign, p, kind, ports) for kind in ("network", "access"))
    t = instance_type(ports.market, p)
    run = run_of(plan, p, foreign.workload.constraints, gpus=p.nodes * t.gpu_count, vcpus=p.nodes * t.vcpus)
    writer.issue(run, now, generation=generation)
    rows: list[tuple[Any, dict[str, Any], dict[str, Any]]] = [
        (given.network, {}, network),
        (given.access, access_variables(given.access, network), access),
    ]
    for one, variables, outputs in rows:
        made = stack_of(one, ports.synth(one), variables)
        writer.adopt(replace(made, status=StackStatus.APPLIED, outputs=outputs), now)
    stack = stack_of(given.compute, ports.synth(given.compute), compute_variables(given.compute, access))
    intent = writer.intend(stack, Action.APPLY, now, scope=p.pool)
    writer.launched(intent, generation, nodes, now)
    return ports.record.runs(plan.name)[-1]


def _outputs(foreign: Foreign, p: Placement, kind: str, ports: Ports) -> dict[str, Any]:
    (stacks,) = compose.stack_sets(
        foreign.plan.ranked, p, foreign.workload, ports.project, ports.market, generation=foreign.generation
    )
    given = {"network": stacks.network, "access": stacks.access, "compute": stacks.compute}[kind]
    stack = stack_of(given, ports.synth(given), {})
    ports.terraform.prepare(stack)
    return ports.terraform.outputs(stack)
