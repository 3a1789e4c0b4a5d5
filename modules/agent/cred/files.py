"""Files for the job's clients: written whole (temporary file, flush, rename), readable by the job's user alone where they hold a secret.

The folder lies in memory (/run).  Of leases, only Azure's SAS is ever written: AWS's and Google's clients ask the endpoint.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

TOKEN = "token"  # noqa: S105 - a file's name
ADDRESS = "endpoint"
_MAX_BYTES = 64 * 1024


def folder(path: Path, owner: tuple[int, int] | None) -> None:
    """For its owner only; others may pass where the job is another user's.  Raises OSError where it is a link."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise NotADirectoryError(f"{path} must be a folder of this user")
    path.chmod(0o711 if owner else 0o700)


def write(path: Path, text: str, owner: tuple[int, int] | None = None, *, mode: int = 0o400) -> None:
    """The text as a file: whoever reads sees the old or the new, never a part."""
    new = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(str(new), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
            if owner:
                os.fchown(opened.fileno(), *owner)
            os.fchmod(opened.fileno(), mode)
        new.rename(path)
    except OSError:
        new.unlink()
        raise


def recall(path: Path) -> str:
    """What is there; "" where nothing is, or a link."""
    try:
        with os.fdopen(os.open(str(path), os.O_RDONLY | os.O_NOFOLLOW), "rb") as opened:
            return opened.read(_MAX_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def token(path: Path, owner: tuple[int, int] | None) -> str:
    """The endpoint's token: that of the last time, or a new one.  No line break: SDKs send the file's text as a header."""
    before = recall(path)
    if len(before) >= 32 and before.isascii() and before.isprintable():  # noqa: PLR2004 - ours have 43
        return before
    new = secrets.token_urlsafe(32)
    write(path, new, owner)
    return new
