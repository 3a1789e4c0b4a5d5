"""Clients that hold a connection and send nothing, or a head without end; on a real socket."""

from __future__ import annotations

import contextlib
import io
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from planner.server import front, run
from planner.server.connections import Look
from planner.server.log import Log
from tests.unit.server.server_bed import bed, sqlite

POST = b"POST /v1/report HTTP/1.1\r\nHost: 127.0.0.1\r\n"
SLOW = {
    "nothing": b"",
    "half a head": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n",
    "no body": POST + b"Content-Length: 100\r\n\r\n",
    "no chunk": POST + b"Transfer-Encoding: chunked\r\n\r\n",
    "half the next head": b"GET /he",
}


@contextmanager
def serving(folder: Path, log: io.StringIO) -> Iterator[tuple[str, int]]:
    ready = threading.Event()
    with bed(sqlite(folder)) as b, run.listening("127.0.0.1", 0) as at:
        server = run._Server(run._config(b.app, None), ready.set, Log(log))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [at]})
        thread.start()
        try:
            assert ready.wait(30)
            yield at.getsockname()
        finally:
            server.should_exit = True
            thread.join(30)


def until_end(link: socket.socket) -> bytes:
    """All that comes until the server ends the connection."""
    found = b""
    try:
        while piece := link.recv(65_536):
            found += piece
    except ConnectionResetError:
        pass
    return found


@pytest.mark.parametrize("name", SLOW)
def test_who_keeps_us_waiting_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(run, "Look", lambda: Look(0.3))
    monkeypatch.setattr(run, "LOOK_SECONDS", 0.1)
    log = io.StringIO()
    with serving(tmp_path, log) as place, socket.create_connection(place, timeout=20) as link:
        if name == "half the next head":
            link.sendall(b"GET /page.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            while not link.recv(65_536).endswith(b"}\n"):
                pass
        link.sendall(SLOW[name])
        assert until_end(link) == b""
    assert '"event": "late"' in log.getvalue()


def test_who_waits_for_us_is_not_ended() -> None:
    look = Look(10)

    class Idle:
        """No connection of ours."""

    assert look.late([Idle()], 0) == look.late([Idle()], 100) == []


def test_a_pause_between_two_requests_is_no_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "Look", lambda: Look(0.2))
    monkeypatch.setattr(run, "LOOK_SECONDS", 0.05)
    request = b"GET /page.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with (
        serving(tmp_path, io.StringIO()) as place,
        socket.create_connection(place, timeout=20) as link,
        socket.create_connection(place, timeout=20) as other,
    ):
        for _ in range(2):
            link.sendall(request)
            answer = b""
            while not answer.endswith(b"}\n"):
                answer += link.recv(65_536)
            assert answer.startswith(b"HTTP/1.1 200")
            assert until_end(other) == b""  # ended meanwhile, though it came later


def test_a_head_without_end_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path, io.StringIO()) as place, socket.create_connection(place, timeout=20) as link:
        link.sendall(b"GET / HTTP/1.1\r\nA: ")
        sent = 0
        try:
            for _ in range(100):
                link.sendall(b"a" * 65_536)
                sent += 65_536
        except OSError:
            pass
        else:
            pytest.fail("6 MiB of a head were taken")


def test_bodies_that_come_in_pieces_are_bounded_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may be as long as a report; thousands that nobody knows, each nearly whole, would be all memory."""
    monkeypatch.setattr(front, "MAX_UNFINISHED_BYTES", 100_000)
    with serving(tmp_path, io.StringIO()) as place, contextlib.ExitStack() as links:
        found = [links.enter_context(socket.create_connection(place, timeout=20)) for _ in range(3)]
        for link in found:
            link.sendall(POST + b"Content-Length: 250000\r\n\r\n" + b"a" * 60_000)
        told, _, _ = select.select(found, [], [], 20)
        assert 1 <= len(told) < len(found)
        assert told[0].recv(65_536).startswith(b"HTTP/1.1 503")
        whole = links.enter_context(socket.create_connection(place, timeout=20))
        whole.sendall(POST + b"Content-Length: 2\r\n\r\n{}")
        assert whole.recv(65_536).startswith(b"HTTP/1.1 401")
