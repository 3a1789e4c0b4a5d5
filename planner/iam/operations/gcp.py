"""What skyplan does on GCP and the permissions that it takes, by resource type of its stacks, by step, and by own call.

Which permission an API method checks is Google's documentation's word, and which methods a resource calls the provider's (6.50); both as they are known
here, not read off method by method.  Never run against live Google Cloud, and no emulator checks
Google's permissions: a missing one shows as a refused apply, a superfluous one only in the project's own recommender.
Decides nothing about who gets what: that is `planner.iam.control`'s.
"""

from __future__ import annotations

from planner.iam.operations.steps import Managed, also, call
from planner.model.control import Operation, Step
from planner.model.grants import Identity, Permission

_GLOBAL = "compute.globalOperations.get"
_REGIONAL = "compute.regionOperations.get"
_ZONAL = "compute.zoneOperations.get"
#: what is put into a network changes it
_POLICY = "compute.networks.updatePolicy"
NOT_YET = "nothing asks for these yet: regions and reservations are the packaged catalog's and the project file's"
REFRESHED = "asked where prices are refreshed (`skyplan prices refresh`), which is no step of a job's life"
BROKER = "only where a project has a broker, and then by a process of its own: no step of a job's life"


def _network(stack: str) -> tuple[Managed, ...]:
    """The network of a target and region, and those of a job's GPU fabric (whose default routes the provider takes away itself)."""
    permission = Permission.MANAGE_NETWORK if stack == "network" else Permission.MANAGE_LAUNCH
    routes = ("compute.routes.delete", "compute.routes.list", _POLICY) if stack == "access" else ()
    network = Managed(
        stack=stack,
        resource="google_compute_network",
        identity=Identity.DEPLOYER,
        permission=permission,
        create=("compute.networks.create", _GLOBAL, *routes),
        read=("compute.networks.get",),
        update=("compute.networks.update", _GLOBAL),
        delete=("compute.networks.delete", _GLOBAL),
    )
    subnetwork = Managed(
        stack=stack,
        resource="google_compute_subnetwork",
        identity=Identity.DEPLOYER,
        permission=permission,
        create=("compute.subnetworks.create", _POLICY, _REGIONAL),
        read=("compute.subnetworks.get",),
        update=("compute.subnetworks.update", "compute.subnetworks.setPrivateIpGoogleAccess", _REGIONAL),
        delete=("compute.subnetworks.delete", _POLICY, _REGIONAL),
    )
    return network, subnetwork


_DEPLOYED = (
    *_network("network"),
    Managed(
        stack="network",
        resource="google_compute_router",
        identity=Identity.DEPLOYER,
        permission=Permission.MANAGE_NETWORK,
        create=("compute.routers.create", _POLICY, _REGIONAL),
        read=("compute.routers.get",),
        update=("compute.routers.update", _REGIONAL),
        delete=("compute.routers.delete", _POLICY, _REGIONAL),
    ),
    Managed(
        stack="network",
        resource="google_compute_router_nat",  # a part of its router, not a thing of its own
        identity=Identity.DEPLOYER,
        permission=Permission.MANAGE_NETWORK,
        create=("compute.routers.get", "compute.routers.update", _REGIONAL),
        read=("compute.routers.get",),
        update=("compute.routers.get", "compute.routers.update", _REGIONAL),
        delete=("compute.routers.get", "compute.routers.update", _REGIONAL),
    ),
    Managed(
        stack="addresses",
        resource="google_compute_address",
        identity=Identity.DEPLOYER,
        permission=Permission.RESERVE_ADDRESS,
        create=("compute.addresses.create", "compute.addresses.setLabels", _REGIONAL),
        read=("compute.addresses.get",),
        update=("compute.addresses.setLabels", _REGIONAL),
        delete=("compute.addresses.delete", _REGIONAL),
    ),
    *_network("access"),
    Managed(
        stack="access",
        resource="google_compute_firewall",
        identity=Identity.DEPLOYER,
        permission=Permission.MANAGE_LAUNCH,
        create=("compute.firewalls.create", _POLICY, _GLOBAL),
        read=("compute.firewalls.get",),
        update=("compute.firewalls.update", _POLICY, _GLOBAL),
        delete=("compute.firewalls.delete", _POLICY, _GLOBAL),
    ),
    Managed(
        stack="access",
        resource="google_compute_resource_policy",
        identity=Identity.DEPLOYER,
        permission=Permission.MANAGE_LAUNCH,
        create=("compute.resourcePolicies.create", _REGIONAL),
        read=("compute.resourcePolicies.get",),
        delete=("compute.resourcePolicies.delete", _REGIONAL),
    ),
    Managed(
        stack="access",
        resource="data.google_compute_image",
        identity=Identity.DEPLOYER,
        permission=Permission.MANAGE_LAUNCH,
        read=("compute.images.get", "compute.images.getFromFamily"),
    ),
    Managed(
        stack="access",
        resource="data.google_project",
        identity=Identity.DEPLOYER,
        permission=Permission.DESCRIBE,
        read=("resourcemanager.projects.get",),
    ),
    Managed(
        stack="access",
        resource="google_service_account",
        identity=Identity.DEPLOYER,
        permission=Permission.MANAGE_NODE_IDENTITY,
        create=("iam.serviceAccounts.create",),
        read=("iam.serviceAccounts.get",),
        update=("iam.serviceAccounts.update",),
        delete=("iam.serviceAccounts.delete",),
    ),
    *(
        Managed(
            stack="access",
            resource=resource,
            identity=Identity.DEPLOYER,
            permission=Permission.MANAGE_NODE_IDENTITY,
            # a member is added to, and taken out of, a policy that is read and written whole
            create=(f"{kind}.getIamPolicy", f"{kind}.setIamPolicy"),
            read=(f"{kind}.getIamPolicy",),
            delete=(f"{kind}.getIamPolicy", f"{kind}.setIamPolicy"),
        )
        for resource, kind in (
            ("google_service_account_iam_member", "iam.serviceAccounts"),
            ("google_storage_bucket_iam_member", "storage.buckets"),
            ("google_storage_managed_folder_iam_member", "storage.managedFolders"),
            ("google_secret_manager_secret_iam_member", "secretmanager.secrets"),
        )
    ),
)
_INSTANCE = Managed(
    stack="compute",
    resource="google_compute_instance",
    identity=Identity.ORCHESTRATOR,
    permission=Permission.LAUNCH,
    create=(
        "compute.disks.create",
        "compute.disks.setLabels",
        "compute.images.useReadOnly",
        "compute.instances.create",
        "compute.instances.setLabels",
        "compute.instances.setMetadata",
        "compute.instances.setServiceAccount",
        "compute.resourcePolicies.use",
        "compute.subnetworks.use",
        _ZONAL,
    ),
    delete=("compute.disks.delete", "compute.instances.delete", _ZONAL),
    ends=Permission.TERMINATE,
)
_LOOK = ("compute.disks.get", "compute.instances.get", "compute.zones.get")
_LIST = ("compute.instances.list",)
#: the price list takes no permission, only the Cloud Billing API to be on in the project
_MARKET = ("compute.acceleratorTypes.list", "compute.machineTypes.list", "compute.regions.get")
_ACCOUNT = ("compute.projects.get", "compute.regions.list", "compute.reservations.list", "compute.zones.list")
_STATE = ("storage.objects.create", "storage.objects.delete", "storage.objects.get", "storage.objects.list")
LISTER = "planner.clouds.gcp.GcpLister"
BACKEND = "terraform.backend.gcs"

OPERATIONS: tuple[Operation, ...] = (
    *(row for managed in _DEPLOYED for row in managed.rows()),
    *_INSTANCE.rows(),
    also(_INSTANCE, Permission.DESCRIBE, _LOOK, Step.READ),
    also(_INSTANCE, Permission.PASS_IDENTITY, ("iam.serviceAccounts.actAs",)),
    also(_INSTANCE, Permission.ATTACH_ADDRESS, ("compute.addresses.use", "compute.subnetworks.useExternalIp")),
    call(LISTER, Identity.ORCHESTRATOR, Permission.DESCRIBE, _LIST),
    call(LISTER, Identity.ORCHESTRATOR, Permission.TERMINATE, ("compute.instances.delete", _ZONAL)),
    call(LISTER, Identity.PLANNER, Permission.DESCRIBE, _LIST),
    call("planner.clouds.feeds.gcp.GcpFeed", Identity.PLANNER, Permission.READ_MARKET, _MARKET, unused=REFRESHED),
    call("catalog", Identity.PLANNER, Permission.READ_MARKET, _ACCOUNT, unused=NOT_YET),
    # state is written over, and a lock is an object of its own: Cloud Storage asks for delete to write over
    call(BACKEND, Identity.DEPLOYER, Permission.KEEP_STATE, _STATE),
    call(BACKEND, Identity.ORCHESTRATOR, Permission.KEEP_STATE, _STATE),
    call(
        "broker", Identity.BROKER, Permission.MINT_CREDENTIALS, ("iam.serviceAccounts.getAccessToken",), unused=BROKER
    ),
)
