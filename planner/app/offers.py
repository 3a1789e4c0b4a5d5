"""The market for a request: the same ranker as a plan, with an empty ledger and a longer list."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.app import inputs
from planner.model.diagnostic import Severity, ordered
from planner.model.errors import InputError
from planner.model.ledger import AvailabilityMemory, Ledger
from planner.placement.fleet import Policy, plan
from planner.spec.job import parse_jobs
from planner.spec.limits import narrow

if TYPE_CHECKING:
    from pathlib import Path

    from planner.model.diagnostic import Diagnostic
    from planner.model.plan import Placement, RejectedCount
    from planner.model.project import Project
    from planner.model.words import Words
    from planner.model.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What `skyplan offers` was asked."""

    accelerators: tuple[str, ...]
    job_file: Path | None
    nodes: int
    capacity: tuple[str, ...]
    clouds: tuple[str, ...]
    regions: tuple[str, ...]
    hours: float
    top: int
    project_file: Path | None
    catalog: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What is for sale, best first."""

    placements: tuple[Placement, ...]
    rejected: tuple[RejectedCount, ...]
    feasible: int
    as_of: str
    warnings: tuple[Diagnostic, ...]


def run(request: Request) -> Listing:
    """Rank the request.  Raises InputError for what the file or the words get wrong."""
    if request.job_file is not None:
        read = inputs.load([request.job_file], project_file=request.project_file, catalog=request.catalog)
        job, project, market, warnings = read.jobs[0].workload, read.project, read.market, read.warnings
    else:
        market = inputs.load_market(request.catalog)
        words = inputs.words_of(market)
        project = inputs.checked_project(request.project_file, words)
        job, warnings = _as_job(request, project, words), ()
        priced = inputs.priced_market(market, project, project_file=request.project_file, catalog=request.catalog)
        if priced:
            market, warnings = priced.market, priced.warnings()
    policy = Policy(project=project, memory=AvailabilityMemory(), as_of=market.as_of, top=request.top)
    placed = plan([job], market, Ledger(), policy)[0]
    return Listing(
        placements=placed.ranked,
        rejected=placed.rejected,
        feasible=placed.context.ranking.feasible,
        as_of=market.as_of,
        warnings=warnings,
    )


def _as_job(request: Request, project: Project, words: Words) -> Workload:
    """The words of the command line as a job file, so that one parser judges both."""
    text = json.dumps(
        {
            "name": "offers",
            "resources": {
                "accelerators": list(request.accelerators),
                "nodes": request.nodes,
                "capacity": list(request.capacity),
            },
            "work": {"hours": request.hours, "on": request.accelerators[0]},
            "run": "true",
            "constraints": {k: list(v) for k, v in (("clouds", request.clouds), ("regions", request.regions)) if v},
        }
    )
    jobs, diagnostics = parse_jobs(text, "(command line)", words, project)
    errors = [d for d in diagnostics if d.severity is Severity.ERROR]
    if errors:
        raise InputError(ordered(errors))
    narrowed, problems = narrow(jobs[0], project)
    if problems:
        raise InputError(ordered(list(problems)))
    return narrowed
