"""Writing plan files: whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from planner.app.inputs import PLAN_SUFFIX
from planner.model.diagnostic import Diagnostic, Location
from planner.model.digest import pretty
from planner.model.errors import InputError
from planner.model.plan import to_document

if TYPE_CHECKING:
    from planner.model.plan import PlacementPlan

_AT_ONCE = 8
"""Files that are flushed to disk at a time."""
_AHEAD = 64
"""Files made and not yet on disk: what a fleet's plans take in memory at most."""


def write_whole(path: Path, data: bytes) -> None:
    """Write to a temporary file beside `path`, flush to disk, rename: a reader sees the old bytes or the new, never a part."""
    write_together({path: data})


def write_together(files: Mapping[Path, bytes]) -> None:
    """The same of several: where one cannot be written, none is touched.

    What is neither a file nor a folder (/dev/stdout, /dev/null, a pipe) is written to: a rename would put a file in its place.
    """
    beside: dict[Path, Path] = {}
    through = {path for path in files if _is_special(path)}
    try:
        for path, data in files.items():
            if path not in through:
                _put_beside(path, data, beside)
        for path in through:
            _put_through(path, files[path])
        for path, whole in beside.items():
            _renamed(whole, path)
    finally:
        for whole in beside.values():
            whole.unlink(missing_ok=True)


def _is_special(path: Path) -> bool:
    try:
        kind = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(kind) or stat.S_ISDIR(kind))


def _put_through(path: Path, data: bytes) -> None:
    try:
        with path.open("wb") as file:
            file.write(data)
    except OSError as error:
        raise _unwritable(path, error) from error


def _put_beside(path: Path, data: bytes, beside: dict[Path, Path]) -> None:
    try:
        if path.is_dir():  # told before any other is renamed
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        beside[path] = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
    except OSError as error:
        raise _unwritable(path, error) from error


def _renamed(whole: Path, path: Path) -> None:
    try:
        whole.replace(path)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> InputError:
    at = Location(str(path))
    hint = "give a folder that can be written"
    summary = f"cannot be written: {error.strerror or error}"
    return InputError([Diagnostic(code="SKY-SPEC-101", summary=summary, location=at, hint=hint)])


def write_plans(
    plans: Iterable[PlacementPlan], folder: Path, advance: Callable[[str], object] | None = None
) -> tuple[Path, ...]:
    """NAME.plan.json for every plan that has a placement or waits; bytes depend on the plan alone, and a file that has them already is left alone.

    Several at a time: of each most of the time is waiting for the disk.  `advance` is called with each path.
    """
    out: list[Path] = []
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        waited: deque[Future[None]] = deque()
        for plan in plans:
            if not (plan.ranked or plan.waits):
                continue
            path = plan_path(plan.name, folder)
            if advance is not None:
                advance(f"writing {path}")
            waited.append(threads.submit(_write_other, path, pretty(to_document(plan))))
            if len(waited) > _AHEAD:
                waited.popleft().result()
            out.append(path)
        for one in waited:
            one.result()
    return tuple(out)


def plan_path(name: str, folder: Path) -> Path:
    """Where a job's plan file lies."""
    return folder / f"{name}{PLAN_SUFFIX}"


def _write_other(path: Path, data: bytes) -> None:
    """Where something else stands."""
    try:
        if path.stat().st_size == len(data) and path.read_bytes() == data:
            return
    except OSError:
        pass  # whether it can be written is told by writing
    write_whole(path, data)
