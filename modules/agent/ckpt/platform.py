"""The node's own identity as a credential for stores, where no broker lends one: asked of the platform's metadata service, kept in memory, asked anew when it
nears its end or a store refuses it.  Never run on a live machine.

Nebius has none: its object storage takes access keys only, and nodes are given none outside of leases.
"""

from __future__ import annotations

import calendar
import json
import os
import threading
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ..errors import Away  # noqa: TID252 - packed, there is no `modules` above
from ..proofs import metadata  # noqa: TID252
from .errors import CredentialRefused, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from .store import Credential

MARGIN_SECONDS = 300.0
"""AWS has the next one ready so long before the end, Google and Azure answer the old one until then."""
_STORAGE = "https://storage.azure.com/"


def platform(
    scheme: str, *, steady: Callable[[], float] = time.monotonic, clock: Callable[[], float] = time.time
) -> Credential:
    """For a store's scheme: `s3`, `gs`, `az`.  Raises StoreError where the platform has no such credential."""
    ask = {"s3": _aws, "gs": _google, "az": _azure}.get(scheme)
    if ask is None:
        raise StoreError(f"no platform lends its nodes a credential for {scheme}://: it takes a broker")
    return _Kept(ask, steady, clock)


class _Kept:
    """One lease at a time."""

    def __init__(
        self,
        ask: Callable[[float], tuple[dict[str, Any], float]],
        steady: Callable[[], float],
        clock: Callable[[], float],
    ) -> None:
        self._ask, self._steady, self._clock = ask, steady, clock
        self._one = threading.Lock()
        self._lease: dict[str, Any] = {}
        self._until, self._count = 0.0, 0

    def __call__(self, access: str, refused: str) -> dict[str, Any]:
        """The same for reading and writing: what it may is for the role to say."""
        del access
        with self._one:
            if not self._lease or self._steady() >= self._until or refused == self._lease["id"]:
                try:
                    secret, seconds = self._ask(self._clock())
                except Away as away:
                    raise CredentialRefused(f"the platform gives no credential: {away}") from away
                except (ValueError, KeyError, TypeError) as error:
                    raise CredentialRefused(f"the platform's answer is no credential: {type(error).__name__}") from None
                self._count += 1
                self._until = self._steady() + max(0.0, seconds - MARGIN_SECONDS)
                self._lease = {"id": f"platform-{self._count}", **secret}
            return self._lease


def _aws(now: float) -> tuple[dict[str, Any], float]:
    at = "meta-data/iam/security-credentials/"
    role = metadata.aws(at).split("\n", 1)[0].strip()
    read = json.loads(metadata.aws(at + quote(role, safe="")))
    names = {"access_key_id": "AccessKeyId", "secret_access_key": "SecretAccessKey", "session_token": "Token"}
    ends = _epoch(read["Expiration"])
    return {"aws": {mine: str(read[theirs]) for mine, theirs in names.items()}}, ends - now


def _google(_: float) -> tuple[dict[str, Any], float]:
    read = json.loads(metadata.gcp("instance/service-accounts/default/token"))
    return {"gcp": {"access_token": str(read["access_token"])}}, float(read["expires_in"])


def _azure(_: float) -> tuple[dict[str, Any], float]:
    client = os.environ.get("AZURE_CLIENT_ID", "")
    which = f"&client_id={quote(client, safe='')}" if client else ""
    path = f"identity/oauth2/token?api-version=2018-02-01&resource={quote(_STORAGE, safe='')}{which}"
    read = json.loads(metadata.azure(path))
    return {"azure": {"access_token": str(read["access_token"])}}, float(read["expires_in"])


def _epoch(text: str) -> float:
    return float(calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ")))
