"""Leases on Azure Blob: a user-delegation SAS of the broker's own identity, for one directory, https only.

Decides which SAS says the scope.  A SAS reaches one blob, one directory or one container.  A directory (`sr=d`, `sdd`) needs a storage account with hierarchical
namespace; a flat one knows whole containers and single blobs only, so a prefix cannot be cut there and is refused (SKY-RUN-515), and so is all writing, because
it is cut to the generation.  One SAS has one directory: a lease that writes reads back its own generation alone, the others by a lease that reads.
What a SAS may do is what its permissions and the broker's own role both allow.  Revoked with the delegation key, not alone.
azure-storage-blob is imported when a minter is made.  Never run against live Azure: the signatures against Azurite, which has no hierarchical namespace.
"""

# pyright: basic

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar
from urllib.parse import parse_qs

from planner.clouds import errors_map
from planner.clouds.mint.port import Minted, Order, missing, too_wide
from planner.model.errors import PermissionDenied

T = TypeVar("T")

ENDPOINT: Final = "https://{account}.blob.core.windows.net"
KEY_LIFE: Final = timedelta(days=1)
"""Of a delegation key, which is fetched once for many leases; Azure gives 7 days at most."""
BACKDATED: Final = timedelta(minutes=5)
"""Storage and broker may disagree about the time (Microsoft: SAS best practices)."""
READS: Final = "rl"
WRITES: Final = "rcwl"
"""Read, create, write, list: overwriting within the own generation, never `d`elete."""
_ACCOUNT: Final = re.compile(r"[a-z0-9]{3,24}", re.ASCII)


class AzureMinter:
    """See the module.  `known`: storage accounts that are said to be hierarchical; others are asked.

    `credential`, `endpoint`, `options` (of the SDK's client) and `hierarchical` are for tests.
    """

    def __init__(
        self,
        *,
        known: Collection[str] = (),
        credential: Any = None,
        endpoint: str = ENDPOINT,
        options: dict[str, Any] | None = None,
        hierarchical: Callable[[str], bool] | None = None,
    ) -> None:
        try:
            import azure.storage.blob  # noqa: F401, PLC0415 - optional
        except ImportError as error:
            raise missing("Azure", "azure-identity and azure-storage-blob", "azure") from error
        self._credential = credential or _credential()
        self._endpoint = endpoint
        self._options = options or {}
        self._hierarchical = hierarchical
        self._known = set(known)
        self._keys: dict[str, tuple[Any, datetime]] = {}
        self._lock = threading.Lock()

    def mint(self, order: Order) -> Minted:
        """See `Minter`."""
        account, _, container = order.scope.bucket.partition("/")
        if not _ACCOUNT.fullmatch(account) or not container:
            raise errors_map.unexpected("Azure", "a SAS", f"`{order.scope.bucket}` is no account and container")
        directory = (order.scope.writes or order.scope.reads)[0].rstrip("/")
        if directory and not self._is_hierarchical(account, container, order.now):
            raise too_wide(
                f"storage account {account} has no hierarchical namespace: a SAS there is for a whole container, wider than {directory}/"
            )
        ends = order.now + timedelta(seconds=order.lifetime_seconds)
        key = self._key(account, order.now, ends)
        permission = WRITES if order.scope.writes else READS
        sas = signed(account, container, directory, key, permission=permission, starts=order.now - BACKDATED, ends=ends)
        secret = {"account": account, "container": container, "sas": sas}
        return Minted(kind="azure", secret=secret, expires_at=ends.replace(microsecond=0))

    def _is_hierarchical(self, account: str, container: str, now: datetime) -> bool:
        """An account that is has to stay so; one that is not is asked again, as it can be upgraded."""
        if account not in self._known:
            said = self._hierarchical
            if not (said(account) if said else self._asked_hierarchical(account, container, now)):
                return False
            self._known.add(account)
        return True

    def _asked_hierarchical(self, account: str, container: str, now: datetime) -> bool:
        """By a SAS of the container: Azure documents this question for keys and signatures, not for tokens (Get Account Information, 2026-11)."""
        from azure.storage.blob import ContainerClient  # noqa: PLC0415 - optional

        ends = now + BACKDATED
        key = self._key(account, now, ends)
        sas = signed(account, container, "", key, permission="r", starts=now - BACKDATED, ends=ends)
        url = self._endpoint.format(account=account)
        try:
            with ContainerClient(url, container, credential=sas, **self._options) as client:
                return _asked("GetAccountInfo", client.get_account_information).get("is_hns_enabled") is True
        except PermissionDenied as error:
            words = f"storage account {account} does not tell whether it is hierarchical"
            raise too_wide(f"{words}; if it is, name it under `hierarchical_accounts` in broker.yaml") from error

    def _key(self, account: str, now: datetime, ends: datetime) -> Any:
        """A delegation key that outlives the lease; one serves many leases."""
        with self._lock:
            key, until = self._keys.get(account, (None, now))
            if key is None or until <= ends:
                until = now + KEY_LIFE
                with self._client(account) as client:
                    key = _asked("GetUserDelegationKey", lambda: client.get_user_delegation_key(now - BACKDATED, until))
                self._keys[account] = (key, until)
            return key

    def _client(self, account: str) -> Any:
        from azure.storage.blob import BlobServiceClient  # noqa: PLC0415 - optional

        url = self._endpoint.format(account=account)
        return BlobServiceClient(url, credential=self._credential, **self._options)


def signed(
    account: str, container: str, directory: str, key: Any, *, permission: str, starts: datetime, ends: datetime
) -> str:
    """The SAS.  "" is the whole container.  Raises MissingPart where the SDK is too old to make one for a directory."""
    from azure.storage.blob import generate_blob_sas, generate_container_sas  # noqa: PLC0415 - optional

    common: dict[str, Any] = {
        "user_delegation_key": key,
        "permission": permission,
        "start": starts,
        "expiry": ends,
        "protocol": "https",
    }
    if not directory:
        return generate_container_sas(account, container, **common)
    sas = generate_blob_sas(account, container, directory, is_directory=True, **common)
    said = parse_qs(sas)
    if said.get("sr") != ["d"] or said.get("sdd") != [str(directory.count("/") + 1)]:
        raise missing("Azure", "azure-storage-blob 12.31 or newer", "azure")
    return sas


def _credential() -> Any:
    try:
        from azure.identity import DefaultAzureCredential  # noqa: PLC0415 - optional
    except ImportError as error:
        raise missing("Azure", "azure-identity and azure-storage-blob", "azure") from error
    return _asked("credentials", DefaultAzureCredential)


def _asked(operation: str, ask: Callable[[], T]) -> T:
    """The answer.  Raises CloudError only."""
    from azure.core import exceptions  # noqa: PLC0415 - optional

    try:
        return ask()
    except exceptions.ClientAuthenticationError as error:
        raise errors_map.no_credentials(_first_line(error), "Azure") from error
    except exceptions.HttpResponseError as error:
        code = str(getattr(error, "error_code", "") or "")
        raise errors_map.http_error("Azure", operation, error.status_code or 0, code, _first_line(error)) from error
    except exceptions.AzureError as error:
        raise errors_map.unreachable(operation, _first_line(error), "Azure") from error


def _first_line(error: Exception) -> str:
    """What follows are request ids and, at times, the canonical text of a signature."""
    return (str(error).splitlines() or [""])[0][:300]
