"""Timing calls and processes, and the rows that hold what came out."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: median and minimum, in seconds unless `unit` says otherwise, beside the reach."""

    what: str
    median: float | None
    least: float | None
    reach: str = ""
    note: str = ""
    unit: str = "s"

    def cells(self) -> str:
        """As a line of the table."""
        shown = [self._figure(self.median), self._figure(self.least)]
        return f"| {self.what} | {self.reach} | {shown[0]} | {shown[1]} | {self.note} |"

    def _figure(self, value: float | None) -> str:
        if value is None:
            return "-"
        return f"{value * 1000:,.1f} ms" if self.unit == "s" else f"{value:,.0f} {self.unit}"


class Failed(Exception):
    """A command that was to be timed did not work."""


def warm(call: Callable[[], object], repeats: int) -> tuple[float, float]:
    """(median, minimum) seconds of `call`, after one that is not counted."""
    call()
    times: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times), min(times)


@dataclass(frozen=True, slots=True)
class Cold:
    """A fresh process: seconds, the largest resident set in MiB, and the least seconds of CPU, with those of processes that it waited for."""

    median: float
    least: float
    peak: float
    cpu: float = 0.0


def cold(command: list[str], folder: Path, repeats: int = 9) -> Cold:
    """Start `command` again and again, after once that is not counted.  Raises Failed where it exits with an error."""
    times: list[float] = []
    peak = 0.0
    cpu: list[float] = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        child = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        times.append(time.perf_counter() - start)
        cpu.append(usage.ru_utime + usage.ru_stime)
        child.returncode = os.waitstatus_to_exitcode(status)
        peak = max(peak, usage.ru_maxrss / 1024)
        if child.returncode:
            raise Failed(f"`{' '.join(command)}` exited {child.returncode}")
    return Cold(statistics.median(times[1:]), min(times[1:]), peak, min(cpu[1:]))
