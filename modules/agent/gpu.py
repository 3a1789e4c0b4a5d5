"""What the GPUs do, by nvidia-smi where there is one: asked at most once a minute, and never waited for."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

EVERY_SECONDS = 60.0
LONGEST_SECONDS = 20.0
_ASKED = ("--query-gpu=memory.used,utilization.gpu", "--format=csv,noheader,nounits")


class Gpus:
    """The node's GPUs together: MiB in use of all, and the mean of how busy they were."""

    def __init__(self, steady: Callable[[], float] = time.monotonic) -> None:
        self._program = shutil.which("nvidia-smi")
        self._steady = steady
        self._next = 0.0
        self._asked_at = 0.0
        self._asking: subprocess.Popen[str] | None = None

    def poll(self) -> dict[str, float]:
        """Fields for a heartbeat; none where there is nothing new."""
        now = self._steady()
        if self._asking is not None:
            return self._answer(now)
        if self._program and now >= self._next:
            self._next = now + EVERY_SECONDS
            self._asked_at = now
            with contextlib.suppress(OSError):
                self._asking = subprocess.Popen(
                    [self._program, *_ASKED],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
        return {}

    def _answer(self, now: float) -> dict[str, float]:
        asking = self._asking
        if asking is None:
            return {}
        if asking.poll() is None:
            if now - self._asked_at > LONGEST_SECONDS:
                asking.kill()
            return {}
        text, _ = asking.communicate()
        self._asking = None
        return parse(text) if asking.returncode == 0 else {}


def parse(text: str) -> dict[str, float]:
    """Of `memory, utilization` lines; a field that the driver does not know (`[N/A]`) is left out."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.strip()]
    memory = [int(row[0]) for row in rows if row[0].isdigit()]
    busy = [int(row[1]) for row in rows if len(row) > 1 and row[1].isdigit()]
    found: dict[str, float] = {}
    if memory:
        found["gpu_memory_mib"] = sum(memory)
    if busy:
        found["gpu_utilization_percent"] = round(sum(busy) / len(busy), 1)
    return found
