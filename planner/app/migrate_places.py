"""Where a move may go: of the diff's placements those whose network and access stand already, and what their nodes are launched with.

Decides that a place is prepared; changes no network and no access stack, which is the deployer's work.  A split job's endpoints would have to be reserved: it
is not moved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from planner.app import compose
from planner.app.steps import stack_of
from planner.model.record import StackStatus

if TYPE_CHECKING:
    from planner.app.ports import Ports
    from planner.model.plan import Placement, PlacementPlan
    from planner.model.record import Run, Stack
    from planner.model.stack import AccessInput, StackSet
    from planner.model.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The ranked set that stacks are made of, and where the job may go, first choice first.  `barred`: offer ids with the reason (their price moved)."""

    plan: PlacementPlan
    workload: Workload
    to: tuple[Placement, ...]
    barred: Mapping[str, str]

    def open(self, ports: Ports, runs: Sequence[Run]) -> Iterator[tuple[Placement, str]]:
        """Each with the reason why it may not be gone to, "" where it may.  `runs`: the job's that hold addresses."""
        for p in self.to:
            yield p, self._against(ports, p, runs)

    def access(self, ports: Ports, p: Placement) -> dict[str, Any]:
        """What the access stack of a placement that is open tells its nodes; {} where nobody knows.  Raises TerraformError.

        By the record, which has it from the deployer's apply: whoever moves jobs unattended may not read that stack's state.
        """
        known = ports.record.stack(self._set(ports, p, None).access.name)
        if known is None or known.outputs is not None:
            return dict(known.outputs or {}) if known is not None else {}
        ports.terraform.prepare(known)
        return ports.terraform.outputs(known)

    def stack(self, ports: Ports, p: Placement, generation: int, access: Mapping[str, Any]) -> Stack:
        """The compute stack of a placement."""
        from stacks.wiring import compute_variables  # noqa: PLC0415 - beside its use

        cmp = self._set(ports, p, generation).compute
        return stack_of(cmp, ports.synth(cmp), compute_variables(cmp, access))

    def _against(self, ports: Ports, p: Placement, runs: Sequence[Run]) -> str:
        if why := self.barred.get(p.offer_id):
            return why
        if p.parts:
            return "a job in several clouds is not moved: its endpoints would have to be reserved first"
        place = (p.cloud, p.target, p.region)
        taken = {a for r in runs if (r.cloud, r.target, r.region) == place for a in r.addresses} & set(p.addresses)
        if taken:
            return f"{', '.join(sorted(taken))} is an address of a node that runs"
        given = self._set(ports, p, None)
        for stack in (given.network, given.access):
            known = ports.record.stack(stack.name)
            if known is None or known.status is not StackStatus.APPLIED:
                return f"{stack.name} does not stand"
        known = ports.record.stack(given.access.name)
        if known is None or not _within(ports.synth(_own(given.access, given.compute.template_key)), known.document):
            return f"{given.access.name} stands, but was made for something else than this placement"
        return ""

    def _set(self, ports: Ports, p: Placement, generation: int | None) -> StackSet:
        (only,) = compose.stack_sets(
            self.plan.ranked, p, self.workload, ports.project, ports.market, generation=generation
        )
        return only


def _own(access: AccessInput, key: str) -> AccessInput:
    """What of an access stack the placement itself needs: another plan may have other candidates beside it."""
    return replace(
        access,
        templates=tuple(t for t in access.templates if t.key == key),
        spot_templates=tuple(t for t in access.spot_templates if t == key),
    )


def _within(wanted: Any, there: Any) -> bool:
    """Whether all that is wanted is there, at the same place; more may be."""
    if isinstance(wanted, Mapping) and isinstance(there, Mapping):
        mine, theirs = cast("Mapping[str, Any]", wanted), cast("Mapping[str, Any]", there)
        return all(key in theirs and _within(value, theirs[key]) for key, value in mine.items())
    if isinstance(wanted, (list, tuple)) and isinstance(there, (list, tuple)):
        some, more = cast("Sequence[Any]", wanted), cast("Sequence[Any]", there)
        return all(any(_within(one, other) for other in more) for one in some)
    return bool(wanted == there)
