"""Data locations: `s3://`, `gs://`, `az://account/container`, `nebius://` -> ObjectPrefix.

Decides what a location is and which region it may name.  A location never carries a credential: one that does is not even shown.
Whether the project allows it is `limits`' business.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from planner.model.workload import ObjectPrefix, Store
from planner.spec.near import did_you_mean
from planner.spec.secret import looks_secret, shown

if TYPE_CHECKING:
    from planner.model.diagnostic import Location
    from planner.model.words import Words
    from planner.spec.fields import Fields, Report

_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]", re.ASCII)
_ACCOUNT: Final = re.compile(r"[a-z0-9]{3,24}", re.ASCII)
_CONTAINER: Final = re.compile(r"[a-z0-9](?:-?[a-z0-9]){2,62}", re.ASCII)
_EXAMPLE: Final = {
    Store.S3: "s3://acme-corpus/llama/",
    Store.GCS: "gs://acme-corpus/llama/",
    Store.AZURE_BLOB: "az://acmeml/corpus/llama/",
    Store.NEBIUS: "nebius://acme-corpus/llama/",
}
#: what other tools write -> our scheme
_OTHERS: Final = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "azure": "az", "abfs": "az", "abfss": "az", "wasbs": "az"}
_MULTI_REGIONS: Final = frozenset({"us", "eu", "asia", "nam4", "eur4", "eur5", "eur7", "eur8", "asia1"})


def split(text: str) -> tuple[Store, str, str] | str:
    """(store, bucket, prefix) of a location, or a sentence saying what is wrong with it."""
    scheme, slashes, rest = text.partition("://")
    if not slashes or scheme not in {s.value for s in Store}:
        other = _OTHERS.get(scheme.lower())
        return f"write it as {_EXAMPLE[Store(other)]}" if slashes and other else ""
    store = Store(scheme)
    bucket, _, prefix = rest.partition("/")
    good = _BUCKET.fullmatch(bucket) is not None
    if store is Store.AZURE_BLOB:
        container, _, prefix = prefix.partition("/")
        good = _ACCOUNT.fullmatch(bucket) is not None and _CONTAINER.fullmatch(container) is not None
        bucket = f"{bucket}/{container}"
    if not good or not _is_prefix(prefix):
        return f"write it as {_EXAMPLE[store]}"
    return store, bucket, prefix


def _is_prefix(prefix: str) -> bool:
    """No empty part, no `.` or `..`, no wildcard, nothing that policies or shells read otherwise."""
    parts = prefix.removesuffix("/").split("/") if prefix else []
    return all(
        part not in {"", ".", ".."} and re.fullmatch(r"[A-Za-z0-9!_.=@+,' ()-]+", part, re.ASCII) for part in parts
    )


def location(report: Report, path: str, at: Location, text: str) -> ObjectPrefix | None:
    """The location, without a region; SKY-SPEC-108 where it is none."""
    found = split(text)
    if isinstance(found, tuple):
        store, bucket, prefix = found
        return ObjectPrefix(store=store, bucket=bucket, prefix=prefix)
    if "@" in text or "?" in text or looks_secret(text):
        summary = f"`{path}` is malformed (not shown: it may hold a credential)"
        report.error(at, "SKY-SPEC-108", summary, "locations carry no credentials; nodes get roles")
    else:
        report.error(at, "SKY-SPEC-108", f"`{path}`: {shown(text)} is no data location", found)
    return None


def placed(fields: Fields, words: Words) -> ObjectPrefix | None:
    """`uri` and `region` of a mapping.  Without a region egress cannot be priced: a warning."""
    node = fields.get("uri", required="say where it lies, such as s3://acme-corpus/llama/")
    text = fields.text("uri") if node else None
    at = location(fields.report, fields.name("uri"), node.at, text) if node and text else None
    region = fields.text("region")
    if at is None or node is None:
        return None
    fields.report.places.setdefault(f"uri={at.uri}", node.at)
    if "region" not in fields.node.entries:
        summary = f"`{fields.path}` says no region: egress and read speed are unknown"
        hint = f"add the bucket's region, such as `region: {(*words.regions.get(at.store.cloud, ()), 'us-east-1')[0]}`"
        fields.report.warning(node.at, "SKY-SPEC-114", summary, hint)
    elif region and not _known_region(fields, region, at.store, words):
        region = None
    return ObjectPrefix(store=at.store, bucket=at.bucket, prefix=at.prefix, region=region)


def _known_region(fields: Fields, region: str, store: Store, words: Words) -> bool:
    known = words.regions.get(store.cloud, ())
    if region in known:
        return True
    hint = did_you_mean(region, known)
    owners = sorted(cloud for cloud, names in words.regions.items() if region in names)
    if owners:
        hint = f"{region} is a region of {', '.join(owners)}; {store.value}:// lies in {store.cloud}"
    elif region.lower() in _MULTI_REGIONS:
        hint = "name one member region of the multi-region bucket, such as us-central1"
    at = fields.report.places[fields.name("region")]
    summary = f"`{fields.name('region')}`: {shown(region)} is no region of {store.cloud} that is known"
    fields.report.error(at, "SKY-SPEC-105", summary, hint or f"regions are {', '.join(known[:6])} …")
    return False
