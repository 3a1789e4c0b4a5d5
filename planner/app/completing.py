"""From a job's outcome to its PlacementPlan: addresses, rights, ids, names of stacks, and what the ranking cannot know.

Decides nothing about places.  A `Completion` is for all jobs of a call: what many of them share (networks, the project's digest) is worked out once, so that a
fleet takes time in proportion to its jobs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from planner.app import compose
from planner.app.addressing import AddressBook, addresses_of
from planner.app.rights import JobRights, grants_digest
from planner.app.usable import no_tunnel
from planner.iam.paths import caveats
from planner.model.digest import digest
from planner.model.offer import Cloud
from planner.model.plan import METHOD, WAITS, Caveat, Placement, PlacementPlan, PlanStatus, StackRef
from planner.placement.address import tunnel_addresses
from planner.placement.fleet import Placed, Policy, memory_digest, moment
from planner.spec.normal import project_document, workload_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from planner.app.inputs import Inputs
    from planner.app.standing_plans import StandingPlan
    from planner.model.fleet import Waiting
    from planner.model.grants import Grant
    from planner.model.ledger import Holding, Ledger
    from planner.model.project import Project
    from planner.model.reach import DataPath
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


class Completion:
    """Completes the jobs of one call, in the order they were placed."""

    def __init__(self, read: Inputs, policy: Policy, held: Iterable[Holding]) -> None:
        self._read, self._policy = read, policy
        self._networks = compose.Networks(read.project, read.market)
        self._book = AddressBook(held)
        self._inputs = _shared_inputs(read, policy)

    def take(self, held: Iterable[Holding]) -> None:
        """What a job that was completed holds from now on."""
        for one in held:
            self._book.add(one)

    def inputs_of(self, placed: Placed, job_file: str, document: dict[str, Any] | None = None) -> dict[str, Any]:
        """What the job's plan is a function of."""
        job = {"file": job_file, "digest": digest(document or workload_document(placed.workload))}
        return {**self._inputs, "job": job, "ledger": placed.ledger_digest}

    def stands(self, held: StandingPlan, placed: Placed, job_file: str, *, by_the_clock: bool) -> bool:
        """Whether the job's plan file may stay as it is: it says what planning anew says, and this version makes the same stacks of its choice."""
        inputs = self.inputs_of(placed, job_file)
        if not held.still_holds(inputs, placed, top=self._policy.top, by_the_clock=by_the_clock):
            return False
        if not placed.ranked:
            return True
        best, stood = placed.ranked[0], held.plan.choice
        if best.parts:
            return False  # rare, and its parts' addresses are the tunnel's
        project, market = self._read.project, self._read.market
        drawn = compose.Drawn(placed.workload, project, market, self._networks)
        made = compose.placement_id(placed.workload, replace(best, addresses=stood.addresses), project, market, drawn)
        return made == stood.placement_id

    def complete(self, placed: Placed, job_file: str) -> PlacementPlan:
        """Addresses, grants, ids and stack names for one job's ranked set."""
        workload, project, market = placed.workload, self._read.project, self._read.market
        drawn = compose.Drawn(workload, project, market, self._networks)
        grants: dict[str, tuple[Grant, ...]] = {}
        access: dict[str, tuple[DataPath, ...]] = {}
        digests: dict[tuple[Grant, ...], str] = {}
        ranked: list[Placement] = []
        for p in placed.ranked:
            paths: list[DataPath] = []
            for piece in p.pieces:
                place = f"{piece.cloud}:{piece.target}"
                if place not in access:
                    access[place] = drawn.rights.paths(piece)
                paths += access[place]
            one = self._addressed(p, workload.name)
            rights = _rights(one, drawn.rights)
            if rights not in digests:
                digests[rights] = grants_digest(rights)
                grants[digests[rights]] = rights
            ranked.append(
                replace(
                    one,
                    caveats=tuple(sorted({*p.caveats, *_standing_caveats(one, workload, project, paths)})),
                    grants_digest=digests[rights],
                    placement_id=compose.placement_id(workload, one, project, market, drawn),
                )
            )
        document = workload_document(workload)
        return PlacementPlan(
            job=document,
            inputs=self.inputs_of(placed, job_file, document),
            ranked=tuple(ranked),
            rejected=placed.rejected,
            notes=(
                *waiting_notes(placed.waiting),
                *(note for note in placed.notes if not note.startswith(WAITS)),
                *_own_notes(ranked, workload, access),
            ),
            grants=grants,
            stacks=_stacks(ranked, drawn),
            access=access,
            status=PlanStatus(
                complete=bool(ranked),
                applyable=bool(ranked) and not _out_of_reach(ranked[0], access),
                errored=False,
            ),
        )

    def _addressed(self, p: Placement, job: str) -> Placement:
        """With private addresses; of a split job with addresses in the tunnel, on the whole and on every part."""
        if not p.parts:
            found = addresses_of(p, job, self._book, self._read.project, self._read.market)
            return replace(p, addresses=found) if found else p
        inside = tunnel_addresses(p.nodes)
        parts = tuple(replace(part, tunnel_addresses=inside) for part in p.parts)
        return replace(p, tunnel_addresses=inside, parts=parts)


def complete(placed: Placed, taken: Ledger, read: Inputs, policy: Policy, job_file: str) -> PlacementPlan:
    """One job on its own; `taken` is what others hold."""
    return Completion(read, policy, taken.holdings).complete(placed, job_file)


def waiting_notes(waiting: Waiting | None) -> tuple[str, ...]:
    """Why a job waits, as its plan says it: one sentence with its code, then who is before it."""
    if waiting is None:
        return ()
    behind = (f"before it: {', '.join(waiting.behind)}",) if waiting.behind else ()
    return (f"{WAITS}{waiting.text} [{waiting.code}]", *behind)


def _rights(p: Placement, rights: JobRights) -> tuple[Grant, ...]:
    """Of all its parts, sorted."""
    if len(p.pieces) == 1:
        return rights.grants(p.pieces[0])
    return tuple(sorted({grant for piece in p.pieces for grant in rights.grants(piece)}))


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


def _stacks(ranked: Sequence[Placement], drawn: compose.Drawn) -> tuple[StackRef, ...]:
    if not ranked:
        return ()
    sets = compose.stack_sets(
        ranked, ranked[0], drawn.workload, drawn.project, drawn.market, generation=None, drawn=drawn
    )
    return compose.stack_refs(sets, drawn)


def _shared_inputs(read: Inputs, policy: Policy) -> dict[str, Any]:
    """What all plans of a call are made of."""
    base = read.priced.base if read.priced else read.market
    return {
        "method": METHOD,
        "as_of": moment(policy.as_of).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "catalog": {"digest": base.digest, "as_of": base.as_of},
        **({"market": read.priced.document} if read.priced else {}),
        "project": {"file": read.project_file, "digest": digest(project_document(read.project))},
        "availability": memory_digest(policy.memory),
    }
