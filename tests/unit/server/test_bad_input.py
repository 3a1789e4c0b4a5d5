"""What strangers, broken agents and broken databases send: refused with a word, nothing lost, nothing told that should not be."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import DataError, OperationalError

from planner.model.errors import Unavailable
from planner.model.record import stamp
from planner.model.runtime import MAX_REPORT_BYTES
from planner.state.runtime import Runtime
from tests.unit.server.server_bed import NOW, Agent, Bed, bed, launch, sqlite
from tests.unit.server.test_node_routes import refused


@pytest.fixture
def b(tmp_path: Path) -> Iterator[Bed]:
    with bed(sqlite(tmp_path)) as made:
        launch(made.record)
        yield made


@pytest.fixture
def agent(b: Bed) -> Agent:
    made = Agent(b.client)
    made.join()
    return made


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"stream": 1, "items": []}',
        b'{"stream": "00000000-0000-0000-0000-000000000000", "items": {}}',
        b'{"stream": "00000000-0000-0000-0000-000000000000", "items": [1]}',
        b'{"stream": "00000000-0000-0000-0000-00000000000\n", "items": []}',
        b'{"stream": "00000000-0000-0000-0000-000000000000", "items": [{"seq": 1e3, "kind": "log"}]}',
        b'{"stream": "00000000-0000-0000-0000-000000000000", "items": [{"seq": ' + b"9" * 5000 + b"}]}",
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_no_report(b: Bed, agent: Agent, body: bytes) -> None:
    refused(b.client.post("/v1/report", content=body, headers=agent.headers), 400, "malformed")


@pytest.mark.parametrize("at", [None, 5, "", "yesterday", "2026-07-30T12:00:00", "0001-01-01T00:00:00+23:00"])
def test_a_time_that_is_none(agent: Agent, at: Any) -> None:
    refused(agent.send({**agent.item(step=1), "at": at}), 400, "malformed")


def test_numbers_must_rise_and_be_few(agent: Agent) -> None:
    one, two = agent.item(step=1), agent.item(step=2)
    refused(agent.send(two, one), 400, "malformed")
    refused(agent.send(one, one), 400, "malformed")
    refused(agent.send(*(agent.item("heartbeat") for _ in range(501))), 400, "malformed")


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "progress"},
        {"kind": "progress", "step": "7"},
        {"kind": "progress", "step": -1},
        {"kind": "progress", "step": 2**70},
        {"kind": "progress", "step": True},
        {"kind": "progress", "step": 1, "loss": 10**400},
        {"kind": "progress", "step": 1, "metrics": {str(k): 1 for k in range(33)}},
        {"kind": "checkpoint", "step": 1, "uri": "s3://b/", "digest": "x", "mac": "y", "bytes": 1, "files": 1},
        {"kind": "notice", "what": "doom"},
        {"kind": "notice", "what": ["spot"]},
        {"kind": "notice", "what": "spot", "deadline": "soon"},
        {"kind": "exit", "code": 2**40},
        {"kind": "event", "word": "X\0", "text": "t"},
        {"kind": "log", "text": 5},
        {"kind": "of tomorrow"},
        {"kind": None},
        {"kind": ["log"]},
    ],
    ids=lambda value: repr(value)[:40],
)
def test_one_bad_item_holds_up_no_other_and_is_told(b: Bed, agent: Agent, fields: dict[str, Any]) -> None:
    answer = agent.send(agent.item(step=1), {**agent.item(), **fields}, agent.item(step=3))
    assert answer.json()["through"] == 3
    assert [p.step for p in b.runtime.progress("train")] == [1, 3]
    assert any("malformed" in (e.kind + e.text) for _, e in b.runtime.events("train"))


def test_texts_that_no_database_takes(b: Bed, agent: Agent) -> None:
    answer = agent.send(
        agent.item("log", text="a\0b\ud800c" + "\N{SNOWMAN}" * 5000),
        agent.item("event", word="x", text="\udfff"),
        agent.item("skipped", uri="s3://b/\0", reason="\0"),
        agent.item(step=1, loss=float("nan"), metrics={"\0": float("inf"), "m": 1.0}),
    )
    assert answer.json() == {"through": 4, "requests": []}
    (chunk,) = b.runtime.logs("train", 1)
    assert chunk.text.startswith("a\ufffdb\ufffdc\N{SNOWMAN}")
    assert len(chunk.text.encode()) <= 8192
    (told,) = b.runtime.progress("train")
    assert (told.loss, told.metrics) == (None, {"m": 1.0})


def test_too_large_a_body_is_not_parsed(b: Bed, agent: Agent) -> None:
    refused(b.client.post("/v1/report", content=b" " * (MAX_REPORT_BYTES + 1), headers=agent.headers), 413, "too-large")
    refused(b.client.post("/v1/join", content=b" " * 16385), 413, "too-large")

    def parts() -> Iterator[bytes]:
        yield from (b" " * 1000 for _ in range(300))

    refused(b.client.post("/v1/report", content=parts(), headers=agent.headers), 413, "too-large")


def test_a_clock_that_is_wrong(b: Bed, agent: Agent) -> None:
    ahead = {**agent.item(step=1), "at": "2099-01-01T00:00:00Z"}
    behind = {**agent.item(step=2), "at": "2026-07-30T02:00:00+00:00"}
    assert agent.send(ahead, behind).json()["through"] == 2
    assert [p.at for p in b.runtime.progress("train")] == [stamp(NOW), "2026-07-30T02:00:00.000000Z"]
    assert Agent(b.client, rank=1).join(at="2020-01-01T00:00:00Z").status_code == 200
    (skew,) = [line for line in b.lines() if line["event"] == "skew"]
    assert skew["who"] == "train-g1-r1"
    assert b"skyplan_skewed_joins_total 1.0" in b.client.get("/metrics").content


class Failing:
    """The record, with a database that fails as often as it is told to."""

    def __init__(self, real: Runtime) -> None:
        self.real = real
        self.errors: list[Exception] = []
        self.poison: int | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def deliver(self, reports: Any, at: Any) -> Any:
        if self.errors:
            raise self.errors.pop()
        if self.poison is not None and any(r.seat.rank == self.poison for r in reports):
            raise DataError("INSERT", {"text": "hunter2"}, Exception("hunter2"))
        return self.real.deliver(reports, at)


def test_a_database_that_does_not_answer_loses_nothing(tmp_path: Path) -> None:
    with bed(sqlite(tmp_path), runtime=Failing) as b:
        launch(b.record)
        agent = Agent(b.client)
        agent.join()
        locked = OperationalError("INSERT", {"x": "hunter2"}, sqlite3.OperationalError("database is locked"))
        away = Unavailable([])
        away.__cause__ = locked
        b.services.runtime.errors[:] = [locked, away]  # type: ignore[attr-defined]
        items = [agent.item(step=1)]
        for _ in range(2):
            answer = agent.send(*items)
            refused(answer, 503, "busy")
            assert 1 <= int(answer.headers["retry-after"]) <= 10
            assert b.runtime.newest("train") is None
        assert agent.send(*items).json()["through"] == 1
        assert "hunter2" not in b.log.getvalue()


def test_a_database_that_is_locked_for_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from planner.state import engine

    monkeypatch.setattr(engine, "BUSY_SECONDS", 0.05)
    monkeypatch.setattr(engine, "_write_ahead", lambda cursor: cursor.execute("PRAGMA journal_mode"))
    with bed(sqlite(tmp_path)) as b:
        launch(b.record)
        agent = Agent(b.client)
        agent.join()
        other = sqlite3.connect(tmp_path / "record.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        items = [agent.item(step=1)]
        refused(agent.send(*items), 503, "busy")
        refused(Agent(b.client, rank=1).join(), 503, "busy")
        other.execute("ROLLBACK")
        other.close()
        assert agent.send(*items).json()["through"] == 1


def test_one_report_that_the_database_refuses_spoils_no_others(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with bed(sqlite(tmp_path), runtime=Failing) as b:
        launch(b.record, nodes=8)
        agents = [Agent(b.client, rank=k) for k in range(8)]
        for agent in agents:
            agent.join()
        b.services.runtime.poison = 3  # type: ignore[attr-defined]
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda a: a.send(a.item(step=1)), agents))
        assert [a.status_code for a in answers] == [200, 200, 200, 500, 200, 200, 200, 200]
        refused(answers[3], 500, "failed")
        assert "hunter2" not in b.log.getvalue() + answers[3].text


def test_what_is_no_route(b: Bed) -> None:
    refused(b.client.get("/v1/nothing"), 404, "not-found")
    answer = b.client.get("/v1/join")
    refused(answer, 405, "wrong-method")
    assert "POST" in answer.headers["allow"]
    refused(b.client.get("/v1/report"), 405, "wrong-method")
    refused(b.client.put("/healthz", content=b"x"), 405, "wrong-method")


def test_a_join_that_is_none(b: Bed) -> None:
    for body in ({}, {"job": "train\n"}, [], "x"):
        refused(b.client.post("/v1/join", json=body), 400, "malformed")
    agent = Agent(b.client)
    refused(agent.join(generation="1"), 400, "malformed")
    refused(agent.join(job="train\n"), 400, "malformed")
    refused(agent.join(instance_id="i-\0"), 400, "malformed")
    refused(agent.join(at="now"), 400, "malformed")
    refused(b.client.post("/v1/join", content=b"[" * 10_000), 400, "malformed")


def test_no_secret_is_in_an_answer_the_log_or_the_counters(b: Bed, tmp_path: Path) -> None:
    agent = Agent(b.client)
    key = agent.join().json()["manifest_key"]
    secrets = [agent.key, key, agent.session, "sesame-open", "good i-train-1 nonce77"]
    agent.send(agent.item(step=1))
    b.client.post(f"/v1/report?token={agent.session}", json={}, headers=agent.headers)
    b.client.get(f"/v1/{agent.session}", headers=agent.headers)
    Agent(b.client, session="sesame-open").send()
    Agent(b.client, rank=1).join(proof={"scheme": "aws-iid", "value": "good i-train-1 nonce77"}, key="sesame-open" * 2)
    bad = Agent(b.client, rank=1).join(proof={"scheme": "sesame-open", "value": {"sesame-open": ["sesame-open"]}})
    worse = b.client.post("/v1/join", json={"job": "sesame-open!", "key": "sesame-open", "at": "sesame-open"})
    shown = b.log.getvalue() + worse.text + b.client.get("/metrics").text
    assert not [s for s in secrets if s in shown]
    assert agent.session not in bad.text
    stored = b"".join(p.read_bytes() for p in tmp_path.glob("record.sqlite*"))
    assert not [s for s in (agent.key, agent.session, "sesame-open") if s.encode() in stored]
    assert json.loads(b.log.getvalue().splitlines()[0])["route"] == "/v1/join"
