"""Ending a job: its nodes, then its access and endpoints, then networks that no other job uses.

Ends when the cloud itself says that nothing is left.  Idempotent: after a crash at any moment, or on a job that is gone, it does what is left to do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from planner.app.lease import held
from planner.app.prepare import NETWORK_WAIT_SECONDS
from planner.app.recover import close, end_nodes
from planner.app.steps import destroy_all, destroy_stack, end
from planner.model.diagnostic import Diagnostic
from planner.model.errors import CloudError, InputError
from planner.model.migration import MigrationStatus
from planner.model.record import LIVE, RunStatus, Stack, StackStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.app.ports import Ports
    from planner.state.writer import Writer


#: a job's other stacks in the order of their end, after its machines: who uses what is gone before what is used
KINDS = ("access", "addresses")


@dataclass(frozen=True, slots=True, kw_only=True)
class Destroyed:
    """What was ended: stacks in order, machines that no state knew, networks left for other jobs or on request."""

    job: str
    stacks: tuple[str, ...]
    leaks: tuple[str, ...]
    kept: tuple[str, ...]


def known(jobs: Sequence[str], ports: Ports) -> None:
    """Raises InputError (323) with every job that the record does not know, before anything is asked or ended."""
    problems = [
        Diagnostic(code="SKY-APPLY-323", summary=f"no job `{job}` in project `{ports.project.name}` was ever applied")
        for job in jobs
        if ports.record.job(job) is None
    ]
    if problems:
        raise InputError(problems)


def destroy(job: str, ports: Ports, *, keep_network: bool = False, lease_timeout: float = 0.0) -> Destroyed:
    """Raises InputError (323) for a job the record does not know, LeaseHeld, TerraformError (325), CloudError."""
    known((job,), ports)
    gone: list[str] = []
    with held(ports, job, wait_seconds=lease_timeout) as lease:
        writer = ports.record.writer(lease)
        _settle(ports, writer)
        _close_move(ports, writer)
        mine = ports.record.stacks(job)
        computes = [s for s in mine if s.kind == "compute"]
        destroy_all(ports, writer, computes)
        gone += [s.name for s in computes]
        for stack in (s for kind in KINDS for s in mine if s.kind == kind):
            destroy_stack(ports, writer, stack)
            gone.append(stack.name)
        _close_runs(ports, writer)
        leaks = _end_leaks(ports, writer)
        kept = _networks(ports, writer, gone, keep=keep_network)
        writer.event(None, ports.clock.now(), "destroyed", f"{len(gone)} stack(s) ended")
    return Destroyed(job=job, stacks=tuple(gone), leaks=leaks, kept=kept)


def _settle(ports: Ports, writer: Writer) -> None:
    for intent in ports.record.unfinished(writer.job):
        stack = ports.record.stack(intent.stack)
        if stack is not None:
            ports.terraform.settle(stack, ports.tell)
        writer.abandoned(intent.id, ports.clock.now(), "its process died; ended by destroy")


def _close_move(ports: Ports, writer: Writer) -> None:
    """A move that is under way is over before its stacks go, so that nobody goes on with it after a crash of ours."""
    move = ports.record.open_move(writer.job)
    if move is not None and writer.give_up(move, ports.clock.now(), "the job is destroyed") is None:
        writer.go_on(move, ports.clock.now(), "the job is destroyed", status=MigrationStatus.RETIRED.value)


def _close_runs(ports: Ports, writer: Writer) -> None:
    for run in ports.record.runs(writer.job):
        if run.status is RunStatus.STARTING:
            writer.run_status(run.generation, RunStatus.FAILED, ports.clock.now(), "destroyed before it ran")
        elif run.status in LIVE:
            close(ports, writer, run)
        else:
            end_nodes(ports, writer, run)


def _end_leaks(ports: Ports, writer: Writer) -> tuple[str, ...]:
    """Whatever the states said: no machine tagged as this job's may live where a launch of it was ever begun."""
    found: list[str] = []
    ran = {(r.cloud, r.target, r.region) for r in ports.record.runs(writer.job)}
    begun = {a.stack for a in ports.record.attempts(writer.job) if a.generation is not None}
    ran |= {(s.cloud, s.target, s.region) for s in map(ports.record.stack, sorted(begun)) if s is not None}
    for cloud, target, region in sorted(ran):
        lister = ports.lister(cloud, target, region)
        # a machine may leave behind what only then is seen to be nobody's: its interface, its address
        while left := [i.id for i in lister.instances(project=ports.project.name, job=writer.job)]:
            if still := [one for one in left if one in found]:
                raise CloudError([Diagnostic(code="SKY-APPLY-325", summary=f"{', '.join(still)} cannot be ended")])
            end(ports, writer, None, left)
            lister.terminate(left)
            found += left
    return tuple(found)


def _networks(ports: Ports, writer: Writer, gone: list[str], *, keep: bool) -> tuple[str, ...]:
    """Destroy the networks this job touched or ran in, each under its own lease, less those in use.  Returns the ones kept."""
    touched = {a.stack for a in ports.record.attempts(writer.job)}
    ran = {(r.cloud, r.target, r.region) for r in ports.record.runs(writer.job)}
    kept: list[str] = []
    for net in [
        s
        for s in ports.record.stacks()
        if s.kind == "network" and (s.name in touched or (s.cloud, s.target, s.region) in ran)
    ]:
        if keep:
            kept.append(net.name)
            continue
        with held(ports, net.name, wait_seconds=NETWORK_WAIT_SECONDS):
            users = [s for s in ports.record.stacks() if _uses(s, net)]
            if users:
                kept.append(net.name)
                ports.tell(net.name, f"kept: in use by {', '.join(sorted({s.job or '' for s in users}))}")
                continue
            destroy_stack(ports, writer, replace(net, status=StackStatus.TOUCHED))
            gone.append(net.name)
    return tuple(kept)


def _uses(stack: Stack, net: Stack) -> bool:
    same = (stack.cloud, stack.target, stack.region) == (net.cloud, net.target, net.region)
    return same and stack.kind != "network"
