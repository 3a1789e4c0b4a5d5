"""What the rest of skyplan asks of a cloud.  Adapters map every SDK error to `planner.model.errors`; none escapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

RANK_TAG = "skyplan:rank"


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """A place to look at, and as whom: `role` None is the caller's own credentials."""

    cloud: str
    target: str
    region: str
    role: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A machine that exists: pending, running, stopping or stopped, not terminated or on its way there.  `zone` is the AZ id on AWS."""

    id: str
    state: str
    zone: str
    instance_type: str
    capacity: str
    address: str
    launched_at: str
    tags: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def rank(self) -> str:
        """`r00`, or "" for a machine that is no node."""
        return self.tags.get(RANK_TAG, "")


class ResourceLister(Protocol):
    """Finds and ends machines by what they are tagged with, whatever any Terraform state says."""

    def instances(self, *, project: str, job: str, generation: int | None = None) -> tuple[Instance, ...]:
        """Machines of a job, of one generation or of all; by rank, launch time, id.  Raises CloudError."""
        ...

    def terminate(self, ids: Sequence[str]) -> None:
        """End them, and return when the cloud says that they end.  One that is gone already is no error.  Raises CloudError."""
        ...


class Clouds(Protocol):
    """Listers by place."""

    def lister(self, where: Where) -> ResourceLister:
        """Raises MissingPart where the cloud's SDK is not installed, InputError (SKY-APPLY-315) for a cloud without one."""
        ...
