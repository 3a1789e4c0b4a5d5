"""Files of this program: for root only, written whole or not at all, and no link of somebody else's is followed."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from pathlib import Path
from typing import Any, cast

from .errors import SYSTEM, AgentError

MAX_STATE_BYTES = 1 << 16
_OTHERS = 0o077
_OTHERS_WRITE = 0o022


def folder(path: str) -> None:
    """Make the folder for keys and state, for root only.  Raises AgentError where others could write it."""
    try:
        Path(path).mkdir(mode=0o700, parents=True, exist_ok=True)
        found = Path(path).lstat()
    except OSError as error:
        raise AgentError(SYSTEM, f"{path} cannot be made: {error}") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & _OTHERS_WRITE:
        raise AgentError(SYSTEM, f"{path} must be a folder that only this user may write")


def private(path: Path) -> None:
    """Raises AgentError where a file could be somebody else's, or be read by others."""
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode) or found.st_mode & _OTHERS or found.st_uid != os.geteuid():
        raise AgentError(SYSTEM, f"{path} must be a file that only this user may read")


def create(path: Path) -> int:
    """A descriptor of a new, empty file for root only."""
    forget(path)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)


def write(path: Path, text: str) -> None:
    """The text as a file."""
    new = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with os.fdopen(create(new), "w", encoding="utf-8") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        new.rename(path)
        settle(path.parent)
    except OSError as error:
        forget(new)
        raise AgentError(SYSTEM, f"{path} cannot be written: {error}") from error


def settle(folder: Path) -> None:
    """Names that were made or changed in a folder are there after a loss of power, too."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def forget(path: Path) -> None:
    """Remove a file, if it is there."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()


def recall(path: Path) -> dict[str, Any]:
    """A JSON object; empty where there is none."""
    try:
        with path.open("rb") as opened:
            found = json.loads(opened.read(MAX_STATE_BYTES))
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
