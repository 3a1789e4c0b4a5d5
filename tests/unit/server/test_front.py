"""The front: headers, what an unexpected error tells, health, counters that name nobody, lines that hold no words of others."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.server.log import Bridge, Log
from tests.unit.server.server_bed import SETTINGS, URL, Agent, Bed, bed, launch, sqlite
from tests.unit.server.test_node_routes import refused


@pytest.fixture
def b(tmp_path: Path) -> Iterator[Bed]:
    with bed(sqlite(tmp_path)) as made:
        launch(made.record)
        yield made


def test_every_answer_has_the_headers_that_browsers_go_by(b: Bed) -> None:
    agent = Agent(b.client)
    for answer in (agent.join(), agent.send(), b.client.get("/healthz"), b.client.get("/nothing")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "strict-transport-security" not in answer.headers


def test_an_empty_report_is_taken(b: Bed) -> None:
    agent = Agent(b.client)
    agent.join()
    assert agent.send().json() == {"through": 0, "requests": []}


def test_an_error_that_nobody_expected_tells_nothing(tmp_path: Path) -> None:
    class Broken:
        def __init__(self, real: Any) -> None:
            self.real = real

        def __getattr__(self, name: str) -> Any:
            return getattr(self.real, name)

        def cut(self, job: str, generation: int) -> Any:
            raise KeyError("hunter2")

    with bed(sqlite(tmp_path), runtime=Broken) as b:
        launch(b.record)
        agent = Agent(b.client)
        agent.join()
        answer = agent.get("/v1/cut")
        refused(answer, 500, "failed")
        (line,) = [line for line in b.lines() if line["event"] == "error"]
        assert (line["error"], line["route"]) == ("KeyError", "/v1/cut")
        assert line["where"].startswith("test_front.py:")
        assert "hunter2" not in b.log.getvalue() + answer.text


def test_health_says_when_the_record_does_not_answer(tmp_path: Path) -> None:
    from planner.model.errors import Unavailable

    class Away:
        def __init__(self, real: Any) -> None:
            self.real = real

        def __getattr__(self, name: str) -> Any:
            return getattr(self.real, name)

        def session(self, token: str, at: Any) -> Any:
            raise Unavailable([])

    with bed(sqlite(tmp_path)) as b:
        assert b.client.get("/healthz").json() == {"ok": True}
    with bed(sqlite(tmp_path), runtime=Away) as b:
        refused(b.client.get("/healthz"), 503, "busy")


def test_counters_name_no_job_and_no_node(b: Bed) -> None:
    agent = Agent(b.client)
    agent.join()
    agent.send(agent.item(step=1), agent.item("log", text="x"))
    Agent(b.client, session="wrong").send()
    text = b.client.get("/metrics").text
    assert 'skyplan_requests_total{route="/v1/report",status="200"} 1.0' in text
    assert "skyplan_report_items_total 2.0" in text
    assert 'skyplan_refusals_total{word="unknown"} 1.0' in text
    assert "train" not in text


def test_reports_that_are_taken_are_counted_and_not_told(b: Bed) -> None:
    agent = Agent(b.client)
    agent.join()
    before = len(b.lines())
    agent.send(agent.item(step=1))
    b.client.get("/healthz")
    assert len(b.lines()) == before
    agent.send({"seq": 0})
    (line,) = b.lines()[before:]
    assert (line["route"], line["status"], line["word"], line["who"]) == ("/v1/report", 400, "malformed", "train-g1-r0")


def test_strangers_are_held_to_a_rate_and_nodes_are_not(tmp_path: Path) -> None:
    with bed(sqlite(tmp_path)) as b:
        launch(b.record)
        agent = Agent(b.client)
        agent.join()
        assert agent.send(agent.item(step=1)).status_code == 200
        held = b.app.state.held
        for _ in range(10_000):
            held.strangers.spend("127.0.0.1")
        refused(Agent(b.client, session="wrong").send(), 429, "too-many")
        assert agent.send(agent.item(step=2)).status_code == 200


def test_with_tls_before_it_browsers_are_told_to_stay_with_tls(tmp_path: Path) -> None:
    settings = replace(SETTINGS, url=URL.replace("http:", "https:"))
    with bed(sqlite(tmp_path), settings=settings) as b:
        assert b.client.get("/healthz").headers["strict-transport-security"]


def test_the_librarys_lines_lose_what_was_filled_in() -> None:
    stream = io.StringIO()
    logger = logging.getLogger("test-front")
    logger.propagate = False
    logger.handlers = [Bridge(Log(stream))]
    logger.warning("bad request from %s", "hunter2")
    try:
        int("hunter2")
    except ValueError:
        logger.exception("hunter2 %s", "hunter2")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert lines[0]["text"] == "bad request from %s"
    assert lines[1]["error"] == "ValueError"
    assert "hunter2" not in stream.getvalue()
