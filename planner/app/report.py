"""A report as a use case: jobs are planned or plans are read, and all that a page shows of them is gathered into one value.

  report_market   every feasible offer, and the regions        report_rights   identities, and what each reaches
  prices          what the ranked offers cost over time        planner.migration.document   moves under review

Writes nothing and draws nothing.  Reads what `plan` reads; the report's moment is that of its inputs, never the clock.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

from planner.app import inputs, report_market
from planner.app.report_rights import Rights
from planner.migration.document import DIFF_SUFFIX
from planner.migration.document import from_document as migration_from
from planner.model.diagnostic import Diagnostic, Location, ordered
from planner.model.errors import InputError
from planner.model.report import Assets, JobReport, Report
from planner.placement.fleet import moment
from planner.placement.rank import RANKED

if TYPE_CHECKING:
    from planner.app.plan import Planned, Result
    from planner.app.plan import Request as PlanRequest
    from planner.model.fleet import FleetSummary
    from planner.model.migration import MigrationDiff
    from planner.model.past import Pasts
    from planner.model.plan import PlacementPlan

ROWS: Final = 12_000
"""Of offers in one report, over all its jobs: a page of three jobs holds every offer of a market of 3,600."""
LEAST_ROWS: Final = 100
DETAILED: Final = 40
"""Jobs with sections of their own, some 80 kB each: more of them make a file that nobody opens."""
PAST_DAYS: Final = 30
PAST_SERIES: Final = 6
"""As many lines as a chart tells apart."""

_SHORT: Final = "it stands in the overview alone"

Advance = Callable[[str], None]
"""Called before each piece of work, with its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to report.

    paths       job files, plan files, folders of plan files; () = the plans folder
    migrations  migration diffs, or folders of them
    replan      decide anew whether what runs should move; needs the record
    """

    paths: tuple[Path, ...] = ()
    migrations: tuple[Path, ...] = ()
    replan: bool = False
    project_file: Path | None = None
    catalog: Path | None = None
    plans_folder: Path = Path(inputs.PLANS_FOLDER)
    offline: bool = False
    as_of: str | None = None
    top: int = RANKED


def assets() -> Assets:
    """The packaged style sheet and script."""
    folder = files("planner.render") / "report"
    return Assets(
        css=(folder / "report.css").read_text(encoding="utf-8"), script=(folder / "report.js").read_text("utf-8")
    )


def run(request: Request, now: datetime, advance: Advance = lambda _: None) -> Report:
    """Raises InputError with every problem of every file, Unavailable, MissingPart."""
    advance("reading")
    jobs, plans = _sorted_out(request.paths or (request.plans_folder,))
    moves = _moves(request.migrations)
    read, result = _planned(request, jobs, now, advance)
    rights = Rights(read.project, read.market)
    made: list[tuple[PlacementPlan, str, Planned | None]] = [
        (one.plan, one.job_file, one) for one in (result.planned if result else ())
    ]
    made += [(plan, file, None) for file, plan in plans]
    most = max(LEAST_ROWS, ROWS // max(min(len(made), DETAILED), 1))
    found: list[JobReport] = []
    for plan, file, planned in made:
        advance(f"gathering {plan.name}")
        if len(found) >= DETAILED:
            found.append(_in_short(plan, file, planned))
            continue
        past = _past(request, read, plan)
        found.append(_of_job(planned, most, rights, past) if planned else _of_plan(plan, file, rights, past))
    _check_names(found)
    if request.replan:
        advance("replanning")
        moves += _replanned(request, now, {job.plan.name for job in found} - {m.job for m in moves})
    return Report(
        project=read.project.name,
        as_of=max((_as_of(job.plan) for job in found), default=""),
        jobs=_with_moves(found, moves),
        fleet=_fleet(result),
        warnings=read.warnings,
    )


def _as_of(plan: PlacementPlan) -> str:
    return str(plan.inputs.get("as_of", ""))


def _fleet(result: Result | None) -> FleetSummary | None:
    return result.fleet if result else None


def _planned(
    request: Request, jobs: Sequence[Path], now: datetime, advance: Advance
) -> tuple[inputs.Inputs, Result | None]:
    """Files as they are, and job files planned together, as `skyplan plan` would."""
    from planner.app import plan as planning  # noqa: PLC0415 - numpy

    read = inputs.load(
        jobs,
        project_file=request.project_file,
        catalog=request.catalog,
        as_of=request.as_of,
        offline=request.offline,
    )
    if not jobs:
        return read, None
    advance("planning")
    asked: PlanRequest = planning.Request(
        job_files=tuple(jobs),
        project_file=request.project_file,
        catalog=request.catalog,
        plans_folder=request.plans_folder,
        offline=request.offline,
        as_of=request.as_of,
        top=request.top,
    )
    result = planning.run_on(read, asked, now)
    return result.inputs, result


def _of_job(one: Planned, most: int, rights: Rights, past: tuple[Pasts | None, str]) -> JobReport:
    found = report_market.of_context(one.placed.context, most)
    audited, no_rights = rights.of(one.plan, one.job_file)
    return JobReport(
        plan=one.plan,
        file=one.job_file,
        before=one.before,
        rows=found.rows,
        feasible=found.feasible,
        splits=found.splits,
        whole=True,
        reasons=one.plan.rejected,
        regions=report_market.regions(one.placed.context, found.rows),
        audited=audited,
        no_rights=no_rights,
        past=past[0],
        no_past=past[1],
    )


def _of_plan(plan: PlacementPlan, file: str, rights: Rights, past: tuple[Pasts | None, str]) -> JobReport:
    audited, no_rights = rights.of(plan, file)
    return replace(_alone(plan, file), audited=audited, no_rights=no_rights, past=past[0], no_past=past[1])


def _in_short(plan: PlacementPlan, file: str, planned: Planned | None) -> JobReport:
    return replace(_alone(plan, file), before=planned.before if planned else "", detailed=False)


def _alone(plan: PlacementPlan, file: str) -> JobReport:
    """What a plan says by itself: its ranked set, nothing of the market around it."""
    found = report_market.of_placements(plan.ranked)
    return JobReport(
        plan=plan,
        file=file,
        before="",
        rows=found.rows,
        feasible=found.feasible,
        splits=found.splits,
        whole=False,
        reasons=plan.rejected,
        regions=(),
        audited=None,
        no_rights=_SHORT,
        past=None,
        no_past=_SHORT,
    )


def _past(request: Request, read: inputs.Inputs, plan: PlacementPlan) -> tuple[Pasts | None, str]:
    """Prices of the offers that the plan ranks, up to its own moment; or why there are none."""
    if request.offline:
        return None, "the record was not asked: --offline"
    if not inputs.there_is_a_record():
        return None, "there is no record here; `skyplan prices refresh` or `prices import` begins one"
    if not plan.ranked:
        return None, "nothing is ranked"
    from planner.app import prices, wire  # noqa: PLC0415 - sqlalchemy
    from planner.state.history import History  # noqa: PLC0415

    try:
        until = moment(_as_of(plan))
    except ValueError:
        return None, "the plan names no moment"
    since = until - timedelta(days=PAST_DAYS)
    history = History.open(wire.database_url(), read.project.name, upgrade=False)
    try:
        found = prices.past_of(plan.ranked, history, since, until)
    finally:
        history.close()
    if not found.found:
        return None, f"the record has no price of these offers from the {PAST_DAYS} days before {_as_of(plan)[:10]}"
    return found, ""


def _sorted_out(paths: Iterable[Path]) -> tuple[list[Path], list[tuple[str, PlacementPlan]]]:
    """Job files, and plans with their files.  Raises InputError with every problem."""
    jobs: list[Path] = []
    plans: list[tuple[str, PlacementPlan]] = []
    problems: list[Diagnostic] = []
    for path in paths:
        try:
            if path.is_dir():
                known = sorted(path.glob(f"*{inputs.PLAN_SUFFIX}"))
                if not known:
                    problems.append(_nothing(path, f"holds no {inputs.PLAN_SUFFIX[1:]}"))
                plans += [(inputs.shown(file), inputs.read_plan(file)) for file in known]
            elif not path.suffix and not path.exists():
                problems.append(_nothing(path, "no such folder"))
            elif path.suffix == ".json" and _is_plan(path):
                plans.append((inputs.shown(path), inputs.read_plan(path)))
            else:
                jobs.append(path)
        except InputError as error:
            problems += error.diagnostics
    if problems:
        raise InputError(ordered(problems))
    return jobs, plans


def _is_plan(path: Path) -> bool:
    """A job may be written as JSON too."""
    if path.name.endswith(inputs.PLAN_SUFFIX):
        return True
    try:
        document = json.loads(inputs.read_text(path))
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and "ranked" in document


def _nothing(path: Path, why: str) -> Diagnostic:
    hint = "give job files or plan files; `skyplan plan JOB --out plans` writes plans"
    return Diagnostic(code="SKY-SPEC-101", summary=why, location=Location(str(path)), hint=hint)


def _check_names(found: Sequence[JobReport]) -> None:
    first: dict[str, str] = {}
    problems: list[Diagnostic] = []
    for job in found:
        other = first.setdefault(job.plan.name, job.file)
        if other != job.file:
            summary = f"job `{job.plan.name}` stands in {other} too"
            problems.append(Diagnostic(code="SKY-SPEC-112", summary=summary, location=Location(job.file)))
    if problems:
        raise InputError(ordered(problems))


def _moves(paths: Iterable[Path]) -> tuple[MigrationDiff, ...]:
    """Raises InputError with every problem of every file."""
    out: list[MigrationDiff] = []
    problems: list[Diagnostic] = []
    for path in paths:
        known = sorted(path.glob(f"*{DIFF_SUFFIX}")) if path.is_dir() else [path]
        for file in known:
            try:
                out.append(migration_from(_json(file), inputs.shown(file)))
            except InputError as error:
                problems += error.diagnostics
    if problems:
        raise InputError(ordered(problems))
    return tuple(out)


def _json(path: Path) -> object:
    try:
        return json.loads(inputs.read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        summary = f"not JSON: {error.msg}" if isinstance(error, json.JSONDecodeError) else "nested too deeply"
        raise InputError([Diagnostic(code="SKY-MOVE-423", summary=summary, location=Location(str(path)))]) from error


def _replanned(request: Request, now: datetime, wanted: Collection[str]) -> tuple[MigrationDiff, ...]:
    """Of those jobs: what else runs is none of this report's."""
    from planner.app import replan_given  # noqa: PLC0415 - sqlalchemy

    asked = replan_given.Asked(
        project_file=request.project_file,
        catalog=request.catalog,
        plans_folder=request.plans_folder,
        as_of=request.as_of,
    )
    found, _ = replan_given.run(asked, now)
    return tuple(diff for diff in found.diffs if diff.job in wanted)


def _with_moves(found: Sequence[JobReport], moves: Sequence[MigrationDiff]) -> tuple[JobReport, ...]:
    """Each move at its job.  Raises InputError for one of a job that is not reported, where it was named."""
    names = {job.plan.name for job in found}
    strangers = sorted({m.job for m in moves} - names)
    if strangers:
        summary = f"a migration diff is of `{strangers[0]}`, which is none of the jobs reported"
        hint = "give that job's file or plan too, or leave the diff out"
        raise InputError([Diagnostic(code="SKY-MOVE-423", summary=summary, hint=hint)])
    return tuple(replace(job, moves=tuple(m for m in moves if m.job == job.plan.name)) for job in found)
