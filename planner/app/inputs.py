"""Reading what a plan is made of: job files, skyplan.yaml, the catalog, the plans that stand, the record.

Decides where things are looked for and how their errors are gathered; judges nothing.  Every problem of every file is reported at once.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from planner.model.diagnostic import Diagnostic, Location, Severity, ordered
from planner.model.errors import InputError
from planner.model.ledger import AvailabilityMemory, Holding, Ledger
from planner.model.plan import PlacementPlan, from_document
from planner.model.project import Project, default_targets
from planner.model.words import Words, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from planner.app.markets import Priced
    from planner.app.standing_plans import StandingPlan
    from planner.model.market import Market
    from planner.model.workload import Workload

PROJECT_FILE = "skyplan.yaml"
PLANS_FOLDER = "plans"
PLAN_SUFFIX = ".plan.json"
RECORD_FILE = Path(".skyplan") / "record.sqlite"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A workload, narrowed to the project's limits, and the file it came from, as the user wrote it."""

    workload: Workload
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Everything read.  `warnings` never stop a plan.

    priced  what `market` is made of besides the catalog; None where it is the catalog
    texts   of the job files, by their shown paths
    """

    jobs: tuple[Job, ...]
    project: Project
    project_file: str | None
    market: Market
    warnings: tuple[Diagnostic, ...]
    priced: Priced | None = None
    texts: Mapping[str, str] = field(default_factory=dict[str, str])

    def text_of(self, file: str) -> str:
        """A job file's text, to tell a place in it; "" where the job came from no file."""
        return self.texts.get(file, "")

    def counted_at(self, as_of: str) -> Inputs:
        """The same, with the market's ages counted at that moment, where it has a moment of its own."""
        if self.priced is None or as_of == self.market.as_of:
            return self
        from planner.app.markets import again_at  # noqa: PLC0415 - numpy

        priced = again_at(self.priced, _moment(as_of))
        return replace(self, priced=priced, market=priced.market)


def shown(path: Path) -> str:
    """The path as it may stand in output: relative to the working folder, else its name alone."""
    try:
        text = path.resolve().relative_to(Path.cwd().resolve()).as_posix()
    except ValueError:
        text = path.name
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def read_text(path: Path) -> str:
    """The file's text.  Raises InputError (SKY-SPEC-101) where it cannot be read or is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        at = Location(str(path))
        raise InputError(
            [Diagnostic(code="SKY-SPEC-101", summary=why, location=at, hint=_unread(path, error))]
        ) from error


def _must_be_a_job(path: Path, text: str) -> None:
    """Refuse what is plainly another file of ours, in one sentence instead of one for each of its fields.  Raises InputError (SKY-SPEC-101)."""
    if path.name == PROJECT_FILE and not re.search(r"^run\b", text, re.MULTILINE):
        summary, hint = "the project's settings, not a job file", "name job files, such as jobs/*.yaml"
    elif path.name.endswith(".plan.json"):
        summary = "a plan file, not a job file"
        hint = "name the job file that it was made of; report, audit, synth and apply take plan files"
    else:
        return
    raise InputError([Diagnostic(code="SKY-SPEC-101", summary=summary, location=Location(str(path)), hint=hint)])


def _unread(path: Path, error: OSError | UnicodeDecodeError) -> str:
    """What to do about a file that cannot be read; "" where only the code's own hint is known."""
    if isinstance(error, UnicodeDecodeError):
        return "save it as UTF-8"
    if isinstance(error, IsADirectoryError):
        return f"name the files in it, such as {path}/*.yaml"
    if isinstance(error, FileNotFoundError):
        if "*" in path.name:  # a shell hands a pattern on as it is where nothing matches
            return "no file matches: check the pattern, and which folder you are in; `skyplan init` writes a first job"
        return "check the path, and which folder you are in"
    return ""


def load_market(folder: Path | None = None) -> Market:
    """The packaged catalog, or the one in `folder`.  Raises InputError."""
    from catalog.load import load_market as load  # noqa: PLC0415 - numpy

    return load(folder)


def load_project(path: Path | None, words: Words) -> tuple[Project, str | None, tuple[Diagnostic, ...]]:
    """skyplan.yaml at `path`, else in the working folder, else the defaults.  Returns it with its shown path and all diagnostics."""
    from planner.spec.project import parse_project  # noqa: PLC0415 - yaml

    found = path or (Path(PROJECT_FILE) if Path(PROJECT_FILE).is_file() else None)
    if found is None:
        return Project(targets=default_targets()), None, ()
    project, diagnostics = parse_project(read_text(found), shown(found), words)
    return project, shown(found), diagnostics


def _passed_over(folder: Path) -> tuple[Diagnostic, ...]:
    """A warning where the repository has settings further up: whoever stands in jobs/ would plan without its limits and not know it."""
    up = Path()
    while folder != folder.parent and not (folder / ".git").exists():
        folder, up = folder.parent, up / ".."
        if (folder / PROJECT_FILE).is_file():
            there = up / PROJECT_FILE
            summary = f"{there} is not read: the settings that hold are those of the folder you are in, which has none"
            hint = f"go to its folder, or give --project {there}"
            return (Diagnostic(code="SKY-SPEC-115", summary=summary, hint=hint, severity=Severity.WARNING),)
    return ()


def priced_market(
    base: Market,
    project: Project,
    *,
    project_file: Path | None = None,
    catalog: Path | None = None,
    as_of: str | None = None,
    offline: bool = False,
) -> Priced | None:
    """What the project's source of prices tells besides the catalog, laid over it; None where that is nothing.  Raises InputError, Unavailable."""
    if project.market.source == "record" and (offline or not there_is_a_record()):
        return None
    from planner.app.market_source import priced_market as found  # noqa: PLC0415 - numpy

    folder = project_file.parent if project_file else Path()
    at = _moment(as_of) if as_of else None
    return found(base, project, folder=folder, catalog=catalog, at=at, offline=offline)


def there_is_a_record() -> bool:
    """Whether a database is named, or lies in the working folder."""
    return bool(os.environ.get("SKYPLAN_DATABASE_URL")) or RECORD_FILE.is_file()


def load(
    job_files: Sequence[Path],
    *,
    project_file: Path | None = None,
    catalog: Path | None = None,
    as_of: str | None = None,
    offline: bool = False,
    advance: Callable[[str], object] | None = None,
) -> Inputs:
    """Read everything; prices as they were known at `as_of`, if it is given.  `advance` is called with each job file's path before it is read.

    Raises InputError with every error of every file.
    """
    from planner.spec.limits import narrow  # noqa: PLC0415 - yaml
    from planner.spec.together import disagreements  # noqa: PLC0415 - yaml

    market = load_market(catalog)
    words = words_of(market)
    found: list[Diagnostic] = []
    try:
        project, project_shown, diagnostics = load_project(project_file, words)
        found += diagnostics if project_shown else _passed_over(Path.cwd())
    except InputError as error:
        found += error.diagnostics
        project, project_shown = Project(targets=default_targets()), None
    jobs: list[Job] = []
    texts: dict[str, str] = {}
    for path in job_files:
        name = shown(path)
        if advance is not None:
            advance(f"reading {name}")
        try:
            text = read_text(path)
            _must_be_a_job(path, text)
        except InputError as error:
            found += error.diagnostics
            continue
        texts[name] = text
        workloads, diagnostics = _jobs_of(text, name, words, project, market)
        found += diagnostics
        for workload in workloads:
            narrowed, problems = narrow(workload, project)
            found += problems
            jobs.append(Job(workload=narrowed, file=name))
    found += _twice(jobs)
    found += disagreements(((job.workload, job.file) for job in jobs), texts.__getitem__)
    errors = [d for d in found if d.severity is Severity.ERROR]
    if errors:
        raise InputError(ordered(found))
    priced = priced_market(market, project, project_file=project_file, catalog=catalog, as_of=as_of, offline=offline)
    found += priced.warnings() if priced else ()
    return Inputs(
        jobs=tuple(jobs),
        project=project,
        project_file=project_shown,
        market=priced.market if priced else market,
        warnings=ordered(found),
        priced=priced,
        texts=texts,
    )


def _jobs_of(
    text: str, name: str, words: Words, project: Project, market: Market
) -> tuple[tuple[Workload, ...], tuple[Diagnostic, ...]]:
    """Of any file; other tools' readers are imported only for one that may be theirs."""
    from planner.spec.ours import surely_ours  # noqa: PLC0415 - start-up

    if surely_ours(text):
        from planner.spec.job import parse_jobs  # noqa: PLC0415 - yaml

        return parse_jobs(text, name, words, project)
    from planner.spec.foreign import parse_any  # noqa: PLC0415 - yaml
    from planner.spec.foreign.shelf import shelf_of  # noqa: PLC0415 - yaml

    return parse_any(text, name, words, project, shelf_of(market, words))


def _twice(jobs: Sequence[Job]) -> list[Diagnostic]:
    first: dict[str, str] = {}
    out: list[Diagnostic] = []
    for job in jobs:
        name = job.workload.name
        if name not in first:
            first[name] = job.file
            continue
        other = first[name]
        summary = f"job `{name}` stands in {other} too" if other != job.file else f"job `{name}` stands twice"
        out.append(Diagnostic(code="SKY-SPEC-112", summary=summary, location=Location(job.file)))
    return out


def read_plan(path: Path) -> PlacementPlan:
    """A plan file.  Raises InputError (SKY-APPLY-301) where it is none."""
    try:
        document = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        at = Location(str(path), error.lineno, error.colno)
        summary, hint = f"not JSON: {error.msg}", ""
        if path.suffix in {".yaml", ".yml"}:
            summary = "no plan file, which is JSON"
            hint = f"`skyplan plan {path} --out plans` writes plans/NAME.plan.json of a job file: name that"
        raise InputError([Diagnostic(code="SKY-APPLY-301", summary=summary, location=at, hint=hint)]) from error
    return from_document(document, str(path))


def standing_plans(folder: Path) -> dict[str, PlacementPlan]:
    """Plan files in `folder` by job name.  Raises InputError on one that is broken: a ledger must not lose an entry silently."""
    if folder.exists() and not folder.is_dir():
        at = Location(str(folder))
        raise InputError([Diagnostic(code="SKY-SPEC-101", summary="is no folder of plans", location=at)])
    return {plan.name: plan for plan in map(read_plan, sorted(folder.glob(f"*{PLAN_SUFFIX}")))}


def holdings_of(plans: Sequence[PlacementPlan], market: Market) -> tuple[Holding, ...]:
    """What the choices of those plans hold."""
    from planner.placement.fleet import holdings  # noqa: PLC0415 - numpy
    from planner.spec.normal import workload_from_document  # noqa: PLC0415 - beside its use

    return tuple(
        held
        for p in plans
        if p.ranked and all((piece.cloud, piece.instance_type) in market.type_index for piece in p.choice.pieces)
        for held in holdings(p.choice, market, workload=workload_from_document(p.job))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the record adds: holdings of runs, failures, and the placement id that runs, by job."""

    holdings: tuple[Holding, ...] = ()
    memory: AvailabilityMemory = field(default_factory=AvailabilityMemory)
    running: tuple[tuple[str, str], ...] = ()


def read_record(
    project: str,
    market: Market,
    *,
    offline: bool,
    as_of: str | None = None,
    plans: Mapping[str, StandingPlan] | None = None,
) -> Known:
    """From the record where there is one, holdings as of `as_of`; nothing is created.  `offline` reads files only.

    `plans`: of the project's jobs, which say of what runs whose it is and what it will cost.
    """
    if offline or not there_is_a_record():
        return Known()
    try:
        from planner.app.recall import known  # noqa: PLC0415 - sqlalchemy
    except ImportError as error:
        from planner.state.engine import missing  # noqa: PLC0415 - only on an error

        raise missing("SQLAlchemy", "record") from error
    return known(project, market, _moment(as_of) if as_of else None, plans or {})


def ledger_of(holdings: Sequence[Holding], plans: Sequence[Holding]) -> Ledger:
    """Runs in the record, and standing plans of jobs that do not run."""
    running = {h.job for h in holdings}
    return Ledger(tuple(sorted((*holdings, *(h for h in plans if h.job not in running)))))


def checked_project(path: Path | None, words: Words) -> Project:
    """As `load_project`, for commands that read no job.  Raises InputError with every error of the file."""
    project, _, diagnostics = load_project(path, words)
    if any(d.severity is Severity.ERROR for d in diagnostics):
        raise InputError(ordered(list(diagnostics)))
    return project


def _moment(as_of: str) -> datetime:
    at = datetime.fromisoformat(as_of)
    return at if at.tzinfo else at.replace(tzinfo=UTC)
