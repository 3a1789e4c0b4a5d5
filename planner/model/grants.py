"""Rights as data, cloud-neutral: who may do what on what, on which condition, and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Identity(StrEnum):
    """Who may act.  Nodes hold the last two; the others are made once per account by the foundation stack.

    planner       reads prices, types, quotas and what runs; changes nothing
    deployer      Terraform in CI: networks, node identities (behind a boundary), launch templates; launches nothing
    orchestrator  launches, terminates and describes nodes; nothing else
    broker        mints data credentials; launches nothing
    """

    PLANNER = "planner"
    DEPLOYER = "deployer"
    ORCHESTRATOR = "orchestrator"
    BROKER = "broker"
    NODE_DATA = "node-data"
    NODE_CHECKPOINT = "node-checkpoint"


#: what the foundation stack makes; the others are a job's own, made by its access stack
CONTROL_IDENTITIES = (Identity.PLANNER, Identity.DEPLOYER, Identity.ORCHESTRATOR, Identity.BROKER)


class Permission(StrEnum):
    """What may be done, in no cloud's own words."""

    # nodes
    READ_OBJECTS = "read_objects"
    WRITE_CHECKPOINTS = "write_checkpoints"  # create and read, never delete
    READ_SECRET = "read_secret"  # noqa: S105 - the name of a right
    # planner
    READ_MARKET = "read_market"  # prices, types, zones, quotas, capacity
    # planner, orchestrator, deployer
    DESCRIBE = "describe"  # what runs and what it stands on
    # deployer
    MANAGE_NETWORK = "manage_network"
    RESERVE_ADDRESS = "reserve_address"
    MANAGE_NODE_IDENTITY = "manage_node_identity"  # roles of nodes, under the boundary, within their path
    MANAGE_LAUNCH = "manage_launch"  # templates, placement groups, firewalls of a job
    # orchestrator
    LAUNCH = "launch"
    TERMINATE = "terminate"
    PASS_IDENTITY = "pass_identity"  # noqa: S105 - the name of a right: hand a node its identity
    ATTACH_ADDRESS = "attach_address"
    # deployer, orchestrator
    KEEP_STATE = "keep_state"  # its own stacks' Terraform state
    # broker
    MINT_CREDENTIALS = "mint_credentials"


class Bound(StrEnum):
    """By what a right is kept small.  How a cloud says it, and whether it can, is its renderer's."""

    ACCOUNT = "account"
    REGION = "region"
    PROJECT = "project"  # tag or name of skyplan's own resources of this project
    INSTANCE_TYPE = "instance_type"
    IMAGE_OWNER = "image_owner"
    LAUNCH_TEMPLATE = "launch_template"  # only from a template that the deployer wrote
    BOUNDARY = "boundary"  # every role made carries this permissions boundary
    SERVICE = "service"  # only that service may receive the identity
    RESOURCE = "resource"  # these resources only, by the cloud's own name


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Condition:
    """One bound of a grant: any of `values`."""

    bound: Bound
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Grant:
    """One right.  `reason` is shown in reviews.

    resource  a URI: `s3://bucket/prefix/`, `aws-secretsmanager://name`; of control identities a word for what is acted on: `instances`, `network`
    """

    identity: Identity
    permission: Permission
    resource: str
    reason: str
    conditions: tuple[Condition, ...] = ()

    def document(self) -> dict[str, Any]:
        """JSON-ready.  Bounds only where there are any, so that grants without them keep their digest."""
        out: dict[str, Any] = {
            "identity": self.identity.value,
            "permission": self.permission.value,
            "resource": self.resource,
            "reason": self.reason,
        }
        if self.conditions:
            out["conditions"] = {c.bound.value: list(c.values) for c in self.conditions}
        return out


def grant_from(document: dict[str, Any]) -> Grant:
    """The inverse of `Grant.document`.  Raises KeyError or ValueError on what is not one."""
    return Grant(
        identity=Identity(document["identity"]),
        permission=Permission(document["permission"]),
        resource=document["resource"],
        reason=document["reason"],
        conditions=tuple(
            Condition(bound=Bound(bound), values=tuple(values))
            for bound, values in document.get("conditions", {}).items()
        ),
    )
