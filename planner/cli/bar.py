"""A bar on stderr for work that takes longer than two seconds, where a person looks; nothing otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

import click

AFTER_SECONDS = 2.0
_WIDTH = 24


@contextmanager
def bar(total: int, *, now: Callable[[], float] = time.monotonic) -> Generator[Callable[[str], None]]:
    """`advance(text)` before each of `total` pieces of work, with what it is; more of them than told leave the bar full."""
    begun = now()
    done = 0
    shown = 0

    def advance(text: str) -> None:
        nonlocal done, shown
        done += 1
        if not sys.stderr.isatty() or now() - begun < AFTER_SECONDS:
            return
        filled = _WIDTH * min(done - 1, total) // max(total, 1)
        line = f"[{'#' * filled}{'-' * (_WIDTH - filled)}] {text[:80]}"
        click.echo("\r" + line.ljust(shown), nl=False, err=True)
        shown = len(line)

    try:
        yield advance
    finally:
        if shown:
            click.echo("\r" + " " * shown + "\r", nl=False, err=True)
