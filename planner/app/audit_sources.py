"""From files to what an audit looks at: plans, folders of stacks, Terraform JSON of a user's own.

Decides what a file is by its content, and gathers every problem before one is raised.  Judges no right.  Needs neither Node nor Terraform: plans are
composed to the inputs of their stacks, and those are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.app.audit_join import connected
from planner.app.audit_tree import Tree, unread
from planner.app.inputs import PLAN_SUFFIX, shown
from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError
from planner.model.plan import PlacementPlan, from_document
from planner.model.policy import Audited
from planner.spec.normal import workload_from_document

if TYPE_CHECKING:
    from planner.model.market import Market
    from planner.model.project import Project
    from planner.model.stack import AnyStack, FoundationInput

Advance = Callable[[str], None]
"""Called before each piece of work, with its name."""
_NEITHER = "neither a plan of skyplan nor Terraform JSON"
_READABLE = "give a plan of skyplan, *.tf.json, or what `terraform show -json` prints of a plan or a state"
_SHOW = "is not read: give what `terraform show -json tfplan` prints, after `terraform plan -out=tfplan`"
_ABSENT = "name a file that is there; plans come from `skyplan plan JOB --out plans`"
_FOLDER = "with --terraform name one file; folders go without it: `skyplan audit FOLDER`"
_HCL = re.compile(r"^\s*(?:resource|data|module|variable|provider|terraform|locals|output)\b[^:\n]*\{", re.MULTILINE)
_EVENTS = re.compile(r'\s*\{"@level":')
#: what a configuration, a plan, a state or a state file has at its top
_TERRAFORM = frozenset(
    {
        "resource",
        "data",
        "module",
        "output",
        "provider",
        "terraform",
        "variable",
        "locals",
        "planned_values",
        "values",
        "resources",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What plans are composed with.  `market` is loaded when a plan asks for it: users' own Terraform needs none."""

    project: Project
    market: Callable[[], Market]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSource:
    """A plan, the file it came from, and the stacks of its choice."""

    plan: PlacementPlan
    file: str
    stacks: tuple[AnyStack, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """All that was read.  `lost`: why something was not, where that is let pass."""

    audited: Audited
    sources: tuple[str, ...] = ()
    plans: tuple[PlanSource, ...] = ()
    lost: tuple[Diagnostic, ...] = ()


@dataclass(slots=True)
class _Reading:
    tree: Tree
    around: Around
    advance: Advance
    problems: list[Diagnostic] = field(default_factory=list[Diagnostic])
    sources: list[str] = field(default_factory=list[str])
    plans: list[PlanSource] = field(default_factory=list[PlanSource])
    found: list[Audited] = field(default_factory=list[Audited])

    def path(self, path: Path) -> None:
        """A file, or a folder of them."""
        files = self.tree.below(path)
        if files is None:
            if self.tree.sparse and not self.tree.has(path):
                return
            self.file(path)
            return
        known = [f for f in files if f.name.endswith((PLAN_SUFFIX, ".tf.json"))]
        for file in known:
            self.file(file, root=path)
        if not known and not self.tree.sparse:
            why = f"holds no {PLAN_SUFFIX[1:]}, no cdk.tf.json and no other .tf.json"
            hcl = any(f.suffix == ".tf" for f in files)
            self.problems.append(unread(path, why, hint=f"HCL {_SHOW}" if hcl else _READABLE))

    def file(self, path: Path, root: Path | None = None) -> None:
        """By its content: a plan, or Terraform."""
        self.advance(f"reading {_name(path, root)}")
        text = self.text(path)
        document = None if text is None else self.json(text, path)
        if text is None or document is None:
            return
        if "ranked" in document or path.name.endswith(PLAN_SUFFIX):
            self.plan(document, path, root)
        else:
            self.terraform(document, path, text, root)

    def text(self, path: Path) -> str | None:
        try:
            return self.tree.text(path)
        except InputError as error:
            hint = self.instead(path)
            self.problems += [unread(path, d.summary, hint=hint) for d in error.diagnostics]
            return None

    def instead(self, path: Path) -> str:
        """What to give instead of a path whose text cannot be read."""
        if self.tree.below(path) is not None:
            return _FOLDER
        return f"if this is Terraform's own plan file, it {_SHOW}" if self.tree.has(path) else _ABSENT

    def json(self, text: str, path: Path) -> dict[str, Any] | None:
        try:
            document: Any = json.loads(text.removeprefix("\ufeff"))
        except json.JSONDecodeError as error:
            why, hint = f"not JSON: {error.msg}", _instead(text, path)
            self.problems.append(unread(path, why, error.lineno, error.colno, hint))
        except RecursionError:
            self.problems.append(unread(path, "nested too deeply", hint=_READABLE))
        else:
            if isinstance(document, dict):
                return document  # pyright: ignore[reportUnknownVariableType]
            self.problems.append(unread(path, _NEITHER, hint=_READABLE))
        return None

    def plan(self, document: dict[str, Any], path: Path, root: Path | None = None) -> None:
        name = _name(path, root)
        try:
            plan = from_document(document, name)
            stacks = stacks_of(plan, self.around)
        except InputError as error:
            self.problems += [unread(path, d.summary, hint=d.hint) for d in error.diagnostics]
        except (KeyError, StopIteration, RuntimeError, TypeError, ValueError) as error:
            if isinstance(error, RuntimeError) and not isinstance(error.__cause__, StopIteration):
                raise  # of a generator's StopIteration Python makes one
            why = f"names what is not in the catalog any more: {error.__cause__ or error}".removesuffix(": ")
            self.problems.append(unread(path, why, hint="plan again"))
        else:
            self.sources.append(name)
            self.plans.append(PlanSource(plan=plan, file=name, stacks=stacks))

    def terraform(self, document: dict[str, Any], path: Path, text: str, root: Path | None = None) -> None:
        from planner.iam.read.terraform import read_terraform  # noqa: PLC0415 - not needed for plans

        if not _TERRAFORM & document.keys():
            self.problems.append(unread(path, _NEITHER, hint=_READABLE))
            return
        name = _name(path, root)
        try:
            self.found.append(read_terraform(document, file=name, text=text))
        except InputError as error:
            self.problems += [d if d.code == "SKY-IAM-902" else unread(path, d.summary) for d in error.diagnostics]
        else:
            self.sources.append(name)


def _instead(text: str, path: Path) -> str:
    """What to give instead of text that is no JSON."""
    if _EVENTS.match(text):
        return f"the log that `terraform plan -json` prints {_SHOW}"
    return f"HCL {_SHOW}" if path.suffix == ".tf" or _HCL.search(text) else _READABLE


def _name(path: Path, root: Path | None) -> str:
    """As it may stand in output: from the working folder, else from the folder that was named, so that files of one name stay apart."""
    name = shown(path)
    if root is not None and name == path.name and path.parent != Path():
        return (Path(root.resolve().name) / path.relative_to(root)).as_posix()
    return name


def stacks_of(plan: PlacementPlan, around: Around) -> tuple[AnyStack, ...]:
    """The choice's stacks, of all parts; none where nothing is feasible.  Raises InputError where skyplan.yaml has lost a target."""
    if not plan.ranked:
        return ()
    known = sorted(f"{t.cloud.value}:{t.name}" for t in around.project.targets)
    for gone in sorted({f"{p.cloud}:{p.target}" for p in plan.choice.pieces} - {*known}):
        summary = f"is for target {gone}, which skyplan.yaml does not have (known: {', '.join(known) or 'none'})"
        hint = "plan again, remove the plan, or put the target back"
        raise InputError([Diagnostic(code="SKY-IAM-902", summary=summary, hint=hint)])
    from planner.app import compose  # noqa: PLC0415 - numpy

    workload = workload_from_document(plan.job)
    sets = compose.stack_sets(plan.ranked, plan.choice, workload, around.project, around.market(), generation=1)
    out: list[AnyStack] = []
    for one in sets:
        out += [one.network, *([one.addresses] if one.addresses else []), one.access, one.compute]
    return tuple(out)


def gather(
    paths: Sequence[Path],
    terraform: Sequence[Path],
    tree: Tree,
    around: Around,
    advance: Advance = lambda _: None,
    *,
    lenient: bool = False,
) -> Gathered:
    """Read everything.  Raises InputError with every problem of every file (SKY-IAM-902).

    lenient  what cannot be read counts as empty and is told in `lost`: of a base, which makes everything new and hides nothing
    """
    reading = _Reading(tree, around, advance)
    for path in paths:
        reading.path(path)
    for path in terraform:
        if tree.sparse and not tree.has(path):
            continue
        advance(f"reading {shown(path)}")
        text = reading.text(path)
        document = None if text is None else reading.json(text, path)
        if text is not None and document is not None:
            reading.terraform(document, path, text)
    problems = sorted(reading.problems, key=Diagnostic.sort_key)
    if problems and not lenient:
        raise InputError(problems)
    if reading.plans:
        reading.found.append(_read_plans(reading.plans, around, advance))
    return Gathered(
        audited=connected(merged(reading.found)),
        sources=tuple(dict.fromkeys(reading.sources)),
        plans=tuple(reading.plans),
        lost=tuple(problems),
    )


def _read_plans(plans: Sequence[PlanSource], around: Around, advance: Advance) -> Audited:
    from planner.iam.read.inputs import read_inputs  # noqa: PLC0415 - not needed for Terraform

    advance("composing stacks")
    stacks: dict[str, AnyStack] = {stack.name: stack for source in plans for stack in source.stacks}
    control, unread = foundations(plans, around)
    stacks |= {stack.name: stack for stack in control}
    return merged([read_inputs(list(stacks.values())), Audited(unread=unread)])


def foundations(plans: Sequence[PlanSource], around: Around) -> tuple[tuple[FoundationInput, ...], tuple[str, ...]]:
    """The control identities of every target that the choices lie in, and why one cannot be told.

    Where skyplan.yaml says nothing of them, neither `foundation.ci` nor a target's `foundation`, the platform team has roles of its own, which no plan knows.
    """
    from planner.app.foundation import foundation_input  # noqa: PLC0415 - not needed for Terraform

    places = {(stack.cloud, stack.target) for source in plans for stack in source.stacks}
    found: list[FoundationInput] = []
    unread: list[str] = []
    for target in around.project.targets:
        said = target.foundation is not None or around.project.ci is not None
        if said and (target.cloud, target.name) in places:
            try:
                found.append(foundation_input(around.project, around.market(), target.cloud, target.name))
            except InputError as error:
                unread += [f"foundation of {target.name}: {d.summary}" for d in error.diagnostics]
    return tuple(found), tuple(unread)


def merged(found: Iterable[Audited]) -> Audited:
    """Everything once: two plans in one region share its network and its foundation."""
    parts = list(found)
    out: dict[str, Any] = {}
    for each in fields(Audited):
        if each.name == "needs":
            needs: dict[Any, dict[str, str]] = {}
            for part in parts:
                for key, value in part.needs.items():
                    needs[key] = needs.get(key, {}) | value
            out["needs"] = needs
        else:
            out[each.name] = tuple(dict.fromkeys(item for part in parts for item in getattr(part, each.name)))
    return Audited(**out)


def warnings_of(audited: Audited) -> list[Diagnostic]:
    """What holds rights and could not be read: said, since an audit that is silent about it would lie."""
    from planner.model.diagnostic import Severity  # noqa: PLC0415 - beside its use

    return [Diagnostic(code="SKY-IAM-902", summary=text, severity=Severity.WARNING) for text in audited.unread]
