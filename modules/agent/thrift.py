"""Memory that nobody uses goes back to the machine: glibc's allocator is told so, which it takes from the environment at a process's start only.

By default each thread gets an arena of its own, and what is free stays: 4 MiB more here on Python 3.8, 1 MiB on 3.11 (`benchmarks/agent.py`, 2026-11).  So the agent
starts itself once more, as the same process.  The job gets none of it.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ASKED = {"MALLOC_ARENA_MAX": "1", "MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_MMAP_THRESHOLD_": "65536"}
_MARK = "SKYPLAN_AGENT_THRIFT"
"""Names what was added, so that it can be taken away."""


def once_more() -> None:
    """Does not return where it starts anew; where it cannot, all goes on as it is."""
    if sys.platform != "linux" or _MARK in os.environ:
        return
    added = {name: value for name, value in ASKED.items() if name not in os.environ}
    with contextlib.suppress(OSError):
        words = Path("/proc/self/cmdline").read_bytes().split(b"\0")[:-1]
        # `python -m`, a zip and a script all begin again from the words that began them
        if words and sys.executable:
            os.execve(sys.executable, words, {**os.environ, **added, _MARK: " ".join(added)})  # noqa: S606 - itself


def without(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment as it was before."""
    gone = {_MARK, *environment.get(_MARK, "").split()}
    return {name: value for name, value in environment.items() if name not in gone}
