"""What the broker asks of a cloud: credentials for a part of one identity's rights, for a short time.

A minter gives exactly the order or raises; where its cloud cannot cut so small it raises `TooWide`.  It judges no node and no plan: `planner.app.mint` has.
Adapters map every SDK error to `planner.model.errors`; none escapes, and none holds a secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from planner.model.diagnostic import Diagnostic
from planner.model.errors import CloudError, MissingPart


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a lease reaches in one bucket: every key that begins with one of these, which end in `/`; "" is the whole bucket.

    bucket   `account/container` on Azure
    reads    may be read and listed
    writes   may be created and overwritten; never deleted
    """

    store: str
    bucket: str
    reads: tuple[str, ...]
    writes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One lease to be minted.

    identity  whose rights are cut: role ARN, service account's email (GCP), its name (Nebius), storage account
    name      what the cloud's own logs show of it: `train-g3-r0-` and the lease's id
    labels    (key, value) that the cloud's logs carry where it can: AWS session tags
    region    of the store, where its endpoint depends on it
    account   that holds the identity: Nebius, the project under which its name is known
    kms_key   AWS: ARN of the key that the bucket's objects are encrypted with; "" = S3's own
    """

    scope: Scope
    identity: str
    name: str
    lifetime_seconds: int
    now: datetime
    labels: tuple[tuple[str, str], ...] = ()
    region: str = ""
    account: str = ""
    kms_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Minted:
    """A credential.  `secret`, in the words of docs/node-protocol.md under `kind`, is for the node alone: never logged, never stored; not in the repr."""

    kind: str
    secret: Mapping[str, str] = field(repr=False)
    expires_at: datetime


class Minter(Protocol):
    """Mints for one store."""

    def mint(self, order: Order) -> Minted:
        """Raises CloudError, MissingPart, TooWide."""
        ...


class Minters(Protocol):
    """Minters by store: `s3`, `gs`, `az`, `nebius`."""

    def minter(self, store: str) -> Minter:
        """Raises MissingPart, CloudError, InputError."""
        ...


class TooWide(CloudError):
    """The cloud, or the account there, cannot cut a credential as small as was ordered; a wider one is not minted."""


def too_wide(why: str) -> TooWide:
    """With the reason for people."""
    return TooWide([Diagnostic(code="SKY-RUN-515", summary=why)])


def missing(cloud: str, needs: str, extra: str) -> MissingPart:
    """The SDK is not installed where the broker runs."""
    summary = f"minting on {cloud} needs {needs}; install the extra `{extra}` from your checkout of skyplan: pip install '.[{extra}]'"
    return MissingPart([Diagnostic(code="SKY-APPLY-316", summary=summary)])
