"""From fractions to jobs: what the relaxation has in whole numbers stands, the rest goes where it costs least with the scarce priced in.

Then every job looks once more for a cheaper place with room, until none finds one.  Within a kind the jobs first in order get its cheaper places.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from planner.placement.assign.board import NOWHERE
from planner.placement.assign.kinds import fitting
from planner.placement.assign.rescue import Rescue
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


def sizes(board: Board, waiting: Mapping[int, Sequence[int]]) -> dict[int, dict[int, Sequence[int]]]:
    """The jobs that wait, by nodes, the most first, then by kind."""
    out: dict[int, dict[int, Sequence[int]]] = {}
    for k, jobs in sorted(waiting.items()):
        if jobs:
            out.setdefault(board.kinds[jobs[0]].shape.workload.resources.nodes, {})[k] = jobs
    return dict(sorted(out.items(), reverse=True))


def rounded(board: Board, waiting: Mapping[int, Sequence[int]], relaxed: Relaxed, still: frozenset[int]) -> bool:
    """Put the jobs that wait, by kind in order of turns, onto the board.  Whether all found room; jobs in `still` do not move for it.

    Jobs of many nodes first, whole numbers, fractions and all: a small one finds room between large ones, but not the other way round.
    """
    return not any(of_size(board, mine, relaxed, still) for mine in sizes(board, waiting).values())


def of_size(board: Board, waiting: Mapping[int, Sequence[int]], relaxed: Relaxed, still: frozenset[int]) -> set[int]:
    """As `rounded`, for jobs of as many nodes each; the kinds of those that found no room."""
    left = {k: list(jobs) for k, jobs in waiting.items()}
    mine = [(k, position, value) for (k, position), value in sorted(relaxed.values.items()) if k in left]
    for k, position, value in mine:
        for _ in range(math.floor(value + ROUNDING)):
            _take(board, left[k], position)
    rest = ((value - math.floor(value + ROUNDING), k, position) for k, position, value in mine)
    for fraction, k, position in sorted(rest, key=lambda f: (-f[0], f[1], f[2])):
        if fraction > ROUNDING:
            _take(board, left[k], position)
    others = Rescue(board, lambda _: False, still)
    return {k for k, jobs in left.items() for j in jobs if not (_priced(board, j, relaxed) or others(j))}


def _take(board: Board, jobs: list[int], position: int) -> None:
    if jobs and board.fits(board.kinds[jobs[0]], position):
        board.take(jobs.pop(0), position)


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
