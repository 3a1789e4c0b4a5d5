"""Planning: from files to PlacementPlans.

The pipeline, each step with its one rule:

  inputs      read every file, gather every error; nothing is judged
  fleet.plan  pure: feasible, cost, rank, spread (planner.placement.fleet)
  complete    give each ranked placement its addresses, grants and ids; name the stacks
  PlacementPlan   the value that is printed, written, applied and compared

`plan` writes nothing: the CLI writes files, and only whole ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from planner.app import compose, inputs
from planner.app.lookup import own_network, region_of, target_of
from planner.app.rights import grants_digest, placement_grants, placement_paths
from planner.app.usable import no_tunnel, unusable
from planner.iam.paths import caveats
from planner.model.diagnostic import Diagnostic
from planner.model.digest import digest
from planner.model.errors import InputError
from planner.model.grants import Grant
from planner.model.ledger import AvailabilityMemory, Ledger
from planner.model.offer import Cloud
from planner.model.plan import METHOD, Caveat, Placement, PlacementPlan, PlanStatus, StackRef
from planner.model.reach import DataPath
from planner.placement.address import addresses, tunnel_addresses, zone_cidrs
from planner.placement.fleet import Placed, Policy, ledger_digest, memory_digest, moment
from planner.placement.fleet import plan as place
from planner.placement.rank import RANKED
from planner.spec.normal import project_document, workload_document

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

    from planner.model.market import Market
    from planner.model.project import Project
    from planner.model.workload import Workload


BARE = Caveat(
    code="SKY-RUN-501", text="no agent on the nodes yet: the job runs bare, without progress or rotating credentials"
)


ENDLESS = Caveat(
    code="SKY-RUN-504",
    text="nothing but its own end stops this job: give `stop_after` under `constraints` (a sum ends only what is paid by the hour)",
)
OFF_IS_BILLED = Caveat(
    code="SKY-RUN-508",
    text="azure: a node that has powered itself off, at its job's end or at the hard end, is billed on until `skyplan destroy`",
)


STATIC = Caveat(
    code="SKY-RUN-505",
    text="no `rendezvous` in skyplan.yaml: nodes wait until an operator lays their peers' keys down on each",
)


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
    """One job's plan, how it came about, and whether its placement differs from what stands (`before` is a placement id or None)."""

    plan: PlacementPlan
    placed: Placed
    job_file: str
    before: str | None

    @property
    def changed(self) -> bool:
        """Whether applying would change something."""
        now = self.plan.ranked[0].placement_id if self.plan.ranked else None
        return now != self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """All jobs, in the order they were placed."""

    planned: tuple[Planned, ...]
    inputs: inputs.Inputs
    warnings: tuple[Diagnostic, ...]


def run(request: Request, now: datetime) -> Result:
    """Plan every job of every file.  Raises InputError with all that is wrong in them."""
    read = inputs.load(
        request.job_files,
        project_file=request.project_file,
        catalog=request.catalog,
        as_of=request.as_of,
        offline=request.offline,
    )
    return run_on(read, request, now)


def run_on(read: inputs.Inputs, request: Request, now: datetime) -> Result:
    """As `run`, on inputs that are read already."""
    folder = request.plans_folder
    standing = inputs.standing_plans(folder) if folder is not None else {}
    known = inputs.read_record(read.project.name, read.market, offline=request.offline, as_of=request.as_of)
    names = {j.workload.name for j in read.jobs}
    others = [p for name, p in sorted(standing.items()) if name not in names]
    ledger = inputs.ledger_of(known.holdings, inputs.holdings_of(others, read.market))
    as_of = request.as_of or _moment(read, known, now)
    read = read.counted_at(as_of)
    policy = Policy(
        project=read.project,
        memory=_memory(read, known, as_of if request.as_of or read.priced else None),
        as_of=as_of,
        top=request.top,
        unusable={j.workload.name: unusable(j.workload, read.project, read.market) for j in read.jobs},
    )
    placed = place([j.workload for j in read.jobs], read.market, ledger, policy)
    files = {j.workload.name: j.file for j in read.jobs}
    running = dict(known.running)
    out: list[Planned] = []
    taken = ledger
    for one in placed:
        file = files[one.workload.name]
        plan = complete(one, taken, read, policy, file)
        if plan.ranked:
            for held in inputs.holdings_of([plan], read.market):
                taken = taken.plus(held)
        earlier = standing.get(plan.name)
        before = running.get(plan.name) or (earlier.choice.placement_id if earlier and earlier.ranked else None)
        out.append(Planned(plan=plan, placed=one, job_file=file, before=before))
    return Result(planned=tuple(out), inputs=read, warnings=read.warnings)


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


def complete(placed: Placed, taken: Ledger, read: inputs.Inputs, policy: Policy, job_file: str) -> PlacementPlan:
    """Addresses, grants, ids and stack names for one job's ranked set."""
    workload, project, market = placed.workload, read.project, read.market
    grants: dict[str, tuple[Grant, ...]] = {}
    access: dict[str, tuple[DataPath, ...]] = {}
    ranked: list[Placement] = []
    for p in placed.ranked:
        paths: list[DataPath] = []
        for piece in p.pieces:
            place = f"{piece.cloud}:{piece.target}"
            if place not in access:
                access[place] = placement_paths(workload, piece, project)
            paths += access[place]
        one = _addressed(p, workload, taken, project, market)
        one = replace(one, caveats=tuple(sorted({*p.caveats, *_standing_caveats(one, workload, project, paths)})))
        rights = tuple(sorted({g for q in one.pieces for g in placement_grants(workload, q, project)}))
        key = grants_digest(rights)
        grants[key] = rights
        one = replace(one, grants_digest=key)
        ranked.append(replace(one, placement_id=compose.placement_id(workload, one, project, market)))
    return PlacementPlan(
        job=workload_document(workload),
        inputs=_inputs(placed, read, policy, job_file),
        ranked=tuple(ranked),
        rejected=placed.rejected,
        notes=(*placed.notes, *_own_notes(ranked, workload, access)),
        grants=grants,
        stacks=_stacks(ranked, workload, project, market),
        access=access,
        status=PlanStatus(
            complete=bool(ranked),
            applyable=bool(ranked) and not _out_of_reach(ranked[0], access),
            errored=False,
        ),
    )


def _out_of_reach(p: Placement, access: dict[str, tuple[DataPath, ...]]) -> bool:
    """Whether the nodes would have no credentials for one of the job's stores."""
    return any(path.out_of_reach for piece in p.pieces for path in access.get(f"{piece.cloud}:{piece.target}", ()))


def _own_notes(
    ranked: Sequence[Placement], workload: Workload, access: dict[str, tuple[DataPath, ...]]
) -> tuple[str, ...]:
    """What the ranking cannot know: what ends the nodes, and whether `apply` would take the choice."""
    if not ranked:
        return ()
    out: list[str] = []
    best = ranked[0]
    end = compose.hard_end_hours(workload, float(best.usd_per_hour))
    if end is not None:
        out.append(f"hard end: the nodes power themselves off {end:g} h after their boot, whatever the job does")
    if _out_of_reach(best, access):
        other = next((p for p in ranked if not _out_of_reach(p, access)), None)
        which = f"#{other.rank + 1} is the first that does" if other else "it takes none of the ranked ones"
        words = "its nodes have no credentials for every store"
        out.append(f"`apply` takes this choice only with --own-credentials: {words}; {which} without")
    return tuple(out)


def _addressed(p: Placement, workload: Workload, taken: Ledger, project: Project, market: Market) -> Placement:
    """With private addresses; of a split job with addresses in the tunnel, on the whole and on every part."""
    if not p.parts:
        return replace(p, addresses=_addresses(p, workload, taken, project, market))
    inside = tunnel_addresses(p.nodes)
    return replace(p, tunnel_addresses=inside, parts=tuple(replace(part, tunnel_addresses=inside) for part in p.parts))


def _addresses(p: Placement, workload: Workload, taken: Ledger, project: Project, market: Market) -> tuple[str, ...]:
    """Fixed where nodes must know each other; a lone node takes what the cloud gives.

    A placement keeps the addresses it holds already; any other placement of the job must not collide with them, as both may stand side by side.
    """
    if p.nodes == 1:
        return ()
    region = region_of(market, p)
    own = own_network(target_of(project, p), p.region)
    subnet = dict(own.cidrs)[p.zone] if own else dict(zone_cidrs(region))[p.zone]
    used: set[str] = set()
    for h in taken.holdings:
        if h.job == workload.name and (h.pool, h.instance_type) == (p.pool, p.instance_type):
            continue
        used.update(h.addresses)
    try:
        return addresses(subnet, workload.name, p.nodes, frozenset(used))
    except ValueError as error:
        raise InputError([Diagnostic(code="SKY-REJ-212", summary=f"{workload.name}: {error}")]) from error


def _standing_caveats(
    p: Placement, workload: Workload, project: Project, paths: Sequence[DataPath]
) -> tuple[Caveat, ...]:
    """What no offer says by itself: no agent yet, stores without credentials, nothing that stops a job which never ends."""
    found = [*([] if project.control_plane and project.agent_url else [BARE]), *caveats(paths)]
    if compose.hard_end_hours(workload, float(p.usd_per_hour)) is None:
        found.append(ENDLESS)
    if any(piece.cloud == Cloud.AZURE for piece in p.pieces):
        found.append(OFF_IS_BILLED)
    found += [
        Caveat(code="SKY-RUN-505", text=f"{piece.cloud}: {why}")
        for piece in p.pieces
        if (why := no_tunnel(piece, project))
    ]
    if p.parts and project.rendezvous is None:
        found.append(STATIC)
    return tuple(found)


def _stacks(ranked: Sequence[Placement], workload: Workload, project: Project, market: Market) -> tuple[StackRef, ...]:
    if not ranked:
        return ()
    return compose.stack_refs(compose.stack_sets(ranked, ranked[0], workload, project, market, generation=None))


def _inputs(placed: Placed, read: inputs.Inputs, policy: Policy, job_file: str) -> dict[str, Any]:
    base = read.priced.base if read.priced else read.market
    return {
        "method": METHOD,
        "as_of": moment(policy.as_of).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "catalog": {"digest": base.digest, "as_of": base.as_of},
        **({"market": read.priced.document} if read.priced else {}),
        "job": {"file": job_file, "digest": digest(workload_document(placed.workload))},
        "project": {"file": read.project_file, "digest": digest(project_document(read.project))},
        "ledger": ledger_digest(placed.ledger),
        "availability": memory_digest(policy.memory),
    }
