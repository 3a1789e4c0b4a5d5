"""`skyplan serve` as a process: TLS, signals, a database that goes away and comes back, two replicas on one PostgreSQL."""

from __future__ import annotations

import datetime as dt
import hashlib
import http.client
import ipaddress
import json
import os
import secrets
import signal
import sqlite3
import ssl
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from planner.model.record import stamp
from planner.model.runtime import Seat
from planner.state.record import Record
from planner.state.runtime import Runtime
from tests.contract import conftest as databases
from tests.unit.server.server_bed import launch

ROOT = Path(__file__).parents[2]
PROJECT = "acme"
postgresql = databases.postgresql


@dataclass
class Served:
    """A server's process."""

    url: str
    process: subprocess.Popen[str]

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)


@contextmanager
def serving(folder: Path, database: str, *, settings: str = "url: http://127.0.0.1:8443\n") -> Iterator[Served]:
    (folder / "skyplan.yaml").write_text(f"project: {PROJECT}\n")
    (folder / "server.yaml").write_text(settings)
    code = "from planner.cli.entry import run; run()"
    command = [sys.executable, "-c", code, "serve", "--listen", "127.0.0.1:0"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SKYPLAN_DATABASE_URL": database, "NO_COLOR": "1"}
    log = (folder / f"log-{uuid.uuid4().hex}").open("w")
    with log, subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=log, text=True) as process:
        try:
            assert process.stdout
            line = process.stdout.readline()
            assert line, Path(log.name).read_text()
            yield Served(url=json.loads(line)["url"], process=process)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait(30)


@dataclass
class Node:
    """An agent that keeps what was not answered."""

    url: str
    session: str
    stream: str
    seq: int = 0

    def item(self) -> dict[str, Any]:
        self.seq += 1
        return {"seq": self.seq, "kind": "progress", "at": stamp(dt.datetime.now(dt.UTC)), "step": self.seq}

    def send(self, items: list[dict[str, Any]], **client: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.session}"}
        return httpx.post(
            f"{self.url}/v1/report",
            json={"stream": self.stream, "items": items},
            headers=headers,
            timeout=60,
            trust_env=False,
            **client,
        )


def joined(url: str, runtime: Runtime, rank: int = 0, **client: Any) -> Node:
    """With a one-time token."""
    now = dt.datetime.now(dt.UTC)
    token = secrets.token_urlsafe(32)
    seat = Seat(job="train", generation=1, rank=rank)
    ends = now + dt.timedelta(hours=1)
    runtime.put_one_time(seat, hashlib.sha256(token.encode()).hexdigest(), ends, now)
    body = {
        "job": "train",
        "generation": 1,
        "rank": rank,
        "instance_id": f"i-train-{rank}",
        "proof": {"scheme": "one-time", "value": token},
        "key": secrets.token_hex(16),
        "at": stamp(now),
    }
    answer = httpx.post(f"{url}/v1/join", json=body, timeout=30, trust_env=False, **client)
    assert answer.status_code == 200, answer.text
    return Node(url=url, session=answer.json()["session"], stream=str(uuid.uuid4()))


@contextmanager
def recorded(database: str) -> Iterator[Runtime]:
    record = Record.open(database, PROJECT)
    runtime = Runtime.open(database, PROJECT)
    try:
        launch(record)
        yield runtime
    finally:
        runtime.close()
        record.close()


def steps(runtime: Runtime, rank: int = 0) -> list[int]:
    return [p.step for p in runtime.progress("train", rank=rank)]


def test_a_server_is_killed_and_started_anew_and_nothing_is_lost(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'record.sqlite'}"
    with recorded(database) as runtime:
        with serving(tmp_path, database) as served:
            assert httpx.get(f"{served.url}/healthz", trust_env=False).json() == {"ok": True}
            node = joined(served.url, runtime)
            kept = [node.item(), node.item()]
            assert node.send(kept).json()["through"] == 2
            assert served.stop(signal.SIGKILL) == -signal.SIGKILL
        kept.append(node.item())
        with serving(tmp_path, database) as served:
            node.url = served.url
            # the reply to the first two might have been lost: all are sent again, in the same session
            assert node.send(kept).json()["through"] == 3
            assert served.stop() == 0
        assert steps(runtime) == [1, 2, 3]


def test_what_was_being_written_is_answered_before_the_server_ends(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'record.sqlite'}"
    with recorded(database) as runtime, serving(tmp_path, database) as served:
        node = joined(served.url, runtime)
        node.send([node.item()])
        other = sqlite3.connect(tmp_path / "record.sqlite", isolation_level=None, timeout=30)
        other.execute("BEGIN IMMEDIATE")
        link = http.client.HTTPConnection(served.url.removeprefix("http://"), timeout=30)
        body = json.dumps({"stream": node.stream, "items": [node.item()]})
        link.request("POST", "/v1/report", body, {"Authorization": f"Bearer {node.session}"})
        # what came before this one has been read when this one is answered
        assert httpx.get(f"{served.url}/page.css", trust_env=False, timeout=30).status_code == 200
        served.process.send_signal(signal.SIGTERM)
        other.execute("ROLLBACK")
        other.close()
        answer = link.getresponse()
        assert (answer.status, json.loads(answer.read())["through"]) == (200, 2)
        link.close()
        assert served.process.wait(30) == 0
        assert steps(runtime) == [1, 2]


def test_off_loopback_only_with_tls(tmp_path: Path) -> None:
    (tmp_path / "skyplan.yaml").write_text(f"project: {PROJECT}\n")
    (tmp_path / "server.yaml").write_text("url: http://127.0.0.1\nlisten: 0.0.0.0:0\n")
    command = [sys.executable, "-c", "from planner.cli.entry import run; run()", "serve"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "server.yaml:2" in done.stderr
    assert "SKY-RUN-520" in done.stderr
    assert not (tmp_path / ".skyplan").exists()


def _certificate(folder: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "tls.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "tls.key").write_bytes(private)
    return folder / "tls.pem"


def test_tls(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'record.sqlite'}"
    trust = ssl.create_default_context(cafile=str(_certificate(tmp_path)))
    settings = "url: https://127.0.0.1:8443\ntls: {certificate: tls.pem, key: tls.key}\n"
    with recorded(database) as runtime, serving(tmp_path, database, settings=settings) as served:
        assert served.url.startswith("https://")
        node = joined(served.url, runtime, verify=trust)
        answer = node.send([node.item()], verify=trust)
        assert answer.json()["through"] == 1
        assert answer.headers["strict-transport-security"]
        plain = served.url.replace("https:", "http:")
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"{plain}/healthz", trust_env=False)
        old = ssl.create_default_context(cafile=str(tmp_path / "tls.pem"))
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        assert httpx.get(f"{served.url}/healthz", verify=old, trust_env=False).status_code == 200
        assert served.stop() == 0


def test_two_replicas_on_one_postgresql_and_its_restart(tmp_path: Path, postgresql: str) -> None:
    """A session of one holds with the other; connections that the database ended are made anew, and nothing is lost."""
    import psycopg

    host = postgresql.split("&", maxsplit=1)[0].removeprefix("host=")
    name = f"t{uuid.uuid4().hex[:12]}"
    with psycopg.connect(host=host, user="skyplan", dbname="postgres", autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        database = f"postgresql://skyplan@/{name}?host={host}"
        with recorded(database) as runtime, serving(tmp_path, database) as one, serving(tmp_path, database) as two:
            node = joined(one.url, runtime)
            sent = [node.item()]
            for url in (one.url, two.url, two.url, one.url):
                node.url = url
                assert node.send(sent).json()["through"] == node.seq
                sent.append(node.item())
            nodes = [joined((one.url, two.url)[k % 2], runtime, rank=k) for k in (1,)] + [node]
            admin.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
            for each in nodes:
                items = sent if each is node else [each.item()]
                for _ in range(5):
                    answer = each.send(items)
                    if answer.status_code == 200:
                        break
                    assert answer.status_code == 503
                    assert answer.headers["retry-after"]
                assert answer.json()["through"] == items[-1]["seq"]
            assert steps(runtime) == [1, 2, 3, 4, 5]
            assert steps(runtime, rank=1) == [1]
            assert (one.stop(), two.stop()) == (0, 0)
