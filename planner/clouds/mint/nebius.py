"""Leases on Nebius Object Storage: access keys of the job's service account that expire by themselves.

Nebius cuts nothing when it gives a key: a key reaches what its service account reaches, which is the job's own prefixes, read and write, by the rules of the
buckets.  So one key at a time serves all nodes of a job: a new one is made when the newest has lived half its life, the one before lives on to its own end, and
then both it and what a dead broker left are deleted.  A key lives for twice a lease, so that whoever gets one has a whole lease of it left.
The SDK is imported when a minter is made.  Never run against live Nebius: held to the SDK's own descriptors (0.6.29) by a gRPC server of our own.
"""

# pyright: basic

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from planner.clouds import errors_map
from planner.clouds.asked import of_nebius
from planner.clouds.mint.port import Minted, Order, missing
from planner.model.errors import CloudError

T = TypeVar("T")

TOKEN_VARIABLE: Final = "NEBIUS_IAM_TOKEN"  # noqa: S105 - its name
#: docs.nebius.com/object-storage, read 2026-11
ENDPOINT: Final = "https://storage.{region}.nebius.cloud"
OURS: Final = "skyplan-lease-"
"""What names of keys that the broker makes begin with: it deletes no others."""
PAGE: Final = 100


@dataclass(slots=True)
class _Key:
    made_at: datetime
    ends: datetime
    access_key_id: str
    secret: str = field(repr=False)


class NebiusMinter:
    """See the module.  `open_sdk` and `limits` are for tests; each look opens the SDK and closes it, for it holds a thread while it is open."""

    def __init__(self, *, open_sdk: Callable[[], Any] | None = None, limits: dict[str, Any] | None = None) -> None:
        self._open = open_sdk or _sdk()
        self._limits = limits or {"retries": 3, "timeout": 30.0}
        self._keys: dict[tuple[str, str], _Key] = {}
        self._lock = threading.Lock()

    def mint(self, order: Order) -> Minted:
        """See `Minter`."""
        if not (order.account and order.region):
            hint = "the store's `region` in the job file, and the target's project"
            raise errors_map.no_account("Nebius", "project or region", hint)
        with self._lock:
            place = (order.account, order.identity)
            key = self._keys.get(place)
            if key is None or order.now - key.made_at >= timedelta(seconds=order.lifetime_seconds):
                key = self._keys[place] = self._made(order)
        secret = {
            "access_key_id": key.access_key_id,
            "secret_access_key": key.secret,
            "endpoint": ENDPOINT.format(region=order.region),
        }
        return Minted(kind="nebius", secret=secret, expires_at=key.ends)

    def _made(self, order: Order) -> _Key:
        sdk = of_nebius("credentials", self._open)
        try:
            account = of_nebius("service accounts", lambda: self._account(sdk, order))
            self._tidy(sdk, account, order.now)
            return of_nebius("an access key", lambda: self._create(sdk, account, order))
        finally:
            sdk.sync_close()

    def _account(self, sdk: Any, order: Order) -> str:
        """The id of the account of that name."""
        from nebius.api.nebius.iam.v1 import (  # noqa: PLC0415 - slow
            GetServiceAccountByNameRequest,
            ServiceAccountServiceClient,
        )

        asked = GetServiceAccountByNameRequest(parent_id=order.account, name=order.identity)
        return ServiceAccountServiceClient(sdk).get_by_name(asked, **self._limits).wait().metadata.id

    def _create(self, sdk: Any, account: str, order: Order) -> _Key:
        from nebius.api.nebius.common.v1 import ResourceMetadata  # noqa: PLC0415 - slow
        from nebius.api.nebius.iam.v2 import (  # noqa: PLC0415
            AccessKeyServiceClient,
            AccessKeySpec,
            CreateAccessKeyRequest,
            GetAccessKeySecretRequest,
            SecretDeliveryMode,
        )

        ends = (order.now + timedelta(seconds=2 * order.lifetime_seconds)).replace(microsecond=0)
        client = AccessKeyServiceClient(sdk)
        spec = AccessKeySpec(
            account=_service_account(account),
            expires_at=ends,
            description="A lease of skyplan's broker; ends by itself",
            # asked for once and then nowhere; INLINE would leave it in every later reading of the key
            secret_delivery_mode=SecretDeliveryMode.EXPLICIT,
        )
        name = f"skyplan-{order.name}"[:63]
        asked = CreateAccessKeyRequest(metadata=ResourceMetadata(parent_id=order.account, name=name), spec=spec)
        operation = client.create(asked, **self._limits).wait()
        operation.sync_wait(timeout=30.0)
        given = client.get_secret(GetAccessKeySecretRequest(id=operation.resource_id), **self._limits).wait()
        return _Key(made_at=order.now, ends=ends, access_key_id=given.aws_access_key_id, secret=given.secret)

    def _tidy(self, sdk: Any, account: str, now: datetime) -> None:
        """Delete our keys whose end is over.  A failure stops no lease: they open nothing any more."""
        from nebius.api.nebius.iam.v2 import (  # noqa: PLC0415 - slow
            AccessKeyServiceClient,
            DeleteAccessKeyRequest,
            ListAccessKeysByAccountRequest,
        )

        client = AccessKeyServiceClient(sdk)

        def over() -> list[str]:
            found, token = [], ""
            while True:
                asked = ListAccessKeysByAccountRequest(
                    account=_service_account(account), page_size=PAGE, page_token=token
                )
                page = client.list_by_account(asked, **self._limits).wait()
                found += [
                    key.metadata.id
                    for key in page.items
                    if key.metadata.name.startswith(OURS)
                    and key.spec.expires_at is not None
                    and key.spec.expires_at <= now
                ]
                if not (token := page.next_page_token):
                    return found

        try:
            for one in of_nebius("access keys", over):
                of_nebius(
                    "an old access key",
                    lambda one=one: client.delete(DeleteAccessKeyRequest(id=one), **self._limits).wait(),
                )
        except CloudError:
            return


def _service_account(account: str) -> Any:
    from nebius.api.nebius.iam.v1 import Account  # noqa: PLC0415 - slow

    return Account(service_account=Account.ServiceAccount(id=account))


def _sdk() -> Callable[[], Any]:
    """Opens the SDK: with the token in the environment, else as the CLI's profile, which may be a service account."""
    try:
        from nebius.aio.cli_config import Config  # noqa: PLC0415 - optional
        from nebius.sdk import SDK  # noqa: PLC0415
    except ImportError as error:
        raise missing("Nebius", "its SDK", "nebius") from error

    def opened() -> Any:
        agent: dict[str, Any] = {"user_agent_prefix": "skyplan"}
        return SDK(**agent) if os.environ.get(TOKEN_VARIABLE) else SDK(config_reader=Config(), **agent)

    return opened
