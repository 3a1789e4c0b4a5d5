"""Google Cloud Storage by its JSON API: bearer tokens, `ifGenerationMatch=0`, resumable uploads.  Never run against the live cloud; held to fake-gcs-server."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, urlencode, urlsplit

from .errors import StoreError
from .remote import FAILED, OK, PASSING, Ask, Pages, Remote, Signed, by_status, number
from .store import Content, Entry
from .wire import Answer, Wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .store import Credential

_API = "https://storage.googleapis.com"
_STEP_BYTES = 256 << 10
"""What pieces of a resumable upload are multiples of."""
_MORE = 308
_KIND = "application/octet-stream"
_MAX_SESSIONS = 3
_LISTING = frozenset({"kind", "items", "prefixes", "nextPageToken"})
_LIMITS = ("rateLimitExceeded", "userRateLimitExceeded")


class GcsStore(Remote):
    """A prefix of a bucket."""

    def __init__(
        self, uri: str, credential: Credential, *, endpoint: str = "", ca_file: str | None = None, **world: Any
    ) -> None:
        super().__init__(uri, credential, **world)
        split = urlsplit(self.uri)
        self._bucket, self._prefix = quote(split.netloc, safe=""), split.path.lstrip("/")
        self._to = Wire(endpoint or _API, ca_file=ca_file)

    def close(self) -> None:
        """All connections."""
        self._to.close()

    def entries(self, prefix: str) -> Iterator[Entry]:
        """By objects.list, to the last page."""
        token, pages = "", Pages(self.uri)
        while True:
            query = [
                ("prefix", self._prefix + prefix),
                ("fields", "items(name,size),nextPageToken"),
                ("pageToken", token),
            ]
            answer = self.call("read", Ask("GET", f"/storage/v1/b/{self._bucket}/o", tuple(q for q in query if q[1])))
            page = _document(answer.body)
            rows = page.get("items", [])
            # another service's words: an empty listing would look like a first start
            if not set(page) <= _LISTING or not isinstance(rows, list):
                raise StoreError(f"{self.uri}: the store's answer is no listing")
            for one in cast("list[Any]", rows):
                entry = cast("dict[str, Any]", one) if isinstance(one, dict) else {}
                name = str(entry.get("name", ""))
                if name.startswith(self._prefix) and not name.endswith("/"):
                    yield Entry(name[len(self._prefix) :], number(entry.get("size"), name))
            token = str(page.get("nextPageToken") or "")
            if not token:
                return
            pages.onward(token)

    def put(self, name: str, content: Content) -> None:
        """Raises Exists."""
        target = f"/upload/storage/v1/b/{self._bucket}/o"
        query = (("name", self._prefix + name), ("ifGenerationMatch", "0"))
        if content.bytes <= self.part_bytes:
            # `multipart` and not `media`: the one whose precondition the emulator holds too
            edge = secrets.token_hex(16)
            kind = (("Content-Type", f"multipart/related; boundary={edge}"),)
            about = (
                f"--{edge}\r\nContent-Type: application/json\r\n\r\n{{}}\r\n--{edge}\r\nContent-Type: {_KIND}\r\n\r\n"
            )
            around = (about.encode(), f"\r\n--{edge}--\r\n".encode())
            query = (*query, ("uploadType", "multipart"))
            self.call("write", Ask("POST", target, query, kind, content, 0, content.bytes, around))
            return
        for _ in range(_MAX_SESSIONS):
            head = (("X-Upload-Content-Length", str(content.bytes)), ("X-Upload-Content-Type", _KIND))
            begun = self.call("write", Ask("POST", target, (*query, ("uploadType", "resumable")), head))
            if self._sent(self._session(begun), content):
                return
        raise StoreError(f"{self.uri}{name}: the store forgot the upload again and again")

    def _session(self, begun: Answer) -> str:
        """Path and query of the upload.  It is asked with the token, so it must be where the store is."""
        at = urlsplit(begun.headers.get("location", ""))
        if not at.path or (at.netloc and at.netloc.lower() != self._to.host):
            raise StoreError(f"{self.uri}: the store sends an upload to another host, {at.netloc}")
        return at.path + ("?" + at.query if at.query else "")

    def _sent(self, session: str, content: Content) -> bool:
        """Send what the store does not have yet; False where it has forgotten the upload."""
        start, stuck = 0, 0
        while True:
            length = min(self.part_bytes // _STEP_BYTES * _STEP_BYTES or _STEP_BYTES, content.bytes - start)
            ranged = f"bytes {start}-{start + length - 1}/{content.bytes}" if length else f"bytes */{content.bytes}"
            try:
                answer = self.call(
                    "write", Ask("PUT", session, (), (("Content-Range", ranged),), content, start, length)
                )
            except _Forgotten:
                return False
            if answer.status != _MORE:
                return True
            had = answer.headers.get("range", "")
            after = number(had.rpartition("-")[2], self.uri) + 1 if had else 0
            stuck = stuck + 1 if after <= start else 0
            if stuck >= _MAX_SESSIONS or after > content.bytes:
                raise StoreError(f"{self.uri}: the upload does not go on")
            start = after

    def _get(self, name: str) -> Ask:
        return Ask("GET", f"/storage/v1/b/{self._bucket}/o/{quote(self._prefix + name, safe='')}", (("alt", "media"),))

    def _wire(self, lease: Mapping[str, Any]) -> Wire:
        del lease
        return self._to

    def _sign(self, ask: Ask, lease: Mapping[str, Any], wire: Wire) -> Signed:
        keys = lease.get("gcp")
        if not keys:
            raise StoreError(f"{self.uri}: the lease is none of Google")
        headers = {**dict(ask.headers), "Authorization": f"Bearer {keys['access_token']}"}
        return Signed(
            wire.path + ask.target + ("?" + urlencode(ask.query, quote_via=quote) if ask.query else ""), headers
        )

    def _judge(self, ask: Ask, answer: Answer) -> tuple[str, str]:
        if answer.status < 300 or answer.status == _MORE:  # noqa: PLR2004
            return OK, ""
        words = f"HTTP {answer.status} {answer.body[:300].decode('utf-8', 'replace')}"
        resumed = ask.method == "PUT"
        if answer.status == 403 and any(limit in words for limit in _LIMITS):  # noqa: PLR2004
            return PASSING, words
        if resumed and answer.status in {404, 410}:
            raise _Forgotten(words)
        if answer.status == 404 and ask.target.endswith("/o"):  # noqa: PLR2004
            return FAILED, words  # the bucket: a listing of nothing would look like a first start
        return by_status(answer.status), words


class _Forgotten(StoreError):
    """The store knows this upload no more."""


def _document(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"the store's answer cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise StoreError("the store's answer is no object")
    return cast("dict[str, Any]", found)
