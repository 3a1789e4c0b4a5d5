"""Room for a job that found none: others move up, one into the next one's place, until the last finds an empty one.

Looks for the shortest such chain (breadth first), through pools; whether the other rows have room too is seen when the chain is laid.  What it could not do it
cannot do later either, as room only shrinks while turns go round; so a kind that it failed for is not looked at again.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from planner.placement.assign.board import NOWHERE
from planner.placement.assign.rows import PLENTY

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.placement.assign.board import Board
    from planner.placement.assign.kinds import Kind

CANDIDATES = 256
"""Places of a job whose holders are asked to move: the cheapest that could serve it at all."""
ASKED = 1000
"""Jobs asked to move for one that has no place."""


def lacking(board: Board, kind: Kind) -> tuple[int, int] | None:
    """The row other than a pool that bars the kind from every candidate, and how much of it is lacking at least; None where there is none."""
    if not len(kind.first):
        return None
    for column in kind.columns[1:]:
        rows, amounts = column.rows[kind.first], column.amounts[kind.first]
        row, least = int(rows[0]), int(amounts.min())
        if least > max(int(board.free[row]), 0) and (rows == row).all():
            return row, least - max(int(board.free[row]), 0)
    return None


class Rescue:
    """For one pass over a board.  `last` is what is tried where nobody can move up; `still` are jobs that stay where they are."""

    def __init__(self, board: Board, last: Callable[[int], bool], still: frozenset[int] = frozenset()) -> None:
        self._board, self._last, self._still = board, last, still
        self._hopeless: set[int] = set()
        self._lacking: dict[int, int] = {}
        self._undone = board.undone

    def __call__(self, job: int) -> bool:
        """Whether the job has a place now."""
        board, kind = self._board, self._board.kinds[job]
        if board.undone != self._undone:
            self._hopeless.clear()
            self._lacking.clear()
            self._undone = board.undone
        if kind.number in self._hopeless:
            return False
        lack = lacking(board, kind)
        vain = lack is not None and lack[1] >= self._lacking.get(lack[0], PLENTY)
        if not vain and self._move_up(job):
            return True
        if self._last(job):
            return True
        if lack is not None and not vain:
            self._lacking[lack[0]] = lack[1]
        self._hopeless.add(kind.number)
        return False

    def _move_up(self, job: int) -> bool:
        board, lying = self._board, self._lying()
        queue, asked, pools = deque([job]), {job: (job, NOWHERE)}, set[int]()
        while queue and len(asked) < ASKED:
            mover = queue.popleft()
            kind = board.kinds[mover]
            if mover != job and (away := self._away(mover)) != NOWHERE and self._lay(job, mover, away, asked):
                return True
            rows, amounts = kind.columns[0].rows, kind.columns[0].amounts
            for position in kind.first[:CANDIDATES].tolist():
                pool = int(rows[position])
                if pool in pools:
                    continue
                pools.add(pool)
                kinds: set[tuple[int, int]] = set()
                for other in lying.get(pool, ()):
                    theirs, at = board.kinds[other], board.at[other]
                    leaves = int(theirs.columns[0].amounts[at]) + max(int(board.free[pool]), 0)
                    if other in asked or (theirs.number, at) in kinds or leaves < int(amounts[position]):
                        continue
                    kinds.add((theirs.number, at))
                    asked[other] = (mover, position)
                    queue.append(other)
        return False

    def _away(self, mover: int) -> int:
        """Its best place with room in another pool than its own, which is to be left."""
        board, kind = self._board, self._board.kinds[mover]
        rows = kind.columns[0].rows
        found, own = board.first(kind), rows[board.at[mover]]
        while found != NOWHERE and rows[found] == own:
            found = board.first_from(kind, found + 1, len(kind))
        return found

    def _lay(self, job: int, mover: int, away: int, asked: dict[int, tuple[int, int]]) -> bool:
        """Let `mover` go `away`, whoever asked it take its place, and so on up to `job`."""
        board = self._board
        chain = [(mover, away)]
        while mover != job:
            mover, position = asked[mover]
            chain.append((mover, position))
        if not self._holds(chain):
            return False
        before, free = list(board.at), board.free.copy()
        for one, _ in chain[:-1]:
            board.give(one)
        for one, position in chain:
            if not board.fits(board.kinds[one], position):
                board.become(before, free)
                return False
            board.take(one, position)
        return True

    def _holds(self, chain: list[tuple[int, int]]) -> bool:
        """Whether the board has room for all of the chain where it is to lie, without a change of the board: most have not where budgets bind."""
        board, left = self._board, dict[int, int]()
        for one, _ in chain[:-1]:
            for column in board.kinds[one].columns:
                row = int(column.rows[board.at[one]])
                left[row] = left.get(row, int(board.free[row])) + int(column.amounts[board.at[one]])
        for one, position in chain:
            columns = board.kinds[one].columns
            uses = [(int(column.rows[position]), int(column.amounts[position])) for column in columns]
            if any(amount > max(left.get(row, int(board.free[row])), 0) for row, amount in uses):
                return False
            for row, amount in uses:
                left[row] = left.get(row, int(board.free[row])) - amount
        return True

    def _lying(self) -> dict[int, list[int]]:
        """Jobs that may move, by pool, the least urgent first."""
        out: dict[int, list[int]] = {}
        for j in range(len(self._board.at) - 1, -1, -1):
            if (position := self._board.at[j]) != NOWHERE and j not in self._still:
                out.setdefault(int(self._board.kinds[j].columns[0].rows[position]), []).append(j)
        return out
