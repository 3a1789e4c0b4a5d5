"""On how much of a cloud a role is given, and whether it gives a permission: Google and Azure.  Reads names; judges nothing.

Predefined roles are here only as far as the rules ask: what of theirs lets somebody end machines or become another (Google's reference of IAM roles and
Azure's of built-in roles, read 2026-11; not compared with a live account).
"""

from __future__ import annotations

import re
from functools import lru_cache

from planner.model.policy import RoleAssignment, RoleBinding

_GUARDS = ("resource.name", "resource.matchtag", "resource.hastagkey")
_WIDE = re.compile(r"(?:projects|folders|organizations)/[^/]+")
_SCOPES = (
    ("subscription", re.compile(r"/subscriptions/[^/]+/?", re.IGNORECASE)),
    ("resource group", re.compile(r"/subscriptions/[^/]+/resourceGroups/[^/]+/?", re.IGNORECASE)),
    ("management group", re.compile(r"/providers/Microsoft\.Management/managementGroups/[^/]+/?", re.IGNORECASE)),
    ("tenant", re.compile(r"/?")),
)
_MACHINES = ("compute.instances.delete", "compute.instances.stop", "compute.instances.setMetadata")
_MAKERS = tuple(f"iam.serviceAccounts.{one}" for one in ("getAccessToken", "getOpenIdToken", "signBlob", "signJwt"))
_GCP_ROLES: dict[str, tuple[str, ...]] = {
    "roles/cloudbuild.builds.editor": ("cloudbuild.builds.create",),
    "roles/compute.admin": (*_MACHINES, "compute.projects.setCommonInstanceMetadata"),
    "roles/compute.instanceAdmin": _MACHINES,
    "roles/compute.instanceAdmin.v1": _MACHINES,
    "roles/deploymentmanager.editor": ("deploymentmanager.deployments.create", "deploymentmanager.deployments.update"),
    "roles/editor": (*_MACHINES, "iam.serviceAccounts.actAs"),
    "roles/iam.organizationRoleAdmin": ("iam.roles.update",),
    "roles/iam.roleAdmin": ("iam.roles.update",),
    "roles/iam.securityAdmin": ("resourcemanager.projects.setIamPolicy", "iam.serviceAccounts.setIamPolicy"),
    "roles/iam.serviceAccountAdmin": ("iam.serviceAccounts.setIamPolicy",),
    "roles/iam.serviceAccountKeyAdmin": ("iam.serviceAccountKeys.create",),
    "roles/iam.serviceAccountTokenCreator": (*_MAKERS, "iam.serviceAccounts.implicitDelegation"),
    "roles/iam.serviceAccountUser": ("iam.serviceAccounts.actAs",),
    "roles/iam.workloadIdentityUser": ("iam.serviceAccounts.getAccessToken", "iam.serviceAccounts.getOpenIdToken"),
    "roles/owner": (*_MACHINES, "iam.serviceAccounts.actAs", "resourcemanager.projects.setIamPolicy"),
    "roles/resourcemanager.projectIamAdmin": ("resourcemanager.projects.setIamPolicy",),
}
_AZURE_ROLES: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    # actions, not actions, data actions
    "Contributor": (
        ("*",),
        (
            "Microsoft.Authorization/*/Delete",
            "Microsoft.Authorization/*/Write",
            "Microsoft.Authorization/elevateAccess/Action",
        ),
        (),
    ),
    "Managed Identity Contributor": (
        (
            "Microsoft.ManagedIdentity/userAssignedIdentities/*/write",
            "Microsoft.ManagedIdentity/userAssignedIdentities/write",
        ),
        (),
        (),
    ),
    "Managed Identity Operator": (("Microsoft.ManagedIdentity/userAssignedIdentities/*/assign/action",), (), ()),
    "Owner": (("*",), (), ()),
    "Role Based Access Control Administrator": (("Microsoft.Authorization/roleAssignments/write",), (), ()),
    "Storage Account Contributor": (("Microsoft.Storage/storageAccounts/*",), (), ()),
    "Storage Account Key Operator Service Role": (("Microsoft.Storage/storageAccounts/listKeys/action",), (), ()),
    "User Access Administrator": (("Microsoft.Authorization/*",), (), ()),
    "Virtual Machine Administrator Login": ((), (), ("Microsoft.Compute/virtualMachines/login*/action",)),
    "Virtual Machine Contributor": (("Microsoft.Compute/virtualMachines/*",), (), ()),
    "Virtual Machine User Login": ((), (), ("Microsoft.Compute/virtualMachines/login/action",)),
}


def gcp_wide(on: str) -> bool:
    """A whole project, folder or organisation."""
    return _WIDE.fullmatch(on) is not None


def gcp_guarded(binding: RoleBinding) -> bool:
    """Its condition looks at the resource's name or tags."""
    return any(word in binding.condition.lower() for word in _GUARDS)


def gcp_permits(binding: RoleBinding, permission: str) -> bool:
    """The role gives the permission."""
    return permission in (binding.permissions or _GCP_ROLES.get(binding.role, ()))


def azure_level(scope: str) -> str:
    """`tenant`, `management group`, `subscription`, `resource group`, or `resource` for anything below."""
    return next((name for name, form in _SCOPES if form.fullmatch(scope)), "resource")


def azure_builtin(assignment: RoleAssignment) -> bool:
    """The role is one that Azure defines."""
    parts = (assignment.actions, assignment.not_actions, assignment.data_actions, assignment.not_data_actions)
    return not any(parts)


def permits(assignment: RoleAssignment, action: str, *, data: bool = False) -> bool:
    """The role gives the action, less what it excludes."""
    if azure_builtin(assignment):
        actions, excluded, data_actions = _AZURE_ROLES.get(assignment.role, ((), (), ()))
        return _any(data_actions, action) if data else _any(actions, action) and not _any(excluded, action)
    if data:
        return _any(assignment.data_actions, action) and not _any(assignment.not_data_actions, action)
    return _any(assignment.actions, action) and not _any(assignment.not_actions, action)


def _any(patterns: tuple[str, ...], action: str) -> bool:
    return any(_form(pattern).fullmatch(action) for pattern in patterns)


@lru_cache(maxsize=4096)
def _form(pattern: str) -> re.Pattern[str]:
    # Azure's own roles write `userAssignedIdentities/*/assign/action` for `userAssignedIdentities/assign/action`
    text = ".*".join(re.escape(part) for part in pattern.split("*")).replace("/.*/", "/(?:.*/)?")
    return re.compile(text, re.IGNORECASE)
