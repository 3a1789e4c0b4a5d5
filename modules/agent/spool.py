"""What this node has to say, kept until the control plane has it: every item is on the disk before it is sent, in order, under a number that is never used twice.

Bounded.  What may be dropped, oldest first, is `log` and `heartbeat`, then `progress`; the rest never is.  A full disk is the same as a full spool: each file
owns its blocks before its first item and a spare one stands ready; when even that is used up, what must not be lost waits in memory.  SKY-RUN-517 is told once.

Each item can carry marks: how far its writer had read (a tailed file's offset).  They are as durable as the item, so an agent that is killed and started again
neither loses nor repeats a report.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from . import files, segment
from .client import now
from .errors import SYSTEM, AgentError
from .segment import Header

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

THINNED = (frozenset({"log", "heartbeat"}), frozenset({"log", "heartbeat", "progress"}))
"""What each round drops."""
DROPPABLE = THINNED[1]
MOST_WAITING = 10_000
FULL = "SKY-RUN-517: the spool is full: the oldest output, heartbeats and progress are dropped; the job runs on"


class _Kept(NamedTuple):
    """A file of the spool."""

    size: int
    start: int
    header: Header


class Spool:
    """The items of one stream.  Threads may share it; `batch` and `taken` are for one reader."""

    def __init__(self, folder: Path, limit_bytes: int, told: Callable[[str], None]) -> None:
        files.folder(str(folder))
        self._folder, self._limit, self._told = folder, limit_bytes, told
        self._one = threading.RLock()
        self._spare = folder / "spare"
        self._kept: dict[int, _Kept] = {}  # in order
        self._waiting: list[tuple[str, dict[str, Any]]] = []
        self._full = False
        self._dirty = False
        self._stuck = False  # until the next flush
        self._batch: list[tuple[int, int, int]] = []
        self.marks: dict[str, int] = {}
        self.urgent = False
        """Something was added that should not wait; for the reader to take back."""
        self._open()

    def add(
        self, kind: str, body: Mapping[str, Any], *, at: str | None = None, marks: Mapping[str, int] | None = None
    ) -> None:
        """Keep an item.  What may not be dropped is on the disk when this returns, but where the disk is full."""
        with self._one:
            item = {"kind": kind, "at": at or now(), **body}
            self.urgent = self.urgent or kind not in DROPPABLE
            if not self._drain() or not self._write(item, marks or {}):
                self._later(kind, item)
            elif kind not in DROPPABLE:
                self._sync()
            self.marks.update(marks or {})  # not before: a new file's header says what was read by then

    def flush(self) -> None:
        """All that was added is on the disk."""
        with self._one:
            self._stuck = False
            self._drain()
            self._sync()
            if not self._spare.exists():
                self._prepare()

    def batch(self, most_items: int, most_bytes: int) -> list[dict[str, Any]]:
        """The oldest items that were not taken yet, in order.  All of them are on the disk."""
        with self._one:
            self.flush()
            found: list[dict[str, Any]] = []
            self._batch = []
            size = 0
            for index, kept in self._kept.items():
                if index < self._place[0]:
                    continue
                start = self._place[1] if index == self._place[0] else kept.start
                for one in segment.lines(self._path(index), start, -1):
                    if index == self._active and one.end > self._synced:
                        break
                    long, start = one.end - start, one.end
                    if one.item["seq"] <= self.through:
                        continue
                    size += long
                    if found and (len(found) >= most_items or size > most_bytes):
                        return found
                    found.append(one.item)
                    self._batch.append((one.item["seq"], index, one.end))
            return found

    def taken(self, through: int) -> None:
        """All up to this number are in the record: they need not be kept."""
        with self._one:
            if through <= self.through:
                return
            self.through = min(through, self._next - 1)
            for seq, index, end in self._batch:
                if seq <= through and index in self._kept:
                    self._place = (index, end)
            with contextlib.suppress(AgentError):  # sent again at worst
                files.write(self._folder / "through", f'{{"stream": "{self.stream}", "through": {self.through}}}\n')
            self._sweep()
            self._full = self._full and not self.empty

    @property
    def empty(self) -> bool:
        """All that was added was taken."""
        with self._one:
            return self.through >= self._next - 1 and not self._waiting

    def close(self) -> None:
        """Flush and let go."""
        with self._one:
            self.flush()
            os.close(self._file)

    # files

    def _sync(self) -> None:
        if self._dirty:
            with contextlib.suppress(OSError):  # the next one may succeed; until then nothing of it is sent
                os.fdatasync(self._file) if hasattr(os, "fdatasync") else os.fsync(self._file)
                self._dirty, self._synced = False, self._end

    def _open(self) -> None:
        broken = False
        for path in sorted(self._folder.glob("[0-9]*.items")):
            found = segment.head(path) if path.stem.isdigit() else None
            if found is None:
                broken = True
                files.forget(path)
            else:
                self._kept[int(path.stem)] = _Kept(path.stat().st_size, found[1], found[0])
        for left in self._folder.glob("*.new"):
            files.forget(left)
        if not self._kept:
            self.stream, self._next, self.through = _uuid(), 1, 0
            try:
                self._begin(1)
            except OSError as error:
                raise AgentError(SYSTEM, f"{self._folder} cannot be written: {error}") from error
        else:
            self._resume(broken=broken)
        self._place = self._oldest()
        if not self._spare.exists():
            self._prepare()

    def _resume(self, *, broken: bool) -> None:
        self._active = max(self._kept)
        path = self._path(self._active)
        _, self._end, header = self._kept[self._active]
        self.stream, self._next = header.stream, header.first
        self.marks.update(header.marks)
        for one in segment.lines(path, self._end, header.first - 1):
            self._next, self._end = one.item["seq"] + 1, one.end
            self.marks.update(one.marks)
        self._file = os.open(path, os.O_WRONLY | os.O_NOFOLLOW)
        self._dirty, self._synced = True, 0  # what a killed agent wrote last may be in the page cache only
        self.through = self._kept[min(self._kept)].header.first - 1
        said = files.recall(self._folder / "through")
        if said.get("stream") == self.stream and type(said.get("through")) is int:
            self.through = max(self.through, said["through"])
        if broken or self.through >= self._next or segment.more(path, self._end):
            # numbers that cannot be read any more may have been sent: under one of them a new item would be taken for an old one
            self._next = max(self._next, self.through + 1) + segment.BYTES

    def _begin(self, index: int) -> None:
        """A new file, out of the spare one.  Raises OSError."""
        if not self._spare.exists():
            segment.blank(self._spare)
        header = Header(self.stream, self._next, dict(self.marks), 0)
        path = self._path(index)
        self._end = segment.begin(self._spare, path, header)
        if self._kept:
            os.close(self._file)
        self._file = os.open(path, os.O_WRONLY | os.O_NOFOLLOW)
        self._synced = self._end
        self._active = index
        self._kept[index] = _Kept(segment.BYTES, self._end, header)

    def _write(self, item: dict[str, Any], marks: Mapping[str, int]) -> bool:
        raw = segment.line({"seq": self._next, **item}, marks)
        if len(raw) > segment.LONGEST_LINE - 1:
            self._told(f"a report of {len(raw)} bytes was dropped: {item['kind']}")
            return True
        try:
            if self._end + len(raw) > segment.BYTES:
                self._rotate()
            os.pwrite(self._file, raw, self._end)
        except OSError:
            return False
        self._end += len(raw)
        self._next += 1
        self._dirty = True
        return True

    def _rotate(self) -> None:
        if self._stuck:
            raise OSError("there was no room a moment ago")
        self._sync()
        if self._dirty:
            raise OSError("what was added is not on the disk")
        self._stuck = True
        while sum(kept.size for kept in self._kept.values()) + 2 * segment.BYTES > self._limit and self._shrink():
            self._say()
        try:
            self._begin(self._active + 1)
        except OSError:
            if not self._shrink():
                raise
            self._begin(self._active + 1)
        self._stuck = False
        self._sweep()
        self._prepare()

    def _prepare(self) -> None:
        with contextlib.suppress(OSError):
            segment.blank(self._spare)

    def _sweep(self) -> None:
        """Files whose items were all taken go."""
        indexes = list(self._kept)
        for index, after in zip(indexes, indexes[1:]):  # noqa: B905, RUF007 - Python 3.8
            if self._kept[after].header.first - 1 <= self.through:
                self._drop(index)

    def _drop(self, index: int) -> None:
        files.forget(self._path(index))
        del self._kept[index]
        if self._place[0] not in self._kept:
            self._place = self._oldest()

    def _oldest(self) -> tuple[int, int]:
        index = min(self._kept)
        return index, self._kept[index].start

    def _path(self, index: int) -> Path:
        return self._folder / f"{index:010d}.items"

    # what is dropped

    def _shrink(self) -> bool:
        """Drop what may be dropped of the oldest file that still has it; whether there was one."""
        for level, kinds in enumerate(THINNED):
            for index, kept in list(self._kept.items()):
                if index != self._active and kept.header.level <= level and self._thin(index, kept, level + 1, kinds):
                    return True
        return False

    def _thin(self, index: int, old: _Kept, level: int, kinds: frozenset[str]) -> bool:
        path = self._path(index)
        items = [one for one in segment.lines(path, old.start, -1) if one.item["seq"] > self.through]
        items = [one for one in items if one.item["kind"] not in kinds]
        if not items:
            self._drop(index)
            return True
        header = old.header._replace(level=level)
        try:
            size = segment.rewrite(path, header, items)
        except OSError:
            return False
        self._kept[index] = _Kept(size, len(segment.packed(header._asdict())), header)
        self._place = self._oldest()
        return True

    def _later(self, kind: str, item: dict[str, Any]) -> None:
        """The disk is full."""
        if kind not in DROPPABLE and len(self._waiting) < MOST_WAITING:
            self._waiting.append((kind, item))
        self._say()

    def _drain(self) -> bool:
        """Write what waits; whether all of it was."""
        while self._waiting:
            if not self._write(self._waiting[0][1], {}):
                return False
            self._waiting.pop(0)
        self._dirty = True
        return True

    def _say(self) -> None:
        if not self._full:
            self._full = True
            self._told(FULL)
            self._waiting.append(("event", {"kind": "event", "at": now(), "word": "spool", "text": FULL}))


def _uuid() -> str:
    """Version 4; the library's module is half a MiB."""
    text = secrets.token_hex(16)
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{'89ab'[int(text[16], 16) % 4]}{text[17:20]}-{text[20:]}"
