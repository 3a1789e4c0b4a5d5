"""A write, flush, link or rename that does not happen: the process is killed there, or the call fails there.  Also the program of the killed child.

`python boundaries.py SOURCE NTH STEP` makes a checkpoint of two files by the job's file and is SIGKILLed at the NTH boundary.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import pathlib
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

CALLS = ("fsync", "rename", "link", "mkdir", "write", "open", "unlink", "rmdir")


class Crash(OSError):
    """The disk that fails."""


@contextlib.contextmanager
def crashing(act: Callable[[str], None]) -> Iterator[list[str]]:
    """`act(name)` before each boundary; the names so far."""
    seen: list[str] = []

    def guarded(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            seen.append(name)
            act(name)
            return real(*given, **named)

        return call

    saved = {name: getattr(os, name) for name in CALLS}
    opened = io.open

    def opening(file: Any, mode: str = "r", *given: Any, **named: Any) -> Any:
        if set(mode) & set("wxa"):
            seen.append("open")
            act("open")
        return opened(file, mode, *given, **named)

    for name, real in saved.items():
        setattr(os, name, guarded(name, real))
    io.open = opening  # type: ignore[assignment]  what pathlib opens by
    try:
        yield seen
    finally:
        for name, real in saved.items():
            setattr(os, name, real)
        io.open = opened


def load(source: str) -> Any:
    spec = importlib.util.spec_from_file_location("skyplan_job", source)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["skyplan_job"] = module
    spec.loader.exec_module(module)
    return module


def write(job: Any, step: int, content: bytes) -> None:
    """Two files, one in a folder."""
    with job.checkpoint(step) as folder:
        (folder / "model.pt").write_bytes(content)
        (folder / "optimizer").mkdir()
        (folder / "optimizer" / "state.pt").write_bytes(content[::-1])


def main() -> None:
    source, nth, step = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    job = load(source)
    left = [nth]

    def act(_: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    with crashing(act):
        write(job, step, b"x" * 4000)


if __name__ == "__main__":
    assert pathlib
    assert shutil
    main()
