"""An HTTP proxy in front of the emulated AWS, in which a test makes things go wrong.

A rule names an action (`RunInstances`, `PUT /bucket/key`; globs), what the launch or the body must look like, and how often it
holds.  Its effect is a refusal in AWS's own words, or a hold: the call is forwarded and executed, and its reply kept back until
the test lets it go, so that "the cloud did it, Terraform never heard of it" can be had at will.  Everything else passes byte for
byte, S3 included.  Every call is recorded.  Knows nothing of skyplan.
"""

import fnmatch
import http.client
import json
import re
import sys
import threading
import time
import urllib.parse
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from xml.sax.saxutils import escape

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "proxy-connection", "expect"}

# HTTP status (400 unless listed) and words of EC2's refusals; {type} and {zone} are filled from the launch
STATUS = {
    "InsufficientInstanceCapacity": 500,
    "InsufficientHostCapacity": 500,
    "InternalError": 500,
    "Unavailable": 503,
    "RequestLimitExceeded": 503,
    "UnauthorizedOperation": 403,
    "SlowDown": 503,
}
MESSAGES = {
    "InsufficientInstanceCapacity": "We currently do not have sufficient {type} capacity in the Availability Zone you "
    "requested ({zone}). Our system will be working on provisioning additional capacity.",
    "MaxSpotInstanceCountExceeded": "Max spot instance count exceeded",
    "VcpuLimitExceeded": "You have requested more vCPU capacity than your current vCPU limit of 0 allows for the instance "
    "bucket that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to "
    "request an adjustment to this limit.",
    "Unsupported": "Your requested instance type ({type}) is not supported in your requested Availability Zone ({zone}).",
    "RequestLimitExceeded": "Request limit exceeded.",
}


@dataclass(frozen=True)
class Launch:
    """What a RunInstances asks for, its launch template taken in; empty strings where it leaves that open."""

    instance_type: str = ""
    zone: str = ""
    zone_id: str = ""
    market: str = ""


@dataclass(frozen=True)
class Call:
    """One request as it came.  `params` is the decoded form of a query API; `status` is 0 while the reply is out."""

    action: str
    method: str
    path: str
    params: Mapping[str, str]
    launch: Launch | None
    at: float
    status: int = 0
    faulted: bool = False


@dataclass
class Rule:
    """One fault.  `fired` counts how often it struck."""

    action: str
    body: re.Pattern[str] | None
    where: Mapping[str, str]
    times: int | None
    fired: int = 0

    def matches(self, call: Call, text: str) -> bool:
        if self.times is not None and self.fired >= self.times:
            return False
        if not fnmatch.fnmatchcase(call.action, self.action):
            return False
        if self.body is not None and not self.body.search(text):
            return False
        launch = call.launch or Launch()
        return all(fnmatch.fnmatchcase(getattr(launch, name), glob) for name, glob in self.where.items())


@dataclass
class Failure(Rule):
    code: str = ""
    message: str = ""
    status: int = 400


@dataclass
class Hold(Rule):
    """A reply kept back.  `executed` is set once the emulator has done the work; `release()` lets the reply go."""

    executed: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def wait(self, timeout: float = 60.0) -> None:
        """Until the call has been executed."""
        if not self.executed.wait(timeout):
            raise TimeoutError(f"no {self.action} was executed within {timeout} s")

    def release(self) -> None:
        self.released.set()


class FaultProxy:
    """Serves on a free loopback port from construction until `close`."""

    def __init__(self, upstream: str):
        parts = urllib.parse.urlsplit(upstream)
        self.upstream = (parts.hostname or "127.0.0.1", parts.port or 80)
        self._lock = threading.Lock()
        self._rules: list[Rule] = []
        self._calls: list[Call] = []
        self.lost: list[str] = []
        self._server = _Server(self)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def fail(
        self,
        action: str = "RunInstances",
        code: str = "InsufficientInstanceCapacity",
        *,
        times: int | None = None,
        body: str | None = None,
        message: str | None = None,
        status: int | None = None,
        **where: str,
    ) -> Failure:
        """Refuses matching calls.  `where`: globs on `Launch` (instance_type, zone, zone_id, market); `body`: a regex."""
        rule = Failure(
            action,
            re.compile(body) if body else None,
            where,
            times,
            code=code,
            message=MESSAGES.get(code, f"{code} (injected)") if message is None else message,
            status=STATUS.get(code, 400) if status is None else status,
        )
        self._add(rule)
        return rule

    def hold(
        self, action: str = "RunInstances", *, times: int | None = 1, body: str | None = None, **where: str
    ) -> Hold:
        """Executes matching calls and keeps their replies back until `release()`, `clear()` or `close()`."""
        rule = Hold(action, re.compile(body) if body else None, where, times)
        self._add(rule)
        return rule

    def _add(self, rule: Rule) -> None:
        unknown = set(rule.where) - set(Launch.__dataclass_fields__)
        if unknown:
            raise TypeError(f"a launch has no {sorted(unknown)}; it has {sorted(Launch.__dataclass_fields__)}")
        with self._lock:
            self._rules.append(rule)

    def calls(self, action: str = "*") -> list[Call]:
        """The calls so far whose action matches, in the order they came."""
        with self._lock:
            return [c for c in self._calls if fnmatch.fnmatchcase(c.action, action)]

    def clear(self) -> None:
        """No rules, no record; held replies go out."""
        with self._lock:
            rules, self._rules, self._calls = self._rules, [], []
        for rule in rules:
            if isinstance(rule, Hold):
                rule.release()

    def close(self) -> None:
        self.clear()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    # what the handler asks for

    def begin(self, call: Call, text: str) -> tuple[int, Rule | None]:
        with self._lock:
            rule = next((r for r in self._rules if r.matches(call, text)), None)
            if rule is not None:
                rule.fired += 1
            self._calls.append(call)
            return len(self._calls) - 1, rule

    def end(self, call: Call, index: int, status: int, faulted: bool) -> None:
        done = Call(**{**vars(call), "status": status, "faulted": faulted})
        with self._lock:
            if index < len(self._calls) and self._calls[index] is call:
                self._calls[index] = done


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, proxy: FaultProxy):
        self.proxy = proxy
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed while its reply was held is no error; what else goes wrong on the way is kept for a look."""
        self.proxy.lost.append(repr(sys.exc_info()[1]))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Calls are recorded, not printed."""

    def _serve(self) -> None:
        proxy = self.server.proxy
        body, chunked = self._read_body()
        form = "x-www-form-urlencoded" in self.headers.get("Content-Type", "")
        params = dict(urllib.parse.parse_qsl(body.decode(errors="replace"), keep_blank_values=True)) if form else {}
        target = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
        action = params.get("Action") or target or f"{self.command} {self.path.partition('?')[0]}"
        launch = self._resolve(params) if action == "RunInstances" else None
        call = Call(action, self.command, self.path, params, launch, time.monotonic())
        text = urllib.parse.unquote_plus(body.decode(errors="replace")) if form else body.decode(errors="replace")
        index, rule = proxy.begin(call, text)
        if isinstance(rule, Failure):
            words = rule.message.format(type=(launch or Launch()).instance_type, zone=(launch or Launch()).zone)
            proxy.end(call, index, rule.status, True)
            self._reply(rule.status, [("Content-Type", "text/xml;charset=UTF-8")], refusal(rule.code, words, form))
            return
        status, headers, content = self._forward(body, chunked)
        if isinstance(rule, Hold):
            rule.executed.set()
            rule.released.wait()
        proxy.end(call, index, status, rule is not None)
        self._reply(status, headers, content)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_PATCH = do_OPTIONS = _serve  # noqa: N815 - the library's names

    def _read_body(self) -> tuple[bytes, bool]:
        if "chunked" not in self.headers.get("Transfer-Encoding", "").lower():
            return self.rfile.read(int(self.headers.get("Content-Length") or 0)), False
        parts: list[bytes] = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            """Trailers end with an empty line."""
        return b"".join(parts), True

    def _forward(self, body: bytes, chunked: bool) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(*self.server.proxy.upstream)
        try:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in HOP_BY_HOP:
                    connection.putheader(name, value)
            if chunked:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            reply = connection.getresponse()
            content = reply.read()
            headers = [(n, v) for n, v in reply.getheaders() if n.lower() not in HOP_BY_HOP]
            return reply.status, headers, content
        finally:
            connection.close()

    def _reply(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() != "content-length" or self.command == "HEAD":
                self.send_header(name, value)
        if self.command != "HEAD" and status not in (204, 304):
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _resolve(self, params: Mapping[str, str]) -> Launch:
        """Type, zone and market of a launch; the emulator knows its launch templates and subnets."""
        scope = re.search(r"Credential=[^/]+/\d+/([^/]+)/", self.headers.get("Authorization", ""))
        connection = http.client.HTTPConnection(*self.server.proxy.upstream)
        try:
            region = scope[1] if scope else "us-east-1"
            connection.request("POST", f"/strict/launch/{region}", json.dumps(dict(params)))
            reply = connection.getresponse()
            return Launch(**json.loads(reply.read())) if reply.status == 200 else Launch(params.get("InstanceType", ""))
        finally:
            connection.close()


def refusal(code: str, message: str, query_api: bool) -> bytes:
    """An error body as EC2 (query API) or S3 writes it."""
    error = f"<Code>{escape(code)}</Code><Message>{escape(message)}</Message>"
    request = uuid.uuid4()
    if query_api:
        inner = f"<Response><Errors><Error>{error}</Error></Errors><RequestID>{request}</RequestID></Response>"
    else:
        inner = f"<Error>{error}<RequestId>{request}</RequestId></Error>"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{inner}'.encode()
