"""Blobs of one account in memory: put once, get, list; a hierarchical account lists its directories too.  `may` judges each request by its credential.

How a directory's SAS is held to its directory is our reading: a listing has to name a prefix within it ("Signed Directory Depth Invalid" otherwise, as people report,
EnterpriseDB/barman issue 1092); Azurite has no directories, and no live account was asked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


class Wish(NamedTuple):
    """`access` is `list`, `read` or `write`; `name` a blob's in its container, or the listing's prefix."""

    access: str
    name: str
    query: dict[str, str]
    authorization: str


class Blobs:
    """Listens on loopback until `close`."""

    def __init__(self, may: Callable[[Wish], bool]) -> None:
        self.kept: dict[str, bytes] = {}
        self.wishes: list[Wish] = []
        blobs = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                self.answer("GET")

            def do_PUT(self) -> None:
                self.answer("PUT")

            def answer(self, method: str) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                url = urlsplit(self.path)
                query = {k: v[0] for k, v in parse_qs(url.query).items()}
                listing = query.get("comp") == "list"
                name = query.get("prefix", "") if listing else unquote(url.path).lstrip("/").partition("/")[2]
                access = "list" if listing else "read" if method == "GET" else "write"
                wish = Wish(access, name, query, self.headers.get("Authorization", ""))
                with blobs.lock:
                    blobs.wishes.append(wish)
                    status, code, said = (
                        blobs.done(wish, body) if may(wish) else (403, "AuthorizationPermissionMismatch", b"")
                    )
                self.send_response(status)
                self.send_header("Content-Length", str(len(said)))
                if code:
                    self.send_header("x-ms-error-code", code)
                self.end_headers()
                self.wfile.write(said)

        self.lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def done(self, wish: Wish, body: bytes) -> tuple[int, str, bytes]:
        if wish.access == "list":
            return 200, "", self._listed(wish.name)
        if wish.access == "read":
            found = self.kept.get(wish.name)
            return (404, "BlobNotFound", b"") if found is None else (200, "", found)
        if wish.name in self.kept:
            return 409, "BlobAlreadyExists", b""
        self.kept[wish.name] = body
        return 201, "", b""

    def _listed(self, prefix: str) -> bytes:
        folders = {name[:at] for name in self.kept for at, letter in enumerate(name) if letter == "/"}
        rows = {
            **dict.fromkeys(folders, ("0", "directory")),
            **{n: (str(len(b)), "file") for n, b in self.kept.items()},
        }
        found = "".join(
            f"<Blob><Name>{escape(name)}</Name><Properties><Content-Length>{size}</Content-Length>"
            f"<ResourceType>{kind}</ResourceType></Properties></Blob>"
            for name, (size, kind) in sorted(rows.items())
            if name.startswith(prefix)
        )
        return f"<EnumerationResults><Blobs>{found}</Blobs><NextMarker/></EnumerationResults>".encode()
