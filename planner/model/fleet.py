"""What a plan of many jobs says as a whole: who is placed, who waits and why, what it costs against one by one and against the least possible.

Values only; `planner.placement` makes them, `planner.render` shows them.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A job that has no place now although it could have one on an empty market.

    code     SKY-REJ-207 pool, 205 quota, 212 networks, 216 apart, 217 gang, 218 budget, 219 several of them
    text     the sentence, with numbers: what it needs, what there is, who holds it
    behind   up to three jobs, of those that hold it, named first by priority
    """

    job: str
    priority: int
    team: str
    code: str
    text: str
    behind: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A job that stays where its earlier plan put it, as another place would save too little.  `saving_usd`: what that would be."""

    job: str
    offer_id: str
    better_offer_id: str
    saving_usd: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolUse:
    """Nodes of one pool: held by others, planned here, and the most there may be (None: uncapped)."""

    pool: str
    held: int
    planned: int
    cap: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetUse:
    """One budget of skyplan.yaml: what others hold of it, what this plan takes, the limit; USD.  `kind` is per_hour or total."""

    teams: tuple[str, ...]
    kind: str
    held_usd: Decimal
    planned_usd: Decimal
    limit_usd: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSummary:
    """The whole of one call.

    method           `one by one` or the solver's name and version
    total_usd        of the jobs that are placed
    one_by_one_usd   what the same jobs would cost taken in order of (priority, name); None where not all of them found a place so
    bound_usd        no assignment of the same jobs can cost less (linear relaxation); None where it was not computed
    """

    jobs: int
    placed: int
    method: str
    total_usd: Decimal
    one_by_one_usd: Decimal | None
    bound_usd: Decimal | None
    waiting: tuple[Waiting, ...] = ()
    kept: tuple[Kept, ...] = ()
    pools: tuple[PoolUse, ...] = ()
    budgets: tuple[BudgetUse, ...] = ()
