"""Other programs, run: their words become this program's errors.  Gives no program an input of ours."""

from __future__ import annotations

import subprocess

from .errors import SYSTEM, AgentError

COMMAND_SECONDS = 20


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
