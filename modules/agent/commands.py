"""Other programs, run: their words become this program's errors.  Gives no program an input of ours."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from .errors import SYSTEM, AgentError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COMMAND_SECONDS = 20
END_SECONDS = 60


def run(*command: str, stdin: int = subprocess.DEVNULL) -> str:
    """What a command prints.  Raises AgentError with its own words."""
    done = attempt(*command, stdin=stdin)
    if done.returncode:
        words = done.stderr.strip() or f"exit {done.returncode}"
        raise AgentError(SYSTEM, f"`{' '.join(command)}` failed: {words}")
    return done.stdout


def attempt(*command: str, stdin: int = subprocess.DEVNULL) -> subprocess.CompletedProcess[str]:
    """A finished command, however it ended.  Raises AgentError where there is no such program."""
    try:
        return subprocess.run(
            command, stdin=stdin, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
        )
    except FileNotFoundError as error:
        raise AgentError(SYSTEM, f"`{command[0]}` is not installed") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AgentError(SYSTEM, f"`{' '.join(command)}` failed: {error}") from error


def end(command: Sequence[str], told: Callable[[str], None]) -> None:
    """The command that ends this node; tells where it does not."""
    try:
        subprocess.run(command, stdin=subprocess.DEVNULL, timeout=END_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        told(f"the node could not be ended: {error}")
