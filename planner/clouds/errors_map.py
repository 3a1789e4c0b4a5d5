"""From an SDK's errors to ours.  Works on codes and words, so that it can be tested without an SDK."""

from __future__ import annotations

from planner.model.diagnostic import Diagnostic
from planner.model.errors import CloudError, MissingPart, PermissionDenied, Unavailable

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
#: Google says 403 for these as well
TOO_OFTEN = frozenset({"rateLimitExceeded", "userRateLimitExceeded", "RATE_LIMIT_EXCEEDED"})
HTTP_DENIED = frozenset({401, 403})
HTTP_TOO_OFTEN = frozenset({408, 429})
HTTP_SERVER = 500
GRPC_DENIED = frozenset({"PERMISSION_DENIED", "UNAUTHENTICATED"})
GRPC_OVERLOADED = frozenset({"ABORTED", "DEADLINE_EXCEEDED", "INTERNAL", "RESOURCE_EXHAUSTED", "UNAVAILABLE"})


def aws_error(operation: str, code: str, message: str) -> CloudError:
    """An AWS API's answer as one of our errors, with the cloud's own words."""
    return _refused("AWS", operation, code, message, denied=code in DENIED, overloaded=code in OVERLOADED)


def http_error(cloud: str, operation: str, status: int, code: str, message: str) -> CloudError:
    """The same for a REST API: Google's or Azure's."""
    overloaded = code in TOO_OFTEN or status in HTTP_TOO_OFTEN or status >= HTTP_SERVER
    denied = status in HTTP_DENIED and not overloaded
    return _refused(cloud, operation, code or f"HTTP {status}", message, denied=denied, overloaded=overloaded)


def grpc_error(cloud: str, operation: str, code: str, message: str) -> CloudError:
    """The same for a gRPC API: Nebius's."""
    return _refused(cloud, operation, code, message, denied=code in GRPC_DENIED, overloaded=code in GRPC_OVERLOADED)


def no_credentials(words: str, cloud: str = "AWS") -> PermissionDenied:
    """There are none, or they cannot be read."""
    return PermissionDenied([Diagnostic(code="SKY-APPLY-317", summary=f"no usable {cloud} credentials: {words}")])


def no_account(cloud: str, what: str, hint: str) -> PermissionDenied:
    """Neither the project file nor the environment says whose machines are meant."""
    summary = f"nothing says which {cloud} {what} is meant"
    return PermissionDenied([Diagnostic(code="SKY-APPLY-317", summary=summary, hint=hint)])


def unreachable(operation: str, words: str, cloud: str = "AWS") -> Unavailable:
    """No answer at all."""
    return Unavailable([Diagnostic(code="SKY-APPLY-326", summary=f"{cloud} did not answer {operation}: {words}")])


def unexpected(cloud: str, operation: str, words: str) -> CloudError:
    """An answer that says something else than it should."""
    return CloudError([Diagnostic(code="SKY-APPLY-326", summary=f"{cloud}, asked for {operation}: {words}")])


def missing(cloud: str, needs: str, extra: str) -> MissingPart:
    """The SDK is not installed."""
    summary = f"looking at {cloud} needs {needs}; install the extra `{extra}` from your checkout of skyplan: pip install '.[{extra}]'"
    return MissingPart([Diagnostic(code="SKY-APPLY-316", summary=summary)])


def _refused(cloud: str, operation: str, code: str, message: str, *, denied: bool, overloaded: bool) -> CloudError:
    summary = f"{cloud} refused {operation}: {code}: {message}"
    if denied:
        return PermissionDenied([Diagnostic(code="SKY-APPLY-317", summary=summary)])
    kind = Unavailable if overloaded else CloudError
    return kind([Diagnostic(code="SKY-APPLY-326", summary=summary)])
