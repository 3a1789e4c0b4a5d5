"""The order of things: one by one first, then what a solver makes of it, and which of the two stands.

The assignment one by one is the incumbent.  Where every job has the place it would choose alone nothing can be better and nothing else runs.  What the solver
finds replaces it only where it is strictly better: more jobs of the highest class in which they differ, or the same for less.  So small plans stay as they are,
and a plan without the solver is a plan all the same.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.placement.assign import exact
from planner.placement.assign.board import NOWHERE, Board
from planner.placement.assign.relax import CLOSE, DUST, Relaxation, demands
from planner.placement.assign.rescue import Rescue, lacking
from planner.placement.assign.rows import PLENTY
from planner.placement.assign.turns import Gang, Turns
from planner.placement.assign.whole import improve, of_size, rounded, sizes, sort_within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import ModuleType

    from numpy.typing import NDArray

    from planner.model.workload import Workload
    from planner.placement.assign.kinds import Kind
    from planner.placement.assign.relax import Demand, Relaxed

    Ints = NDArray[np.int64]

NEAR = 2e-3
"""Nearer to the bound than this share, rounding is not tried another way."""
POLISHES = 3
"""Rounds of assigning jobs of one size anew."""
DIVES = 3
"""How often the search begins anew with those first who found no room."""
ANEW = 12
"""Rounds of relaxing all who ask, within the budgets that keep some of them waiting: with more it takes longer than what it finds is worth."""
SHORT = 0.5
"""A relaxation that leaves less than so much of a job without a place leaves none: fractions end in jobs."""
FILLS = 3
"""How often room that a cheaper assignment leaves is given to who waits, and the whole solved again."""


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be assigned.

    jobs    sorted by (-priority, name)
    kinds   of each; None for a job that is placed by itself
    free    what the ledger leaves
    fixed   position by job that is not to be touched; where `movable` it is, for a job that has no place otherwise
    room    filled in: by gang that found too little, how many of it could have been placed
    alone   (job, board) -> what a job that is placed by itself uses, and its GPUs; None where it found no place.  What it holds is on the board then
    sound   whether a board breaks no rule (`check`)
    """

    jobs: Sequence[Workload]
    kinds: Sequence[Kind]
    free: Ints
    gangs: dict[str, Gang]
    apart: frozenset[int]
    alone: Callable[[int, Board], tuple[Ints, int] | None]
    sound: Callable[[Board], bool]
    fixed: dict[int, int] = field(default_factory=dict[int, int])
    movable: bool = False
    room: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def still(self) -> frozenset[int]:
        """Jobs that do not move for another's sake."""
        return frozenset() if self.movable else frozenset(self.fixed)


@dataclass(frozen=True, eq=False)
class Solved:
    """`one_by_one` ticks of the same jobs in order of priority and name, None where they would not all find a place so; `bound` ticks, None where it was not computed.

    greedy      the assignment one by one, teams in turn where they had to
    contended   somebody is not where it would be alone
    stays       jobs that are where an earlier plan put them, and not where this one would have
    """

    board: Board
    greedy: Board
    one_by_one: int | None
    bound: int | None
    contended: bool
    stays: frozenset[int] = frozenset()


def solve(task: Task, solver: Callable[[], ModuleType | None]) -> Solved:
    """Assign every job that has a place.  `solver` gives HiGHS, or None where it is not installed; it is asked only where jobs contend."""
    ordered, greedy, fair = _one_by_one(task)
    contended = _contended(task, greedy)
    highspy = solver() if contended else None
    greedy = _least(_in_order(task, ordered, greedy), greedy)
    if highspy is None:
        one = _in_order(task, ordered, greedy)
        return Solved(greedy, greedy, _cost(one) if one else None, None if contended else greedy.total(), contended)
    start, relaxed = greedy, None
    if NOWHERE in _ours(task, greedy) and (found := _everyone(task, greedy, highspy)) is not None:
        start, relaxed = found
    elif NOWHERE in _ours(task, greedy):
        tried = _pass(task, fair=fair, rescue=True, highspy=highspy)
        if counts(task, tried) > counts(task, greedy) and task.sound(tried):
            start = _least(_in_order(task, ordered, tried), tried)
    best, bound = start, None
    for _ in range(FILLS):
        cheaper, bound = _cheaper(task, best, highspy, relaxed)
        best, relaxed = cheaper or best, None
        filled = _fill(task, best, highspy, fair=fair)
        if filled is None:
            break
        best, bound = filled, None
    if best is not start and not task.sound(best):
        best, bound = greedy, None
    one = _in_order(task, ordered, best)
    return Solved(best, greedy, _cost(one) if one else None, bound, contended)


def _least(one: Board | None, board: Board) -> Board:
    """Of two boards of the same jobs the cheaper: turns of teams say who is placed, not that it must cost more."""
    return one if one is not None and _cost(one) < _cost(board) else board


def _in_order(task: Task, ordered: Board, board: Board) -> Board | None:
    """The jobs of the board one by one; None where not all of them find a place so."""
    if _everybody(ordered) == _everybody(board):
        return ordered
    out = Board(task.kinds, task.free)
    for job, position in task.fixed.items():
        if board.at[job] != NOWHERE:
            out.take(job, position)
    for j in sorted(_everybody(board)):
        alone = task.alone(j, out) if j in task.apart else None
        if alone is not None:
            out.spend(alone[0])
        elif out.at[j] == NOWHERE:
            at = NOWHERE if j in task.apart else out.first(task.kinds[j])
            if at == NOWHERE:
                return None
            out.take(j, at)
    return out


def _cost(board: Board) -> int:
    """Ticks of all that have a place, those placed by themselves too."""
    return board.total() + sum(h.usd_total_ticks for found in board.alone.values() for h in found)


def counts(task: Task, board: Board) -> tuple[int, ...]:
    """Jobs placed per class, the highest first."""
    classes = sorted({j.priority for j in task.jobs}, reverse=True)
    found = Counter(
        task.jobs[j].priority for j in range(len(task.jobs)) if j not in task.apart and board.at[j] != NOWHERE
    )
    return tuple(found[c] for c in classes)


def _ours(task: Task, board: Board) -> list[int]:
    """Where jobs are that could be somewhere."""
    return [board.at[j] for j in range(len(task.jobs)) if j not in task.apart and len(task.kinds[j].first)]


def _placed(board: Board) -> frozenset[int]:
    return frozenset(j for j, at in enumerate(board.at) if at != NOWHERE)


def _everybody(board: Board) -> frozenset[int]:
    return _placed(board) | frozenset(board.alone)


def _one_by_one(task: Task) -> tuple[Board, Board, bool]:
    """In order of priority and name; the incumbent, which is another where turns of teams place others; and whether teams take turns."""
    board = _pass(task, fair=False, rescue=False, highspy=None)
    if NOWHERE not in _ours(task, board) or len({j.team for j in task.jobs}) == 1:
        return board, board, False
    turns = _pass(task, fair=True, rescue=False, highspy=None)
    return board, board if _everybody(turns) == _everybody(board) else turns, True


def _pass(task: Task, *, fair: bool, rescue: bool, highspy: ModuleType | None) -> Board:
    board = Board(task.kinds, task.free)
    for job, position in task.fixed.items():
        board.take(job, position)

    def alone(job: int) -> int | None:
        if job not in task.apart:
            return None
        found = task.alone(job, board)
        if found is None:
            return 0
        board.spend(found[0])
        return found[1]

    turns = Turns(task.jobs, board, task.gangs, alone)
    if rescue and highspy is not None:
        turns.rescue = Rescue(board, lambda job: _exactly(task, board, job, highspy), task.still)
    turns.run(fair=fair)
    if not rescue and not task.fixed:
        task.room.update(turns.room)
    return board


def _contended(task: Task, board: Board) -> bool:
    """Whether any job is not where it would be alone."""
    alone = Board(task.kinds, _without_ours(task, board))
    return any(
        at != alone.first(task.kinds[j]) or (at == NOWHERE and task.movable)
        for j, at in enumerate(board.at)
        if j not in task.apart and j not in task.fixed and len(task.kinds[j].first)
    )


def _without_ours(task: Task, board: Board) -> Ints:
    """What is free where nobody is but the ledger, jobs that are fixed and those placed by themselves."""
    out = board.copy()
    for j, at in enumerate(board.at):
        if at != NOWHERE and j not in task.fixed:
            out.give(j)
    return out.free


def _by_kind(task: Task, board: Board) -> dict[int, list[int]]:
    out: dict[int, list[int]] = {}
    for j, at in enumerate(board.at):
        if at != NOWHERE and j not in task.fixed:
            out.setdefault(task.kinds[j].number, []).append(j)
    return out


def _wanted(task: Task, mine: dict[int, list[int]], free: Ints) -> list[Demand]:
    kinds = {k: task.kinds[jobs[0]] for k, jobs in mine.items()}
    return demands(kinds, {k: len(jobs) for k, jobs in mine.items()}, free)


def _empty(task: Task, board: Board, free: Ints) -> Board:
    out = Board(task.kinds, free)
    out.alone = dict(board.alone)
    for j in task.fixed:
        out.at[j] = board.at[j]  # its use is off `free` already
    return out


def _everyone(task: Task, board: Board, highspy: ModuleType) -> tuple[Board, Relaxed] | None:
    """Places for all at once where budgets or quotas keep somebody waiting: chains of moves free none of those, one by one.  None where not all find one.

    Nobody waits then, so whose turn it was does not matter.  Small calls have their exact search instead.
    """
    late = [j for j, at in enumerate(board.at) if at == NOWHERE and j not in task.apart and len(task.kinds[j].first)]
    waiting = {task.kinds[j].number: task.kinds[j] for j in late}
    rows = sorted({lack[0] for kind in waiting.values() if (lack := lacking(board, kind)) is not None})
    if not rows or sum(len(k.first) for k in waiting.values()) <= exact.FEW_COLUMNS:
        return None
    mine, free = _by_kind(task, board), _without_ours(task, board)
    for j in late:
        mine.setdefault(task.kinds[j].number, []).append(j)
    mine = {k: sorted(jobs) for k, jobs in mine.items()}
    if not _could(task, mine, free, rows):
        return None
    # the cheapest assignment may keep within them unasked, and is found sooner so
    relaxed = _loosely(task, board, mine, free, frozenset(rows), highspy)
    for rounds in (0, ANEW):
        if rounds and relaxed is not None:
            wanted = _wanted(task, mine, free)
            seed = _seed(wanted, relaxed.values)
            relaxed = Relaxation(highspy, wanted, free).solve(seed, holds=False, rounds=rounds)
        if relaxed is None or sum(relaxed.values.values()) < sum(map(len, mine.values())) - SHORT:
            return None
        for attempt in (_rounded, _dived):
            found = attempt(task, board, mine, free, relaxed, highspy)
            if found is not None and _gangs_hold(task, found) and task.sound(found):
                return found, relaxed
    return None


def _loosely(  # noqa: PLR0917 - all that a relaxation needs
    task: Task, board: Board, mine: dict[int, list[int]], free: Ints, rows: frozenset[int], highspy: ModuleType
) -> Relaxed | None:
    """The relaxation as if these rows limited nothing.  Kinds that differ in them only are one, and who uses them gets the cheapest of its places."""
    kinds = {k: task.kinds[jobs[0]] for k, jobs in mine.items()}
    alike: dict[tuple[int, ...], list[int]] = {}
    less: dict[int, Kind] = {}
    for k, kind in kinds.items():
        own = kind.columns[len(kind.shape.columns) :]
        kept = tuple(c for c in own if int(c.rows[0]) not in rows)
        same = all((c.rows == c.rows[0]).all() for c in own)
        key = (kind.shape.number, *(int(c.rows[0]) for c in kept)) if same else (kind.shape.number, -1, k)
        alike.setdefault(key, []).append(k)
        less[k] = replace(kind, columns=(*kind.shape.columns, *kept)) if same else kind
    of = {k: group[0] for group in alike.values() for k in group}
    loose, start = free.copy(), board.copy()
    loose[list(rows)] = start.free[list(rows)] = PLENTY
    late = [j for jobs in mine.values() for j in jobs if board.at[j] == NOWHERE]
    for j in late:
        if (at := start.first(task.kinds[j])) != NOWHERE:
            start.take(j, at)
    seats = {(of[k], start.at[j]) for k, jobs in mine.items() for j in jobs if start.at[j] != NOWHERE}
    counts = {group[0]: sum(len(mine[k]) for k in group) for group in alike.values()}
    wanted = demands({k: less[k] for k in counts}, counts, loose)
    holds = all(start.at[j] != NOWHERE for j in late)
    found = Relaxation(highspy, wanted, loose).solve(_seed(wanted, seats), holds=holds)
    if found is None:
        return None
    values: dict[tuple[int, int], float] = {}
    there: dict[int, deque[tuple[int, float]]] = {}
    for (k, p), value in sorted(found.values.items()):
        there.setdefault(k, deque()).append((p, value))
    for group in alike.values():
        places = there.get(group[0], deque())
        for k in sorted(group, key=lambda k: (-len(kinds[k].columns), k)):
            left = float(len(mine[k]))
            while places and left > DUST:
                p, value = places.popleft()
                values[k, p] = values.get((k, p), 0.0) + min(value, left)
                if value > left:
                    places.appendleft((p, value - left))
                left -= value
    return replace(found, values=values)


def _could(task: Task, mine: dict[int, list[int]], free: Ints, rows: Sequence[int]) -> bool:
    """Whether these rows have room for all even if each used as little of them as it can anywhere."""
    least = dict.fromkeys(rows, 0)
    for jobs in mine.values():
        kind = task.kinds[jobs[0]]
        for column in kind.columns[1:]:
            row = int(column.rows[kind.first[0]])
            if row in least and (column.rows[kind.first] == row).all():
                least[row] += len(jobs) * int(column.amounts[kind.first].min())
    return all(amount <= max(int(free[row]), 0) for row, amount in least.items())


def _gangs_hold(task: Task, board: Board) -> bool:
    """Whether of each gang as many as it needs have places, or nobody."""
    there = _everybody(board)
    return all((n := len(there.intersection(g.members))) >= g.needs or not n for g in task.gangs.values())


def _seed(wanted: Sequence[Demand], seats: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Columns of kinds on positions, in the model's numbers, where they are open."""
    number = {d.kind.number: n for n, d in enumerate(wanted)}
    places = ((number[k], at, wanted[number[k]].open) for k, at in sorted(seats) if k in number)
    return [(n, p) for n, at, there in places if (p := int(np.searchsorted(there, at))) < len(there) and there[p] == at]


def _cheaper(task: Task, board: Board, highspy: ModuleType, known: Relaxed | None) -> tuple[Board | None, int | None]:
    """The same jobs for less, None where that was not found; and the bound.  `known` where they were relaxed already."""
    mine, free = _by_kind(task, board), _without_ours(task, board)
    wanted = _wanted(task, mine, free)
    if not wanted:
        return None, board.total()
    if known is not None and board.total() <= known.bound * (1 + NEAR):
        best = board.copy()
        sort_within(best, [j for jobs in mine.values() for j in jobs])
        return best, known.bound + sum(board.cost(j) for j in task.fixed if board.at[j] != NOWHERE)
    seats = {(k, board.at[j]) for k, jobs in mine.items() for j in jobs}
    relaxed = known or Relaxation(highspy, wanted, free).solve(_seed(wanted, seats))
    if relaxed is None:
        return None, None
    fixed = sum(board.cost(j) for j in task.fixed if board.at[j] != NOWHERE)
    upper, best = board.total(), None
    bound = relaxed.bound
    for attempt in (_rounded, _dived, _polished):
        if best is not None and upper - fixed <= bound * (1 + NEAR):
            break
        trial = attempt(task, best or board, mine, free, relaxed, highspy)
        if trial is not None and trial.total() < upper:
            upper, best = trial.total(), trial
    trial = _to_the_tick(task, board, mine, free, relaxed, highspy, upper - fixed)
    if trial is not None and trial.total() < upper:
        best = trial
    if best is not None:
        sort_within(best, [j for jobs in mine.values() for j in jobs])
    return best, bound + fixed


def _to_the_tick(  # noqa: PLR0917 - all that a solution needs
    task: Task, board: Board, mine: dict[int, list[int]], free: Ints, relaxed: Relaxed, highspy: ModuleType, upper: int
) -> Board | None:
    """The cheapest below `upper` ticks, where few columns could be in it."""
    wanted = _wanted(task, mine, free)
    columns = exact.within(wanted, relaxed, upper) if upper > relaxed.bound else None
    found = exact.cheapest(highspy, wanted, free, columns) if columns else None
    return _laid(task, board, mine, free, found) if found is not None else None


def _rounded(
    task: Task, board: Board, mine: dict[int, list[int]], free: Ints, relaxed: Relaxed, _: ModuleType
) -> Board | None:
    """All at once."""
    out = _empty(task, board, free)
    if not rounded(out, mine, relaxed, task.still):
        return None
    improve(out, [j for jobs in mine.values() for j in jobs])
    return out


def _polished(
    task: Task, board: Board, mine: dict[int, list[int]], _: Ints, relaxed: Relaxed, highspy: ModuleType
) -> Board | None:
    """The best so far, its jobs of as many nodes each assigned anew among the others: alike in size, they fill places without fractions."""
    out, bound = board.copy(), relaxed.bound * (1 + NEAR)
    fixed = sum(board.cost(j) for j in task.fixed if board.at[j] != NOWHERE)
    for _round in range(POLISHES):
        before = out.total()
        for group in sizes(out, mine).values():
            trial = out.copy()
            seats = {k: [trial.give(j) for j in jobs] for k, jobs in group.items()}
            wanted = _wanted(task, {k: list(jobs) for k, jobs in group.items()}, trial.free)
            seed = {(n, int(np.searchsorted(d.open, at))) for n, d in enumerate(wanted) for at in seats[d.kind.number]}
            again = Relaxation(highspy, wanted, trial.free).solve(sorted(seed))
            if again is not None and not of_size(trial, group, again, task.still):
                improve(trial, [j for jobs in group.values() for j in jobs])
                out = trial if trial.total() < out.total() else out
        if out.total() - fixed <= bound or out.total() >= before * (1 - CLOSE):
            break
    return out


def _dived(  # noqa: PLR0917 - all that a solution needs
    task: Task, board: Board, mine: dict[int, list[int]], free: Ints, relaxed: Relaxed, highspy: ModuleType
) -> Board | None:
    """The jobs of most nodes first; the rest is relaxed anew with what those leave, and so on: where pools are full, a fraction of a large job is no place."""
    first: set[int] = set()
    for _ in range(DIVES):
        out = _empty(task, board, free)
        stuck = _dive(task, out, mine, relaxed, highspy, frozenset(first))
        if stuck is not None and not stuck:
            improve(out, [j for jobs in mine.values() for j in jobs])
            return out
        if stuck is None or stuck <= first:
            return None
        first |= stuck  # who found no room chooses before all others next time
    return None


def _dive(  # noqa: PLR0917 - all that a solution needs
    task: Task,
    out: Board,
    mine: dict[int, list[int]],
    relaxed: Relaxed,
    highspy: ModuleType,
    first: frozenset[int],
) -> set[int] | None:
    """The kinds that found no room, {} where all did; None where HiGHS gave up."""
    still = task.still
    rest = [
        *({k: mine[k]} for k in sorted(first)),
        *sizes(out, {k: jobs for k, jobs in mine.items() if k not in first}).values(),
    ]
    while rest:
        stuck = of_size(out, rest.pop(0), relaxed, still)
        left = {k: list(jobs) for group in rest for k, jobs in group.items()}
        wanted = _wanted(task, left, out.free)
        stuck |= {d.kind.number for d in wanted if not len(d.open)}
        if stuck or not left:
            return stuck
        again = Relaxation(highspy, wanted, out.free).solve(_seed(wanted, relaxed.values), holds=False)
        if again is None:
            return None
        relaxed = again
    return set()


def _laid(
    task: Task, board: Board, mine: dict[int, list[int]], free: Ints, found: dict[tuple[int, int], int]
) -> Board | None:
    """A board with so many jobs of each kind there; None where they do not fit after all (the solver's integers are floats)."""
    out = _empty(task, board, free)
    left = {k: list(jobs) for k, jobs in mine.items()}
    for (k, position), many in sorted(found.items()):
        for _ in range(many):
            if not left[k] or not out.fits(task.kinds[left[k][0]], position):
                return None
            out.take(left[k].pop(0), position)
    return None if any(left.values()) else out


def _exactly(task: Task, board: Board, job: int, highspy: ModuleType) -> bool:
    """Place a job by moving any others of a small call, if there is a way at all."""
    mine = _by_kind(task, board)
    mine.setdefault(task.kinds[job].number, []).append(job)
    # not small: nothing is built only to find that out, for every kind that waits
    if sum(len(task.kinds[jobs[0]].first) for jobs in mine.values()) > exact.FEW_COLUMNS:
        return False
    free = _without_ours(task, board)
    wanted = _wanted(task, mine, free)
    columns = exact.every(wanted) if all(len(d.open) for d in wanted) else None
    found = exact.cheapest(highspy, wanted, free, columns) if columns else None
    trial = _laid(task, board, mine, free, found) if found is not None else None
    if trial is None:
        return False
    board.become(trial.at, trial.free)
    return True


def _fill(task: Task, board: Board, highspy: ModuleType, *, fair: bool) -> Board | None:
    """The board with more jobs on it, from the room that is left; None where nobody finds any."""
    out = board.copy()

    def alone(job: int) -> int | None:
        return sum(h.gpus for h in out.alone.get(job, ())) if job in task.apart else None

    turns = Turns(task.jobs, out, task.gangs, alone)
    turns.rescue = Rescue(out, lambda job: _exactly(task, out, job, highspy), task.still)
    turns.run(fair=fair)
    return out if _placed(out) > _placed(board) else None
