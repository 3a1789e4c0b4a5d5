"""Leases on Cloud Storage: a token of the job's data service account, exchanged for one behind a Credential Access Boundary that is the lease's scope.

Decides the boundary's words only.  It is the one form in which Google cuts listing to a prefix (`objectListPrefix`), and takes Cloud Storage with uniform
bucket-level access only.  The downscoped token ends with its source: an hour at most without an organisation's policy.
google-auth is imported when a minter is made.  Never run against live Google Cloud: against local servers, by the real SDK.
"""

# pyright: basic

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from datetime import UTC
from typing import Any, Final, TypeVar

from planner.clouds import errors_map
from planner.clouds.mint.port import Minted, Order, missing, too_wide

T = TypeVar("T")

LONGEST_SECONDS: Final = 3600
#: what the source token may do at all, before it is cut
SCOPES: Final = {
    False: "https://www.googleapis.com/auth/devstorage.read_only",
    True: "https://www.googleapis.com/auth/devstorage.read_write",
}
WIDE_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
READER: Final = "inRole:roles/storage.objectViewer"
WRITER: Final = "inRole:roles/storage.objectCreator"
"""Creates, never deletes; so it does not overwrite either: Google asks for the right to delete then."""
#: google-auth's own limit on a boundary
MAX_RULES: Final = 10
_EMAIL: Final = re.compile(r"[a-z0-9-]{1,63}@[a-z0-9.-]{1,253}", re.ASCII)


class GcpMinter:
    """See the module.  `source`, `iam_url` and `sts_url` are for tests; without a source the broker's own credentials are used."""

    def __init__(self, *, source: Any = None, iam_url: str | None = None, sts_url: str | None = None) -> None:
        try:
            from google.auth.transport.requests import Request  # noqa: PLC0415 - optional
        except ImportError as error:
            raise missing("GCP", "google-auth and requests", "gcp") from error
        self._request = Request()
        self._source = source or _asked("credentials", _default)
        self._iam_url = iam_url
        self._sts_url = sts_url

    def mint(self, order: Order) -> Minted:
        """See `Minter`."""
        if not _EMAIL.fullmatch(order.identity):
            raise errors_map.unexpected("GCP", "generateAccessToken", f"`{order.identity}` is no service account")
        rules = boundary(order)
        if len(rules) > MAX_RULES:
            raise too_wide(f"a credential access boundary takes {MAX_RULES} rules, this scope needs {len(rules)}")
        given = _asked("a downscoped token", lambda: self._cut(order, rules))
        return Minted(kind="gcp", secret={"access_token": given.token}, expires_at=given.expiry.replace(tzinfo=UTC))

    def _cut(self, order: Order, rules: list[dict[str, Any]]) -> Any:
        from google.auth import downscoped, impersonated_credentials  # noqa: PLC0415 - optional

        whole = impersonated_credentials.Credentials(
            source_credentials=self._source,
            target_principal=order.identity,
            target_scopes=[SCOPES[bool(order.scope.writes)]],
            lifetime=min(order.lifetime_seconds, LONGEST_SECONDS),
            iam_endpoint_override=self._iam_url,
        )
        made = [
            downscoped.AccessBoundaryRule(
                available_resource=rule["availableResource"],
                available_permissions=rule["availablePermissions"],
                availability_condition=downscoped.AvailabilityCondition(rule["availabilityCondition"]["expression"])
                if "availabilityCondition" in rule
                else None,
            )
            for rule in rules
        ]
        cut = downscoped.Credentials(whole, downscoped.CredentialAccessBoundary(made))
        if self._sts_url:
            from google.oauth2 import sts  # noqa: PLC0415 - for tests

            cut._sts_client = sts.Client(self._sts_url)  # noqa: SLF001 - there is no other way in
        cut.refresh(self._request)
        return cut


def boundary(order: Order) -> list[dict[str, Any]]:
    """The scope as access boundary rules, one a prefix."""
    scope = order.scope
    return [
        *(_rule(scope.bucket, prefix, READER) for prefix in scope.reads),
        *(_rule(scope.bucket, prefix, WRITER) for prefix in scope.writes),
    ]


def _rule(bucket: str, prefix: str, role: str) -> dict[str, Any]:
    """Without a prefix: the whole bucket.  Creating knows no list prefix."""
    rule: dict[str, Any] = {
        "availableResource": f"//storage.googleapis.com/projects/_/buckets/{bucket}",
        "availablePermissions": [role],
    }
    if prefix:
        expression = f"resource.name.startsWith('projects/_/buckets/{_quoted(bucket)}/objects/{_quoted(prefix)}')"
        if role == READER:
            listed = "api.getAttribute('storage.googleapis.com/objectListPrefix', '')"
            expression += f" || {listed}.startsWith('{_quoted(prefix)}')"
        rule["availabilityCondition"] = {"expression": expression}
    return rule


def _quoted(text: str) -> str:
    """Inside a CEL string."""
    return text.replace("\\", "\\\\").replace("'", "\\'")


def _default() -> Any:
    import google.auth  # noqa: PLC0415 - optional

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about quota projects: a person's own credentials are fine here
        return google.auth.default(scopes=[WIDE_SCOPE])[0]


def _asked(operation: str, ask: Callable[[], T]) -> T:
    """The answer.  Raises CloudError only."""
    import requests  # noqa: PLC0415 - optional
    from google.auth import exceptions  # noqa: PLC0415 - optional

    try:
        return ask()
    except exceptions.DefaultCredentialsError as error:
        raise errors_map.no_credentials(str(error), "GCP") from error
    except (exceptions.TransportError, requests.RequestException) as error:
        raise errors_map.unreachable(operation, str(error), "GCP") from error
    except (exceptions.RefreshError, exceptions.OAuthError) as error:
        # the answer's own text comes as the last argument, and says nothing of a token where there was none
        if getattr(error, "retryable", False):
            raise errors_map.unreachable(operation, str(error.args[0]), "GCP") from error
        raise errors_map.http_error("GCP", operation, 403, "", str(error.args[0])) from error
    except exceptions.GoogleAuthError as error:
        raise errors_map.unexpected("GCP", operation, str(error)) from error
