"""Rights as data, cloud-neutral: who may do what on what, on which condition, and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Identity(StrEnum):
    """The identities of design.md; nodes hold the last two."""

    PLANNER = "planner"
    DEPLOYER = "deployer"
    ORCHESTRATOR = "orchestrator"
    BROKER = "broker"
    NODE_DATA = "node-data"
    NODE_CHECKPOINT = "node-checkpoint"


class Permission(StrEnum):
    """What a node may do with data."""

    READ_OBJECTS = "read_objects"
    WRITE_CHECKPOINTS = "write_checkpoints"  # create and read, never delete
    READ_SECRET = "read_secret"  # noqa: S105 - the name of a right


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Grant:
    """One right.  `resource` is a URI: `s3://bucket/prefix/`, `aws-secretsmanager://name`; `reason` is shown in reviews."""

    identity: Identity
    permission: Permission
    resource: str
    reason: str

    def document(self) -> dict[str, str]:
        """JSON-ready."""
        return {
            "identity": self.identity.value,
            "permission": self.permission.value,
            "resource": self.resource,
            "reason": self.reason,
        }


def grant_from(document: dict[str, str]) -> Grant:
    """The inverse of `Grant.document`.  Raises KeyError or ValueError on what is not one."""
    return Grant(
        identity=Identity(document["identity"]),
        permission=Permission(document["permission"]),
        resource=document["resource"],
        reason=document["reason"],
    )
