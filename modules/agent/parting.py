"""How the time is spent that is left once the agent itself is told to end: first the job is asked for a last checkpoint, then it gets SIGTERM, then SIGKILL, and what
is left goes to uploads and reports.  Pure: of a moment, what each of these moments is.

A shutdown reaches the agent as SIGTERM.  On Nebius that is all the notice there is: Compute stops a preemptible machine 60 seconds after it signals it (its
documentation of preemptible machines, read 2026-11).  Google gives a spot machine 30 seconds from its notice; elsewhere the unit's TimeoutStopSec is the bound.
Never tried on a live machine.
"""

from __future__ import annotations

from typing import NamedTuple

NOTICE_SECONDS = {"nebius": 60.0}
"""Where SIGTERM is the cloud's notice: how long after it the machine is gone."""
MOST_SECONDS = 105.0
"""Less than the unit's TimeoutStopSec: whoever stops the unit by hand has the machine ended too, not the agent killed before it."""
_LEFT_SECONDS = {"nebius": 55.0, "gcp": 27.0}
_MOST_ASKED_SECONDS = 30.0


class Parting(NamedTuple):
    """`notice_at`: when the machine is gone by the cloud's word, which is to be told; None where this is no notice."""

    notice_at: float | None
    job_at: float
    grace_seconds: float
    gone_at: float


def parting(cloud: str, now: float, grace_seconds: float, leaves_at: float | None) -> Parting:
    """`leaves_at`: when the cloud takes the machine, as its metadata said before.  Without a cloud (a laptop) the job gets its SIGTERM at once."""
    if not cloud:
        return Parting(None, 0.0, grace_seconds, float("inf"))
    left = _LEFT_SECONDS.get(cloud, MOST_SECONDS)
    known = leaves_at is not None and leaves_at > now
    if known and leaves_at is not None:
        left = min(left, leaves_at - now)
    notice = NOTICE_SECONDS.get(cloud)
    asked = min(_MOST_ASKED_SECONDS, left / 2)
    return Parting(
        None if notice is None or known else now + notice, now + asked, min(grace_seconds, left / 4), now + left
    )
