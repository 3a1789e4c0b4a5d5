"""Nebius' words: none in its metadata, as far as documented.  Documented is that Compute signals a preemptible machine 60 seconds before it stops it, and
kills it then (Nebius, preemptible virtual machines, read 2026-11): inside, that is a shutdown, which systemd tells of.

So this looks whether systemd is stopping the machine, whoever asked for it.  That the signal arrives as an orderly shutdown is our reading, tried on no live
machine; the agent's own SIGTERM comes in the same moment, and does not depend on this.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .times import iso

NOTICE_SECONDS = 60
_ASK_SECONDS = 2.0
_SYSTEMD = "/run/systemd/system"


class NebiusWatcher:
    """`state` tells systemd's word for the machine."""

    def __init__(self, clock: Callable[[], float] = time.time, *, state: Callable[[], str] | None = None) -> None:
        self._clock = clock
        self._state = state or _state
        self._seen_at: float | None = None

    def poll(self) -> dict[str, Any] | None:
        """See the package."""
        if self._seen_at is None and self._state() == "stopping":
            self._seen_at = self._clock()
        return None if self._seen_at is None else {"what": "spot", "deadline": iso(self._seen_at + NOTICE_SECONDS)}


def _state() -> str:
    """Empty where there is no systemd, or it does not answer."""
    if not Path(_SYSTEMD).exists():
        return ""
    try:
        done = subprocess.run(
            ("systemctl", "is-system-running"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ASK_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
