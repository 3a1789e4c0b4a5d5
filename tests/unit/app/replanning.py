"""A small market, a job that runs in it, and a record of both as values: for tests of replanning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from planner.app.inputs import Inputs, Job
from planner.app.plan import Request as PlanRequest
from planner.app.plan import run_on
from planner.app.replan import Replanned, Request, Sources, replan
from planner.model.ledger import AvailabilityMemory, Failure
from planner.model.market import Market
from planner.model.offer import CapacityType, InstanceType
from planner.model.plan import PlacementPlan
from planner.model.project import Backend, Project
from planner.model.record import Attempt, Event, Run, RunStatus, Stack, StackStatus, stamp
from planner.model.record import Job as RecordJob
from planner.model.runtime import Checkpoint, Progress, Seat
from planner.model.workload import Workload
from planner.state.history import Move
from planner.state.newest import Ends, Newest
from tests.builders import checkpoints, instance_type, market, project, region, workload

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
EAST, WEST, NORTH = region(), region("us-west-2", net_index=2), region("us-north-1", net_index=3)
TYPE = instance_type()
OTHER = instance_type("p4d.24xlarge")
SPOT, ON_DEMAND = CapacityType.SPOT, CapacityType.ON_DEMAND
JOB = workload(
    "train",
    resources={"capacity": (SPOT, ON_DEMAND)},
    checkpoint=checkpoints(10.0, 0.5),
)


def offer(where: str = "us-east-1", capacity: CapacityType = SPOT, kind: InstanceType = TYPE) -> str:
    return f"aws:default/{where}/{where}-a/{kind.name}/{capacity.value}"


def pool(where: str = "us-east-1", capacity: CapacityType = SPOT, kind: InstanceType = TYPE) -> str:
    return f"aws:default/{where}-a/{kind.hardware}/{capacity.value}"


def market_of(east: float = 10.0, west: float = 10.0, on_demand: float = 30.0, **other: float) -> Market:
    """Spot in two regions and on demand in the first; `other_east` another topology on spot."""
    rows: list[Any] = [
        (TYPE, EAST, "us-east-1-a", SPOT, east),
        (TYPE, WEST, "us-west-2-a", SPOT, west),
        (TYPE, EAST, "us-east-1-a", ON_DEMAND, on_demand),
    ]
    if "other_east" in other:
        rows.append((OTHER, EAST, "us-east-1-a", SPOT, other["other_east"]))
    if "north" in other:
        rows.append((TYPE, NORTH, "us-north-1-a", SPOT, other["north"]))
    return market(rows)


def inputs(given: Market, job: Workload = JOB, of: Project | None = None) -> Inputs:
    return Inputs(
        jobs=(Job(workload=job, file="jobs/train.yaml"),),
        project=of or project(),
        project_file=None,
        market=given,
        warnings=(),
    )


def planned(given: Market, job: Workload = JOB, of: Project | None = None) -> PlacementPlan:
    (one,) = run_on(inputs(given, job, of), PlanRequest(job_files=(), offline=True), NOW).planned
    return one.plan


@dataclass
class Told:
    """The record, in memory."""

    jobs_: list[RecordJob] = field(default_factory=list)
    runs_: list[Run] = field(default_factory=list)
    moves_: list[Move] = field(default_factory=list)
    stacks_: list[Stack] = field(default_factory=list)
    attempts_: list[Attempt] = field(default_factory=list)
    ends: dict[tuple[str, int], Ends] = field(default_factory=dict)
    checkpoints: dict[str, Checkpoint] = field(default_factory=dict)
    notices: dict[tuple[str, int], Event] = field(default_factory=dict)
    events_: list[Event] = field(default_factory=list)

    def jobs(self) -> tuple[RecordJob, ...]:
        return tuple(self.jobs_)

    def runs(self, job: str | None = None) -> tuple[Run, ...]:
        return tuple(r for r in self.runs_ if job in {None, r.job})

    def moves(self, job: str | None = None) -> tuple[Move, ...]:
        return tuple(m for m in self.moves_ if job in {None, m.job})

    def stacks(self, job: str | None = None) -> tuple[Stack, ...]:
        return tuple(s for s in self.stacks_ if job in {None, s.job})

    def attempts(self, job: str | None = None) -> tuple[Attempt, ...]:
        return tuple(a for a in self.attempts_ if job in {None, a.job})

    def events(self, job: str) -> tuple[Event, ...]:
        return tuple(e for e in self.events_ if e.job == job)

    def newest(self, runs: Sequence[tuple[str, int]]) -> Newest:
        return Newest(
            ends={k: v for k, v in self.ends.items() if k in runs},
            checkpoints=self.checkpoints,
            notices={k: v for k, v in self.notices.items() if k in runs},
        )


def run_of(plan: PlacementPlan, offer_id: str, *, hours_ago: float = 4.0, **changes: Any) -> Run:
    """Launched from the plan."""
    p = next(p for p in plan.ranked if p.offer_id == offer_id)
    run = Run(
        job=plan.name,
        generation=1,
        plan_digest=plan.digest,
        rank=p.rank,
        placement_id=p.placement_id,
        offer_id=p.offer_id,
        cloud=p.cloud,
        target=p.target,
        region=p.region,
        zone=p.zone,
        pool=p.pool,
        instance_type=p.instance_type,
        capacity=p.capacity,
        nodes=p.nodes,
        gpus=p.nodes * p.gpu_count,
        vcpus=96,
        addresses=p.addresses,
        usd_per_hour=p.usd_per_hour,
        status=RunStatus.RUNNING,
        started_at=stamp(NOW - timedelta(hours=hours_ago)),
    )
    return replace(run, **changes)


def progress(step: int, hours_ago: float, generation: int = 1, job: str = "train", **metrics: float) -> Progress:
    seat = Seat(job=job, generation=generation, rank=0)
    return Progress(seat=seat, step=step, at=stamp(NOW - timedelta(hours=hours_ago)), metrics=metrics)


def checkpoint(step: int, hours_ago: float = 0.2, generation: int = 1, job: str = "train") -> Checkpoint:
    return Checkpoint(
        job=job,
        generation=generation,
        step=step,
        uri=f"s3://ckpt/x/g{generation}/step-{step:012d}",
        digest="d",
        mac="m",
        bytes=10**10,
        at=stamp(NOW - timedelta(hours=hours_ago)),
    )


def move(reason: str, status: str = "retired", hours_ago: float = 0.5, from_generation: int = 1) -> Move:
    return Move(
        id=7,
        job="train",
        from_generation=from_generation,
        to_generation=from_generation + 1,
        reason=reason,
        status=status,
        at=stamp(NOW - timedelta(hours=hours_ago)),
    )


def stack(kind: str, where: str, job: str = "train", **changes: Any) -> Stack:
    given = Stack(
        name=f"{kind}-{job}-{where}",
        kind=kind,
        job=None if kind == "network" else job,
        cloud="aws",
        target="default",
        region=where,
        generation=None,
        backend=Backend(),
        document={},
        variables={},
        status=StackStatus.APPLIED,
    )
    return replace(given, **changes)


@dataclass
class Bench:
    """A job that runs in the east, planned when both regions cost the same; four of its 24 hours are done."""

    market: Market
    job: Workload = JOB
    project: Project = field(default_factory=project)
    at_planning: Market | None = None
    runs_on: str = offer()
    told: Told = field(default_factory=Told)
    memory: tuple[Failure, ...] = ()
    history: Any = None

    def __post_init__(self) -> None:
        self.plan = planned(self.at_planning or self.market, self.job, self.project)
        self.run = run_of(self.plan, self.runs_on)
        name = self.job.name
        self.told.jobs_ = [RecordJob(name=name, generation=1, first_applied_at=self.run.started_at, version=1)]
        self.told.runs_ = [self.run]
        self.told.ends = {(name, 1): Ends(first=progress(0, 4.0), last=progress(400, 0.0))}
        self.told.checkpoints = {name: checkpoint(390)}
        for where in ("us-east-1", "us-west-2"):
            self.told.stacks_ += [stack("network", where), stack("access", where)]

    def replace_run(self, **changes: Any) -> None:
        self.run = replace(self.run, **changes)
        self.told.runs_ = [self.run]

    def request(self, *, only_ready: bool = False) -> Request:
        return Request(
            read=inputs(self.market, self.job, self.project),
            plans={self.plan.name: self.plan},
            holdings=tuple(r.holding for r in self.told.runs_ if r.status is RunStatus.RUNNING),
            memory=AvailabilityMemory(self.memory),
            only_ready=only_ready,
        )

    def replan(self, *, only_ready: bool = False, now: datetime = NOW, synth: Any = None) -> Replanned:
        sources = Sources(record=self.told, told=self.told, history=self.history, synth=synth)
        return replan(self.request(only_ready=only_ready), sources, now)


def figures(terms: Any) -> Mapping[str, Decimal]:
    return {t.name: t.usd for t in terms}
