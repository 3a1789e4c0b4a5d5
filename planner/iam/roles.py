"""What predefined roles hold, of those that skyplan gives to nodes and those that matter to a rule or a judgement.  Pure.

Clouds change their roles without notice: each has its source and the date that it was read, and a role that is not here is unknown, never empty.
A name in `PREDEFINED` may hold patterns (`compute.*`).  Of the broad ones (owner, editor, viewer, Contributor …) only what lies in the services that
skyplan works with is said, so that they are too large for a node at a glance and not a catalog of a cloud.
Written from knowledge of these pages and compared with copies of some (Virtual Machine Contributor 2025-02); none was asked of a live cloud.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.model.offer import Cloud


@dataclass(frozen=True, slots=True, kw_only=True)
class Predefined:
    """One role.  `not_actions` are Azure's: taken out of `actions`.  `names` are other names of it (Azure: its id)."""

    actions: tuple[str, ...]
    not_actions: tuple[str, ...] = ()
    data_actions: tuple[str, ...] = ()
    source: str
    names: tuple[str, ...] = ()


_GCP = "cloud.google.com/iam/docs/roles-permissions, as of 2025"
_BASIC = "cloud.google.com/iam/docs/roles-overview#basic, as of 2025; the services of skyplan only"
_AZURE = "learn.microsoft.com/azure/role-based-access-control/built-in-roles, as of 2025"
_NEBIUS = "docs.nebius.com/iam/authorization/roles and /object-storage/supported-actions, as of 2026-10"

_BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
_CONTAINERS = "Microsoft.Storage/storageAccounts/blobServices/containers"
_KEY = "Microsoft.Storage/storageAccounts/blobServices/generateUserDelegationKey/action"
_LOOK = ("compute.*.get", "compute.*.list", "iam.*.get", "iam.*.list", "resourcemanager.projects.get")
_COMMON = (
    "Microsoft.Authorization/*/read",
    "Microsoft.Insights/alertRules/*",
    "Microsoft.Resources/deployments/*",
    "Microsoft.Resources/subscriptions/resourceGroups/read",
    "Microsoft.Support/*",
)
_TOKENS = (
    "iam.serviceAccounts.getAccessToken",
    "iam.serviceAccounts.getOpenIdToken",
    "iam.serviceAccounts.implicitDelegation",
    "iam.serviceAccounts.signBlob",
    "iam.serviceAccounts.signJwt",
)
_OBJECTS = (
    "storage.folders.get",
    "storage.folders.list",
    "storage.managedFolders.get",
    "storage.managedFolders.list",
    "storage.objects.get",
    "storage.objects.list",
)


def _gcp(*actions: str, source: str = _GCP) -> Predefined:
    return Predefined(actions=actions, source=source)


def _azure(
    name: str, actions: tuple[str, ...], data: tuple[str, ...] = (), without: tuple[str, ...] = ()
) -> Predefined:
    return Predefined(actions=actions, data_actions=data, not_actions=without, source=_AZURE, names=(name,))


def _nebius(*actions: str) -> Predefined:
    return Predefined(actions=actions, source=_NEBIUS)


PREDEFINED: dict[Cloud, dict[str, Predefined]] = {
    Cloud.GCP: {
        "roles/owner": _gcp("*", source=_BASIC),
        "roles/editor": _gcp(
            *_LOOK,
            "compute.*",
            "iam.serviceAccountKeys.*",
            "iam.serviceAccounts.actAs",
            "iam.serviceAccounts.create",
            "iam.serviceAccounts.delete",
            "iam.serviceAccounts.update",
            "secretmanager.secrets.create",
            "secretmanager.secrets.delete",
            "secretmanager.secrets.update",
            "storage.buckets.create",
            "storage.buckets.delete",
            "storage.buckets.list",
            source=_BASIC,
        ),
        "roles/viewer": _gcp(
            *_LOOK, "secretmanager.secrets.get", "secretmanager.secrets.list", "storage.buckets.list", source=_BASIC
        ),
        "roles/storage.objectViewer": _gcp("resourcemanager.projects.get", "resourcemanager.projects.list", *_OBJECTS),
        "roles/storage.objectCreator": _gcp(
            "orgpolicy.policy.get",
            "resourcemanager.projects.get",
            "resourcemanager.projects.list",
            "storage.folders.create",
            "storage.managedFolders.create",
            "storage.multipartUploads.abort",
            "storage.multipartUploads.create",
            "storage.multipartUploads.listParts",
            "storage.objects.create",
        ),
        "roles/storage.objectUser": _gcp(
            "storage.folders.*",
            "storage.managedFolders.create",
            "storage.managedFolders.delete",
            "storage.managedFolders.get",
            "storage.managedFolders.list",
            "storage.multipartUploads.*",
            "storage.objects.create",
            "storage.objects.delete",
            "storage.objects.get",
            "storage.objects.list",
            "storage.objects.restore",
            "storage.objects.update",
        ),
        "roles/storage.objectAdmin": _gcp(
            "storage.folders.*", "storage.managedFolders.*", "storage.multipartUploads.*", "storage.objects.*"
        ),
        "roles/storage.admin": _gcp("storage.*"),
        "roles/storage.legacyBucketReader": _gcp(
            "storage.buckets.get", "storage.multipartUploads.list", "storage.objects.list"
        ),
        "roles/storage.legacyBucketWriter": _gcp(
            "storage.buckets.get",
            "storage.multipartUploads.*",
            "storage.objects.create",
            "storage.objects.delete",
            "storage.objects.list",
        ),
        "roles/storage.legacyBucketOwner": _gcp(
            "storage.buckets.get",
            "storage.buckets.getIamPolicy",
            "storage.buckets.setIamPolicy",
            "storage.buckets.update",
            "storage.multipartUploads.*",
            "storage.objects.create",
            "storage.objects.delete",
            "storage.objects.list",
        ),
        "roles/storage.legacyObjectReader": _gcp("storage.objects.get"),
        "roles/storage.legacyObjectOwner": _gcp(
            "storage.objects.get",
            "storage.objects.getIamPolicy",
            "storage.objects.setIamPolicy",
            "storage.objects.update",
        ),
        "roles/cloudbuild.builds.editor": _gcp("cloudbuild.builds.*"),
        "roles/compute.instanceAdmin": _gcp("compute.instances.*"),
        "roles/deploymentmanager.editor": _gcp("deploymentmanager.deployments.*"),
        "roles/iam.organizationRoleAdmin": _gcp("iam.roles.*"),
        "roles/iam.serviceAccountOpenIdTokenCreator": _gcp("iam.serviceAccounts.getOpenIdToken"),
        "roles/iam.serviceAccountUser": _gcp(
            "iam.serviceAccounts.actAs", "iam.serviceAccounts.get", "iam.serviceAccounts.list"
        ),
        "roles/iam.serviceAccountTokenCreator": _gcp(*_TOKENS, "iam.serviceAccounts.get", "iam.serviceAccounts.list"),
        "roles/iam.workloadIdentityUser": _gcp(
            "iam.serviceAccounts.get",
            "iam.serviceAccounts.getAccessToken",
            "iam.serviceAccounts.getOpenIdToken",
            "iam.serviceAccounts.list",
        ),
        "roles/iam.serviceAccountAdmin": _gcp(
            "iam.serviceAccounts.create",
            "iam.serviceAccounts.delete",
            "iam.serviceAccounts.get",
            "iam.serviceAccounts.getIamPolicy",
            "iam.serviceAccounts.list",
            "iam.serviceAccounts.setIamPolicy",
            "iam.serviceAccounts.update",
        ),
        "roles/iam.serviceAccountKeyAdmin": _gcp("iam.serviceAccountKeys.*"),
        "roles/iam.roleAdmin": _gcp("iam.roles.*", "resourcemanager.projects.getIamPolicy"),
        "roles/iam.securityAdmin": _gcp("*.getIamPolicy", "*.setIamPolicy"),
        "roles/resourcemanager.projectIamAdmin": _gcp(
            "resourcemanager.projects.get",
            "resourcemanager.projects.getIamPolicy",
            "resourcemanager.projects.setIamPolicy",
        ),
        "roles/secretmanager.secretAccessor": _gcp("secretmanager.versions.access"),
        "roles/secretmanager.admin": _gcp("secretmanager.*"),
        "roles/compute.admin": _gcp("compute.*", "resourcemanager.projects.get"),
        "roles/compute.instanceAdmin.v1": _gcp(
            "compute.disks.*",
            "compute.images.*",
            "compute.instances.*",
            "compute.machineTypes.*",
            "compute.subnetworks.use",
            "compute.subnetworks.useExternalIp",
            "compute.zoneOperations.get",
        ),
        "roles/compute.networkUser": _gcp(
            "compute.networks.get",
            "compute.networks.use",
            "compute.subnetworks.get",
            "compute.subnetworks.use",
            "compute.subnetworks.useExternalIp",
        ),
        "roles/compute.viewer": _gcp("compute.*.get", "compute.*.list", "resourcemanager.projects.get"),
    },
    Cloud.AZURE: {
        "Owner": _azure("8e3af657-a8ff-443c-a75c-2fe8c4bcb635", ("*",)),
        "Contributor": _azure(
            "b24988ac-6180-42a0-ab88-20f7382dd24c",
            ("*",),
            without=(
                "Microsoft.Authorization/*/Delete",
                "Microsoft.Authorization/*/Write",
                "Microsoft.Authorization/elevateAccess/Action",
                "Microsoft.Blueprint/blueprintAssignments/delete",
                "Microsoft.Blueprint/blueprintAssignments/write",
                "Microsoft.Compute/galleries/share/action",
            ),
        ),
        "Reader": _azure("acdd72a7-3385-48ef-bd42-f606fba81ae7", ("*/read",)),
        "User Access Administrator": _azure(
            "18d7d88d-d35e-4fb5-a5c3-7773c20a72d9", ("*/read", "Microsoft.Authorization/*", "Microsoft.Support/*")
        ),
        "Role Based Access Control Administrator": _azure(
            "f58310d9-a9f6-439a-9e8d-f62e7b41a168",
            (
                "*/read",
                "Microsoft.Authorization/roleAssignments/delete",
                "Microsoft.Authorization/roleAssignments/write",
                "Microsoft.Support/*",
            ),
        ),
        "Storage Blob Data Reader": _azure(
            "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1", (f"{_CONTAINERS}/read", _KEY), (f"{_BLOBS}/read",)
        ),
        "Storage Blob Data Contributor": _azure(
            "ba92f5b4-2d11-453d-a403-e96b0029c9fe",
            (f"{_CONTAINERS}/delete", f"{_CONTAINERS}/read", f"{_CONTAINERS}/write", _KEY),
            tuple(f"{_BLOBS}/{one}" for one in ("add/action", "delete", "move/action", "read", "write")),
        ),
        "Storage Blob Data Owner": _azure(
            "b7e6dc6d-f1e8-4753-8033-0f276bb0955b", (f"{_CONTAINERS}/*", _KEY), (f"{_BLOBS}/*",)
        ),
        "Storage Blob Delegator": _azure("db58b8e5-c6ad-4a2a-8342-4190687cbf4a", (_KEY,)),
        "Storage Account Contributor": _azure(
            "17d1049b-9a84-46fb-8f53-869881c3d3ab",
            (*_COMMON, "Microsoft.Insights/diagnosticSettings/*", "Microsoft.Storage/storageAccounts/*"),
        ),
        "Key Vault Secrets User": _azure(
            "4633458b-17de-408a-b874-0445c86b69e6",
            (),
            (
                "Microsoft.KeyVault/vaults/secrets/getSecret/action",
                "Microsoft.KeyVault/vaults/secrets/readMetadata/action",
            ),
        ),
        "Managed Identity Operator": _azure(
            "f1a07417-d97a-45cb-824c-7a7467783830",
            (
                *_COMMON,
                "Microsoft.ManagedIdentity/userAssignedIdentities/*/assign/action",
                "Microsoft.ManagedIdentity/userAssignedIdentities/*/read",
            ),
        ),
        "Managed Identity Contributor": _azure(
            "e40ec5ca-96e0-45a2-b4ff-59039f2c2b59",
            (
                *_COMMON,
                "Microsoft.ManagedIdentity/userAssignedIdentities/*/delete",
                "Microsoft.ManagedIdentity/userAssignedIdentities/*/read",
                "Microsoft.ManagedIdentity/userAssignedIdentities/*/write",
                "Microsoft.ManagedIdentity/userAssignedIdentities/delete",
                "Microsoft.ManagedIdentity/userAssignedIdentities/read",
                "Microsoft.ManagedIdentity/userAssignedIdentities/write",
            ),
        ),
        "Network Contributor": _azure("4d97b98b-1d4f-4787-a291-c67834d212e7", (*_COMMON, "Microsoft.Network/*")),
        "Virtual Machine Contributor": _azure(
            "9980e02c-c2be-4d73-94e8-173b1dc7cf3c",
            (
                *_COMMON,
                "Microsoft.Compute/availabilitySets/*",
                "Microsoft.Compute/cloudServices/*",
                "Microsoft.Compute/disks/delete",
                "Microsoft.Compute/disks/read",
                "Microsoft.Compute/disks/write",
                "Microsoft.Compute/locations/*",
                "Microsoft.Compute/virtualMachineScaleSets/*",
                "Microsoft.Compute/virtualMachines/*",
                "Microsoft.Network/locations/*",
                "Microsoft.Network/networkInterfaces/*",
                "Microsoft.Network/networkSecurityGroups/join/action",
                "Microsoft.Network/networkSecurityGroups/read",
                "Microsoft.Network/publicIPAddresses/join/action",
                "Microsoft.Network/publicIPAddresses/read",
                "Microsoft.Network/virtualNetworks/read",
                "Microsoft.Network/virtualNetworks/subnets/join/action",
                "Microsoft.Storage/storageAccounts/listKeys/action",
                "Microsoft.Storage/storageAccounts/read",
            ),
        ),
        "Storage Account Key Operator Service Role": _azure(
            "81a9662b-bebf-436f-a333-f67b29880f12",
            (
                "Microsoft.Storage/storageAccounts/listKeys/action",
                "Microsoft.Storage/storageAccounts/regenerateKey/action",
            ),
        ),
        "Virtual Machine User Login": _azure(
            "fb879df8-f326-4884-b1cf-06f3ad86be52",
            ("Microsoft.Compute/virtualMachines/*/read", "Microsoft.Network/networkInterfaces/read"),
            ("Microsoft.Compute/virtualMachines/login/action",),
        ),
        "Virtual Machine Administrator Login": _azure(
            "1c0163c0-47e6-4577-8991-ea5c82e286e4",
            ("Microsoft.Compute/virtualMachines/*/read", "Microsoft.Network/networkInterfaces/read"),
            (
                "Microsoft.Compute/virtualMachines/login/action",
                "Microsoft.Compute/virtualMachines/loginAsAdmin/action",
            ),
        ),
    },
    # Nebius documents what a role is for, not a list: the words are those of its pages, each a verb on a kind of thing
    Cloud.NEBIUS: {
        "auditor": _nebius("*.list", "*.get"),
        "viewer": _nebius("*.list", "*.get", "*.read"),
        "editor": _nebius("*.list", "*.get", "*.read", "*.create", "*.update", "*.delete", "*.write"),
        "admin": _nebius("*"),
        "storage.object-lister": _nebius("objects.list"),
        "storage.object-viewer": _nebius("objects.get"),
        "storage.object-editor": _nebius("objects.get", "objects.list", "objects.put", "objects.delete"),
        "storage.uploader": _nebius("objects.put"),
        "storage.viewer": _nebius("buckets.get", "buckets.list", "objects.get", "objects.list"),
        "storage.editor": _nebius("buckets.*", "objects.*"),
        "mysterybox.payload-viewer": _nebius("secrets.read"),
    },
}
_BY_NAME: dict[tuple[Cloud, str], Predefined] = {
    (cloud, name.lower()): found
    for cloud, roles in PREDEFINED.items()
    for role, found in roles.items()
    for name in (role, *found.names)
}


def role_of(cloud: Cloud, role: str) -> Predefined | None:
    """The role by its name or, on Azure, its id or the path that ends in it; None where it is not known."""
    name = role.lower()
    if cloud is Cloud.AZURE:
        name = name.rpartition("/")[2]
    return _BY_NAME.get((cloud, name))


def known(cloud: Cloud, role: str) -> bool:
    """Whether anything can be said of the role."""
    return role_of(cloud, role) is not None


def permissions_of(cloud: Cloud, role: str) -> frozenset[str]:
    """All that the role may hold, of management and data alike, patterns among it; empty where it is not known.

    An upper bound where Azure takes actions out again: ask `role_of` for these.
    """
    found = role_of(cloud, role)
    return frozenset((*found.actions, *found.data_actions)) if found else frozenset()
