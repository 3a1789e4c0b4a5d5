"""Room for a job that found none: one that lies where this one could moves to another place.

Looks one move deep, at the cheapest candidates of the job.  What it could not do it cannot do later either, as room only shrinks while turns go round;
so a kind that it failed for is not looked at again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.placement.assign.board import NOWHERE

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.placement.assign.board import Board

CANDIDATES = 64
"""Candidates whose holders are asked to move: the cheapest that could serve the job at all."""


class Rescue:
    """For one pass over a board.  `last` is what is tried where one move does not do."""

    def __init__(self, board: Board, last: Callable[[int], bool]) -> None:
        self._board, self._last = board, last
        self._hopeless: set[int] = set()
        self._undone = board.undone

    def __call__(self, job: int) -> bool:
        """Whether the job has a place now."""
        board, kind = self._board, self._board.kinds[job]
        if board.undone != self._undone:
            self._hopeless.clear()
            self._undone = board.undone
        if kind.number in self._hopeless:
            return False
        if self._one_moves(job) or self._last(job):
            return True
        self._hopeless.add(kind.number)
        return False

    def _one_moves(self, job: int) -> bool:
        board, kind = self._board, self._board.kinds[job]
        lying = self._lying()
        for position in kind.first[:CANDIDATES].tolist():
            tried: set[tuple[int, int]] = set()
            for other in lying.get(int(kind.columns[0].rows[position]), ()):
                theirs = board.kinds[other]
                where = board.at[other]
                if (theirs.number, where) in tried or board.first(theirs) == NOWHERE:
                    continue
                tried.add((theirs.number, where))
                board.give(other)
                if board.fits(kind, position):
                    board.take(job, position)
                    away = board.first(theirs)
                    if away != NOWHERE:
                        board.take(other, away)
                        return True
                    board.give(job)
                board.take(other, where)
        return False

    def _lying(self) -> dict[int, list[int]]:
        """Jobs by pool, the least urgent first."""
        out: dict[int, list[int]] = {}
        for j in range(len(self._board.at) - 1, -1, -1):
            if (position := self._board.at[j]) != NOWHERE:
                out.setdefault(int(self._board.kinds[j].columns[0].rows[position]), []).append(j)
        return out
