"""What is asked of the job: one JSON file, written whole, and a signal for processes that want one (docs/job-protocol.md)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from typing import TYPE_CHECKING

from . import files
from .errors import AgentError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MOST_PROCESSES = 1024


class Control:
    """The control file of one attempt.  `owns` says whether a process is the job's: nobody else is signalled.  `memory`: who wants a signal, for the next agent."""

    def __init__(self, path: Path, owns: Callable[[int], bool], *, memory: Path | None = None) -> None:
        self._path, self._owns, self._memory = path, owns, memory
        self._wanting: dict[int, int] = {}
        self._kept = True
        for pid, number in (files.recall(memory) if memory is not None else {}).items():
            if pid.isdecimal() and type(number) is int and 0 < number < signal.NSIG:
                self._wanting[int(pid)] = number
        said = files.recall(path)
        self.count = said["checkpoint"] if type(said.get("checkpoint")) is int else 0
        self._stop = said.get("stop") is True

    def ask(self, reason: str, deadline: float | None, *, stop: bool = False) -> None:
        """For a checkpoint, and with `stop` for the end after it.  Raises AgentError where the file cannot be written; signals go out all the same."""
        self.count += 1
        self._stop = self._stop or stop
        asked = {"checkpoint": self.count, "reason": reason, "deadline": deadline, "stop": self._stop}
        try:
            files.write(self._path, json.dumps(asked) + "\n")
            self._path.chmod(0o644)  # a container's user may be another; the folder above is closed
        finally:
            for pid, number in list(self._wanting.items()):
                if self._owns(pid):
                    with contextlib.suppress(OSError):
                        os.kill(pid, number)
                else:
                    del self._wanting[pid]

    def wants(self, pid: int, number: int) -> None:
        """A process wants a signal."""
        if self._owns(pid) and len(self._wanting) < MOST_PROCESSES:
            self._kept = self._kept and self._wanting.get(pid) == number
            self._wanting[pid] = number

    def keep(self) -> None:
        """Remember who wants a signal: the lines that said so are read once."""
        if self._memory is not None and not self._kept:
            with contextlib.suppress(AgentError):  # no room: the next time
                files.write(self._memory, json.dumps(self._wanting))
                self._kept = True
