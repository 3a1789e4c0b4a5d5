"""What a store is to the rest of this package: a prefix that is listed, read and added to.  Nothing is ever overwritten or deleted here."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from typing import Protocol

    class Store(Protocol):
        """A job's checkpoint prefix.  Names are relative to `uri`, which ends with a slash.  Everything raises StoreError."""

        uri: str

        def entries(self, prefix: str) -> Iterator[Entry]:
            """All files under a prefix, in order of name.  A listing that fails is an error, never a short listing."""
            ...

        def opened(self, name: str) -> AbstractContextManager[BinaryIO]:
            """A reader.  Raises Absent."""
            ...

        def read(self, name: str, limit: int = ...) -> bytes:
            """A small file, whole."""
            ...

        def put(self, name: str, source: BinaryIO, size: int, sha256: str) -> None:
            """Add a file; `source` can seek.  Raises Exists where the name is taken, also by this call's own first attempt whose answer was lost."""
            ...


CHUNK_BYTES = 1 << 20
"""What is held of a file at a time."""


class Entry(NamedTuple):
    """A file in a store."""

    name: str
    bytes: int
