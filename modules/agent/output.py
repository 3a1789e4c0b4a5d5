"""The job's output: to the terminal as much as one can look at, to the control plane the newest of it, at most 32 KiB a second."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .tail import Tail

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .spool import Spool

PIECE_BYTES = 8 * 1024
MOST_BYTES = 32 * 1024
SHOWN_BYTES = 16 << 20
"""At a time: what is behind by more is left out, for whoever writes faster than a terminal shows would have the agent do nothing else."""
KEPT_BYTES = 64 << 20
"""Of the file itself, on this node's disk."""


class Output:
    """One attempt's output.  `report` and `show`: where it goes."""

    def __init__(self, path: Path, spool: Spool, mark: str, *, report: bool, show: bool) -> None:
        self._tail = Tail(path, spool.marks.get(mark, 0))
        self._shown = Tail(path, self._tail.offset)
        self._spool, self._mark = spool, mark
        self._report, self._show = report, show

    def poll(self, *, last: bool = False) -> None:
        """Pass on what is new; with `last` the line that has no end, too."""
        if self._show:
            self._to_terminal()
        if self._report:
            self._to_spool(last=last)
        if self._report or self._show:
            (self._tail if self._report else self._shown).forget(KEPT_BYTES)

    def _to_terminal(self) -> None:
        end = self._shown.size()
        behind = end - self._shown.offset
        left_out = b""
        if behind > SHOWN_BYTES:
            self._shown.offset = end - MOST_BYTES
            left_out = b"\n[skyplan: %d bytes of output left out]\n" % (behind - MOST_BYTES)
        while self._shown.offset < end or self._shown.size() < self._shown.offset:
            raw, left_out = left_out + self._shown.chunk(), b""
            if not raw:
                return
            try:
                sys.stdout.buffer.write(raw)
                sys.stdout.buffer.flush()
            except OSError:  # nobody looks any more (`| head`): the job runs on
                self._show = False
                return

    def _to_spool(self, *, last: bool) -> None:
        size = self._tail.size()
        behind = size - self._tail.offset
        if behind > MOST_BYTES:
            self._tail.offset = size - MOST_BYTES
        raw = self._tail.chunk(MOST_BYTES)
        if behind > MOST_BYTES:
            raw = b"[skyplan: %d bytes of output left out]\n" % (behind - MOST_BYTES) + raw.partition(b"\n")[2]
        elif not last and len(raw) < MOST_BYTES:
            whole = raw.rfind(b"\n") + 1
            self._tail.offset -= len(raw) - whole
            raw = raw[:whole]
        for text in pieces(raw):
            self._spool.add("log", {"text": text}, marks={self._mark: self._tail.offset})


def pieces(raw: bytes) -> Iterator[str]:
    """As texts of at most 8 KiB each, cut behind a line where there is one.  What is no UTF-8, and NUL, which databases refuse, is replaced."""
    rest = raw.decode("utf-8", "replace").replace("\0", "\ufffd").encode("utf-8")
    while rest:
        end = len(rest)
        if end > PIECE_BYTES:
            end = rest.rfind(b"\n", 0, PIECE_BYTES) + 1 or PIECE_BYTES
            while rest[end] & 0xC0 == 0x80:  # noqa: PLR2004 - within a character
                end -= 1
        yield rest[:end].decode("utf-8")
        rest = rest[end:]
