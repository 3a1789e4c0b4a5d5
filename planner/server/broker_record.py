"""The record as the broker uses it: to be told no, to learn which approved plan is meant, and to log leases.  Decides nothing.

The broker needs few rights in the database: to read runs, nodes and seats, and to insert into `credential` (docs/broker.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from planner.model.record import Run
from planner.model.runtime import CredentialIssue, Seat

if TYPE_CHECKING:
    from planner.state.record import Record
    from planner.state.runtime import Runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLedger:
    """See `planner.app.mint.Ledger`."""

    record: Record
    runtime: Runtime

    def check(self, seat: Seat) -> None:
        """See `Ledger`."""
        self.runtime.check(seat)

    def machine(self, seat: Seat) -> str | None:
        """See `Ledger`."""
        return self.runtime.machine(seat)

    def holder(self, seat: Seat) -> tuple[str, str] | None:
        """See `Ledger`."""
        return self.runtime.holder(seat)

    def run(self, seat: Seat) -> Run | None:
        """See `Ledger`."""
        return next((r for r in self.record.runs(seat.job) if r.generation == seat.generation), None)

    def issue(self, issue: CredentialIssue, at: datetime) -> None:
        """See `Ledger`."""
        self.runtime.issue(issue, at)
