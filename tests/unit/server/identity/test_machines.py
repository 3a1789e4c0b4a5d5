"""A machine takes its seat by the platform's words for it, where the record has Terraform's: on GCP and Azure the two differ."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from planner.model.offer import Cloud
from planner.model.project import Backend
from planner.model.record import Action, Node, Run, Stack
from planner.model.runtime import NodeIdentity, Refusal, Refused, Seat
from planner.state.record import Record
from planner.state.runtime import Runtime
from tests.unit.server.broker.bed import node, recorded

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SEAT = Seat(job="train", generation=1, rank=0)
OFFER = {
    Cloud.AWS: "aws:prod/us-east-1/use1-az1/p5.48xlarge/spot",
    Cloud.GCP: "gcp:prod/us-central1/us-central1-a/a3-highgpu-8g/spot",
    Cloud.AZURE: "azure:prod/eastus/eastus-1/Standard_ND96isr_H100_v5/spot",
}
NAMES = {Cloud.AWS: f"i-{0:017x}", Cloud.GCP: "node-0", Cloud.AZURE: "node-0"}


@pytest.fixture
def runtime(tmp_path: Path, cloud: Cloud) -> Iterator[Runtime]:
    url = f"sqlite:///{tmp_path / 'record.sqlite'}"
    record, made = Record.open(url, "acme"), Runtime.open(url, "acme")
    lease = record.take_lease("train", "me", NOW, timedelta(minutes=10))
    writer = record.writer(lease)
    names = ("placement_id", "pool")
    place = dict(zip(("region", "zone", "instance_type", "capacity"), OFFER[cloud].split("/")[1:], strict=True))
    money = {"gpus": 8, "vcpus": 1, "usd_per_hour": Decimal(1)}
    run = Run(
        job="train",
        generation=0,
        plan_digest="d",
        rank=1,
        offer_id=OFFER[cloud],
        cloud=cloud.value,
        target="prod",
        nodes=1,
        addresses=(),
        **dict.fromkeys(names, ""),
        **place,
        **money,
    )
    issued = writer.issue(run, NOW)
    stack = Stack(
        name="cmp-train-g1",
        kind="compute",
        job="train",
        cloud=cloud.value,
        target="prod",
        region="r",
        generation=issued.generation,
        backend=Backend(),
        document={},
        variables={},
    )
    writer.launched(
        writer.intend(stack, Action.APPLY, NOW),
        issued.generation,
        [Node(rank=0, instance_id=recorded(cloud), address="")],
        NOW,
    )
    record.release(lease, NOW)
    yield made
    made.close()
    record.close()


def admit(runtime: Runtime, who: NodeIdentity, claimed: str) -> None:
    times = {"at": NOW, "expires_at": NOW + timedelta(hours=1)}
    runtime.admit(SEAT, who, instance_id=claimed, key_sha256="k", proof_sha256=f"{who}", token_sha256="t", **times)


@pytest.mark.parametrize("cloud", OFFER)
def test_the_named_machine_takes_its_seat_and_no_other_does(runtime: Runtime, cloud: Cloud) -> None:
    for who, claimed in (
        (node(cloud, machine=1), "node-1" if cloud is not Cloud.AWS else f"i-{1:017x}"),
        (node(cloud), ""),
    ):
        with pytest.raises(Refused) as caught:
            admit(runtime, who, claimed)
        assert caught.value.word is Refusal.IDENTITY
    admit(runtime, node(cloud), NAMES[cloud])
