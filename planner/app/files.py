"""Writing plan files: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from planner.app.inputs import PLAN_SUFFIX
from planner.model.diagnostic import Diagnostic, Location
from planner.model.digest import pretty
from planner.model.errors import InputError
from planner.model.plan import to_document

if TYPE_CHECKING:
    from planner.model.plan import PlacementPlan


def write_whole(path: Path, data: bytes) -> None:
    """Write to a temporary file beside `path`, flush to disk, rename: a reader sees the old bytes or the new, never a part."""
    write_together({path: data})


def write_together(files: Mapping[Path, bytes]) -> None:
    """The same of several: where one cannot be written, none is touched."""
    beside: dict[Path, Path] = {}
    try:
        for path, data in files.items():
            _put_beside(path, data, beside)
        for path, whole in beside.items():
            _renamed(whole, path)
    finally:
        for whole in beside.values():
            whole.unlink(missing_ok=True)


def _put_beside(path: Path, data: bytes, beside: dict[Path, Path]) -> None:
    try:
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


def write_plans(plans: Sequence[PlacementPlan], folder: Path) -> tuple[Path, ...]:
    """NAME.plan.json for every plan that is complete; bytes depend on the plan alone."""
    out: list[Path] = []
    for plan in plans:
        if not plan.ranked:
            continue
        path = folder / f"{plan.name}{PLAN_SUFFIX}"
        write_whole(path, pretty(to_document(plan)))
        out.append(path)
    return tuple(out)
