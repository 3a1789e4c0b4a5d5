"""Nodes and the server over the real record: the words of docs/node-protocol.md."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from planner.model.record import RunStatus
from planner.model.runtime import Seat, checkpoint_mac, checkpoint_message
from tests.unit.server.server_bed import NOW, RUN, Agent, Bed, bed, launch, sqlite, writing


@pytest.fixture
def b(tmp_path: Path) -> Iterator[Bed]:
    with bed(sqlite(tmp_path)) as made:
        launch(made.record)
        yield made


def refused(answer: Any, status: int, word: str) -> dict[str, Any]:
    body = answer.json()
    assert (answer.status_code, body["error"]) == (status, word), body
    assert set(body) == {"error", "code", "reason"}
    assert body["code"].startswith("SKY-RUN-")
    return body


def test_a_node_joins_and_learns_what_it_starts_with(b: Bed) -> None:
    body = Agent(b.client).join().json()
    assert body["nodes"] == 2
    assert (body["stream"], body["through"], body["broker"], body["stop_at"]) == (None, 0, None, None)
    assert body["project"] == "acme"
    assert len(bytes.fromhex(body["manifest_key"])) == 32
    assert body["renew_after_seconds"] == 1800
    assert len(body["session"]) >= 43


def test_a_report_is_in_the_record_before_it_is_answered(b: Bed) -> None:
    agent = Agent(b.client)
    agent.join()
    answer = agent.send(agent.item(step=7, loss=0.5, rate=2.0, metrics={"lr": 0.1}), agent.item("heartbeat"))
    assert answer.json() == {"through": 2, "requests": []}
    found = b.runtime.newest("train")
    assert found is not None
    assert (found.step, found.loss, found.metrics) == (7, 0.5, {"lr": 0.1})


def test_what_was_taken_is_not_taken_again(b: Bed) -> None:
    agent = Agent(b.client)
    agent.join()
    items = [agent.item(step=k) for k in range(5)]
    for _ in range(3):
        assert agent.send(*items).json()["through"] == 5
    assert len(b.runtime.progress("train")) == 5


def test_a_joining_node_is_told_how_far_its_stream_was_taken(b: Bed) -> None:
    agent = Agent(b.client)
    agent.join()
    agent.send(agent.item(step=1), agent.item(step=2))
    body = agent.join().json()
    assert (body["stream"], body["through"]) == (agent.stream, 2)


def test_what_people_ask_comes_with_the_answer(b: Bed) -> None:
    agent = Agent(b.client)
    agent.join()
    b.runtime.request("train", 1, "checkpoint", "moving", NOW)
    (asked,) = agent.send(agent.item(step=1)).json()["requests"]
    assert (asked["word"], asked["reason"], asked["deadline"]) == ("checkpoint", "moving", None)


def test_a_wrong_token_is_unknown(b: Bed) -> None:
    agent = Agent(b.client, session="wrong")
    answer = agent.send(agent.item(step=1))
    refused(answer, 401, "unknown")
    assert answer.headers["www-authenticate"] == "Bearer"
    refused(b.client.post("/v1/report", json={}), 401, "unknown")
    refused(b.client.post("/v1/report", json={}, headers={"Authorization": "Basic eDp5"}), 401, "unknown")


def test_a_session_ends(b: Bed) -> None:
    agent = Agent(b.client)
    agent.join()
    assert agent.send(agent.item(step=1)).status_code == 200
    b.clock.pass_(seconds=3599)
    assert agent.send(agent.item(step=2)).status_code == 200
    b.clock.pass_(seconds=2)
    refused(agent.send(agent.item(step=3)), 401, "unknown")


def test_a_session_is_renewed_and_the_old_one_holds_to_its_own_end(b: Bed) -> None:
    agent = Agent(b.client)
    agent.join()
    old = agent.session
    b.clock.pass_(minutes=30)
    agent.session = agent.post("/v1/session", {}).json()["session"]
    assert agent.session != old
    b.clock.pass_(minutes=29)
    assert Agent(b.client, session=old).get("/v1/cut").status_code == 202
    b.clock.pass_(minutes=2)
    refused(Agent(b.client, session=old).get("/v1/cut"), 401, "unknown")
    assert agent.get("/v1/cut").status_code == 202


def test_a_proof_that_does_not_hold(b: Bed) -> None:
    agent = Agent(b.client)
    refused(agent.join(proof={"scheme": "aws-iid", "value": "bad"}), 403, "identity")
    refused(agent.join(proof={"scheme": "gcp-jwt", "value": "good i-train-0"}), 403, "identity")
    other = {"scheme": "aws-iid", "value": "good i-other"}
    refused(agent.join(proof=other, instance_id="i-other"), 403, "identity")


def test_a_replayed_proof_with_another_key(b: Bed) -> None:
    proof = {"scheme": "aws-iid", "value": "good i-train-0"}
    assert Agent(b.client).join(proof=proof).status_code == 200
    refused(Agent(b.client).join(proof=proof), 403, "replayed")
    refused(Agent(b.client).join(), 409, "key")


def test_a_one_time_token_is_used_once(b: Bed) -> None:
    token = secrets.token_urlsafe(32)
    ends = NOW + timedelta(hours=1)
    b.runtime.put_one_time(
        Seat(job="train", generation=1, rank=0), hashlib.sha256(token.encode()).hexdigest(), ends, NOW
    )
    proof = {"scheme": "one-time", "value": token}
    assert Agent(b.client).join(proof=proof).status_code == 200
    refused(Agent(b.client).join(proof=proof), 403, "replayed")
    fresh = {"scheme": "one-time", "value": secrets.token_urlsafe(32)}
    refused(Agent(b.client).join(proof=fresh), 403, "identity")


def test_a_node_that_the_record_does_not_know_yet_is_early(b: Bed) -> None:
    with writing(b.record) as writer:
        writer.issue(RUN, NOW)
    answer = Agent(b.client, generation=2).join()
    refused(answer, 425, "early")
    assert int(answer.headers["retry-after"]) >= 1
    refused(Agent(b.client, generation=9).join(), 401, "unknown")


def test_a_fenced_node_is_told(b: Bed) -> None:
    agent = Agent(b.client)
    agent.join()
    assert agent.send(agent.item(step=1)).status_code == 200
    launch(b.record)
    newer = Agent(b.client, generation=2)
    newer.join()
    assert newer.post("/v1/cut", {"phase": "begin"}).json()["generations"] == [1, 2]
    refused(agent.send(agent.item(step=2)), 409, "fenced")
    refused(agent.join(), 409, "fenced")
    found = b.runtime.newest("train")
    assert found is not None
    assert found.step == 1


def test_a_node_of_an_ended_run_is_told(b: Bed) -> None:
    agent = Agent(b.client)
    agent.join()
    with writing(b.record) as writer:
        writer.run_status(1, RunStatus.ENDED, NOW, "over")
    refused(agent.send(agent.item(step=1)), 410, "ended")


def _checkpoint(key: bytes, step: int, **changes: Any) -> dict[str, Any]:
    uri = f"s3://b/train/g1/step-{step:012d}/"
    said = {"generation": 1, "step": step, "uri": uri, "digest": hashlib.sha256(uri.encode()).hexdigest(), "bytes": 9}
    message = checkpoint_message(
        project="acme", job="train", generation=1, step=step, uri=uri, digest=str(said["digest"])
    )
    return {**said, "mac": checkpoint_mac(key, message), **changes}


def test_the_cut_is_chosen_once_and_forged_candidates_are_skipped(b: Bed) -> None:
    first = Agent(b.client)
    key = bytes.fromhex(first.join().json()["manifest_key"])
    launch(b.record)
    agent, other = Agent(b.client, generation=2), Agent(b.client, generation=2, rank=1)
    agent.join()
    other.join()
    agent.post("/v1/cut", {"phase": "begin"})
    waiting = other.get("/v1/cut")
    assert (waiting.status_code, waiting.json()["cut"]) == (202, None)
    refused(other.post("/v1/cut", {"phase": "begin"}), 403, "identity")
    candidates = [
        _checkpoint(key, 10),
        _checkpoint(key, 20),
        _checkpoint(key, 10**9, mac="0" * 64),
        _checkpoint(key, 30, mac="\u00e9" * 64),
        {**_checkpoint(key, 40), "step": 10**30},
        "nonsense",
        {"uri": "s3://b/\0", "step": None},
    ]
    asked = {
        "phase": "choose",
        "listed_at": "2026-07-30T12:00:00.000000Z",
        "candidates": candidates,
        "skipped": [["s3://b/torn", "torn"]],
    }
    body = agent.post("/v1/cut", asked).json()
    assert body["cut"]["step"] == 20
    assert len(body["skipped"]) == 6
    assert ["s3://b/torn", "torn"] in body["skipped"]
    again = agent.post("/v1/cut", {**asked, "candidates": [_checkpoint(key, 50)]}).json()
    assert again["cut"]["step"] == 20
    assert other.get("/v1/cut").json()["cut"] == body["cut"]
    after = agent.post("/v1/cut", {"phase": "reject", "uri": body["cut"]["uri"], "reason": "wrong hash"}).json()
    assert after["cut"]["step"] == 10


def test_peers_meet_over_their_sessions(b: Bed) -> None:
    agents = [Agent(b.client, rank=k) for k in range(2)]
    for agent in agents:
        agent.join()
    refused(agents[0].get("/v1/peers"), 425, "early")
    members = [{"name": f"r0{k}", "rank": k, "tunnel_address": f"10.251.0.{k + 1}"} for k in range(2)]
    b.runtime.expect("train", 1, members)
    mine = {"name": "r00", "public_key": "A" * 43 + "=", "endpoint": "203.0.113.7:51820"}
    assert agents[0].post("/v1/peers", mine).json() == {"peers": [], "missing": ["r01"]}
    waiting = agents[0].get("/v1/peers?wait=0.01")
    assert (waiting.status_code, waiting.json()["missing"]) == (202, ["r01"])
    refused(agents[1].post("/v1/peers", mine), 403, "identity")
    refused(agents[0].post("/v1/peers", {**mine, "public_key": "B" * 43 + "="}), 409, "key")
    refused(agents[0].post("/v1/peers", {**mine, "endpoint": "127.0.0.1:51820"}), 400, "malformed")
    agents[1].post("/v1/peers", {**mine, "name": "r01", "public_key": "C" * 43 + "=", "endpoint": "203.0.113.8:51820"})
    found = agents[0].get("/v1/peers?wait=20")
    assert found.status_code == 200
    assert [(p["name"], p["tunnel_address"], p["endpoint"]) for p in found.json()["peers"]] == [
        ("r00", "10.251.0.1", "203.0.113.7:51820"),
        ("r01", "10.251.0.2", "203.0.113.8:51820"),
    ]


def test_a_seat_that_went_to_another_machine_is_not_the_first_ones_any_more(b: Bed) -> None:
    """Within one process at once; other replicas look again after half a minute."""
    first = Agent(b.client)
    first.join()
    assert first.send(first.item(step=1)).status_code == 200
    token = secrets.token_urlsafe(32)
    seat = Seat(job="train", generation=1, rank=0)
    b.runtime.put_one_time(seat, hashlib.sha256(token.encode()).hexdigest(), NOW + timedelta(hours=1), NOW)
    second = Agent(b.client)
    assert second.join(proof={"scheme": "one-time", "value": token}).status_code == 200
    refused(first.send(first.item(step=2)), 401, "unknown")
    assert second.send(second.item(step=2)).status_code == 200
