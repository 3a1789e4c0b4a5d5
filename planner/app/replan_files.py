"""Writing proposals for review: a new plan and its diff, whole or not at all; and taking back what does not hold any more.

Decides the names: `plans/NAME.plan.json`, `migrations/NAME.diff.json`.  A proposal that says the same as the one that lies there leaves the file alone: prices move each
minute, and a pull request should not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.app.files import write_together
from planner.app.inputs import PLAN_SUFFIX, PLANS_FOLDER
from planner.migration.document import DIFF_SUFFIX, to_document
from planner.model.digest import pretty
from planner.model.plan import to_document as plan_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from planner.app.replan_diff import Proposal

DIFFS_FOLDER = "migrations"


def write(proposals: Sequence[Proposal], folder: Path, *, keep_alike: bool = False) -> tuple[Path, ...]:
    """The files written.  `keep_alike`: not where the same move is proposed there already.  Raises InputError."""
    out: list[Path] = []
    for one in proposals:
        document, path = to_document(one.diff), _diff_path(folder, one.diff.job)
        if keep_alike and _same(path, document):
            continue
        files = {path: pretty(document)}
        if one.new_plan:
            plan = folder / PLANS_FOLDER / f"{one.diff.job}{PLAN_SUFFIX}"
            files = {plan: pretty(plan_document(one.plan)), **files}
        write_together(files)
        out += files
    return tuple(out)


def take_back(jobs: Iterable[str], folder: Path) -> tuple[Path, ...]:
    """Diffs of jobs that should stay, and the plans beside them; what was taken away."""
    out: list[Path] = []
    for job in jobs:
        for path in (_diff_path(folder, job), folder / PLANS_FOLDER / f"{job}{PLAN_SUFFIX}"):
            if path.is_file():
                path.unlink()
                out.append(path)
    return tuple(out)


def _diff_path(folder: Path, job: str) -> Path:
    return folder / DIFFS_FOLDER / f"{job}{DIFF_SUFFIX}"


def _same(path: Path, document: dict[str, Any]) -> bool:
    """The same move: of the same run, for the same reason, to the same first place, of the same plan where that was reviewed."""
    try:
        there = json.loads(path.read_text(encoding="utf-8"))
        return bool(_said(there) == _said(document))
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return False


def _said(document: dict[str, Any]) -> tuple[Any, ...]:
    first = document["to"][0]
    plan = document["plan_digest"] if document["reviewed"] else ""
    return (
        document["standing"]["generation"],
        document["reason"],
        first["offer_id"],
        first["placement_id"],
        document["prepared"],
        plan,
    )
