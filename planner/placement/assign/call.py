"""One call's jobs and what they stand on, as a task for `solve`, and its answer as holdings.

Decides which jobs are placed by themselves: those that may lie in several clouds, and those that run already.  Their places are no candidates of a kind; each
is taken at its turn, against the ledger with everybody's choice so far, and is a fact to the solver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.model.ledger import Ledger
from planner.placement.alone import Ground, context_of, ranked
from planner.placement.assign.board import NOWHERE
from planner.placement.assign.check import wrong
from planner.placement.assign.kinds import Catalogue
from planner.placement.assign.rows import Scarce
from planner.placement.assign.solve import Task
from planner.placement.assign.turns import Gang, Turns
from planner.placement.held import holding
from planner.placement.split import may_split
from planner.placement.standing import position

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from planner.model.ledger import Holding
    from planner.model.plan import Placement
    from planner.model.workload import Workload
    from planner.placement.assign.board import Board
    from planner.placement.assign.kinds import Ints


class Call:
    """`jobs` sorted by (-priority, name); `hold` makes holdings of a placement."""

    def __init__(
        self,
        ground: Ground,
        jobs: Sequence[Workload],
        ledger: Ledger,
        hold: Callable[[Placement, Workload], tuple[Holding, ...]],
    ) -> None:
        self.ground, self.jobs, self.ledger, self._hold = ground, jobs, ledger, hold
        offers = ground.offers
        self.scarce = Scarce(offers, ground.project, ledger, [a for j in jobs for a in j.anti_affinity])
        self.catalogue = Catalogue(offers, self.scarce, ground.cool, ground.unusable)
        self.kinds = self.catalogue.kinds(jobs)
        self.apart = frozenset(j for j, job in enumerate(jobs) if may_split(job) or job.name in ground.standing)
        self._stands = self._standing()
        held = [h for found in self._stands.values() for h in found]
        self.task = Task(
            jobs=jobs,
            kinds=self.kinds,
            free=self.scarce.free - self.scarce.used_by(held),
            gangs=gangs(jobs, ledger, frozenset(j for j in self.apart if jobs[j].name in ground.standing)),
            apart=self.apart,
            alone=self._alone,
            sound=lambda board: not wrong(offers, ground.project, ledger, self.taken(board)),
        )

    def taken(self, board: Board) -> list[Holding]:
        """What the call's jobs hold."""
        out = [h for found in board.alone.values() for h in found]
        for j, at in enumerate(board.at):
            if at != NOWHERE:
                out.append(holding(self.ground.offers, self.jobs[j], self.kinds[j], at))
        return out

    def choose(self, job: int, board: Board) -> None:
        """The best place of a job that is placed by itself, against all that everybody else holds; what it holds is on the board then."""
        board.spend(self._pick(job, board))

    def _pick(self, job: int, board: Board) -> Ints:
        """As `choose`, but what is free stays as it was.  How much more than before it uses; a job that runs used its place before."""
        before: tuple[Holding, ...] = board.alone.pop(job, self._stands.get(job, ()))
        running = [h for j, found in self._stands.items() if j != job and j not in board.alone for h in found]
        others = Ledger(tuple(sorted((*self.ledger.holdings, *self.taken(board), *running))))
        judged = self.catalogue.judged(self.kinds[job].shape)
        found = ranked(context_of(self.ground, self.jobs[job], judged, others), 1)
        if not found:
            return np.zeros_like(self.scarce.free) if job in self._stands else -self.scarce.used_by(before)
        board.alone[job] = self._hold(found[0], self.jobs[job])
        return self.scarce.used_by(board.alone[job]) - self.scarce.used_by(before)

    def _alone(self, job: int, board: Board) -> tuple[Ints, int] | None:
        more = self._pick(job, board)
        found = board.alone.get(job)
        return (more, sum(h.gpus for h in found)) if found else None

    def fill(self, board: Board) -> None:
        """Let who waits have what jobs that are placed by themselves have left."""

        def alone(job: int) -> int | None:
            return sum(h.gpus for h in board.alone.get(job, ())) if job in self.apart else None

        Turns(self.jobs, board, self.task.gangs, alone).run(fair=True)

    def _standing(self) -> dict[int, tuple[Holding, ...]]:
        """What jobs that run hold until their turn, where the market still has it."""
        out: dict[int, tuple[Holding, ...]] = {}
        for j in sorted(self.apart):
            stands = self.ground.standing.get(self.jobs[j].name)
            i = position(self.ground.offers, stands.offer_id) if stands else None
            if i is not None and len(at := np.flatnonzero(self.kinds[j].shape.index == i)):
                out[j] = (holding(self.ground.offers, self.jobs[j], self.kinds[j], int(at[0])),)
        return out

    def earlier(self, offers: Mapping[str, str]) -> dict[int, int]:
        """By job, the position of its earlier offer among its candidates, where it is one still."""
        if not offers:
            return {}
        wanted, o = set(offers.values()), self.ground.offers
        at = {name: i for i in range(len(o)) if (name := o.offer_id(i)) in wanted}
        out: dict[int, int] = {}
        places: dict[int, dict[int, int]] = {}
        for j, job in enumerate(self.jobs):
            i = at.get(offers.get(job.name, ""))
            if i is None or j in self.apart:
                continue
            shape = self.kinds[j].shape
            where = places.setdefault(shape.number, {x: p for p, x in enumerate(shape.index.tolist())})
            if i in where:
                out[j] = where[i]
        return out


def gangs(jobs: Sequence[Workload], ledger: Ledger, standing: frozenset[int]) -> dict[str, Gang]:
    """By group.  Members that the ledger holds, and those that run, count as there."""
    members: dict[str, list[int]] = {}
    least: dict[str, int] = {}
    there: dict[str, int] = {}
    held: dict[str, set[str]] = {}
    for h in ledger.holdings:
        if h.gang:
            held.setdefault(h.gang, set()).add(h.job)
    for j, job in enumerate(jobs):
        if job.gang is None:
            continue
        group = job.gang.group
        least[group] = max(least.get(group, 0), job.gang.least)
        members.setdefault(group, [])
        if j in standing:
            there[group] = there.get(group, 0) + 1
        else:
            members[group].append(j)
    return {
        group: Gang(
            group=group,
            members=tuple(found),
            needs=least[group] - there.get(group, 0) - len(held.get(group, ())),
            least=least[group],
        )
        for group, found in sorted(members.items())
    }
