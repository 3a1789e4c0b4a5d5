"""One file of the spool: a header line, then one JSON line an item, in order.  Knows the bytes; `spool` decides what is kept.

The file has its blocks before its first item, so that a disk that fills up later does not keep this node from telling about it.  Behind the last whole line
comes anything (zeros, half a line that a crash left): what does not parse, or does not rise, ends the file.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

BYTES = 1 << 20
LONGEST_LINE = 64 * 1024


class Header(NamedTuple):
    """What must be known when all before this file is gone.  `level`: how much was thinned out already."""

    stream: str
    first: int
    marks: dict[str, int]
    level: int


class Line(NamedTuple):
    """An item, what its writer had read by then, and where the line ends in the file."""

    item: dict[str, Any]
    marks: dict[str, int]
    end: int


def packed(document: Any) -> bytes:
    """One line."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=True).encode() + b"\n"


def line(item: Mapping[str, Any], marks: Mapping[str, int]) -> bytes:
    """An item's line."""
    return packed({"i": item, "m": marks} if marks else {"i": item})


def blank(path: Path) -> None:
    """A new file of zeros that owns its blocks.  Raises OSError, and then nothing is there."""
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(target, 0, BYTES)
        else:  # macOS
            os.write(target, bytes(BYTES))
        os.fsync(target)
    except OSError:
        path.unlink()
        raise
    finally:
        os.close(target)


def begin(spare: Path, path: Path, header: Header) -> int:
    """Make a blank file the next one; where its first item goes.  It has its name only once its header is on the disk."""
    raw = _header(header)
    target = os.open(spare, os.O_WRONLY | os.O_NOFOLLOW)
    try:
        os.pwrite(target, raw, 0)
        os.fsync(target)
    finally:
        os.close(target)
    spare.rename(path)
    sync_folder(path.parent)
    return len(raw)


def rewrite(path: Path, header: Header, items: Sequence[Line]) -> int:
    """The file with these items and no others; its size.  Raises OSError, and then it is as it was."""
    new = path.with_name(path.name + ".new")
    raw = _header(header) + b"".join(line(one.item, one.marks) for one in items)
    with contextlib.suppress(FileNotFoundError):
        new.unlink()
    target = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(target, "wb") as opened:
            opened.write(raw)
            opened.flush()
            os.fsync(opened.fileno())
        new.rename(path)
    except OSError:
        with contextlib.suppress(OSError):
            new.unlink()
        raise
    sync_folder(path.parent)
    return len(raw)


def head(path: Path) -> tuple[Header, int] | None:
    """The header and where it ends; None where the file cannot be one of the spool's."""
    try:
        with path.open("rb") as opened:
            raw = opened.readline(LONGEST_LINE)
        if not raw.endswith(b"\n"):
            return None
        read = json.loads(raw)
        marks = {str(k): int(v) for k, v in read["marks"].items()}
        return Header(str(read["stream"]), int(read["first"]), marks, int(read["level"])), len(raw)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return None


def lines(path: Path, start: int, after: int) -> Iterator[Line]:
    """The items from a place on, as long as they are whole and their numbers rise above `after`."""
    with path.open("rb") as opened:
        opened.seek(start)
        end = start
        while True:
            raw = opened.readline(LONGEST_LINE)
            end += len(raw)
            one = _parsed(raw, end)
            if one is None or one.item["seq"] <= after:
                return
            after = one.item["seq"]
            yield one


def more(path: Path, start: int) -> bool:
    """Whether a line's end comes after a place: what stands there is no line that was never finished, but one that cannot be read."""
    with path.open("rb") as opened:
        opened.seek(start)
        return b"\n" in opened.read()


def sync_folder(path: Path) -> None:
    """Names are on the disk too."""
    target = os.open(path, os.O_RDONLY)
    try:
        os.fsync(target)
    finally:
        os.close(target)


def _header(header: Header) -> bytes:
    return packed(header._asdict())


def _parsed(raw: bytes, end: int) -> Line | None:
    if not raw.endswith(b"\n"):
        return None
    try:
        read: Any = json.loads(raw)
        item = read["i"]
        marks = {str(name): int(value) for name, value in read.get("m", {}).items()}
        whole = type(item["seq"]) is int and isinstance(item["kind"], str)
        return Line(item, marks, end) if whole else None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return None
