"""Who lies where, and what is left of what is scarce: the state that every pass changes and that alone counts nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.placement.assign.kinds import fitting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.model.ledger import Holding
    from planner.placement.assign.kinds import Kind

    Ints = NDArray[np.int64]

NOWHERE = -1
_CHUNK = 128
"""Candidates looked at in one go: most jobs find room among the first."""


class Board:
    """`at[job]` is a position among the job's candidates or NOWHERE.  Jobs are numbers into `kinds`.

    alone    by job that is placed by itself, what it holds
    undone   how often places were given back as a whole: what was found hopeless before may not be any more
    """

    def __init__(self, kinds: Sequence[Kind], free: Ints) -> None:
        self.kinds = kinds
        self.free = free.copy()
        self.at = [NOWHERE] * len(kinds)
        self.alone: dict[int, tuple[Holding, ...]] = {}
        self.undone = 0
        self._from: dict[int, int] = {}

    def copy(self) -> Board:
        """As it is now; changes of one do not show in the other."""
        out = Board(self.kinds, self.free)
        out.at, out.alone = list(self.at), dict(self.alone)
        return out

    def fits(self, kind: Kind, position: int) -> bool:
        """Whether one more job of the kind has room there."""
        return all(column.amounts[position] <= max(self.free[column.rows[position]], 0) for column in kind.columns)

    def take(self, job: int, position: int) -> None:
        """Put a job there; whether it fits is the caller's matter."""
        for column in self.kinds[job].columns:
            self.free[column.rows[position]] -= column.amounts[position]
        self.at[job] = position

    def give(self, job: int) -> int:
        """Take a job away.  Where it was."""
        position = self.at[job]
        for column in self.kinds[job].columns:
            self.free[column.rows[position]] += column.amounts[position]
        self.at[job] = NOWHERE
        self._from.clear()
        return position

    def back_to(self, at: list[int], free: Ints) -> None:
        """As it was."""
        self.become(at, free)
        self.undone += 1

    def become(self, at: list[int], free: Ints) -> None:
        """Jobs lie elsewhere."""
        self.at, self.free = list(at), free.copy()
        self._from.clear()

    def spend(self, used: Ints) -> None:
        """Less is left, for what is no job of this board; more, where it moves away."""
        self.free -= used
        if (used < 0).any():
            self._from.clear()

    def first(self, kind: Kind) -> int:
        """The best candidate with room, or NOWHERE."""
        start = self._from.get(kind.number, 0)
        found = self.first_from(kind, start, len(kind))
        # room only shrinks until a job is taken away: who had none has none now
        self._from[kind.number] = found if found != NOWHERE else len(kind)
        return found

    def first_from(self, kind: Kind, start: int, stop: int) -> int:
        """The best candidate with room from `start` on and before `stop`, or NOWHERE."""
        step = _CHUNK
        while start < stop:
            part = slice(start, min(start + step, stop))
            found = np.flatnonzero(fitting(kind.columns, self.free, part))
            if len(found):
                return start + int(found[0])
            start, step = start + step, step * 4
        return NOWHERE

    def total(self) -> int:
        """Ticks of all that are placed."""
        return sum(int(k.shape.total[p]) for k, p in zip(self.kinds, self.at, strict=True) if p != NOWHERE)

    def cost(self, job: int) -> int:
        """Ticks of one that is placed."""
        return int(self.kinds[job].shape.total[self.at[job]])
