"""The node's credential endpoint: on loopback only, from memory only, behind a token that only the job's user can read (0400).

    GET  /v1/creds/<grant>         AWS's container form for S3 and Nebius, OAuth's for Google, account, container and SAS for Azure
    POST /v1/google/<grant>/token  a security token service (RFC 8693) for Google's clients: their `external_account` file names it as token_url and the
                                   token file as subject token, so that unmodified clients come here for the downscoped token by themselves

The token is in `Authorization` (AWS's SDKs send the file's text as it is; `Bearer` before it is fine).  Address and token outlive a restart of the agent: the
job has them in its environment.  Whoever comes under another host's name than loopback's is a browser that was led here, and gets nothing.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs

from . import files
from .environment import documents, environment, sas_file
from .holder import Holder
from .lease import Lease, Wanted

MAX_BODY_BYTES = 64 * 1024
CONNECTION_SECONDS = 10
MOST_CONNECTIONS = 64
"""Whoever may speak on loopback may open connections and say nothing: they shall use up neither this program's descriptors nor its memory."""
PATIENCE_SECONDS = 1.0
"""So long each is left alone, also where there are too many: an answer takes milliseconds."""
_STS_PREFIX, _CREDS_PREFIX = "/v1/google/", "/v1/creds/"


class Endpoint:
    """Serves a holder's leases, and lays out the files by which clients find it.

    folder     for token, address and configurations; `seen` is its path as the job sees it
    owner      (uid, gid) of the job where it is not this user's
    endpoints  grant -> S3 endpoint, of stores that are not AWS's
    """

    def __init__(
        self,
        holder: Holder,
        folder: str,
        *,
        owner: tuple[int, int] | None = None,
        seen: str | None = None,
        endpoints: Mapping[str, str] | None = None,
    ) -> None:
        self._holder, self._owner = holder, owner
        self._folder, self.seen = Path(folder), seen or folder
        self.endpoints = dict(endpoints or {})
        files.folder(self._folder, owner)
        self._token = files.token(self._folder / files.TOKEN, owner)
        self._server = self._listen()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        files.write(self._folder / files.ADDRESS, self.url, mode=0o444)
        for name, text in documents(holder.wanted, self.url, self.seen, endpoints=self.endpoints).items():
            files.write(self._folder / name, text, mode=0o444)
        holder.changed = self._changed
        self._thread = threading.Thread(target=self._server.serve_forever, name="credentials", daemon=True)

    def environment(self, *, own: Iterable[str] = (), project: str = "") -> dict[str, str | None]:
        """See `environment.environment`."""
        return environment(self._holder.wanted, self.url, self.seen, own=own, project=project, endpoints=self.endpoints)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()

    def _listen(self) -> _Server:
        """At the port of the last time, which the job knows; or at another where that is taken."""
        before = files.recall(self._folder / files.ADDRESS).rpartition(":")[2]
        for port in (int(before) if before.isdigit() else 0, 0):
            try:
                return _Server(port, self)
            except OSError:
                if not port:
                    raise
        raise AssertionError

    def _changed(self, wanted: Wanted, lease: Lease) -> None:
        if lease.shape == "azure":
            files.write(self._folder / sas_file(wanted), lease.secret["sas"], self._owner)

    def allowed(self, given: str) -> bool:
        """Whether it is the token."""
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode())

    def answer(self, grant: str) -> tuple[int, dict[str, Any]]:
        """A grant's lease in its cloud's form."""
        lease, status, problem = self._lease(grant)
        return (200, form(lease, self._holder.now())) if lease else (status, problem)

    def exchange(self, grant: str, asked: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """As Google's STS answers."""
        if not self.allowed(asked.get("subject_token", "")):
            return 401, {"error": "invalid_grant", "error_description": "the subject token is not this node's"}
        lease, status, problem = self._lease(grant)
        if lease is None or lease.shape != "gcp":
            code = "invalid_target" if lease or status != _UNAVAILABLE else "temporarily_unavailable"
            return (status if lease is None else 404), {"error": code, "error_description": problem.get("message", "")}
        return 200, {**form(lease, self._holder.now()), "issued_token_type": _ACCESS_TOKEN}

    def _lease(self, grant: str) -> tuple[Lease | None, int, dict[str, Any]]:
        try:
            lease = self._holder.lease(grant)
        except KeyError:
            return None, 404, {"code": "NoGrant", "message": "this node has no such grant"}
        return lease, _UNAVAILABLE, {"code": "NoLease", "message": "no lease holds now: the broker is away"}


_UNAVAILABLE = 503
_ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - a type's name


def form(lease: Lease, now: float) -> dict[str, Any]:
    """A lease as its cloud's clients read it.  Nebius' keys have no session token: botocore wants the word, and sends nothing where it is empty."""
    secret = lease.secret
    if lease.shape in {"aws", "nebius"}:
        found = {
            "AccessKeyId": secret["access_key_id"],
            "SecretAccessKey": secret["secret_access_key"],
            "Token": secret.get("session_token", ""),
            "Expiration": lease.ends_text,
        }
        return {**found, "Endpoint": secret["endpoint"]} if "endpoint" in secret else found
    if lease.shape == "gcp":
        return {"access_token": secret["access_token"], "token_type": "Bearer", "expires_in": int(lease.left(now))}
    return {**secret, "expires_at": lease.ends_text}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512  # all workers of a data loader at once

    def __init__(self, port: int, endpoint: Endpoint) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.endpoint = endpoint
        self._one = threading.Lock()
        self._open: dict[Any, float] = {}  # in order

    def process_request(self, request: Any, client_address: Any) -> None:
        """In a thread of its own, once there is room for it."""
        while True:
            with self._one:
                oldest, since = next(iter(self._open.items()), (None, 0.0))
                if len(self._open) < MOST_CONNECTIONS:
                    self._open[request] = time.monotonic()
                    break
                late = time.monotonic() - since > PATIENCE_SECONDS
                if late:
                    del self._open[oldest]
            if late and oldest is not None:
                with contextlib.suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)  # its thread then ends by itself
            else:
                time.sleep(0.005)  # the others wait in the kernel's queue
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """It has ended."""
        with self._one:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is nothing to write of, and no error shows what was asked."""


class _Handler(BaseHTTPRequestHandler):
    timeout = CONNECTION_SECONDS
    server_version = "skyplan"
    sys_version = ""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name
        """Nothing: headers are not far."""

    def do_GET(self) -> None:
        """A lease."""
        endpoint = cast(_Server, self.server).endpoint
        given = self.headers.get("Authorization", "")
        if not self._here():
            self._send(403, {"code": "Forbidden", "message": "not by this name"})
        elif not endpoint.allowed(given.partition("Bearer ")[2] or given):
            self._send(401, {"code": "Unauthorized", "message": "the token is wrong"})
        elif self.path.startswith(_CREDS_PREFIX):
            self._send(*endpoint.answer(self.path[len(_CREDS_PREFIX) :]))
        else:
            self._send(404, {"code": "NoGrant", "message": "there is nothing here"})

    def do_POST(self) -> None:
        """An exchange, as of Google's STS."""
        parts = self.path[len(_STS_PREFIX) :].split("/") if self.path.startswith(_STS_PREFIX) else []
        length = self.headers.get("Content-Length", "")
        if not self._here():
            self._send(403, {"error": "invalid_client"})
        elif len(parts) != 2 or parts[1] != "token":  # noqa: PLR2004 - <grant>/token
            self._send(404, {"error": "invalid_target"})
        elif not length.isdigit() or int(length) > MAX_BODY_BYTES:
            self._send(413, {"error": "invalid_request"})
        else:
            fields = parse_qs(self.rfile.read(int(length)).decode("utf-8", "replace"))
            self._send(
                *cast(_Server, self.server).endpoint.exchange(
                    parts[0], {name: values[0] for name, values in fields.items()}
                )
            )

    def _here(self) -> bool:
        return self.headers.get("Host", "").rpartition(":")[0] in {"127.0.0.1", "localhost"}

    def _send(self, status: int, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)
