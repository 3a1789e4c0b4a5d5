"""What stays where an earlier plan put it.

One changed job must not move a thousand others for a cent: plans are reviewed by people, and what moves costs them their attention before it saves money.
So a second assignment is made, in which every job that can stays, the rest finds room as always, and a job leaves only for a place with room that saves
WORTH of what its earlier place costs.  It is taken unless the free one places more, or is cheaper by WORTH of all that would move.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from planner.placement.assign.board import NOWHERE, Board
from planner.placement.assign.solve import Solved, Task, counts, solve
from planner.placement.assign.whole import cheaper

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

WORTH = 0.01
"""Share of the earlier place's cost that a move must save.  The estimates that it compares are no better than that: the packaged tariffs and speeds
are rounded to two or three figures, and spot prices move by a percent within a day (docs/decisions/0021)."""


@dataclass(frozen=True, slots=True)
class Stayed:
    """A job that stays: at which candidate, a cheaper one that it would have had, and the ticks between."""

    job: int
    at: int
    better: int
    saving: int


def with_earlier(
    task: Task, free: Solved, earlier: Mapping[int, int], solver: Callable[[], ModuleType | None]
) -> tuple[Solved, tuple[Stayed, ...]]:
    """The assignment that stands given where jobs were, and who stays for it."""
    matched = _matched(free.board, earlier)
    if all(matched.at[j] == at for j, at in earlier.items()):
        return replace(free, board=matched), ()
    board = Board(task.kinds, task.free)
    fixed: dict[int, int] = {}
    for j in range(len(task.jobs)):
        at = earlier.get(j)
        if at is not None and j not in task.apart and board.fits(task.kinds[j], at):
            board.take(j, at)
            fixed[j] = at
    _leave(board, fixed)
    there = solve(replace(task, fixed=fixed), solver).board
    if counts(task, matched) > counts(task, there):
        # somebody has no place while all stay: as few as it takes move up for it
        there = solve(replace(task, fixed=fixed, movable=True), solver).board
    # the second: what planning again would move, once all are there
    again = _matched(free.board, {j: at for j, at in enumerate(there.at) if at != NOWHERE})
    more = counts(task, matched) > counts(task, there) or not task.sound(there)
    fewer = counts(task, matched) < counts(task, there)
    for board in () if fewer else (matched, again):
        if more or _pays(there, board):
            return replace(free, board=board), ()
    stayed: list[Stayed] = []
    for j, at in fixed.items():
        if (
            matched.at[j] != NOWHERE
            and there.at[j] == at == earlier[j]
            and (saving := there.cost(j) - matched.cost(j)) > 0
        ):
            stayed.append(Stayed(j, at, matched.at[j], saving))
    same = [a == NOWHERE for a in there.at] == [a == NOWHERE for a in free.board.at]
    same = same and set(there.alone) == set(free.board.alone)
    one_by_one, bound = (free.one_by_one, free.bound) if same else (None, None)
    stays = frozenset(j for j, at in earlier.items() if there.at[j] == at != matched.at[j])
    return Solved(there, free.greedy, one_by_one, bound, free.contended, stays), tuple(stayed)


def _pays(there: Board, other: Board) -> bool:
    """Whether the other is cheaper by WORTH of all that would move."""
    moves = [j for j, (a, b) in enumerate(zip(there.at, other.at, strict=True)) if a not in {b, NOWHERE}]
    saving = there.total() - other.total()
    return saving > 0 and saving >= WORTH * sum(there.cost(j) for j in moves)


def _matched(board: Board, earlier: Mapping[int, int]) -> Board:
    """The same places, those of a kind dealt out among its jobs so that who was in one of them is there again."""
    out = board.copy()
    of_kind: dict[int, list[int]] = {}
    for j, at in enumerate(board.at):
        if at != NOWHERE:
            of_kind.setdefault(board.kinds[j].number, []).append(j)
    for jobs in of_kind.values():
        left = sorted(board.at[j] for j in jobs)
        rest: list[int] = []
        for j in jobs:
            if earlier.get(j) in left:
                out.at[j] = earlier[j]
                left.remove(earlier[j])
            else:
                rest.append(j)
        for j, at in zip(rest, left, strict=True):
            out.at[j] = at
    return out


def _leave(board: Board, fixed: dict[int, int]) -> None:
    """Jobs whose move pays by itself move."""
    moved = True
    while moved:
        moved = False
        for j in fixed:
            better = cheaper(board, j)
            if better == NOWHERE:
                continue
            now = board.cost(j)
            if now - int(board.kinds[j].shape.total[better]) >= WORTH * now:
                board.give(j)
                board.take(j, better)
                fixed[j] = better
                moved = True
