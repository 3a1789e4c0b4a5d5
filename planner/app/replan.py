"""Replanning: for every job that runs, or was lost, whether it should move, and where to.  From the record, the plans, the market and its history; writes nothing.

  look      where each job stands (`situation`)
  judge     one decision each, jobs of one shape judged together (`replan_judge`, `planner.migration`)
  propose   a migration diff, and a new plan where the reviewed one does not list the place (`replan_diff`)

Jobs are taken by priority, then by name, and each move takes its room before the next job is looked at: a thousand jobs do not run to the same pool.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.app import situation
from planner.app.replan_diff import Decided, Ground, Proposal, drifted, propose
from planner.app.replan_judge import FULL, GOING, Case, judge, kept
from planner.app.replan_outlook import Told, memory_of, outlook_of, withdrawn
from planner.app.replan_own import Own
from planner.app.replan_words import kept_text
from planner.app.usable import unusable
from planner.migration.constants import DEFAULT, Rule
from planner.migration.costing import Outlook, Shape, shape_of, with_current
from planner.model.codes import CODES
from planner.model.digest import digest
from planner.model.ledger import Ledger
from planner.model.migration import Kept, MigrationDiff, MigrationReason
from planner.model.record import RunStatus
from planner.placement.cost import figure
from planner.placement.crowd import (
    cool_downs,
    failure_bits,
    held_networks,
    held_nodes,
    network_bits,
    pool_bits,
    pool_caps,
    quota_bits,
)
from planner.placement.fleet import holdings
from planner.placement.offers import offers_of
from planner.placement.rank import unusable_bits
from planner.spec.normal import workload_from_document

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from planner.app.inputs import Inputs
    from planner.app.replan_outlook import Remembers
    from planner.app.situation import Looks, Reads, Seen
    from planner.model.ledger import AvailabilityMemory, Holding
    from planner.model.plan import PlacementPlan
    from planner.model.project import Project
    from planner.model.record import Run, Stack
    from planner.model.stack import StackInput
    from planner.model.workload import Workload

HELD, UNPLANNED, BEGUN, ANEW = "SKY-MOVE-419", "SKY-MOVE-407", "SKY-MOVE-419", "SKY-MOVE-401"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where it is read.  `history` None: there is none.  `synth` gives a stack's Terraform JSON; None: nobody can here."""

    record: Reads
    told: Looks
    history: Remembers | None = None
    synth: Callable[[StackInput], Mapping[str, Any]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked.

    plans        reviewed plans by job
    holdings     what all projects' runs hold
    memory       launches that were refused, and what feeds saw fail
    names        jobs; () = all
    only_ready   move to reviewed and prepared places only: what may be done unattended
    """

    read: Inputs
    plans: Mapping[str, PlacementPlan]
    holdings: Sequence[Holding]
    memory: AvailabilityMemory
    names: tuple[str, ...] = ()
    only_ready: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Replanned:
    """By job name.  `known_lifetimes` False: nothing was known of how long pools last (SKY-MOVE-424).  `ended`: jobs that are over."""

    proposals: tuple[Proposal, ...]
    kept: tuple[Kept, ...]
    as_of: str
    ended: tuple[str, ...] = ()
    known_lifetimes: bool = True

    @property
    def diffs(self) -> tuple[MigrationDiff, ...]:
        """What should move."""
        return tuple(p.diff for p in self.proposals)


def rule_of(project: Project) -> Rule:
    """The constants, with what skyplan.yaml says of them."""
    own = project.migration
    said = {
        name: value
        for name in ("threshold_hours", "horizon_hours", "cool_down_hours")
        if (value := getattr(own, name)) is not None
    }
    return replace(DEFAULT, **said)


def replan(request: Request, sources: Sources, now: datetime) -> Replanned:
    """Decide on every job."""
    seen = situation.look(sources.record, sources.told, request.names)
    round_ = _Round(request, sources, seen, now)
    order = sorted(seen, key=lambda s: (-round_.priority(s.job.name), s.job.name))
    found = [one for s in order if (one := round_.one(s)) is not None]
    return Replanned(
        proposals=tuple(sorted((f for f in found if isinstance(f, Proposal)), key=lambda p: p.diff.job)),
        kept=tuple(sorted((f for f in found if isinstance(f, Kept)), key=lambda k: k.job)),
        as_of=round_.ground.as_of,
        ended=tuple(sorted({j.name for j in sources.record.jobs()} - {f.job for f in _named(found)})),
        known_lifetimes=round_.known,
    )


def _named(found: Sequence[Proposal | Kept]) -> list[MigrationDiff | Kept]:
    return [one.diff if isinstance(one, Proposal) else one for one in found]


@dataclass(slots=True)
class _Kind:
    """Jobs of one shape: judged once, and what of it hangs on room again when room was taken."""

    shape: Shape
    outlook: Outlook
    unusable: NDArray[np.int32]
    refused: NDArray[np.int32] | None = None
    room: int = -1


@dataclass(slots=True)
class _Taken:
    """Who holds what, with the moves that were decided so far."""

    ledger: Ledger
    held: NDArray[np.int64]
    version: int = 0
    bits: dict[int, NDArray[np.int32]] = field(default_factory=dict[int, "NDArray[np.int32]"])
    caps: dict[int, NDArray[np.int64]] = field(default_factory=dict[int, "NDArray[np.int64]"])


class _Round:
    """One call's shared values."""

    def __init__(self, request: Request, sources: Sources, seen: Sequence[Seen], now: datetime) -> None:
        read = request.read
        self._request, self._now, self._read = request, now, read
        as_of = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        self.rule = rule_of(read.project)
        self._told = Told(sources.history, now, self.rule) if sources.history else None
        self._offers = offers_of(read.market, read.project, as_of=as_of)
        memory = memory_of(request.memory, seen)
        self._failures = failure_bits(self._offers, cool_downs(memory, now))
        ledger = Ledger(tuple(sorted(request.holdings)))
        self._taken = _Taken(ledger, held_nodes(self._offers, ledger))
        self._own = Own(self._offers, read.project)
        self._kinds: dict[Workload, _Kind] = {}
        self._workloads: dict[str, Workload] = {}
        stacks = sources.record.stacks()
        self._prepared = situation.prepared_places(stacks)
        clouds = {s.name: s.cloud for s in stacks if s.kind == "compute"}
        compute: dict[tuple[str, int], list[Stack]] = {}
        for stack in stacks:
            if stack.kind == "compute" and stack.job and stack.generation is not None:
                compute.setdefault((stack.job, stack.generation), []).append(stack)
        self._acquire = situation.acquire_hours(sources.record.attempts(), clouds)
        quotas = sources.history.quotas(at=now) if sources.history else ()
        self._withdrawn = withdrawn(quotas, request.holdings)
        self.known = sources.history is None
        self.ground = Ground(
            read=read,
            memory=memory,
            as_of=as_of,
            rule=self.rule,
            stacks=compute,
            record_digest=digest([[s.run.id, s.run.status, s.run.placement_id, s.step, len(s.moves)] for s in seen]),
            synth=sources.synth,
        )

    def priority(self, job: str) -> int:
        """Of its plan; 0 without one."""
        plan = self._request.plans.get(job)
        return int(plan.job.get("priority", 0)) if plan else 0

    def one(self, seen: Seen) -> Proposal | Kept | None:  # noqa: PLR0911 - one thing that keeps it each
        """What becomes of a job; None where its process has ended."""
        name, run, plan = seen.job.name, seen.run, self._request.plans.get(seen.job.name)
        if run.status is RunStatus.EXITED and not seen.taken:
            return None
        if seen.open_move is not None or seen.starting:
            what = f"move {seen.open_move.id} is {seen.open_move.status}" if seen.open_move else "a launch is under way"
            return Kept(job=name, code=HELD, text=what)
        if plan is None:
            return Kept(job=name, code=UNPLANNED, text=f"no plan file of {name} is there: its work is not known")
        workload = workload_from_document(plan.job)
        kind = self._kind(workload)
        shape, running = with_current(
            kind.shape,
            offer_id=run.offer_id,
            usd_per_hour=float(run.usd_per_hour),
            work_rate=_rate(run, plan, kind.shape),
        )
        outlook, refused = _grown(kind.outlook, shape), self._refused(kind, workload)
        refused = np.append(refused, np.zeros(len(shape) - len(refused), dtype=np.int32))
        left = situation.left(seen, workload, lambda r: _rate(r, plan, kind.shape), self._now)
        refused |= self._own.bits(workload, shape, running, left.work_hours, self._taken.ledger)
        reason, why = self._reason(seen, plan, workload, shape)
        case = Case(
            job=name,
            reason=reason,
            running=running,
            left=left,
            deadline_hours=seen.deadline_hours(workload, self._now),
            since_move_hours=seen.since_move_hours(self._now),
            refused=refused,
            reviewed=frozenset(p.offer_id for p in plan.ranked),
            prepared=self._ready(name, shape),
            left_lately=self._left_lately(seen),
            sensitive=workload.resources.interconnect_sensitive,
            saves=self._saves(workload, seen),
            only_ready=self._request.only_ready,
        )
        judged = judge(case, shape, outlook, self.rule)
        if not judged.to:
            return kept(case, judged, shape, kept_text(judged, case, shape))
        if workload.checkpoint is None and judged.reason not in GOING:
            return Kept(job=name, code=ANEW, text="it has no checkpoint policy: a move would begin it anew")
        decided = Decided(
            case=case,
            judged=judged,
            shape=shape,
            seen=seen,
            reviewed=plan,
            workload=workload,
            ledger=self._taken.ledger,
            why=why,
        )
        found = propose(decided, self.ground)
        if found is None:
            return Kept(job=name, code=FULL, text=f"{shape.names[judged.to[0]]}: {CODES[FULL].meaning}")
        self._own.leaves(h for h in self._taken.ledger.holdings if h.job == name)
        for held in holdings(found.diff.to[0], self._read.market, workload=workload):
            self._taken.ledger = self._taken.ledger.plus(held)
            if (at := self._offers.pool_index.get(held.pool)) is not None:
                self._taken.held[at] += held.nodes
        self._taken.version += 1
        self._taken.bits.clear()
        return found

    def _reason(
        self, seen: Seen, plan: PlacementPlan, workload: Workload, shape: Shape
    ) -> tuple[MigrationReason | None, str]:
        """What needs no saving, the most pressing first."""
        run = seen.run
        if run.status in {RunStatus.LOST, RunStatus.DEGRADED}:
            return MigrationReason.RECOVERY, f"{run.id} is {run.status.value}: its nodes are not all there any more"
        if seen.taken and seen.notice is not None:
            return MigrationReason.RECOVERY, f"the cloud took nodes of {run.id} back: {seen.notice.text}"
        if seen.notice is not None:
            return MigrationReason.INTERRUPTION, f"the cloud takes nodes of {run.id} back: {seen.notice.text}"
        if seen.job.name in self._withdrawn:
            return MigrationReason.QUOTA, self._withdrawn[seen.job.name]
        if why := drifted(run, plan, workload, shape, self.ground):
            return MigrationReason.DRIFT, why
        return None, ""

    def _kind(self, workload: Workload) -> _Kind:
        alike = replace(workload, name="", tags=(), env=(), priority=0)
        if alike not in self._kinds:
            shape = shape_of(self._offers, workload, self._acquire)
            outlook, known = outlook_of(shape, self._told, self._now, self.rule)
            self.known = self.known or known
            barred = unusable(workload, self._read.project, self._read.market)
            bits = unusable_bits(self._offers, barred)[shape.at] if barred else np.zeros(len(shape), dtype=np.int32)
            self._kinds[alike] = _Kind(shape, outlook, bits)
        return self._kinds[alike]

    def _refused(self, kind: _Kind, workload: Workload) -> NDArray[np.int32]:
        """Why the ranker would refuse new nodes now.  What runs counts as held: for a while both would stand."""
        if kind.refused is None or kind.room != self._taken.version:
            kind.refused = self._room(workload.resources.nodes)[kind.shape.at] | kind.unusable
            kind.room = self._taken.version
        return kind.refused

    def _room(self, nodes: int) -> NDArray[np.int32]:
        if nodes not in self._taken.bits:
            o, ledger, project = self._offers, self._taken.ledger, self._read.project
            if nodes not in self._taken.caps:
                default = int(figure(o.market, "default_pool_cap_nodes"))
                self._taken.caps[nodes] = pool_caps(o, project.pool_cap_nodes, default, nodes)
            caps = self._taken.caps[nodes]
            bits = self._failures | pool_bits(o, self._taken.held, caps, nodes)
            if any(t.quotas for t in o.targets):
                bits = bits | quota_bits(o, ledger, nodes)
            self._taken.bits[nodes] = bits | network_bits(o, held_networks(o, ledger), nodes)
        return self._taken.bits[nodes]

    def _ready(self, job: str, shape: Shape) -> NDArray[np.bool_]:
        o, out = self._offers, np.zeros(len(shape), dtype=bool)
        for other, cloud, target, region in self._prepared_of(job):
            at = o.market.region_index.get((cloud, region))
            if at is None or other != job:
                continue
            here = np.flatnonzero((shape.region == at) & (shape.at >= 0))
            out[[k for k in here if o.target(int(shape.at[k])).name == target]] = True
        return out

    def _prepared_of(self, job: str) -> tuple[tuple[str, str, str, str], ...]:
        if not hasattr(self, "_by_job"):
            self._by_job: dict[str, list[tuple[str, str, str, str]]] = {}
            for place in sorted(self._prepared):
                self._by_job.setdefault(place[0], []).append(place)
        return tuple(self._by_job.get(job, ()))

    def _left_lately(self, seen: Seen) -> frozenset[int]:
        pools = seen.left_pools(self._now, self.rule.cool_down_hours)
        return frozenset(at for pool in pools if (at := self._offers.pool_index.get(pool)) is not None)

    def _saves(self, workload: Workload, seen: Seen) -> bool:
        """Whether its nodes would make a checkpoint when asked: under an agent that has spoken, with a place for it."""
        return workload.checkpoint is not None and bool(seen.ends)


def _rate(run: Run, plan: PlacementPlan, shape: Shape) -> float:
    """Reference hours per hour where a run is: as the market has it, else as its plan did, else as the reference hardware."""
    at = shape.find(run.offer_id)
    if at is not None:
        return float(shape.work_rate[at])
    listed = next((p for p in plan.ranked if p.offer_id == run.offer_id and p.compute_hours > 0), None)
    return shape.workload.work.hours / float(listed.compute_hours) if listed else 1.0


def _grown(outlook: Outlook, shape: Shape) -> Outlook:
    """With what runs but is not for sale any more: nothing is known of it."""
    more = len(shape) - len(outlook.lifetime_hours)
    if not more:
        return outlook
    told = {
        "lifetime_hours": np.inf,
        "return_hours": np.inf,
        "fresh_hours": np.inf,
        "outage_hours": 0.0,
        "up_share": 1.0,
        "steady_hours": np.inf,
    }
    grown = {
        name: np.append(column, [value] * more)
        for name, value in told.items()
        if (column := getattr(outlook, name)) is not None
    }
    usual = np.append(outlook.usual_usd_per_hour, shape.usd_per_hour[-more:])
    return replace(outlook, **grown, usual_usd_per_hour=usual)
