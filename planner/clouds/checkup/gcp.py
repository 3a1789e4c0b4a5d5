"""Google Cloud's checkup by google-auth and REST: the credentials are renewed, the feeds' four lists are asked for with one row each, a bucket for one name.

Nobody's token is shown to tokeninfo: whose credentials they are is what they say themselves.  Never run against live Google Cloud.
"""

# pyright: basic

from __future__ import annotations

from typing import Any

from planner.clouds import errors_map
from planner.clouds.checkup.listening import Listening
from planner.clouds.checkup.port import Caller, Now, Right, Seen, here, tried
from planner.clouds.feeds.gcp_ask import BILLING, COMPUTE, SCOPES, SKUS_PATH
from planner.clouds.gcp import credentials_of
from planner.clouds.port import Where
from planner.model.errors import CloudError
from planner.model.project import Backend

STORAGE = "https://storage.googleapis.com"
READING = (*SCOPES, "https://www.googleapis.com/auth/devstorage.read_only")


class GcpCheckup:
    """One project.  What is not `where` or `now` is for tests."""

    def __init__(
        self,
        where: Where,
        *,
        now: Now = here,
        credentials: Any = None,
        compute: str = COMPUTE,
        billing: str = BILLING,
        storage: str = STORAGE,
    ) -> None:
        try:
            from google.auth.transport.requests import AuthorizedSession  # noqa: PLC0415 - optional
        except ImportError as error:
            raise errors_map.missing("GCP", "google-auth and requests", "gcp") from error
        project = where.account
        if credentials is None:
            credentials, default = credentials_of(where, READING)
            project = project or default
        if not project:
            raise errors_map.no_account("GCP", "project", "set `project` of the target in skyplan.yaml")
        self._project, self._region = project, where.region
        self._credentials = credentials
        self._compute, self._billing, self._storage = compute, billing, storage
        self._listening = Listening("GCP", AuthorizedSession(credentials), now)

    def caller(self) -> Seen:
        """See `Checkup`.  A region is asked for, for the time it is; whether that is allowed is a right, not who asks."""
        try:
            _signed(self._renewed)
        except CloudError as error:
            return Seen(error=error, skew_seconds=self._listening.skew_seconds)
        right = tried("regions.get", lambda: self._region_of(self._region))
        skewed = self._listening.skew_seconds
        if right.error is not None and skewed is None:
            return Seen(error=right.error)
        return Seen(caller=Caller(who=_who(self._credentials), account=self._project), skew_seconds=skewed)

    def rights(self, region: str, instance_type: str) -> tuple[Right, ...]:
        """See `Checkup`."""
        del instance_type
        zones: list[str] = []

        def of_region() -> None:
            links = (self._region_of(region) or {}).get("zones")
            if isinstance(links, list):
                zones.extend(str(link).rpartition("/")[2] for link in links)

        found = [tried("regions.get", of_region)]
        if zones:
            zone = min(zones)
            for kind in ("machineTypes", "acceleratorTypes"):
                url = f"{self._compute}/compute/v1/projects/{self._project}/zones/{zone}/{kind}"
                found.append(tried(f"{kind}.list", lambda u=url, k=kind: self._get(f"{k}.list", u, maxResults="1")))
        skus = f"{self._billing}{SKUS_PATH}"
        found.append(tried("skus.list", lambda: self._get("skus.list", skus, currencyCode="USD", pageSize="1")))
        return tuple(found)

    def backend(self, backend: Backend, prefix: str) -> None:
        """See `Checkup`."""
        url = f"{self._storage}/storage/v1/b/{dict(backend.settings)['bucket']}/o"
        self._get("objects.list", url, prefix=prefix, maxResults="1")

    def close(self) -> None:
        """See `Checkup`."""
        self._listening.close()

    def _region_of(self, region: str) -> Any:
        return self._get("regions.get", f"{self._compute}/compute/v1/projects/{self._project}/regions/{region}")

    def _get(self, operation: str, url: str, **params: str) -> Any:
        return _signed(lambda: self._listening.get(operation, url, params), operation)

    def _renewed(self) -> None:
        from google.auth.transport.requests import Request  # noqa: PLC0415 - optional

        if not self._credentials.valid:
            self._credentials.refresh(Request())


def _signed(ask: Any, operation: str = "credentials") -> Any:
    from google.auth import exceptions  # noqa: PLC0415 - optional

    try:
        return ask()
    except exceptions.TransportError as error:
        raise errors_map.unreachable(operation, str(error), "GCP") from error
    except exceptions.GoogleAuthError as error:
        raise errors_map.no_credentials(str(error), "GCP") from error


def _who(credentials: Any) -> str:
    """A service account's address; a person's own credentials do not say whose they are."""
    for name in ("service_account_email", "signer_email", "account"):
        found = getattr(credentials, name, None)
        if isinstance(found, str) and found and found != "default":
            return found
    return "a person's own credentials"
