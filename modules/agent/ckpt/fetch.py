"""A checkpoint from the store into a folder of this node, every byte held to its hash.  The folder is whole or not there; one that is there already is held to the same."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from .errors import Absent, Invalid, StoreError
from .local import flush_folder
from .manifest import MANIFEST, File, Hashed, Manifest
from .store import CHUNK_BYTES

if TYPE_CHECKING:
    from pathlib import Path

    from .store import Readable, Store

FILES_AT_ONCE = 4
_SPARE_BYTES = 64 << 20


def fetch(store: Store, found: Manifest, folder: Path) -> Path:
    """The folder of it, under `folder`.  Raises Invalid where the content is another than the manifest says, StoreError where it cannot be had now."""
    whole = folder / f"resume-g{found.generation}-{found.folder}"
    if _holds(whole, found):
        return whole
    new = folder / f".{whole.name}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in (*folder.glob("resume-g*"), new):  # what another start went on from
            shutil.rmtree(str(old), ignore_errors=True)
        free = shutil.disk_usage(str(folder)).free
        if free < found.bytes + _SPARE_BYTES:
            raise StoreError(f"{folder} has {free >> 20} MiB left, and {found.uri} has {found.bytes >> 20} MiB")
        _bring(store, found, new)
        new.rename(whole)
        flush_folder(folder)
    except OSError as error:
        raise StoreError(f"{found.uri} cannot be written to {folder}: {error}") from error
    finally:
        shutil.rmtree(str(new), ignore_errors=True)
    return whole


def _bring(store: Store, found: Manifest, new: Path) -> None:
    at = found.uri[len(store.uri) :]
    folders = {new}
    for file in found.files:
        path = (new / file.path).parent
        while path not in folders:
            folders.add(path)
            path = path.parent
    for path in sorted(folders):
        path.mkdir()

    def one(file: File) -> None:
        try:
            with store.opened(at + file.path) as reader, (new / file.path).open("xb") as opened:
                got = _copied(reader, file, opened.write)
                opened.flush()
                os.fsync(opened.fileno())
        except Absent:
            raise Invalid(f"{file.path} is missing: torn") from None
        if got != file:
            raise Invalid(f"{file.path} has another content than its manifest says")

    with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
        list(pool.map(one, found.files))
    with (new / MANIFEST).open("xb") as opened:
        opened.write(found.text())
        opened.flush()
        os.fsync(opened.fileno())
    for path in folders:
        flush_folder(path)


def _copied(reader: Readable, file: File, write: object) -> File:
    """What was read, as a manifest would name it; no more of it than one byte too many."""
    hashed = Hashed()
    while hashed.bytes <= file.bytes:
        some = reader.read(CHUNK_BYTES)
        if not some:
            break
        hashed.update(some)
        if callable(write):
            write(some)
    return File(file.path, hashed.bytes, hashed.sha256)


def _holds(whole: Path, found: Manifest) -> bool:
    """Whether the folder is this checkpoint, to the byte."""
    try:
        if (whole / MANIFEST).read_bytes() != found.text():
            return False
        for file in found.files:
            with (whole / file.path).open("rb") as opened:
                if _copied(opened, file, None) != file:
                    return False
    except OSError:
        return False
    return True
