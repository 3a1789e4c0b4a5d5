"""What planning gives: each job's outcome, and the whole's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.model.fleet import FleetSummary, Kept, Waiting
    from planner.model.ledger import Ledger
    from planner.model.plan import Placement, RejectedCount
    from planner.model.workload import Workload
    from planner.placement.explain import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One job's outcome.  `ranked` is empty where nothing is feasible, and where the job waits.

    ledger          what others than the jobs of the call hold
    ledger_digest   of that, and of what all jobs of the call take where they are several: for `inputs`
    recall          makes `context` when it is asked for: of a thousand jobs nobody asks
    waiting         the job could have a place on an empty market, and has none now
    kept            it stays where its earlier plan put it, although another place would be a little cheaper
    """

    workload: Workload
    ranked: tuple[Placement, ...]
    rejected: tuple[RejectedCount, ...]
    notes: tuple[str, ...]
    ledger: Ledger
    ledger_digest: str
    recall: Callable[[], Context]
    waiting: Waiting | None = None
    kept: Kept | None = None

    @property
    def context(self) -> Context:
        """Answers "why not that", against what everybody else holds."""
        return self.recall()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """All jobs of a call, in the order of turns, and what there is to say about them together."""

    placed: tuple[Placed, ...]
    summary: FleetSummary
