"""What planning reads of the record: what runs hold, what failed, what runs.  Writes nothing, and creates no record."""

from __future__ import annotations

from planner.app.inputs import Known
from planner.app.wire import database_url
from planner.state.record import EVERY_PROJECT, Record


def known(project: str) -> Known:
    """What all projects in the database hold and saw fail, for they share the clouds' capacity; what runs of this one."""
    everyone = Record.open(database_url(), EVERY_PROJECT, upgrade=False)
    try:
        holdings, memory = everyone.holdings(), everyone.memory()
    finally:
        everyone.close()
    mine = Record.open(database_url(), project, upgrade=False)
    try:
        return Known(holdings=holdings, memory=memory, running=mine.running())
    finally:
        mine.close()
