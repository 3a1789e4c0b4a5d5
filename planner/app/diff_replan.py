"""Plans for jobs that have none, of both sides with one snapshot of prices: a diff then shows what the change does, not what the market did meanwhile.

Decides which plan files are taken as they are: those that are of their job file as it is, and, where the other side of a job was planned here, only those
made with the same prices.  Plans as `skyplan plan --offline` does; reads no record.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from planner.app import inputs
from planner.app.completing import Completion
from planner.app.diff_read import Held, Side, held_new
from planner.app.usable import unusable
from planner.model.diagnostic import Diagnostic, Location, Severity
from planner.model.digest import digest
from planner.model.errors import InputError
from planner.model.ledger import AvailabilityMemory
from planner.model.project import Project, default_targets
from planner.model.words import words_of
from planner.placement.fleet import Policy, moment
from planner.placement.fleet import plan as place
from planner.spec.job import parse_jobs
from planner.spec.limits import narrow
from planner.spec.normal import workload_document, workload_from_document
from planner.spec.project import parse_project

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from planner.app.markets import Priced
    from planner.model.market import Market
    from planner.model.plan import PlacementPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The one snapshot that both sides are planned with."""

    market: Market
    priced: Priced | None = None

    @property
    def named(self) -> dict[str, Any]:
        """As a plan's inputs name it."""
        base = self.priced.base if self.priced else self.market
        found: dict[str, Any] = {"catalog": {"digest": base.digest, "as_of": base.as_of}}
        return {**found, **({"market": self.priced.document} if self.priced else {})}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a side's jobs are planned within."""

    project: Project
    file: str | None
    jobs: dict[str, inputs.Job]


def read_project(side: Side, path: Path, market: Market, problems: list[Diagnostic]) -> tuple[Project, str | None]:
    """skyplan.yaml as the side has it, else the defaults."""
    if not side.tree.has(path):
        return Project(targets=default_targets()), None
    try:
        project, found = parse_project(side.tree.text(path), inputs.shown(path), words_of(market))
    except InputError as error:
        problems += _at(side, error.diagnostics)
        return Project(targets=default_targets()), None
    problems += _at(side, [d for d in found if d.severity is Severity.ERROR])
    return project, inputs.shown(path)


def read_jobs(side: Side, project: Project, file: str | None, market: Market, problems: list[Diagnostic]) -> Setting:
    """Every job file of the side, narrowed to its project; errors of all of them go to `problems`."""
    words = words_of(market)
    jobs: dict[str, inputs.Job] = {}
    for path in side.job_files:
        name = inputs.shown(path)
        try:
            found, told = parse_jobs(side.tree.text(path), name, words, project)
        except InputError as error:
            problems += _at(side, error.diagnostics)
            continue
        if errors := [d for d in told if d.severity is Severity.ERROR]:
            problems += _at(side, errors)  # a job with an error in it may lack the wrong fields
            continue
        for workload in found:
            if workload.name in jobs:
                summary = f"job `{workload.name}` stands in {jobs[workload.name].file} too"
                problems += _at(side, [Diagnostic(code="SKY-SPEC-112", summary=summary, location=Location(name))])
            jobs[workload.name] = inputs.Job(workload=narrow(workload, project)[0], file=name)
    return Setting(project=project, file=file, jobs=jobs)


def _at(side: Side, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """With the side in words: both sides have files of one name."""
    return [replace(d, summary=f"in {side.label}: {d.summary}") for d in diagnostics]


def fill(
    sides: tuple[Side, Side], settings: tuple[Setting, Setting], ground: Ground, *, everything: bool
) -> list[Diagnostic]:
    """Plan on each side what has no plan file that may stand; warnings of plan files that may not."""
    told: list[Diagnostic] = []
    wanted: list[set[str]] = []
    for side, setting in zip(sides, settings, strict=True):
        names = {*setting.jobs, *side.plans} if everything else {n for n in setting.jobs if n not in side.plans}
        for name, held in sorted(side.plans.items()):
            job = setting.jobs.get(name)
            if job is None and side.job_files:
                told.append(_warning(side, held, f"is of job `{name}`, which no job file has any more"))
            if job is not None and not everything and held.plan.inputs["job"]["digest"] != _digest(job):
                told.append(_warning(side, held, f"is older than {job.file}: the job was planned anew for this diff"))
                names.add(name)
        wanted.append(names)
    for one, other in ((0, 1), (1, 0)):
        wanted[other] |= {
            name
            for name in wanted[one]
            if (held := sides[other].plans.get(name)) is not None and not _same_prices(held, ground)
        }
    for side, setting, names in zip(sides, settings, wanted, strict=True):
        _plan(side, setting, names, ground)
    return told


def _digest(job: inputs.Job) -> str:
    return digest(workload_document(job.workload))


def _same_prices(held: Held, ground: Ground) -> bool:
    return {k: v for k, v in held.plan.inputs.items() if k in {"catalog", "market"}} == ground.named


def _warning(side: Side, held: Held, why: str) -> Diagnostic:
    return Diagnostic(
        code="SKY-APPLY-302",
        summary=f"in {side.label}: the plan {why}",
        location=Location(held.file),
        severity=Severity.WARNING,
    )


def _plan(side: Side, setting: Setting, names: set[str], ground: Ground) -> None:
    jobs = [
        setting.jobs.get(name)
        or inputs.Job(workload=workload_from_document(side.plans[name].plan.job), file=_file_of(side.plans[name]))
        for name in sorted(names)
    ]
    others = [held.plan for name, held in sorted(side.plans.items()) if name not in names]
    for plan in planned(jobs, others, setting.project, setting.file, ground):
        side.plans[plan.name] = held_new(plan)


def _file_of(held: Held) -> str:
    return str(held.plan.inputs["job"]["file"])


def planned(
    jobs: list[inputs.Job], others: list[PlacementPlan], project: Project, project_file: str | None, ground: Ground
) -> list[PlacementPlan]:
    """As `skyplan plan --offline`: what `others` hold is left to them."""
    if not jobs:
        return []
    market = ground.market
    read = inputs.Inputs(
        jobs=tuple(jobs), project=project, project_file=project_file, market=market, warnings=(), priced=ground.priced
    )
    ledger = inputs.ledger_of((), inputs.holdings_of(others, market))
    seen = ground.priced.failures(project, moment(market.as_of)) if ground.priced else ()
    policy = Policy(
        project=project,
        memory=AvailabilityMemory(tuple(sorted(seen))),
        as_of=market.as_of,
        unusable={j.workload.name: unusable(j.workload, project, market) for j in jobs},
    )
    files = {j.workload.name: j.file for j in jobs}
    out: list[PlacementPlan] = []
    completion = Completion(read, policy, ledger.holdings)
    for one in place([j.workload for j in jobs], market, ledger, policy):
        plan = completion.complete(one, files[one.workload.name])
        completion.take(inputs.holdings_of([plan], market))
        out.append(plan)
    return out
