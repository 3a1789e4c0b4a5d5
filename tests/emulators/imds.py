"""The four clouds' metadata services on loopback: sessions, roles, identity documents and tokens signed by `issuers`, and notices that a test can raise.

    with Metadata() as imds:
        imds.environment                     what points agent and SDKs there
        imds.spot = {"action": "terminate", "time": "2026-11-30T12:02:00Z"}
        imds.preempted, imds.maintenance, imds.events, imds.rebalance

Shapes follow the clouds' documentation as read 2026-11; held against none of them live.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from tests.emulators.issuers import (
    GOOGLE,
    MICROSOFT,
    DocumentSigner,
    Sts,
    TokenSigner,
    azure_claims,
    google_claims,
)


class Metadata:
    """All four at once; paths do not overlap.  `clock` is that of sessions and tokens."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.documents, self.sts = DocumentSigner(), Sts()
        self.google, self.microsoft = TokenSigner(GOOGLE), TokenSigner(MICROSOFT)
        self.role: str | None = "job-train"
        self.instance, self.account = "i-0123456789abcdef0", "111122223333"
        self.vm = "train-g3-r0"
        self.sessions: dict[str, float] = {}
        self.paths: list[str] = []
        self.spot: dict[str, str] | None = None
        self.rebalance: dict[str, str] | None = None
        self.preempted, self.maintenance = "FALSE", "NONE"
        self.events: list[dict[str, Any]] = []
        self.changed = threading.Condition()
        self.proxied = False
        self.tokens = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._ended = False

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with self.changed:
            self._ended = True
            self.changed.notify_all()
        self._server.shutdown()
        self._server.server_close()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": f"http://{self.address}",
            "GCE_METADATA_HOST": self.address,
            "AZURE_POD_IDENTITY_AUTHORITY_HOST": f"http://{self.address}",
        }

    def preempt(self, preempted: str = "TRUE", maintenance: str | None = None) -> None:
        """Google's values change, and whoever waits for it is answered."""
        with self.changed:
            self.preempted = preempted
            self.maintenance = maintenance or self.maintenance
            self.changed.notify_all()

    def _answer(self, method: str, target: str, headers: Any) -> tuple[int, str, dict[str, str]]:
        url = urlsplit(target)
        self.paths.append(f"{method} {target}")
        query = {k: v[0] for k, v in parse_qs(url.query).items()}
        if url.path.startswith("/latest/"):
            return self._aws(method, url.path.removeprefix("/latest/"), headers)
        if url.path.startswith("/computeMetadata/v1/"):
            if headers.get("Metadata-Flavor") != "Google":
                return 403, "", {}
            return self._gcp(url.path.removeprefix("/computeMetadata/v1/"), query)
        if url.path.startswith("/metadata/"):
            if headers.get("Metadata") != "true":
                return 400, "", {}
            return self._azure(url.path.removeprefix("/metadata/"), query)
        return 404, "", {}

    def _aws(self, method: str, path: str, headers: Any) -> tuple[int, str, dict[str, str]]:
        if path == "api/token":
            if method != "PUT":
                return 405, "", {}
            token = secrets.token_hex(8)
            self.sessions[token] = self.clock() + int(headers["X-aws-ec2-metadata-token-ttl-seconds"])
            return 200, token, {}
        if self.sessions.get(headers.get("X-aws-ec2-metadata-token", ""), 0) <= self.clock():
            return 401, "", {}
        document = self.documents.document(instance=self.instance, account=self.account)
        found: dict[str, Any] = {
            "dynamic/instance-identity/document": document,
            "dynamic/instance-identity/signature": self.documents.signature(document),
            "meta-data/placement/region": self.documents.region,
            "meta-data/iam/security-credentials/": self.role,
            "meta-data/spot/instance-action": self.spot,
            "meta-data/events/recommendations/rebalance": self.rebalance,
        }
        if self.role and path == f"meta-data/iam/security-credentials/{self.role}":
            found[path] = self.sts.give(self.role, instance=self.instance, account=self.account)
        answer = found.get(path)
        if answer is None:
            return 404, "", {}
        return 200, answer if isinstance(answer, str) else json.dumps(answer), {}

    def _gcp(self, path: str, query: dict[str, str]) -> tuple[int, str, dict[str, str]]:
        flavor = {"Metadata-Flavor": "Google"}
        if path == "instance/service-accounts/default/identity":
            claims = google_claims(query["audience"])
            if query.get("format") != "full":
                del claims["google"], claims["email"], claims["email_verified"]
            return 200, self.google.token(claims, self._now()), flavor
        if path == "instance/service-accounts/default/token":
            self.tokens += 1
            said = {"access_token": f"ya29.node-{self.tokens}", "expires_in": 3599, "token_type": "Bearer"}
            return 200, json.dumps(said), flavor
        names = {"instance/preempted": "preempted", "instance/maintenance-event": "maintenance"}
        if path not in names:
            return 404, "", flavor
        with self.changed:
            tag = f"etag-{getattr(self, names[path])}"
            if query.get("wait_for_change") == "true" and query.get("last_etag", tag) == tag:
                self.changed.wait_for(
                    lambda: self._ended or f"etag-{getattr(self, names[path])}" != tag,
                    timeout=float(query.get("timeout_sec", 60)),
                )
            value = getattr(self, names[path])
        return 200, value, {**flavor, "ETag": f"etag-{value}"}

    def _azure(self, path: str, query: dict[str, str]) -> tuple[int, str, dict[str, str]]:
        if path == "identity/oauth2/token":
            lasts = 86400
            token = self.microsoft.token(azure_claims(query["resource"], vm=self.vm), self._now(), seconds=lasts)
            said = {
                "access_token": token,
                "expires_in": str(lasts),
                "token_type": "Bearer",
                "resource": query["resource"],
            }
            return 200, json.dumps(said), {}
        if path == "instance/compute/name":
            return 200, self.vm, {}
        if path == "scheduledevents":
            return 200, json.dumps({"DocumentIncarnation": len(self.events), "Events": self.events}), {}
        return 404, "", {}

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.clock(), UTC)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        emulator = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                status, text, headers = emulator._answer(self.command, self.path, self.headers)
                body = text.encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def do_PUT(self) -> None:
                self.do_GET()

        return Handler
