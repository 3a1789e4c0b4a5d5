"""What a move is asked to do, and how far it came: values of `planner.app.migrate`.  Nothing is decided here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from planner.model.diagnostic import Diagnostic
from planner.model.migration import MigrationDiff, MigrationStatus

if TYPE_CHECKING:
    from planner.model.plan import PlacementPlan
    from planner.model.record import Run
    from planner.state.history import Move


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """How long each step may take.  `notice_seconds`: for a checkpoint where the cloud takes the nodes back and does not say when."""

    checkpoint_seconds: float = 900.0
    notice_seconds: float = 120.0
    cut_seconds: float = 1800.0
    progress_seconds: float = 3600.0

    @classmethod
    def each(cls, seconds: float) -> Waits:
        """The same for all."""
        return cls(checkpoint_seconds=seconds, notice_seconds=seconds, cut_seconds=seconds, progress_seconds=seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to carry out.

    diff, plan   None: go on with the move that is under way
    barred       offer ids that may not be tried any more, with the reason
    revert       give the move up, while that can be
    """

    job: str
    diff: MigrationDiff | None = None
    plan: PlacementPlan | None = None
    barred: Mapping[str, str] = field(default_factory=dict[str, str])
    revert: bool = False
    waits: Waits = field(default_factory=Waits)
    lease_timeout: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """How far the move came.  `run`: the new one, if it was launched; `problems`: why it came no further, () where it did all that was asked."""

    move: Move
    run: Run | None
    changed: bool
    problems: tuple[Diagnostic, ...] = ()

    @property
    def status(self) -> MigrationStatus:
        """Of the move."""
        return MigrationStatus(self.move.status)


class Stop(Exception):
    """The move comes no further now.

    revert    and is given up, if that can be
    over      and is closed as it is, for there is nothing to go on with
    finished  the job itself has ended: nobody needs the old nodes either
    """

    def __init__(
        self,
        code: str,
        summary: str,
        *,
        revert: bool = False,
        over: bool = False,
        finished: bool = False,
        more: tuple[Diagnostic, ...] = (),
    ) -> None:
        super().__init__(summary)
        self.diagnostics = (Diagnostic(code=code, summary=summary), *more)
        self.revert, self.over, self.finished = revert, over, finished
