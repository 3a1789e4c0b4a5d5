"""Which leases a node keeps, and what each is called: in the endpoint's paths, in file names, as an AWS profile.  The same stores give the same names."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable

from .lease import Wanted

LONGEST_NAME = 48
OWN_ALONE = frozenset({"az"})
"""Where what is lent for writing reads its own generation alone, so that the others, from which a run goes on, take a lease of their own: one SAS has one directory.
On S3 and Cloud Storage a writing lease reads the whole prefix by itself; Nebius' keys reach all that the job may, and one key serves all of a job's leases."""
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}", re.ASCII)


def wanted(stores: Iterable[tuple[str, str]]) -> tuple[Wanted, ...]:
    """Of (uri, access) of all that the broker is to lend, each once, with what reading besides takes.  Where two would have one name, both get a digest."""
    said = tuple(stores)
    pairs = tuple(dict.fromkeys([*said, *((uri, "read") for uri, _ in said if scheme(uri) in OWN_ALONE)]))
    names = Counter(name(uri, access) for uri, access in pairs)
    return tuple(
        Wanted(plain if names[plain] == 1 else f"{plain}-{_digest(uri)}", uri, access)
        for uri, access in pairs
        for plain in (name(uri, access),)
    )


def name(uri: str, access: str) -> str:
    """`s3://acme-data/train/` to read is `s3-acme-data-train-read`."""
    slug = re.sub(r"[^a-z0-9]+", "-", uri.lower()).strip("-")
    if len(slug) > LONGEST_NAME:
        slug = f"{slug[:LONGEST_NAME].rstrip('-')}-{_digest(uri)}"
    return f"{slug}-{access}"


def _digest(uri: str) -> str:
    return hashlib.sha256(uri.encode()).hexdigest()[:8]


def scheme(uri: str) -> str:
    """`s3`, `gs`, `az`, `nebius`."""
    return uri.partition("://")[0]
