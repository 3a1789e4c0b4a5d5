"""One lease through everything: the metadata service's keys, the node's proof, the broker with its plan and its record, the node's memory, the job's client."""

from __future__ import annotations

import hashlib
import io
import json
import socket
import threading
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import uvicorn

from modules.agent import client, proofs
from modules.agent.cred.endpoint import Endpoint
from modules.agent.cred.grants import wanted
from modules.agent.cred.holder import Holder
from modules.agent.link import Link
from modules.agent.settings import Seat, Service
from planner.model.offer import Cloud
from planner.model.runtime import Refusal
from planner.model.runtime import Seat as RecordSeat
from planner.server.broker import BrokerServices, make_broker_app
from planner.server.identity import Answer, Asked
from planner.server.identity.aws_sts import AwsSts
from planner.server.log import Log
from tests.emulators.imds import Metadata
from tests.unit.server.broker.bed import Bed, node, recorded

AUDIENCE = "https://broker.example.com"
KEY = "n" * 64
SEAT = RecordSeat(job="train", generation=3, rank=0)


@pytest.fixture
def imds(monkeypatch: pytest.MonkeyPatch) -> Iterator[Metadata]:
    with Metadata() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        server.role = node(Cloud.AWS).principal.rpartition("/")[2]
        server.instance, server.account = recorded(Cloud.AWS), node(Cloud.AWS).account
        yield server


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    made = Bed(tmp_path)
    made.join(SEAT, hashlib.sha256(KEY.encode()).hexdigest())
    return made


@pytest.fixture
def holder(imds: Metadata, bed: Bed) -> Iterator[Holder]:
    def fetch(asked: Asked) -> Answer:
        status, body = imds.sts.answer(asked.url, dict(asked.headers), asked.body, datetime.now(UTC))
        return Answer(status=status, body=body)

    services = BrokerServices(
        broker=bed.broker,
        verifiers={"aws-sts": AwsSts(["sts.*.amazonaws.com"], AUDIENCE, fetch)},
        clock=lambda: datetime.now(UTC),
        log=Log(io.StringIO()),
    )
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(make_broker_app(services), log_level="critical", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        link = Link(Service(f"http://127.0.0.1:{listening.getsockname()[1]}", None, AUDIENCE))
        seat = Seat("acme", "train", 3, 0, 2)
        broker = client.Broker(link, seat, key=KEY, prove=lambda: proofs.proof("aws", AUDIENCE))
        yield Holder(broker, wanted([(bed.uri("ckpt/"), "write")]), final=FINALS.append)
        link.close()
        server.should_exit = True
        thread.join(10)


FINALS: list[str] = []


def test_a_lease_from_the_platforms_signature_to_the_jobs_client(bed: Bed, holder: Holder, tmp_path: Path) -> None:
    endpoint = Endpoint(holder, str(tmp_path / "credentials"))
    endpoint.start()
    try:
        holder.step()
        environment = endpoint.environment()
        token = Path(str(environment["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"])).read_text()
        asked = urllib.request.Request(
            str(environment["AWS_CONTAINER_CREDENTIALS_FULL_URI"]), headers={"Authorization": token}
        )
        with urllib.request.urlopen(asked, timeout=5) as answer:
            got = json.load(answer)
    finally:
        endpoint.stop()
    assert got["AccessKeyId"] == "fake-access_key_id-1"
    assert [(issue.uri, issue.access) for issue in bed.ledger.issues] == [(bed.uri("ckpt/") + "g3/", "write")]
    assert holder.source(bed.uri("ckpt/"))("write")["uri"] == bed.uri("ckpt/") + "g3/"


def test_a_fenced_node_gets_nothing_and_knows_why(bed: Bed, holder: Holder) -> None:
    FINALS.clear()
    bed.ledger.refusals["train-g3"] = Refusal.FENCED
    holder.step()
    holder.step()
    assert FINALS == ["fenced"]
    assert not bed.ledger.issues


def test_another_machine_with_a_perfect_proof_of_itself_gets_nothing(bed: Bed, holder: Holder, imds: Metadata) -> None:
    imds.instance = "i-0ffffffffffffffff"
    told: list[dict[str, str]] = []
    holder.tell = told.append
    holder.step()
    assert {body["state"] for body in told} == {"refused"}
    assert not bed.ledger.issues
