"""Reports that the connection answers itself, on a real socket: as the ordinary way would, in order, and never past what that one refuses."""

from __future__ import annotations

import io
import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from planner.model.record import Node, RunStatus
from planner.model.runtime import Delivered, NodeIdentity, Report, Seat
from planner.server import run
from planner.server.log import Log
from planner.server.report_route import ReportRoute
from tests.unit.server.server_bed import NOW, Agent, Bed, bed, launch, sqlite, writing

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class Gate:
    """A runtime whose deliveries wait, where they are told to."""

    def __init__(self, real: Any) -> None:
        self.real = real
        self.may = threading.Event()
        self.may.set()
        self.entered = threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def deliver(self, reports: Sequence[Report], at: datetime) -> tuple[Delivered, ...]:
        self.entered.set()
        assert self.may.wait(30)
        return self.real.deliver(reports, at)


class Link:
    """A node's connection."""

    def __init__(self, b: Bed, place: tuple[str, int], rank: int) -> None:
        self.agent = Agent(b.client, rank=rank)
        assert self.agent.join().status_code == 200
        self.socket = socket.create_connection(place, timeout=20)
        self.file = self.socket.makefile("rb")

    def report(self, *items: Any, token: str = "", more: str = "", **changes: Any) -> bytes:
        body = json.dumps({"stream": self.agent.stream, "items": list(items), **changes}).encode()
        head = f"POST /v1/report HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token or self.agent.session}\r\n{more}Content-Length: {len(body)}\r\n\r\n"
        return head.encode() + body

    def answer(self) -> tuple[int, dict[str, str], Any]:
        status = int(self.file.readline().split()[1])
        headers: dict[str, str] = {}
        while (line := self.file.readline().strip()) != b"":
            name, _, value = line.decode().partition(": ")
            assert name not in headers
            headers[name] = value
        return status, headers, json.loads(self.file.read(int(headers["content-length"])))

    def known(self) -> None:
        """Its session is remembered from now on."""
        self.socket.sendall(self.report())
        assert self.answer()[0] == 200

    def close(self) -> None:
        self.file.close()
        self.socket.close()


class Served:
    """A server, and what was taken by the connections themselves."""

    def __init__(self, b: Bed, server: Any, place: tuple[str, int], thread: threading.Thread) -> None:
        self.b, self.server, self.place, self.thread = b, server, place, thread
        self.links: list[Link] = []

    def busy(self) -> list[Any]:
        """Requests that are not answered yet."""
        found = [one.cycle for one in list(self.server.server_state.connections)]
        return [cycle for cycle in found if cycle and not cycle.response_complete]

    def link(self, rank: int = 0) -> Link:
        made = Link(self.b, self.place, rank)
        self.links.append(made)
        made.known()
        return made


@contextmanager
def serving(folder: Path) -> Iterator[Served]:
    ready = threading.Event()
    with bed(sqlite(folder), runtime=Gate) as b, run.listening("127.0.0.1", 0) as at:
        launch(b.record)
        server = run._Server(run._config(b.app, None), ready.set, Log(io.StringIO()))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [at]})
        thread.start()
        served = Served(b, server, at.getsockname(), thread)
        try:
            assert ready.wait(30)
            yield served
        finally:
            for link in served.links:
                link.close()
            server.should_exit = True
            thread.join(30)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path) as made:
        yield made


@pytest.fixture
def ordinary(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ordinary way's own calls."""
    calls: list[str] = []
    real = ReportRoute.__call__

    async def call(self: ReportRoute, *given: Any) -> None:
        calls.append("")
        await real(self, *given)

    monkeypatch.setattr(ReportRoute, "__call__", call)
    return calls


def test_both_ways_answer_alike(served: Served, ordinary: list[str]) -> None:
    link = served.link()
    ordinary.clear()
    link.socket.sendall(link.report(link.agent.item(step=1)))
    direct = link.answer()
    assert not ordinary
    whole = link.report(link.agent.item(step=2))
    link.socket.sendall(whole[:-5])
    while not served.busy():
        pass
    link.socket.sendall(whole[-5:])
    other = link.answer()
    assert len(ordinary) == 1
    assert (direct[0], direct[2]) == (200, {"through": 1, "requests": []})
    assert other[2] == {"through": 2, "requests": []}
    assert list(direct[1]) == list(other[1])
    assert {**direct[1], "date": ""} == {**other[1], "date": ""}
    assert [p.step for p in served.b.runtime.progress("train")] == [1, 2]


def test_what_follows_on_the_connection_waits_its_turn(served: Served) -> None:
    link = served.link()
    reports = [link.report(link.agent.item(step=k)) for k in range(1, 5)]
    link.socket.sendall(b"".join(reports[:2]) + HEALTH + b"".join(reports[2:]))
    answers = [link.answer()[2] for _ in range(5)]
    assert [a.get("through", a) for a in answers] == [1, 2, {"ok": True}, 3, 4]


def test_a_refusal_is_the_fronts_own_and_keeps_the_connection(served: Served, ordinary: list[str]) -> None:
    link = served.link()
    link.socket.sendall(link.report(seq=7, items=[{"seq": 1}]))
    assert link.answer()[0] == 400
    link.socket.sendall(link.report(token="nobody"))
    assert link.answer()[0] == 401
    assert launch(served.b.record) == 2
    served.b.runtime.begin_cut(Seat(job="train", generation=2, rank=0), NOW)
    ordinary.clear()
    link.socket.sendall(link.report(link.agent.item(step=1)))
    status, headers, body = link.answer()
    assert (status, body["error"], body["code"]) == (409, "fenced", "SKY-RUN-509")
    assert headers["cache-control"] == "no-store"
    assert not ordinary
    (line,) = [line for line in served.b.lines() if line.get("word") == "fenced"]
    assert (line["route"], line["who"], line["method"]) == ("/v1/report", "train-g1-r0", "POST")


def test_a_database_that_fails_is_told_as_such(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    link = served.link()

    def broken(*_given: Any) -> Any:
        raise KeyError("hunter2")

    monkeypatch.setattr(served.b.services.runtime.real, "deliver", broken)
    link.socket.sendall(link.report(link.agent.item(step=1)))
    status, _, body = link.answer()
    assert (status, body["error"]) == (500, "failed")
    assert "hunter2" not in served.b.log.getvalue() + json.dumps(body)
    monkeypatch.undo()
    link.known()


def test_too_many_are_told_to_wait(served: Served, ordinary: list[str]) -> None:
    link = served.link()
    held = served.b.app.state.held
    held.nodes._left[Seat(job="train", generation=1, rank=0)] = (0.5, held.nodes._steady() + 1000)
    ordinary.clear()
    link.socket.sendall(link.report())
    status, headers, _ = link.answer()
    assert (status, int(headers["retry-after"]) >= 1) == (429, True)
    assert len(ordinary) == 1


def test_an_end_answers_what_waits_and_then_hangs_up(served: Served) -> None:
    link = served.link()
    gate = served.b.services.runtime
    gate.entered.clear()
    gate.may.clear()
    link.socket.sendall(link.report(link.agent.item(step=1)))
    assert gate.entered.wait(20)
    served.server.should_exit = True
    (told,) = served.busy()
    while told.keep_alive:
        pass
    gate.may.set()
    status, headers, body = link.answer()
    assert (status, headers["connection"], body["through"]) == (200, "close", 1)
    assert link.file.read() == b""
    served.thread.join(20)
    assert [p.step for p in served.b.runtime.progress("train")] == [1]


def test_who_goes_away_meanwhile_is_written_all_the_same(served: Served) -> None:
    link = served.link()
    gate = served.b.services.runtime
    gate.entered.clear()
    gate.may.clear()
    link.socket.sendall(link.report(link.agent.item(step=1)))
    assert gate.entered.wait(20)
    link.close()
    gate.may.set()
    other = served.link(1)
    other.socket.sendall(HEALTH)
    assert other.answer()[0] == 200
    assert [p.step for p in served.b.runtime.progress("train")] == [1]


def test_who_lost_the_seat_at_another_replica_is_told(served: Served, ordinary: list[str]) -> None:
    link = served.link()
    seat = Seat(job="train", generation=1, rank=0)
    with writing(served.b.record) as writer:
        writer.seen(1, [Node(rank=0, instance_id="i-new", address="")], RunStatus.RUNNING, NOW, "moved")
    identity = NodeIdentity(scheme="aws-iid", cloud="aws", account="1", instance_id="i-new")
    hashes = {name: f"{name} of i-new" for name in ("key_sha256", "proof_sha256", "token_sha256")}
    served.b.runtime.admit(seat, identity, instance_id="i-new", **hashes, at=NOW, expires_at=NOW + timedelta(hours=1))
    ordinary.clear()
    link.socket.sendall(link.report(link.agent.item(step=1)))
    status, headers, body = link.answer()
    assert (status, body["error"], headers["www-authenticate"]) == (401, "unknown", "Bearer")
    assert not ordinary
    assert served.b.runtime.recent("train") == ()
    served.b.clock.pass_(minutes=11)
    link.socket.sendall(link.report(link.agent.item(step=1)))
    assert link.answer()[0] == 401
    assert len(ordinary) == 1
