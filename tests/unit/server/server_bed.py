"""A record with one job in it, a server over it, and nodes that talk to it."""

from __future__ import annotations

import io
import json
import secrets
import uuid
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from planner.model.project import Backend
from planner.model.record import Action, Node, Stack, stamp
from planner.model.runtime import NodeIdentity, Refusal, Refused
from planner.model.server import IdentityTrust, ServerSettings
from planner.server.app import make_app
from planner.server.identity.one_time import OneTime
from planner.server.log import Log
from planner.server.services import Services
from planner.state.record import Record
from planner.state.runtime import Runtime
from tests.contract.beds import RUN as A_RUN

with warnings.catch_warnings():
    # Starlette asks for another HTTP client than the one that its neighbours here need
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

NOW = datetime(2026, 7, 30, 12, tzinfo=UTC)
PROJECT = "acme"
URL = "http://127.0.0.1:8443"
SETTINGS = ServerSettings(url=URL, listen=("127.0.0.1", 0), identity=IdentityTrust(audience=URL))
RUN = replace(A_RUN, addresses=("10.1.0.4", "10.1.0.5"))
STACK = Stack(
    name="cmp-train",
    kind="compute",
    job="train",
    cloud="aws",
    target="prod",
    region="us-east-1",
    generation=1,
    backend=Backend(kind="s3", settings=(("bucket", "b"),)),
    document={},
    variables={},
)


class Said:
    """A platform that believes whatever machine is named, `good` before it."""

    def verify(self, value: Any, now: datetime) -> NodeIdentity:
        if not isinstance(value, str) or not value.startswith("good "):
            raise Refused(Refusal.IDENTITY, "the signature does not hold")
        return NodeIdentity(scheme="aws-iid", cloud="aws", account="1", instance_id=value.split()[1])


@dataclass
class Clock:
    """The time, as the test has it."""

    at: datetime = NOW

    def __call__(self) -> datetime:
        return self.at

    def pass_(self, **time: float) -> None:
        self.at += timedelta(**time)


@contextmanager
def writing(record: Record, job: str = "train") -> Iterator[Any]:
    lease = record.take_lease(job, "me", NOW, timedelta(minutes=10))
    try:
        yield record.writer(lease)
    finally:
        record.release(lease, NOW)


def launch(record: Record, job: str = "train", *, nodes: int = 2) -> int:
    """A generation with its nodes `i-<job>-<rank>`, running."""
    with writing(record, job) as writer:
        run = writer.issue(replace(RUN, job=job, nodes=nodes), NOW)
        stack = replace(STACK, name=f"cmp-{job}-g{run.generation}", job=job, generation=run.generation)
        intent = writer.intend(stack, Action.APPLY, NOW)
        found = [Node(rank=k, instance_id=f"i-{job}-{k}", address=f"10.1.0.{k + 4}") for k in range(nodes)]
        writer.launched(intent, run.generation, found, NOW)
        return run.generation


@dataclass
class Agent:
    """A node as the server sees it."""

    client: Any
    job: str = "train"
    generation: int = 1
    rank: int = 0
    key: str = field(default_factory=lambda: secrets.token_hex(16))
    stream: str = field(default_factory=lambda: str(uuid.uuid4()))
    session: str = ""
    seq: int = 0

    def join(self, **changes: Any) -> Any:
        body = {
            "job": self.job,
            "generation": self.generation,
            "rank": self.rank,
            "instance_id": f"i-{self.job}-{self.rank}",
            "proof": {"scheme": "aws-iid", "value": f"good i-{self.job}-{self.rank} {secrets.token_hex(4)}"},
            "key": self.key,
            "agent": "1",
            "at": stamp(NOW),
            **changes,
        }
        answer = self.client.post("/v1/join", json=body)
        if answer.status_code == 200:
            self.session = answer.json()["session"]
        return answer

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.session}"}

    def item(self, kind: str = "progress", **fields: Any) -> dict[str, Any]:
        self.seq += 1
        return {"seq": self.seq, "kind": kind, "at": stamp(NOW), **fields}

    def send(self, *items: Mapping[str, Any], **changes: Any) -> Any:
        body = {"stream": self.stream, "items": list(items), **changes}
        return self.post("/v1/report", body)

    def post(self, path: str, body: Any) -> Any:
        headers = {**self.headers, "Content-Type": "application/json"}
        return self.client.post(path, content=json.dumps(body).encode(), headers=headers)

    def get(self, path: str) -> Any:
        return self.client.get(path, headers=self.headers)


@dataclass
class Bed:
    """All of it."""

    record: Record
    runtime: Runtime
    services: Services
    clock: Clock
    app: Any
    client: TestClient
    log: io.StringIO

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.getvalue().splitlines()]


@contextmanager
def bed(
    url: str, *, settings: ServerSettings = SETTINGS, runtime: Any = None, accounts: Any = None, **more: Any
) -> Iterator[Bed]:
    record = Record.open(url, PROJECT)
    real = Runtime.open(url, PROJECT)
    clock = Clock()
    services = Services(
        record=record,
        runtime=runtime(real) if runtime else real,
        settings=settings,
        verifiers={"aws-iid": Said(), "one-time": OneTime()},
        clock=clock,
        project=PROJECT,
        accounts=accounts or {},
    )
    log = io.StringIO()
    app = make_app(services, log=Log(log), **more)
    try:
        with TestClient(app, base_url=URL, client=("127.0.0.1", 50000)) as client:
            yield Bed(record=record, runtime=real, services=services, clock=clock, app=app, client=client, log=log)
    finally:
        real.close()
        record.close()


def sqlite(folder: Path) -> str:
    return f"sqlite:///{folder / 'record.sqlite'}"
