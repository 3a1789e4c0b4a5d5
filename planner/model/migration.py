"""The migration diff: one job's move as a value that is reviewed, committed, and carried out by `skyplan migrate`.

It is a pure function of the record, the plans and one market snapshot, which it names by digest.  `planner.migration.document` gives JSON and reads it back; whoever
edits a diff breaks its digest.  A move touches compute stacks only; network and access stacks of its target stand already, or the diff says that they do not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any

from planner.model.grants import Grant
from planner.model.plan import Placement, ScoreTerm

FORMAT_VERSION = "1.0"


class MigrationReason(StrEnum):
    """Why a job moves; each has its own rule.  Codes SKY-MOVE-413 to 418, in this order."""

    SAVING = "saving"
    INTERRUPTION = "interruption"
    DEADLINE = "deadline"
    QUOTA = "quota"
    DRIFT = "drift"
    RECOVERY = "recovery"


REASON_CODES: dict[MigrationReason, str] = {
    reason: f"SKY-MOVE-{413 + number}" for number, reason in enumerate(MigrationReason)
}


class MigrationStatus(StrEnum):
    """Where a migration is: the last step that is done, as the record's `migration` row has it.

    proposed   decided; nothing was done
    launched   the new nodes are up and hold; the old ones compute on
    saved      the checkpoint that was asked for is durable (of a recovery: the newest there is counts)
    cut_over   the new generation is released: its cut fences the older ones.  From here there is no way back
    verified   the new generation reported progress beyond the step it resumed at
    retired    the old compute stacks are gone: done
    reverted   given up before the cut-over: the new nodes are gone, the old ones run on
    """

    PROPOSED = "proposed"
    LAUNCHED = "launched"
    SAVED = "saved"
    CUT_OVER = "cut_over"
    VERIFIED = "verified"
    RETIRED = "retired"
    REVERTED = "reverted"


#: what is done in each, in a few words
DOING: dict[MigrationStatus, str] = {
    MigrationStatus.PROPOSED: "new nodes are launched",
    MigrationStatus.LAUNCHED: "the new nodes hold, and the old ones are waited for to save a checkpoint",
    MigrationStatus.SAVED: "the new nodes are released, and waited for to begin their cut",
    MigrationStatus.CUT_OVER: "the old nodes are fenced, and the new ones waited for to make progress",
    MigrationStatus.VERIFIED: "the old nodes are ended",
    MigrationStatus.RETIRED: "done",
    MigrationStatus.REVERTED: "given up",
}

#: a migration in one of these is at its end
CLOSED = (MigrationStatus.RETIRED, MigrationStatus.REVERTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What runs, or ran last: the record's run, and what it costs now.

    usd_per_hour  all nodes at the present price; None where it is not known
    step          of its newest progress; checkpoint_step of its newest checkpoint; None where there is none
    """

    generation: int
    offer_id: str
    pool: str
    placement_id: str
    region: str
    topology: str
    status: str
    usd_per_hour: Decimal | None
    remaining_usd: Decimal | None
    remaining_hours: Decimal | None
    step: int | None
    checkpoint_step: int | None
    checkpoint_uri: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationStep:
    """One step.  `after`: keys of the steps that must be done first; `minutes` expected; `stops`: the job makes no progress meanwhile."""

    key: str
    title: str
    after: tuple[str, ...] = ()
    minutes: Decimal | None = None
    stops: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationDiff:
    """One job's move.

    to              where to, first choice first: the placements of `plan_digest`'s ranked set that may be tried, at most ten
    terms           what decided, in USD and in order: `saving` (what runs, to the end or the horizon, less the target's), each cost of the move negative,
                    and `net`, their sum
    numbers         plain figures that the terms were made of, by name, unit in the name (`gap_usd_per_hour`, `horizon_hours`, `threshold_usd`, …)
    runner_up       the best place beside the first of `to`, in words; "" where there is none
    stop_minutes    how long the job is expected to make no progress
    resources_added, resources_removed   addresses of Terraform resources, `STACK: ADDRESS`
    grants_added, grants_removed         of the nodes
    reviewed        every place of `to` is in the plan that was reviewed
    prepared        their network and access stacks stand
    inputs          digests and moments: `record`, `market`, `as_of`, `plan`, `constants`
    """

    job: str
    project: str
    reason: MigrationReason
    code: str
    text: str
    standing: Standing
    to: tuple[Placement, ...]
    terms: tuple[ScoreTerm, ...]
    numbers: dict[str, Decimal]
    runner_up: str
    stop_minutes: Decimal
    steps: tuple[MigrationStep, ...]
    plan_digest: str
    reviewed: bool
    prepared: bool
    resources_added: tuple[str, ...] = ()
    resources_removed: tuple[str, ...] = ()
    grants_added: tuple[Grant, ...] = ()
    grants_removed: tuple[Grant, ...] = ()
    inputs: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A job that stays: `code` SKY-MOVE-401 to 412, 419, with the failing term in words, and the best place that was turned down ("" = none)."""

    job: str
    code: str
    text: str
    best: str = ""
    terms: tuple[ScoreTerm, ...] = ()
    numbers: dict[str, Decimal] = field(default_factory=dict[str, Decimal])
