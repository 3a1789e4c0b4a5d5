"""Planning: from files to PlacementPlans.

The pipeline, each step with its one rule:

  inputs            read every file, gather every error; nothing is judged
  fleet.plan_fleet  pure: feasible, cost, rank, and who of several jobs gets what (planner.placement.fleet)
  completing        give each ranked placement its addresses, grants and ids; name the stacks
  PlacementPlan     the value that is printed, written, applied and compared

`plan` writes nothing: the CLI writes files, and only whole ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from planner.app import inputs
from planner.app.completing import Completion
from planner.app.standing_plans import StandingPlan, standing_choices
from planner.app.usable import unusable
from planner.model.diagnostic import Diagnostic, ordered
from planner.model.digest import digest
from planner.model.errors import InputError
from planner.model.ledger import AvailabilityMemory
from planner.model.plan import PlacementPlan
from planner.placement.assign.kinds import alike
from planner.placement.fleet import Placed, Policy, holdings, moment, plan_fleet
from planner.placement.rank import RANKED
from planner.spec.normal import workload_document, workload_from_document
from planner.spec.together import unfillable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime
    from pathlib import Path

    from planner.model.fleet import FleetSummary
    from planner.model.workload import Workload
    from planner.placement.rank import Unusable


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What `skyplan plan` was asked.  `as_of` ISO or None; `now` is used only where recent failures must decay."""

    job_files: tuple[Path, ...]
    project_file: Path | None = None
    catalog: Path | None = None
    plans_folder: Path | None = None
    offline: bool = False
    as_of: str | None = None
    top: int = RANKED


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One job's plan, how it came about, and whether its placement differs from what stands (`before` is a placement id or None).

    made    its plan, made anew; None where `stands` is left as it is
    stands  its plan file, where planning anew says the same
    waited  why it waits by its standing plan; "" where it does not, or has none
    """

    made: PlacementPlan | None
    placed: Placed
    job_file: str
    before: str | None
    stands: StandingPlan | None = None
    waited: str = ""

    @property
    def plan(self) -> PlacementPlan:
        """The whole plan.  One that stands is read each time that it is asked for: a fleet's would fill the memory."""
        return self.made if self.made is not None else _in_order(self._standing.whole(), self.placed)

    @property
    def brief(self) -> PlacementPlan:
        """The plan as far as a line needs it: at least its job, choice and notes."""
        return self.made if self.made is not None else self._standing.plan

    @property
    def _standing(self) -> StandingPlan:
        assert self.stands is not None  # noqa: S101 - one of the two is there
        return self.stands

    @property
    def changed(self) -> bool:
        """Whether applying would change something."""
        now = self.brief.choice.placement_id if self.brief.ranked else None
        return now != self.before

    @property
    def waits(self) -> bool:
        """It could have a place on an empty market, and has none now."""
        return self.placed.waiting is not None

    def is_file(self, path: Path) -> bool:
        """Whether that file is the plan already."""
        return self.made is None and self._standing.path == path


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """All jobs, in the order they were placed, and what there is to say of them together."""

    planned: tuple[Planned, ...]
    inputs: inputs.Inputs
    warnings: tuple[Diagnostic, ...]
    fleet: FleetSummary


def run(request: Request, now: datetime, advance: Callable[[str], object] | None = None) -> Result:
    """Plan every job of every file.  Raises InputError with all that is wrong in them.

    `advance` is called with what is being done, three times a job: when its file is read, when it is placed, when its plan is complete.
    """
    read = inputs.load(
        request.job_files,
        project_file=request.project_file,
        catalog=request.catalog,
        as_of=request.as_of,
        offline=request.offline,
        advance=advance,
    )
    return run_on(read, request, now, advance)


def run_on(
    read: inputs.Inputs, request: Request, now: datetime, advance: Callable[[str], object] | None = None
) -> Result:
    """As `run`, on inputs that are read already."""
    say = advance or _silent
    folder = request.plans_folder
    standing = standing_choices(folder) if folder is not None else {}
    known = inputs.read_record(
        read.project.name, read.market, offline=request.offline, as_of=request.as_of, plans=standing
    )
    jobs = [j.workload for j in read.jobs]
    names = {job.name for job in jobs}
    others = [held.plan for name, held in sorted(standing.items()) if name not in names]
    _gangs_can_be_filled(read, others)
    ledger = inputs.ledger_of(known.holdings, inputs.holdings_of(others, read.market))
    as_of = request.as_of or _moment(read, known, now)
    read = read.counted_at(as_of)
    policy = Policy(
        project=read.project,
        memory=_memory(read, known, as_of if request.as_of or read.priced else None),
        as_of=as_of,
        top=request.top,
        unusable=_unusable(jobs, read),
        earlier=_earlier(jobs, standing),
    )
    fleet = plan_fleet(jobs, read.market, ledger, policy, advance=lambda: say("placing jobs"))
    files = {j.workload.name: j.file for j in read.jobs}
    running = dict(known.running)
    completion = Completion(read, policy, ledger.holdings)
    stay: set[str] = set()
    for one in fleet.placed if len(jobs) > 1 else ():
        name = one.workload.name
        held = standing.get(name)
        if held is not None and completion.stands(held, one, files[name], by_the_clock=request.as_of is None):
            stay.add(name)
            completion.take(inputs.holdings_of([held.plan], read.market))  # its addresses, before another takes them
    out: list[Planned] = []
    for one in fleet.placed:
        name = one.workload.name
        say(f"completing {name}")
        held = standing.get(name)
        earlier = held.plan if held is not None else None
        made = None if name in stay else completion.complete(one, files[name])
        if made is not None and made.ranked and made.choice.nodes > 1:
            completion.take(holdings(made.choice, read.market, workload=one.workload))
        out.append(
            Planned(
                made=made,
                placed=one,
                job_file=files[name],
                before=running.get(name) or (earlier.choice.placement_id if earlier and earlier.ranked else None),
                stands=held if made is None else None,
                waited=earlier.waits if earlier else "",
            )
        )
    return Result(planned=tuple(out), inputs=read, warnings=read.warnings, fleet=fleet.summary)


def _in_order(plan: PlacementPlan, placed: Placed) -> PlacementPlan:
    """A plan that was read, the terms of its choice told in the order of one that was made: files have them sorted."""
    if not (plan.ranked and placed.ranked):
        return plan
    at = {term.name: k for k, term in enumerate(placed.ranked[0].terms)}
    best = plan.ranked[0]
    terms = tuple(sorted(best.terms, key=lambda term: at.get(term.name, len(at))))
    return replace(plan, ranked=(replace(best, terms=terms), *plan.ranked[1:]))


def _silent(_: str) -> None:
    """Nobody looks."""


def _gangs_can_be_filled(read: inputs.Inputs, others: Iterable[PlacementPlan]) -> None:
    """Raises InputError for a gang that has too few jobs, those counted that have plan files, and if they only wait."""
    if not any(job.workload.gang for job in read.jobs):
        return
    known = [workload_from_document(plan.job) for plan in others if "gang" in plan.job]
    said = [(job.workload, job.file) for job in read.jobs]
    if found := unfillable(said, known, read.text_of):
        raise InputError(ordered(found))


def _unusable(jobs: Iterable[Workload], read: inputs.Inputs) -> dict[str, Unusable]:
    """By job, what its nodes could not run on; worked out once for all jobs that say the same of what it depends on."""
    known: dict[Workload, Unusable] = {}
    out: dict[str, Unusable] = {}
    for job in jobs:
        brought = any(d.mount or d.copy_to for d in job.data)
        stores = {} if brought else {"data": (), "checkpoint": None, "output": None}
        alike = replace(
            job, name="", run="", setup=None, env=(), priority=0, team="", anti_affinity=(), gang=None, **stores
        )
        if alike not in known:
            known[alike] = unusable(job, read.project, read.market)
        out[job.name] = known[alike]
    return out


def _earlier(jobs: list[Workload], standing: Mapping[str, StandingPlan]) -> dict[str, str]:
    """By job that needs what it needed, where its standing plan put it.  A job on its own is placed where it is best.

    What changed may be its command or its priority: then it stays, too, for else the places of a fleet would be dealt anew.
    """
    if len(jobs) < 2:  # noqa: PLR2004 - a fleet begins with two
        return {}
    out: dict[str, str] = {}
    for job in jobs:
        held = standing.get(job.name)
        if held is None or not held.plan.ranked:
            continue
        same = held.plan.inputs["job"]["digest"] == digest(workload_document(job))
        if same or alike(workload_from_document(held.plan.job)) == alike(job):
            out[job.name] = held.plan.choice.offer_id
    return out


def _moment(read: inputs.Inputs, known: inputs.Known, now: datetime) -> str:
    """The market's own moment; now, where something in the inputs opens, expires or decays by the clock."""
    by_the_clock = bool(known.memory.failures or read.project.reserved)
    return now.strftime("%Y-%m-%dT%H:%M:%SZ") if by_the_clock else read.market.as_of


def _memory(read: inputs.Inputs, known: inputs.Known, as_of: str | None) -> AvailabilityMemory:
    """Launches that were refused, and what the market's source saw fail; until `as_of`, so that what comes later does not change a plan of then."""
    if as_of is None:
        return known.memory
    seen = read.priced.failures(read.project, moment(as_of)) if read.priced else ()
    failures = {f for f in known.memory.failures if moment(f.at) <= moment(as_of)}
    return AvailabilityMemory(tuple(sorted({*failures, *seen})))
