"""Which store a URI names.  Opens it; asks it nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .azure import AzureStore
from .errors import StoreError
from .gcs import GcsStore
from .local import LocalStore
from .s3 import S3Store

if TYPE_CHECKING:
    from .store import Credential, Store


def open_store(
    uri: str,
    credential: Credential,
    *,
    region: str = "",
    endpoint: str = "",
    ca_file: str | None = None,
    **world: Any,
) -> Store:
    """The store of `s3://`, `nebius://`, `gs://`, `az://account/container/…` or `file:///…`.  Raises StoreError.

    `region` and `endpoint` "" are the cloud's own; a lease of Nebius names its endpoint itself.
    """
    scheme = uri.partition("://")[0]
    if scheme == "file":
        return LocalStore(uri)
    if scheme in {"s3", "nebius"}:
        return S3Store(uri, credential, region=region, endpoint=endpoint, ca_file=ca_file, **world)
    if scheme == "gs":
        return GcsStore(uri, credential, endpoint=endpoint, ca_file=ca_file, **world)
    if scheme == "az":
        return AzureStore(uri, credential, endpoint=endpoint, ca_file=ca_file, **world)
    raise StoreError(f"{uri}: no store of this kind: s3, gs, az, nebius, file")
