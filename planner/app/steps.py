"""One stack, one step: intent committed, Terraform, result committed.

What is between the two commits may die at any moment; `planner.app.recover` reads the intents that have no result.  Chooses nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from planner.model.diagnostic import Diagnostic
from planner.model.errors import CloudError, TerraformError
from planner.model.record import Action, Outcome, Stack, StackStatus
from planner.model.stack import AccessInput, AddressInput, ComputeInput, NetworkInput, StackInput

if TYPE_CHECKING:
    from planner.app.ports import Ports
    from planner.clouds.port import Instance
    from planner.state.writer import Writer

SETTLED_LOOKS = 2
"""A list by tags is believed when it was the same twice: a launch may take a moment to show."""
LOOK_SECONDS = 2.0
MOST_LOOKS = 30


class Refused(Exception):
    """Terraform or the cloud said no; the record knows already.  `kind`: capacity, quota, permission, unknown."""

    def __init__(self, *, kind: str, code: str, stack: str, error: TerraformError) -> None:
        super().__init__(f"{stack}: {code or kind}")
        self.kind = kind
        self.code = code
        self.stack = stack
        self.error = error


def stack_of(given: StackInput, document: Mapping[str, Any], variables: Mapping[str, Any]) -> Stack:
    """The record's view of a stack about to be applied."""
    match given:
        case NetworkInput():
            kind, job, generation = "network", None, None
        case AddressInput():
            kind, job, generation = "addresses", given.job, None
        case AccessInput():
            kind, job, generation = "access", given.workload.name, None
        case ComputeInput():
            kind, job, generation = "compute", given.job, given.generation
    return Stack(
        name=given.name,
        kind=kind,
        job=job,
        cloud=given.cloud.value,
        target=given.target,
        region=given.region,
        generation=generation,
        backend=given.backend,
        document=dict(document),
        variables=dict(variables),
    )


def apply_stack(ports: Ports, writer: Writer, stack: Stack) -> dict[str, Any]:
    """Apply a network or access stack; its outputs.  Raises Refused."""
    died = _died(ports, stack)
    intent = writer.intend(replace(stack, status=StackStatus.TOUCHED), Action.APPLY, ports.clock.now())
    try:
        ports.terraform.prepare(stack)
        _apply(ports, stack, died=died)
        outputs = ports.terraform.outputs(stack)
    except TerraformError as error:
        raise refuse(ports, writer, intent, stack, error, scopes={}) from error
    writer.done(intent, StackStatus.APPLIED, ports.clock.now(), outputs=outputs)
    return outputs


def _died(ports: Ports, stack: Stack) -> bool:
    """Whether an apply of the stack was killed since it was last known whole."""
    outcomes = [a.outcome for a in ports.record.attempts() if a.stack == stack.name]
    whole = max((k for k, outcome in enumerate(outcomes) if outcome is Outcome.DONE), default=-1)
    return any(outcome in {None, Outcome.ABANDONED} for outcome in outcomes[whole + 1 :])


def _apply(ports: Ports, stack: Stack, *, died: bool) -> None:
    """Apply.  Where an earlier apply `died`, what it made and its state never heard of is taken in by its name, and the rest applied."""
    for _ in range(MOST_LOOKS if died else 0):
        try:
            return ports.terraform.apply(stack, ports.tell)
        except TerraformError as error:
            if not ports.terraform.take_existing(stack, error):
                raise
    # without a crash of ours, a name that is taken is somebody else's
    return ports.terraform.apply(stack, ports.tell)


def destroy_stack(ports: Ports, writer: Writer, stack: Stack) -> None:
    """Destroy a stack by Terraform, then, of a compute stack, end what its state did not know.  Raises TerraformError."""
    intent = writer.intend(replace(stack, status=StackStatus.TOUCHED), Action.DESTROY, ports.clock.now())
    try:
        ports.terraform.prepare(stack)
        ports.terraform.destroy(stack, ports.tell)
    except TerraformError as error:
        refuse(ports, writer, intent, stack, error, scopes={})
        left = Diagnostic(
            code="SKY-APPLY-325", summary=f"`{stack.name}` could not be destroyed; what it holds may still cost money"
        )
        raise TerraformError([*error.diagnostics, left], error.output) from error
    if stack.kind == "compute":
        end_strangers(ports, writer, stack, known=())
    writer.done(intent, StackStatus.GONE, ports.clock.now())


def destroy_all(ports: Ports, writer: Writer, stacks: Sequence[Stack]) -> None:
    """Destroy each, whatever becomes of the others: machines in one cloud must not run on because another does not answer.  Raises TerraformError."""
    failed: list[TerraformError] = []
    for stack in stacks:
        try:
            destroy_stack(ports, writer, stack)
        except TerraformError as error:
            failed.append(error)
    if failed:
        words = "\n".join(error.output for error in failed if error.output)
        raise TerraformError([d for error in failed for d in error.diagnostics], words) from failed[0]


def refuse(
    ports: Ports, writer: Writer, intent: int, stack: Stack, error: TerraformError, *, scopes: Mapping[str, str]
) -> Refused:
    """Record a refusal, whole.  `scopes`: what the availability memory shall hold it against, by the cloud's code or by kind."""
    kind, code = ports.terraform.classify(error)
    detail = error.output or str(error)
    writer.refused(
        intent,
        ports.clock.now(),
        code=code or kind,
        kind=kind,
        scope=scopes.get(code) or scopes.get(kind, ""),
        detail=detail[-DETAIL:],
    )
    return Refused(kind=kind, code=code, stack=stack.name, error=error)


DETAIL = 20_000
"""Characters of a refusal that the record keeps, from its end, where Terraform writes its errors."""


def machines(ports: Ports, stack: Stack) -> tuple[Instance, ...]:
    """The machines of a launch, by tags, once the answer stands still."""
    lister = ports.lister(stack.cloud, stack.target, stack.region)
    last: tuple[Instance, ...] | None = None
    same = 0
    for _ in range(MOST_LOOKS):
        found = lister.instances(project=ports.project.name, job=stack.job or "", generation=stack.generation)
        same = same + 1 if last is not None and _ids(found) == _ids(last) else 1
        last = found
        if same >= SETTLED_LOOKS:
            break
        ports.clock.sleep(LOOK_SECONDS)
    return last or ()


def _ids(found: tuple[Instance, ...]) -> frozenset[str]:
    return frozenset(i.id for i in found)


def end_strangers(ports: Ports, writer: Writer, stack: Stack, *, known: Collection[str]) -> None:
    """End the machines of a launch that are not `known`, and what they leave behind, and say so.  Looks until none is left."""
    lister = ports.lister(stack.cloud, stack.target, stack.region)
    strangers: list[str] = []
    for _ in range(MOST_LOOKS):
        strangers = [i.id for i in machines(ports, stack) if i.id not in known]
        if not strangers:
            return
        end(ports, writer, stack.generation, strangers)
        lister.terminate(strangers)
    raise CloudError([Diagnostic(code="SKY-APPLY-325", summary=f"{', '.join(strangers)} cannot be ended")])


def end(ports: Ports, writer: Writer, generation: int | None, strangers: list[str]) -> None:
    """Note, before it is done, that machines no state knows are ended."""
    text = f"ending {', '.join(strangers)}: tagged as this job's, but in no Terraform state [SKY-APPLY-321]"
    writer.event(generation, ports.clock.now(), "leak", text)
    ports.tell("", text)
