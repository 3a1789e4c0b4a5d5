"""From an SDK's errors to ours.  Works on codes and words, so that it can be tested without an SDK."""

from __future__ import annotations

from planner.model.diagnostic import Diagnostic
from planner.model.errors import CloudError, PermissionDenied, Unavailable

DENIED = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "InvalidIdentityToken",
        "OptInRequired",
        "SignatureDoesNotMatch",
        "UnauthorizedOperation",
        "UnrecognizedClientException",
    }
)
OVERLOADED = frozenset(
    {
        "InternalError",
        "InternalFailure",
        "RequestLimitExceeded",
        "ServiceUnavailable",
        "Throttling",
        "ThrottlingException",
        "Unavailable",
    }
)


def aws_error(operation: str, code: str, message: str) -> CloudError:
    """An AWS API's answer as one of our errors, with the cloud's own words."""
    summary = f"AWS refused {operation}: {code}: {message}"
    if code in DENIED:
        return PermissionDenied([Diagnostic(code="SKY-APPLY-317", summary=summary)])
    kind = Unavailable if code in OVERLOADED else CloudError
    return kind([Diagnostic(code="SKY-APPLY-326", summary=summary)])


def no_credentials(words: str) -> PermissionDenied:
    """There are none, or they cannot be read."""
    return PermissionDenied([Diagnostic(code="SKY-APPLY-317", summary=f"no usable AWS credentials: {words}")])


def unreachable(operation: str, words: str) -> Unavailable:
    """No answer at all."""
    return Unavailable([Diagnostic(code="SKY-APPLY-326", summary=f"AWS did not answer {operation}: {words}")])
