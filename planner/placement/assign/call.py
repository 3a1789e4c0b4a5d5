"""One call's jobs and what they stand on, as a task for `solve`, and its answer as holdings.

Decides which jobs are placed by themselves: those that may lie in several clouds, and those that run already.  Their places are no candidates of a kind; each
is taken at its turn, against the ledger with everybody's choice so far, and is a fact to the solver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.ledger import Ledger
from planner.placement.alone import Ground, context_of, ranked
from planner.placement.assign.board import NOWHERE
from planner.placement.assign.check import wrong
from planner.placement.assign.kinds import Catalogue
from planner.placement.assign.rows import Scarce
from planner.placement.assign.solve import Task
from planner.placement.assign.turns import Gang
from planner.placement.held import holding
from planner.placement.split import may_split

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
        self.task = Task(
            jobs=jobs,
            kinds=self.kinds,
            free=self.scarce.free,
            gangs=gangs(jobs, ledger, self.apart),
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
        board.alone.pop(job, None)
        others = Ledger(tuple(sorted((*self.ledger.holdings, *self.taken(board)))))
        judged = self.catalogue.judged(self.kinds[job].shape)
        found = ranked(context_of(self.ground, self.jobs[job], judged, others), 1)
        if found:
            board.alone[job] = self._hold(found[0], self.jobs[job])

    def _alone(self, job: int, board: Board) -> tuple[Ints, int] | None:
        self.choose(job, board)
        found = board.alone.get(job)
        return (self.scarce.used_by(found), sum(h.gpus for h in found)) if found else None

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


def gangs(jobs: Sequence[Workload], ledger: Ledger, apart: frozenset[int]) -> dict[str, Gang]:
    """By group.  Members that the ledger holds, and those that are placed by themselves, count as there."""
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
        if j in apart:
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
