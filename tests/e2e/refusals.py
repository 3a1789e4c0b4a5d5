"""How a cloud refuses a launch, in the words in which its provider says so; `(kind, code, words)`.

Shapes that users of the providers have reported (see `stacks.failures`); none was provoked on a live cloud by us.  No `|`: it parts the stub's rules.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.emulators.stub_cloud import MACHINES


class Refusal(NamedTuple):
    kind: str
    code: str
    words: str


_VM = 'creating Linux Virtual Machine (Subscription: "s"\nResource Group Name: "g"\nVirtual Machine Name: "n"): '
_POLLED = _VM + "polling after CreateOrUpdate: polling failed: the Azure API returned the following error:\n\n"
_CORES = (
    "Operation could not be completed as it results in exceeding approved LowPriorityCores quota. Additional details - "
    "Deployment Model: Resource Manager, Location: eastus, Current Limit: 3, Current Usage: 0"
)
_RPC = "rpc error: code = ResourceExhausted desc = cannot create instance\ncaused by service error:\n  "
_EC2 = "creating EC2 Instance: operation error EC2: RunInstances, https response error StatusCode: 400, RequestID: r, "

#: the first two of each cloud are of every test run: one of capacity, one of a quota
REFUSALS = {
    "gcp": (
        Refusal(
            "capacity",
            "ZONE_RESOURCE_POOL_EXHAUSTED",
            "Error waiting for instance to create: The zone 'projects/acme-ml/zones/z' does not have enough resources available to "
            "fulfill the request.  Try a different zone, or try again later.",
        ),
        Refusal(
            "quota",
            "QUOTA_EXCEEDED",
            "Error waiting for instance to create: Quota 'NVIDIA_L4_GPUS' exceeded.  Limit: 0.0 in region r.",
        ),
        Refusal(
            "capacity",
            "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
            "code: ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS\nmessage: (state:STOCKOUT, sub-state ...)",
        ),
        Refusal(
            "capacity",
            "MachineTypeNotFound",
            "Error creating instance: googleapi: Error 400: Invalid value for field 'resource.machineType': 'zones/x'. Machine type "
            "with name 'g2-standard-4' does not exist in zone 'z'., invalid",
        ),
        Refusal(
            "unknown",
            "conditionNotMet",
            "googleapi: Error 412: Constraint constraints/compute.requireShieldedVm violated., conditionNotMet",
        ),
    ),
    "azure": (
        Refusal(
            "capacity",
            "SkuNotAvailable",
            f"{_VM}performing CreateOrUpdate: unexpected status 409 (409 Conflict) with error: SkuNotAvailable: The requested VM size for "
            "resource 'Following SKUs have failed for Capacity Restrictions: Standard_NC4as_T4_v3' is currently not available in location 'l'.",
        ),
        Refusal(
            "quota",
            "OperationNotAllowed",
            f"{_VM}performing CreateOrUpdate: unexpected status 409 (409 Conflict) with error: OperationNotAllowed: {_CORES}",
        ),
        Refusal(
            "capacity",
            "AllocationFailed",
            f'{_POLLED}Status: "Failed"\nCode: "AllocationFailed"\nMessage: "Allocation failed. We do not have sufficient capacity."',
        ),
        Refusal(
            "capacity",
            "OverconstrainedAllocationRequest",
            f'{_POLLED}Status: "OverconstrainedAllocationRequest"\nCode: ""\nMessage: "Allocation failed."',
        ),
        Refusal(
            "unknown",
            "RequestDisallowedByPolicy",
            f"{_VM}unexpected status 403 (403 Forbidden) with error: RequestDisallowedByPolicy: Resource 'n' was disallowed by policy.",
        ),
    ),
    "nebius": (
        Refusal(
            "capacity",
            "NotEnoughResources",
            f"{_RPC}Not enough resources NotEnoughResources: service compute, violations:\n    gpu (requested 1): none",
        ),
        Refusal(
            "quota",
            "QuotaExceeded",
            f"{_RPC}Quota failure QuotaExceeded: service compute, violations:\n    compute.instance.gpu.l40s (limit 0, requested 1): too many",
        ),
        Refusal("capacity", "ResourceExhausted", "rpc error: code = ResourceExhausted desc = no host"),
        Refusal(
            "unknown",
            "FailedPrecondition",
            "rpc error: code = FailedPrecondition desc = subnet is in another region",
        ),
    ),
    "aws": (
        Refusal(
            "capacity",
            "InsufficientInstanceCapacity",
            f"{_EC2}api error InsufficientInstanceCapacity: We currently do not have sufficient capacity in the zone you requested.",
        ),
        Refusal(
            "quota",
            "MaxSpotInstanceCountExceeded",
            f"{_EC2}api error MaxSpotInstanceCountExceeded: Max spot instance count exceeded",
        ),
        Refusal("capacity", "Unsupported", f"{_EC2}api error Unsupported: not supported in your Availability Zone."),
        Refusal("unknown", "InvalidParameterValue", f"{_EC2}api error InvalidParameterValue: no such thing"),
    ),
}
#: what stops everything
DENIED = {
    "gcp": "googleapi: Error 403: Required 'compute.instances.create' permission for 'projects/acme-ml/zones/z/instances/r00', forbidden",
    "azure": "unexpected status 403 (403 Forbidden) with error: AuthorizationFailed: The client 'x' does not have authorization",
    "nebius": "rpc error: code = PermissionDenied desc = Permission denied",
    "aws": f"{_EC2}api error UnauthorizedOperation: You are not authorized to perform this operation.",
}
#: where a node's rank stands among its arguments
RANK = {
    "gcp": "labels.skyplan-rank",
    "azure": "tags.skyplan:rank",
    "nebius": "labels.skyplan-rank",
    "aws": "tags.skyplan:rank",
}


def always(cloud: str, words: str, rank: str = "*") -> str:
    """STUB_FAIL: a rank's launch is always refused."""
    return f"{MACHINES[cloud]}[{RANK[cloud]}={rank}]:{words}"


def once_each(cloud: str, rank: str, *words: str) -> str:
    """STUB_FAIL: a rank's first launches are refused, one for each of the words."""
    return "|".join(f"{MACHINES[cloud]}[{RANK[cloud]}={rank}]#1:{said}" for said in words)
