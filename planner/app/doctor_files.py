"""What lies in the repository: skyplan.yaml, job files, plan files, and how old the prices are that they are planned with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from planner.app import inputs
from planner.app.doctor import Row, fail, from_error, ok, skipped, warn
from planner.app.doctor_record import is_current
from planner.model.diagnostic import Diagnostic, Severity
from planner.model.digest import digest
from planner.model.errors import InputError, SkyplanError
from planner.model.project import Project, default_targets
from planner.model.words import words_of
from planner.spec.normal import project_document, workload_document

if TYPE_CHECKING:
    from planner.model.market import Market
    from planner.model.plan import PlacementPlan
    from planner.model.workload import Workload

OLD_AFTER_DAYS: Final = 30
SKEW: Final = timedelta(minutes=1)
_FIX: Final = "correct the lines named; `skyplan schema project` has every field"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """What was read, as far as it could be.  `project_problem` and `problems` say what could not; `workloads` by name, with their files."""

    market: Market
    project: Project
    project_file: str | None
    project_problem: InputError | None = None
    warnings: tuple[Diagnostic, ...] = ()
    job_files: tuple[Path, ...] = ()
    workloads: Mapping[str, tuple[Workload, str]] = field(default_factory=dict[str, "tuple[Workload, str]"])
    problems: tuple[Diagnostic, ...] = ()


def read(project_file: Path | None, catalog: Path | None, job_paths: Sequence[Path]) -> Repository:
    """Everything, without the record.  Raises InputError for a catalog that is none: nothing else can be said then."""
    market = inputs.load_market(catalog)
    words = words_of(market)
    problem: InputError | None = None
    try:
        project, shown, found = inputs.load_project(project_file, words)
        if any(d.severity is Severity.ERROR for d in found):
            problem = InputError([d for d in found if d.severity is Severity.ERROR])
    except InputError as error:
        project, shown, found, problem = Project(), str(project_file), (), error
    if problem is not None:
        project = Project(targets=default_targets())
    files = _job_files(job_paths)
    workloads, problems = _jobs(files, project, market)
    return Repository(
        market=market,
        project=project,
        project_file=shown,
        project_problem=problem,
        warnings=tuple(d for d in found if d.severity is Severity.WARNING),
        job_files=files,
        workloads=workloads,
        problems=problems,
    )


def project(found: Repository) -> list[Row]:
    """skyplan.yaml."""
    if found.project_problem is not None:
        return [from_error("skyplan.yaml", found.project_problem, _FIX)]
    if found.project_file is None:
        fact = "there is no skyplan.yaml here: every default holds, and jobs may go to any cloud"
        return [warn("skyplan.yaml", fact, "skyplan init")]
    targets = "every cloud" if found.project.default_targets else _count(len(found.project.targets), "target")
    fact = f"{found.project_file}: project {found.project.name}, {targets}, state in {found.project.backend.kind}"
    if found.warnings:
        first = found.warnings[0]
        return [warn("skyplan.yaml", f"{first.location}: {first.summary}", first.hint, first.code)]
    return [ok("skyplan.yaml", fact)]


def jobs(found: Repository) -> list[Row]:
    """Job files."""
    if not found.job_files:
        return [warn("jobs", "there is no job file in jobs/", "skyplan init")]
    errors = [d for d in found.problems if d.severity is Severity.ERROR]
    if errors:
        files = sorted({d.location.file for d in errors if d.location})
        return [from_error("jobs", InputError(errors), f"skyplan plan {' '.join(files[:3])}")]
    return [ok("jobs", f"{_count(len(found.workloads), 'job')} in {_count(len(found.job_files), 'file')}")]


def plans(found: Repository, folder: Path) -> list[Row]:
    """Plan files: whole, unedited, and of the files as they are now."""
    paths = sorted(folder.glob(f"*{inputs.PLAN_SUFFIX}")) if folder.is_dir() else []
    if not paths:
        return [
            skipped(
                "plans", f"no plan file in {inputs.shown(folder)}/: `skyplan plan jobs/*.yaml --out plans` writes them"
            )
        ]
    again = f"skyplan plan jobs/*.yaml --out {inputs.shown(folder)}"
    rows: list[Row] = []
    stale: list[str] = []
    for path in paths:
        try:
            plan = inputs.read_plan(path)
        except InputError as error:
            rows.append(from_error("plans", error, again))
            continue
        if why := _stale(plan, found):
            stale.append(f"{path.name} ({why})")
    if stale:
        more = f" and {len(stale) - 3} more" if len(stale) > 3 else ""  # noqa: PLR2004 - three are named
        rows.append(warn("plans", f"made of what is no more: {', '.join(stale[:3])}{more}", again, "SKY-APPLY-302"))
    return rows or [ok("plans", f"{_count(len(paths), 'plan')}, of the files as they are")]


def placement(made: Sequence[PlacementPlan]) -> list[Row]:
    """Whether each job has a place at the packaged prices."""
    without = sorted(plan.name for plan in made if not plan.ranked)
    if without:
        more = f" and {len(without) - 3} more" if len(without) > 3 else ""  # noqa: PLR2004 - three are named
        fact = f"no place for {', '.join(without[:3])}{more}"
        return [fail("placement", fact, "skyplan plan jobs/*.yaml --explain")]
    return [ok("placement", f"every job ({len(made)}) has a place at the packaged prices")]


def prices(found: Repository, now: datetime, *, project_file: Path | None, offline: bool) -> list[Row]:
    """How old the newest price is; one of the future is somebody's wrong clock."""
    market = found.market
    files_only = offline or (found.project.market.source == "record" and not is_current())
    try:
        priced = inputs.priced_market(market, found.project, project_file=project_file, offline=files_only)
    except SkyplanError as error:
        return [from_error("prices", error)]
    newest = _moment((priced.market if priced else market).as_of)
    source = "the record" if priced else "the packaged prices"
    if newest > now + SKEW:
        fact = f"the newest price of {source} is of {newest:%Y-%m-%d %H:%M} UTC, and here it is {now:%Y-%m-%d %H:%M}"
        return [fail("prices", fact, "set this machine's clock, or correct what wrote the price", "SKY-CAT-117")]
    days = (now - newest).days
    fact = f"the newest of {source} is {_count(days, 'day')} old"
    if days > OLD_AFTER_DAYS:
        return [warn("prices", fact, "skyplan prices refresh", "SKY-CAT-109")]
    return [ok("prices", fact)]


def _job_files(paths: Sequence[Path]) -> tuple[Path, ...]:
    out: list[Path] = []
    for path in paths:
        if path.is_dir():
            out += sorted(p for p in path.rglob("*") if p.suffix in {".yaml", ".yml"} and p.is_file())
        elif path.suffix:  # a file, there or not; the usual folder may be absent
            out.append(path)
    return tuple(out)


def _jobs(
    files: Sequence[Path], project: Project, market: Market
) -> tuple[dict[str, tuple[Workload, str]], tuple[Diagnostic, ...]]:
    from planner.spec.foreign import parse_any  # noqa: PLC0415 - yaml
    from planner.spec.foreign.shelf import shelf_of  # noqa: PLC0415 - yaml
    from planner.spec.limits import narrow  # noqa: PLC0415 - yaml

    words = words_of(market)
    shelf = shelf_of(market, words)
    found: dict[str, tuple[Workload, str]] = {}
    problems: list[Diagnostic] = []
    for path in files:
        try:
            text = inputs.read_text(path)
        except InputError as error:
            problems += error.diagnostics
            continue
        several, told = parse_any(text, inputs.shown(path), words, project, shelf)
        problems += told
        for workload in several:
            narrowed, more = narrow(workload, project)
            problems += more
            found[narrowed.name] = (narrowed, inputs.shown(path))
    return found, tuple(problems)


def _stale(plan: PlacementPlan, found: Repository) -> str:
    job = found.workloads.get(plan.name)
    if job is None:
        return "its job is in no file here"
    if digest(workload_document(job[0])) != plan.inputs["job"]["digest"]:
        return "its job changed"
    if found.project_problem is None and digest(project_document(found.project)) != plan.inputs["project"]["digest"]:
        return "skyplan.yaml changed"
    return ""


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _moment(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)
