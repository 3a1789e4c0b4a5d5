"""What the record holds, as values: runs, their nodes, launch attempts, stacks, leases, events.

Times are UTC ISO text (`2026-07-30T12:00:00.000000Z`), so that they sort as they read.  The record (`planner.state`) writes these; nothing here decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from planner.model.ledger import Holding
from planner.model.offer import offer_name, parts_of_offer_id
from planner.model.project import Backend

TIME_FORMAT = "%Y-%m-%dT%H:%M:%S.%fZ"
STAMP_LENGTH = 27


def stamp(at: datetime) -> str:
    """An aware moment as the record writes it."""
    return at.astimezone(UTC).strftime(TIME_FORMAT)


def moment(text: str) -> datetime:
    """The inverse of `stamp`."""
    if len(text) == STAMP_LENGTH and text[-1] == "Z":
        return datetime.fromisoformat(text)  # ten times as fast, and there are thousands
    return datetime.strptime(text, TIME_FORMAT).replace(tzinfo=UTC)


class RunStatus(StrEnum):
    """A run's life: starting -> running -> (degraded) -> exited | lost | ended, or starting -> failed.

    starting  the generation is issued; Terraform may be at work
    running   every node is alive
    degraded  some nodes are lost
    exited    the job's own process ended on every node; the nodes may still be there
    lost      every node is lost
    failed    the launch was refused or given up, and what was half made is gone
    ended     destroyed on purpose
    """

    STARTING = "starting"
    RUNNING = "running"
    DEGRADED = "degraded"
    EXITED = "exited"
    LOST = "lost"
    FAILED = "failed"
    ENDED = "ended"


#: runs that hold capacity or may come to hold it
HOLDING = (RunStatus.STARTING, RunStatus.RUNNING, RunStatus.DEGRADED, RunStatus.EXITED)
#: runs that nodes were started for and that nobody has ended
LIVE = (RunStatus.RUNNING, RunStatus.DEGRADED, RunStatus.EXITED, RunStatus.LOST)


class NodeStatus(StrEnum):
    """What was last seen of a node."""

    RUNNING = "running"
    LOST = "lost"
    ENDED = "ended"


class Action(StrEnum):
    """What an intent is about to do with a stack."""

    APPLY = "apply"
    DESTROY = "destroy"


class Outcome(StrEnum):
    """How an attempt ended.  An attempt without one is unfinished: its process died, or is at work."""

    DONE = "done"
    REFUSED = "refused"
    ABANDONED = "abandoned"


class StackStatus(StrEnum):
    """What the record knows of a stack's resources: some may exist (touched), all do (applied), none do (gone)."""

    TOUCHED = "touched"
    APPLIED = "applied"
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job that was applied at least once.  `generation` is the newest issued; 0 is none yet."""

    name: str
    generation: int
    first_applied_at: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPart:
    """Nodes of a run that stand in one place: `nodes` of them, from `first_rank` on."""

    cloud: str
    target: str
    region: str
    zone: str
    instance_type: str
    capacity: str
    nodes: int
    first_rank: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One launch attempt of a job, and what became of it.  Of a job in several clouds, cloud to capacity are the first part's (see `parts`).

    stop_after_hours, budget_usd  its hard ends, counted from `started_at`; None where it has none
    cut                           from where it started, as `planner.state.cuts` writes it
    """

    job: str
    generation: int
    plan_digest: str
    rank: int
    placement_id: str
    offer_id: str
    cloud: str
    target: str
    region: str
    zone: str
    pool: str
    instance_type: str
    capacity: str
    nodes: int
    gpus: int
    vcpus: int
    addresses: tuple[str, ...]
    usd_per_hour: Decimal
    status: RunStatus = RunStatus.STARTING
    started_at: str = ""
    ended_at: str | None = None
    fenced_at: str | None = None
    cut: str | None = None
    version: int = 0
    stop_after_hours: float | None = None
    budget_usd: Decimal | None = None

    @property
    def id(self) -> str:
        """`NAME-g3`."""
        return f"{self.job}-g{self.generation}"

    @property
    def parts(self) -> tuple[RunPart, ...]:
        """Where its nodes are, in order of ranks: in one place, or in one per cloud.  Raises ValueError for an offer id that is none."""
        names = ("cloud", "target", "region", "zone", "instance_type", "capacity")
        found: list[RunPart] = []
        for text, nodes in parts_of_offer_id(self.offer_id):
            offer = offer_name(text)
            first = sum(part.nodes for part in found)
            found.append(RunPart(**{n: getattr(offer, n) for n in names}, nodes=nodes, first_rank=first))
        return tuple(found) or (RunPart(**{n: getattr(self, n) for n in names}, nodes=self.nodes),)

    def part_of(self, rank: int) -> RunPart:
        """Where the node of a rank is."""
        return next(part for part in reversed(self.parts) if rank >= part.first_rank)

    @property
    def holding(self) -> Holding:
        """What it takes from its pool; of a job in several clouds, as if all of it were the first part's (see `planner.app.recall`)."""
        return Holding(
            job=self.job,
            pool=self.pool,
            instance_type=self.instance_type,
            region=self.region,
            target=self.target,
            capacity=self.capacity,
            nodes=self.nodes,
            gpus=self.gpus,
            vcpus=self.vcpus,
            addresses=self.addresses,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node as last seen."""

    rank: int
    instance_id: str
    address: str
    status: NodeStatus = NodeStatus.RUNNING
    at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An intent and, once known, its result.  `generation` None: the stack is of no launch (network, access)."""

    id: int
    job: str
    stack: str
    action: Action
    generation: int | None
    at: str
    outcome: Outcome | None = None
    code: str = ""
    kind: str = ""
    scope: str = ""
    detail: str = ""
    ended_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A stack that skyplan applied.  `document` is its Terraform JSON, `variables` its inputs, `backend` where its state lies: all that destroying needs.

    job      None for a network, which jobs share
    outputs  of a network, access or address stack, as its last apply left them; None where that is not known.  Who may not read its state reads them here
    """

    name: str
    kind: str
    job: str | None
    cloud: str
    target: str
    region: str
    generation: int | None
    backend: Backend
    document: dict[str, Any]
    variables: dict[str, Any]
    outputs: dict[str, Any] | None = None
    status: StackStatus = StackStatus.TOUCHED
    at: str = ""
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to change one job, or one network.  `token` rises with every change of holder: a write under an older token is refused."""

    name: str
    holder: str
    token: int
    expires_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to a job, for `status` and for people."""

    job: str
    generation: int | None
    at: str
    kind: str
    text: str
