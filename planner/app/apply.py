"""Making a reviewed plan real.

  recover     what an earlier run left half made (planner.app.recover)
  standing    what runs already: the same placement is no change, another one is refused; a job that has exited does not run, its nodes are ended
  prepare     network and access of the choice, and of the next regions a failover may need (planner.app.prepare)
  launch      candidates in the plan's order, each a generation of its own, until one runs (planner.app.launch)

Only placements that the plan lists are tried.  Whether the plan may be applied at all is judged before, by `planner.app.revalidate`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from planner.app import compose, secrets_guard
from planner.app.launch import Part, launch_parts, run_of
from planner.app.lease import held
from planner.app.lookup import instance_type
from planner.app.prepare import Preparer, give_back_endpoints
from planner.app.recover import finish_ending, recover
from planner.app.steps import Refused, stack_of
from planner.model.diagnostic import Diagnostic
from planner.model.errors import SkyplanError, StalePlan, StateConflict, TerraformError
from planner.model.record import LIVE, Attempt, Node, Run, RunStatus
from planner.model.stack import WIREGUARD_PORT, rank_key
from planner.state.moves import under_way

if TYPE_CHECKING:
    from planner.app.ports import Ports
    from planner.model.plan import Placement, PlacementPlan
    from planner.model.stack import StackSet
    from planner.model.workload import Workload
    from planner.state.writer import Writer

Place = tuple[str, str, str]
CODES = {
    "capacity": "SKY-APPLY-308",
    "quota": "SKY-APPLY-309",
    "permission": "SKY-APPLY-317",
    "unknown": "SKY-APPLY-310",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to apply.

    barred     offer ids that may not be tried any more, with the reason (their price moved)
    prepare    how many further regions of the ranked set to make ready for failing over
    again      launch although this plan was applied before
    stale      why nothing new may be launched by it; what runs already, or was begun, goes on
    """

    plan: PlacementPlan
    workload: Workload
    barred: dict[str, str] = field(default_factory=dict[str, str])
    prepare: int = 2
    again: bool = False
    lease_timeout: float = 0.0
    stale: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What runs now.  `changed` is False where it ran before; `attempts` are this call's launches, refused ones included."""

    run: Run
    nodes: tuple[Node, ...]
    attempts: tuple[Attempt, ...]
    changed: bool


def apply(order: Order, ports: Ports) -> Applied:
    """Raises InputError (SKY-IAM-504), LeaseHeld, StalePlan (303, 318, 324, SKY-MOVE-419), TerraformError (310, 311, 317), StateConflict, CloudError."""
    plan = order.plan
    with held(ports, plan.name, wait_seconds=order.lease_timeout) as lease:
        if move := ports.record.open_move(plan.name):
            raise StalePlan([under_way(move)])
        writer = ports.record.writer(lease)
        seen = len(ports.record.attempts(plan.name))
        refused: list[Refused] = []
        resumed: tuple[Run, tuple[Node, ...]] | None = None
        try:
            resumed = recover(ports, writer, resume=lambda run: run.plan_digest == plan.digest)
        except Refused as answer:
            _or_stop(answer, ports, refused)
            recover(ports, writer, resume=lambda _: False)
        run = standing(order, ports.record.runs(plan.name))
        changed = resumed is not None or run is None
        if run is None:
            if order.stale:
                give_back_endpoints(ports, writer, None)
                raise StalePlan(order.stale)
            try:
                secrets_guard.refuse_plan(plan)
                _end_exited(ports, writer)
                guarded = replace(ports, synth=secrets_guard.guarded(ports.synth))
                run = _Candidates(order, guarded, writer).first_that_runs(refused)
            except StateConflict:
                raise  # another process has taken over: nothing here is ours to end
            except SkyplanError:
                give_back_endpoints(ports, writer, None)
                raise
        give_back_endpoints(ports, writer, run)
        return Applied(
            run=run,
            nodes=ports.record.nodes(plan.name, run.generation),
            attempts=tuple(a for a in ports.record.attempts(plan.name)[seen:] if a.generation and a.action == "apply"),
            changed=changed,
        )


def standing(order: Order, runs: Sequence[Run]) -> Run | None:
    """The run that makes applying unnecessary, None if a launch is due.  Raises StalePlan."""
    plan = order.plan
    for run in runs:
        if run.status not in LIVE or run.status is RunStatus.EXITED:
            continue  # of a job that has exited nothing runs: what is left of its nodes is ended before the next launch
        same = run.plan_digest == plan.digest or run.placement_id == plan.choice.placement_id
        if same and run.status is RunStatus.RUNNING:
            return run
        if run.status is RunStatus.RUNNING:
            hint = f"`skyplan destroy {plan.name}` first; a running node is never changed"
            raise _stale(
                "SKY-APPLY-324", f"{run.id} runs on {run.offer_id}; the plan's choice is {plan.choice.offer_id}", hint
            )
        hint = f"`skyplan destroy {plan.name}`, then plan anew, or apply this plan with --again"
        raise _stale(
            "SKY-APPLY-318",
            f"{run.id} has lost nodes ({run.status.value}); they are not made again by themselves",
            hint,
        )
    before = [r for r in runs if r.plan_digest == plan.digest and r.status is not RunStatus.FAILED]
    if before and not order.again:
        summary = f"this plan was applied already, as {before[-1].id} ({before[-1].status.value})"
        raise _stale("SKY-APPLY-303", summary, "give --again to launch it once more")
    return None


def _end_exited(ports: Ports, writer: Writer) -> None:
    """The nodes of a job that has exited, which may be there still, bill and hold its pool.  Raises TerraformError (325)."""
    for run in ports.record.runs(writer.job):
        if run.status is RunStatus.EXITED:
            stacks = [
                s for s in ports.record.stacks(writer.job) if s.kind == "compute" and s.generation == run.generation
            ]
            finish_ending(ports, writer, run, stacks)


def _stale(code: str, summary: str, hint: str) -> StalePlan:
    return StalePlan([Diagnostic(code=code, summary=summary, hint=hint)])


class _Candidates:
    """The plan's ranked placements, tried in order.  `_closed`: places that cannot be prepared, `_no_endpoints`: for a split; with the reason."""

    def __init__(self, order: Order, ports: Ports, writer: Writer) -> None:
        self._order = order
        self._ports = ports
        self._writer = writer
        self._preparer = Preparer(ports, writer)
        self._closed: dict[Place, str] = {}
        self._no_endpoints: dict[Place, str] = {}

    def first_that_runs(self, refused: list[Refused]) -> Run:
        """Launch until one runs; what was refused is added to `refused`.  Raises TerraformError (311) when none is left."""
        for p in self._order.plan.ranked:
            closed = self._closed | (self._no_endpoints if p.parts else {})
            reason = self._order.barred.get(p.offer_id) or next(filter(None, map(closed.get, _places(p))), None)
            if reason:
                self._ports.tell("", f"{p.offer_id}: passed over: {reason}")
                continue
            try:
                run = self._try(p)
            except Refused as answer:
                _or_stop(answer, self._ports, refused)
                continue
            self._make_ready(p)
            return run
        raise _none_left(self._order.plan, refused)

    def _try(self, p: Placement) -> Run:
        """Prepare the candidate's place and launch it; of a split job, the places of all its parts.  Raises Refused, InputError (SKY-IAM-504)."""
        from stacks.wiring import compute_variables  # noqa: PLC0415 - beside its use

        plan, ports, writer = self._order.plan, self._ports, self._writer
        secrets_guard.refuse_stacks(self._sets(p))
        try:
            if p.parts:
                prepared = self._preparer.prepare_parts(lambda endpoints: self._sets(p, None, endpoints))
            else:
                (only,) = self._sets(p)
                prepared = ((only, self._preparer.prepare(only)),)
        except Refused as answer:
            self._close(p, answer)
            raise
        for piece in p.pieces:
            where = piece.zone or piece.region
            ports.tell(
                "",
                f"launching {piece.nodes} x {piece.instance_type} ({piece.capacity}) in {where}, rank {p.rank}",
            )
        types = [(piece.nodes, instance_type(ports.market, piece)) for piece in p.pieces]
        gpus, vcpus = sum(n * t.gpu_count for n, t in types), sum(n * t.vcpus for n, t in types)
        limits = self._order.workload.constraints
        run = writer.issue(run_of(plan, p, limits, gpus=gpus, vcpus=vcpus), ports.clock.now())
        endpoints = {rank: address for _, ready in prepared for rank, address in ready.endpoints.items()}
        parts: list[Part] = []
        for piece, given, (_, ready) in zip(p.pieces, self._sets(p, run.generation, endpoints), prepared, strict=True):
            cmp = given.compute
            variables = compute_variables(cmp, ready.access)
            if cmp.tunnel:
                variables["address_ids"] = dict(ready.address_ids)
            stack = stack_of(cmp, ports.synth(cmp), variables)
            made = ready.rights_made
            parts.append(Part(stack=stack, pool=piece.pool, offer_id=piece.offer_id, rights_made=made))
        if p.parts:
            self._announce(p, run, endpoints)
        launch_parts(ports, writer, run, parts)
        return ports.record.runs(plan.name)[-1]

    def _announce(self, p: Placement, run: Run, endpoints: Mapping[str, str]) -> None:
        """Write down whom the rendezvous must expect.  It holds no secret: `skyplan rendezvous` adds it."""
        members = [
            {"name": rank, "tunnel_address": inside, "endpoint": f"{endpoints[rank]}:{WIREGUARD_PORT}"}
            for rank, inside in zip(map(rank_key, range(p.nodes)), p.tunnel_addresses, strict=True)
        ]
        document = {"job": run.job, "generation": run.generation, "members": members}
        file = self._ports.keep(f"rendezvous/{run.id}.json", document)
        if self._ports.project.rendezvous is not None:
            text = f"nodes meet at {self._ports.project.rendezvous.url}: skyplan rendezvous --peers {file} --secret-file FILE"
        else:
            text = f"nodes wait for their peers' keys, by hand: the peers are in {file}"
        self._ports.tell("", text)

    def _close(self, p: Placement, answer: Refused) -> None:
        """Try no other placement where something of the place itself was refused; endpoints are in the way of splits alone."""
        why = f"{answer.stack} was refused ({answer.code or answer.kind})"
        for piece, given in zip(p.pieces, self._sets(p), strict=True):
            if answer.stack in {given.network.name, given.access.name}:
                self._closed[_place(piece)] = why
            elif given.addresses and answer.stack == given.addresses.name:
                self._no_endpoints[_place(piece)] = why

    def _sets(
        self, p: Placement, generation: int | None = None, endpoints: Mapping[str, str] | None = None
    ) -> tuple[StackSet, ...]:
        order, ports = self._order, self._ports
        return compose.stack_sets(
            order.plan.ranked,
            p,
            order.workload,
            ports.project,
            ports.market,
            generation=generation,
            endpoints=endpoints,
        )

    def _make_ready(self, chosen: Placement) -> None:
        """The next regions of the ranked set, so that a later unattended move finds them prepared.  A refusal only warns: the job runs."""
        places: dict[Place, Placement] = {}
        for p in self._order.plan.ranked:
            apart = p.parts or _place(p) in _places(chosen)
            if not apart and p.offer_id not in self._order.barred:
                places.setdefault(_place(p), p)
        for p in list(places.values())[: self._order.prepare]:
            try:
                self._preparer.prepare(*self._sets(p))
            except (Refused, SkyplanError) as error:
                said = error.error if isinstance(error, Refused) else error
                self._ports.tell("", f"{p.region} could not be made ready for failing over: {said}")


def _or_stop(answer: Refused, ports: Ports, refused: list[Refused]) -> None:
    """Go on after capacity, quota and what is unknown, which is shown whole; a missing permission would be missing elsewhere too."""
    if answer.kind == "permission":
        raise _error(answer) from answer
    refused.append(answer)
    if answer.kind == "unknown":
        said = answer.error.output or answer.error
        ports.tell("", f"{answer.stack}: refused for a reason skyplan does not know [SKY-APPLY-310]:\n{said}")
    else:
        ports.tell("", f"{answer.stack}: refused: {answer.code} [{CODES[answer.kind]}]")


def _error(answer: Refused) -> TerraformError:
    summary = f"{answer.stack}: {answer.error}"
    return TerraformError([Diagnostic(code=CODES[answer.kind], summary=summary)], answer.error.output)


def _none_left(plan: PlacementPlan, refused: Sequence[Refused]) -> TerraformError:
    first = Diagnostic(
        code="SKY-APPLY-311",
        summary=f"none of the {len(plan.ranked)} ranked placements of `{plan.name}` could be launched",
    )
    rest = [
        Diagnostic(code=CODES[r.kind], summary=f"{r.stack}: {r.code or 'refused'}: {r.error}", hint="it is remembered")
        for r in refused
    ]
    return TerraformError([first, *rest])


def _place(p: Placement) -> Place:
    return (p.cloud, p.target, p.region)


def _places(p: Placement) -> tuple[Place, ...]:
    return tuple(map(_place, p.pieces))
