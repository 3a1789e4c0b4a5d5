"""A control plane for the agent's tests: answers as docs/node-protocol.md says, keeps what it took, and fails as it is told to.

`fault(path, body)` is asked before each answer: None (answer), `away` (close before anything is taken), `lost` (take it, then close), or an answer of its own.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, Any], dict[str, str]]
Fault = Callable[[str, dict[str, Any]], "str | Answer | None"]


class Plane:
    """Listens on loopback until `close`."""

    def __init__(self, *, port: int = 0) -> None:
        self.items: dict[tuple[str, int], dict[str, Any]] = {}
        self.order: list[dict[str, Any]] = []
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.requests: list[dict[str, Any]] = []
        self.fault: Fault = lambda _path, _body: None
        self.stop_at: str | None = None
        self.stream, self.through = "", 0
        self.renew_after = 1800
        self.project = "acme"
        self.session = 0
        self.good: set[str] = set()
        self.lock = threading.Lock()
        plane = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 30

            def log_message(self, *_: Any) -> None:
                pass

            def do_POST(self) -> None:
                plane._answer(self)

            def do_GET(self) -> None:
                plane._answer(self)

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, *_: Any) -> None:
                pass

        self.server = Server(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def kinds(self, kind: str) -> list[dict[str, Any]]:
        with self.lock:
            return [i for i in self.order if i["kind"] == kind]

    def steps(self) -> list[int]:
        return [i["step"] for i in self.kinds("progress")]

    def paths(self, path: str) -> list[dict[str, Any]]:
        with self.lock:
            return [body for at, body in self.asked if at == path]

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        raw = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        body = json.loads(raw) if raw else {}
        fault = self.fault(handler.path, body)
        if fault == "away":
            handler.close_connection = True
            return
        with self.lock:
            self.asked.append((handler.path, body))
            status, document, headers = (
                fault if isinstance(fault, tuple) else self._said(handler.path, body, handler.headers)
            )
        if fault == "lost":
            handler.close_connection = True
            return
        sent = json.dumps(document).encode()
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(sent)))
        handler.end_headers()
        handler.wfile.write(sent)

    def _said(self, path: str, body: dict[str, Any], headers: Any) -> Answer:
        if path == "/v1/join":
            return self._joined()
        if headers.get("Authorization", "").removeprefix("Bearer ") not in self.good:
            return refusal(401, "unknown")
        if path == "/v1/session":
            return self._joined()
        if path == "/v1/cut":
            return 200, {"generations": [1], "cut": {"step": None}, "skipped": []}, {}
        assert path == "/v1/report"
        assert len(body["items"]) <= 500
        if body["stream"] != self.stream:
            self.stream, self.through = body["stream"], 0
        last = 0
        for item in body["items"]:
            assert item["seq"] > last, "rising within a report"
            last = item["seq"]
            key = (self.stream, item["seq"])
            if item["seq"] <= self.through:
                assert self.items.get(key, item) == item, "what was taken came again, changed"
                continue
            self.items[key] = item
            self.order.append(item)
            self.through = item["seq"]
        return 200, {"through": self.through, "requests": self.requests}, {}

    def _joined(self) -> Answer:
        self.session += 1
        token = f"session-{self.session}"
        self.good.add(token)
        return (
            200,
            {
                "session": token,
                "expires_at": "2099-01-01T00:00:00Z",
                "renew_after_seconds": self.renew_after,
                "manifest_key": "ab" * 32,
                "project": self.project,
                "nodes": 1,
                "stop_at": self.stop_at,
                "stream": self.stream or None,
                "through": self.through,
                "broker": None,
            },
            {},
        )


def refusal(status: int, word: str, **headers: str) -> Answer:
    return status, {"error": word, "code": "SKY-RUN-509", "reason": "the test says so"}, headers


def until(what: Callable[[], Any], seconds: float = 30) -> Any:
    """What becomes true, within a time that no machine takes unless it never does."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        found = what()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s")
