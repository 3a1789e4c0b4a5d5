"""A job's view as JSON, with its types: what `/v1/jobs` answers, the OpenAPI says and `status --json` prints.

Money is decimal text with four places, times are UTC ISO text, unknown is null.  Decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from planner.model.record import Node, Run

if TYPE_CHECKING:
    from planner.app.watching import Cost, JobView, Move
    from planner.model.record import Event
    from planner.model.runtime import Checkpoint, CredentialIssue, LogChunk, NodeSeen, Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSummary:
    """A job in a list."""

    job: str
    run_id: str | None
    status: str | None
    offer_id: str | None
    nodes_running: int
    nodes_wanted: int
    step: int | None
    loss: float | None
    steps_per_second: float | None
    told_at: str | None
    heard_seconds: float | None
    usd_per_hour: str | None
    usd_so_far: str
    unfinished: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDocument:
    """A node as the record has it, and what was last heard of it."""

    rank: int
    instance_id: str
    address: str
    status: str
    cloud: str
    target: str
    region: str
    zone: str
    instance_type: str
    heard_at: str | None
    gpu_memory_mib: int | None
    gpu_utilization_percent: float | None
    exit_code: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """One run."""

    run: str
    generation: int
    offer_id: str
    placement_id: str
    rank: int
    status: str
    usd_per_hour: str
    started_at: str
    ended_at: str | None
    fenced_at: str | None
    stop_after_hours: float | None
    budget_usd: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLineDocument:
    """What the nodes of one run cost."""

    run: str
    nodes: int
    what: str
    node_hours: float
    usd_per_node_hour: str
    usd: str
    counting: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CostDocument:
    """So far, and what it is made of."""

    usd: str
    as_of: str
    left_out: str
    lines: list[CostLineDocument]


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """From one run to the next."""

    from_run: str
    to_run: str
    at: str
    from_offer: str
    to_offer: str
    from_status: str
    last_step: int | None
    resumed_step: int | None
    repeated_steps: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointDocument:
    """A checkpoint, less its mac."""

    generation: int
    step: int
    uri: str
    digest: str
    bytes: int
    at: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDocument(JobSummary):
    """A job, whole, but for its steps."""

    first_applied_at: str
    nodes: list[NodeDocument]
    cost: CostDocument
    placements: list[Placement]
    migrations: list[Migration]
    checkpoints: list[CheckpointDocument]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressDocument:
    """One step."""

    generation: int
    rank: int
    step: int
    at: str
    loss: float | None
    rate: float | None
    metrics: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDocument:
    """Something that happened."""

    id: int
    at: str
    generation: int | None
    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDocument:
    """Lines that a node's job printed."""

    id: int
    at: str
    rank: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialDocument:
    """A data credential that was given out; never the credential."""

    generation: int
    rank: int
    id: str
    store: str
    uri: str
    access: str
    identity: str
    issued_at: str
    expires_at: str


def summary(v: JobView) -> JobSummary:
    """A job in a list."""
    run, newest = v.status.run, v.newest
    return JobSummary(
        job=v.job,
        run_id=run.id if run else None,
        status=run.status.value if run else None,
        offer_id=run.offer_id if run else None,
        nodes_running=v.status.alive,
        nodes_wanted=run.nodes if run else 0,
        step=newest.step if newest else None,
        loss=newest.loss if newest else None,
        steps_per_second=v.rate,
        told_at=newest.at if newest else None,
        heard_seconds=v.heard_seconds,
        usd_per_hour=_money(run.usd_per_hour) if run else None,
        usd_so_far=_money(v.cost.usd),
        unfinished=v.status.unfinished,
    )


def document(v: JobView) -> JobDocument:
    """A job, whole, but for its steps."""
    run, short = v.status.run, summary(v)
    common: dict[str, Any] = {f.name: getattr(short, f.name) for f in fields(short)}
    return JobDocument(
        **common,
        first_applied_at=v.status.first_applied_at,
        nodes=[_node(run, n, v.seen_of(n.rank)) for n in v.status.nodes] if run else [],
        cost=cost_document(v.cost),
        placements=[_placement(r) for r in v.runs],
        migrations=[_move(m) for m in v.moves],
        checkpoints=[checkpoint_document(c) for c in v.checkpoints],
    )


def progress_document(p: Progress) -> ProgressDocument:
    """One step."""
    return ProgressDocument(
        generation=p.seat.generation,
        rank=p.seat.rank,
        step=p.step,
        at=p.at,
        loss=p.loss,
        rate=p.rate,
        metrics=dict(p.metrics),
    )


def checkpoint_document(c: Checkpoint) -> CheckpointDocument:
    """A checkpoint, less its mac."""
    return CheckpointDocument(
        generation=c.generation, step=c.step, uri=c.uri, digest=c.digest, bytes=c.bytes, at=c.at, source=c.source
    )


def event_document(number: int, e: Event) -> EventDocument:
    """Something that happened."""
    return EventDocument(id=number, at=e.at, generation=e.generation, kind=e.kind, text=e.text)


def log_document(c: LogChunk) -> LogDocument:
    """Lines that a node's job printed."""
    return LogDocument(id=c.id, at=c.at, rank=c.seat.rank, text=c.text)


def credential_document(i: CredentialIssue) -> CredentialDocument:
    """A data credential that was given out."""
    return CredentialDocument(
        generation=i.seat.generation,
        rank=i.seat.rank,
        id=i.id,
        store=i.store,
        uri=i.uri,
        access=i.access,
        identity=i.identity,
        issued_at=i.issued_at,
        expires_at=i.expires_at,
    )


def cost_document(c: Cost) -> CostDocument:
    """So far, and what it is made of."""
    lines = [
        CostLineDocument(
            run=line.run,
            nodes=line.nodes,
            what=line.what,
            node_hours=round(line.node_hours, 4),
            usd_per_node_hour=_money(line.usd_per_node_hour),
            usd=_money(line.usd),
            counting=line.counting,
        )
        for line in c.lines
    ]
    return CostDocument(usd=_money(c.usd), as_of=c.as_of, left_out=c.left_out, lines=lines)


def _node(run: Run, n: Node, seen: NodeSeen | None) -> NodeDocument:
    place = run.part_of(n.rank)
    return NodeDocument(
        rank=n.rank,
        instance_id=n.instance_id,
        address=n.address,
        status=n.status.value,
        cloud=place.cloud,
        target=place.target,
        region=place.region,
        zone=place.zone,
        instance_type=place.instance_type,
        heard_at=seen.at if seen else None,
        gpu_memory_mib=seen.gpu_memory_mib if seen else None,
        gpu_utilization_percent=seen.gpu_utilization_percent if seen else None,
        exit_code=seen.exit_code if seen else None,
    )


def _placement(r: Run) -> Placement:
    return Placement(
        run=r.id,
        generation=r.generation,
        offer_id=r.offer_id,
        placement_id=r.placement_id,
        rank=r.rank,
        status=r.status.value,
        usd_per_hour=_money(r.usd_per_hour),
        started_at=r.started_at,
        ended_at=r.ended_at,
        fenced_at=r.fenced_at,
        stop_after_hours=r.stop_after_hours,
        budget_usd=_money(r.budget_usd) if r.budget_usd is not None else None,
    )


def _move(m: Move) -> Migration:
    return Migration(
        from_run=m.before.id,
        to_run=m.after.id,
        at=m.after.started_at,
        from_offer=m.before.offer_id,
        to_offer=m.after.offer_id,
        from_status=m.before.status.value,
        last_step=m.last_step,
        resumed_step=m.resumed_step,
        repeated_steps=m.repeated_steps,
    )


def _money(amount: Decimal) -> str:
    return f"{amount:.4f}"
