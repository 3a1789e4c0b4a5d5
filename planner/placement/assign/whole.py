"""From fractions to jobs: what the relaxation has in whole numbers stands, the rest goes where it costs least with the scarce priced in.

Then every job looks once more for a cheaper place with room, until none finds one.  Within a kind the jobs first in order get its cheaper places.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from planner.placement.assign.board import NOWHERE
from planner.placement.assign.kinds import fitting
from planner.placement.cost import TICKS_PER_USD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from planner.placement.assign.board import Board
    from planner.placement.assign.relax import Relaxed

ROUNDING = 1e-6
"""What is nearer to a whole number is meant to be it."""
PASSES = 8
"""Of looking for cheaper places; each pass only ever lowers the total."""


def rounded(board: Board, waiting: Mapping[int, Sequence[int]], relaxed: Relaxed) -> bool:
    """Put the jobs that wait, by kind in order of turns, onto the board.  Whether all found room."""
    left = {k: list(jobs) for k, jobs in sorted(waiting.items())}
    parts = sorted(relaxed.values.items())
    for (k, position), value in parts:
        for _ in range(min(math.floor(value + ROUNDING), len(left.get(k, ())))):
            if board.fits(board.kinds[left[k][0]], position):
                board.take(left[k].pop(0), position)
    fractions = sorted(
        ((-(v - math.floor(v + ROUNDING)), k, p) for (k, p), v in parts if v - math.floor(v + ROUNDING) > ROUNDING)
    )
    for _, k, position in fractions:
        if left.get(k) and board.fits(board.kinds[left[k][0]], position):
            board.take(left[k].pop(0), position)
    # the largest first, as they are the hardest to place
    rest = sorted((-board.kinds[j].shape.workload.resources.nodes, j) for jobs in left.values() for j in jobs)
    return all(_priced(board, j, relaxed) for _, j in rest)


def _priced(board: Board, job: int, relaxed: Relaxed) -> bool:
    kind = board.kinds[job]
    at = np.flatnonzero(fitting(kind.columns, board.free))
    if not len(at):
        return False
    cost: NDArray[np.float64] = kind.shape.total[at] / TICKS_PER_USD
    for column in kind.columns:
        cost = cost + relaxed.prices[column.rows[at]] * column.amounts[at]
    board.take(job, int(at[int(np.argmin(cost))]))
    return True


def improve(board: Board, jobs: Sequence[int]) -> None:
    """Move each job to its cheapest place with room, while any gains."""
    for _ in range(PASSES):
        moved = False
        for j in jobs:
            now = board.at[j]
            if now == NOWHERE:
                continue
            better = cheaper(board, j)
            if better != NOWHERE:
                board.give(j)
                board.take(j, better)
                moved = True
        if not moved:
            return


def cheaper(board: Board, job: int) -> int:
    """The cheapest candidate with room besides what the job itself holds, if it costs less than where it is."""
    kind, now = board.kinds[job], board.at[job]
    stop = int(np.searchsorted(kind.shape.total, int(kind.shape.total[now]), side="left"))
    if stop == 0:
        return NOWHERE
    for column in kind.columns:
        board.free[column.rows[now]] += column.amounts[now]
    found = board.first_from(kind, 0, stop)
    for column in kind.columns:
        board.free[column.rows[now]] -= column.amounts[now]
    return found


def sort_within(board: Board, jobs: Sequence[int]) -> None:
    """Of jobs of one kind the first in order gets the cheapest of their places."""
    of_kind: dict[int, list[int]] = {}
    for j in jobs:
        if board.at[j] != NOWHERE:
            of_kind.setdefault(board.kinds[j].number, []).append(j)
    for found in of_kind.values():
        for j, position in zip(sorted(found), sorted(board.at[j] for j in found), strict=True):
            board.at[j] = position
