"""After a crash: what the last apply or destroy began and did not finish is finished, or undone.

Terraform writes its state after the cloud's reply and AWS launches know no fixed token, so a killed launch leaves machines that no state knows.
In this order, under the job's lease: a Terraform that outlived its parent is waited for or ended · machines are listed by their tags · a machine of a
missing rank is imported where a machine is one resource, any other is ended · the launch goes on (same plan) or is undone (another plan, or none).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.app.compose import compute_name
from planner.app.launch import ended, give_up, launch, rank_keys
from planner.app.steps import destroy_all, end_strangers, machines
from planner.model.errors import TerraformError
from planner.model.record import LIVE, Action, Attempt, Node, Run, RunStatus, Stack, StackStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from planner.app.ports import Ports
    from planner.state.writer import Writer

#: where a machine is one resource of its stack.  Elsewhere it hangs on others (Azure: an interface; Nebius: a reserved address) that would stay outside the
#: state, or in it with a machine they do not belong to; and names are unique there: what no state knows stands in the way of the next launch
IMPORTED = frozenset({"aws", "gcp"})


def recover(ports: Ports, writer: Writer, *, resume: Callable[[Run], bool]) -> tuple[Run, tuple[Node, ...]] | None:
    """Leave no stack of the job half made.  `resume` says whether a half-made launch shall go on; it is returned when it then runs.

    Raises Refused where a resumed launch is refused (it is undone then), TerraformError where one cannot be undone.
    """
    open_intents = _take_up(ports, writer)
    asked_to_end = {i.stack for i in open_intents if i.action is Action.DESTROY}
    attempts = ports.record.attempts(writer.job)
    resumed: tuple[Run, tuple[Node, ...]] | None = None
    for run in ports.record.runs(writer.job):
        stacks = [s for s in ports.record.stacks(writer.job) if s.kind == "compute" and s.generation == run.generation]
        begun = any(s.name in asked_to_end for s in stacks)
        if run.status is RunStatus.STARTING and not stacks:
            writer.run_status(run.generation, RunStatus.FAILED, ports.clock.now(), "never launched")
        elif run.status is RunStatus.STARTING:
            only = stacks[0] if stacks[0].name == compute_name(run.job, run.generation) else None
            if only and not begun and _may_go_on(open_intents, only, run) and resume(run):
                resumed = (run, go_on(ports, writer, run, only))
            else:  # a launch in several clouds is begun anew: half of it says nothing of the other half
                give_up(ports, writer, run.generation, stacks, "given up after a crash; what was half made is gone")
        elif stacks and (
            run.status not in LIVE
            or _partly_gone(run, stacks, attempts)
            or any(_ending(s, asked_to_end) for s in stacks)
        ):
            finish_ending(ports, writer, run, stacks)
        elif not stacks and run.status in LIVE:
            close(ports, writer, run)  # a destroy died between the end of the stack and that of its run
    return resumed


def _partly_gone(run: Run, stacks: list[Stack], attempts: tuple[Attempt, ...]) -> bool:
    """Of a run in several clouds: whether a destroy had ended one of its stacks."""
    launched = {a.stack for a in attempts if a.generation == run.generation and a.action is Action.APPLY}
    return bool(launched - {s.name for s in stacks})


def _take_up(ports: Ports, writer: Writer) -> tuple[Attempt, ...]:
    """What a dead process had begun.  Any Terraform of it has ended when this returns."""
    open_intents = ports.record.unfinished(writer.job)
    if open_intents:
        ports.tell("", "an earlier run of skyplan did not finish; cleaning up first [SKY-APPLY-314]")
    for intent in open_intents:
        stack = ports.record.stack(intent.stack)
        if stack is not None:
            ports.terraform.settle(stack, ports.tell)
    for intent in open_intents:
        writer.abandoned(intent.id, ports.clock.now(), "its process died; taken up again")
    return open_intents


def _ending(stack: Stack, asked_to_end: set[str]) -> bool:
    """Of a run that lives: whether a destroy has begun.  One that died twice leaves no open intent, but a stack touched and never done."""
    return stack.name in asked_to_end or stack.status is StackStatus.TOUCHED


def _may_go_on(open_intents: tuple[Attempt, ...], stack: Stack, run: Run) -> bool:
    """Only the newest launch, and only where it died on its way and was not refused."""
    died = any(i.stack == stack.name and i.action is Action.APPLY for i in open_intents)
    return died and run.status is RunStatus.STARTING


def go_on(ports: Ports, writer: Writer, run: Run, stack: Stack) -> tuple[Node, ...]:
    """Take in what the launch made, then launch what is missing.  Raises Refused."""
    take_in(ports, writer, run, stack)
    return launch(ports, writer, run, stack)


def take_in(ports: Ports, writer: Writer, run: Run, stack: Stack) -> None:
    """Import the machines of missing ranks into the state (IMPORTED clouds only); end everything else that the state lacks."""
    ports.terraform.prepare(stack)
    nodes = ports.terraform.nodes(stack)
    known = {*nodes.values(), *ports.terraform.holds(stack)}
    wanted = [key for key in rank_keys(run.nodes) if key not in nodes] if stack.cloud in IMPORTED else []
    for machine in machines(ports, stack):
        if machine.id in known or machine.rank not in wanted or machine.state not in {"pending", "running"}:
            continue
        try:
            ports.terraform.adopt(stack, machine.rank, machine.id)
        except TerraformError as error:
            ports.tell(stack.name, f"cannot import {machine.id}: {error}")
        else:
            writer.event(run.generation, ports.clock.now(), "imported", f"{machine.id} as {machine.rank}")
            wanted.remove(machine.rank)
            known.add(machine.id)
    end_strangers(ports, writer, stack, known=known)


def finish_ending(ports: Ports, writer: Writer, run: Run, stacks: Sequence[Stack]) -> None:
    """Destroy the stacks of a run that is over, or whose destroying was begun."""
    destroy_all(ports, writer, stacks)
    if run.status in LIVE:
        close(ports, writer, run)
    else:
        end_nodes(ports, writer, run)


def end_nodes(ports: Ports, writer: Writer, run: Run) -> None:
    """Note the end of nodes of a run that is over, as it is for one that a reverted move had launched."""
    if left := ended(ports.record.nodes(run.job, run.generation)):
        writer.seen(run.generation, left, run.status, ports.clock.now(), "destroyed")


def close(ports: Ports, writer: Writer, run: Run) -> None:
    """Note that a run's stack is gone, and its nodes with it."""
    nodes = ended(ports.record.nodes(run.job, run.generation))
    writer.seen(run.generation, nodes, RunStatus.ENDED, ports.clock.now(), "destroyed")
