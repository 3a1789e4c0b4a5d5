"""Google's token services and a gate before Cloud Storage that honours what they issue: generateAccessToken, the exchange for a downscoped token, access boundaries.

fake-gcs-server takes any token; through `Gate` a request needs one that was issued here, has not ended by this process's clock, and whose boundary allows it.
Conditions are read as skyplan's minter writes them (a prefix of names, a prefix of lists); anything else is refused.  Not Google's code: what it says is
held against Google's documentation (Credential Access Boundary, 2026-11) only.
"""

from __future__ import annotations

import http.client
import json
import re
import secrets
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

_NAME = re.compile(r"resource\.name\.startsWith\('projects/_/buckets/([^/']+)/objects/([^']*)'\)")
_OBJECT = re.compile(r"/(?:download/)?storage/v1/b/([^/]+)/o/(.+)")
_LIST = re.compile(r"/(?:upload/)?storage/v1/b/([^/]+)/o")
_READS = {"inRole:roles/storage.objectViewer"}
_WRITES = {"inRole:roles/storage.objectCreator", "inRole:roles/storage.objectAdmin"}


@dataclass
class Token:
    """One that was issued.  `rules` None: it is not downscoped."""

    ends: float
    rules: list[dict[str, Any]] | None = None
    prefixes: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def allows(self, right: str, bucket: str, name: str) -> bool:
        if self.rules is None:
            return True
        roles = _READS if right == "read" else _WRITES
        for rule in self.rules:
            resource = f"//storage.googleapis.com/projects/_/buckets/{bucket}"
            if rule["availableResource"] != resource or not roles & set(rule["availablePermissions"]):
                continue
            expression = rule.get("availabilityCondition", {}).get("expression")
            if expression is None:
                return True
            named = _NAME.search(expression)
            if named and named[1] == bucket and name.startswith(named[2]):
                return True
        return False


class GoogleTokens:
    """Both services.  `source` is the token that may ask for a service account's."""

    def __init__(self) -> None:
        self.source = "broker-source-token"
        self.issued: dict[str, Token] = {}
        self.exchanges = self.impersonations = 0

    def generate(self, bearer: str, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if bearer != self.source:
            return 403, {"error": {"status": "PERMISSION_DENIED"}}
        self.impersonations += 1
        lasts = float(str(asked.get("lifetime", "3600s")).rstrip("s"))
        token, ends = f"whole-{secrets.token_hex(8)}", time.time() + lasts
        self.issued[token] = Token(ends)
        text = datetime.fromtimestamp(ends, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return 200, {"accessToken": token, "expireTime": text}

    def exchange(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        subject = self.issued.get(form.get("subject_token", ""))
        if subject is None or subject.ends <= time.time() or subject.rules is not None:
            return 400, {"error": "invalid_grant", "error_description": "the subject token is none that holds"}
        rules = json.loads(unquote(form["options"]))["accessBoundary"]["accessBoundaryRules"]
        self.exchanges += 1
        token = f"down-{secrets.token_hex(8)}"
        self.issued[token] = Token(subject.ends, rules)
        return 200, {
            "access_token": token,
            "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
            "token_type": "Bearer",
            "expires_in": int(subject.ends - time.time()),
        }

    def judge(self, method: str, target: str, bearer: str, body: bytes) -> int:
        """What a request to Cloud Storage deserves: 200, 401, 403."""
        token = self.issued.get(bearer)
        if token is None or token.ends <= time.time():
            return 401
        url = urlsplit(target)
        right = "read" if method in {"GET", "HEAD"} else "write"
        if one := _OBJECT.fullmatch(url.path):
            return 200 if token.allows(right, one[1], unquote(one[2])) and method != "DELETE" else 403
        if several := _LIST.fullmatch(url.path):
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            name = query.get("prefix", "") if right == "read" else query.get("name") or _named(body)
            return 200 if token.allows(right, several[1], name) else 403
        return 200 if token.rules is None else 403


def _named(body: bytes) -> str:
    found = re.search(rb'"name": ?"([^"]+)"', body)
    return found[1].decode() if found else ""


class Gate:
    """Serves the token services, and all else to fake-gcs-server at `behind` where its token allows it."""

    def __init__(self, behind: str) -> None:
        self.tokens = GoogleTokens()
        self.refused: list[str] = []
        self._behind = urlsplit(behind).netloc
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def iam_url(self, account: str) -> str:
        return f"{self.url}/v1/projects/-/serviceAccounts/{account}:generateAccessToken"

    @property
    def sts_url(self) -> str:
        return f"{self.url}/v1/token"

    def _answer(self, method: str, target: str, headers: Any, body: bytes) -> tuple[int, dict[str, str], bytes]:
        bearer = headers.get("Authorization", "").removeprefix("Bearer ")
        if method == "POST" and target == "/v1/token":
            form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
            return _json(*self.tokens.exchange(form))
        if method == "POST" and target.endswith(":generateAccessToken"):
            return _json(*self.tokens.generate(bearer, json.loads(body)))
        status = self.tokens.judge(method, target, bearer, body)
        if status != 200:
            self.refused.append(f"{status} {method} {target}")
            return _json(status, {"error": {"code": status, "message": "refused"}})
        kept = {name: headers[name] for name in ("Content-Type", "Range", "X-Upload-Content-Type") if headers.get(name)}
        link = http.client.HTTPConnection(self._behind, timeout=30)
        try:
            link.request(method, target, body or None, kept)
            reply = link.getresponse()
            found = {n: v for n, v in reply.getheaders() if n.lower() not in {"transfer-encoding", "connection"}}
            return reply.status, found, reply.read()
        finally:
            link.close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        gate = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, headers, answer = gate._answer(self.command, self.path, self.headers, body)
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(answer))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer)

            def do_POST(self) -> None:
                self.do_GET()

            def do_PUT(self) -> None:
                self.do_GET()

            def do_DELETE(self) -> None:
                self.do_GET()

        return Handler


def _json(status: int, document: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    return status, {"Content-Type": "application/json"}, json.dumps(document).encode()
