"""Google's words: `preempted` turns TRUE when a spot machine is taken, about 30 seconds before it stops; `maintenance-event` tells host maintenance.

Machines with GPUs are not migrated but ended, and told so an hour before (Compute Engine, GPU host maintenance, 2026-11).  A migration interrupts nothing and
is no notice.  Of 30 seconds none is to be lost: after the first question each waits for a change, so that the answer comes with it.
Never run on a live machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ..proofs import metadata  # noqa: TID252 - packed, there is no `modules` above
from .times import iso

PREEMPTION_SECONDS = 30
WAIT_SECONDS = 20
"""How long one question may wait; maintenance is looked up in between."""
_PREEMPTED = "instance/preempted"
_MAINTENANCE = "instance/maintenance-event"


class GcpWatcher:
    """Blocks for up to `wait_seconds`, from the second question on."""

    def __init__(self, clock: Callable[[], float] = time.time, *, wait_seconds: int = WAIT_SECONDS) -> None:
        self._clock, self._wait = clock, wait_seconds
        self._etag = ""
        self._seen_at: float | None = None

    def poll(self) -> dict[str, Any] | None:
        """See the package."""
        if self._seen_at is None and self._preempted():
            self._seen_at = self._clock()
        if self._seen_at is not None:
            return {"what": "spot", "deadline": iso(self._seen_at + PREEMPTION_SECONDS)}
        if metadata.gcp(_MAINTENANCE).strip().startswith("TERMINATE"):
            return {"what": "maintenance", "deadline": None}
        return None

    def _preempted(self) -> bool:
        path, seconds = _PREEMPTED, metadata.SECONDS
        if self._etag:
            path += f"?wait_for_change=true&timeout_sec={self._wait}&last_etag={self._etag}"
            seconds += self._wait
        text, self._etag = metadata.gcp_tagged(path, seconds=seconds)
        return text.strip() == "TRUE"
