"""What a placement diff says: one Change per job, and around them money, rights and Terraform resources.

A value like the plans it is made of: `planner.app.diff` makes it, `planner.render` shows it, nothing here reads or judges.  What is not known stays unknown:
an amount that lacks a part is a lower bound, and no difference is made of two of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any

from planner.model.diagnostic import Diagnostic
from planner.model.finding import Finding
from planner.model.grants import Grant
from planner.model.migration import MigrationDiff
from planner.model.plan import Placement

FORMAT_VERSION = "1.0"


class Action(StrEnum):
    """What becomes of a job.

    create   it had no placement
    update   it stays where it is and is made of other things: more nodes, another image
    retire   nothing is left of it
    migrate  it goes to other machines, another place or another way of paying
    keep     the placement id is the same
    """

    CREATE = "create"
    UPDATE = "update"
    RETIRE = "retire"
    MIGRATE = "migrate"
    KEEP = "keep"


GLYPHS: dict[Action, str] = {
    Action.CREATE: "+",
    Action.UPDATE: "~",
    Action.RETIRE: "-",
    Action.MIGRATE: ">",
    Action.KEEP: "=",
}


class Bound(StrEnum):
    """What an amount or a difference is worth."""

    EXACT = "exact"
    AT_LEAST = "at least"
    AT_MOST = "at most"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """USD.  `at_least`: something in it is unknown, so that it is a lower bound."""

    usd: Decimal = Decimal(0)
    at_least: bool = False

    def plus(self, other: Amount) -> Amount:
        """A sum with an unknown in it is a lower bound."""
        return Amount(usd=self.usd + other.usd, at_least=self.at_least or other.at_least)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """USD that come on top, negative for a saving; meaningless where `bound` is UNKNOWN."""

    usd: Decimal
    bound: Bound


def difference(before: Amount, after: Amount) -> Difference:
    """`after` less `before`.  A saving is never read out of an amount that is not known whole."""
    usd = after.usd - before.usd
    match before.at_least, after.at_least:
        case False, False:
            bound = Bound.EXACT
        case False, True:
            bound = Bound.AT_LEAST if usd > 0 else Bound.UNKNOWN
        case True, False:
            bound = Bound.AT_MOST
        case _:
            bound = Bound.UNKNOWN
    return Difference(usd=usd, bound=bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """One sum on both sides."""

    before: Amount = field(default_factory=Amount)
    after: Amount = field(default_factory=Amount)

    @property
    def difference(self) -> Difference:
        """What comes on top."""
        return difference(self.before, self.after)

    def plus(self, other: Sides) -> Sides:
        """Both sides added."""
        return Sides(before=self.before.plus(other.before), after=self.after.plus(other.after))


@dataclass(frozen=True, slots=True, kw_only=True)
class TermChange:
    """One term of the totals.  USD None = unknown; a term that a side does not have is 0 there."""

    name: str
    before: Decimal | None
    after: Decimal | None
    detail: str

    @property
    def difference(self) -> Difference:
        """What comes on top; of one term there is no bound: it is known or it is not."""
        if self.before is None or self.after is None:
            return Difference(usd=Decimal(0), bound=Bound.UNKNOWN)
        return Difference(usd=self.after - self.before, bound=Bound.EXACT)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Altered:
    """A property of the placement or of the job that is another one now.  "" = was not, or is not any more."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A share of a change: `what` is `market`, `skyplan`, `project`, `job` or `others`, in the order they were let in one after the other."""

    what: str
    moved: bool
    total: Difference
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What becomes of one job.

    before, after   the placements; None = it has none there
    reason          why, with numbers
    runner_up       the second best of the new plan; None where there is none
    causes          what the inputs' digests tell apart, or with `--attribute` what a replanning does
    grants_added    of the nodes, in the choice's own words; whether one widens is the diff's `widenings`
    other_figures   the placement is kept, and its price, finish, runner-up or caveats are others
    replanned       sides whose plan is no file but was made for this diff
    """

    job: str
    action: Action
    before: Placement | None
    after: Placement | None
    reason: str
    runner_up: Placement | None = None
    terms: tuple[TermChange, ...] = ()
    hourly: Sides = field(default_factory=Sides)
    total: Sides = field(default_factory=Sides)
    egress: Sides = field(default_factory=Sides)
    altered: tuple[Altered, ...] = ()
    caveats_added: tuple[str, ...] = ()
    grants_added: tuple[Grant, ...] = ()
    grants_removed: tuple[Grant, ...] = ()
    causes: tuple[Cause, ...] = ()
    inputs_changed: tuple[str, ...] = ()
    other_figures: bool = False
    replanned: tuple[str, ...] = ()
    migration: MigrationDiff | None = None
    file: str = ""

    @property
    def unplaced(self) -> bool:
        """It had a place, and with what it asks for now there is none."""
        return self.action is Action.UPDATE and self.after is None

    @property
    def stands(self) -> bool:
        """The placement in the plans is one and the same."""
        return bool(self.before and self.after and self.before.placement_id == self.after.placement_id)

    @property
    def finish_hours(self) -> tuple[Decimal | None, Decimal | None]:
        """Before, after."""
        return (
            self.before.finish_hours if self.before else None,
            self.after.finish_hours if self.after else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ResourceChange:
    """One Terraform resource, without its values.

    action    `create`, `update`, `replace`, `delete`, `forget`, `move`, `import`
    because   Terraform's own `action_reason`, "" where it gives none
    paths     attributes that change; of a replacement, those that force it
    """

    address: str
    action: str
    because: str = ""
    previous: str = ""
    paths: tuple[str, ...] = ()

    @property
    def destroys(self) -> bool:
        """Whether something that stands is gone afterwards."""
        return self.action in {"delete", "replace"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TerraformChanges:
    """What a Terraform plan would do.  `outputs`: names with their action; `drifted`: addresses that changed outside of Terraform."""

    file: str
    resources: tuple[ResourceChange, ...] = ()
    outputs: tuple[tuple[str, str], ...] = ()
    drifted: tuple[str, ...] = ()
    errored: bool = False

    @property
    def destroying(self) -> tuple[ResourceChange, ...]:
        """Deletions and replacements."""
        return tuple(r for r in self.resources if r.destroys)

    @property
    def empty(self) -> bool:
        """Nothing would be done."""
        return not self.resources and not self.outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementDiff:
    """Two sets of plans, held against each other.

    base, head   as the user named them
    valid_at     the newest moment among the inputs: of prices and, with revisions, of the head's commit.  Never the clock
    changes      every job of either side, by name
    widenings    what the head grants and the base does not (rule SKY-IAM-605)
    hourly, total, egress   over all jobs
    snapshots    moments of the prices that plans were made with; more than one = price changes are mixed in
    """

    base: str
    head: str
    project: str
    valid_at: str
    changes: tuple[Change, ...]
    widenings: tuple[Finding, ...] = ()
    terraform: tuple[TerraformChanges, ...] = ()
    hourly: Sides = field(default_factory=Sides)
    total: Sides = field(default_factory=Sides)
    egress: Sides = field(default_factory=Sides)
    snapshots: tuple[str, ...] = ()
    inputs: dict[str, Any] = field(default_factory=dict[str, Any])
    warnings: tuple[Diagnostic, ...] = ()

    def of(self, action: Action) -> tuple[Change, ...]:
        """The changes of one kind."""
        return tuple(c for c in self.changes if c.action is action)

    @property
    def open(self) -> tuple[Change, ...]:
        """What is not kept, and what is kept but moves by a migration diff."""
        return tuple(c for c in self.changes if c.action is not Action.KEEP)

    @property
    def changed(self) -> bool:
        """Whether there is something to review: a placement id, a right or a Terraform resource that is another one."""
        return bool(self.open or self.widenings or any(not t.empty for t in self.terraform))
