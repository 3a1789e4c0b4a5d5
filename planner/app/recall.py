"""What planning reads of the record: what runs hold, what failed, what runs.  Writes nothing, and creates no record."""

from __future__ import annotations

from planner.app.inputs import Known
from planner.app.wire import database_url
from planner.state.record import EVERY_PROJECT, Record


def known(project: str = EVERY_PROJECT) -> Known:
    """Of one project, or of all in the database: they share the clouds' capacity."""
    record = Record.open(database_url(), project, upgrade=False)
    try:
        return Known(holdings=record.holdings(), memory=record.memory(), running=record.running())
    finally:
        record.close()
