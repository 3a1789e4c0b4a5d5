"""Names and ARNs of the control identities and boundaries on AWS: one set per project and account, under a path that the deployer cannot write to."""

from __future__ import annotations

from planner.iam.control import DATA_BOUNDARY, NODE_BOUNDARY
from planner.model.control import ControlScope
from planner.model.grants import CONTROL_IDENTITIES, Identity


def path(project: str) -> str:
    """Where the foundation's roles and policies live."""
    return f"/skyplan-foundation/{project}/"


def names(scope: ControlScope) -> dict[Identity, str]:
    """Role by identity."""
    return {identity: f"skyplan-{scope.project}-{identity.value}" for identity in CONTROL_IDENTITIES}


def node_boundary_name(scope: ControlScope) -> str:
    """The policy that bounds every role of a node."""
    return f"skyplan-{scope.project}-{NODE_BOUNDARY}"


def data_boundary_name(scope: ControlScope) -> str:
    """The policy that bounds what the broker becomes."""
    return f"skyplan-{scope.project}-{DATA_BOUNDARY}"


def orchestrator_boundary_name(scope: ControlScope) -> str:
    """The policy that bounds the orchestrator, whose inline policies the deployer writes."""
    return f"skyplan-{scope.project}-orchestrator-boundary"


def entry_name(scope: ControlScope) -> str:
    """The role as which CI's protected branch comes in."""
    return f"skyplan-{scope.project}-ci"


def entry_role(scope: ControlScope) -> str:
    """Its ARN."""
    return _arn(scope, "role", entry_name(scope))


def role(scope: ControlScope, identity: Identity) -> str:
    """ARN of an identity's role."""
    return _arn(scope, "role", names(scope)[identity])


def orchestrator_role(scope: ControlScope) -> str:
    """Its ARN."""
    return role(scope, Identity.ORCHESTRATOR)


def node_boundary(scope: ControlScope) -> str:
    """Its ARN."""
    return _arn(scope, "policy", node_boundary_name(scope))


def data_boundary(scope: ControlScope) -> str:
    """Its ARN."""
    return _arn(scope, "policy", data_boundary_name(scope))


def orchestrator_boundary(scope: ControlScope) -> str:
    """Its ARN."""
    return _arn(scope, "policy", orchestrator_boundary_name(scope))


def _arn(scope: ControlScope, kind: str, name: str) -> str:
    return f"arn:{scope.partition}:iam::{scope.account}:{kind}{path(scope.project)}{name}"
