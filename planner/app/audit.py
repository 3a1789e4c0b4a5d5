"""The audit as a use case: read, judge, hold against a base, accept what the platform team accepts, and place each finding in what people wrote.

  audit_sources   files to `Audited`            audit_accept   suppressions
  audit_base      what a change adds            audit_places   lines of job files
  audit_explain   who can do what, and why      audit_live     an account against its plan
  audit_stale     plans older than their jobs

Rules are `planner.iam.audit`'s, outputs are `planner.render`'s.  Nothing here writes, applies or asks a cloud; `audit_live` alone asks one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from planner.app import audit_sources, inputs
from planner.app.audit_accept import accept
from planner.app.audit_base import changes, new_only
from planner.app.audit_join import filled, opened
from planner.app.audit_places import Places, suppression_places
from planner.app.audit_rights import label
from planner.app.audit_sources import Around, Gathered, gather
from planner.app.audit_stale import stale
from planner.app.audit_tree import Revision, WorkingTree, revision
from planner.iam.read.becoming import is_boundary
from planner.model.audit_report import WIDENING, AuditReport, RuleText
from planner.model.codes import CODES
from planner.model.diagnostic import Diagnostic, Severity, ordered
from planner.model.errors import InputError
from planner.model.finding import Finding, Level
from planner.model.project import Project, default_targets
from planner.model.words import words_of

if TYPE_CHECKING:
    from planner.model.policy import Audited

Live = Callable[["Read"], tuple[tuple[Finding, ...], tuple[Diagnostic, ...]]]
"""Findings of an account held against its plans, and what could not be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to audit, and how.

    paths      plans, folders, Terraform JSON
    terraform  Terraform JSON by name, whatever it looks like
    base       a plan, a folder or a revision; "" = none
    fail_on    None = never
    """

    paths: tuple[Path, ...] = ()
    terraform: tuple[Path, ...] = ()
    project_file: Path | None = None
    catalog: Path | None = None
    base: str = ""
    fail_on: Level | None = Level.HIGH


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What was read, with what it was read by."""

    request: Request
    gathered: Gathered
    around: Around
    project_file: str | None
    warnings: tuple[Diagnostic, ...] = ()


def read(request: Request, advance: audit_sources.Advance = lambda _: None) -> Read:
    """Raises InputError with every problem of every file."""
    market = cache(lambda: inputs.load_market(request.catalog))
    problems: list[Diagnostic] = []
    project, project_file = Project(targets=default_targets()), None
    if request.project_file is not None or Path(inputs.PROJECT_FILE).is_file():
        try:
            project, project_file, problems_of = inputs.load_project(request.project_file, words_of(market()))
            problems += problems_of
        except InputError as error:
            problems += error.diagnostics
    around = Around(project=project, market=market)
    gathered: Gathered | None = None
    try:
        gathered = gather(request.paths, request.terraform, WorkingTree(), around, advance)
    except InputError as error:
        problems += error.diagnostics
    if gathered is None or any(d.severity is Severity.ERROR for d in problems):
        raise InputError(ordered(problems))
    problems += audit_sources.warnings_of(gathered.audited)
    problems += stale(gathered.plans, around, WorkingTree())
    return Read(
        request=request, gathered=gathered, around=around, project_file=project_file, warnings=ordered(problems)
    )


def judge(
    known: Read, now: datetime, advance: audit_sources.Advance = lambda _: None, live: Live | None = None
) -> AuditReport:
    """Every rule over what was read.  Raises InputError where the base cannot be read."""
    from planner.iam.audit.registry import every, run  # noqa: PLC0415 - all rules' modules
    from planner.iam.audit.widening import widening  # noqa: PLC0415

    request, audited = known.request, known.gathered.audited
    advance("judging")
    found = list(run(filled(audited)))
    told: list[Diagnostic] = []
    base: Audited | None = None
    widened: tuple[Finding, ...] = ()
    before: tuple[Finding, ...] = ()
    if request.base:
        advance(f"reading {request.base}")
        held = base_of(known)
        told += _softened(request.base, held.lost)
        base = held.audited
        before, widened = every(filled(base)), widening(opened(base), opened(audited))
    refused = 0
    if live is not None:
        advance("asking the account")
        drift, told_live = live(known)
        found += drift
        told += told_live
        refused = sum(d.severity is Severity.ERROR for d in told_live)
    everything = [f for f in found if f.rule != WIDENING]
    places = Places(known.gathered.plans, known.project_file, WorkingTree())
    suppressions = known.around.project.suppressions
    at = suppression_places(known.project_file, WorkingTree())
    accepted, told_of = accept([places.locate(f) for f in (*widened, *everything)], suppressions, now, at)
    told += told_of
    rest = [f for f in accepted if f.rule != WIDENING]
    standing = 0
    if base is not None:
        fresh, standing = new_only(rest, before)
        rest = list(fresh)
    shown = [*_worst_first(f for f in accepted if f.rule == WIDENING), *_worst_first(rest)]
    return AuditReport(
        project=known.around.project.name,
        sources=known.gathered.sources,
        identities=tuple(sorted({(s.cloud.value, label(s)) for s in audited.subjects if not is_boundary(s)})),
        rules=rules_of(shown),
        findings=tuple(shown),
        base=request.base,
        standing=standing,
        changes=changes(base, audited, widened) if base is not None else (),
        unread=len(audited.unread),
        refused=refused,
        diagnostics=(*known.warnings, *ordered(told)),
        fail_on=request.fail_on,
    )


def _worst_first(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=Finding.sort_key)


def rules_of(findings: Sequence[Finding]) -> tuple[RuleText, ...]:
    """Every rule, and what else the findings name."""
    from planner.iam.audit.registry import RULES  # noqa: PLC0415 - all rules' modules

    texts = {
        rule.id: RuleText(
            id=rule.id, level=rule.level, title=rule.title, why=rule.why, fix=rule.fix, maps=tuple(rule.maps)
        )
        for rule in RULES.values()
    }
    for f in findings:
        if f.rule not in texts:
            texts[f.rule] = RuleText(id=f.rule, level=f.level, title=CODES[f.rule].meaning, fix=CODES[f.rule].hint)
    return tuple(texts[name] for name in sorted(texts))


def _softened(base: str, lost: Iterable[Diagnostic]) -> list[Diagnostic]:
    """A base that cannot be read is not to be mended by who changes what comes after it: it counts as empty."""
    return [
        replace(
            d,
            severity=Severity.WARNING,
            summary=f"in the base {base}: {d.summary}; it counts as empty",
            hint="what this change leaves as it was may be told as new",
        )
        for d in lost
    ]


def base_of(known: Read) -> Gathered:
    """What the base says of the same paths: a plan, a folder, or a revision with the skyplan.yaml of its own.

    Raises InputError where there is no such base.
    """
    request, path = known.request, Path(known.request.base)
    if path.exists():
        return gather((path,), (), WorkingTree(), known.around, lenient=True)
    tree = revision(request.base)
    project, problems = _project_at(known, tree)
    around = Around(project=project, market=known.around.market)
    found = gather(request.paths, request.terraform, tree, around, lenient=True)
    return replace(found, lost=(*problems, *found.lost))


def _project_at(known: Read, tree: Revision) -> tuple[Project, tuple[Diagnostic, ...]]:
    """skyplan.yaml as the revision has it, since a change of it may be what widens; and why it cannot be read there."""
    from planner.spec.project import parse_project  # noqa: PLC0415 - yaml

    path: Path = known.request.project_file or Path(inputs.PROJECT_FILE)
    if not tree.has(path):
        return Project(targets=default_targets()), ()
    try:
        project, problems = parse_project(tree.text(path), str(path), words_of(known.around.market()))
    except InputError as error:
        return Project(targets=()), tuple(error.diagnostics)
    errors = tuple(d for d in problems if d.severity is Severity.ERROR)
    return Project(
        targets=()
    ) if errors else project, errors  # with no target no plan counts: a default might grant more
