"""From a decision to a migration diff: the placements, the plan that they are of, grants and Terraform resources that change, steps, and all of it in words.

Decides which plan a move refers to: the reviewed one where its first place is in it, else a new one, ranked by the same ranker for the work that is left with what
runs as one more candidate.  Nothing is written here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from planner.app import compose
from planner.app.completing import complete
from planner.app.replan_words import diff_text, place_words
from planner.app.rights import placement_grants
from planner.migration.costing import usd
from planner.migration.steps import steps_of
from planner.model.digest import digest
from planner.model.migration import MigrationDiff, MigrationReason, Standing
from planner.placement.describe import bound, caveats
from planner.placement.fleet import Policy
from planner.placement.fleet import plan as place
from planner.placement.rank import RANKED
from planner.placement.standing import Standing as Stands
from planner.placement.standing import position

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.app.inputs import Inputs
    from planner.app.replan_judge import Case, Judged
    from planner.app.situation import Seen
    from planner.migration.constants import Rule
    from planner.migration.costing import Shape
    from planner.model.grants import Grant
    from planner.model.ledger import AvailabilityMemory, Ledger
    from planner.model.plan import Caveat, Placement, PlacementPlan
    from planner.model.record import Run, Stack
    from planner.model.stack import StackInput
    from planner.model.workload import Workload

    Origin = tuple[str, str, tuple[Caveat, ...]]

OF_THE_MARKET = "SKY-CAT-"
ALL = 1000
"""Ranked, before it is cut to what a plan holds, where the place that was decided on is not among the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What all diffs of one call share.  `stacks`: compute stacks by job and generation; `synth` gives a stack's Terraform JSON, None = nobody can here."""

    read: Inputs
    memory: AvailabilityMemory
    as_of: str
    rule: Rule
    stacks: Mapping[tuple[str, int], Sequence[Stack]]
    record_digest: str
    synth: Callable[[StackInput], Mapping[str, Any]] | None = None
    # what was looked up already
    origins: dict[tuple[int, int], tuple[Shape, Origin]] = field(
        default_factory=dict["tuple[int, int]", "tuple[Shape, Origin]"]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A move, and the plan that it is of: new where the reviewed one does not list its place."""

    diff: MigrationDiff
    plan: PlacementPlan
    new_plan: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A job that moves.  `why`: what happened, where that is the reason."""

    case: Case
    judged: Judged
    shape: Shape
    seen: Seen
    reviewed: PlacementPlan
    workload: Workload
    ledger: Ledger
    why: str


def propose(d: Decided, ground: Ground) -> Proposal | None:
    """The diff of a job that moves; None where the ranker gives it none of these places after all, by its budgets in total."""
    case, judged, shape, seen, reviewed = d.case, d.judged, d.shape, d.seen, d.reviewed
    assert judged.reason is not None  # noqa: S101 - it moves
    names = [shape.names[i] for i in judged.to]
    ready = {shape.names[i] for i in judged.to if case.prepared[i]}
    if names[0] in ready:
        names = [n for n in names if n in ready]
    in_plan = names[0] in case.reviewed
    # ranking anew and giving ids costs fifty times the decision: only where there is something to review
    plan = reviewed if in_plan else _ranked_anew(d, ground, names)
    listed = {p.offer_id: p for p in plan.ranked}
    places = {shape.names[i]: i for i in judged.to}
    to = tuple(_with_figures(listed[n], d, places[n], ground) for n in names if n in listed)
    if not to:
        return None
    plan_digest = plan.digest
    stop = judged.stop_hours[judged.to[0]] * 60
    standing = _standing(case, shape, seen)
    added, removed = _grants(d, to[0], plan, ground)
    diff = MigrationDiff(
        job=case.job,
        project=ground.read.project.name,
        reason=judged.reason,
        code=judged.code,
        text=diff_text(judged, case, shape, d.why),
        standing=standing,
        to=to,
        terms=judged.terms,
        numbers={name: usd(value) for name, value in judged.numbers.items()},
        runner_up=place_words(shape.names[judged.runner_up], judged, shape, judged.runner_up)
        if judged.runner_up is not None
        else "",
        stop_minutes=Decimal(round(float(stop) * 10_000)).scaleb(-4),
        steps=steps_of(
            judged.reason,
            old=seen.run.id,
            new=f"{to[0].nodes} x {to[0].instance_type} {to[0].capacity.replace('_', '-')} in {to[0].zone or to[0].region}",
            minutes=_minutes(case, judged, shape),
        ),
        plan_digest=plan_digest,
        reviewed=in_plan,
        prepared=names[0] in ready,
        resources_added=_added(to[0], plan, d.workload, ground),
        resources_removed=_removed(seen.run, ground.stacks),
        grants_added=added,
        grants_removed=removed,
        inputs={
            "as_of": ground.as_of,
            "market": ground.read.market.digest,
            "plan": plan_digest if in_plan else reviewed.digest,
            "record": ground.record_digest,
            "constants": rule_digest(ground.rule),
            "work_left": case.left.words,
            "counted_by": case.left.counted,
        },
    )
    return Proposal(diff=diff, plan=plan, new_plan=not in_plan)


def rule_digest(rule: Rule) -> str:
    """Of every figure that the decision was made with."""
    return digest({name: getattr(rule, name) for name in rule.__slots__})


def _ranked_anew(d: Decided, ground: Ground, names: Sequence[str]) -> PlacementPlan:
    """The ranker's plan for the work that is left; the job in it is the whole job, as its file has it."""
    case, seen, workload, ledger = d.case, d.seen, d.workload, d.ledger
    market, project = ground.read.market, ground.read.project
    rest = remaining(workload, case)
    runs = case.reason not in {MigrationReason.RECOVERY, MigrationReason.INTERRUPTION}
    policy = Policy(
        project=project,
        memory=ground.memory,
        as_of=ground.as_of,
        standing={workload.name: Stands(offer_id=seen.run.offer_id)} if runs else {},
    )
    (placed,) = place([rest], market, ledger, policy, d.shape.offers)
    wanted = set(names)
    if names[0] not in {p.offer_id for p in placed.ranked}:
        (placed,) = place([rest], market, ledger, replace(policy, top=ALL), d.shape.offers)
    first = [p for p in placed.ranked if p.offer_id in wanted]
    others = [p for p in placed.ranked if p.offer_id not in wanted][: max(0, RANKED - len(first))]
    kept = sorted((*first, *others), key=lambda p: p.rank)
    ranked = tuple(replace(p, rank=k) for k, p in enumerate(kept))
    whole = replace(placed, workload=workload, ranked=ranked)
    plan = complete(whole, ledger, ground.read, policy, d.reviewed.inputs["job"]["file"])
    left = {"run": seen.run.id, "work_hours": f"{case.left.work_hours:.4f}", "step": seen.step}
    note = f"ranked for the {case.left.work_hours:.2f} h of work that are left of {seen.run.id}: {case.left.words}"
    return replace(plan, inputs={**plan.inputs, "remaining": left}, notes=(note, *plan.notes))


def remaining(workload: Workload, case: Case) -> Workload:
    """The job less what is done.  Its deadline is the decision's: a place that misses it may still be the best there is."""
    share = case.left.work_hours / workload.work.hours
    data = tuple(d if d.copy_to else replace(d, reads=d.reads * share) for d in workload.data)
    limits = replace(workload.constraints, deadline_hours=None, max_usd_total=None, stop_after_hours=None)
    work = replace(workload.work, hours=case.left.work_hours)
    # whether its gang comes together was decided when the job first got a place
    return replace(workload, work=work, data=data, constraints=limits, gang=None)


def _with_figures(listed: Placement, d: Decided, at: int, ground: Ground) -> Placement:
    """The plan's own placement, priced as of now, and with what the rest of the work costs there, the way to it included."""
    shape = d.shape
    i = int(shape.at[at])
    if i >= 0:  # where a price comes from, and what is wrong with it, is today's market's to say
        as_of, source, said = _origin(shape, i, ground)
        kept = [c for c in listed.caveats if not c.code.startswith(OF_THE_MARKET)]
        listed = replace(listed, price_as_of=as_of, price_source=source, caveats=tuple(sorted({*kept, *said})))
    terms = tuple(replace(t, usd=-t.usd if t.usd is not None else None) for t in d.judged.terms_to(at))
    hours = d.judged.numbers["work_hours"] / float(shape.work_rate[at])
    hourly = usd(float(shape.price_usd_per_hour[at]))
    return replace(
        listed,
        node_usd_per_hour=usd(float(shape.price_usd_per_hour[at]) / listed.nodes),
        usd_per_hour=hourly,
        total_usd=sum((t.usd for t in terms if t.usd is not None), Decimal(0)),
        lower_bound=any(t.usd is None for t in terms),
        compute_hours=usd(hours),
        finish_hours=usd(hours + float(d.judged.options.stop_hours[at])),
        terms=terms,
    )


def _origin(shape: Shape, i: int, ground: Ground) -> Origin:
    """Of an offer: as of when its price is, from where, and what is wrong with it.  The same for all jobs of a shape."""
    key = (id(shape), i)
    if key not in ground.origins:
        today = bound(shape.offers, i, 1)
        said = tuple(c for c in caveats(shape.offers, shape.workload, i) if c.code.startswith(OF_THE_MARKET))
        # the shape itself is kept, so that no other one comes to have its number
        ground.origins[key] = (shape, (today.price_as_of, today.price_source, said))
    return ground.origins[key][1]


def _standing(case: Case, shape: Shape, seen: Seen) -> Standing:
    run, r = seen.run, case.running
    hours = case.left.work_hours / float(shape.work_rate[r])
    return Standing(
        generation=run.generation,
        offer_id=run.offer_id,
        pool=run.pool,
        placement_id=run.placement_id,
        region=run.region,
        topology=shape.topology[r],
        status=run.status.value,
        usd_per_hour=usd(float(shape.price_usd_per_hour[r])),
        remaining_usd=usd(hours * float(shape.usd_per_hour[r])),
        remaining_hours=usd(hours),
        step=seen.step,
        checkpoint_step=seen.checkpoint.step if seen.checkpoint else None,
        checkpoint_uri=seen.checkpoint.uri if seen.checkpoint else "",
    )


def _grants(
    d: Decided, to: Placement, plan: PlacementPlan, ground: Ground
) -> tuple[tuple[Grant, ...], tuple[Grant, ...]]:
    """Of the nodes: what the new ones may do beyond the old ones, and what they may not any more."""
    run, reviewed = d.seen.run, d.reviewed
    new = set(plan.grants.get(to.grants_digest, ()))
    digests = {p.offer_id: p.grants_digest for p in reviewed.ranked}
    old = set(reviewed.grants.get(digests.get(run.offer_id, ""), ()))
    if run.offer_id not in digests:
        here = replace(to, cloud=run.cloud, target=run.target, region=run.region, zone=run.zone, parts=())
        old = set(placement_grants(d.workload, here, ground.read.project))
    return tuple(sorted(new - old)), tuple(sorted(old - new))


def _added(to: Placement, plan: PlacementPlan, workload: Workload, ground: Ground) -> tuple[str, ...]:
    """Addresses of what the new compute stack makes; just the stack where nobody can write it out."""
    if ground.synth is None:
        return tuple(
            f"{compose.compute_name(workload.name, 'N', piece.cloud if to.parts else '')}: {piece.nodes} nodes"
            for piece in to.pieces
        )
    sets = compose.stack_sets(plan.ranked, to, workload, ground.read.project, ground.read.market, generation=None)
    out: list[str] = []
    for stacks in sets:
        part = stacks.compute.cloud.value if stacks.compute.tunnel else ""
        name = compose.compute_name(workload.name, "N", part)
        out += _addresses(name, ground.synth(stacks.compute)) or [f"{name}: {stacks.compute.nodes} nodes"]
    return tuple(out)


def _removed(run: Run, stacks: Mapping[tuple[str, int], Sequence[Stack]]) -> tuple[str, ...]:
    return tuple(
        address for s in stacks.get((run.job, run.generation), ()) for address in _addresses(s.name, s.document)
    )


def _addresses(stack: str, document: Mapping[str, Any]) -> list[str]:
    found: Mapping[str, Mapping[str, Any]] = document.get("resource", {})
    return [f"{stack}: {kind}.{name}" for kind in sorted(found) for name in sorted(found[kind])]


def _minutes(case: Case, judged: Judged, shape: Shape) -> dict[str, Decimal]:
    """What each step is expected to take."""
    i = judged.to[0]
    up = shape.acquire_hours[i] + shape.setup_hours[i] + shape.pull_hours[i] + shape.copy_hours[i]
    found = {
        "ask": 0.0,
        "launch": float(up),
        "save": float(shape.write_hours[case.running]),
        "release": 0.0,
        "resume": float(shape.load_hours[i]) + 1 / 60,
        "retire": 3 / 60,
    }
    return {key: Decimal(round(value * 60 * 10_000)).scaleb(-4) for key, value in found.items()}


def drifted(run: Run, plan: PlacementPlan, workload: Workload, shape: Shape, ground: Ground) -> str:
    """Why what runs is not what the reviewed plan says of its offer; "" where it is, or where the market has lost the offer."""
    listed = next((p for p in plan.ranked if p.offer_id == run.offer_id), None)
    if listed is not None:
        wanted = listed.placement_id
    else:
        at = position(shape.offers, run.offer_id)
        if at is None or run.nodes != workload.resources.nodes:
            return (
                ""
                if run.nodes == workload.resources.nodes
                else f"{run.nodes} nodes run, the plan has {workload.resources.nodes}"
            )
        here = replace(bound(shape.offers, at, run.nodes), addresses=run.addresses)
        wanted = compose.placement_id(workload, here, ground.read.project, ground.read.market)
    return (
        "" if wanted == run.placement_id else f"{run.id} is {run.placement_id}, the reviewed plan makes {wanted} there"
    )
