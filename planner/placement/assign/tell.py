"""The ranked sets and reasons of many jobs of a shape, without looking at every offer for every job.

Against all that everybody holds, the job itself among them, an offer's reasons are the same for every job of a kind: they are found once.  What the job's own
place frees changes few of them: offers of its pool, and those that a quota, a network, a budget or a group of its own kept out.  So each job is told by what
differs.  It says what `alone.context_of` says of the job against everybody else, only sooner.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.model.ledger import Ledger
from planner.model.plan import RejectedCount
from planner.placement.assign.board import NOWHERE
from planner.placement.cost import figure
from planner.placement.crowd import failure_bits, held_networks, held_nodes, pool_caps
from planner.placement.describe import placement
from planner.placement.explain import EXAMPLES, Context, bare_compute, nearness, told, words
from planner.placement.explain_own import Fund, apart_words, funds_words
from planner.placement.feasible import CODES, Reject
from planner.placement.networks import HeldNetworks, gpu_networks
from planner.placement.rank import Judged, Ranking, unusable_bits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.model.ledger import Holding
    from planner.model.plan import Placement
    from planner.placement.assign.board import Board
    from planner.placement.assign.call import Call
    from planner.placement.assign.kinds import Kind
    from planner.placement.assign.rows import Column

    Ints = NDArray[np.int64]
    Bits = NDArray[np.int32]

MARGIN = 13
"""Nearest examples kept beyond those that are told, for jobs whose own place takes some of them away."""


@dataclass(frozen=True, slots=True)
class Telling:
    """What there is to say of a job: as in `Placed`."""

    ranked: tuple[Placement, ...]
    rejected: tuple[RejectedCount, ...]
    notes: tuple[str, ...]


@dataclass(eq=False, slots=True)
class _Base:
    """Of one kind, against everything that is held.

    static    reasons that nobody's holdings change
    shared    those and what kinds of the same shape have in common
    bits      all of them
    dynamic   (reason, column over all offers, or over the scores) of those that holdings change
    barred    offers that such a reason keeps out
    alive     what is feasible, as positions in the scores, in order; `place` their order, by score
    """

    kind: Kind
    judged: Judged
    static: Bits
    shared: Bits
    bits: Bits
    dynamic: tuple[tuple[Reject, Column], ...]
    own: tuple[tuple[Reject, Column], ...]
    score_at: Ints
    barred: Ints
    alive: Ints
    place: Ints
    cheapest: tuple[float, int, int]
    bare: NDArray[np.float64]
    full: Ints
    near: NDArray[np.float64]
    counts: dict[Reject, int]
    nearest: dict[Reject, Ints]
    context: Context
    words: dict[tuple[int, Reject], str] = field(default_factory=dict[tuple[int, Reject], str])
    places: dict[tuple[int, int], Placement] = field(default_factory=dict[tuple[int, int], "Placement"])


class Teller:
    """Of one finished board.  Jobs are best asked about kind by kind."""

    def __init__(self, call: Call, board: Board, taken: Sequence[Holding]) -> None:
        self._call, self._board = call, board
        ground = call.ground
        self._everyone = Ledger(tuple(sorted((*call.ledger.holdings, *taken))))
        self._free = board.free.copy()
        self._held = held_nodes(ground.offers, self._everyone)
        self._networks = held_networks(ground.offers, self._everyone)
        self._out = failure_bits(ground.offers, ground.cool)
        self._groups: dict[str, list[Holding]] = {}
        for h in self._everyone.holdings:
            for group, _ in h.apart:
                self._groups.setdefault(group, []).append(h)
        self._regions: dict[tuple[str, str, str], set[str]] = {}
        for h in self._everyone.holdings:
            self._regions.setdefault((h.pool.partition(":")[0], h.target, h.region), set()).add(h.job)
        self._base: _Base | None = None
        self._same: dict[tuple[int, int, tuple[str, ...]], Telling] = {}

    def of(self, j: int) -> Telling:
        """What there is to say of job number `j`."""
        kind, at = self._board.kinds[j], self._board.at[j]
        # whom a job is apart from is told by name, and its own name is none of them
        key = (kind.number, at, (self._call.jobs[j].name,) if self._call.jobs[j].anti_affinity else ())
        if key not in self._same:
            self._same[key] = self._tell(j, self._of_kind(kind))
        return self._same[key]

    def _of_kind(self, kind: Kind) -> _Base:
        if self._base is None or self._base.kind is not kind:
            self._base = self._look(kind)
        return self._base

    def _look(self, kind: Kind) -> _Base:
        call, o, shape = self._call, self._call.ground.offers, kind.shape
        judged, scarce = call.catalogue.judged(shape), call.scarce
        s = judged.scores
        same = self._base if self._base is not None and self._base.kind.shape is shape else None
        if same is None:
            static = judged.bits | self._out
            if shape.unusable:
                static |= unusable_bits(o, shape.unusable)
            columns = scarce.columns(shape.workload, np.arange(len(o)))
            subjects = [Reject.POOL, *[Reject.QUOTA] * (len(columns) - 1 - scarce.has_networks), Reject.NETWORK]
            dynamic = tuple(zip(subjects, columns, strict=False))
            shared = static.copy()
            for reason, column in dynamic:
                shared |= self._over(column, reason)
            near = nearness(o, judged)
        else:
            static, dynamic, shared, near = same.static, same.dynamic, same.shared, same.near
        job = next(w for w, k in zip(call.jobs, call.kinds, strict=True) if k is kind)
        own = (
            *((Reject.FUNDS, c) for c in scarce.budget_columns(job, len(s.index), s.usd_per_hour, s.total)),
            *((Reject.APART, c) for c in scarce.apart_columns(job, s.index)),
        )
        score_at = np.full(len(o), -1, dtype=np.int64)
        score_at[s.index] = np.arange(len(s.index))
        bits = shared.copy()
        for reason, column in own:
            bits[s.index] |= self._over(column, reason)
        alive = judged.order[bits[s.index[judged.order]] == 0]
        place = np.empty(len(s.index), dtype=np.int64)
        place[judged.order] = np.arange(len(s.index))
        bare = bare_compute(o, judged)
        first = alive[np.lexsort((s.index[alive], bare[alive]))[:1]]
        counts, nearest = dict[Reject, int](), dict[Reject, "Ints"]()
        main = bits & -bits
        for reason in Reject:
            hit = np.flatnonzero(main == reason)
            counts[reason] = len(hit)
            nearest[reason] = _few(hit, near, EXAMPLES + MARGIN)
        default = int(figure(o.market, "default_pool_cap_nodes"))
        ranking = Ranking(
            judged=judged,
            bits=bits,
            best=s.index[:0],
            at=judged.order[:0],
            feasible=len(alive),
            held=self._held,
            caps=pool_caps(o, call.ground.project.pool_cap_nodes, default, shape.workload.resources.nodes),
            networks=self._networks,
            unusable=shape.unusable or {},
        )
        return _Base(
            kind=kind,
            judged=judged,
            static=static,
            shared=shared,
            bits=bits,
            dynamic=dynamic,
            own=own,
            score_at=score_at,
            barred=np.flatnonzero(bits & ~static),
            alive=alive,
            place=place,
            cheapest=(float(bare[first[0]]), int(s.index[first[0]]), int(first[0])) if len(first) else (np.inf, 0, -1),
            bare=bare,
            full=np.sort(s.total[bits[s.index] == Reject.POOL]),
            near=near,
            counts=counts,
            nearest=nearest,
            context=Context(
                offers=o,
                workload=job,
                ranking=ranking,
                cool=call.ground.cool,
                ledger=self._everyone,
                project=call.ground.project,
            ),
            places={} if same is None else same.places,
        )

    def _over(self, column: Column, reason: Reject, at: Ints | slice = slice(None)) -> Bits:
        over = column.amounts[at] > np.maximum(self._free[column.rows[at]], 0)
        return over * np.int32(reason)

    def _tell(self, j: int, base: _Base) -> Telling:
        at = self._board.at[j]
        if at == NOWHERE:
            none = np.zeros(0, dtype=np.int64)
            return Telling((), self._rejected(j, base, none, none.astype(np.int32), NOWHERE), ())
        i = int(base.kind.shape.index[at])
        choice = int(base.score_at[i])
        changed, now = self._freed(base, i, choice)
        s, ground = base.judged.scores, self._call.ground
        fresh = base.score_at[changed[now == 0]]
        few = np.concatenate([base.alive[: ground.top + 1], fresh])
        few = few[np.argsort(base.place[few])]
        few = np.concatenate([np.array([choice]), few[few != choice]])[: ground.top]
        ranked = tuple(self._placement(base, int(p), rank) for rank, p in enumerate(few.tolist()))
        cheapest = min(
            base.cheapest, *((float(base.bare[p]), int(s.index[p]), int(p)) for p in fresh.tolist()), (np.inf, 0, -1)
        )
        total = s.total[choice]
        pool, where = int(Reject.POOL), base.score_at[changed]
        nearer = (where >= 0) & (s.total[where] < total)
        ahead = int(np.searchsorted(base.full, int(total), side="left"))
        ahead += int(((now == pool) & nearer).sum()) - int(((base.bits[changed] == pool) & nearer).sum())
        notes = told(
            ground.offers,
            base.judged,
            ranked,
            first=choice,
            cheapest=cheapest[2],
            ahead=ahead,
            feasible=len(base.alive) + len(fresh),
        )
        return Telling(ranked, self._rejected(j, base, changed, now, i), notes)

    def _freed(self, base: _Base, i: int, choice: int) -> tuple[Ints, Bits]:
        """Offers whose reasons change as the job's own place on offer `i` is its own, and their reasons then."""
        free, scored = self._free, base.score_at[base.barred]
        hit = np.zeros(len(base.barred), dtype=bool)
        mine: list[tuple[int, int]] = []
        for _, column in base.dynamic:
            mine.append((int(column.rows[i]), int(column.amounts[i])))
            hit |= column.rows[base.barred] == column.rows[i]
        for _, column in base.own:
            mine.append((int(column.rows[choice]), int(column.amounts[choice])))
            hit |= (scored >= 0) & (column.rows[scored] == column.rows[choice])
        for row, amount in mine:
            free[row] += amount
        at = base.barred[hit]
        now = base.static[at].copy()
        for reason, column in base.dynamic:
            now |= self._over(column, reason, at)
        where = base.score_at[at]
        for reason, column in base.own:
            now |= np.where(where >= 0, self._over(column, reason, where), 0).astype(np.int32)
        for row, amount in mine:
            free[row] -= amount
        differ = now != base.bits[at]
        return at[differ], now[differ]

    def _placement(self, base: _Base, p: int, rank: int) -> Placement:
        key = (p, rank)
        found = base.places.get(key)
        if found is None:
            same = next((base.places[p, r] for r in (rank - 1, rank + 1, 0) if (p, r) in base.places), None)
            found = (
                replace(same, rank=rank)
                if same is not None
                else placement(self._call.ground.offers, base.kind.shape.workload, base.judged, p, rank=rank)
            )
            base.places[key] = found
        return found

    def _rejected(self, j: int, base: _Base, changed: Ints, now: Bits, i: int) -> tuple[RejectedCount, ...]:
        counts = dict(base.counts)
        was, then = base.bits[changed] & -base.bits[changed], now & -now
        moved = was != then
        gone, come = dict[Reject, set[int]](), dict[Reject, list[int]]()
        for offer, a, b in zip(changed[moved].tolist(), was[moved].tolist(), then[moved].tolist(), strict=True):
            counts[Reject(a)] -= 1
            gone.setdefault(Reject(a), set()).add(offer)
            if b:
                counts[Reject(b)] += 1
                come.setdefault(Reject(b), []).append(offer)
        out: list[RejectedCount] = []
        offers = self._call.ground.offers
        for reason, count in counts.items():
            if not count:
                continue
            near = base.nearest[reason]
            left = [int(x) for x in near if x not in gone.get(reason, ())]
            if len(left) < EXAMPLES and len(near) < base.counts[reason]:
                # more than the margin went: look at all of them
                hit = np.flatnonzero((base.bits & -base.bits) == reason)
                left = _few(hit[~np.isin(hit, list(gone.get(reason, ())))], base.near, EXAMPLES).tolist()
            few = _few(np.array([*left[:EXAMPLES], *come.get(reason, ())], dtype=np.int64), base.near, EXAMPLES)
            examples = tuple(f"{offers.offer_id(x)}: {self._words(j, base, x, reason, i)}" for x in few.tolist())
            out.append(RejectedCount(code=CODES[reason], count=count, examples=examples))
        return tuple(sorted(out, key=lambda r: r.code))

    def _words(self, j: int, base: _Base, x: int, reason: Reject, i: int) -> str:
        o, job = self._call.ground.offers, self._call.jobs[j]
        if reason is Reject.FUNDS:
            s, p = base.judged.scores, int(base.score_at[x])
            return funds_words(self._funds(base, i), int(s.usd_per_hour[p]), int(s.total[p]))
        if reason is Reject.APART:
            others = [h for a in job.anti_affinity for h in self._groups.get(a.group, ()) if h.job != job.name]
            return apart_words(o, job, Ledger(tuple(sorted(set(others)))), x)
        if reason is Reject.NETWORK and i != NOWHERE:
            same = (o.target_ix[i], o.region_ix[i]) == (o.target_ix[x], o.region_ix[x])
            if same:
                return words(replace(base.context, ranking=self._less(base.context.ranking, job.name, i)), x, reason)
        key = (x, reason)
        if key not in base.words:
            base.words[key] = words(base.context, x, reason)
        return base.words[key]

    def _funds(self, base: _Base, i: int) -> list[Fund]:
        """What others have taken of the budgets that the kind counts to."""
        out: list[Fund] = []
        p = int(base.score_at[i]) if i != NOWHERE else NOWHERE
        for reason, column in base.own:
            if reason is Reject.FUNDS and len(column.rows):
                row = int(column.rows[0])
                budget, unit = self._call.scarce.budget_at(row)
                cap, mine = int(self._call.scarce.caps[row]), int(column.amounts[p]) if p != NOWHERE else 0
                out.append(Fund(budget.teams, unit == "hour", cap, cap - int(self._free[row]) - mine))
        return out

    def _less(self, ranking: Ranking, name: str, i: int) -> Ranking:
        """With networks as others hold them."""
        o, held = self._call.ground.offers, ranking.networks
        k, region = int(o.target_ix[i]), int(o.region_ix[i])
        stands, gpu = held.stands.copy(), held.gpu.copy()
        target = o.targets[k]
        there = self._regions[target.cloud.value, target.name, o.region(i).name]
        stands[k, region] = bool(there - {name})
        nodes = self._call.jobs[next(n for n, w in enumerate(self._call.jobs) if w.name == name)].resources.nodes
        gpu[k, region] -= gpu_networks(o.kind(i), nodes)
        return replace(ranking, networks=HeldNetworks(stands=stands, gpu=gpu))


def _few(hit: Ints, near: NDArray[np.float64], many: int) -> Ints:
    """The nearest few of `hit`, by position where equally near."""
    if len(hit) > many:
        edge = np.partition(near[hit], many - 1)[many - 1]
        hit = hit[near[hit] <= edge]
    return hit[np.lexsort((hit, near[hit]))[:many]]
