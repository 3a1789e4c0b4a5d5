"""The rendezvous over HTTP: routes, limits, long polls, one log line a request.  Decides no question of who may join: `rendezvous` does.

    POST /v1/rendezvous/JOB/GENERATION/join    JSON {name, public_key, endpoint, nonce, time, proof}
    GET  /v1/rendezvous/JOB/GENERATION/peers   headers X-Skyplan-{Name,Nonce,Time,Proof}; `?wait=SECONDS` holds the answer back until it is final
    GET  /healthz

Answers are JSON; one to a known member carries `X-Skyplan-Seal`, made with its join secret: this is plain HTTP, and whoever could change an answer
could put himself between the nodes.  Keys and endpoints are public; nothing here needs hiding.  Open the port to the job's nodes only: threads are bounded,
and strangers could use them up.  Neither proofs nor bodies are logged.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import parse_qs

from planner.server.proof import Claim
from planner.server.rendezvous import Answer, Rendezvous, Request, refusal

if TYPE_CHECKING:
    import socket

MAX_BODY_BYTES: Final = 8192
"""A join is about 400 bytes now; an Azure or GCP identity token is up to 2 KiB."""
MAX_WAIT_SECONDS: Final = 25.0
"""Below the 30 s after which the tightest of common proxies gives up."""
MAX_THREADS: Final = 1200
"""A long poll by every one of 1,024 members, and some."""
_ROUTE: Final = re.compile(r"/v1/rendezvous/([a-z0-9-]{1,63})/([1-9][0-9]{0,8})/(join|peers)", re.ASCII)
_TIME: Final = re.compile(r"[1-9][0-9]{0,11}", re.ASCII)
_JOIN_FIELDS: Final = {"name", "public_key", "endpoint", "nonce", "time", "proof"}


class RendezvousServer(ThreadingHTTPServer):
    """Serves one rendezvous.  `port` 0 takes a free one; `url` tells which."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, host: str, port: int, rendezvous: Rendezvous) -> None:
        self.rendezvous = rendezvous
        self.changed = threading.Condition()
        self.ending = False
        self._places = threading.BoundedSemaphore(MAX_THREADS)
        super().__init__((host, port), _Handler)

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self.server_address[:2]
        return f"http://{host if isinstance(host, str) else host.decode()}:{port}"

    def end(self) -> None:
        """Answer whoever waits, then stop serving.  Called from another thread than `serve_forever`'s."""
        with self.changed:
            self.ending = True
            self.changed.notify_all()
        self.shutdown()

    def answer_when_final(self, wait_seconds: float) -> Answer:
        """The peers once all are there or the time is over; after `wait_seconds`, however it stands."""
        until = time.monotonic() + wait_seconds
        with self.changed:
            while (answer := self.rendezvous.peers()).status == 202 and not self.ending:  # noqa: PLR2004 - accepted
                left = min(until - time.monotonic(), self.rendezvous.seconds_left + 0.01)
                if until <= time.monotonic():
                    break
                self.changed.wait(max(left, 0.001))
            return answer

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: Any) -> None:
        """Start a thread, or, when there are too many, hang up."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: socket.socket | tuple[bytes, socket.socket], client_address: Any) -> None:
        """Give the thread's place back."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - socketserver's signature
        """One line without the request's words."""
        error = sys.exception()
        if not isinstance(error, OSError):  # a client that went away is none
            _log(event="error", error=type(error).__name__)


class _Handler(BaseHTTPRequestHandler):
    server_version = "skyplan"
    sys_version = ""
    timeout = 10.0
    server: RendezvousServer  # pyright: ignore[reportIncompatibleVariableOverride] - the class is made for this server alone
    claim: Claim | None = None

    def do_GET(self) -> None:
        """Health, or the peers."""
        path, _, query = self.path.partition("?")
        route = _ROUTE.fullmatch(path)
        if path == "/healthz":
            self._send(Answer(status=200, body={"ok": True}))
        elif route and route[3] == "peers":
            self._send(self._peers(route, query))
        else:
            self._send(_no_route(route))

    def do_POST(self) -> None:
        """A join."""
        route = _ROUTE.fullmatch(self.path)
        self._send(self._join(route) if route and route[3] == "join" else _no_route(route))

    def _join(self, route: re.Match[str]) -> Answer:
        body = self._body()
        if isinstance(body, Answer):
            return body
        if set(body) != _JOIN_FIELDS or type(body["time"]) is not int:
            return refusal(
                400, "malformed", f"a join has exactly {', '.join(sorted(_JOIN_FIELDS))}; `time` is an integer"
            )
        if not all(isinstance(body[name], str) for name in _JOIN_FIELDS - {"time"}):
            return refusal(400, "malformed", "all fields of a join but `time` are strings")
        said = {name: body[name] for name in _JOIN_FIELDS - {"proof"}}
        self.claim = Claim(purpose="join", job=route[1], generation=int(route[2]), **said)
        with self.server.changed:
            answer = self.server.rendezvous.join(Request(claim=self.claim, proof=body["proof"]))
            self.server.changed.notify_all()
        return answer

    def _peers(self, route: re.Match[str], query: str) -> Answer:
        header = {name: self.headers.get(f"X-Skyplan-{name}", "") for name in ("Name", "Nonce", "Time", "Proof")}
        if not _TIME.fullmatch(header["Time"]):
            return refusal(
                400, "malformed", "X-Skyplan-Name, -Nonce, -Time (seconds since 1970) and -Proof are required"
            )
        try:
            wait = float(parse_qs(query).get("wait", ["0"])[0])
        except ValueError:
            return refusal(400, "malformed", "`wait` must be a number of seconds")
        if not 0 <= wait < float("inf"):
            return refusal(400, "malformed", "`wait` must be a number of seconds")
        self.claim = Claim(
            purpose="peers",
            job=route[1],
            generation=int(route[2]),
            name=header["Name"],
            nonce=header["Nonce"],
            time=int(header["Time"]),
        )
        with self.server.changed:
            refused = self.server.rendezvous.admit(Request(claim=self.claim, proof=header["Proof"]))
        return refused or self.server.answer_when_final(min(wait, MAX_WAIT_SECONDS))

    def _body(self) -> dict[str, Any] | Answer:
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch(r"[0-9]{1,9}", length, re.ASCII):
            return refusal(411, "malformed", "Content-Length is required")
        if int(length) > MAX_BODY_BYTES:
            return refusal(413, "too-large", f"a body may have {MAX_BODY_BYTES} bytes")
        try:
            body = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            return refusal(400, "malformed", "the body must be a JSON object")
        return cast("dict[str, Any]", body)

    def _send(self, answer: Answer) -> None:
        body = json.dumps(answer.body, sort_keys=True).encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        if self.claim and (seal := self.server.rendezvous.seal(self.claim, answer.status, body)):
            self.send_header("X-Skyplan-Seal", seal)
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:  # noqa: ARG002 - http.server's signature
        """Method, path, status, the name that was claimed, the caller's address."""
        who = self.claim.name[:32] if self.claim else None
        path = getattr(self, "path", "").partition("?")[0][:200]  # a broken request line has none
        _log(event="request", method=self.command, path=path, status=int(code), name=who, client=self.client_address[0])

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ARG002 - http.server's signature
        """What http.server has to say of broken requests could quote them: a line without their words."""
        _log(event="bad-request", client=self.client_address[0])


def _no_route(route: re.Match[str] | None) -> Answer:
    if route:
        return refusal(405, "wrong-method", "join is POST, peers is GET")
    return refusal(404, "unknown-route", "see GET /v1/rendezvous/JOB/GENERATION/peers and POST …/join")


def _log(**fields: object) -> None:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    sys.stderr.write(json.dumps({"at": stamp, **fields}) + "\n")
    sys.stderr.flush()
