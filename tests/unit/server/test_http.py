"""The rules over HTTP: limits, long polls, seals, and a log that holds no secret.  A real server on the loopback, on a free port."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from planner.server.http import MAX_BODY_BYTES, RendezvousServer
from planner.server.peers_file import Expected, Member
from planner.server.proof import Claim, answer_message
from planner.server.rendezvous import Clock, Rendezvous

ROOT = Path(__file__).parents[3]
SECRETS = {name: f"join-secret-of-{name}-{secrets.token_hex(8)}" for name in ("r00", "r01")}
BASE = "/v1/rendezvous/train/3"


def key(name: str) -> bytes:
    return hashlib.sha256(SECRETS[name].encode()).digest()


class Client:
    """Speaks to the service as a node would."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address

    def send(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, Any, dict[str, str]]:
        link = http.client.HTTPConnection(*self.address, timeout=30)
        try:
            link.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
            answer = link.getresponse()
            raw = answer.read()
            self.raw = raw
            return answer.status, json.loads(raw), dict(answer.headers)
        finally:
            link.close()

    def sign(self, name: str, purpose: str, **more: Any) -> tuple[Claim, str]:
        said = {"nonce": secrets.token_hex(16), "time": int(time.time()), **more}
        claim = Claim(purpose=purpose, job="train", generation=3, name=name, **said)
        return claim, f"hmac-sha256 {hmac.new(key(name), claim.message, hashlib.sha256).hexdigest()}"

    def join(self, name: str) -> tuple[int, Any, dict[str, str]]:
        rank = int(name[1:])
        mine = {
            "public_key": base64.b64encode(bytes([rank + 1]) * 32).decode(),
            "endpoint": f"192.0.2.{rank + 1}:51820",
        }
        self.claim, proof = self.sign(name, "join", **mine)
        body = {"name": name, **mine, "nonce": self.claim.nonce, "time": self.claim.time, "proof": proof}
        return self.send("POST", f"{BASE}/join", json.dumps(body).encode())

    def peers(self, name: str, wait: float = 0) -> tuple[int, Any, dict[str, str]]:
        self.claim, proof = self.sign(name, "peers")
        headers = {"X_Skyplan_Name": name, "X_Skyplan_Nonce": self.claim.nonce, "X_Skyplan_Proof": proof}
        return self.send("GET", f"{BASE}/peers?wait={wait}", **headers, X_Skyplan_Time=str(self.claim.time))


def serve(timeout_seconds: float = 600) -> RendezvousServer:
    members = tuple(
        Member(name=name, tunnel_address=f"10.251.0.{at + 1}", key=key(name)) for at, name in enumerate(SECRETS)
    )
    rendezvous = Rendezvous(
        Expected(job="train", generation=3, members=members),
        clock=Clock(wall=time.time, steady=time.monotonic),
        timeout_seconds=timeout_seconds,
    )
    return RendezvousServer("127.0.0.1", 0, rendezvous)


class Serving:
    """A server in a thread."""

    def __init__(self, timeout_seconds: float = 600) -> None:
        self.server = serve(timeout_seconds)
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self._thread.start()
        host, port = self.server.server_address[:2]
        self.client = Client((str(host), port))

    def another(self) -> Client:
        return Client(self.client.address)

    def close(self) -> None:
        self.server.end()
        self._thread.join(10)
        self.server.server_close()
        assert not self._thread.is_alive()


@pytest.fixture
def serving() -> Iterator[Serving]:
    one = Serving()
    yield one
    one.close()


def test_two_nodes_meet_and_answers_are_sealed(serving: Serving) -> None:
    client = serving.client
    assert client.join("r00")[:2] == (200, {"missing": ["r01"], "name": "r00", "tunnel_address": "10.251.0.1"})
    assert client.peers("r00")[0] == 202
    client.join("r01")
    status, body, headers = client.peers("r00")
    assert (status, [p["name"] for p in body["peers"]]) == (200, ["r00", "r01"])
    mac = hmac.new(key("r00"), answer_message(client.claim, status, client.raw), hashlib.sha256).hexdigest()
    assert headers["X-Skyplan-Seal"] == f"hmac-sha256 {mac}"
    assert headers["Cache-Control"] == "no-store"


def test_a_long_poll_ends_when_the_last_node_comes(serving: Serving) -> None:
    serving.client.join("r00")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(serving.another().peers, "r00", 20)
        began = time.monotonic()
        serving.client.join("r01")
        assert waiting.result(15)[0] == 200
        assert time.monotonic() - began < 10


def test_a_long_poll_says_who_is_missing_when_its_own_time_is_over(serving: Serving) -> None:
    serving.client.join("r00")
    status, body, _ = serving.client.peers("r00", wait=0.05)
    assert (status, body["missing"]) == (202, ["r01"])


def test_a_long_poll_ends_with_the_timeout() -> None:
    serving = Serving(timeout_seconds=1.0)
    try:
        serving.client.join("r00")
        status, body, _ = serving.client.peers("r00", wait=20)
        assert (status, body["error"], body["missing"]) == (410, "timed-out", ["r01"])
    finally:
        serving.close()


def test_a_long_poll_ends_with_the_service() -> None:
    serving = Serving()
    serving.client.join("r00")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(serving.another().peers, "r00", 20)
        deadline = time.monotonic() + 10
        while len(serving.server.rendezvous._nonces) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        serving.close()
        assert waiting.result(10)[0] == 202


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "word"),
    [
        ("POST", f"{BASE}/join", b"{", 400, "malformed"),
        ("POST", f"{BASE}/join", b"[" * 8000, 400, "malformed"),
        ("POST", f"{BASE}/join", b"[]", 400, "malformed"),
        ("POST", f"{BASE}/join", b"{}", 400, "malformed"),
        ("POST", f"{BASE}/join", b"\xff\xfe", 400, "malformed"),
        ("POST", f"{BASE}/join", b" " * (MAX_BODY_BYTES + 1), 413, "too-large"),
        ("GET", f"{BASE}/join", None, 405, "wrong-method"),
        ("POST", f"{BASE}/peers", b"{}", 405, "wrong-method"),
        ("GET", "/v1/rendezvous/train/0/peers", None, 404, "unknown-route"),
        ("GET", "/v1/rendezvous/../../etc/passwd", None, 404, "unknown-route"),
        ("GET", "/", None, 404, "unknown-route"),
        ("GET", "//[", None, 404, "unknown-route"),
        ("GET", f"{BASE}/peers", None, 400, "malformed"),
    ],
)
def test_wrong_requests(
    serving: Serving, method: str, path: str, body: bytes | None, *, status: int, word: str
) -> None:
    got, answer, _ = serving.client.send(method, path, body)
    assert (got, answer["error"]) == (status, word)


@pytest.mark.parametrize("wait", ["x", "-1", "nan", "inf"])
def test_a_wrong_wait(serving: Serving, wait: str) -> None:
    headers = {"X_Skyplan_Name": "r00", "X_Skyplan_Nonce": "0" * 32, "X_Skyplan_Proof": "hmac-sha256 0"}
    assert serving.client.send("GET", f"{BASE}/peers?wait={wait}", **headers, X_Skyplan_Time="1")[0] == 400


@pytest.mark.parametrize(
    "change", [{"time": "1"}, {"time": True}, {"time": 1.5}, {"name": 7}, {"proof": None}, {"more": 1}]
)
def test_wrong_types(serving: Serving, change: dict[str, Any]) -> None:
    body = {"name": "r00", "public_key": "", "endpoint": "", "nonce": "", "time": 1, "proof": "", **change}
    assert serving.client.send("POST", f"{BASE}/join", json.dumps(body).encode())[0] == 400


def test_a_body_needs_its_length(serving: Serving) -> None:
    with socket.create_connection(serving.client.address, timeout=10) as link:
        link.sendall(f"POST {BASE}/join HTTP/1.0\r\n\r\n".encode())
        assert b" 411 " in link.recv(200)


def test_garbage_and_a_client_that_goes_away_stop_nothing(serving: Serving) -> None:
    for junk in (
        b"\x16\x03\x01\x00\xff\r\n\r\n",
        b"GET\r\n",
        b"POST " + BASE.encode() + b"/join HTTP/1.0\r\nContent-Length: 9\r\n\r\n{",
    ):
        with socket.create_connection(serving.client.address, timeout=10) as link:
            link.sendall(junk)
    assert serving.client.send("GET", "/healthz")[:2] == (200, {"ok": True})


def test_many_nodes_at_once_make_one_set(serving: Serving) -> None:
    with ThreadPoolExecutor(16) as pool:
        done = list(pool.map(lambda n: serving.another().join(n)[0], ["r00", "r01"] * 20))
    assert done == [200] * 40
    assert serving.client.peers("r01")[0] == 200


def test_the_command_serves_until_sigterm_and_logs_no_secret(tmp_path: Path) -> None:
    peers = tmp_path / "peers.json"
    members = [
        {"name": n, "tunnel_address": f"10.251.0.{i + 1}", "secret_sha256": key(n).hex()} for i, n in enumerate(SECRETS)
    ]
    peers.write_text(json.dumps({"job": "train", "generation": 3, "members": members}))
    peers.chmod(0o600)
    program = [sys.executable, "-c", "from planner.cli.entry import run; run()", "rendezvous", "--peers", str(peers)]
    process = subprocess.Popen(
        program,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        told = json.loads(process.stdout.readline())
        assert (told["job"], told["generation"]) == ("train", 3)
        host, port = told["url"].removeprefix("http://").split(":")
        client = Client((host, int(port)))
        assert client.join("r00")[0] == 200
        used = client.claim
        assert client.peers("r00")[0] == 202
        process.send_signal(signal.SIGTERM)
        out, log = process.communicate(timeout=20)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert process.returncode == 0, log
    assert [json.loads(line)["status"] for line in log.splitlines()] == [200, 202]
    for hidden in (SECRETS["r00"], key("r00").hex(), used.nonce, "hmac-sha256"):
        assert hidden not in log + out


def test_the_command_refuses_a_wrong_listen(tmp_path: Path) -> None:
    from planner.cli.entry import call

    peers = tmp_path / "peers.json"
    peers.write_text("{}")
    peers.chmod(0o600)
    assert call(["rendezvous", "--peers", str(peers), "--listen", "nowhere"]) == 1
    assert call(["rendezvous", "--peers", str(peers)]) == 1
