"""One by one: whose turn it is, and the best place that is left for it.

Higher priority first, then by name.  Where that leaves somebody waiting and several teams ask, the turns of a class go to the team with the fewest GPUs in
it so far (max-min fairness), inside a team by name: order decides, never size, so a large job has its turn before small ones have filled every pool.  A job
that finds no room is passed over; who was not is not moved off its place for it, only to another.  A gang has its turn with its first member: as many as it needs get places together, or none of it does.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from planner.placement.assign.board import NOWHERE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from planner.model.workload import Workload
    from planner.placement.assign.board import Board


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """Members in the order of turns; `needs` how many of them must be placed, less what the ledger holds already."""

    group: str
    members: tuple[int, ...]
    needs: int
    least: int


@dataclass(slots=True)
class Turns:
    """Jobs, sorted by (-priority, name), on a board.

    alone    places what is no job of the board (splits, and what runs already), at its turn; the GPUs it took, or None for a job of the board
    room     by gang that found too little: how many of it could have been placed
    rescue   what to try where the best place left is none; whether it placed the job
    """

    jobs: Sequence[Workload]
    board: Board
    gangs: dict[str, Gang]
    alone: Callable[[int], int | None]
    rescue: Callable[[int], bool] | None = None
    room: dict[str, int] = field(default_factory=dict[str, int])
    _settled: dict[str, bool] = field(default_factory=dict[str, bool])
    _gpus: dict[tuple[int, str], int] = field(default_factory=dict[tuple[int, str], int])
    _done: set[int] = field(default_factory=set[int])
    _barred: set[int] = field(default_factory=set[int])
    _now: Callable[[int], bool] | None = None

    def run(self, *, fair: bool) -> None:
        """Give every job its turn; where there is a rescue, who found nothing has another before the next class begins."""
        for _, found in groupby(range(len(self.jobs)), key=lambda j: self.jobs[j].priority):
            members = list(found)
            self._round(members, None, fair=fair)
            if self.rescue is not None and not self._done.issuperset(members):
                self._settled = {group: together for group, together in self._settled.items() if together}
                self._barred.clear()
                self._round(members, self.rescue, fair=fair)

    def _round(self, members: list[int], rescue: Callable[[int], bool] | None, *, fair: bool) -> None:
        self._now = rescue
        for job in self._fair(members) if fair else members:
            if job not in self._done and job not in self._barred:
                self._turn(job)

    def _fair(self, members: list[int]) -> Iterator[int]:
        queues: dict[str, deque[int]] = {}
        for j in members:
            queues.setdefault(self.jobs[j].team, deque()).append(j)
        heap = [(0, team) for team in sorted(queues)]
        heapq.heapify(heap)
        while heap:
            had, team = heapq.heappop(heap)
            now = self._gpus.get((self.jobs[members[0]].priority, team), 0)
            if now != had:  # a gang's turn gave it some
                heapq.heappush(heap, (now, team))
                continue
            yield queues[team].popleft()
            if queues[team]:
                heapq.heappush(heap, (self._gpus.get((self.jobs[members[0]].priority, team), 0), team))

    def _turn(self, job: int) -> None:
        gang = self.gangs.get(g.group) if (g := self.jobs[job].gang) else None
        if gang is None or gang.needs <= 0 or self._settled.get(gang.group):
            self._place(job)
        elif gang.group not in self._settled:
            self._settled[gang.group] = self._together(gang)
            if self._settled[gang.group] and job not in self._done:
                self._place(job)

    def _together(self, gang: Gang) -> bool:
        """As many as the gang needs, or nobody."""
        before, free, counted = list(self.board.at), self.board.free.copy(), dict(self._gpus)
        alone = dict(self.board.alone)
        placed = 0
        for j in gang.members:
            if placed == gang.needs:
                return True
            placed += self._place(j)
        if placed == gang.needs:
            return True
        self.board.back_to(before, free)
        self.board.alone = alone
        for j in gang.members:
            if self.board.at[j] != NOWHERE:
                self.board.give(j)  # it lay there from the start, and is of no use without the others
        self._gpus, self.room[gang.group] = counted, placed
        self._done.difference_update(gang.members)
        self._barred.update(gang.members)
        return False

    def _place(self, job: int) -> bool:
        gpus = self.alone(job)
        if gpus is None:
            kind = self.board.kinds[job]
            if self.board.at[job] == NOWHERE and not self._found(job):
                return False
            gpus = int(kind.shape.gpus[self.board.at[job]])
        self._done.add(job)
        key = (self.jobs[job].priority, self.jobs[job].team)
        self._gpus[key] = self._gpus.get(key, 0) + gpus
        return gpus > 0

    def _found(self, job: int) -> bool:
        found = self.board.first(self.board.kinds[job])
        if found != NOWHERE:
            self.board.take(job, found)
            return True
        return self._now is not None and self._now(job)
