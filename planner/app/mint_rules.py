"""Which lease may be minted: the whole rule, pure.  Everything here follows from an approved plan's grants, the seat, and the clock; nothing from the record.

What is asked must be a prefix that a grant names, whole.  Reading: that prefix; of checkpoints with it those of the generations before.  Writing: only where
the grant says so, and of that prefix only the generation's own `g<generation>/`; what the others wrote stays readable.  Nobody deletes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from planner.clouds.mint.port import Scope
from planner.model.grants import Grant, Permission
from planner.model.runtime import LEASE_FLOOR_SECONDS, Refusal, Refused, Seat
from planner.model.workload import Store

ACCESSES: Final = ("read", "write")
DEFAULT_SECONDS: Final = 3600
SLACK: Final = timedelta(minutes=15)
"""After a run's hard end: for the last checkpoint of a node whose clock is behind."""
#: shortest and longest lease per store.  AWS: role chaining ends at one hour (notes on minting, 2026-11), the floor is botocore's.  GCP: one hour without an
#: organisation policy; google-auth asks anew below 3 min 45 s.  Azure: the delegation key ends after 7 days, an hour is enough.  Nebius: S3 clients as on AWS
BOUNDS: Final = {
    Store.S3: (LEASE_FLOOR_SECONDS, 3600),
    Store.GCS: (900, 3600),
    Store.AZURE_BLOB: (900, 3600),
    Store.NEBIUS: (LEASE_FLOOR_SECONDS, 3600),
}
_DATA: Final = (Permission.READ_OBJECTS, Permission.WRITE_CHECKPOINTS)
_MAX_URI: Final = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a node asks: `uri` as a grant names it, `access` `read` or `write`."""

    seat: Seat
    uri: str
    access: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What may be minted for it.  `uri` is the prefix that the lease is about, as the node and the log see it; `granted` the prefix that the grant names."""

    store: Store
    scope: Scope
    uri: str
    access: str
    granted: str

    def is_of(self, uri: str) -> bool:
        """Whether it is about the prefix of that URI, however the URI ends."""
        return _same(uri, self.store, self.scope.bucket, self.granted)


class NotGranted(Refused):
    """The broker will not, however often it is asked (SKY-RUN-515)."""

    def __init__(self, reason: str) -> None:
        super().__init__(Refusal.MALFORMED, reason)


def allowed(grants: Sequence[Grant], wanted: Wanted) -> Allowed:
    """What may be minted.  Raises Refused where no grant says so."""
    if wanted.access not in ACCESSES or wanted.seat.generation < 1:
        raise NotGranted("`access` must be read or write")
    store, bucket, prefix = parts(wanted.uri)
    mine = [g for g in grants if g.permission in _DATA and _same(g.resource, store, bucket, prefix)]
    if not mine:
        raise NotGranted("no grant of the job's plan names this prefix")
    if wanted.access == "read":
        scope = Scope(store=store.value, bucket=bucket, reads=(prefix,))
        return Allowed(store=store, scope=scope, uri=_uri(store, bucket, prefix), access="read", granted=prefix)
    if all(g.permission is not Permission.WRITE_CHECKPOINTS for g in mine):
        raise NotGranted("the job's plan grants reading there, not writing")
    own = f"{prefix}g{wanted.seat.generation}/"
    scope = Scope(store=store.value, bucket=bucket, reads=(prefix,), writes=(own,))
    return Allowed(store=store, scope=scope, uri=_uri(store, bucket, own), access="write", granted=prefix)


def lifetime_seconds(store: Store, now: datetime, hard_end: datetime | None, asked: int = DEFAULT_SECONDS) -> int:
    """How long the lease shall live: as asked, within the cloud's bounds, to the run's hard end and a little; never below the floor.

    Raises Refused (ended) where the hard end and its slack are over.
    """
    floor, ceiling = BOUNDS[store]
    seconds = min(asked, ceiling)
    if hard_end is not None:
        left = int((hard_end + SLACK - now).total_seconds())
        if left <= 0:
            raise Refused(Refusal.ENDED, "the run is past its hard end")
        seconds = min(seconds, left)
    return max(seconds, floor)


def parts(uri: str) -> tuple[Store, str, str]:
    """Store, bucket (`account/container` on Azure), and prefix: "" or ending in `/`.  Raises Refused for what is no such URI, or one that hides something."""
    scheme, between, path = uri.partition("://")
    if not between or len(uri) > _MAX_URI or not uri.isprintable() or scheme not in set(Store):
        raise NotGranted("`uri` must be a prefix in an object store")
    store = Store(scheme)
    pieces = path.split("/")
    bucket_pieces = 2 if store is Store.AZURE_BLOB else 1
    bucket, rest = pieces[:bucket_pieces], pieces[bucket_pieces:]
    if rest and not rest[-1]:
        rest.pop()
    if len(bucket) != bucket_pieces or not all(bucket) or any(piece in {"", ".", ".."} for piece in rest):
        raise NotGranted("`uri` must be a prefix in an object store")
    return store, "/".join(bucket), "/".join(rest) + "/" if rest else ""


def _same(resource: str, store: Store, bucket: str, prefix: str) -> bool:
    """Whether a grant names exactly that prefix.  One that this module cannot read names nothing."""
    try:
        return parts(resource) == (store, bucket, prefix)
    except Refused:
        return False


def _uri(store: Store, bucket: str, prefix: str) -> str:
    return f"{store.value}://{bucket}/{prefix}"
