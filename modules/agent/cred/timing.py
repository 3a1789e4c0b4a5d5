"""When a lease is minted anew, when to worry, when to ask the job for a checkpoint: all timing of credentials, and nothing but arithmetic.

Figures by notes/iam.md 2.4 (2026): botocore refreshes in the last 15 minutes and dies in the last 10, google-auth in the last 4.  So nothing
with less than 16 minutes is served while there is better, and that is also the moment for a checkpoint: after it, running clients see the trouble.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from .lease import Lease

WAIT = "wait"
MINT = "mint"
DEGRADED = "degraded"
CHECKPOINT = "checkpoint"

FLOOR_SECONDS = 30 * 60
"""Shortest lease that lasts a client: held equal to `planner.model.runtime.LEASE_FLOOR_SECONDS` by a test."""
DEGRADED_SECONDS = 20 * 60
CHECKPOINT_SECONDS = 16 * 60
TRIES_SECONDS = 5 * 60
"""At least so long before `degraded` the first attempt is made: half of a 30-minute lease would be too late."""
JITTER = 0.10
FIRST_PAUSE_SECONDS = 4.0
LONGEST_PAUSE_SECONDS = 60.0
LONGEST_ASKED_SECONDS = 300.0
"""A broker that asks to be left alone for longer is asked again all the same: leases end."""
FAILURES_TOLD = 3
"""Where there never was a lease, so many failures count as degraded."""


@dataclass(frozen=True)
class Tried:
    """What was done about a lease so far.

    told        the worst word already told, "" where all was well since
    asked_wait  seconds that the broker asked to be left alone for
    """

    failures: int = 0
    at: float | None = None
    told: str = ""
    asked_wait: float = 0.0


class Action(NamedTuple):
    """What to do now, and when to ask again."""

    word: str
    until: float


NEVER = Tried()


def next_action(lease: Lease | None, now: float, jitter: float, tried: Tried = NEVER) -> Action:
    """`degraded` and `checkpoint` once each and before all else (telling takes no time), then `mint` when it is due, otherwise `wait`.

    `jitter` is from -1 to 1, drawn once for a lease: nodes that started together do not ask together.
    """
    left = 0.0 if lease is None else lease.left(now)
    if lease is not None:
        if left <= CHECKPOINT_SECONDS and tried.told != CHECKPOINT:
            return Action(CHECKPOINT, now)
        if left <= DEGRADED_SECONDS and not tried.told:
            return Action(DEGRADED, now)
    elif tried.failures >= FAILURES_TOLD and not tried.told:
        return Action(DEGRADED, now)
    due = now if lease is None else mint_at(lease, jitter)
    if (
        tried.at is not None and tried.at <= now
    ):  # a clock that was set back must not make us wait for what is long past
        asked = min(tried.asked_wait, LONGEST_ASKED_SECONDS)
        due = max(due, tried.at + max(pause(tried.failures, jitter), asked))
    if due <= now:
        return Action(MINT, now)
    return Action(WAIT, min([due, *(at for at in _thresholds(lease) if at > now)]))


def mint_at(lease: Lease, jitter: float) -> float:
    """At half of its life +- 10 %, and always early enough for some attempts before it counts as degraded."""
    life = lease.ends - lease.begins
    latest = (life - DEGRADED_SECONDS - TRIES_SECONDS) / (1 + JITTER)
    return lease.begins + max(0.0, min(life / 2, latest)) * (1 + JITTER * jitter)


def pause(failures: int, jitter: float) -> float:
    """Seconds between attempts: 4, 8, 16 … 60, each cut by up to a half.  After a success the longest: leases too short to last make no storm."""
    doubled = FIRST_PAUSE_SECONDS * 2.0 ** min(failures - 1, 10)
    longest = min(LONGEST_PAUSE_SECONDS, doubled) if failures else LONGEST_PAUSE_SECONDS
    return longest * (0.75 + 0.25 * jitter)


def told_after(tried_told: str, lease: Lease, now: float) -> str:
    """What remains told once a new lease is there: nothing, if it is good."""
    return "" if lease.left(now) > DEGRADED_SECONDS else tried_told


def choose(leases: Iterable[Lease], now: float) -> Lease | None:
    """Which one to serve: the newest that has 16 minutes left, or else the one that lasts longest.  None where all are over."""
    living = [one for one in leases if one.left(now) > 0]
    good = [one for one in living if one.left(now) >= CHECKPOINT_SECONDS]
    if good:
        return max(good, key=lambda one: (one.begins, one.ends))
    return max(living, key=lambda one: one.ends, default=None)


def _thresholds(lease: Lease | None) -> list[float]:
    return [] if lease is None else [lease.ends - DEGRADED_SECONDS, lease.ends - CHECKPOINT_SECONDS]
