"""A job's move, carried out: new nodes, checkpoint, cut-over, progress, and only then the end of the old nodes.  Touches compute stacks alone.

    proposed   the places of the diff are tried in order until one runs; its nodes hold (`planner.state.moves`)
    launched   the old nodes are asked for a checkpoint and compute on until it is durable
    saved      the hold is off: the new nodes' first act is the cut, which fences the old ones
    cut_over   they go on from the newest whole checkpoint, and must get beyond it
    verified   the old compute stacks are destroyed
    retired    done

Each status is written when it is reached, after the act and before the next one's; whoever comes after a crash at any moment goes on from there.  Until the cut
has begun a move that cannot go on is reverted: the new nodes end, the old ones never noticed.  After it there is no way back, and nothing is retired before the new
nodes made progress.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import ROUND_UP, Decimal
from typing import TYPE_CHECKING, Any

from planner.app import secrets_guard
from planner.app.launch import launch, run_of
from planner.app.lease import held
from planner.app.lookup import instance_type
from planner.app.migrate_judge import WORKS, budget_left, judge, new_run, same_move
from planner.app.migrate_order import Migrated, Order, Stop, Waits
from planner.app.migrate_places import Places
from planner.app.migrate_watched import Watched
from planner.app.recover import end_nodes, finish_ending, recover
from planner.app.steps import Refused
from planner.migration.document import from_document as diff_from
from planner.migration.document import to_document as diff_document
from planner.model import plan as plans
from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError, StalePlan
from planner.model.migration import MigrationReason, MigrationStatus
from planner.model.record import Run, RunStatus, moment, stamp
from planner.model.runtime import Refused as NodesRefused
from planner.model.runtime import Seat
from planner.spec.normal import workload_from_document
from planner.state.moves import under_way

__all__ = ("Migrated", "Order", "Waits", "migrate")

if TYPE_CHECKING:
    from planner.app.ports import Ports
    from planner.state.history import Move
    from planner.state.runtime import Runtime
    from planner.state.writer import Writer

CENT = Decimal("0.01")
_UNTIL = re.compile(r" until (\S+)")


def migrate(order: Order, ports: Ports, nodes: Runtime) -> Migrated:
    """Carry a move out, or go on with it.

    Raises InputError, LeaseHeld, StalePlan (SKY-MOVE-408, 419, 422, 423, 425: nothing was begun), StateConflict, TerraformError, CloudError.
    """
    with held(ports, order.job, wait_seconds=order.lease_timeout) as lease:
        writer = ports.record.writer(lease)
        move = ports.record.open_move(order.job)
        if move is None:
            last = _last(order, ports, writer)
            if last is not None:
                return last
            move = _begin(order, ports, writer)
        elif order.diff is not None and diff_document(order.diff) != move.document["diff"]:
            raise StalePlan([under_way(move)])
        return _Moving(order, ports, nodes, writer, move).go()


def _last(order: Order, ports: Ports, writer: Writer) -> Migrated | None:
    """The newest move where it is what was asked for and over; what it may have left half made is finished."""
    if order.diff is not None:
        last = same_move(ports, order.diff)
    elif (last := next(reversed(ports.record.moves(order.job)), None)) is None:
        summary, hint = f"no move of `{order.job}` is under way", "give a diff that `skyplan replan` wrote"
        raise InputError([Diagnostic(code="SKY-MOVE-422", summary=summary, hint=hint)])
    if last is None:
        return None
    if order.revert and last.status == MigrationStatus.RETIRED:
        late = Diagnostic(code="SKY-MOVE-421", summary=f"move {last.id} of `{order.job}` is done: there is no way back")
        return Migrated(move=last, run=new_run(ports, last), changed=False, problems=(late,))
    if order.diff is not None and last.status == MigrationStatus.REVERTED and not order.revert:
        return None  # it was given up, and is tried again
    recover(ports, writer, resume=lambda _: False)
    return Migrated(move=last, run=new_run(ports, last), changed=False)


def _begin(order: Order, ports: Ports, writer: Writer) -> Move:
    """Judge the diff, and write it down with its plan: whoever goes on after a crash needs no file."""
    diff, plan = order.diff, order.plan
    if diff is None or plan is None or order.revert:
        raise InputError([Diagnostic(code="SKY-MOVE-422", summary=f"no move of `{order.job}` is under way")])
    secrets_guard.refuse_plan(plan)
    judge(diff, Places(plan=plan, workload=workload_from_document(plan.job), to=diff.to, barred=order.barred), ports)
    document = {"diff": diff_document(diff), "plan": plans.to_document(plan)}
    return writer.decide(diff.standing.generation, diff.reason.value, document, ports.clock.now())


class _Moving(Watched):
    """One process's work on a move, from whatever status it has."""

    def __init__(self, order: Order, ports: Ports, nodes: Runtime, writer: Writer, move: Move) -> None:
        super().__init__(replace(ports, synth=secrets_guard.guarded(ports.synth)), nodes, writer, move)
        self._order = order
        self._diff = diff_from(move.document["diff"], f"move {move.id}")
        plan = plans.from_document(move.document["plan"], f"move {move.id}")
        workload = workload_from_document(plan.job)
        self._places = Places(plan=plan, workload=workload, to=self._diff.to, barred=order.barred)
        self._saves = workload.checkpoint is not None
        self._refused: list[Refused] = []

    def go(self) -> Migrated:
        """To the end, or to where it cannot go on."""
        if self._order.revert:
            return self._stopped(Stop("SKY-MOVE-420", "it was asked to be given up", revert=True))
        try:
            self._clean_up()
            while True:
                match MigrationStatus(self._move.status):
                    case MigrationStatus.PROPOSED:
                        self._launch()
                    case MigrationStatus.LAUNCHED:
                        self._save()
                    case MigrationStatus.SAVED:
                        self._release()
                    case MigrationStatus.CUT_OVER:
                        self._verify()
                    case MigrationStatus.VERIFIED:
                        self._retire()
                    case MigrationStatus.RETIRED | MigrationStatus.REVERTED:
                        return Migrated(move=self._move, run=self._new(), changed=True)
        except Stop as stop:
            return self._stopped(stop)

    # what an earlier process left

    def _clean_up(self) -> None:
        """Finish or undo what died half made.  A launch of this move goes on."""
        try:
            recover(self._ports, self._writer, resume=lambda run: run.generation == self._move.to_generation)
        except Refused as answer:
            self._note(answer)
            recover(self._ports, self._writer, resume=lambda _: False)

    # proposed

    def _launch(self) -> None:
        if self._diff.reason is MigrationReason.INTERRUPTION:
            self._ask()
        run = self._new()
        if run is None or run.status is not RunStatus.RUNNING:
            run = self._first_that_runs()
        self._go_on(MigrationStatus.LAUNCHED, f"{run.id} is up on {run.offer_id}, and holds")

    def _first_that_runs(self) -> Run:
        ports, reasons = self._ports, list[Diagnostic]()
        for p, against in self._places.open(ports, [r for r in ports.record.runs(self._move.job) if r.status in WORKS]):
            self._not_over()
            access = {} if against else self._places.access(ports, p)
            why = against or ("" if access else "the state of its access stack has no outputs")
            if why:
                reasons.append(Diagnostic(code="SKY-MOVE-408", summary=f"{p.offer_id}: {why}"))
                ports.tell("", f"{p.offer_id}: passed over: {why}")
                continue
            ports.tell("", f"launching {p.nodes} x {p.instance_type} ({p.capacity}) in {p.zone or p.region}")
            kind, plan = instance_type(ports.market, p), self._places.plan
            limits = self._places.workload.constraints
            wanted = run_of(plan, p, limits, gpus=p.nodes * kind.gpu_count, vcpus=p.nodes * kind.vcpus)
            if (left := budget_left(ports, self._old())) is not None:
                wanted = replace(wanted, budget_usd=left.quantize(CENT, ROUND_UP))
            run = self._writer.issue(wanted, ports.clock.now())
            self._move = self._writer.go_on(self._move, ports.clock.now(), to_generation=run.generation)
            try:
                launch(ports, self._writer, run, self._places.stack(ports, p, run.generation, access))
            except Refused as answer:
                self._note(answer)
                continue
            return next(r for r in ports.record.runs(run.job) if r.generation == run.generation)
        reasons += [
            Diagnostic(
                code="SKY-APPLY-310", summary=f"{r.stack}: {r.code or r.kind}: {r.error}", hint="it is remembered"
            )
            for r in self._refused
        ]
        raise Stop("SKY-MOVE-420", "none of the diff's places could be launched", revert=True, more=tuple(reasons))

    def _note(self, answer: Refused) -> None:
        self._refused.append(answer)
        self._ports.tell("", f"{answer.stack}: refused: {answer.code or answer.kind}")

    # launched

    def _save(self) -> None:
        """Until the record has a checkpoint of the old run at or beyond the step at which it was asked."""
        old = self._old()
        self._not_over()
        if self._diff.reason is MigrationReason.RECOVERY or not self._saves or old.status not in WORKS:
            self._saved(
                None, f"nobody computes: the newest checkpoint there is counts ({old.id} is {old.status.value})"
            )
            return
        since = self._ask()
        until = since + timedelta(seconds=self._order.waits.checkpoint_seconds)
        taken = self._diff.reason is MigrationReason.INTERRUPTION
        if taken:
            until = min(until, self._notice() or since + timedelta(seconds=self._order.waits.notice_seconds))
        step = int(self._move.document["asked"]["step"])

        def durable() -> bool:
            return (self._newest(old.generation) or -1) >= step

        self._until(lambda: durable() or self._old().status is not RunStatus.RUNNING, until)
        self._not_over()
        if durable():
            newest = self._newest(old.generation)
            self._saved(newest, f"the checkpoint of step {newest} is durable; it was asked for at step {step}")
        elif taken:
            self._saved(None, "the notice has run out: the newest checkpoint there is counts")
        elif self._look() or self._old().status is not RunStatus.RUNNING:
            self._saved(None, f"{old.id} is lost: the newest checkpoint there is counts")
        else:
            words = f"{old.id} was asked for a checkpoint at step {step}, and none is durable in time"
            raise Stop("SKY-MOVE-425", words, revert=True)

    def _ask(self) -> datetime:
        """Ask the old nodes for a checkpoint, once; when that was.  The step is written down before: it must not move with the job."""
        document, job = self._move.document, self._move.job
        if "asked" not in document:
            told = self._nodes.recent(job, generation=self._move.from_generation, limit=1)
            asked = {"at": stamp(self._ports.clock.now()), "step": max((p.step for p in told), default=0)}
            self._move = self._writer.go_on(self._move, self._ports.clock.now(), document={**document, "asked": asked})
        reason = f"move {self._move.id} ({self._diff.reason.value})"
        seat = Seat(job=job, generation=self._move.from_generation, rank=0)
        if not any(r.reason == reason for r in self._nodes.requests(seat)):
            ends = self._notice() if self._diff.reason is MigrationReason.INTERRUPTION else None
            deadline, now = stamp(ends) if ends else "", self._ports.clock.now()
            with suppress(NodesRefused):  # its run is over: what it saved counts
                self._nodes.request(job, seat.generation, "checkpoint", reason, now, deadline)
        return min(moment(self._move.document["asked"]["at"]), self._ports.clock.now())  # another machine's clock

    def _notice(self) -> datetime | None:
        """Until when the cloud leaves the old nodes, by the newest notice that they told."""
        for event in reversed(self._ports.record.events(self._move.job)):
            if event.kind == "notice" and event.generation == self._move.from_generation:
                found = _UNTIL.search(event.text)
                with suppress(ValueError):
                    return moment(found[1]) if found else None
        return None

    def _newest(self, generation: int) -> int | None:
        """The newest step that a generation has told to be durable."""
        found = (c.step for c in self._nodes.checkpoints(self._move.job) if c.generation == generation)
        return max(found, default=None)

    def _saved(self, step: int | None, text: str) -> None:
        self._go_on(MigrationStatus.SAVED, text, document={**self._move.document, "saved": step})

    # saved

    def _release(self) -> None:
        """The hold is off.  Wait for the new nodes' cut."""
        until = self._ports.clock.now() + timedelta(seconds=self._order.waits.cut_seconds)
        if self._saves and not self._until(self._cut_over, until):
            words = "the new nodes have not begun their cut in time"
            raise Stop("SKY-MOVE-420", words, revert=True)
        self._go_on(
            MigrationStatus.CUT_OVER, "the old nodes are fenced" if self._saves else "there is nothing to go on from"
        )

    # cut over

    def _verify(self) -> None:
        """Until the new run has told a step beyond the one it resumed at, or ended well."""
        new = self._new()
        assert new is not None  # noqa: S101 - it was launched
        waits = self._order.waits
        start = 0
        if self._saves:
            until = self._ports.clock.now() + timedelta(seconds=waits.cut_seconds)
            if not self._until(lambda: self._nodes.cut(new.job, new.generation) is not None or self._ended(new), until):
                raise Stop("SKY-MOVE-421", f"{new.id} has chosen no checkpoint to go on from")
            start = self._resumed(new)
        until = self._ports.clock.now() + timedelta(seconds=waits.progress_seconds)
        if not self._until(lambda: self._beyond(new, start), until):
            raise Stop("SKY-MOVE-421", f"{new.id} resumed at step {start} and made no progress")
        self._go_on(MigrationStatus.VERIFIED, f"{new.id} resumed at step {start} and goes on")

    def _resumed(self, new: Run) -> int:
        """The step of its cut, which must name the newest whole checkpoint that the old run told of."""
        cut = self._nodes.cut(new.job, new.generation)
        step = cut.chosen.step if cut and cut.chosen else 0
        wrong = {uri for uri, _ in cut.skipped} if cut else set[str]()
        told = [c for c in self._nodes.checkpoints(new.job) if c.generation == self._move.from_generation]
        newest = max((c.step for c in told if c.uri not in wrong), default=0)
        if step < newest:
            words = f"{new.id} resumed at step {step}, and the newest whole checkpoint is of step {newest}"
            raise Stop("SKY-MOVE-421", words)
        return step

    def _beyond(self, new: Run, start: int) -> bool:
        told = self._nodes.recent(new.job, generation=new.generation, limit=1)
        now, beyond = self._new(), bool(told) and told[-1].step > start
        return beyond or (now is not None and self._ended(now))

    def _ended(self, new: Run) -> bool:
        """Whether the new run came to its end.  Raises Stop where that was an error."""
        now = self._new()
        if now is None or now.status is not RunStatus.EXITED:
            return False
        codes = [s.exit_code for s in self._nodes.seen(new.job, new.generation)]
        if any(codes):
            raise Stop("SKY-MOVE-421", f"{new.id} ended with code {max(filter(None, codes))}")
        return True

    # verified

    def _retire(self) -> None:
        self._end(lambda generation: generation < (self._move.to_generation or 0))
        self._go_on(MigrationStatus.RETIRED, "the old compute stacks are gone")

    # the other way

    def _stopped(self, stop: Stop) -> Migrated:
        if stop.over:
            # the old nodes are fenced for good, and cost money; where the job goes on is for the next plan to say
            self._end(lambda generation: generation < (self._move.to_generation or 0))
            self._go_on(MigrationStatus.RETIRED, str(stop))
        if not stop.revert:
            return Migrated(move=self._move, run=self._new(), changed=True, problems=stop.diagnostics)
        reverted = self._writer.give_up(self._move, self._ports.clock.now(), str(stop))
        if reverted is None:
            words = "the new nodes have begun their cut: there is no way back; `skyplan migrate` goes on"
            late = Diagnostic(code="SKY-MOVE-421", summary=words)
            return Migrated(move=self._move, run=self._new(), changed=False, problems=(*stop.diagnostics, late))
        self._move = reverted
        self._ports.tell(
            "", f"given up: {stop}; the new nodes are ended, and the old ones left as they are [SKY-MOVE-420]"
        )
        recover(self._ports, self._writer, resume=lambda _: False)
        self._end(lambda generation: generation > reverted.from_generation)
        if stop.finished:
            self._rest()
            self._end(lambda generation: generation == reverted.from_generation)
        problems = () if self._order.revert else stop.diagnostics
        return Migrated(move=reverted, run=None, changed=True, problems=problems)

    def _end(self, which: Callable[[int], bool]) -> None:
        """The compute stacks of some generations, and their runs."""
        record, job = self._ports.record, self._move.job
        for run in record.runs(job):
            stacks = [s for s in record.stacks(job) if s.kind == "compute" and s.generation == run.generation]
            if which(run.generation) and stacks:
                finish_ending(self._ports, self._writer, run, stacks)
            elif which(run.generation):
                end_nodes(self._ports, self._writer, run)

    # the record

    def _go_on(self, status: MigrationStatus, text: str, **changes: Any) -> None:
        self._move = self._writer.go_on(self._move, self._ports.clock.now(), text, status=status.value, **changes)
        self._ports.tell("", f"{status.value}: {text}")
