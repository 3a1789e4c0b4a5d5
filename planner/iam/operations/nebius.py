"""What skyplan does on Nebius and the roles that it takes, by resource type of its stacks, by step, and by own call.

Nebius documents roles, not permissions (docs.nebius.com/iam/authorization/roles, 2026-10), and no role for compute alone: so an action here is a
role, and a table of steps says less than on other clouds.  `admin` is what managing groups, permits and keys takes, on the tenant.
Never run against live Nebius.  Decides nothing about who gets what: that is `planner.iam.control`'s.
"""

from __future__ import annotations

from planner.iam.operations.gcp import BROKER, REFRESHED
from planner.iam.operations.steps import Managed, also, call
from planner.model.control import Operation, Step
from planner.model.grants import Identity, Permission

AUDITOR, VIEWER, EDITOR, ADMIN = "auditor", "viewer", "editor", "admin"


def _held(stack: str, resource: str, permission: Permission, role: str = EDITOR) -> Managed:
    """A resource that the deployer makes and ends."""
    once = (role,)
    return Managed(
        stack=stack,
        resource=resource,
        identity=Identity.DEPLOYER,
        permission=permission,
        create=once,
        read=(AUDITOR,) if role == ADMIN else once,
        update=once,
        delete=once,
    )


def _launched(resource: str) -> Managed:
    return Managed(
        stack="compute",
        resource=resource,
        identity=Identity.ORCHESTRATOR,
        permission=Permission.LAUNCH,
        create=(EDITOR,),
        delete=(EDITOR,),
        ends=Permission.TERMINATE,
    )


def _read(stack: str) -> Managed:
    """Which project the caller is in: asked where the target names none."""
    compute = stack == "compute"
    return Managed(
        stack=stack,
        resource="data.nebius_parent_id",
        identity=Identity.ORCHESTRATOR if compute else Identity.DEPLOYER,
        permission=Permission.DESCRIBE,
        read=(AUDITOR,),
    )


_INSTANCE, _ALLOCATION = _launched("nebius_compute_v1_instance"), _launched("nebius_vpc_v1_allocation")
_MANAGED = (
    *(
        _held("network", f"nebius_vpc_v1_{kind}", Permission.MANAGE_NETWORK)
        for kind in ("network", "pool", "route", "route_table", "subnet")
    ),
    _held("addresses", "nebius_vpc_v1_allocation", Permission.RESERVE_ADDRESS),
    *(
        _held("access", f"nebius_{kind}", Permission.MANAGE_LAUNCH)
        for kind in ("compute_v1_gpu_cluster", "vpc_v1_security_group", "vpc_v1_security_rule")
    ),
    _held("access", "nebius_iam_v1_service_account", Permission.MANAGE_NODE_IDENTITY),
    *(
        _held("access", f"nebius_iam_v1_{kind}", Permission.MANAGE_NODE_IDENTITY, ADMIN)
        for kind in ("access_permit", "group", "group_membership")
    ),
    *(_read(stack) for stack in ("network", "addresses", "access", "compute")),
    _INSTANCE,
    _ALLOCATION,
)
LISTER = "planner.clouds.nebius.NebiusLister"

OPERATIONS: tuple[Operation, ...] = (
    *(row for managed in _MANAGED for row in managed.rows()),
    also(_INSTANCE, Permission.DESCRIBE, (VIEWER,), Step.READ),
    also(_INSTANCE, Permission.PASS_IDENTITY, (EDITOR,)),
    also(_INSTANCE, Permission.ATTACH_ADDRESS, (EDITOR,)),
    also(_ALLOCATION, Permission.DESCRIBE, (VIEWER,), Step.READ),
    # machines and reserved addresses are listed; both are deleted, for a launch that died may leave an address behind
    call(LISTER, Identity.ORCHESTRATOR, Permission.DESCRIBE, (VIEWER,)),
    call(LISTER, Identity.ORCHESTRATOR, Permission.TERMINATE, (EDITOR,)),
    call(LISTER, Identity.PLANNER, Permission.DESCRIBE, (VIEWER,)),
    call(
        "planner.clouds.feeds.nebius.NebiusFeed", Identity.PLANNER, Permission.READ_MARKET, (VIEWER,), unused=REFRESHED
    ),
    # Object Storage speaks S3: Terraform's `s3` backend with an access key of the service account's
    call("terraform.backend.s3", Identity.DEPLOYER, Permission.KEEP_STATE, ("storage.object-editor",)),
    call("terraform.backend.s3", Identity.ORCHESTRATOR, Permission.KEEP_STATE, ("storage.object-editor",)),
    call("broker", Identity.BROKER, Permission.MINT_CREDENTIALS, (ADMIN,), unused=BROKER),
)
