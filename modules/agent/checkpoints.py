"""The job's checkpoints, as far as the run is concerned: the key they are signed by, where to go on from, what is put away, and what must be before the end.

How they lie in a store is `ckpt`'s.  Which credential reaches the store is decided here: the broker's lease where one is held for it, else the node's own identity.
"""

from __future__ import annotations

import secrets
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import files
from .errors import Away

if TYPE_CHECKING:
    from collections.abc import Callable

    from .ckpt.store import Credential
    from .ckpt.store import Store as Opened
    from .ckpt.upload import Uploader
    from .client import Plane
    from .cred.holder import Holder
    from .place import Place
    from .settings import Checkpoints as Where
    from .settings import Settings
    from .spool import Spool

STILL_SECONDS = 300.0
"""At the end, an upload that has put nothing away for so long is given up."""


class Checkpoints:
    """Of one seat."""

    def __init__(
        self,
        settings: Settings,
        where: Where,
        place: Place,
        spool: Spool,
        *,
        plane: Plane | None,
        holder: Holder | None,
        told: Callable[[str], None],
    ) -> None:
        self._settings, self._where, self._place = settings, where, place
        self._spool, self._plane, self._holder, self._told = spool, plane, holder, told
        self._folder = Path(where.folder) / f"g{settings.seat.generation}"
        self._stopped = threading.Event()
        self._uploader: Uploader | None = None
        self._store: Opened | None = None
        self._moved: tuple[int, float] | None = None

    @property
    def key(self) -> bytes | None:
        """Of this generation, by the control plane; without one the machine's own, which signs all its generations."""
        if self._plane is None:
            return self._own_key()
        if self._plane.joined is not None:
            self._place.keep_manifest_key(self._plane.joined.manifest_key)
        return self._place.manifest_key()

    def resume(self) -> dict[str, str | None]:
        """Find the checkpoint to go on from, bring it here, and say so to the job.  Raises Away, Denied."""
        from .ckpt.errors import StoreError  # noqa: PLC0415 - a job without checkpoints pays nothing for them
        from .ckpt.resume import resume  # noqa: PLC0415

        key = self.key
        if key is None:
            raise Away("the control plane gave no key for checkpoints yet")
        files.folder(str(self._folder))
        if self._settings.seat.nodes == 1:  # several nodes follow the cut, whatever one of them still has
            self._put_left(key)
        try:
            found = resume(
                self._opened(),
                self._plane,
                self._settings.seat,
                self._folder,
                key=key,
                told=self._skipped,
                waits=self._told,
            )
        except StoreError as error:
            raise Away(f"SKY-RUN-523: {error}") from error
        said: dict[str, str | None] = {
            "SKYPLAN_CHECKPOINTS": str(self._folder),
            "SKYPLAN_CHECKPOINT_URI": f"{self._where.uri}g{self._settings.seat.generation}/",
            "SKYPLAN_RESUME_FROM": None,
            "SKYPLAN_RESUME_STEP": None,
        }
        if found is not None:
            self._told(f"going on from step {found.step}: {found.uri}")
            self._spool.add("event", {"word": "resumed", "text": f"from step {found.step}: {found.uri}"[:500]})
            said.update({"SKYPLAN_RESUME_FROM": str(found.folder), "SKYPLAN_RESUME_STEP": str(found.step)})
        return said

    def start(self) -> None:
        """Begin to put checkpoints away: those that a killed agent left, too."""
        key = self.key
        if key is None:
            self._told("checkpoints are not put away: this generation's key is not known")
            return
        files.folder(str(self._folder))
        self._uploader = self._uploading(key)
        threading.Thread(target=self._uploader.run, args=(self._stopped,), name="checkpoints", daemon=True).start()

    def _uploading(self, key: bytes) -> Uploader:
        from .ckpt.upload import Uploader as Putting  # noqa: PLC0415

        where = self._where
        return Putting(
            self._opened(),
            self._settings.seat,
            self._add,
            folder=self._folder,
            key=key,
            keep=where.keep,
            told=self._told,
        )

    def _put_left(self, key: bytes) -> None:
        """What an agent that was killed with its job left here is newer than what the store has: the listing must find it."""
        try:
            self._uploading(key).once()
        except Exception as error:  # noqa: BLE001 - whatever it is, there is an older one to go on from
            self._told(f"a checkpoint that an earlier attempt left is not put away: {error}")

    def made(self, _folder: str) -> None:
        """The job made one.  Its name is not needed: what is whole in the folder and not put away is found there."""
        if self._uploader is not None:
            self._uploader.wake()

    def settled(self) -> bool:
        """At the end: whether there is nothing to wait for any more.  Asked again and again: everything is put away, or it has long not moved."""
        uploader = self._uploader
        if uploader is None or not uploader.pending():
            return True
        now = time.monotonic()
        if self._moved is None or uploader.moved != self._moved[0]:
            self._moved = (uploader.moved, now)
            uploader.wake()
        if now - self._moved[1] < STILL_SECONDS:
            return False
        self._told("a checkpoint could not be put away; it stays on this node's disk")
        return True

    def stop(self) -> None:
        """End, after the file that is under way."""
        self._stopped.set()
        if self._uploader is not None:
            self._uploader.wake()

    def _add(self, kind: str, body: dict[str, Any]) -> None:
        if kind == "skipped":
            self._told(f"SKY-RUN-511: {body['uri']}: {body['reason']}")
        self._spool.add(kind, body)

    def _skipped(self, uri: str, reason: str) -> None:
        self._add("skipped", {"uri": uri[:1000], "reason": reason[:500]})

    def _opened(self) -> Opened:
        if self._store is None:
            from .ckpt.open import open_store  # noqa: PLC0415

            rows = [store for store in self._settings.stores if self._where.uri.startswith(store.uri)]
            row = max(rows, key=lambda store: len(store.uri), default=None)
            self._store = open_store(
                self._where.uri,
                self._credential(),
                region=(row.region if row else None) or self._settings.region,
                endpoint=(row.endpoint if row else None) or "",
            )
        return self._store

    def _credential(self) -> Credential:
        if self._where.uri.startswith("file://"):
            return lambda _access, _refused: {}
        if self._holder is not None:
            from .ckpt.errors import StoreError  # noqa: PLC0415

            for row in self._settings.stores:
                if row.reach == "broker" and row.access == "write" and self._where.uri.startswith(row.uri):
                    return self._holder.source(row.uri, absent=StoreError)
        from .ckpt.platform import platform  # noqa: PLC0415

        return platform(self._where.uri.partition("://")[0])

    def _own_key(self) -> bytes:
        path = self._place.state / "checkpoint.key"
        if not path.exists():
            files.write(path, secrets.token_hex(32))
        files.private(path)
        return bytes.fromhex(path.read_text("ascii"))
