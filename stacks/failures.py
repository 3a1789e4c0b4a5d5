"""The words in which clouds and their Terraform providers say why nothing was launched, and what kind of failure each means.  Data only.

A code is listed when it says that capacity, a quota or a permission is missing.  A code that means a wrong network, a policy of the organisation or
a disabled service is left out on purpose: it stays unknown, and is shown whole.  Sentences are listed only where a provider drops the code.
Read from providers' sources and from messages that their users reported (2026-11); none was provoked on a live cloud by us.
"""

from __future__ import annotations

import re
from typing import NamedTuple

CAPACITY = "capacity"
QUOTA = "quota"
PERMISSION = "permission"
UNKNOWN = "unknown"

AWS: dict[str, str] = {
    # there is none now: another zone, type or hour may have it
    **dict.fromkeys(
        (
            "InsufficientInstanceCapacity",
            "InsufficientCapacity",
            "InsufficientCapacityOnOutpost",
            "InsufficientHostCapacity",
            "InsufficientReservedInstanceCapacity",
            "InsufficientFreeAddressesInSubnet",
            "ReservationCapacityExceeded",
            "SpotMaxPriceTooLow",
            "UnfulfillableCapacity",
            "Unsupported",  # the type is not offered in that zone
        ),
        CAPACITY,
    ),
    # the account may not have more
    **dict.fromkeys(
        (
            "InstanceLimitExceeded",
            "MaxSpotInstanceCountExceeded",
            "MaxSpotFleetRequestCountExceeded",
            "VcpuLimitExceeded",
            "VolumeLimitExceeded",
            "PrivateIpAddressLimitExceeded",
            "NetworkInterfaceLimitExceeded",
            "MaxIOPSLimitExceeded",
        ),
        QUOTA,
    ),
    # nobody's capacity is at fault
    **dict.fromkeys(
        (
            "AccessDenied",
            "AccessDeniedException",
            "AuthFailure",
            "ExpiredToken",
            "ExpiredTokenException",
            "InvalidClientTokenId",
            "OptInRequired",
            "PendingVerification",
            "RequestExpired",
            "SignatureDoesNotMatch",
            "UnauthorizedOperation",
            "UnrecognizedClientException",
        ),
        PERMISSION,
    ),
}
GCP: dict[str, str] = {
    **dict.fromkeys(
        (
            "ZONE_RESOURCE_POOL_EXHAUSTED",
            "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
            "RESOURCE_POOL_EXHAUSTED",
            "STOCKOUT",
            "UNSUPPORTED_OPERATION",  # see CONDITIONS
        ),
        CAPACITY,
    ),
    # rateLimitExceeded is about requests a minute, and passes: unknown
    **dict.fromkeys(("QUOTA_EXCEEDED", "quotaExceeded"), QUOTA),
    **dict.fromkeys(
        ("PERMISSION_DENIED", "IAM_PERMISSION_DENIED", "SERVICE_ACCOUNT_ACCESS_DENIED", "UNAUTHENTICATED"), PERMISSION
    ),
}
AZURE: dict[str, str] = {
    **dict.fromkeys(
        (
            "SkuNotAvailable",
            "AllocationFailed",
            "ZonalAllocationFailed",
            "OverconstrainedAllocationRequest",
            "OverconstrainedZonalAllocationRequest",
            "OverConstrainedAllocationRequest",
            "OverConstrainedZonalAllocationRequest",
        ),
        CAPACITY,
    ),
    # the spot quota has no code of its own: OperationNotAllowed with LowPriorityCores in its text
    **dict.fromkeys(("QuotaExceeded", "OperationNotAllowed"), QUOTA),
    **dict.fromkeys(
        (
            "AuthorizationFailed",
            "LinkedAuthorizationFailed",
            "AuthenticationFailed",
            "ExpiredAuthenticationToken",
            "InvalidAuthenticationToken",
            "InvalidAuthenticationTokenTenant",
        ),
        PERMISSION,
    ),
}
#: QuotaExceeded is Azure's as well; the codes of gRPC itself are in GENERIC
NEBIUS: dict[str, str] = {
    "NotEnoughResources": CAPACITY,
    "not_enough_resources": CAPACITY,
    "QuotaExceeded": QUOTA,
    "QuotaFailure": QUOTA,
    "quota_failure": QUOTA,
}
#: a code that means several things counts only where its text says the one that is meant
CONDITIONS: dict[str, re.Pattern[str]] = {
    "UNSUPPORTED_OPERATION": re.compile(
        r"(?i)machine ?type|accelerator|not (?:available|supported) in (?:the )?(?:zone|region)"
    ),
    "OperationNotAllowed": re.compile(r"(?i)exceed[^.]{0,80}\bquota"),
}


class Sentence(NamedTuple):
    """What is said without a code, or with one that says too little; `code` is then ours."""

    pattern: re.Pattern[str]
    kind: str
    code: str


#: said by a cloud whose provider shows no code
SENTENCES = (
    Sentence(
        re.compile(r"does not have enough resources available to fulfill the request"),
        CAPACITY,
        "ZONE_RESOURCE_POOL_EXHAUSTED",
    ),
    Sentence(re.compile(r"Machine type with name '[^']+' does not exist in zone"), CAPACITY, "MachineTypeNotFound"),
    Sentence(
        re.compile(r"zones/[\w-]+/(?:machineTypes|acceleratorTypes)/[\w-]+' was not found"),
        CAPACITY,
        "MachineTypeNotFound",
    ),
    # Azure's code for it is InvalidParameter
    Sentence(
        re.compile(r"requested VM size '?[\w-]+'? is not available in the current region"),
        CAPACITY,
        "MachineTypeNotFound",
    ),
    Sentence(re.compile(r"Quota '[\w.-]+' exceeded"), QUOTA, "QUOTA_EXCEEDED"),
    Sentence(re.compile(r"(?i)insufficient (?:regional|project) quota to satisfy"), QUOTA, "QUOTA_EXCEEDED"),
    Sentence(re.compile(r"Quota failure [\w.]+: service"), QUOTA, "QuotaFailure"),
    Sentence(re.compile(r"(?i)\bnot enough resources\b"), CAPACITY, "NotEnoughResources"),
    Sentence(re.compile(r"\bAADSTS\d{4,}"), PERMISSION, "AADSTS"),
)
#: codes that every service of a cloud uses for many things: read last, and only where they are stated as codes
GENERIC = (
    Sentence(re.compile(r"(?s)googleapi: Error 403:.*, forbidden\b"), PERMISSION, "forbidden"),
    Sentence(re.compile(r"code = PermissionDenied\b"), PERMISSION, "PermissionDenied"),
    Sentence(re.compile(r"code = Unauthenticated\b"), PERMISSION, "Unauthenticated"),
    Sentence(re.compile(r"(?is)code = ResourceExhausted\b.*\bquota"), QUOTA, "ResourceExhausted"),
    # not the limits on requests or on their size, which have the same code
    Sentence(
        re.compile(r"(?is)code = ResourceExhausted\b(?!.*(?:too many requests|rate limit|larger than max))"),
        CAPACITY,
        "ResourceExhausted",
    ),
)
#: said by a provider or Terraform itself before any cloud was asked: no other region would fare better
HERE = {
    "No valid credential sources found": "NoCredentials",
    "failed to refresh cached credentials": "NoCredentials",
    "could not find default credentials": "NoCredentials",
    "No credentials loaded": "NoCredentials",
    'oauth2: "invalid_grant"': "NoCredentials",
    "unable to build authorizer": "NoCredentials",
    "Please run 'az login'": "NoCredentials",
    "Failed to query available provider packages": "NoProvider",
    "Failed to install provider": "NoProvider",
    "Inconsistent dependency lock file": "NoProvider",
}
