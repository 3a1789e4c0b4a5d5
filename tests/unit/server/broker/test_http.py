"""The broker over HTTP: the protocol's request and answer, limits, refusals by word, and a log without a secret."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from typing import Any

import httpx
import pytest

from planner.model.errors import PermissionDenied, Unavailable
from planner.model.offer import Cloud
from planner.model.runtime import NodeIdentity, Refusal, Refused, Seat
from planner.server.broker import MAX_BODY_BYTES, BrokerServices, make_broker_app
from planner.server.log import Log
from tests.unit.server.broker.bed import NOW, Bed, node

SEAT = Seat(job="train", generation=3, rank=0)
NODE_KEY = "node-key-" + "k" * 40
PROOF = {
    "scheme": "aws-sts",
    "value": {
        "method": "POST",
        "url": "u",
        "headers": {"authorization": "Signature=" + "0" * 64},
        "body": "proof-body",
    },
}


class Verifier:
    """Believes what the test says."""

    def __init__(self) -> None:
        self.says: NodeIdentity | Exception = node(Cloud.AWS)
        self.seen: list[Any] = []

    def verify(self, value: Any, now: Any) -> NodeIdentity:
        self.seen.append(value)
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


class Front:
    def __init__(self, folder) -> None:
        import hashlib

        self.bed = Bed(folder)
        self.bed.join(SEAT, hashlib.sha256(NODE_KEY.encode()).hexdigest())
        self.verifier, self.out, self.time = Verifier(), io.StringIO(), 0.0
        self.app = make_broker_app(
            BrokerServices(
                broker=self.bed.broker,
                verifiers={"aws-sts": self.verifier},
                clock=lambda: NOW + timedelta(seconds=self.time),
                log=Log(self.out),
                steady=lambda: self.time,
            )
        )

    def send(self, method: str = "POST", path: str = "/v1/leases", **given: Any) -> httpx.Response:
        import asyncio

        async def go() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://broker") as client:
                return await client.request(method, path, **given)

        return asyncio.run(go())

    def ask(self, **change: Any) -> httpx.Response:
        body = {
            "job": "train",
            "generation": 3,
            "rank": 0,
            "proof": PROOF,
            "key": NODE_KEY,
            "uri": "s3://all/ckpt/",
            "access": "write",
            **change,
        }
        return self.send(json={k: v for k, v in body.items() if v != "gone"})

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.getvalue().splitlines()]


@pytest.fixture
def front(tmp_path) -> Front:
    return Front(tmp_path)


def test_a_lease_as_the_protocol_says(front):
    got = front.ask()
    assert got.status_code == 200
    assert got.headers["cache-control"] == "no-store"
    body = got.json()
    assert body == {
        "id": body["id"],
        "store": "s3",
        "uri": "s3://all/ckpt/g3/",
        "access": "write",
        "issued_at": "2026-11-30T12:00:00.000000Z",
        "expires_at": "2026-11-30T13:00:00.000000Z",
        "aws": {
            "access_key_id": "fake-access_key_id-1",
            "secret_access_key": "fake-secret_access_key-1",
            "session_token": "fake-session_token-1",
        },
    }
    assert [i.id for i in front.bed.ledger.issues] == [body["id"]]
    assert front.verifier.seen == [PROOF["value"]]


def test_one_line_a_lease_and_no_secret_in_it(front):
    body = front.ask().json()
    (line,) = front.lines
    assert {k: line[k] for k in ("event", "id", "seat", "uri", "access", "until")} == {
        "event": "lease",
        "id": body["id"],
        "seat": "train-g3-r0",
        "uri": "s3://all/ckpt/g3/",
        "access": "write",
        "until": "2026-11-30T13:00:00.000000Z",
    }
    text = front.out.getvalue() + repr(front.bed.ledger.issues)
    for secret in (*body["aws"].values(), NODE_KEY, "proof-body", "0" * 64):
        assert secret not in text


@pytest.mark.parametrize(
    ("error", "status", "word", "code"),
    [
        (Refused(Refusal.IDENTITY, "no"), 403, "identity", "SKY-RUN-516"),
        (Unavailable([]), 503, "busy", "SKY-RUN-510"),
        (RuntimeError("secret words"), 500, "failed", "SKY-RUN-510"),
    ],
)
def test_what_the_verifier_says_is_answered(front, error, status, word, code):
    front.verifier.says = error
    got = front.ask()
    assert (got.status_code, got.json()["error"], got.json()["code"]) == (status, word, code)
    assert ("retry-after" in got.headers) == (status == 503)
    assert "secret words" not in got.text + front.out.getvalue()
    assert front.lines[0]["event"] in {"refused", "error"}


@pytest.mark.parametrize(
    ("word", "status"),
    [
        (Refusal.FENCED, 409),
        (Refusal.ENDED, 410),
        (Refusal.UNKNOWN, 401),
        (Refusal.KEY, 409),
        (Refusal.EARLY, 425),
        (Refusal.REPLAYED, 403),
    ],
)
def test_refusals_by_word(front, word, status):
    front.bed.ledger.refusals["train-g3"] = word
    got = front.ask()
    assert (got.status_code, got.json()["error"]) == (status, word.value)


def test_what_no_plan_grants_is_refused_with_its_own_code(front):
    got = front.ask(uri="s3://all/secret/")
    assert (got.status_code, got.json()["error"], got.json()["code"]) == (400, "malformed", "SKY-RUN-515")
    assert front.lines[0]["code"] == "SKY-RUN-515"


def test_what_the_cloud_says_stays_in_the_log(front):
    from dataclasses import replace

    from planner.model.diagnostic import Diagnostic

    class No:
        def minter(self, store):
            return self

        def mint(self, order):
            raise PermissionDenied(
                [Diagnostic(code="SKY-APPLY-317", summary="AWS refused AssumeRole: arn:x is not trusted")]
            )

    front.bed.broker = replace(front.bed.broker, minters=No())
    front.app = make_broker_app(
        BrokerServices(
            broker=front.bed.broker, verifiers={"aws-sts": front.verifier}, clock=lambda: NOW, log=Log(front.out)
        )
    )
    got = front.ask()
    assert (got.status_code, got.json()["code"]) == (503, "SKY-RUN-515")
    assert "arn:x" not in got.text
    assert "arn:x" in front.lines[0]["why"]


def test_a_database_that_is_locked_is_tried_again(front):
    from sqlalchemy.exc import OperationalError

    def locked(_seat):
        raise OperationalError("SELECT 1", {}, Exception("database is locked"))

    front.bed.ledger.run = locked
    got = front.ask()
    assert (got.status_code, got.json()["error"]) == (503, "busy")
    assert "retry-after" in got.headers
    assert "SELECT" not in got.text + front.out.getvalue()


def test_a_scheme_that_is_not_set_up(front):
    got = front.ask(proof={"scheme": "one-time", "value": "A" * 43})
    assert (got.status_code, got.json()["error"]) == (403, "identity")
    assert front.verifier.seen == []


@pytest.mark.parametrize(
    "change",
    [
        {"job": "UPPER"},
        {"job": "a" * 64},
        {"job": "gone"},
        {"generation": 0},
        {"generation": "3"},
        {"generation": 2.5},
        {"rank": -1},
        {"rank": True},
        {"proof": "x"},
        {"proof": {"scheme": "X", "value": "y"}},
        {"proof": {"scheme": "aws-sts"}},
        {"key": "short"},
        {"key": "k" * 200},
        {"key": "k" * 20 + "\n"},
        {"uri": ""},
        {"uri": "x" * 3000},
        {"access": "delete"},
    ],
)
def test_what_is_malformed_is_told_by_its_field_and_not_by_its_words(front, change):
    got = front.ask(**change)
    assert (got.status_code, got.json()["error"], got.json()["code"]) == (400, "malformed", "SKY-RUN-526")
    assert next(iter(change)) in got.json()["reason"]
    assert "x" * 100 not in got.text
    assert NODE_KEY not in got.text
    assert front.verifier.seen == []


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 20_000])
def test_what_is_no_json_object(front, content):
    got = front.send(content=content, headers={"content-type": "application/json"})
    assert (got.status_code, got.json()["error"]) == (400, "malformed")


def test_a_body_that_is_too_long_is_not_read(front):
    got = front.send(content=b" " * (MAX_BODY_BYTES + 1), headers={"content-type": "application/json"})
    assert (got.status_code, got.json()["error"]) == (413, "too-large")

    async def parts():
        for _ in range(100):
            yield b" " * 1024

    got = front.send(content=parts(), headers={"content-type": "application/json"})
    assert got.status_code == 413


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/v1/leases", 405), ("POST", "/v1/join", 404), ("GET", "/docs", 404), ("GET", "/metrics", 404)],
)
def test_it_has_one_route(front, method, path, status):
    got = front.send(method, path)
    assert got.status_code == status
    assert set(got.json()) == {"error", "code", "reason"}
    assert got.headers["cache-control"] == "no-store"


def test_it_says_that_it_lives_and_what_it_speaks(front):
    assert front.send("GET", "/healthz").json() == {"status": "ok"}
    assert set(front.send("GET", "/openapi.json").json()["paths"]) == {"/v1/leases", "/healthz"}


def test_who_asks_too_often_waits(front):
    codes = [front.ask().status_code for _ in range(41)]
    assert codes == [200] * 40 + [429]
    got = front.ask()
    assert int(got.headers["retry-after"]) >= 1
    front.time += 25
    assert front.ask().status_code == 200
