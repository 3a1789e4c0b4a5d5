"""Progress on stderr: a live line per stack where rich is installed and a person looks, plain lines elsewhere."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import click

Tell = Callable[[str, str], None]


@contextmanager
def progress(*, quiet: bool = False) -> Generator[Tell]:
    """A `tell` for the use cases.  `quiet` drops Terraform's chatter and keeps what concerns the job."""
    if sys.stderr.isatty() and not quiet:
        try:
            from rich.console import Console  # noqa: PLC0415 - optional
        except ImportError:
            pass
        else:
            yield from _live(Console(stderr=True))
            return

    def plain(stack: str, text: str) -> None:
        if not stack:
            click.echo(text, err=True)
        elif not quiet:
            click.echo(f"  {stack}: {text}", err=True)

    yield plain


def _live(console: Any) -> Generator[Tell]:
    with console.status("starting", spinner="dots") as status:

        def tell(stack: str, text: str) -> None:
            if stack and "\n" not in text:
                status.update(f"{stack}: {text}", spinner="dots")
            else:
                console.print(f"{stack}: {text}" if stack else text, markup=False, highlight=False)

        yield tell


@contextmanager
def ending_politely() -> Generator[None]:
    """SIGTERM, which CI sends on cancelling, ends like an interrupt: Terraform is interrupted too and may write its state."""

    def interrupt(_number: int, _frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
