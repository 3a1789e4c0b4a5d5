"""Azure Blob Storage: shared access signatures or a managed identity's token, `If-None-Match: *`, block lists.  Never run against the live cloud; held to Azurite.

A directory's signature lists by a prefix within its directory and nothing else (others report `Signed Directory Depth Invalid` for a listing without one), so every listing
here names one, with its `/`, and goes through all below it without a delimiter.  Unproven, since Azurite has no hierarchical namespace: that a live account takes the `/` at
the prefix's end, that it lists below directories without a delimiter, and that a directory that is not there yet is an empty listing and no error.
"""

from __future__ import annotations

import base64
import time
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from .errors import StoreError
from .remote import (
    CREDENTIAL,
    EXISTS,
    FAILED,
    OK,
    PARTS_AT_ONCE,
    PASSING,
    Ask,
    Pages,
    Remote,
    Signed,
    by_status,
    number,
    parts,
)
from .store import Content, Entry
from .wire import Answer, Wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .store import Credential

_VERSION = "2021-12-02"
_MOST_BLOCKS = 50_000
_ONCE = (("If-None-Match", "*"),)
_TAKEN = frozenset({"BlobAlreadyExists", "BlobImmutableDueToPolicy", "ConditionNotMet", "UnauthorizedBlobOverwrite"})
_PASSING = frozenset({"ServerBusy", "InternalError", "OperationTimedOut", "ContainerBeingDeleted"})


class AzureStore(Remote):
    """A prefix of a container: `az://account/container/…`.  `endpoint` is the account's URL, where it is another than Azure's."""

    def __init__(
        self, uri: str, credential: Credential, *, endpoint: str = "", ca_file: str | None = None, **world: Any
    ) -> None:
        super().__init__(uri, credential, **world)
        split = urlsplit(self.uri)
        self._container, _, self._prefix = split.path.lstrip("/").partition("/")
        self._to = Wire(endpoint or f"https://{split.netloc}.blob.core.windows.net", ca_file=ca_file)

    def close(self) -> None:
        """All connections."""
        self._to.close()

    def entries(self, prefix: str) -> Iterator[Entry]:
        """By List Blobs, to the last page."""
        marker, pages = "", Pages(self.uri)
        while True:
            query = [("restype", "container"), ("comp", "list"), ("prefix", self._prefix + prefix), ("marker", marker)]
            page = _document(self.call("read", Ask("GET", self._container, tuple(q for q in query if q[1]))).body)
            if page.tag != "EnumerationResults":  # a proxy's page: an empty listing would look like a first start
                raise StoreError(f"{self.uri}: the store's answer is no listing: {page.tag[:40]}")
            for one in page.iter("Blob"):
                name = one.findtext("Name") or ""
                if one.findtext("Properties/ResourceType") == "directory":
                    continue  # a hierarchical account has them as rows of their own
                if name.startswith(self._prefix) and not name.endswith("/"):
                    yield Entry(name[len(self._prefix) :], number(one.findtext("Properties/Content-Length"), name))
            marker = page.findtext("NextMarker") or ""
            if not marker:
                return
            pages.onward(marker)

    def put(self, name: str, content: Content) -> None:
        """Raises Exists."""
        at = self._blob(name)
        if content.bytes <= self.part_bytes:
            self.call("write", Ask("PUT", at, (), (*_ONCE, ("x-ms-blob-type", "BlockBlob")), content, 0, content.bytes))
            return
        cut = parts(content.bytes, self.part_bytes, _MOST_BLOCKS)
        # of the content: two attempts at one name do not mix their blocks
        names = [base64.b64encode(f"{content.sha256[:32]}-{nth:06d}".encode()).decode() for nth in range(len(cut))]

        def block(nth: int) -> None:
            query = (("comp", "block"), ("blockid", names[nth]))
            self.call("write", Ask("PUT", at, query, (), content, *cut[nth]))

        with ThreadPoolExecutor(PARTS_AT_ONCE) as pool:
            list(pool.map(block, range(len(cut))))
        rows = "".join(f"<Latest>{one}</Latest>" for one in names)
        whole = Content.of(f'<?xml version="1.0" encoding="utf-8"?><BlockList>{rows}</BlockList>'.encode())
        self.call("write", Ask("PUT", at, (("comp", "blocklist"),), _ONCE, whole, 0, whole.bytes))

    def _blob(self, name: str) -> str:
        return f"{self._container}/{quote(self._prefix + name, safe='/-_.~')}"

    def _get(self, name: str) -> Ask:
        return Ask("GET", self._blob(name))

    def _wire(self, lease: Mapping[str, Any]) -> Wire:
        del lease
        return self._to

    def _sign(self, ask: Ask, lease: Mapping[str, Any], wire: Wire) -> Signed:
        keys = lease.get("azure")
        if not keys:
            raise StoreError(f"{self.uri}: the lease is none of Azure")
        now = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(self._clock()))
        headers = {**dict(ask.headers), "x-ms-version": _VERSION, "x-ms-date": now}
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in ask.query)
        if keys.get("sas"):
            query = "&".join(q for q in (query, str(keys["sas"]).lstrip("?")) if q)
        else:
            headers["Authorization"] = f"Bearer {keys['access_token']}"
        return Signed(f"{wire.path}/{ask.target}" + ("?" + query if query else ""), headers)

    def _judge(self, ask: Ask, answer: Answer) -> tuple[str, str]:
        if answer.status < 300:  # noqa: PLR2004
            return OK, ""
        code = answer.headers.get("x-ms-error-code", "")
        words = f"HTTP {answer.status} {code}"
        if code in _TAKEN:
            return EXISTS, words
        if code in _PASSING:
            return PASSING, words
        if code.startswith(
            ("Authentication", "Authorization", "InvalidAuthenticationInfo", "NoAuthenticationInformation")
        ):
            return CREDENTIAL, words
        if answer.status == 404 and (code != "BlobNotFound" or ("comp", "list") in ask.query):  # noqa: PLR2004
            return FAILED, words  # the container: a listing of nothing would look like a first start
        return by_status(answer.status), words


def _document(body: bytes) -> ET.Element:
    """Raises StoreError."""
    try:
        if b"<!DOCTYPE" in body or b"<!ENTITY" in body:
            raise StoreError("the store's answer has a document type")
        return ET.fromstring(body.decode("utf-8-sig"))  # noqa: S314
    except (ET.ParseError, ValueError, LookupError) as error:
        raise StoreError(f"the store's answer cannot be read: {error}") from error
