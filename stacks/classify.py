"""What a failed launch means: no capacity, a quota, a missing permission, or something skyplan does not know.  Pure.

The words are AWS's error codes, and a few sentences of Terraform's own about this machine (no credentials, no provider), which stop everything like a
missing permission does.  Whatever is not listed is unknown and is shown whole; nothing else is guessed from prose.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from planner.model.diagnostic import Diagnostic, Severity

CAPACITY = "capacity"
QUOTA = "quota"
PERMISSION = "permission"
UNKNOWN = "unknown"

#: kind -> skyplan's code
CODES = {CAPACITY: "SKY-APPLY-308", QUOTA: "SKY-APPLY-309", PERMISSION: "SKY-APPLY-317", UNKNOWN: "SKY-APPLY-310"}

KINDS: dict[str, str] = {
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
#: said by the provider or Terraform itself before any cloud was asked: no other region would fare better
HERE = {
    "No valid credential sources found": "NoCredentials",
    "failed to refresh cached credentials": "NoCredentials",
    "Failed to query available provider packages": "NoProvider",
    "Failed to install provider": "NoProvider",
    "Inconsistent dependency lock file": "NoProvider",
}
_API_ERROR = re.compile(r"api error ([A-Za-z][\w.]*)")
_KNOWN = re.compile(r"\b(" + "|".join(sorted(KINDS, key=len, reverse=True)) + r")\b(?=[:,.\s(]|$)")
#: a permission stops everything; capacity and quota only this candidate
_ORDER = (PERMISSION, QUOTA, CAPACITY, UNKNOWN)


def classify(diagnostics: Sequence[Diagnostic]) -> tuple[str, str]:
    """(kind, the cloud's own code) of the errors among the diagnostics; the code is "" where none was given."""
    errors = [found.summary for found in diagnostics if found.severity is Severity.ERROR]
    judged = [classify_text(text) for text in errors] or [(UNKNOWN, "")]
    return min(judged, key=lambda pair: (_ORDER.index(pair[0]), pair[1] == "", pair[1]))


def classify_text(text: str) -> tuple[str, str]:
    """The same for one message.  A code said as `api error CODE` is believed before a code found in prose."""
    for words, code in HERE.items():
        if words in text:
            return PERMISSION, code
    said = _API_ERROR.findall(text)
    for code in said:
        if kind := KINDS.get(code.rstrip(".")):
            return kind, code
    if not said and (found := _KNOWN.search(text)) and found[1] != "Unsupported":
        return KINDS[found[1]], found[1]
    return UNKNOWN, said[0].rstrip(".") if said else ""
