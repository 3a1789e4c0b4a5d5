"""Servers that answer nonsense: bounded time and memory, one of our errors, and never a traceback."""

# pyright: basic

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import requests
from google.auth.credentials import AnonymousCredentials

from planner.clouds.feeds import aws, azure_ask, bounded, gcp_ask
from planner.clouds.feeds.again import Again
from planner.clouds.feeds.port import Wanted
from planner.clouds.port import Where
from planner.model.errors import CloudError

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
JSON = {"Content-Type": "application/json"}
Answer = tuple[int, dict[str, str], bytes]


def plain(status: int, body: bytes, **headers: str) -> Callable[[int, str], Answer]:
    return lambda _count, _base: (status, {**JSON, **headers}, body)


def endless(count: int, base: str) -> Answer:
    """Empty pages, each with a token of its own."""
    token = str(count)
    body = {"Items": [], "NextPageLink": f"{base}/x?n={token}", "skus": [], "nextPageToken": token, "NextToken": token}
    return 200, JSON, json.dumps({**body, "Quotas": []}).encode()


SENSELESS: dict[str, Callable[[int, str], Answer]] = {
    "html": plain(200, b"<html><body>Sign in</body></html>"),
    "empty": plain(200, b""),
    "truncated": plain(200, b'{"Items": [{"a":'),
    "list": plain(200, b"[1, 2]"),
    "shape": plain(200, b'{"Items": 7, "skus": {"a": 1}, "Quotas": "xx", "items": 7}'),
    "deep": plain(200, b"[" * 200_000),
    "number": plain(200, b'{"Items": [' + b"9" * 5000 + b"]}"),
    "throttled": plain(429, b'{"error": "slow"}'),
    "throttled for ever": plain(429, b"", **{"Retry-After": "99999999999999999999"}),
    "error of another form": plain(500, b'{"error": {"errors": ["x"], "code": [1]}}'),
    "refusal of another form": plain(403, b'{"error": {"errors": {"a": 1}}}'),
    "no gzip": plain(200, b"plain", **{"Content-Encoding": "gzip"}),
    "elsewhere": plain(302, b"", Location="http://127.0.0.1:1/"),
    "bomb": plain(200, gzip.compress(b'{"Items": ["' + b"a" * (4 << 20)), **{"Content-Encoding": "gzip"}),
    "endless": endless,
}


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    told: dict[str, Any] = {"asked": 0}

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            told["asked"] += 1
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, headers, body = SENSELESS[told["word"]](told["asked"], told["base"])
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - its name

    for module in (aws, gcp_ask, azure_ask):
        monkeypatch.setattr(module, "MOST_PAGES", 20)
    monkeypatch.setattr(bounded, "MOST_BYTES", 1 << 20)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    base = f"http://127.0.0.1:{server.server_address[1]}"
    monkeypatch.setenv("AWS_ENDPOINT_URL", base)

    def begin(word: str) -> str:
        told.update(word=word, base=base)
        return base

    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield begin
    server.shutdown()
    thread.join()
    server.server_close()
    assert told["asked"] <= 100


def again() -> Again:
    return Again(pause=lambda _seconds: None)


@pytest.mark.parametrize("word", SENSELESS)
def test_aws(serve: Callable[[str], str], word: str) -> None:
    serve(word)
    feed = aws.AwsFeed(Where(cloud="aws", target="a", region="us-east-1"), again=again())
    wanted = Wanted(regions=("us-east-1",), instance_types={"us-east-1": ("p5.48xlarge",)}, zones={}, now=NOW)
    for source in (feed.prices, feed.capacity, feed.quotas):
        (fed,) = source(wanted)
        assert (fed.prices, fed.capacity, fed.quotas) == ((), (), ())
    feed.close()


@pytest.mark.parametrize("word", SENSELESS)
def test_google(serve: Callable[[str], str], word: str) -> None:
    base = serve(word)
    where = Where(cloud="gcp", target="g", region="us-central1", account="p")
    asked = gcp_ask.Google(where, again(), credentials=AnonymousCredentials(), compute=base, billing=base)
    with pytest.raises(CloudError):
        list(asked.skus())
    with pytest.raises(CloudError):
        list(asked.machine_types("us-central1-a"))
    asked.close()


@pytest.mark.parametrize("word", SENSELESS)
def test_azures_prices(serve: Callable[[str], str], word: str) -> None:
    with bounded.bounded(requests.Session()) as session, pytest.raises(CloudError):
        list(azure_ask.Retail(session, serve(word)).rows("x", again()))


def test_a_server_that_drips_is_left(serve: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock goes on by a minute with each piece."""
    base, clock = serve("bomb"), iter(range(0, 100_000, 60))
    monkeypatch.setattr(bounded.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(bounded, "MOST_BYTES", 1 << 40)
    with bounded.bounded(requests.Session()) as session, pytest.raises(CloudError, match="300 s"):
        list(azure_ask.Retail(session, base).rows("x", again()))
