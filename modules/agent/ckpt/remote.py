"""What the three kinds of object store have in common: asking again, a fresh lease where one is refused, reading on where a connection broke.

A store says what an answer means by one of the words below; this decides what follows from it.
"""

from __future__ import annotations

import abc
import contextlib
import random
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from .errors import Absent, CredentialRefused, Exists, StoreError
from .store import CHUNK_BYTES, Content, Piece
from .wire import Answer, Passing, Wire

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from http.client import HTTPResponse

    from .store import Credential

OK = "ok"
PASSING = "passing"  # ask again
AGAIN = "again"  # ask again at once: something was learnt from the answer
CREDENTIAL = "credential"  # refused for who asks
ABSENT = "absent"
EXISTS = "exists"
FAILED = "failed"

MAX_TRIES = 7
"""About a minute of pauses in all: longer outages are the uploader's to wait for."""
MAX_LEASES = 2
"""The one in use, and a fresh one."""
_FIRST_PAUSE_SECONDS = 0.3
_LONGEST_PAUSE_SECONDS = 20.0
_PASSING_STATUS = frozenset({408, 429, 500, 502, 503, 504})
PART_BYTES = 64 << 20
PARTS_AT_ONCE = 4


class Ask(NamedTuple):
    """One request, before it is signed.  `target` is encoded; `content`, `start`, `length`: the body."""

    method: str
    target: str
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    content: Content | None = None
    start: int = 0
    length: int = 0
    around: tuple[bytes, bytes] = (b"", b"")

    def body(self) -> Piece | None:
        """A new reader of the body: an attempt reads it to its end."""
        return self.content.piece(self.start, self.length, self.around) if self.content is not None else None


class Signed(NamedTuple):
    """What goes over the wire."""

    target: str
    headers: Mapping[str, str]


class Remote(abc.ABC):
    """Base of the object stores.  `sleep`, `steady` and `chance` are the world's; tests give their own."""

    part_bytes = PART_BYTES

    def __init__(
        self,
        uri: str,
        credential: Credential,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.uri = uri if uri.endswith("/") else uri + "/"
        self._credential, self._sleep, self._clock, self._chance = credential, sleep, clock, chance
        self._one = threading.Lock()

    # what a kind of store says

    @abc.abstractmethod
    def _wire(self, lease: Mapping[str, Any]) -> Wire:
        """Where it is spoken to."""

    @abc.abstractmethod
    def _sign(self, ask: Ask, lease: Mapping[str, Any], wire: Wire) -> Signed:
        """With its authorization."""

    @abc.abstractmethod
    def _judge(self, ask: Ask, answer: Answer) -> tuple[str, str]:
        """A word of the above, and words for people."""

    @abc.abstractmethod
    def _get(self, name: str) -> Ask:
        """Of one object, from its beginning."""

    # what follows from it

    def call(self, access: str, ask: Ask) -> Answer:
        """The answer to what was asked, once it is a good one.  Raises StoreError."""

        def attempt(lease: Mapping[str, Any]) -> tuple[str, str, Answer]:
            wire = self._wire(lease)
            signed = self._sign(ask, lease, wire)
            with contextlib.ExitStack() as stack:
                body = ask.body()
                if body is not None:
                    stack.enter_context(body)
                answer = wire.ask(ask.method, signed.target, signed.headers, body)
            word, words = self._judge(ask, answer)
            return word, words, answer

        return self._until(access, ask, attempt)

    @contextlib.contextmanager
    def opened(self, name: str) -> Generator[Reader, None, None]:
        """A reader that goes on where a connection broke.  Raises Absent."""
        reader = Reader(self, self._get(name), f"{self.uri}{name}")
        try:
            reader.begin()
            yield reader
        finally:
            reader.close()

    def begin(self, ask: Ask, start: int, etag: str) -> Streamed:
        """An answer whose body is still to be read, from `start`."""
        more = (("Range", f"bytes={start}-"), ("If-Match", etag)) if start else ()
        ranged = ask._replace(headers=(*ask.headers, *more))

        def attempt(lease: Mapping[str, Any]) -> tuple[str, str, Streamed | None]:
            wire = self._wire(lease)
            signed = self._sign(ranged, lease, wire)
            with contextlib.ExitStack() as stack:
                response, headers = stack.enter_context(wire.streamed("GET", signed.target, signed.headers))
                if response.status == (206 if start else 200):
                    return OK, "", Streamed(response, headers, stack.pop_all())
                answer = Answer(response.status, headers, response.read(CHUNK_BYTES))
            word, words = self._judge(ranged, answer)
            return (word if word != OK else FAILED), words or "the store reads from another place than asked", None

        return self._until("read", ask, attempt)

    def _until(self, access: str, ask: Ask, attempt: Callable[[Mapping[str, Any]], tuple[str, str, Any]]) -> Any:
        refused, leases, tries, again = "", 0, 0, 0
        what = f"{ask.method} {self.uri} {ask.target}"
        while True:
            lease = self._credential(access, refused)
            after: float | None = None
            try:
                word, words, answer = attempt(lease)
            except Passing as passing:
                word, words, answer, after = PASSING, str(passing), None, passing.after
            if word == OK:
                return answer
            if word == CREDENTIAL:
                leases += 1
                refused = str(lease.get("id", ""))
                if leases >= MAX_LEASES:
                    raise CredentialRefused(f"{what}: the store refuses this node's credential: {words}")
                continue
            if word == AGAIN and again < MAX_LEASES:
                again += 1
                continue
            if word != PASSING or tries + 1 >= MAX_TRIES:
                raise _ERRORS.get(word, StoreError)(f"{what}: {words}")
            tries += 1
            pause = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2**tries)
            self._sleep(max(after or 0.0, pause * (0.5 + 0.5 * self._chance())))


_ERRORS = {ABSENT: Absent, EXISTS: Exists, CREDENTIAL: CredentialRefused}


class Streamed(NamedTuple):
    """An answer that is being read."""

    response: HTTPResponse
    headers: Mapping[str, str]
    stack: contextlib.ExitStack


class Reader:
    """A file of an object store, read from its start to its end over as many connections as that takes."""

    def __init__(self, store: Remote, ask: Ask, what: str) -> None:
        self._store, self._ask, self._what = store, ask, what
        self._streamed: Streamed | None = None
        self._at, self._size = 0, -1
        self._etag: str = ""
        self._breaks = 0

    def begin(self) -> None:
        """Open it, or open it again."""
        self._streamed = self._store.begin(self._ask, self._at, self._etag)
        if self._size < 0:
            self._size = number(self._streamed.headers.get("content-length"), self._what)
            self._etag = str(self._streamed.headers.get("etag", ""))

    def read(self, size: int) -> bytes:
        """Up to `size` bytes; none at the end.  Raises StoreError."""
        while self._at < self._size:
            if self._streamed is None:
                self.begin()
            assert self._streamed is not None  # noqa: S101  `begin` has set it
            try:
                found = self._streamed.response.read(min(size, self._size - self._at))
            except Exception as error:  # noqa: BLE001  http.client raises many kinds for one: it broke
                found, words = b"", repr(error)
            else:
                words = "it ended early"
            if found:
                self._at += len(found)
                return found
            self.close()
            self._breaks += 1
            if self._breaks > MAX_TRIES:
                raise StoreError(f"{self._what} breaks off again and again: {words}")
        return b""

    def close(self) -> None:
        """Give the connection back."""
        if self._streamed is not None:
            self._streamed.stack.close()
            self._streamed = None


def number(text: object, what: str) -> int:
    """A size as a store says it.  Raises StoreError where it is none."""
    if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 20:  # noqa: PLR2004  2^63 has 19
        return int(text)
    raise StoreError(f"{what}: the store says no size: {str(text)[:40]!r}")


class Pages:
    """The way through a listing.  Raises StoreError where it leads to a page again: it would never end."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._seen: set[str] = set()

    def onward(self, token: str) -> str:
        """The next page's token."""
        if token in self._seen:
            raise StoreError(f"{self._what}: the listing leads to one of its pages again")
        self._seen.add(token)
        return token


def by_status(status: int) -> str:
    """What an HTTP status says where a store's own words do not."""
    if status in _PASSING_STATUS:
        return PASSING
    if status in {401, 403}:
        return CREDENTIAL
    return {404: ABSENT, 412: EXISTS}.get(status, OK if 200 <= status < 300 else FAILED)  # noqa: PLR2004


def parts(size: int, part_bytes: int, most: int) -> list[tuple[int, int]]:
    """(start, length) of each part; larger parts where there would be more than `most`."""
    each = max(part_bytes, -(-size // most))
    return [(start, min(each, size - start)) for start in range(0, size, each)]
