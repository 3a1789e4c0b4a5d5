"""What one running application holds beside its services: counters, limits, the committer, sessions it remembers.  Made by `app`, shared by its routes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from anyio import CapacityLimiter

from planner.server.committer import Committer
from planner.server.limits import Limit
from planner.server.log import Log
from planner.server.metrics import Metrics
from planner.server.services import Services
from planner.server.sessions import Sessions

#: many nodes, and many people, may stand behind one address
PER_ADDRESS: Final = 100.0
BURST_SECONDS: Final = 10.0
STRANGERS_PER_SECOND: Final = 50.0
"""Tokens that nobody knows, from one address: each costs a look into the record."""

MAX_JOINS: Final = 8
"""At once: a proof may take a platform's answer, and strangers must not take the threads that nodes need."""

MAX_SIGN_INS: Final = 4
"""At once, for the same reason: each asks the issuer, which may not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One application's own."""

    services: Services
    metrics: Metrics
    log: Log
    committer: Committer
    sessions: Sessions
    joins: Limit
    addresses: Limit
    nodes: Limit
    people: Limit
    strangers: Limit
    joining: CapacityLimiter
    signing_in: CapacityLimiter


def held(services: Services, log: Log) -> Held:
    """As the settings say."""
    rates = dict(services.settings.rates)
    metrics = Metrics()

    def limit(rate: float) -> Limit:
        return Limit(rate, rate * BURST_SECONDS, time.monotonic)

    return Held(
        services=services,
        metrics=metrics,
        log=log,
        committer=Committer(services.runtime.deliver, services.clock, metrics, log),
        sessions=Sessions(services.runtime.sessions, services.clock),
        joins=limit(rates.get("join", 1.0)),
        addresses=limit(rates.get("join", 1.0) * PER_ADDRESS),
        nodes=limit(rates.get("node", 20.0)),
        people=limit(rates.get("people", 20.0)),
        strangers=limit(STRANGERS_PER_SECOND),
        joining=CapacityLimiter(MAX_JOINS),
        signing_in=CapacityLimiter(MAX_SIGN_INS),
    )
