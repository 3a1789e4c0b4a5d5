"""The way out to platforms: no redirects, bounded in time and size, https off this machine.  Against a server of the test on loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from planner.model.errors import Unavailable
from planner.server.identity.fetch import MAX_ANSWER_BYTES, fetcher
from planner.server.identity.port import Asked


class _Handler(BaseHTTPRequestHandler):
    seen: list[tuple[str, str, bytes, dict[str, str]]]
    held: threading.Event

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        length = int(self.headers.get("content-length", 0))
        self.seen.append((self.command, self.path, self.rfile.read(length), dict(self.headers.items())))
        if self.path == "/slow":
            self.held.wait(10)
        status, body, more = {
            "/redirect": (302, b"", [("Location", "/keys")]),
            "/large": (200, b"x" * (MAX_ANSWER_BYTES + 1), []),
            "/denied": (403, b"<no/>", []),
        }.get(self.path, (200, b"{}", []))
        self.send_response(status)
        for name, value in more:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.do_GET()


@pytest.fixture
def server() -> Iterator[tuple[str, type[_Handler]]]:
    handler = type("Handler", (_Handler,), {"seen": [], "held": threading.Event()})
    served = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{served.server_address[1]}", handler
    handler.held.set()
    served.shutdown()
    thread.join()
    served.server_close()


def test_what_is_asked_is_sent(server, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")  # a proxy is never between this machine and itself
    url, handler = server
    got = fetcher()(Asked(url=f"{url}/keys", method="POST", headers={"X-Skyplan-Audience": "us"}, body=b"a=b"))
    assert (got.status, got.body) == (200, b"{}")
    method, path, body, headers = handler.seen[0]
    named = {name.lower(): value for name, value in headers.items()}
    assert (method, path, body, named["x-skyplan-audience"]) == ("POST", "/keys", b"a=b", "us")


def test_a_redirect_is_an_answer_and_not_followed(server):
    url, handler = server
    assert fetcher()(Asked(url=f"{url}/redirect")).status == 302
    assert [path for _, path, _, _ in handler.seen] == ["/redirect"]


def test_an_error_is_an_answer(server):
    url, _ = server
    got = fetcher()(Asked(url=f"{url}/denied"))
    assert (got.status, got.body) == (403, b"<no/>")


def test_bounded_in_size_and_time(server):
    url, _ = server
    with pytest.raises(Unavailable, match="bytes"):
        fetcher()(Asked(url=f"{url}/large"))
    with pytest.raises(Unavailable, match="did not answer"):
        fetcher(timeout_seconds=0.2)(Asked(url=f"{url}/slow"))


@pytest.mark.parametrize(
    "url", ["http://sts.example/", "ftp://127.0.0.1/", "file:///etc/hostname", "http://127.0.0.1.example/"]
)
def test_https_only_off_this_machine(url):
    with pytest.raises(Unavailable, match="https"):
        fetcher()(Asked(url=url))


def test_nobody_there(server):
    with pytest.raises(Unavailable):
        fetcher()(Asked(url="http://127.0.0.1:1/"))
