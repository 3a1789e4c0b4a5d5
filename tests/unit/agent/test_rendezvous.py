"""The node's side: what it retries, what ends it, and that only the service's own word counts.  No socket: the service's rules answer directly."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from modules.agent import proof
from modules.agent import rendezvous as node
from modules.agent.config import Meeting, TunnelConfig
from modules.agent.errors import MISSING, REFUSED, UNAVAILABLE, AgentError
from modules.agent.rendezvous import Client, Reply, _Passing
from planner.server import proof as service_proof
from planner.server.peers_file import Expected, Member
from planner.server.rendezvous import Answer, Clock, Rendezvous, Request

NOW = 1_800_000_000.0
KEYS = {name: hashlib.sha256(f"the-join-secret-of-{name}".encode()).digest() for name in ("r00", "r01")}
MEETING = Meeting(url="http://198.51.100.4:1", secret_file="/s", ca_file=None, timeout_seconds=100)
MINE = base64.b64encode(b"\1" * 32).decode()


class World:
    """The service's rules behind a line that the test can cut, on one clock."""

    def __init__(self) -> None:
        self.steady = 0.0
        self.sent: list[str] = []
        self.pauses: list[float] = []
        self.before: Callable[[str], Reply | None] = lambda _: None
        self.start()

    def start(self) -> None:
        members = tuple(
            Member(name=n, tunnel_address=f"10.251.0.{i + 1}", key=k) for i, (n, k) in enumerate(KEYS.items())
        )
        clock = Clock(wall=lambda: NOW + self.steady, steady=lambda: self.steady)
        expected = Expected(job="train", generation=3, members=members)
        self.service = Rendezvous(expected, clock=clock, timeout_seconds=1000)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.steady += seconds

    def send(self, method: str, path: str, body: bytes | None, headers: dict[str, str], seconds: float) -> Reply:
        self.sent.append(path.rpartition("/")[2].partition("?")[0])
        if (instead := self.before(self.sent[-1])) is not None:
            return instead
        common: dict[str, Any] = {"job": "train", "generation": 3}
        if method == "POST":
            said = json.loads(body or b"")
            signed = said.pop("proof")
            claim = service_proof.Claim(purpose="join", **common, **said)
            answer = self.service.join(Request(claim=claim, proof=signed))
        else:
            name, nonce, time = (headers[f"X-Skyplan-{k}"] for k in ("Name", "Nonce", "Time"))
            claim = service_proof.Claim(purpose="peers", name=name, nonce=nonce, time=int(time), **common)
            request = Request(claim=claim, proof=headers["X-Skyplan-Proof"])
            answer = self.service.admit(request) or self.poll(path)
        raw = json.dumps(answer.body).encode()
        return Reply(answer.status, self.service.seal(claim, answer.status, raw) or "", raw)

    def poll(self, path: str) -> Answer:
        answer = self.service.peers()
        if answer.status == 202:
            self.steady += float(path.partition("wait=")[2])
        return answer

    def other(self) -> None:
        """r00 joins."""
        said = {"name": "r00", "nonce": "0" * 32, "time": int(NOW + self.steady), "endpoint": "203.0.113.7:51820"}
        key = base64.b64encode(b"\2" * 32).decode()
        claim = service_proof.Claim(purpose="join", job="train", generation=3, public_key=key, **said)
        answer = self.service.join(Request(claim=claim, proof=proof.sign(KEYS["r00"], claim.message)))
        assert answer.status == 200

    def client(self, config: TunnelConfig, key: bytes = KEYS["r01"]) -> Client:
        clocks: dict[str, Any] = {
            "clock": lambda: NOW + self.steady,
            "steady": lambda: self.steady,
            "sleep": self.sleep,
        }
        return Client(config, MEETING, key, MINE, send=self.send, **clocks)


@pytest.fixture
def world() -> World:
    return World()


def ended(client: Client) -> AgentError:
    with pytest.raises(AgentError) as refused:
        client.meet()
    return refused.value


def test_both_sides_sign_the_same_bytes() -> None:
    said: dict[str, Any] = {"job": "train", "generation": 3, "name": "r01", "nonce": "ab" * 16, "time": 1_800_000_000}
    for purpose, more in (("join", {"public_key": MINE, "endpoint": "203.0.113.9:51820"}), ("peers", {})):
        claim = service_proof.Claim(purpose=purpose, **said, **more)
        assert proof.claim(purpose=purpose, **said, **more) == claim.message
        del said["time"]
        mine = proof.answer(purpose=purpose, **said, status=200, body=b"{}")
        assert mine == service_proof.answer_message(claim, 200, b"{}")
        said["time"] = claim.time


def test_it_joins_waits_and_learns_all(world: World, tunnel_config: TunnelConfig) -> None:
    polls = 0

    def before(path: str) -> None:
        nonlocal polls
        polls += path == "peers"
        if polls == 2 and world.service.missing:
            world.other()

    world.before = before
    peers = world.client(tunnel_config).meet()
    assert [(p.name, p.tunnel_address, p.endpoint) for p in peers] == [
        ("r00", "10.251.0.1", "203.0.113.7:51820"),
        ("r01", "10.251.0.2", "203.0.113.9:51820"),
    ]
    assert world.sent == ["join", "peers", "peers"]


def test_the_missing_are_named_when_its_own_time_is_over(world: World, tunnel_config: TunnelConfig) -> None:
    error = ended(world.client(tunnel_config))
    assert error.code == MISSING
    assert str(error) == "not all nodes came within 100 s; missing: r00"
    assert 100 <= world.steady < 101


def test_the_missing_are_named_when_the_services_time_is_over(world: World, tunnel_config: TunnelConfig) -> None:
    world.service._ends = 30
    error = ended(world.client(tunnel_config))
    assert (error.code, "missing: r00" in str(error)) == (MISSING, True)
    assert world.steady < 60


def test_what_may_pass_is_tried_again_with_growing_pauses(world: World, tunnel_config: TunnelConfig) -> None:
    world.other()
    failures = 0

    def before(_: str) -> Reply | None:
        nonlocal failures
        failures += 1
        if failures == 1:
            raise _Passing("connection refused")
        if failures <= 5:
            return Reply((500, 503, 429, 404)[failures - 2], "", b'{"error": "unknown-rendezvous"}')
        return None

    world.before = before
    assert len(world.client(tunnel_config).meet()) == 2
    assert len(world.pauses) == 5
    assert world.pauses[4] > world.pauses[0]
    assert all(0 < p <= 15 for p in world.pauses)


def test_a_service_that_never_answers_is_said_with_the_last_problem(world: World, tunnel_config: TunnelConfig) -> None:
    def before(_: str) -> Reply | None:
        raise _Passing("connection refused")

    world.before = before
    error = ended(world.client(tunnel_config))
    assert error.code == UNAVAILABLE
    assert "within 100 s: connection refused" in str(error)


def test_a_service_started_anew_is_joined_again(world: World, tunnel_config: TunnelConfig) -> None:
    def before(path: str) -> None:
        if world.sent == ["join", "peers", "peers"]:
            world.start()
            world.other()

    world.before = before
    assert len(world.client(tunnel_config).meet()) == 2
    assert world.sent == ["join", "peers", "peers", "join", "peers"]


def test_a_wrong_secret_ends_at_once(world: World, tunnel_config: TunnelConfig) -> None:
    error = ended(world.client(tunnel_config, key=KEYS["r00"]))
    assert error.code == REFUSED
    assert "HTTP 403: the proof does not match r01's join secret" in str(error)
    assert world.sent == ["join"]


def test_another_key_ends_at_once(world: World, tunnel_config: TunnelConfig) -> None:
    world.other()
    world.client(tunnel_config).meet()
    later = replace(tunnel_config, endpoint="203.0.113.10:51820")
    assert "HTTP 409" in str(ended(world.client(later)))


@pytest.mark.parametrize("status", [200, 202, 410])
@pytest.mark.parametrize("seal", ["", "hmac-sha256 " + "0" * 64, "\u20ac"])
def test_a_word_that_is_not_the_services_does_not_count(
    world: World, tunnel_config: TunnelConfig, status: int, seal: str
) -> None:
    """Somebody on the way says that all are there, with his own key; or that the time is over."""
    forged = {
        "missing": ["r00"],
        "peers": [{"name": "r00", "public_key": MINE, "endpoint": "192.0.2.66:1", "tunnel_address": "10.251.0.1"}],
    }
    world.before = lambda path: Reply(status, seal, json.dumps(forged).encode()) if path == "peers" else None
    error = ended(world.client(tunnel_config))
    assert (error.code, "seal" in str(error)) == (UNAVAILABLE, True)


def test_an_old_answer_does_not_count(world: World, tunnel_config: TunnelConfig) -> None:
    """A whole and sealed answer to an earlier question is sent for a later one."""
    world.other()
    client = world.client(tunnel_config)
    client._join()
    reply: list[Reply] = []
    real = world.send

    def record(*arguments: Any) -> Reply:
        reply.append(real(*arguments))
        return reply[-1]

    client._send = record
    assert client._peers()
    client._send = lambda *_: reply[-1]
    with pytest.raises(_Passing, match="seal"):
        client._peers()


PEERS = [
    {
        "name": "r00",
        "public_key": base64.b64encode(b"\2" * 32).decode(),
        "endpoint": "203.0.113.7:1",
        "tunnel_address": "10.251.0.1",
    },
    {"name": "r01", "public_key": MINE, "endpoint": "203.0.113.9:51820", "tunnel_address": "10.251.0.2"},
]


@pytest.mark.parametrize(
    "rows",
    [
        None,
        [],
        [7, *PEERS],
        PEERS[:1],
        [*PEERS, PEERS[0]],
        [PEERS[0], {**PEERS[1], "public_key": PEERS[0]["public_key"]}],
        [PEERS[0], {**PEERS[1], "tunnel_address": "10.251.0.3"}],
        [{**PEERS[0], "tunnel_address": "10.251.0.2"}, PEERS[1]],
        [{**PEERS[0], "endpoint": "$(reboot):1"}, PEERS[1]],
        [{**PEERS[0], "name": "--help"}, PEERS[1]],
    ],
)
def test_a_set_that_cannot_be_ours_is_refused(tunnel_config: TunnelConfig, rows: Any) -> None:
    with pytest.raises(AgentError) as refused:
        node.members(rows, tunnel_config, MINE)
    assert refused.value.code == REFUSED


def test_pauses_grow_to_a_bound_and_differ() -> None:
    assert 0.1 <= node.pause(0) <= 0.25
    assert all(7.5 <= node.pause(50) <= 15 for _ in range(50))
    assert len({node.pause(5) for _ in range(10)}) > 1
