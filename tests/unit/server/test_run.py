"""Running: what cannot be listened at or used for TLS is said before anything is served."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from planner.model.errors import InputError
from planner.server.app import COOKIE_KEY
from planner.server.run import listening, tls_context
from tests.unit.server.server_bed import bed, sqlite


def test_a_place_that_is_taken() -> None:
    with listening("127.0.0.1", 0) as first, pytest.raises(OSError, match="in use"):
        listening("127.0.0.1", first.getsockname()[1])


def test_answers_wait_for_no_acknowledgement() -> None:
    # head and body are two writes: the second would come 40 ms later
    with listening("127.0.0.1", 0) as at, socket.create_connection(at.getsockname()), at.accept()[0] as accepted:
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize("key", ["missing", "text", "locked"])
def test_files_that_are_no_certificate(tmp_path: Path, key: str) -> None:
    (tmp_path / "text").write_text("hunter2")
    locked = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
    )
    (tmp_path / "locked").write_bytes(locked)
    with pytest.raises(InputError) as wrong:
        tls_context(str(tmp_path / key), str(tmp_path / key))
    assert wrong.value.diagnostics[0].code == "SKY-RUN-520"
    assert "hunter2" not in str(wrong.value)


def test_a_short_cookie_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COOKIE_KEY, "hunter2")
    with pytest.raises(InputError) as wrong, bed(sqlite(tmp_path)):
        pass
    assert "hunter2" not in str(wrong.value)


def test_replicas_with_one_cookie_key_know_each_others_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.unit.server.server_bed import NOW, SETTINGS
    from tests.unit.server.test_people import TRUST, URL, Idp

    settings = replace(SETTINGS, url=URL, people=TRUST)
    monkeypatch.setenv(COOKIE_KEY, "k" * 32)
    with bed(sqlite(tmp_path), settings=settings, fetch=Idp()) as one:
        cookie = one.app.state.people.sealed({"groups": ["ops"], "email": "o@example.com"}, NOW)
    with bed(sqlite(tmp_path), settings=settings, fetch=Idp()) as two:
        assert two.app.state.people.unsealed(cookie, NOW).name == "o@example.com"
    monkeypatch.delenv(COOKIE_KEY)
    from planner.server.oidc import NotBelieved

    with bed(sqlite(tmp_path), settings=settings, fetch=Idp()) as three, pytest.raises(NotBelieved):
        three.app.state.people.unsealed(cookie, NOW)
