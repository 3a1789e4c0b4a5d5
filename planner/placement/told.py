"""From an assignment to outcomes: the ranked sets, the reasons, who waits and who stays, and the whole's figures.

Decides no place; only the order in which a job's fallbacks are told: its choice first, then price, finish, offer, against all that everybody else holds.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING

from planner.model.fleet import BudgetUse, FleetSummary, Kept, PoolUse, Waiting
from planner.model.ledger import Ledger
from planner.placement.alone import context_of, ranked
from planner.placement.assign.board import NOWHERE
from planner.placement.assign.call import Call, gangs
from planner.placement.assign.keep import WORTH, with_earlier
from planner.placement.assign.kinds import Catalogue, with_stores
from planner.placement.assign.relax import quiet
from planner.placement.assign.rows import Scarce, covers
from planner.placement.assign.solve import solve
from planner.placement.assign.tell import Teller
from planner.placement.assign.wait import Waits
from planner.placement.cost import TICKS_PER_USD
from planner.placement.crowd import pool_limits
from planner.placement.describe import money
from planner.placement.explain import notes, rejected_counts
from planner.placement.held import holdings, ledger_digest
from planner.placement.placed import Fleet, Placed
from planner.placement.rank import judge
from planner.placement.split import may_split
from planner.placement.split_words import split_notes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType

    from planner.model.ledger import Holding
    from planner.model.plan import Placement
    from planner.model.workload import Workload
    from planner.placement.alone import Ground
    from planner.placement.assign.board import Board
    from planner.placement.assign.keep import Stayed
    from planner.placement.assign.kinds import Stored
    from planner.placement.assign.solve import Solved
    from planner.placement.explain import Context
    from planner.placement.rank import Judged

ONE_BY_ONE = "one by one"


def solver() -> ModuleType | None:
    """HiGHS, where it is installed (extra `fleet`)."""
    try:
        import highspy  # noqa: PLC0415 - heavy, and only for jobs that contend
    except ImportError:
        return None
    return highspy


def version(highspy: ModuleType) -> str:
    """`HiGHS 1.16.0`."""
    return f"HiGHS {quiet(highspy).version()}"


def alone(ground: Ground, job: Workload, ledger: Ledger) -> Fleet:
    """A fleet of one: nobody of the call is in its way, so it has its best place."""
    judged = judge(ground.offers, job)
    context = context_of(ground, job, judged, ledger)
    found, waiting = ranked(context, ground.top), None
    # what runs has its place, whoever of its gang does
    group = job.gang.group if job.gang and job.name not in ground.standing else ""
    gang = gangs([job], ledger, frozenset()).get(group)
    together = gang is None or gang.needs <= 1
    if not found or not together:
        scarce = Scarce(ground.offers, ground.project, ledger, job.anti_affinity)
        kind = Catalogue(ground.offers, scarce, ground.cool, ground.unusable).kind(job)
        if len(kind.first) or could_be_split(ground, job, lambda: judged):
            waits = Waits(scarce, scarce.free, ledger.holdings, {})
            waiting = waits.of(job, kind, None if together else gang, len(found[:1]))
            found = ()
    placed = _placed(
        context, found, waiting=waiting, ledger=ledger, digest=ledger_digest(ledger), recall=lambda: context
    )
    return Fleet(placed=(placed,), summary=_summary([placed], None, ONE_BY_ONE, ledger, ground))


def _placed(
    context: Context,
    found: tuple[Placement, ...],
    *,
    waiting: Waiting | None,
    ledger: Ledger,
    digest: str,
    recall: Callable[[], Context],
) -> Placed:
    said: tuple[str, ...] = ()  # of places that its gang keeps it from there is nothing to say
    if waiting is None or not ranked(context, 1):
        said = (
            split_notes(context, found)
            if may_split(context.workload)
            else notes(context.offers, context.ranking, found)
        )
    return Placed(
        workload=context.workload,
        ranked=found,
        rejected=rejected_counts(context),
        notes=(*said, *([f"waits: {waiting.text}"] if waiting else ())),
        ledger=ledger,
        ledger_digest=digest,
        recall=recall,
        waiting=waiting,
    )


def together(
    ground: Ground,
    jobs: Sequence[Workload],
    ledger: Ledger,
    earlier: Mapping[str, str],
    advance: Callable[[], object] | None = None,
) -> Fleet:
    """A fleet of several, sorted by (-priority, name)."""
    call, solved, stayed = assigned(ground, jobs, ledger, earlier)
    board = solved.board
    for j in sorted(call.apart):
        if j in board.alone or jobs[j].gang is None:  # who waits for its gang gets no place without it
            call.choose(j, board)
    if call.apart:
        call.fill(board)
    taken = call.taken(board)
    everyone = Ledger(tuple(sorted((*ledger.holdings, *taken))))
    digest = ledger_digest(everyone)
    kept = {s.job: _kept(call, s) for s in stayed}
    waiting = _waiting(call, board, everyone)
    teller = Teller(call, board, taken)
    name = _method(solved)
    out: dict[int, Placed] = {}
    stored: Stored = {}
    for j in sorted(range(len(jobs)), key=lambda n: (call.kinds[n].shape.number, call.kinds[n].number, n)):
        recall = _recall(call, j, board, everyone)
        if j in call.apart:
            context = recall()
            found = () if j in waiting else ranked(context, ground.top)
            one = _placed(context, found, waiting=waiting.get(j), ledger=ledger, digest=digest, recall=recall)
        else:
            told = teller.of(j)
            one = Placed(
                workload=jobs[j],
                ranked=with_stores(told.ranked, jobs[j], stored),
                rejected=told.rejected,
                notes=(*told.notes, *_notes(call, solved, j, kept.get(j), waiting.get(j), name)),
                ledger=ledger,
                ledger_digest=digest,
                recall=recall,
                waiting=waiting.get(j),
                kept=kept.get(j),
            )
        out[j] = one
        if advance is not None:
            advance()
    placed = [out[j] for j in range(len(jobs))]
    return Fleet(placed=tuple(placed), summary=_summary(placed, solved, name, ledger, ground, taken))


def assigned(
    ground: Ground, jobs: Sequence[Workload], ledger: Ledger, earlier: Mapping[str, str]
) -> tuple[Call, Solved, tuple[Stayed, ...]]:
    """The assignment alone, without a word about it."""
    call = Call(ground, jobs, ledger, lambda p, job: holdings(p, ground.offers.market, workload=job))
    solved, stayed = solve(call.task, solver), ()
    if earlier:
        solved, stayed = with_earlier(call.task, solved, call.earlier(earlier), solver)
    return call, solved, stayed


def _recall(call: Call, j: int, board: Board, everyone: Ledger) -> Callable[[], Context]:
    job, at = call.jobs[j], board.at[j]
    choice = None if at == NOWHERE else int(call.kinds[j].shape.index[at])
    return lambda: context_of(
        call.ground, job, call.catalogue.judged(call.kinds[j].shape), everyone.without(frozenset({job.name})), choice
    )


def _method(solved: Solved) -> str:
    """Who found the assignment."""
    changed = any(
        now != then and j not in solved.stays
        for j, (now, then) in enumerate(zip(solved.board.at, solved.greedy.at, strict=True))
    )
    highspy = solver() if changed and solved.contended else None
    return version(highspy) if highspy is not None else ONE_BY_ONE


def could_be_split(ground: Ground, job: Workload, judged: Callable[[], Judged]) -> bool:
    """Whether parts in several clouds could serve it where nobody holds anything."""
    return may_split(job) and bool(ranked(context_of(ground, job, judged(), Ledger()), 1))


def _kept(call: Call, stayed: Stayed) -> Kept:
    offers, kind = call.ground.offers, call.kinds[stayed.job]
    return Kept(
        job=call.jobs[stayed.job].name,
        offer_id=offers.offer_id(int(kind.shape.index[stayed.at])),
        better_offer_id=offers.offer_id(int(kind.shape.index[stayed.better])),
        saving_usd=money(stayed.saving),
    )


def _waiting(call: Call, board: Board, everyone: Ledger) -> dict[int, Waiting]:
    waits: Waits | None = None
    out: dict[int, Waiting] = {}
    placed = {j for j, at in enumerate(board.at) if at != NOWHERE or j in board.alone}
    there = Counter(w.gang.group for j in placed if (w := call.jobs[j]).gang and w.name not in call.ground.standing)
    for j, job in enumerate(call.jobs):
        kind = call.kinds[j]
        if j in placed or not (
            len(kind.first) or could_be_split(call.ground, job, lambda k=kind: call.catalogue.judged(k.shape))
        ):
            continue
        waits = waits or Waits(call.scarce, board.free, everyone.holdings, {w.name: w.priority for w in call.jobs})
        gang = call.task.gangs.get(job.gang.group) if job.gang else None
        if gang is not None and there[gang.group] >= gang.needs:
            gang = None  # the gang has its places; this one found none for itself
        out[j] = waits.of(job, kind, gang, call.task.room.get(gang.group, 0) if gang else 0)
    return out


def _notes(  # noqa: PLR0917 - all that is known of it
    call: Call, solved: Solved, j: int, kept: Kept | None, waiting: Waiting | None, method: str
) -> tuple[str, ...]:
    """What the assignment has to say of one job."""
    if waiting is not None:
        return (f"waits: {waiting.text}",)
    out: list[str] = []
    now, then = solved.board.at[j], solved.greedy.at[j]
    if kept is not None:
        out.append(
            f"stays where its earlier plan put it: {kept.better_offer_id} would save ${kept.saving_usd:.2f}, and a move must save {WORTH:.0%}"
        )
    elif now not in (then, NOWHERE) and method != ONE_BY_ONE and j not in solved.stays:
        offers, index = call.ground.offers, call.kinds[j].shape.index
        one = offers.offer_id(int(index[then])) if then != NOWHERE else "nowhere"
        out.append(f"placed together with the other jobs by {method}; one by one it would be {one}")
    elif method == ONE_BY_ONE and solved.contended and solver() is None and now != NOWHERE:
        out.append(
            "jobs contend for places; with the extra `fleet` skyplan looks for an assignment that costs less in all"
        )
    return tuple(out)


def _summary(  # noqa: PLR0917 - all that the whole is made of
    placed: Sequence[Placed],
    solved: Solved | None,
    method: str,
    ledger: Ledger,
    ground: Ground,
    taken: Sequence[Holding] | None = None,
) -> FleetSummary:
    found = [p for p in placed if p.ranked]
    total = sum((p.ranked[0].total_usd for p in found), Decimal(0))
    if taken is None:
        taken = [h for p in found for h in holdings(p.ranked[0], ground.offers.market, workload=p.workload)]
    one, bound = (solved.one_by_one, solved.bound) if solved else (None, None)
    alone = total if solved is None else None
    return FleetSummary(
        jobs=len(placed),
        placed=len(found),
        method=method,
        total_usd=total,
        one_by_one_usd=alone if one is None else money(one),
        # where jobs are placed by themselves it bounds the others only
        bound_usd=alone if bound is None or (solved and solved.board.alone) else money(bound),
        waiting=tuple(p.waiting for p in placed if p.waiting),
        kept=tuple(p.kept for p in placed if p.kept),
        pools=_pools(ground, ledger, taken),
        budgets=_budgets(ground, ledger, taken),
    )


def _pools(ground: Ground, ledger: Ledger, taken: Sequence[Holding]) -> tuple[PoolUse, ...]:
    planned, held = Counter[str](), Counter[str]()
    for h in taken:
        planned[h.pool] += h.nodes
    for h in ledger.holdings:
        held[h.pool] += h.nodes
    caps = pool_limits(ground.offers, ground.project)
    at = ground.offers.pool_index
    return tuple(
        PoolUse(pool=pool, held=held[pool], planned=nodes, cap=int(caps[at[pool]]))
        for pool, nodes in sorted(planned.items())
    )


def _budgets(ground: Ground, ledger: Ledger, taken: Sequence[Holding]) -> tuple[BudgetUse, ...]:
    out: list[BudgetUse] = []
    for budget in ground.project.budgets:
        for kind, limit in (("per_hour", budget.usd_per_hour), ("total", budget.usd_total)):
            if limit is None:
                continue
            held, planned = (
                sum(
                    h.usd_per_hour_ticks if kind == "per_hour" else h.usd_total_ticks
                    for h in part
                    if covers(budget, h.team)
                )
                for part in (ledger.holdings, taken)
            )
            use = BudgetUse(
                teams=budget.teams,
                kind=kind,
                held_usd=money(held),
                planned_usd=money(planned),
                limit_usd=money(round(limit * TICKS_PER_USD)),
            )
            out.append(use)
    return tuple(out)
