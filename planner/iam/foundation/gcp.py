"""GCP's control identities: custom roles and where each is bound, made of neutral grants and the operations table.  Pure.

A document is one custom role with its one binding:
    {"role", "title", "permissions", "on": {"project": P} | {"bucket": B}, "condition": {"title", "expression"}, "reason", "limits": [what the cloud cannot say]}
A role is split where its permissions need different conditions: a condition on a name also gates listing, which is checked on the project and has none
(notes: three roles, not one).  Names can be asked of instances, disks and firewall rules; of networks, subnetworks, routers, addresses, resource
policies and service accounts they cannot (Google's list of resource attributes in conditions), so these rights hold for the project.
Tags of service accounts could be asked for, and were in preview when read (IAM: tags of service accounts, 2025-08): nothing here rests on them.
Handing on a node's identity is bound on that one account, by the job's access stack, and never here.
Never run against live Google Cloud; that creating honours the condition on a name is Google's word.
"""

from __future__ import annotations

from typing import Any

from planner.iam.foundation.rights import actions, grants_of, reason
from planner.iam.gcp import CREATOR, SECRET_ACCESSOR, VIEWER
from planner.iam.operations.gcp import OPERATIONS
from planner.model.control import ControlScope
from planner.model.control_names import control_name, role_id, state_prefixes
from planner.model.grants import CONTROL_IDENTITIES, Grant, Identity, Permission
from planner.model.stack import ControlIdentity, PolicyDocument

#: of a service account: 6 to 30
LONGEST_ACCOUNT = 30
ACCOUNT_USER = "roles/iam.serviceAccountUser"
#: what a deployer may give: to nodes their data, to the orchestrator the node's identity
GRANTABLE = (ACCOUNT_USER, SECRET_ACCESSOR, CREATOR, VIEWER)
#: what is not given here though an operation takes it, and where it is instead
WITHHELD = {
    "iam.serviceAccounts.actAs": "on the project it is every service account; each job's access stack gives it on the one account of its nodes",
    "iam.serviceAccounts.getAccessToken": "on the project it is every service account; the foundation gives it to the broker on one account, that of data, to which each job's access stack gives its prefixes",
}
#: types whose names a condition can ask for: what a permission begins with -> (resource.type, what stands before the name)
_NAMED = {
    "compute.instances.": ("compute.googleapis.com/Instance", "/instances/"),
    "compute.disks.": ("compute.googleapis.com/Disk", "/disks/"),
    "compute.firewalls.": ("compute.googleapis.com/Firewall", "/firewalls/"),
}
#: what a listing asks for
LIST_PREFIX = "storage.googleapis.com/objectListPrefix"
_LOOKING = (".get", ".list")
_GRANTING = ".setIamPolicy"
#: logical operators in one condition (Google's quotas of IAM, as of 2025)
MOST_OPERATORS = 12

Document = dict[str, Any]


def names(scope: ControlScope) -> dict[Identity, str]:
    """Account ids of the service accounts."""
    return {one: control_name(scope.project, one.value, limit=LONGEST_ACCOUNT) for one in CONTROL_IDENTITIES}


def identities(scope: ControlScope) -> tuple[ControlIdentity, ...]:
    """The four, with their roles; who may become them is the caller's to add."""
    return tuple(
        ControlIdentity(identity=identity, name=name, policies=_policies(scope, identity))
        for identity, name in names(scope).items()
    )


def _policies(scope: ControlScope, identity: Identity) -> tuple[PolicyDocument, ...]:
    grants = grants_of(scope, identity)
    held = {grant.permission for grant in grants} - {Permission.KEEP_STATE}
    found = [one for one in actions(OPERATIONS, identity, held) if one not in WITHHELD]
    granting = tuple(one for one in found if one.endswith(_GRANTING))
    named = tuple(one for one in found if _kind(one) and not one.endswith(_LOOKING))
    rest = tuple(one for one in found if one not in granting and one not in named)
    made = [
        _role(scope, identity, "uses", rest, grants),
        _role(scope, identity, "owns", named, grants, condition=_by_name(scope, named)),
        _role(scope, identity, "grants", granting, grants, condition=_only_roles()),
        *_state(scope, identity, grants),
    ]
    return tuple(PolicyDocument(name=name, document=document) for name, document in made if document["permissions"])


def _role(
    scope: ControlScope,
    identity: Identity,
    word: str,
    permissions: tuple[str, ...],
    grants: tuple[Grant, ...],
    *,
    condition: Document | None = None,
    bucket: str = "",
) -> tuple[str, Document]:
    name = f"{identity.value}-{word}"
    serving = {
        grant.permission
        for grant in grants
        if not set(permissions).isdisjoint(actions(OPERATIONS, identity, (grant.permission,)))
    }
    return name, {
        "role": role_id(scope.project, name),
        "title": f"skyplan {scope.project}: {name}",
        "permissions": list(permissions),
        "on": {"bucket": bucket} if bucket else {"project": scope.account},
        **({"condition": condition} if condition else {}),
        "reason": reason(grants, serving),
        "limits": list(_limits(scope, permissions, named=condition is not None)),
    }


def _kind(permission: str) -> tuple[str, str] | None:
    return next((kind for start, kind in _NAMED.items() if permission.startswith(start)), None)


def _by_name(scope: ControlScope, permissions: tuple[str, ...]) -> Document:
    """Only what is named as this project's stacks name it, and, of what lies in a zone, only in the target's regions."""
    kinds = sorted({kind for one in permissions if (kind := _kind(one))})
    if not kinds:
        return {}
    clauses = [
        f'resource.type == "{kind}" && resource.name.extract("{before}{{name}}").startsWith("skyplan-{scope.project}-")'
        for kind, before in kinds
    ]
    expression = clauses[0] if len(clauses) == 1 else " || ".join(f"({clause})" for clause in clauses)
    zonal = all(before != "/firewalls/" for _, before in kinds)
    if zonal and scope.regions and len(clauses) * 2 + len(scope.regions) - 1 <= MOST_OPERATORS:
        places = " || ".join(
            f'resource.name.extract("/zones/{{zone}}/").startsWith("{region}-")' for region in sorted(scope.regions)
        )
        expression = f"({expression}) && ({places})"
    return {"title": "skyplan's own by name", "expression": expression}


def _only_roles() -> Document:
    """Members may be added to and taken from these roles only."""
    roles = ", ".join(f"'{role}'" for role in GRANTABLE)
    return {
        "title": "data of nodes and no other role",
        "expression": f"api.getAttribute('iam.googleapis.com/modifiedGrantsByRole', []).hasOnly([{roles}])",
    }


def _state(scope: ControlScope, identity: Identity, grants: tuple[Grant, ...]) -> list[tuple[str, Document]]:
    """The objects of its own stacks' state.  Listing is asked of the bucket, so it is bound by the prefix that is asked for and not by a name."""
    if not scope.state or Permission.KEEP_STATE not in {grant.permission for grant in grants}:
        return []
    prefixes = state_prefixes(scope.project, identity)
    clauses = [
        *(f'resource.name.startsWith("projects/_/buckets/{scope.state}/objects/{prefix}")' for prefix in prefixes),
        *(f'api.getAttribute("{LIST_PREFIX}", "").startsWith("{prefix}")' for prefix in prefixes),
    ]
    condition = {"title": "its own stacks' state", "expression": " || ".join(clauses)}
    found = actions(OPERATIONS, identity, {Permission.KEEP_STATE})
    return [_role(scope, identity, "state", found, grants, condition=condition, bucket=scope.state)]


def _limits(scope: ControlScope, permissions: tuple[str, ...], *, named: bool) -> tuple[str, ...]:
    """What Google's IAM cannot say of these permissions."""
    out: list[str] = []
    if (
        any(one.endswith((".create", ".delete", ".update", ".use", ".useExternalIp")) for one in permissions)
        and not named
    ):
        out.append("no condition can ask for the names of these types: the right holds for the whole project")
    if "compute.instances.create" in permissions:
        out.append("no permission or condition names a machine type or an image's owner: organisation policies do")
        out.append("a launch brings its own user data: there is no template that it could be bound to")
        if len(scope.regions) + 3 > MOST_OPERATORS:
            out.append(f"{len(scope.regions)} regions do not fit into a condition of {MOST_OPERATORS} operators")
    if "storage.objects.list" in permissions:
        out.append(
            "if this attribute did not hold in a bucket's policy, listing and so `terraform init` would be refused"
        )
    if any(one.endswith(_GRANTING) for one in permissions):
        out.append("whom a role is given to, and on which bucket or account, no condition can say: only which roles")
    if "iam.serviceAccounts.setIamPolicy" in permissions:
        out.append(
            f"{ACCOUNT_USER} is among these roles, for the nodes' account of each job, so it could be given on any service account of the project: "
            "`skyplan audit` finds that (SKY-IAM-213, critical); keep no other service account with rights in the project, and accept the finding with that reason"
        )
    return tuple(out)
