"""The placement diff as a use case: two sides are read, what has no plan is planned, each job becomes a Change.

  diff_read       files and revisions to plans         diff_change     two plans of a job to its Change
  diff_replan     plans for what has none              diff_widening   what the head grants beyond the base
  diff_terraform  Terraform's own plan                 diff_attribute  which input moved what

Reads files and git; never a record, a cloud or the clock, so that the same inputs give the same bytes wherever it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from planner.app import diff_change, inputs
from planner.app.audit_tree import WorkingTree
from planner.app.diff_git import GitTree, committed_at
from planner.app.diff_read import Reader, Side
from planner.app.diff_terraform import read_terraform_plan
from planner.model.change import Action, Change, PlacementDiff, Sides, TerraformChanges
from planner.model.diagnostic import Diagnostic, Location, ordered
from planner.model.errors import InputError

if TYPE_CHECKING:
    from planner.app.diff_read import Held
    from planner.model.migration import MigrationDiff

WORKING_TREE = "working tree"
JOBS_FOLDER = "jobs"
MIGRATIONS_FOLDER = "migrations"
_ABSENT = "give a plan file, a folder of plans, or a revision with --base"

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
    for read in (_base, _head):
        try:
            sides.append(read(request, reader, advance))
        except InputError as error:
            problems += error.diagnostics
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
    advance("comparing")
    changes = tuple(_changes(base, head))
    return PlacementDiff(
        base=base.label,
        head=head.label,
        project="",
        valid_at=_valid_at(base, head, request),
        changes=changes,
        terraform=tuple(sorted(terraform, key=lambda t: t.file)),
        hourly=_sum(c.hourly for c in changes),
        total=_sum(c.total for c in changes),
        egress=_sum(c.egress for c in changes),
        snapshots=_snapshots((*base.plans.values(), *head.plans.values())),
        inputs={"base": _named(base), "head": _named(head)},
        warnings=(),
    )


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
    return reader.side(inputs.shown(path), WorkingTree(), [path])


def _changes(base: Side, head: Side) -> Iterable[Change]:
    for name in sorted({*base.plans, *head.plans}):
        before, after = base.plans.get(name), head.plans.get(name)
        found = diff_change.change(name, before, after)
        yield _with_migration(found, base.migrations.get(name), head.migrations.get(name))


def _with_migration(change: Change, before: MigrationDiff | None, after: MigrationDiff | None) -> Change:
    """A diff that the base has too is none of this change."""
    if after is None or after == before:
        return change
    if change.action is Action.KEEP:
        reason = f"{after.text} (migration diff, {after.reason.value})"
        return replace(change, action=Action.MIGRATE, reason=reason, migration=after)
    return replace(change, migration=after)


def _sum(sides: Iterable[Sides]) -> Sides:
    out = Sides()
    for one in sides:
        out = out.plus(one)
    return out


def _as_of(held: Held) -> str:
    return str(held.plan.inputs.get("as_of", ""))


def _snapshots(plans: Iterable[Held]) -> tuple[str, ...]:
    return tuple(sorted({_as_of(p) for p in plans}))


def _valid_at(base: Side, head: Side, request: Request) -> str:
    """The newest moment among the inputs: an older comment is told by it from a newer one."""
    moments = {_as_of(p) for side in (base, head) for p in side.plans.values()}
    if request.base_revision:
        moments.add(committed_at(request.head_revision or "HEAD"))
    return max(moments, default="")


def _named(side: Side) -> dict[str, str]:
    return {"commit": side.tree.commit} if isinstance(side.tree, GitTree) else {}
