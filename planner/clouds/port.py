"""What the rest of skyplan asks of a cloud.  Adapters map every SDK error to `planner.model.errors`; none escapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from planner.model.policy import Audited

RANK_TAG = "skyplan:rank"


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """A place to look at, and as whom.

    role            the identity to take on: AWS role ARN, GCP service account, Azure client id of a managed identity, none on Nebius; None = the caller's own
    account         GCP project, Azure subscription, Nebius project; None = what the credentials or the environment name
    resource_group  Azure: where the machines are; "" = the whole subscription, which needs the right to read it
    """

    cloud: str
    target: str
    region: str
    role: str | None = None
    account: str | None = None
    resource_group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A machine that exists: pending, running, stopping or stopped, not terminated or on its way there.

    Or, as state `leftover`, what a machine was to hang on or has left behind and nothing has now: an interface on Azure, a reserved address on Nebius.
    It bears the job's tags, holds an address that the next launch needs, and is ended like a machine.

    id    what Terraform imports, and has as the id of its instance resource
    zone  the AZ id on AWS, `us-central1-a` on GCP, `eastus-1` on Azure; "" where a machine is in no zone
    tags  skyplan's own, by the keys `skyplan:*` on every cloud
    """

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
    """Finds and ends machines, and what is left of them, by what they are tagged with, whatever any Terraform state says."""

    def instances(self, *, project: str, job: str | None, generation: int | None = None) -> tuple[Instance, ...]:
        """Machines of a job (None: of any job of the project), of one generation or of all; by rank, launch time, id.  Raises CloudError."""
        ...

    def terminate(self, ids: Sequence[str]) -> None:
        """End them, and return when the cloud says that they end.  One that is gone already is no error.  Raises CloudError."""
        ...


class RightsReader(Protocol):
    """Reads what an account really grants, and never writes.  Offered for AWS only (`planner.clouds.aws_iam`): no other cloud's is made in this version."""

    def audited(self, *, project: str, buckets: Sequence[str] = ()) -> Audited:
        """Who holds which rights in the project's name, its machines, the policies of these buckets.  Raises CloudError."""
        ...


class Clouds(Protocol):
    """Listers by place."""

    def lister(self, where: Where) -> ResourceLister:
        """Raises MissingPart where the cloud's SDK is not installed, InputError (SKY-APPLY-315) for a cloud without one, CloudError."""
        ...
