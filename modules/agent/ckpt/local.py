"""A folder as a store: `file:///…`.  Every write is a temporary file, flushed, then linked under its name: a name is whole or not there, and none is written twice.

The temporary files have a name of their own and are never listed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from .errors import Absent, Exists, StoreError
from .manifest import safe
from .store import CHUNK_BYTES, Content, Entry

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from .store import Readable

_NEW = ".skyplan-new-"
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})


class LocalStore:
    """The store under one folder.  `uri` ends with a slash."""

    def __init__(self, uri: str) -> None:
        split = urlsplit(uri)
        if split.scheme != "file" or split.netloc not in {"", "localhost"} or not split.path.startswith("/"):
            raise StoreError(f"{uri} is no folder of this machine")
        self.uri = uri if uri.endswith("/") else uri + "/"
        self._root = Path(unquote(split.path))

    def entries(self, prefix: str) -> Iterator[Entry]:
        """All under a prefix that ends with a slash, in order of name."""
        start = self._root / prefix.rstrip("/")

        def failed(error: OSError) -> None:
            if error.filename != str(start) or not isinstance(error, FileNotFoundError):
                raise StoreError(f"{self.uri}{prefix} cannot be listed: {error}")

        found: list[Entry] = []
        for at, _, names in os.walk(str(start), onerror=failed):
            for name in names:
                path = Path(at) / name
                if not name.startswith(_NEW) and path.is_file() and not path.is_symlink():
                    found.append(Entry(path.relative_to(self._root).as_posix(), path.stat().st_size))
        return iter(sorted(found))

    @contextlib.contextmanager
    def opened(self, name: str) -> Generator[Readable, None, None]:
        """A reader of the file.  Raises Absent."""
        try:
            reader = self._path(name).open("rb")
        except (FileNotFoundError, NotADirectoryError):
            raise Absent(f"{self.uri}{name} is not there") from None
        except OSError as error:
            raise StoreError(f"{self.uri}{name} cannot be read: {error}") from error
        with reader:
            yield reader

    def put(self, name: str, content: Content) -> None:
        """Raises Exists."""
        path = self._path(name)
        new = path.with_name(f"{_NEW}{os.getpid()}-{secrets.token_hex(4)}")
        try:
            changed = _folders(path.parent)
            copied = 0
            with new.open("wb") as opened, content.piece(0, content.bytes) as piece:
                for some in iter(lambda: piece.read(CHUNK_BYTES), b""):
                    copied += opened.write(some)
                opened.flush()
                os.fsync(opened.fileno())
            if copied != content.bytes:
                raise StoreError(f"{name} became shorter while it was stored: {copied} bytes, not {content.bytes}")
            _named(new, path)
            for folder in (path.parent, *changed):
                flush_folder(folder)
        except FileExistsError:
            raise Exists(f"{self.uri}{name} is there already") from None
        except OSError as error:
            raise StoreError(f"{self.uri}{name} cannot be written: {error}") from error
        finally:
            with contextlib.suppress(OSError):
                new.unlink()

    def _path(self, name: str) -> Path:
        folder, _, last = name.rpartition("/")
        if (folder and not safe(folder)) or last in {"", ".", ".."} or last.startswith(_NEW):
            raise StoreError(f"{name!r} is no name for a file here")
        return self._root / name


def _named(new: Path, path: Path) -> None:
    """Give a file its name, if that is free.  Raises FileExistsError."""
    try:
        os.link(str(new), str(path))
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # a file system that has no links, such as a mounted bucket: nobody else writes this generation's names, so looking first is enough
        if path.exists():
            raise FileExistsError(errno.EEXIST, "taken", str(path)) from None
        new.rename(path)


def _folders(folder: Path) -> list[Path]:
    """Make a folder and its parents; the folders whose content that changed."""
    changed: list[Path] = []
    above = folder
    while not above.is_dir():
        above = above.parent
        changed.append(above)
    folder.mkdir(parents=True, exist_ok=True)
    return changed


def flush_folder(folder: Path) -> None:
    """Have the names in a folder on disk."""
    opened = os.open(str(folder), os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
