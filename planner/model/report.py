"""A report: what people who decide are shown of one or more plans, as one value.  Figures as plans have them; judges nothing, formats nothing."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from planner.model.diagnostic import Diagnostic
from planner.model.fleet import FleetSummary
from planner.model.migration import MigrationDiff
from planner.model.past import Pasts
from planner.model.plan import PlacementPlan, RejectedCount

if TYPE_CHECKING:
    from planner.model.policy import Audited

GROUPS: dict[str, tuple[str, ...]] = {
    "compute": ("compute",),
    "lost": ("startup", "interruptions"),
    "egress": ("data_egress", "checkpoint_egress", "output_egress", "sync_egress"),
    "other": ("disk", "outbound", "tunnel_addresses"),
}
"""The terms of a total as a table of hundreds of offers shows them, four sums; a placement's own terms stand beside its bar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One feasible way to run the job.

    position   among all feasible ways, 0 the cheapest; splits over clouds included
    cloud, region, capacity, gpu   as names; of a split joined by ` + `
    gpus       over all nodes
    groups     USD by the names of GROUPS, in that order; None where a term of it is unknown
    edge       no other way costs less and finishes as early
    """

    position: int
    offer_id: str
    place: str
    what: str
    cloud: str
    region: str
    capacity: str
    gpu: str
    gpus: int
    usd_per_hour: Decimal
    total_usd: Decimal
    lower_bound: bool
    finish_hours: Decimal
    groups: tuple[Decimal | None, ...]
    edge: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Gbit/s that one node is fed at, or can write at; `estimated` where no measurement exists.  `uri` is the store that is slowest."""

    uri: str
    gbps: float
    estimated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionRow:
    """One region that a target lies in: its cheapest feasible offer, or why there is none (`code`: the main reason of most of its offers)."""

    cloud: str
    region: str
    area: str
    offers: int
    feasible: int
    best: Row | None
    code: str = ""
    read: Rate | None = None
    write: Rate | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReport:
    """One job.

    before      the placement id that stands, None where none does; "" of a plan file, where nobody asked
    rows        by position; `feasible` and `splits` count all there are, rows may be fewer
    whole       every feasible offer is among `rows`; a plan file holds its ranked set alone
    regions     () of a plan file
    detailed    it has sections of its own; of a large fleet the others stand in the overview alone, with their ranked set as rows
    audited     the identities that the choice needs and what each reaches; None with `no_rights` saying why
    past        prices of the ranked set's offers; None with `no_past` saying why
    """

    plan: PlacementPlan
    file: str
    before: str | None
    rows: tuple[Row, ...]
    feasible: int
    splits: int
    whole: bool
    reasons: tuple[RejectedCount, ...]
    regions: tuple[RegionRow, ...]
    audited: Audited | None
    no_rights: str
    past: Pasts | None
    no_past: str
    moves: tuple[MigrationDiff, ...] = ()
    detailed: bool = True

    @property
    def choice_row(self) -> Row | None:
        """The row of the plan's choice; None where nothing is feasible."""
        if not self.plan.ranked:
            return None
        return next((r for r in self.rows if r.offer_id == self.plan.choice.offer_id), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """`as_of`: the newest moment of the plans' inputs, which is the report's own.  `fleet` None where jobs were not planned together."""

    project: str
    as_of: str
    jobs: tuple[JobReport, ...]
    fleet: FleetSummary | None = None
    warnings: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Assets:
    """The style sheet and the script that a page carries."""

    css: str
    script: str
