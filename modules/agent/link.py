"""One service over HTTP: a question, its answer.  Keeps one connection open: ten thousand nodes that greet by TLS every ten seconds would be the server's whole work.

Follows no redirect and uses no proxy: sessions and proofs go to one place.  What it raises is `Away` (may pass) and nothing else; what an answer means is for `client`.
"""

from __future__ import annotations

import http.client
import json
import math
import ssl
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlsplit

from .errors import Away

if TYPE_CHECKING:
    from .settings import Service

REPLY_SECONDS = 30.0
MAX_ANSWER_BYTES = 4 << 20


class Answer(NamedTuple):
    """What came back.  `retry_after` in seconds, None where the service does not say."""

    status: int
    document: dict[str, Any]
    retry_after: float | None


class Link:
    """A service.  Threads may share it: one question at a time."""

    def __init__(self, service: Service, *, seconds: float = REPLY_SECONDS) -> None:
        self.url = service.url
        self._service = service
        self._seconds = seconds
        self._one = threading.Lock()
        self._open: http.client.HTTPConnection | None = None
        self._context: ssl.SSLContext | None = None

    def ask(self, method: str, path: str, document: Any = None, *, bearer: str = "") -> Answer:
        """Raises Away where there is no answer, or none in JSON."""
        body = None if document is None else json.dumps(document, separators=(",", ":")).encode()
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if bearer:
            headers["Authorization"] = "Bearer " + bearer
        with self._one:
            again = self._open is not None
            try:
                return self._exchange(method, path, body, headers)
            except (http.client.RemoteDisconnected, ConnectionError, BrokenPipeError) as error:
                self._close()
                if not again:
                    raise Away(f"{self.url}: {error or type(error).__name__}") from error
            except (OSError, http.client.HTTPException, ValueError) as error:
                self._close()
                raise Away(f"{self.url}: {error or type(error).__name__}") from error
            # a kept connection had been closed while nobody spoke; everything that is asked here may be asked twice
            try:
                return self._exchange(method, path, body, headers)
            except (OSError, http.client.HTTPException, ValueError) as error:
                self._close()
                raise Away(f"{self.url}: {error or type(error).__name__}") from error

    def close(self) -> None:
        """Let the connection go."""
        with self._one:
            self._close()

    def _exchange(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        if self._open is None:
            self._open = self._connect()
        self._open.request(method, path, body, headers)
        got = self._open.getresponse()
        raw = got.read(MAX_ANSWER_BYTES)
        after = got.getheader("Retry-After")
        if got.will_close or not got.isclosed():
            self._close()
        try:
            read: Any = json.loads(raw or b"{}", parse_constant=_refused, parse_float=_finite)
        except (ValueError, RecursionError):
            read = None
        if isinstance(read, dict):
            return Answer(got.status, cast("dict[str, Any]", read), _seconds(after))
        if got.status < 300:  # noqa: PLR2004 - a proxy's page that says 200 is no yes
            raise Away(f"{self.url}: HTTP {got.status}, and the answer is no JSON object")
        return Answer(got.status, {"reason": "the answer is no JSON object"}, _seconds(after))

    def _connect(self) -> http.client.HTTPConnection:
        url = urlsplit(self._service.url)
        host = url.hostname or ""
        if url.scheme != "https":
            return http.client.HTTPConnection(host, url.port, timeout=self._seconds)
        if self._context is None:
            self._context = ssl.create_default_context(cafile=self._service.ca_file)
            self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        return http.client.HTTPSConnection(host, url.port, timeout=self._seconds, context=self._context)

    def _close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None


def _refused(word: str) -> float:
    raise ValueError(f"{word} is no JSON")


def _finite(text: str) -> float:
    found = float(text)
    return found if math.isfinite(found) else _refused(text[:40])


def _seconds(text: str | None) -> float | None:
    """Of a Retry-After; a date counts as none, for this node's clock may be wrong."""
    if text and text.strip().isdigit():
        return float(min(int(text.strip()), 3600))
    return None
