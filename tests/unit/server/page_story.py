"""What the pages are shown over: a job that ran on two nodes, lost one, and went on elsewhere from a checkpoint."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from planner.model.record import Action, Node, NodeStatus, RunStatus, StackStatus, stamp
from planner.model.runtime import Candidate, CredentialIssue, Seat, checkpoint_mac, checkpoint_message
from tests.unit.server import server_bed as sb

EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


def checkpoint(bed: sb.Bed, step: int, generation: int = 1) -> dict:
    uri, digest = f"s3://acme-ckpt/train/g{generation}/step-{step:012d}/", f"{step:064x}"
    message = checkpoint_message(
        project=sb.PROJECT, job="train", generation=generation, step=step, uri=uri, digest=digest
    )
    mac = checkpoint_mac(bed.runtime.manifest_key("train", generation), message)
    return {"step": step, "uri": uri, "digest": digest, "mac": mac, "bytes": 5 * 2**30, "files": 3}


def told(bed: sb.Bed, agent: sb.Agent, kind: str, **fields) -> None:
    answer = agent.send({**agent.item(kind, **fields), "at": stamp(bed.clock())})
    assert answer.status_code == 200, answer.text


def story(bed: sb.Bed) -> None:
    """A job that ran on two nodes, lost one, and went on elsewhere from a checkpoint."""
    sb.launch(bed.record)
    first = sb.Agent(bed.client)
    first.join()
    for k in range(10):
        bed.clock.pass_(minutes=5)
        told(bed, first, "progress", step=k * 100, loss=2.0 / (k + 1))
    told(bed, first, "checkpoint", **checkpoint(bed, 800))
    told(bed, first, "event", word="odd", text=EVIL)
    told(bed, first, "log", text=f"{EVIL}\nsecond line")
    bed.clock.pass_(minutes=10)
    with sb.writing(bed.record) as writer:
        lost = Node(rank=1, instance_id="i-train-1", address="10.1.0.5", status=NodeStatus.LOST)
        writer.seen(1, [lost], RunStatus.DEGRADED, bed.clock(), "r01 (i-train-1) lost")
    bed.clock.pass_(hours=1)
    with sb.writing(bed.record) as writer:
        moved = replace(
            sb.RUN,
            offer_id="aws:prod/us-west-2/usw2-az1/p5.48xlarge/spot",
            region="us-west-2",
            zone="usw2-az1",
            stop_after_hours=48.0,
        )
        run = writer.issue(moved, bed.clock())
        stack = replace(sb.STACK, name="cmp-train-g2", generation=2, status=StackStatus.TOUCHED)
        intent = writer.intend(stack, Action.APPLY, bed.clock())
        nodes = [Node(rank=k, instance_id=f"i-new-{k}", address=f"10.2.0.{k + 4}") for k in range(2)]
        writer.launched(intent, run.generation, nodes, bed.clock())
        writer.run_status(1, RunStatus.ENDED, bed.clock(), "moved away")
    seat = Seat(job="train", generation=2, rank=0)
    bed.runtime.begin_cut(seat, bed.clock())
    names = {k: v for k, v in checkpoint(bed, 800).items() if k != "files"}
    bed.runtime.choose_cut(seat, bed.clock(), [Candidate(generation=1, **names)], [])
    second = sb.Agent(bed.client, generation=2)
    second.join(instance_id="i-new-0", proof={"scheme": "aws-iid", "value": "good i-new-0 1"}, at=stamp(bed.clock()))
    for step in (810, 870):
        bed.clock.pass_(minutes=1)
        told(bed, second, "progress", step=step, loss=0.2)
    told(bed, second, "heartbeat", gpu_memory_mib=70123, gpu_utilization_percent=97.5)
    bed.runtime.issue(
        CredentialIssue(
            id="l1",
            seat=seat,
            store="s3",
            uri="s3://acme-data/set/",
            access="read",
            identity="arn:aws:iam::1:role/skyplan/acme/data/x",
            issued_at=stamp(bed.clock()),
            expires_at=stamp(bed.clock() + timedelta(hours=1)),
        ),
        bed.clock(),
    )
