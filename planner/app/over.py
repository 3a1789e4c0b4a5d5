"""When nobody needs the nodes of a run any more: it was ended, its job has exited, a newer generation took over, or its hard end has passed.

Pure: from what the record and the nodes said, and the time.  Ends nothing (`planner.app.reap` does).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from planner.model.record import Event, Run, RunStatus, moment
from planner.model.runtime import NodeSeen

GRACE = timedelta(minutes=5)
"""How long the nodes of a job that has exited may take to deliver their last reports and to end themselves."""
LINGER = timedelta(hours=1)
"""The longest that they may, however much they still report."""
BOOT = timedelta(minutes=15)
"""A node counts its hard end from its boot, the record from the launch before it: the node's own end shall come first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """When a run's job ended on all its nodes, when any of them was last heard of, and whether it ended well."""

    at: datetime
    heard: datetime
    well: bool = True

    def settled(self, now: datetime) -> bool:
        """Whether its nodes had their time: one that still reports may be putting away the last checkpoint."""
        return now >= self.at + GRACE and (now >= self.heard + GRACE or now >= self.at + LINGER)


def exit_of(run: Run, events: Iterable[Event], told: Sequence[NodeSeen]) -> Exit | None:
    """From what the record and the nodes say; None where the job may run on."""
    failed = len(told) >= run.nodes and all(s.exit_code is not None for s in told)
    if run.status is not RunStatus.EXITED and not failed:
        return None
    kind = "exited" if run.status is RunStatus.EXITED else "exit"
    ats = [moment(e.at) for e in events if e.kind == kind and e.generation == run.generation]
    heard = max((moment(s.at) for s in told), default=max(ats, default=moment(run.started_at)))
    return Exit(at=max(ats, default=heard), heard=heard, well=not any(s.exit_code for s in told))


def over(run: Run, now: datetime, exit_: Exit | None = None) -> str:
    """Why nobody needs the nodes of a run any more; "" where somebody may."""
    match run.status:
        case RunStatus.ENDED:
            return "the run was ended"
        case RunStatus.FAILED:
            return "its launch was given up"
        case RunStatus.LOST:
            return "all its nodes were lost"
        case _ if run.fenced_at:
            return "a newer generation has taken over"
        case _ if exit_ and exit_.settled(now):
            return "its job has exited" if exit_.well else "its job has ended with an error [SKY-RUN-522]"
        case _:
            return past_its_end(run, now)


def past_its_end(run: Run, now: datetime) -> str:
    """Whether a run is past its hard end in hours or in USD; both count from its launch, as the nodes' own power-off does from their boot."""
    lasted = now - moment(run.started_at) - BOOT
    if run.stop_after_hours is not None and lasted >= timedelta(hours=run.stop_after_hours):
        return f"past its hard end of {run.stop_after_hours:g} h [SKY-RUN-525]"
    if run.budget_usd is not None and run.usd_per_hour:
        hours = float(run.budget_usd / run.usd_per_hour)
        if lasted >= timedelta(hours=hours):
            return (
                f"past its budget of ${run.budget_usd:,.2f} ({hours:.1f} h at ${run.usd_per_hour:,.2f}/h) [SKY-RUN-525]"
            )
    return ""
