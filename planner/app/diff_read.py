"""One side of a placement diff: its plan files, migration diffs and job files, from the working folder or a revision.

Decides what a file is by its name, and gathers every problem before one is raised.  Of a plan only what a diff shows is built: a thousand of them are read
in seconds.  The digest of each is checked all the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

from planner.app.inputs import PLAN_SUFFIX, shown
from planner.migration.document import DIFF_SUFFIX
from planner.migration.document import from_document as migration_from
from planner.model.diagnostic import Diagnostic, Location
from planner.model.digest import digest, digest_of_pretty
from planner.model.errors import InputError
from planner.model.grants import grant_from
from planner.model.migration import MigrationDiff
from planner.model.plan import (
    FORMAT_VERSION,
    PlacementPlan,
    PlanStatus,
    RejectedCount,
    from_document,
    inputs_from,
    job_from,
    placement_from,
    stack_from,
    to_document,
)

JOB_SUFFIXES = (".yaml", ".yml")
_SHOWN = 2
"""Ranked placements that a diff shows: the choice and the runner-up."""


class Tree(Protocol):
    """Files by path: the working folder, or a revision."""

    def text(self, path: Path) -> str:
        """Of a file.  Raises InputError."""
        ...

    def below(self, path: Path) -> tuple[Path, ...] | None:
        """Files of a folder and of those in it, sorted; None where the path is no folder."""
        ...

    def has(self, path: Path) -> bool:
        """Whether there is such a file."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A plan as a diff needs it.

    plan       with the first two of its ranked set
    digest     of the whole plan
    standings  rank, total and whether that is a lower bound, of every ranked offer
    path       where the whole of it lies; None where it was planned for this diff
    whole      the whole of it, where it was planned for this diff
    """

    plan: PlacementPlan
    digest: str
    standings: dict[str, tuple[int, Decimal, bool]]
    file: str = ""
    path: Path | None = None
    whole: PlacementPlan | None = None

    @property
    def replanned(self) -> bool:
        """It is no file."""
        return self.whole is not None


@dataclass(slots=True, kw_only=True)
class Side:
    """What one side holds, by job name."""

    label: str
    tree: Tree
    plans: dict[str, Held] = field(default_factory=dict[str, Held])
    migrations: dict[str, MigrationDiff] = field(default_factory=dict[str, MigrationDiff])
    job_files: tuple[Path, ...] = ()
    root: Path = Path()

    def full(self, name: str) -> PlacementPlan:
        """A plan with all that it ranks.  Raises InputError."""
        held = self.plans[name]
        if held.whole is not None:
            return held.whole
        assert held.path is not None  # noqa: S101 - one or the other
        return from_document(json.loads(self.tree.text(held.path)), held.file)


@dataclass(slots=True)
class Reader:
    """Reads both sides: what is the same on both is understood once."""

    problems: list[Diagnostic] = field(default_factory=list[Diagnostic])
    _known: dict[str, Held] = field(default_factory=dict[str, Held])
    _folders: dict[Path, str | None] = field(default_factory=dict[Path, "str | None"])

    def side(
        self, label: str, tree: Tree, paths: Sequence[Path], job_paths: Sequence[Path] = (), root: Path = Path()
    ) -> Side:
        """Plans and migration diffs of files and folders, and the names of job files.  `root`: where skyplan.yaml may lie."""
        side = Side(label=label, tree=tree, root=root)
        for path in paths:
            files = tree.below(path)
            if files is None:
                self._file(side, path)
                continue
            named = [f for f in files if f.name.endswith((PLAN_SUFFIX, DIFF_SUFFIX))]
            _fetch(tree, named)
            for file in named:
                self._file(side, file)
        side.job_files = tuple(self._jobs(tree, job_paths))
        return side

    def _jobs(self, tree: Tree, paths: Iterable[Path]) -> list[Path]:
        out: list[Path] = []
        for path in paths:
            if tree.has(path):
                out.append(path)
            else:
                out += [f for f in tree.below(path) or () if f.suffix in JOB_SUFFIXES]
        _fetch(tree, out)
        return out

    def _file(self, side: Side, path: Path) -> None:
        try:
            text = side.tree.text(path)
            if path.name.endswith(DIFF_SUFFIX):
                found = migration_from(_json(text, path, "SKY-MOVE-423"), shown(path))
                side.migrations[found.job] = found
                return
            held = self._plan(text, path, self._shown(path))
        except InputError as error:
            self.problems += error.diagnostics
            return
        other = side.plans.get(held.plan.name)
        if other is not None:
            summary = f"job `{held.plan.name}` has a plan in {other.file} too"
            self.problems.append(Diagnostic(code="SKY-SPEC-112", summary=summary, location=Location(held.file)))
        side.plans[held.plan.name] = held

    def _shown(self, path: Path) -> str:
        """As `shown`, asking the file system once per folder."""
        if path.parent not in self._folders:
            self._folders[path.parent] = _folder(path.parent)
        folder = self._folders[path.parent]
        return path.name if folder is None else os.fsencode(folder + path.name).decode("utf-8", "backslashreplace")

    def _plan(self, text: str, path: Path, name: str) -> Held:
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = held(_json(text, path, "SKY-APPLY-301"), name, text)
        return replace(known, file=name, path=path)


def held(document: Any, file: str, text: str = "") -> Held:
    """Of a plan's JSON, and the text that it was read from.  Raises InputError (SKY-APPLY-301) as `from_document` does."""
    if not isinstance(document, dict) or "ranked" not in document or "digest" not in document:
        raise _no_plan(document, file)
    body: dict[str, Any] = dict(document)  # pyright: ignore[reportUnknownArgumentType]
    stated = body.pop("digest")
    try:
        major = str(body.get("format_version", "")).partition(".")[0]
        if major != FORMAT_VERSION.partition(".")[0] or (stated != digest_of_pretty(text) and stated != digest(body)):
            raise _no_plan(document, file)
        ranked: list[dict[str, Any]] = list(body["ranked"])
        standings = {
            str(p["offer_id"]): (int(p["rank"]), Decimal(p["total_usd"]), bool(p["lower_bound"])) for p in ranked
        }
        return Held(plan=_shown_part(body, ranked), digest=str(stated), standings=standings, file=file)
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        summary = f"the plan lacks or mistypes a field: {error}"
        raise InputError([Diagnostic(code="SKY-APPLY-301", summary=summary, location=Location(file))]) from error


def _no_plan(document: Any, file: str) -> InputError:
    """What `from_document` says of it."""
    try:
        from_document(document, file)
    except InputError as error:
        return error
    raise AssertionError(file)


def _shown_part(body: dict[str, Any], ranked: list[dict[str, Any]]) -> PlacementPlan:
    """Without what a diff does not show: eighteen more placements and how each would reach its stores take most of the time."""
    first = ranked[0]["grants_digest"] if ranked else ""
    return PlacementPlan(
        job=job_from(body["job"]),
        inputs=inputs_from(body["inputs"]),
        ranked=tuple(map(placement_from, ranked[:_SHOWN])),
        rejected=tuple(
            RejectedCount(code=str(r["code"]), count=int(r["count"]), examples=()) for r in body["rejected"]
        ),
        notes=() if ranked else tuple(map(str, body["notes"])),
        grants={d: tuple(map(grant_from, grants)) for d, grants in body["grants"].items() if d == first},
        stacks=tuple(map(stack_from, body["stacks"])),
        status=PlanStatus(**body["status"]),
    )


def held_new(plan: PlacementPlan) -> Held:
    """Of a plan that was made for this diff."""
    return Held(
        plan=plan,
        digest=str(to_document(plan)["digest"]),
        standings={p.offer_id: (p.rank, p.total_usd, p.lower_bound) for p in plan.ranked},
        whole=plan,
    )


def _folder(folder: Path) -> str | None:
    """With its slash; "" for the working folder, None for one outside of it."""
    try:
        inside = folder.resolve().relative_to(Path.cwd().resolve()).as_posix()
    except ValueError:
        return None
    return "" if inside == "." else f"{inside}/"


def _json(text: str, path: Path, code: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        at = Location(shown(path), error.lineno, error.colno)
        raise InputError([Diagnostic(code=code, summary=f"not JSON: {error.msg}", location=at)]) from error
    except RecursionError as error:
        at = Location(shown(path))
        raise InputError([Diagnostic(code=code, summary="nested too deeply", location=at)]) from error


def _fetch(tree: Tree, paths: Sequence[Path]) -> None:
    """A revision reads its files in one go."""
    fetch = getattr(tree, "fetch", None)
    if fetch is not None:
        fetch(paths)
