"""The placement diff as a use case: two sides are read, what has no plan is planned, each job becomes a Change.

  diff_read       files and revisions to plans         diff_change     two plans of a job to its Change
  diff_replan     plans for what has none              diff_widening   what the head grants beyond the base
  diff_terraform  Terraform's own plan                 diff_attribute  which input moved what

Reads files and git; never a record, a cloud or the clock, so that the same inputs give the same bytes wherever it runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from planner.app import diff_change, inputs
from planner.app.audit_tree import WorkingTree
from planner.app.diff_git import GitTree, committed_at
from planner.app.diff_read import Reader, Side
from planner.app.diff_terraform import read_terraform_plan
from planner.app.diff_widening import widened
from planner.model.change import Action, Amount, Change, PlacementDiff, Sides, TerraformChanges
from planner.model.diagnostic import Diagnostic, Location, Severity, ordered
from planner.model.errors import InputError

if TYPE_CHECKING:
    from planner.app.diff_read import Held
    from planner.app.diff_replan import Ground, Setting
    from planner.model.finding import Finding
    from planner.model.market import Market
    from planner.model.migration import MigrationDiff
    from planner.model.project import Project

WORKING_TREE = "working tree"
JOBS_FOLDER = "jobs"
MIGRATIONS_FOLDER = "migrations"
_ABSENT = "give a plan file, a folder of plans, or a revision with --base"

_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)

Advance = Callable[[str], None]
"""Called before each piece of work, with its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to compare.

    base, head      plan files or folders; None where revisions are compared
    base_revision   "" = files are compared; head_revision "" = the working tree
    plans, jobs, migrations   where a revision and the working tree have theirs
    replan          plan every job anew, on both sides, whatever plan files there are
    attribute       plan once more per input that is another one, to tell what it moved
    """

    base: Path | None = None
    head: Path | None = None
    base_revision: str = ""
    head_revision: str = ""
    plans: Path = Path(inputs.PLANS_FOLDER)
    jobs: tuple[Path, ...] = (Path(JOBS_FOLDER),)
    migrations: Path = Path(MIGRATIONS_FOLDER)
    terraform: tuple[Path, ...] = ()
    project_file: Path | None = None
    catalog: Path | None = None
    replan: bool = False
    attribute: bool = False


def run(request: Request, advance: Advance = lambda _: None) -> PlacementDiff:
    """Raises InputError with every problem of every file."""
    reader = Reader()
    problems = reader.problems
    sides: list[Side] = []
    lost: list[Diagnostic] = []
    for read in (_base, _head):
        try:
            sides.append(read(request, reader, advance))
        except InputError as error:
            problems += error.diagnostics
            continue
        if request.base_revision and read is _base:
            lost += _softened(problems)
            problems.clear()
    terraform: list[TerraformChanges] = []
    for path in request.terraform:
        advance(f"reading {inputs.shown(path)}")
        try:
            terraform.append(read_terraform_plan(path))
        except InputError as error:
            problems += error.diagnostics
    if problems:
        raise InputError(ordered(problems))
    base, head = sides
    around = _Around(request, base, head)
    told = [*lost, *_planned(around, request, advance)]
    advance("comparing")
    changes = tuple(_changes(base, head))
    if request.attribute:
        from planner.app.diff_attribute import attributed  # noqa: PLC0415 - numpy

        advance("telling causes apart")
        changes, more = attributed(changes, (base, head), around.settings, around.ground)
        told += more
    advance("comparing rights")
    rights = widened(base, head, around.projects, lambda: around.market, same=around.one_project)
    return PlacementDiff(
        base=base.label,
        head=head.label,
        project=around.settings[1].project.name if around.is_read else "",
        valid_at=_valid_at(base, head, request),
        changes=changes,
        widenings=_grown_first(rights.findings, changes),
        terraform=tuple(sorted(terraform, key=lambda t: t.file)),
        hourly=summed(c.hourly for c in changes),
        total=summed(c.total for c in changes),
        egress=summed(c.egress for c in changes),
        snapshots=_snapshots((*base.plans.values(), *head.plans.values())),
        inputs={"base": _named(base), "head": _named(head)},
        warnings=ordered([*told, *around.lost, *rights.told]),
    )


class _Around:
    """Projects, jobs and prices: read when something asks for them, since two folders of plans that grant the same need none."""

    def __init__(self, request: Request, base: Side, head: Side) -> None:
        self._request = request
        self.sides = (base, head)
        self.is_read = False
        self.lost: list[Diagnostic] = []

    @cached_property
    def market(self) -> Market:
        """The catalog."""
        return inputs.load_market(self._request.catalog)

    @cached_property
    def settings(self) -> tuple[Setting, Setting]:
        """Of base and head.  Raises InputError with every problem of both."""
        from planner.app.diff_replan import read_jobs, read_project  # noqa: PLC0415 - numpy

        problems: list[Diagnostic] = []
        old: list[Diagnostic] = []
        base, head = self.sides
        project, file = read_project(head, self._project_file(head), self.market, problems)
        after = read_jobs(head, project, file, self.market, problems)
        was, was_file = read_project(base, self._project_file(base), self.market, old)
        if old and self._request.base_revision:
            was, was_file = project, file  # the defaults are further from what it was than the head's is
        before = read_jobs(base, was, was_file, self.market, old)
        if self._request.base_revision:
            self.lost += _softened(old)
        else:
            problems += old
        if problems:
            raise InputError(ordered(problems))
        self.is_read = True
        return before, after

    @cached_property
    def ground(self) -> Ground:
        """The one snapshot: the head's project says where prices come from."""
        from planner.app.diff_replan import Ground  # noqa: PLC0415 - numpy

        project = self.settings[1].project
        given = self._request
        priced = inputs.priced_market(
            self.market, project, project_file=given.project_file, catalog=given.catalog, offline=True
        )
        return Ground(market=priced.market if priced else self.market, priced=priced)

    def projects(self) -> tuple[Project, Project]:
        """Of base and head."""
        return self.settings[0].project, self.settings[1].project

    @property
    def one_project(self) -> bool:
        """Whether both sides are of one skyplan.yaml, by its text."""
        if not self._request.base_revision:
            return self._text(self.sides[0]) == self._text(self.sides[1])
        return self.settings[0].project == self.settings[1].project

    def _text(self, side: Side) -> str:
        path = self._project_file(side)
        return side.tree.text(path) if side.tree.has(path) else ""

    def _project_file(self, side: Side) -> Path:
        own = side.root / inputs.PROJECT_FILE
        if side.root != Path() and side.tree.has(own):
            return own
        return self._request.project_file or Path(inputs.PROJECT_FILE)


def _planned(around: _Around, request: Request, advance: Advance) -> list[Diagnostic]:
    """Plan what has no plan; nothing is loaded where nothing is to be planned."""
    sides = around.sides
    if not (request.replan or any(side.job_files for side in sides)):
        return []
    from planner.app.diff_replan import fill  # noqa: PLC0415 - numpy

    advance("planning what has no plan")
    return fill(sides, around.settings, around.ground, everything=request.replan)


def _base(request: Request, reader: Reader, advance: Advance) -> Side:
    if request.base_revision:
        return _of_tree(GitTree(request.base_revision), request.base_revision, request, reader, advance)
    assert request.base is not None  # noqa: S101 - the command line asks for one
    return _of_files(request.base, reader, advance)


def _head(request: Request, reader: Reader, advance: Advance) -> Side:
    if request.head_revision:
        return _of_tree(GitTree(request.head_revision), request.head_revision, request, reader, advance)
    if request.base_revision:
        return _of_tree(WorkingTree(), WORKING_TREE, request, reader, advance)
    assert request.head is not None  # noqa: S101 - the command line asks for one
    return _of_files(request.head, reader, advance)


def _of_tree(tree: GitTree | WorkingTree, label: str, request: Request, reader: Reader, advance: Advance) -> Side:
    advance(f"reading {label}")
    folders = [p for p in (request.plans, request.migrations) if tree.below(p) is not None]
    return reader.side(label, tree, folders, request.jobs)


def _of_files(path: Path, reader: Reader, advance: Advance) -> Side:
    advance(f"reading {inputs.shown(path)}")
    if not path.exists():
        at = Location(inputs.shown(path))
        raise InputError([Diagnostic(code="SKY-SPEC-101", summary="is not there", location=at, hint=_ABSENT)])
    jobs = [path / JOBS_FOLDER] if (path / JOBS_FOLDER).is_dir() else []
    root = path if path.is_dir() else Path()
    return reader.side(inputs.shown(path), WorkingTree(), [path], jobs, root)


def _changes(base: Side, head: Side) -> Iterable[Change]:
    for name in sorted({*base.plans, *head.plans}):
        before, after = base.plans.get(name), head.plans.get(name)
        found = diff_change.change(name, before, after)
        yield with_migration(found, base.migrations.get(name), head.migrations.get(name))


def with_migration(change: Change, before: MigrationDiff | None, after: MigrationDiff | None) -> Change:
    """With the migration diff of the head: one that the base has too is none of this change."""
    if after is None or after == before:
        return change
    if change.action is Action.KEEP:
        reason = f"{after.text} (migration diff, {after.reason.value})"
        was, to = after.standing.usd_per_hour, after.to[0].usd_per_hour
        hourly = Sides(before=Amount(usd=was or Decimal(0), at_least=was is None), after=Amount(usd=to))
        return replace(change, action=Action.MIGRATE, reason=reason, migration=after, hourly=hourly)
    return replace(change, migration=after)


def _softened(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """What a revision holds is not to be mended by who changes what comes after it, and a change that mends it must be shown."""
    return [
        replace(d, severity=Severity.WARNING, summary=f"in the base: {d.summary}; it counts as absent") for d in found
    ]


def _grown_first(findings: tuple[Finding, ...], changes: Iterable[Change]) -> tuple[Finding, ...]:
    """What grew under a job that was there before what a new job brings with it: the first is what a reviewer overlooks."""
    new = tuple(f"acc-{c.job}--" for c in changes if c.action is Action.CREATE)
    return tuple(sorted(findings, key=lambda f: f.origin.startswith(new)))  # stable: within each as the audit has them


def summed(sides: Iterable[Sides]) -> Sides:
    """Over all jobs."""
    out = Sides()
    for one in sides:
        out = out.plus(one)
    return out


def _as_of(held: Held) -> str:
    """Of its prices; "" where a plan says what is no moment: it would stand in a comment's hidden line."""
    said = str(held.plan.inputs.get("as_of", ""))
    return said if _MOMENT.fullmatch(said) else ""


def _snapshots(plans: Iterable[Held]) -> tuple[str, ...]:
    return tuple(sorted({_as_of(p) for p in plans} - {""}))


def _valid_at(base: Side, head: Side, request: Request) -> str:
    """The newest moment among the inputs: an older comment is told by it from a newer one."""
    moments = {_as_of(p) for side in (base, head) for p in side.plans.values()}
    if request.base_revision:
        moments.add(committed_at(request.head_revision or "HEAD"))
    return max(moments, default="")


def _named(side: Side) -> dict[str, str]:
    return {"commit": side.tree.commit} if isinstance(side.tree, GitTree) else {}
