"""A file that others append to: what is new in it, without holding it open.  What was read may be given back to the disk, where it can punch holes."""

from __future__ import annotations

import contextlib
import os
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

CHUNK_BYTES = 256 * 1024
_PUNCH_BYTES = 32 << 20


class Tail:
    """`offset`: all before it was read."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self._path = path
        self.offset = offset
        self._punched = 0

    def size(self) -> int:
        """Of the file; 0 where there is none."""
        try:
            return os.stat(self._path).st_size  # noqa: PTH116 - once a second for days: no object
        except OSError:
            return 0

    def chunk(self, most: int = CHUNK_BYTES) -> bytes:
        """The next bytes, none where there is nothing new.  A file that became shorter is read from its beginning."""
        size = self.size()
        if size < self.offset:
            self.offset = 0
        if size == self.offset:
            return b""
        try:
            with self._path.open("rb") as opened:
                opened.seek(self.offset)
                found = opened.read(most)
        except OSError:
            return b""
        self.offset += len(found)
        return found

    def lines(self, longest: int) -> list[tuple[bytes, int]]:
        """The next whole lines, each with the offset behind it.  Of one that is longer than `longest` only a part comes, which is no line of any protocol."""
        start = self.offset
        raw = self.chunk()
        found: list[tuple[bytes, int]] = []
        whole = raw.rfind(b"\n") + 1
        if not whole and len(raw) >= CHUNK_BYTES:
            return [(raw[: longest + 1], self.offset)]
        self.offset = start = self.offset - len(raw)
        for one in raw[:whole].split(b"\n")[:-1]:
            start += len(one) + 1
            found.append((one[: longest + 1], start))
        self.offset = start
        return found

    def forget(self, keep: int) -> None:
        """Give the disk back what was read, but the last `keep` bytes: the file's size stays, its beginning is empty.  Where that cannot be done it grows on."""
        end = (self.offset - keep) // 4096 * 4096
        if end - self._punched < _PUNCH_BYTES:
            return
        self._punched = end
        with contextlib.suppress(OSError):
            subprocess.Popen(
                ["fallocate", "--punch-hole", "--offset", "0", "--length", str(end), str(self._path)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            ).wait(timeout=10)
