"""What GCP, Azure and Nebius say through their providers, in the shapes that users of those providers have reported."""

from __future__ import annotations

import pytest

from planner.model.diagnostic import Diagnostic
from stacks.classify import classify
from stacks.failures import AWS, AZURE, GCP, HERE, NEBIUS


def judged(text):
    return classify([Diagnostic(code="SKY-APPLY-310", summary=text)])


ZONE = "The zone 'projects/acme/zones/us-central1-a' does not have enough resources available to fulfill the request."
NOTHING = "VM(s) with the following constraints cannot be allocated, because the condition is too restrictive."
CORES = (
    "Operation could not be completed as it results in exceeding approved Total Regional Cores quota. Additional "
    "details - Deployment Model: Resource Manager, Location: eastus, Current Limit: 10, Current Usage: 8"
)
CAPACITY_WORDS = (
    "The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions: Standard_ND96isr_H100_v5' "
    "is currently not available in location 'eastus'."
)
VM = 'creating Linux Virtual Machine (Subscription: "s"\nResource Group Name: "g"\nVirtual Machine Name: "n")'

SAID = {
    # GCP
    f"Error waiting for instance to create: {ZONE} Try a different zone, or try again later.": (
        "capacity",
        "ZONE_RESOURCE_POOL_EXHAUSTED",
    ),
    f"code: ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS\nmessage: {ZONE} (state:STOCKOUT, sub-state ...)": (
        "capacity",
        "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
    ),
    "A g2-standard-4 VM instance is currently unavailable in the zone (resource type:compute, state:STOCKOUT)": (
        "capacity",
        "STOCKOUT",
    ),
    "googleapi: Error 400: UNSUPPORTED_OPERATION: a3-highgpu-8g is not available in zone us-east1-b., invalid": (
        "capacity",
        "UNSUPPORTED_OPERATION",
    ),
    "UNSUPPORTED_OPERATION: Removing a static address is not supported.": ("unknown", ""),
    (
        "Error creating instance: googleapi: Error 400: Invalid value for field 'resource.machineType': 'zones/x'. "
        "Machine type with name 'a3-highgpu-8g' does not exist in zone 'us-east1-b'., invalid"
    ): ("capacity", "MachineTypeNotFound"),
    (
        "Error loading machine type: googleapi: Error 404: The resource "
        "'projects/acme/zones/us-east1-b/machineTypes/a3-highgpu-8g' was not found, notFound"
    ): ("capacity", "MachineTypeNotFound"),
    "googleapi: Error 404: The resource 'projects/acme/global/networks/skyplan' was not found, notFound": (
        "unknown",
        "notFound",
    ),
    "googleapi: Error 403: Quota 'NVIDIA_H100_GPUS' exceeded.  Limit: 0.0 in region us-central1., quotaExceeded": (
        "quota",
        "quotaExceeded",
    ),
    "Error waiting for instance to create: Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0 globally.": (
        "quota",
        "QUOTA_EXCEEDED",
    ),
    (
        'googleapi: Error 403: \n(1) insufficient regional quota to satisfy request: resource "CPUS": request '
        "requires '72.0' and is short '48.0'., forbidden"
    ): ("quota", "QUOTA_EXCEEDED"),
    (
        "googleapi: Error 403: Quota exceeded for quota metric 'Queries' and limit 'Queries per minute' of service "
        "'compute.googleapis.com'., rateLimitExceeded"
    ): ("unknown", "rateLimitExceeded"),
    (
        "googleapi: Error 403: Required 'compute.instances.create' permission for "
        "'projects/acme/zones/us-central1-a/instances/r00', forbidden"
    ): ("permission", "forbidden"),
    (
        "googleapi: Error 403: Permission denied on resource project acme.\nDetails:\n[\n  {\n"
        '    "reason": "IAM_PERMISSION_DENIED"\n  }\n]\n, forbidden'
    ): ("permission", "IAM_PERMISSION_DENIED"),
    "googleapi: Error 412: Constraint constraints/compute.requireShieldedVm violated., conditionNotMet": (
        "unknown",
        "conditionNotMet",
    ),
    "googleapi: Error 403: Compute Engine API has not been used in project 1 before., accessNotConfigured": (
        "unknown",
        "accessNotConfigured",
    ),
    # Azure
    f"{VM}: performing CreateOrUpdate: unexpected status 409 (409 Conflict) with error: SkuNotAvailable: "
    f"{CAPACITY_WORDS}": ("capacity", "SkuNotAvailable"),
    (
        f"{VM}: polling after CreateOrUpdate: polling failed: the Azure API returned the following error:\n\n"
        f'Status: "OverconstrainedZonalAllocationRequest"\nCode: ""\nMessage: "Allocation failed. {NOTHING}"'
    ): ("capacity", "OverconstrainedZonalAllocationRequest"),
    (
        f"{VM}: polling failed: the Azure API returned the following error:\n\n"
        'Status: "Failed"\nCode: "AllocationFailed"\nMessage: "Allocation failed."'
    ): ("capacity", "AllocationFailed"),
    (
        "compute.VirtualMachinesClient#CreateOrUpdate: StatusCode=0 -- Original Error: "
        f'Code="ZonalAllocationFailed" Message="{NOTHING}"'
    ): ("capacity", "ZonalAllocationFailed"),
    ('{"status":"Failed","error":{"code":"ResourceDeploymentFailure","details":[{"code":"AllocationFailed"}]}}'): (
        "capacity",
        "AllocationFailed",
    ),
    f"{VM}: performing CreateOrUpdate: unexpected status 409 (409 Conflict) with error: OperationNotAllowed: {CORES}": (
        "quota",
        "OperationNotAllowed",
    ),
    "Code: OperationNotAllowed\nMessage: it results in exceeding approved LowPriorityCores quota.": (
        "quota",
        "OperationNotAllowed",
    ),
    (
        "unexpected status 409 (409 Conflict) with error: OperationNotAllowed: The VM 'r00' is being deleted. Changes "
        "to it are not permitted."
    ): ("unknown", "OperationNotAllowed"),
    f'{{\\"code\\":\\"QuotaExceeded\\",\\"message\\":\\"{CORES}\\"}}': ("quota", "QuotaExceeded"),
    (
        "unexpected status 403 (403 Forbidden) with error: AuthorizationFailed: The client 'x' with object id 'y' does "
        "not have authorization to perform action 'Microsoft.Compute/virtualMachines/write' over scope '/s'"
    ): ("permission", "AuthorizationFailed"),
    "RESPONSE 403: 403 Forbidden\nERROR CODE: LinkedAuthorizationFailed\n": (
        "permission",
        "LinkedAuthorizationFailed",
    ),
    "AADSTS7000215: Invalid client secret provided.": ("permission", "AADSTS7000215"),
    (
        "unexpected status 403 (403 Forbidden) with error: RequestDisallowedByPolicy: Resource 'r00' was disallowed by "
        "policy. Reasons: 'AllocationFailed is not meant'."
    ): ("unknown", "RequestDisallowedByPolicy"),
    "unexpected status 400 (400 Bad Request) with error: InvalidParameter: The subnet is not valid": (
        "unknown",
        "InvalidParameter",
    ),
    (
        "unexpected status 400 (400 Bad Request) with error: InvalidParameter: The requested VM size "
        "Standard_ND96isr_H100_v5 is not available in the current region. The sizes available are: Standard_D2s_v5."
    ): ("capacity", "MachineTypeNotFound"),
    # Nebius
    (
        "rpc error: code = ResourceExhausted desc = cannot create request = 1\ncaused by service error:\n"
        "  Not enough resources NotEnoughResources: service compute, violations:\n    gpu (requested 8): none"
    ): ("capacity", "NotEnoughResources"),
    (
        "rpc error: code = ResourceExhausted desc = cannot create\ncaused by service error:\n"
        "  Quota failure QuotaExceeded: service compute, violations:\n    compute.instance.gpu.h100 (limit 8, "
        "requested 16): too many"
    ): ("quota", "QuotaExceeded"),
    "rpc error: code = ResourceExhausted desc = Quota limit exceeded for compute.instance.gpu.h200": (
        "quota",
        "ResourceExhausted",
    ),
    "rpc error: code = ResourceExhausted desc = no host": ("capacity", "ResourceExhausted"),
    "rpc error: code = ResourceExhausted desc = too many requests": ("unknown", "ResourceExhausted"),
    "rpc error: code = PermissionDenied desc = Permission denied": ("permission", "PermissionDenied"),
    "rpc error: code = Unauthenticated desc = token expired": ("permission", "Unauthenticated"),
    "rpc error: code = FailedPrecondition desc = subnet is in another region": ("unknown", "FailedPrecondition"),
    "Error: not enough resources: gpu requested 8: none;": ("capacity", "NotEnoughResources"),
    # this machine
    (
        "Attempted to load application default credentials since neither `credentials` nor `access_token` was set in the "
        "provider block.  No credentials loaded.: google: could not find default credentials."
    ): ("permission", "NoCredentials"),
    'Error loading zone: Get "https://compute": oauth2: "invalid_grant" "reauth related error (invalid_rapt)"': (
        "permission",
        "NoCredentials",
    ),
    (
        "unable to build authorizer for Resource Manager API: could not configure AzureCli Authorizer: obtaining tenant "
        "ID: running Azure CLI: exit status 1: ERROR: Please run 'az login' to setup account."
    ): ("permission", "NoCredentials"),
}


@pytest.mark.parametrize(("text", "expected"), SAID.items(), ids=[e[1] or e[0] for e in SAID.values()])
def test_what_the_providers_say(text, expected):
    assert judged(text) == expected


WORDS = {"UNSUPPORTED_OPERATION": "the machine type is not offered", "OperationNotAllowed": "exceeding the quota"}


@pytest.mark.parametrize(("code", "kind"), sorted({**GCP, **AZURE, **NEBIUS}.items()))
def test_a_code_alone_is_enough(code, kind):
    assert judged(f"google_compute_instance.node: {code}: {code} {WORDS.get(code, '')}") == (kind, code)
    assert judged(f'Code="{code}" Message="{WORDS.get(code, "")}"') == (kind, code)
    assert judged(f"x{code}y")[1] != code


def test_an_aws_code_is_never_read_as_another_clouds():
    assert judged("api error QuotaExceeded: of another kind") == ("unknown", "QuotaExceeded")
    assert judged("api error Foo: does not have enough resources available to fulfill the request") == (
        "unknown",
        "Foo",
    )
    assert not AWS.keys() & {**GCP, **AZURE, **NEBIUS}.keys()


@pytest.mark.parametrize(("words", "code"), HERE.items())
def test_what_is_wrong_on_this_machine_outweighs_everything(words, code):
    assert judged(f"{words}: SkuNotAvailable: none") == ("permission", code)
