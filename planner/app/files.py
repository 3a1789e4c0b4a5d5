"""Writing plan files: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
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
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise _unwritable(path, error) from error
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


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
