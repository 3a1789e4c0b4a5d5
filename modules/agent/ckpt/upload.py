"""Checkpoints from this node's folder into the store: files, then this node's part, the manifest last, then the report; a crash anywhere begins there again.

Decides nothing about when a checkpoint is made.  The newest goes first: where a node has seconds left, it is the one that counts.
What was put away is remembered by a file in `.stored`, written once the report is in the spool; it names the very manifest, so that a job which takes a name again is told.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from . import manifest
from .errors import Exists, Invalid
from .local import flush_folder
from .manifest import MANIFEST, MAX_MANIFEST_BYTES, Manifest, part_name
from .parts import merged
from .store import CHUNK_BYTES, Content, read_small

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .store import Place, Store

STORED = ".stored"
FILES_AT_ONCE = 4
PARTS_SECONDS = 1800.0
"""How long rank 0 waits for the other nodes' parts: their uploads take as long as its own."""
_LOOK_SECONDS = 5.0
_LONGEST_PAUSE_SECONDS = 60.0
_FAILURES_IN_A_ROW = 3
_GONE = ".gone-"


def _untold(words: str) -> None:
    """Nobody listens."""


class Uploader:
    """Of one seat.  `spool_add(kind, body)` must have the item on disk when it returns.  `folder` is the generation's own on this node."""

    def __init__(
        self,
        store: Store,
        seat: Place,
        spool_add: Callable[[str, dict[str, Any]], Any],
        *,
        folder: Path,
        key: bytes,
        keep: int | None = None,
        told: Callable[[str], None] = _untold,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._seat, self._add = store, seat, spool_add
        self._folder, self._key, self._keep, self._told, self._steady = folder, key, keep, told, steady
        self._prefix = f"g{seat.generation}/"
        self._waiting: dict[str, float] = {}
        self._reported: dict[str, str] = {}  # what a full disk could not remember
        self._woken = threading.Event()
        self.moved = 0
        """Counts files that were put away: while it rises, waiting is worth it."""

    def pending(self) -> list[str]:
        """Names of whole folders that are not put away, the newest step first."""
        found = [path.name for path in self._folder.glob("step-*") if manifest.step_of(path.name) is not None]
        left = [name for name in found if not self._is_stored(name)]
        return sorted(left, key=lambda name: (manifest.step_of(name) or 0, len(name), name), reverse=True)

    def once(self) -> bool:
        """Put away what can be; whether nothing is left.  Raises the first failure: one that fails for good holds up no other, several in a row are the store's."""
        left, in_a_row = 0, 0
        tried: set[str] = set()
        failed: Exception | None = None
        while in_a_row < _FAILURES_IN_A_ROW:
            # looked for anew each time: what was made meanwhile is newer than all that wait
            name = next((name for name in self.pending() if name not in tried), None)
            if name is None:
                break
            tried.add(name)
            try:
                left += not self.upload(name)
                in_a_row = 0
            except Exception as error:  # noqa: BLE001  of whatever kind: raised below
                failed = failed or error
                in_a_row += 1
        if failed is not None:
            raise failed
        return left == 0

    def run(self, stopped: threading.Event) -> None:
        """Put away what is made, until stopped.  A store that is away is asked again for as long as that takes."""
        pause = _LOOK_SECONDS
        while not stopped.is_set():
            self._woken.clear()
            try:
                self.once()
                pause = _LOOK_SECONDS
            except Exception as error:  # noqa: BLE001  whatever it is, the next checkpoint must still be put away
                self._told(f"checkpoints are not put away: {error}")
                pause = min(_LONGEST_PAUSE_SECONDS, pause * 2)
            self._woken.wait(pause)

    def wake(self) -> None:
        """Look at once: a checkpoint was made, or `stopped` was set."""
        self._woken.set()

    def upload(self, name: str) -> bool:
        """Put one away; False while other nodes' parts are missing.  Raises StoreError."""
        uri = f"{self._store.uri}{self._prefix}{name}/"
        try:
            mine = self._described(name, uri)
            if name not in self._waiting:
                self._files(name, mine)
            whole = mine if self._seat.nodes == 1 else self._joined(name, mine)
        except Invalid as invalid:
            self._add("skipped", {"uri": uri, "reason": invalid.reason})
            self._stored(name)
            return True
        if whole is None:
            return self._seat.rank != 0
        digest, mac, files = whole.digest, whole.mac, len(whole.files)
        self._add(
            "checkpoint",
            {"step": whole.step, "uri": uri, "digest": digest, "mac": mac, "bytes": whole.bytes, "files": files},
        )
        self._stored(name)
        return True

    def _described(self, name: str, uri: str) -> Manifest:
        """Manifest or part of this node.  Raises Invalid."""
        rank = None if self._seat.nodes == 1 else self._seat.rank
        path = self._folder / name / (MANIFEST if rank is None else part_name(rank))
        try:
            with path.open("rb") as opened:
                found = manifest.parse(opened.read(MAX_MANIFEST_BYTES))
        except OSError as error:
            raise Invalid(f"its manifest cannot be read: {error.strerror}") from error
        place = (self._seat.project, self._seat.job, self._seat.generation, self._seat.nodes, rank, uri)
        if (found.project, found.job, found.generation, found.nodes, found.rank, found.uri) != place:
            raise Invalid("its manifest is of another project, job, generation, node or place than this one")
        if not found.mac:
            return found.signed(self._key)  # the job had no key; who writes into this folder is the job
        if not found.holds(self._key):
            raise Invalid("its mac is not by this generation's key")
        return found

    def _files(self, name: str, mine: Manifest) -> None:
        """All files, and what describes them last.  Raises Invalid, StoreError."""

        def one(file: manifest.File) -> None:
            path = self._folder / name / file.path
            try:
                size = path.stat().st_size
            except OSError as error:
                raise Invalid(f"{file.path} cannot be read: {error.strerror}") from error
            if size != file.bytes or path.is_symlink():
                raise Invalid(f"{file.path} has {size} bytes on this node, not {file.bytes}")
            self._put(f"{self._prefix}{name}/{file.path}", Content(path, file.bytes, file.sha256))

        with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
            list(pool.map(one, mine.files))
        last = MANIFEST if mine.rank is None else part_name(mine.rank)
        self._put(f"{self._prefix}{name}/{last}", Content.of(mine.text()))

    def _joined(self, name: str, mine: Manifest) -> Manifest | None:
        """By rank 0: the manifest over all parts, put; None while some are missing, and on the other nodes.  Raises Invalid, StoreError."""
        if self._seat.rank:
            self._stored(name)
            return None
        since = self._waiting.setdefault(name, self._steady())
        at = f"{self._prefix}{name}/"
        there = {entry.name for entry in self._store.entries(at)}
        missing = [rank for rank in range(self._seat.nodes) if at + part_name(rank) not in there]
        if missing:
            if self._steady() - since < PARTS_SECONDS:
                return None
            raise Invalid(f"the parts of ranks {', '.join(map(str, missing[:20]))} did not come")
        raw = [read_small(self._store, at + part_name(rank), MAX_MANIFEST_BYTES) for rank in range(self._seat.nodes)]
        whole = merged(mine, [manifest.parse(one) for one in raw], self._key)
        self._put(at + MANIFEST, Content.of(whole.text()))
        return whole

    def _put(self, name: str, content: Content) -> None:
        """Raises Invalid where another content has the name: an own first attempt has the same."""
        try:
            self._store.put(name, content)
        except Exists:
            if not _same(self._store, name, content):
                raise Invalid(f"{name} is in the store already, with another content") from None
        except FileNotFoundError as error:
            raise Invalid(f"{name} is no longer on this node") from error
        self.moved += 1

    def _stored(self, name: str) -> None:
        """Remember it, on disk; then make room."""
        self._reported[name] = self._mark(name)
        stored = self._folder / STORED
        stored.mkdir(exist_ok=True)
        new = stored / f".{name}"
        with new.open("w") as opened:
            opened.write(self._mark(name))
            opened.flush()
            os.fsync(opened.fileno())
        new.rename(stored / name)
        flush_folder(stored)
        self._reported.pop(name, None)
        self._waiting.pop(name, None)
        if self._keep is None:
            return
        there = [path for path in self._folder.glob("step-*") if self._is_stored(path.name)]
        there.sort(key=lambda path: (manifest.step_of(path.name) or 0, path.name))
        for path in there[: max(0, len(there) - self._keep)]:
            gone = path.with_name(_GONE + path.name)
            path.rename(gone)
        for gone in self._folder.glob(_GONE + "*"):
            shutil.rmtree(str(gone), ignore_errors=True)

    def _is_stored(self, name: str) -> bool:
        if self._reported.get(name) == self._mark(name):
            return True
        try:
            return (self._folder / STORED / name).read_text() == self._mark(name)
        except FileNotFoundError:
            return False

    def _mark(self, name: str) -> str:
        """Which manifest it is, without reading it."""
        last = MANIFEST if self._seat.nodes == 1 else part_name(self._seat.rank)
        try:
            found = (self._folder / name / last).stat()
        except OSError:
            return "none"
        return f"{found.st_mtime_ns} {found.st_size}"


def _same(store: Store, name: str, content: Content) -> bool:
    """Whether what is in the store is this, read to its end."""
    theirs = manifest.Hashed()
    with store.opened(name) as reader:
        for piece in iter(lambda: reader.read(CHUNK_BYTES), b""):
            theirs.update(piece)
    return (theirs.bytes, theirs.sha256) == (content.bytes, content.sha256)
