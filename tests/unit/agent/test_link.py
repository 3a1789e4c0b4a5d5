"""One kept connection, whatever becomes of it; and what an answer means."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator

import pytest

from modules.agent.client import Plane as Client
from modules.agent.client import judged
from modules.agent.errors import Away, Denied
from modules.agent.link import Answer, Link
from modules.agent.settings import Seat, Service
from tests.unit.agent.ckpt.scripted import Say, Scripted
from tests.unit.agent.plane import Plane, refusal

LINKS: list[Link] = []
SEAT = Seat("acme", "train", 3, 0, 1)


@pytest.fixture
def plane(socket_enabled: None) -> Iterator[Plane]:
    made = Plane()
    yield made
    while LINKS:
        LINKS.pop().close()
    made.close()


def client(plane: Plane, steady=lambda: 0.0) -> tuple[Client, Link]:
    link = Link(Service(plane.url, None, plane.url), seconds=10)
    LINKS.append(link)
    made = Client(
        link, SEAT, instance_id="i-1", key="ab" * 32, prove=lambda: {"scheme": "x", "value": 1}, steady=steady
    )
    return made, link


def test_a_closed_connection_is_opened_again_and_asked_once_more(plane):
    made, link = client(plane)
    made.join()
    link._open.sock.shutdown(socket.SHUT_RDWR)  # as a server that was restarted while nobody spoke
    assert made.report("s", [{"seq": 1, "kind": "heartbeat", "at": "x"}])["through"] == 1
    link.close()
    plane.close()
    with pytest.raises(Away):
        made.report("s", [{"seq": 2, "kind": "heartbeat", "at": "x"}])


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_what_may_pass_is_away_with_its_retry_after(plane, status):
    plane.fault = lambda *_: (status, {}, {"Retry-After": "7"})
    with pytest.raises(Away) as away:
        client(plane)[0].join()
    assert away.value.retry_after == 7


@pytest.mark.parametrize("after", ["Wed, 21 Oct 2026 07:28:00 GMT", "-1", "soon", "", "1e9"])
def test_a_retry_after_that_is_no_number_counts_as_none(plane, after):
    plane.fault = lambda *_: (503, {}, {"Retry-After": after})
    with pytest.raises(Away) as away:
        client(plane)[0].join()
    assert away.value.retry_after is None


@pytest.mark.parametrize(
    ("status", "word"), [(409, "fenced"), (410, "ended"), (403, "identity"), (409, "key"), (400, "malformed")]
)
def test_a_refusal_is_its_word(plane, status, word):
    plane.fault = lambda *_: refusal(status, word)
    with pytest.raises(Denied) as denied:
        client(plane)[0].join()
    assert (denied.value.word, denied.value.final) == (word, word in {"fenced", "ended"})


def test_a_strange_answer_ends_no_run():
    """A proxy's page, another service's 404: nothing that a job's fate should hang on."""
    for status in (301, 403, 404, 410):
        with pytest.raises(Away):
            judged(Answer(status, {"reason": "the answer is no JSON object"}, None))


@pytest.mark.parametrize(
    "document", [{}, {"session": "s"}, {"session": "s", "manifest_key": "xy", "renew_after_seconds": 1, "nodes": 1}]
)
def test_a_join_that_cannot_be_read_may_pass(plane, document):
    plane.fault = lambda *_: (200, document, {})
    with pytest.raises(Away, match="cannot be read"):
        client(plane)[0].join()


def test_a_session_is_renewed_after_its_time_and_not_before(plane):
    now = 0.0
    made, _ = client(plane, lambda: now)
    made.keep()
    now = 1799.0
    made.keep()
    assert plane.session == 1
    now = 1801.0
    made.keep()
    assert [path for path, _ in plane.asked] == ["/v1/join", "/v1/session"]


def test_the_cut_is_not_there_until_it_is(plane):
    made, _ = client(plane)
    plane.fault = lambda path, _: (202, {}, {}) if path == "/v1/cut" else None
    assert made.chosen() is None
    plane.fault = lambda *_: None
    assert made.chosen()["cut"] == {"step": None}


def test_a_certificate_of_nobody_is_no_control_plane(plane):
    """TLS is checked: a server in clear text, or without a known certificate, is away."""
    link = Link(Service(plane.url.replace("http", "https"), None, "x"), seconds=5)
    with pytest.raises(Away):
        link.ask("POST", "/v1/join", {})
    assert link._context.verify_mode == ssl.CERT_REQUIRED
    assert link._context.check_hostname


def test_a_server_that_never_answers_is_away(socket_enabled):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        link = Link(Service(url, None, url), seconds=0.3)
        with pytest.raises(Away):
            link.ask("GET", "/", None)
    assert threading.active_count() < 50


@pytest.mark.parametrize(
    "body",
    [
        b"<html>Back soon</html>",
        b"[1]",
        b'"yes"',
        b"null",
        b'{"through": Infinity}',
        b'{"through": 1e999}',
        b"[" * 100_000,
    ],
)
def test_another_services_200_is_no_yes(socket_enabled, body):
    """A load balancer's page while the service is away."""
    with contextlib.closing(Scripted([Say(200, body)])) as server:
        link = Link(Service(server.url, None, server.url), seconds=10)
        with contextlib.closing(link), pytest.raises(Away, match="no JSON object"):
            link.ask("POST", "/v1/cut", {"phase": "begin"})
