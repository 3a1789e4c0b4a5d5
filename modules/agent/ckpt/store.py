"""What a store is to the rest of this package: a prefix that is listed, read and added to.  Nothing is ever overwritten or deleted here."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Union

from .errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from typing import Any, Protocol

    Credential = Callable[[str, str], Mapping[str, Any]]
    """`(access, refused)` -> a lease as docs/node-protocol.md has it.  `access` is `read` or `write`; `refused` is the `id` of a lease that the store
    has just refused, so that another one is given, or "".  Raises CredentialRefused or StoreError where there is none to be had."""

    class Store(Protocol):
        """A job's checkpoint prefix.  Names are relative to `uri`, which ends with a slash.  Everything raises StoreError."""

        uri: str

        def entries(self, prefix: str) -> Iterator[Entry]:
            """All files under a prefix that ends with a slash.  A listing that fails is an error, never a short listing."""
            ...

        def opened(self, name: str) -> AbstractContextManager[Readable]:
            """A reader.  Raises Absent."""
            ...

        def put(self, name: str, content: Content) -> None:
            """Add a file.  Raises Exists where the name is taken, also by this call's own first attempt whose answer was lost."""
            ...

    class Place(Protocol):
        """A seat, as this package needs it: one rank of one generation."""

        @property
        def project(self) -> str: ...  # noqa: D102
        @property
        def job(self) -> str: ...  # noqa: D102
        @property
        def generation(self) -> int: ...  # noqa: D102
        @property
        def rank(self) -> int: ...  # noqa: D102
        @property
        def nodes(self) -> int: ...  # noqa: D102

    class Readable(Protocol):
        """Bytes, in order."""

        def read(self, size: int, /) -> bytes:
            """Up to `size` bytes; none at the end."""
            ...


CHUNK_BYTES = 1 << 18
"""What is held of a file at a time."""


class Entry(NamedTuple):
    """A file in a store."""

    name: str
    bytes: int


class Content(NamedTuple):
    """What is put: a file or a few bytes, with what is known of it."""

    source: Union[Path, bytes]  # noqa: UP007  3.8 evaluates it
    bytes: int
    sha256: str

    @classmethod
    def of(cls, raw: bytes) -> Content:
        """Bytes at hand."""
        return cls(raw, len(raw), hashlib.sha256(raw).hexdigest())

    def piece(self, start: int, length: int, around: tuple[bytes, bytes] = (b"", b"")) -> Piece:
        """A part of it, to be read once, with a few bytes before and after it."""
        return Piece(self.source, start, length, around)

    def sha256_of(self, start: int, length: int) -> str:
        """In hex; of the whole it is known."""
        if (start, length) == (0, self.bytes):
            return self.sha256
        hashed = hashlib.sha256()
        with self.piece(start, length) as piece:
            for some in iter(lambda: piece.read(CHUNK_BYTES), b""):
                hashed.update(some)
        return hashed.hexdigest()


class Piece:
    """A reader of a part of a content; a context manager."""

    def __init__(self, source: Path | bytes, start: int, length: int, around: tuple[bytes, bytes]) -> None:
        self._raw = source if isinstance(source, bytes) else b""
        self._opened: BinaryIO | None = None if isinstance(source, bytes) else source.open("rb")
        self._at, self._end = start, start + length
        self._head, self._tail = around
        self.length = len(around[0]) + length + len(around[1])

    def read(self, size: int = -1) -> bytes:
        """None at the end.  Where the file has become shorter it ends early, and what it was for fails."""
        if self._head:
            head, self._head = self._head, b""
            return head
        left = self._end - self._at
        size = left if size < 0 else min(size, left)
        found = self._raw[self._at : self._at + size]
        if self._opened is not None:
            found = os.pread(self._opened.fileno(), size, self._at)
        self._at += len(found)
        if self._at == self._end and not found:
            found, self._tail = self._tail, b""
        return found

    def close(self) -> None:
        """The file behind it."""
        if self._opened is not None:
            self._opened.close()

    def __enter__(self) -> Piece:  # noqa: PYI034  `Self` is younger than 3.8
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_small(store: Store, name: str, limit: int) -> bytes:
    """A small file, whole.  Raises StoreError where it has more than `limit` bytes."""
    found = bytearray()
    with store.opened(name) as reader:
        while len(found) <= limit:
            some = reader.read(CHUNK_BYTES)
            if not some:
                return bytes(found)
            found += some
    raise StoreError(f"{store.uri}{name} has more than {limit} bytes")
