"""A project with jobs launched, and the words that nodes would say, for tests of the record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from planner.model.record import Node, NodeStatus, Run, RunStatus, stamp
from planner.model.runtime import (
    Candidate,
    Delivered,
    Item,
    Joined,
    Kind,
    NodeIdentity,
    Report,
    Seat,
    checkpoint_mac,
    checkpoint_message,
)
from planner.state.record import Record
from planner.state.runtime import Runtime

NOW = datetime(2026, 7, 30, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
PROJECT = "acme"
RUN = Run(
    job="train",
    generation=0,
    plan_digest="sha256:1",
    rank=1,
    placement_id="p0123456789",
    offer_id="aws:prod/us-east-1/use1-az1/p5.48xlarge/spot",
    cloud="aws",
    target="prod",
    region="us-east-1",
    zone="use1-az1",
    pool="aws:prod/use1-az1/p5/spot",
    instance_type="p5.48xlarge",
    capacity="spot",
    nodes=2,
    gpus=16,
    vcpus=384,
    addresses=(),
    usd_per_hour=Decimal("61.2345"),
)
AWS = NodeIdentity(scheme="aws-iid", cloud="aws", account="123456789012")
BY_HAND = NodeIdentity(scheme="one-time", cloud="")


def seat(generation: int = 1, rank: int = 0, job: str = "train") -> Seat:
    return Seat(job=job, generation=generation, rank=rank)


def item(seq: int, kind: Kind = Kind.PROGRESS, at: datetime = NOW, **body: Any) -> Item:
    return Item(seq=seq, kind=kind, at=stamp(at), body=body)


def report(*items: Item, of: Seat | None = None, stream: str = "s1") -> Report:
    return Report(seat=of or seat(), stream=stream, items=items)


@dataclass
class Bed:
    """A record, its runtime, and whoever launches."""

    record: Record
    runtime: Runtime

    def close(self) -> None:
        self.record.close()
        self.runtime.close()

    def launch(self, *machines: str, job: str = "train", at: datetime = NOW, **changes: Any) -> int:
        """Issue a generation; one node per machine, running."""
        lease = self.record.take_lease(job, "me", at, MINUTE, gone=lambda _: True)
        writer = self.record.writer(lease)
        run = writer.issue(replace(RUN, job=job, nodes=max(1, len(machines)), **changes), at)
        nodes = [Node(rank=k, instance_id=m, address="10.1.0.4") for k, m in enumerate(machines)]
        if nodes:
            writer.seen(run.generation, nodes, RunStatus.RUNNING, at, "launched")
        return run.generation

    def move(self, generation: int, status: RunStatus, *nodes: Node, job: str = "train", at: datetime = NOW) -> None:
        """What `sync` or `destroy` would write."""
        lease = self.record.take_lease(job, "me", at, MINUTE, gone=lambda _: True)
        self.record.writer(lease).seen(generation, nodes, status, at, "moved")

    def renamed(self, generation: int, rank: int, machine: str) -> None:
        """The record learns of another machine for a rank."""
        node = Node(rank=rank, instance_id=machine, address="", status=NodeStatus.RUNNING)
        self.move(generation, RunStatus.RUNNING, node)

    def join(
        self, of: Seat | None = None, machine: str = "i-0", identity: NodeIdentity = AWS, **changes: Any
    ) -> Joined:
        """As `machine` with a key and a proof of its own, until one hour from NOW; `changes` say otherwise."""
        given: dict[str, Any] = {
            "instance_id": machine,
            "key_sha256": f"key of {machine}",
            "proof_sha256": f"proof of {machine}",
            "token_sha256": f"token of {machine}",
            "at": NOW,
            "expires_at": NOW + 60 * MINUTE,
        }
        return self.runtime.admit(of or seat(), identity, **(given | changes))

    def deliver(self, *reports: Report, at: datetime = NOW) -> tuple[Delivered, ...]:
        return self.runtime.deliver(reports, at)

    def checkpoint(self, step: int, generation: int = 1, job: str = "train", name: str = "") -> Candidate:
        """An authentic one."""
        uri = f"s3://ckpt/{job}/g{generation}/step-{step:012d}{name}/"
        digest = f"{step:064x}"
        message = checkpoint_message(project=PROJECT, job=job, generation=generation, step=step, uri=uri, digest=digest)
        mac = checkpoint_mac(self.runtime.manifest_key(job, generation), message)
        return Candidate(generation=generation, step=step, uri=uri, digest=digest, mac=mac, bytes=10)

    def kinds(self, job: str = "train") -> list[str]:
        return [event.kind for _, event in self.runtime.events(job)]


def told(of: Candidate, seq: int) -> Item:
    """A checkpoint as its node tells of it."""
    body = {name: getattr(of, name) for name in ("step", "uri", "digest", "mac", "bytes")}
    return item(seq, Kind.CHECKPOINT, **body, files=1)
