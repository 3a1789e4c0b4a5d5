"""Who holds what, and what failed lately: two inputs of a plan, as values."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Holding:
    """`nodes` of one pool held by a job, running or planned.  `gpus` and `vcpus` are totals, for quotas.

    usd_per_hour_ticks, usd_total_ticks  USD 0.0001, for budgets; of a job in several pools each holding has its part
    team, apart, gang                    whose it is; the (group, by) of its anti-affinity; the group of its gang
    """

    job: str
    pool: str
    instance_type: str
    region: str
    target: str
    capacity: str
    nodes: int
    gpus: int
    vcpus: int
    addresses: tuple[str, ...] = ()
    usd_per_hour_ticks: int = 0
    usd_total_ticks: int = 0
    team: str = ""
    apart: tuple[tuple[str, str], ...] = ()
    gang: str = ""


@dataclass(frozen=True, slots=True)
class Ledger:
    """All holdings, sorted.  From the record's runs and from plan files that the call does not re-plan."""

    holdings: tuple[Holding, ...] = ()

    def without(self, jobs: frozenset[str]) -> Ledger:
        """The ledger less what those jobs hold."""
        return Ledger(tuple(h for h in self.holdings if h.job not in jobs))

    def plus(self, holding: Holding) -> Ledger:
        """The ledger with one more holding."""
        at = bisect_left(self.holdings, holding)
        return Ledger((*self.holdings[:at], holding, *self.holdings[at:]))


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Failure:
    """One launch that the cloud refused.  `scope` is the pool, or the offer id where only that offer is known bad; `at` UTC ISO.

    `code` is the cloud's own word (InsufficientInstanceCapacity); `kind` is capacity, quota or unknown.
    """

    scope: str
    code: str
    kind: str
    at: str


@dataclass(frozen=True, slots=True)
class AvailabilityMemory:
    """Recent failures, sorted."""

    failures: tuple[Failure, ...] = ()
