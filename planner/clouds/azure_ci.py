"""As a managed identity from a CI job, by the token that the CI gives it: what Terraform's provider does with the same settings, for skyplan's own calls.

`ARM_USE_OIDC` asks for it; where tokens come from, CI says: by `ACTIONS_ID_TOKEN_REQUEST_URL` and `_TOKEN` (GitHub) for as long as the job runs, or ready
in `ARM_OIDC_TOKEN` or a file.  A ready token lives for minutes; one that is asked for is new each time.  Keeps no token.  Never run against live Azure.
"""

# pyright: basic

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from planner.clouds import errors_map

AUDIENCE = "api://AzureADTokenExchange"
TIMEOUT_SECONDS = (10, 30)
RETRIES = 3


def ci_credential(client_id: str, environment: Mapping[str, str]) -> Any:
    """A credential of azure-identity, or None where this is no CI that has tokens.  Raises PermissionDenied where the tenant is not said."""
    if environment.get("ARM_USE_OIDC", "").lower() not in {"1", "true"}:
        return None
    token = _source(environment)
    if token is None:
        return None
    tenant = _first(environment, "ARM_TENANT_ID", "AZURE_TENANT_ID")
    if not tenant:
        raise errors_map.no_account("Azure", "tenant", "set ARM_TENANT_ID")
    from azure.identity import ClientAssertionCredential  # noqa: PLC0415 - optional

    return ClientAssertionCredential(tenant, client_id, token)


def _source(environment: Mapping[str, str]) -> Callable[[], str] | None:
    """Whence a token comes, in the order in which the provider looks."""
    if ready := environment.get("ARM_OIDC_TOKEN"):
        return lambda: ready
    if file := _first(environment, "ARM_OIDC_TOKEN_FILE_PATH", "AZURE_FEDERATED_TOKEN_FILE"):
        return lambda: _read(Path(file))
    url = _first(environment, "ARM_OIDC_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_URL")
    key = _first(environment, "ARM_OIDC_REQUEST_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN")
    return (lambda: _asked(url, key)) if url and key else None


def _first(environment: Mapping[str, str], *names: str) -> str:
    return next((environment[name] for name in names if environment.get(name)), "")


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise errors_map.no_credentials(f"CI's token: {error}", "Azure") from error


def _asked(url: str, key: str) -> str:
    """A new token of this job.  Raises CloudError; no error shows the key or the token."""
    import requests  # noqa: PLC0415 - optional

    from planner.clouds.rest import OK, retrying  # noqa: PLC0415 - beside it

    headers = {"Authorization": f"Bearer {key}", "Accept": "application/json"}
    try:
        with retrying(requests.Session(), RETRIES) as session:
            got = session.get(
                url, params={"audience": AUDIENCE}, headers=headers, timeout=TIMEOUT_SECONDS, allow_redirects=False
            )
        if got.status_code != OK:
            raise errors_map.no_credentials(f"CI gives no token: {got.status_code}", "Azure")
        return str(got.json()["value"])
    except (requests.RequestException, KeyError, TypeError) as error:
        raise errors_map.unreachable("CI's token", type(error).__name__, "Azure") from error
