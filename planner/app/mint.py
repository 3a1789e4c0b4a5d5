"""The broker's decision: one lease for one node, or a refusal.  It is the only place where a data credential is asked for.

What it believes, and what it does not:
  the platform     who the machine is (a verified `NodeIdentity`; handed in)
  plan files       what the job may reach, where its nodes run, which identity holds the data rights (`mint_plans`, `mint_nodes`, `mint_rules`)
  the record       only to say no: that a seat is fenced, ended, another machine's or another key's; and which of the approved plans is meant
  nobody else      the control plane and the orchestrator are not asked, and the node chooses nothing but a prefix that the plan grants

So whoever owns database and control plane can choose among the approved plans of the very job whose node asks; he can keep a fenced generation alive, and
let a node that he also owns write under another generation's name.  He cannot name a prefix, an identity, a machine or a job that no approved plan names, and
he gets no lease himself: that takes a machine of the job.  docs/broker.md tells the rest.

Order: judged, minted, checked again (a fence may have come meanwhile), logged, answered.  No lease is answered that the record does not have.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from planner.app.compose import hard_end_hours
from planner.app.mint_keys import BoundKeys
from planner.app.mint_nodes import NodeNames
from planner.app.mint_plans import ApprovedPlans
from planner.app.mint_rules import Allowed, NotGranted, Wanted, allowed, lifetime_seconds
from planner.clouds.mint.port import Minted, Minters, Order
from planner.model.control_names import SESSION_TAGS, data_identity
from planner.model.errors import InputError
from planner.model.offer import Cloud
from planner.model.plan import Placement, PlacementPlan
from planner.model.record import Run, moment, stamp
from planner.model.runtime import CredentialIssue, NodeIdentity, Refusal, Refused, Seat, same_machine
from planner.model.workload import Store, Workload
from planner.spec.normal import workload_from_document

#: what says who runs on the machine, for whom it was said, and when.  An identity document is for nobody in particular and a one-time token names no machine
TAKEN: Final = ("aws-sts", "gcp-jwt", "azure-jwt", "nebius-jwt")


class Ledger(Protocol):
    """What the broker asks the record, and tells it."""

    def check(self, seat: Seat) -> None:
        """Raises Refused where the seat's run is unknown, fenced or ended."""
        ...

    def machine(self, seat: Seat) -> str | None:
        """The seat's instance id; "" where it is not known, None where no machine is."""
        ...

    def holder(self, seat: Seat) -> tuple[str, str] | None:
        """(instance id, SHA-256 of its key) of the machine that has joined."""
        ...

    def run(self, seat: Seat) -> Run | None:
        """The run: which plan, since when."""
        ...

    def issue(self, issue: CredentialIssue, at: datetime) -> None:
        """Log a lease.  Raises Unavailable."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A request whose proof has been verified.  `key_sha256`, `proof_sha256`: by what a replay is recognised."""

    wanted: Wanted
    who: NodeIdentity
    key_sha256: str
    proof_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """What the node gets: the line in the log, and the secret that is in no log."""

    issue: CredentialIssue
    minted: Minted


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    plan: PlacementPlan
    piece: Placement
    found: Allowed
    run: Run
    seat: Seat


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """See the module.  `name` of a lease, by default random."""

    project: str
    plans: ApprovedPlans
    nodes: NodeNames
    ledger: Ledger
    minters: Minters
    keys: BoundKeys
    lease_id: Callable[[], str] = lambda: f"lease-{secrets.token_hex(8)}"

    def lease(self, asking: Asking, now: datetime) -> Lease:
        """Raises Refused; Unavailable and other CloudErrors where the record or the cloud does not answer as it should."""
        wanted, seat = asking.wanted, asking.wanted.seat
        self.ledger.check(seat)
        run, plan = self._approved(seat)
        whole, piece = self._piece(plan, asking.who)
        self._same_node(asking)
        # grants are those of the whole, paths those of the part; which of the plan's placements was launched makes no difference to either
        found = allowed(plan.grants.get(whole.grants_digest, ()), wanted)
        id_ = self.lease_id()
        order = self._order(_Judged(plan=plan, piece=piece, found=found, run=run, seat=seat), id_, now)
        minted = self.minters.minter(found.store.value).mint(order)
        self.ledger.check(seat)
        issue = CredentialIssue(
            id=id_,
            seat=seat,
            store=found.store.value,
            uri=found.uri,
            access=found.access,
            identity=order.identity,
            issued_at=stamp(now),
            expires_at=stamp(minted.expires_at),
        )
        self.ledger.issue(issue, now)
        return Lease(issue=issue, minted=minted)

    def _approved(self, seat: Seat) -> tuple[Run, PlacementPlan]:
        run = self.ledger.run(seat)
        if run is None:
            raise Refused(Refusal.UNKNOWN, f"the record has no run {seat.run}")
        plan = self.plans.plan(run.plan_digest)
        if plan is None:
            raise NotGranted(f"no approved plan file has the digest of {seat.run}'s plan")
        if plan.name != seat.job:
            raise NotGranted(f"the plan of {seat.run} is of another job")
        return run, plan

    def _piece(self, plan: PlacementPlan, who: NodeIdentity) -> tuple[Placement, Placement]:
        if who.scheme not in TAKEN:
            raise Refused(
                Refusal.IDENTITY,
                f"the broker takes no proof by `{who.scheme}`: it must say whose rights the machine has, and for whom",
            )
        found = self.nodes.piece(plan, who)
        if found is None:
            raise Refused(Refusal.IDENTITY, f"the proof is of no node identity of job {plan.name}")
        return found

    def _same_node(self, asking: Asking) -> None:
        """The seat's own machine, with its own key."""
        seat, who = asking.wanted.seat, asking.who
        machine, holder = self.ledger.machine(seat), self.ledger.holder(seat)
        if machine is None or holder is None:
            raise Refused(Refusal.EARLY, f"no machine has joined as rank {seat.rank} of {seat.run} yet")
        if not same_machine(machine, who):
            raise Refused(Refusal.IDENTITY, f"rank {seat.rank} of {seat.run} is another machine than {who.instance_id}")
        if holder[1] != asking.key_sha256:
            raise Refused(Refusal.KEY, f"rank {seat.rank} of {seat.run} joined with another key")
        self.keys.bind(who, asking.key_sha256, asking.proof_sha256)

    def _order(self, judged: _Judged, id_: str, now: datetime) -> Order:
        plan, piece, found, seat = judged.plan, judged.piece, judged.found, judged.seat
        workload = _workload(plan)
        account, target = _holder(plan, piece, found)
        cloud = Cloud(found.store.cloud)
        place = (piece.cloud, piece.target, piece.region)
        # Azure has no identity to become: there the broker signs for the storage account
        identity = data_identity(cloud, account, self.project, plan.name, place) or found.scope.bucket.partition("/")[0]
        return Order(
            scope=found.scope,
            identity=identity,
            name=f"{id_}-{seat.run}-r{seat.rank}",
            lifetime_seconds=lifetime_seconds(found.store, now, _hard_end(workload, plan, judged.run)),
            now=now,
            labels=tuple(
                zip(SESSION_TAGS, (str(seat.generation), seat.job, self.project, str(seat.rank)), strict=True)
            ),
            region=_region(workload, found),
            account=account,
            kms_key=self._kms_key(target, cloud),
        )

    def _kms_key(self, target: str, cloud: Cloud) -> str:
        if cloud is not Cloud.AWS:
            return ""
        targets = self.nodes.project.targets
        return next((t.kms_key_arn or "" for t in targets if (t.cloud, t.name) == (cloud, target)), "")


def _workload(plan: PlacementPlan) -> Workload:
    try:
        return workload_from_document(plan.job)
    except InputError as error:
        raise NotGranted("the plan's job cannot be read") from error


def _holder(plan: PlacementPlan, piece: Placement, found: Allowed) -> tuple[str, str]:
    """Account and target that hold the identity to become, as the plan says.  Raises Refused for a store that the nodes reach by themselves."""
    for path in plan.access.get(f"{piece.cloud}:{piece.target}", ()):
        if path.minted and found.is_of(path.uri):
            said = dict(path.settings)
            return said.get("identity_account", ""), said.get("identity_target", "")
    raise NotGranted(
        f"the plan lets nothing be minted for {found.uri}: the nodes reach it by their own identity, or not at all"
    )


def _hard_end(workload: Workload, plan: PlacementPlan, run: Run) -> datetime | None:
    """By the plan's own limits, from the run's start.  By the cheapest of its placements: the reaper knows which one runs, a lease must not end before it."""
    cheapest = min((float(p.usd_per_hour) for p in plan.ranked), default=None)
    hours = hard_end_hours(workload, cheapest)
    return None if hours is None or not run.started_at else moment(run.started_at) + timedelta(hours=hours)


def _region(workload: Workload, found: Allowed) -> str:
    """Of the store, as the job says."""
    places = [d.at for d in workload.data] + [part.at for part in (workload.checkpoint, workload.output) if part]
    scope = found.scope
    for at in places:
        if (at.store, at.bucket) == (Store(scope.store), scope.bucket) and at.region:
            return at.region
    return ""
