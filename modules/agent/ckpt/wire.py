"""HTTP as stores need it: one host, kept connections, bodies streamed both ways.  Follows no redirect and uses no proxy: a credential goes to one place.

Decides nothing about what an answer means; what may pass is raised as Passing.
"""

from __future__ import annotations

import contextlib
import http.client
import ssl
import threading
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from .errors import StoreError
from .store import CHUNK_BYTES, Piece

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

MAX_ANSWER_BYTES = 16 << 20
SECONDS = 60.0
_KEPT = 16


class Passing(Exception):
    """A failure that may pass.  `after` in seconds, where the store said it."""

    def __init__(self, words: str, after: float | None = None) -> None:
        super().__init__(words)
        self.after = after


class Answer(NamedTuple):
    """An answer with its body; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Wire:
    """Connections to one host."""

    def __init__(self, url: str, *, ca_file: str | None = None, seconds: float = SECONDS) -> None:
        split = urlsplit(url)
        if split.scheme not in {"http", "https"} or not split.hostname:
            raise StoreError(f"{url} is no address of a store")
        if split.scheme == "http" and split.hostname not in {"127.0.0.1", "localhost", "::1"}:
            raise StoreError(f"{url}: plain HTTP goes to this machine only")
        self.path = split.path.rstrip("/")
        self.origin = f"{split.scheme}://{split.netloc}"
        self.host = split.netloc.rpartition("@")[2].lower()
        self._name, self._port, self._seconds = split.hostname, split.port, seconds
        self._tls = ssl.create_default_context(cafile=ca_file) if split.scheme == "https" else None
        self._idle: list[http.client.HTTPConnection] = []
        self._one = threading.Lock()

    def ask(self, method: str, target: str, headers: Mapping[str, str], body: Piece | None = None) -> Answer:
        """The whole answer.  Raises Passing."""
        with self.streamed(method, target, headers, body) as (response, found):
            raw = _read(response)
        return Answer(response.status, found, raw)

    @contextlib.contextmanager
    def streamed(
        self, method: str, target: str, headers: Mapping[str, str], body: Piece | None = None
    ) -> Generator[tuple[http.client.HTTPResponse, dict[str, str]], None, None]:
        """The answer, its body unread, and its headers.  Raises Passing."""
        connection = self._taken()
        kept = False
        try:
            response = _asked(connection, method, target, headers, body)
            yield response, {name.lower(): value for name, value in response.getheaders()}
            kept = response.isclosed() and not response.will_close
        finally:
            if kept:
                self._keep(connection)
            else:
                connection.close()

    def close(self) -> None:
        """All idle connections."""
        with self._one:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _taken(self) -> http.client.HTTPConnection:
        with self._one:
            if self._idle:
                return self._idle.pop()
        if self._tls is None:
            return http.client.HTTPConnection(self._name, self._port, timeout=self._seconds, blocksize=CHUNK_BYTES)
        return http.client.HTTPSConnection(
            self._name, self._port, timeout=self._seconds, blocksize=CHUNK_BYTES, context=self._tls
        )

    def _keep(self, connection: http.client.HTTPConnection) -> None:
        with self._one:
            if len(self._idle) < _KEPT:
                self._idle.append(connection)
                return
        connection.close()


def _asked(
    connection: http.client.HTTPConnection, method: str, target: str, headers: Mapping[str, str], body: Piece | None
) -> http.client.HTTPResponse:
    length = str(body.length if body else 0)
    sent = dict(headers) if method in {"GET", "HEAD"} else dict(headers, **{"Content-Length": length})
    try:
        try:
            connection.request(method, target, body=body, headers=sent)
        except (BrokenPipeError, ConnectionResetError):
            if body is None:
                raise
            # a store that refuses a body says so and hangs up before it has read it
        return connection.getresponse()
    except ssl.SSLCertVerificationError as error:
        raise StoreError(f"the certificate of {connection.host} does not hold: {error}") from error
    except (OSError, http.client.HTTPException) as error:
        raise Passing(f"{connection.host} does not answer: {error!r}") from error


def _read(response: http.client.HTTPResponse) -> bytes:
    try:
        raw = response.read(MAX_ANSWER_BYTES + 1)
        if len(raw) > MAX_ANSWER_BYTES:
            raise StoreError(f"an answer has more than {MAX_ANSWER_BYTES} bytes")
        if not response.isclosed():
            response.read()
    except (OSError, http.client.HTTPException) as error:
        raise Passing(f"the answer broke off: {error!r}") from error
    if response.length:  # the connection ended before the answer did
        raise Passing("the answer broke off")
    return raw
