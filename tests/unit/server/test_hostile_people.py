"""What a stranger, or somebody with a strange token, must not get out of the people's side: errors of ours, others' roles, the threads that nodes need."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from planner.server.identity import Answer, Asked
from tests.unit.server.server_bed import SETTINGS, Bed, bed, launch, sqlite
from tests.unit.server.test_node_routes import refused
from tests.unit.server.test_people import TRUST, URL, Idp, asked, token


@pytest.fixture
def b(tmp_path: Path) -> Iterator[Bed]:
    with bed(sqlite(tmp_path), settings=replace(SETTINGS, url=URL, people=TRUST), fetch=Idp()) as made:
        launch(made.record)
        made.client.base_url = URL
        yield made


@pytest.mark.parametrize("host", ["[", "[::1", "a]b"])
def test_a_host_that_is_none_is_not_this_machine(tmp_path: Path, host: str) -> None:
    with bed(sqlite(tmp_path)) as b:
        refused(b.client.get("/", headers={"Host": host}), 403, "denied")
        wanted = {"word": "stop", "reason": "x"}
        refused(b.client.post("/v1/jobs/train/requests", json=wanted, headers={"Host": host}), 403, "denied")


@pytest.mark.parametrize("at", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "0001-01-01T00:00:00Z"])
def test_a_deadline_beyond_all_time(tmp_path: Path, at: str) -> None:
    with bed(sqlite(tmp_path)) as b:
        launch(b.record)
        wanted = {"word": "checkpoint", "reason": "x", "deadline": at}
        refused(b.client.post("/v1/jobs/train/requests", json=wanted), 400, "malformed")


def test_metrics_are_for_whoever_has_a_role(b: Bed) -> None:
    refused(asked(b, token(groups=["nobody"])), 403, "denied")
    assert asked(b, token()).status_code == 200


@pytest.mark.parametrize("verified", [False, "false", "False", 0, None, "no", []])
def test_an_address_that_is_not_verified_is_nobodys(b: Bed, verified: object) -> None:
    claims = {"email": "a@example.com", "email_verified": verified}
    assert b.app.state.people.person(claims).held == ()


@pytest.mark.parametrize("verified", [True, "true"])
def test_an_address_that_is_verified(b: Bed, verified: object) -> None:
    assert b.app.state.people.person({"email": "a@example.com", "email_verified": verified}).held


def test_a_name_that_no_page_can_show(b: Bed) -> None:
    held = token(name="half \ud800", email=None)
    answer = b.client.get("/", headers={"Authorization": f"Bearer {held}"})
    assert answer.status_code == 200
    assert "half \ufffd" in answer.text


@pytest.mark.parametrize("path", ["/login", "/healthz", "/page.css", "/no/such"])
def test_another_cookie_each_time_is_still_one_caller(tmp_path: Path, path: str) -> None:
    slow = replace(SETTINGS, url=URL, people=TRUST, rates=(("people", 0.1),))
    with bed(sqlite(tmp_path), settings=slow, fetch=Idp()) as b:
        first, *more = (
            b.client.get(path, headers={"Cookie": f"c={k}"}, follow_redirects=False).status_code for k in range(4)
        )
        assert first in {200, 303, 404}
        assert more == [429] * 3


def test_an_issuer_that_hangs_holds_no_thread_that_nodes_need(tmp_path: Path) -> None:
    """40 threads serve all: as many sign-ins, each waiting for the issuer, and no node could renew its session."""
    go_on = threading.Event()
    answering = Idp()

    def hangs(what: Asked) -> Answer:
        go_on.wait(60)
        return answering(what)

    with (
        bed(sqlite(tmp_path), settings=replace(SETTINGS, url=URL, people=TRUST), fetch=hangs) as b,
        ThreadPoolExecutor(61) as pool,
    ):
        try:
            waiting = [pool.submit(b.client.get, "/login", follow_redirects=False) for _ in range(60)]
            few, until = b.app.state.held.signing_in, time.monotonic() + 30
            while few.statistics().tasks_waiting + few.borrowed_tokens < len(waiting):
                assert time.monotonic() < until
                time.sleep(0.01)
            assert pool.submit(b.client.get, "/healthz").result(timeout=20).status_code == 200
        finally:
            go_on.set()
        assert {one.result(30).status_code for one in waiting} == {303}
