"""What applying needs from outside, as protocols: Terraform, the CDK, the clouds, the clock, a voice.  `planner.app.wire` makes the real ones.

Tests hand in fakes; use cases cannot tell the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from planner.clouds.port import Clouds, Where

if TYPE_CHECKING:
    from planner.clouds.port import ResourceLister
    from planner.model.errors import TerraformError
    from planner.model.market import Market
    from planner.model.project import Project
    from planner.model.record import Stack
    from planner.model.stack import StackInput
    from planner.state.record import Record

Tell = Callable[[str, str], None]
"""tell(stack, text): a line of progress; stack "" for the job as a whole."""


class StackTool(Protocol):
    """Terraform on one stack at a time.  Every method but `settle` raises TerraformError; an interrupt leaves as KeyboardInterrupt."""

    def prepare(self, stack: Stack) -> None:
        """Write its work folder and initialise it, backend included."""
        ...

    def apply(self, stack: Stack, tell: Tell) -> None:
        """Make it real."""
        ...

    def destroy(self, stack: Stack, tell: Tell) -> None:
        """End it."""
        ...

    def outputs(self, stack: Stack) -> dict[str, Any]:
        """Its outputs; {} where it was never applied."""
        ...

    def nodes(self, stack: Stack) -> dict[str, str]:
        """Of a compute stack, rank key to machine id, as the state has them."""
        ...

    def holds(self, stack: Stack) -> frozenset[str]:
        """Ids of everything that a stack's state has: none of it is a stranger."""
        ...

    def adopt(self, stack: Stack, rank: str, machine: str) -> None:
        """Import a machine as a rank's node."""
        ...

    def take_existing(self, stack: Stack, error: TerraformError) -> bool:
        """Import what an apply could not create because it is there; False where the error names nothing of the kind."""
        ...

    def settle(self, stack: Stack, tell: Tell) -> None:
        """Wait for a Terraform that outlived its parent, end it where it takes too long, and remove the lock of a dead one."""
        ...

    def classify(self, error: TerraformError) -> tuple[str, str]:
        """(kind, code): kind capacity, quota, permission or unknown; code the cloud's own word, "" where it gave none."""
        ...


class Clock(Protocol):
    """The time, and waiting."""

    def now(self) -> datetime:
        """Aware."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """All of them, with what the project says.  `synth` gives a stack's Terraform JSON; `keep` writes a document down for people, and says where."""

    record: Record
    terraform: StackTool
    clouds: Clouds
    clock: Clock
    tell: Tell
    synth: Callable[[StackInput], Mapping[str, Any]]
    project: Project
    market: Market
    holder: str
    keep: Callable[[str, Mapping[str, Any]], str] = lambda name, _: name

    def where(self, cloud: str, target: str, region: str) -> Where:
        """A place, as the identity that launches and ends machines there."""
        found = next((t for t in self.project.targets if t.name == target and t.cloud.value == cloud), None)
        if found is None:
            return Where(cloud=cloud, target=target, region=region)
        return Where(
            cloud=cloud,
            target=target,
            region=region,
            role=found.orchestrator_role,
            account=found.account,
            resource_group=found.resource_group or "",
        )

    def lister(self, cloud: str, target: str, region: str) -> ResourceLister:
        """Who lists machines there."""
        return self.clouds.lister(self.where(cloud, target, region))
