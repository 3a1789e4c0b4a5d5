"""Azure's checkup by azure-identity and REST: a token, its subscription, the feeds' two lists, a container's first name.

Who asks is read from the token, which Azure signs and nobody here has to check: it was just handed out.  Never run against live Azure.
"""

# pyright: basic

from __future__ import annotations

import base64
import json
from typing import Any

from planner.clouds import errors_map
from planner.clouds.azure import BASE, COMPUTE, SCOPE, credential_of, session_of, subscription_of
from planner.clouds.checkup.listening import Listening
from planner.clouds.checkup.port import Caller, Now, Right, Seen, here, tried
from planner.clouds.feeds import azure_ask
from planner.clouds.port import Where
from planner.model.errors import CloudError
from planner.model.project import Backend

SUBSCRIPTION = {"api-version": "2022-12-01"}
SKUS = {"api-version": "2021-07-01"}
BLOBS = "https://{account}.blob.core.windows.net"
BLOB_SCOPE = "https://storage.azure.com/.default"
BLOB_VERSION = "2021-08-06"
RETRIES = 1


class AzureCheckup:
    """One subscription.  `credential`, `base` and `blobs` are for tests."""

    def __init__(
        self, where: Where, *, now: Now = here, credential: Any = None, base: str = BASE, blobs: str = BLOBS
    ) -> None:
        try:
            import azure.identity  # noqa: F401, PLC0415 - optional
            import requests  # noqa: PLC0415
        except ImportError as error:
            raise errors_map.missing("Azure", "azure-identity and requests", "azure") from error
        self._credential = credential or credential_of(where)
        self._subscription = subscription_of(where)
        self._base, self._blobs, self._now = base, blobs, now
        self._listening = Listening("Azure", session_of(self._credential, RETRIES), now)
        self._plain = requests.Session()

    def caller(self) -> Seen:
        """See `Checkup`."""
        try:
            who = self._who()
            found = self._get("subscriptions.get", f"/subscriptions/{self._subscription}", SUBSCRIPTION) or {}
        except CloudError as error:
            return Seen(error=error, skew_seconds=self._listening.skew_seconds)
        skewed = self._listening.skew_seconds
        state = str(found.get("state", "Enabled"))
        if state != "Enabled":
            words = f"the subscription is {state}: nothing can be made in it"
            return Seen(error=errors_map.unexpected("Azure", "subscriptions.get", words), skew_seconds=skewed)
        return Seen(caller=Caller(who=who, account=self._subscription), skew_seconds=skewed)

    def rights(self, region: str, instance_type: str) -> tuple[Right, ...]:
        """See `Checkup`."""
        del instance_type
        root = f"/subscriptions/{self._subscription}/providers/Microsoft.Compute"
        here_only = {**SKUS, "$filter": f"location eq '{region}'"}
        return (
            tried("usages.list", lambda: self._get("usages.list", f"{root}/locations/{region}/usages", COMPUTE)),
            tried("skus.list", lambda: self._get("skus.list", f"{root}/skus", here_only)),
        )

    def backend(self, backend: Backend, prefix: str) -> None:
        """See `Checkup`.  By the caller's own right to data; a key of the account, which Terraform may use, is not asked for."""
        settings = dict(backend.settings)
        token = azure_ask.token_for(self._credential, BLOB_SCOPE)
        url = f"{self._blobs.format(account=settings['storage_account_name'])}/{settings['container_name']}"
        asked = {"restype": "container", "comp": "list", "prefix": prefix, "maxresults": "1"}
        headers = {"Authorization": f"Bearer {token}", "x-ms-version": BLOB_VERSION}
        Listening("Azure", self._plain, self._now).get("container list", url, asked, headers)

    def close(self) -> None:
        """See `Checkup`."""
        self._listening.close()
        self._plain.close()

    def _get(self, operation: str, path: str, params: dict[str, str]) -> Any:
        return self._listening.get(operation, f"{self._base}{path}", params)

    def _who(self) -> str:
        """A person's name, an application's id, or an object's."""
        claims = _claims(azure_ask.token_for(self._credential, SCOPE))
        for name in ("upn", "unique_name", "appid", "oid"):
            found = claims.get(name)
            if isinstance(found, str) and found:
                return found
        return "an identity that its token does not name"


def _claims(token: str) -> dict[str, Any]:
    try:
        packed = token.split(".")[1]
        found = json.loads(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)))
    except (IndexError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
