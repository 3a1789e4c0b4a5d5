"""The only entry to placement: `plan_fleet(jobs, market, ledger, policy)`, and `plan` for the jobs of it alone.  One job is a fleet of one.

One by one, jobs would be taken in order (priority, then name), each choice added to the ledger before the next is ranked.  Where that leaves nobody worse off than
alone it is what happens; where jobs contend, a solver looks for what costs less in all (`assign`).  The order of jobs in the call changes nothing.
Pure: no clock, no file, no cloud; replanning calls this too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from planner.model.digest import digest
from planner.model.ledger import AvailabilityMemory
from planner.placement.alone import Ground
from planner.placement.crowd import cool_downs
from planner.placement.held import holdings, ledger_digest
from planner.placement.offers import offers_of
from planner.placement.placed import Fleet, Placed
from planner.placement.rank import RANKED, Unusable
from planner.placement.standing import Standing
from planner.placement.told import alone, together

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from planner.model.ledger import Ledger
    from planner.model.market import Market
    from planner.model.project import Project
    from planner.model.workload import Workload
    from planner.placement.offers import Offers

__all__ = ["Fleet", "Placed", "Policy", "holdings", "ledger_digest", "memory_digest", "moment", "plan", "plan_fleet"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What bends a plan besides jobs and market: the project's limits and prices, recent failures, the moment, how many to rank.

    unusable  by job, what its nodes could not run on; the reasons are the app's (images, secrets), the placement only obeys
    standing  by job, what it runs on: a candidate without start-up, at its current rate
    earlier   by job, the offer that its earlier plan chose: it stays there unless another saves enough
    """

    project: Project
    memory: AvailabilityMemory
    as_of: str
    top: int = RANKED
    unusable: Mapping[str, Unusable] = field(default_factory=dict[str, Unusable])
    standing: Mapping[str, Standing] = field(default_factory=dict[str, Standing])
    earlier: Mapping[str, str] = field(default_factory=dict[str, str])


def moment(as_of: str) -> datetime:
    """An ISO date or time as an aware datetime, UTC where it does not say."""
    at = datetime.fromisoformat(as_of)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def plan(
    jobs: Sequence[Workload], market: Market, ledger: Ledger, policy: Policy, offers: Offers | None = None
) -> tuple[Placed, ...]:
    """As `plan_fleet`, of which it returns the jobs."""
    return plan_fleet(jobs, market, ledger, policy, offers).placed


def plan_fleet(  # noqa: PLR0917 - as `plan`, which has five
    jobs: Sequence[Workload],
    market: Market,
    ledger: Ledger,
    policy: Policy,
    offers: Offers | None = None,
    advance: Callable[[], object] | None = None,
) -> Fleet:
    """Place every job.  The result is in the order of turns: higher priority first, then by name.

    `ledger` is what others hold; holdings of the jobs themselves are set aside first, as they are planned anew.
    `offers`: what `offers_of` makes of the same market, project and moment, where the caller has it already.
    `advance` is called once per job that is done, for a progress bar.
    """
    offers = offers or offers_of(market, policy.project, as_of=policy.as_of)
    ground = Ground(
        offers=offers,
        project=policy.project,
        cool=cool_downs(policy.memory, moment(policy.as_of)),
        unusable=policy.unusable,
        standing=policy.standing,
        top=policy.top,
    )
    ledger = ledger.without(frozenset(j.name for j in jobs))
    ordered = sorted(jobs, key=lambda j: (-j.priority, j.name))
    if len(ordered) != 1:
        return together(ground, ordered, ledger, policy.earlier, advance)
    fleet = alone(ground, ordered[0], ledger)
    if advance is not None:
        advance()
    return fleet


def memory_digest(memory: AvailabilityMemory) -> str:
    """Digest of the failures, for `inputs`."""
    return digest([[f.scope, f.code, f.kind, f.at] for f in memory.failures])
