"""S3, and Nebius by the same words: SigV4, conditional puts, multipart uploads.  Never run against a live cloud; held to moto and ministack with authorization on.

A bucket with a dot in its name, or an endpoint of one's own, is spoken to path-style: the wildcard certificate covers one label.
"""

from __future__ import annotations

import hashlib
import hmac
import time
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from email.utils import mktime_tz, parsedate_tz
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from .errors import StoreError
from .remote import (
    AGAIN,
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

_EMPTY = hashlib.sha256(b"").hexdigest()
_MOST_PARTS = 10_000
_BAD_REQUEST = 400
_REFUSED = frozenset(
    {
        "AccessDenied",
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidToken",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "TokenRefreshRequired",
    }
)
_PASSING = frozenset(
    {
        "ConditionalRequestConflict",
        "InternalError",
        "OperationAborted",
        "RequestTimeout",
        "ServiceUnavailable",
        "SlowDown",
    }
)
_ELSEWHERE = frozenset(
    {"AuthorizationHeaderMalformed", "PermanentRedirect", "TemporaryRedirect", "IllegalLocationConstraintException"}
)


class S3Store(Remote):
    """A prefix of a bucket.  `endpoint` "" is AWS; a lease of Nebius brings its own."""

    def __init__(
        self,
        uri: str,
        credential: Credential,
        *,
        region: str = "",
        endpoint: str = "",
        ca_file: str | None = None,
        **world: Any,
    ) -> None:
        super().__init__(uri, credential, **world)
        split = urlsplit(self.uri)
        self._bucket, self._prefix = split.netloc, split.path.lstrip("/")
        self._region, self._endpoint, self._ca_file = region, endpoint, ca_file
        self._skew_seconds = 0.0
        self._wires: dict[str, Wire] = {}

    def close(self) -> None:
        """All connections."""
        for wire in self._wires.values():
            wire.close()

    def entries(self, prefix: str) -> Iterator[Entry]:
        """By ListObjectsV2, to the last page."""
        token, pages = "", Pages(self.uri)
        while True:
            query = {
                "list-type": "2",
                "prefix": self._prefix + prefix,
                "encoding-type": "url",
                "continuation-token": token,
            }
            answer = self.call("read", Ask("GET", "", tuple((k, v) for k, v in query.items() if v)))
            page = _document(answer.body)
            if page.tag != "ListBucketResult":  # a proxy's page: an empty listing would look like a first start
                raise StoreError(f"{self.uri}: the store's answer is no listing: {page.tag[:40]}")
            for one in page.iter("Contents"):
                key = unquote(one.findtext("Key") or "")
                if key.startswith(self._prefix) and not key.endswith("/"):
                    yield Entry(key[len(self._prefix) :], number(one.findtext("Size"), key))
            token = page.findtext("NextContinuationToken") or ""
            if page.findtext("IsTruncated") != "true":
                return
            if not token:
                raise StoreError(f"{self.uri}: the listing says that there is more, and not where")
            pages.onward(token)

    def size(self, name: str) -> int:
        """Raises Absent."""
        return number(self.call("read", Ask("HEAD", self._key(name))).headers.get("content-length"), name)

    def put(self, name: str, content: Content) -> None:
        """Raises Exists."""
        if content.bytes <= self.part_bytes:
            self.call("write", Ask("PUT", self._key(name), (), _ONCE, content, 0, content.bytes))
            return
        begun = _document(self.call("write", Ask("POST", self._key(name), (("uploads", ""),))).body)
        upload = begun.findtext("UploadId") or ""
        try:
            cut = parts(content.bytes, self.part_bytes, _MOST_PARTS)

            def part(nth: int) -> str:
                return self._part(name, upload, nth, content, cut[nth])

            with ThreadPoolExecutor(PARTS_AT_ONCE) as pool:
                tags = list(pool.map(part, range(len(cut))))
            rows = "".join(
                f"<Part><PartNumber>{n}</PartNumber><ETag>{_escaped(tag)}</ETag></Part>"
                for n, tag in enumerate(tags, 1)
            )
            whole = Content.of(f"<CompleteMultipartUpload>{rows}</CompleteMultipartUpload>".encode())
            self.call("write", Ask("POST", self._key(name), (("uploadId", upload),), _ONCE, whole, 0, whole.bytes))
        except StoreError:
            self._abort(name, upload)
            raise

    def _part(self, name: str, upload: str, nth: int, content: Content, cut: tuple[int, int]) -> str:
        query = (("partNumber", str(nth + 1)), ("uploadId", upload))
        tag = self.call("write", Ask("PUT", self._key(name), query, (), content, *cut)).headers.get("etag")
        if not tag:
            raise StoreError(f"{self.uri}{name}: the store took a part and did not name it")
        return tag

    def _abort(self, name: str, upload: str) -> None:
        """So that no one pays for parts; where the node may not, the bucket's lifecycle rule does it."""
        try:
            self.call("write", Ask("DELETE", self._key(name), (("uploadId", upload),)))
        except StoreError:
            return

    def _get(self, name: str) -> Ask:
        return Ask("GET", self._key(name))

    def _key(self, name: str) -> str:
        return quote(self._prefix + name, safe="/-_.~")

    def _wire(self, lease: Mapping[str, Any]) -> Wire:
        given: Mapping[str, Any] = lease.get("nebius") or {}
        url = self._endpoint or str(given.get("endpoint") or "")
        if not url:
            host = f"s3.{self._region or 'us-east-1'}.amazonaws.com"
            url = f"https://{host}/{self._bucket}" if "." in self._bucket else f"https://{self._bucket}.{host}"
        else:
            url = f"{url.rstrip('/')}/{self._bucket}"
        with self._one:
            if url not in self._wires:
                self._wires[url] = Wire(url, ca_file=self._ca_file)
            return self._wires[url]

    def _sign(self, ask: Ask, lease: Mapping[str, Any], wire: Wire) -> Signed:
        keys = lease.get("aws") or lease.get("nebius")
        if not keys:
            raise StoreError(f"{self.uri}: the lease is none of S3")
        sha256 = ask.content.sha256_of(ask.start, ask.length) if ask.content else _EMPTY
        path = f"{wire.path}/{ask.target}"
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self._clock() + self._skew_seconds))
        headers = {**dict(ask.headers), "host": wire.host, "x-amz-date": now, "x-amz-content-sha256": sha256}
        if keys.get("session_token"):
            headers["x-amz-security-token"] = str(keys["session_token"])
        query = "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in sorted(ask.query))
        region = self._region or _region_of(wire.host) or "us-east-1"
        headers["authorization"] = authorization(
            ask.method,
            path,
            query,
            headers,
            sha256=sha256,
            region=region,
            keys=(str(keys["access_key_id"]), str(keys["secret_access_key"])),
        )
        return Signed(path + ("?" + query if query else ""), headers)

    def _judge(self, ask: Ask, answer: Answer) -> tuple[str, str]:
        code, words = _error(answer)
        if answer.status < 300 and not code:  # noqa: PLR2004
            return OK, ""
        said = f"HTTP {answer.status} {code} {words}".strip()
        region = answer.headers.get("x-amz-bucket-region") or ""
        if region and region != self._region and (code in _ELSEWHERE or answer.status in {301, 307, _BAD_REQUEST}):
            self._region = region
            return AGAIN, said
        moment = parsedate_tz(answer.headers.get("date", "")) if code == "RequestTimeTooSkewed" else None
        if moment:
            self._skew_seconds = mktime_tz(moment) - self._clock()
            return AGAIN, said
        return _meaning(ask, answer, code), said


_ONCE = (("if-none-match", "*"),)


def _meaning(ask: Ask, answer: Answer, code: str) -> str:
    if code in _REFUSED or (answer.status == _BAD_REQUEST and not answer.body):
        # HEAD has no body to say why: with an expired token S3 answers a bare 400 (litData#458)
        return CREDENTIAL
    if code in _PASSING or answer.status < _BAD_REQUEST:
        return PASSING  # an upload that failed while it said 200
    if code == "NoSuchUpload" and ask.headers == _ONCE:
        return EXISTS  # this call's own first attempt has completed it; the caller compares what is there
    return FAILED if code in {"NoSuchBucket", "NoSuchUpload"} else by_status(answer.status)


def authorization(
    method: str, path: str, query: str, headers: Mapping[str, str], *, sha256: str, region: str, keys: tuple[str, str]
) -> str:
    """The header of that name, by Signature Version 4 over all headers given.  `path` and `query` are encoded, the query in order."""
    names = sorted(name.lower() for name in headers)
    lower = {name.lower(): " ".join(value.split()) for name, value in headers.items()}
    canonical = "\n".join(
        (method, path, query, *(f"{name}:{lower[name]}" for name in names), "", ";".join(names), sha256)
    )
    now = lower["x-amz-date"]
    scope = f"{now[:8]}/{region}/s3/aws4_request"
    text = "\n".join(("AWS4-HMAC-SHA256", now, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    key = b"AWS4" + keys[1].encode()
    for step in (now[:8], region, "s3", "aws4_request"):
        key = hmac.new(key, step.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    return f"AWS4-HMAC-SHA256 Credential={keys[0]}/{scope}, SignedHeaders={';'.join(names)}, Signature={signature}"


def _quoted(text: str) -> str:
    return quote(text, safe="-_.~")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _region_of(host: str) -> str:
    """Of a Nebius endpoint, `storage.eu-north1.nebius.cloud`."""
    labels = host.split(".")
    return labels[1] if len(labels) > 3 and labels[0] == "storage" and labels[-2] == "nebius" else ""  # noqa: PLR2004


def _document(body: bytes) -> ET.Element:
    """Without namespaces: emulators and Nebius differ in them.  Raises StoreError."""
    try:
        if b"<!DOCTYPE" in body or b"<!ENTITY" in body:
            raise StoreError("a store's answer has a document type")
        root = ET.fromstring(body)  # noqa: S314
    except (ET.ParseError, ValueError, LookupError) as error:  # the latter two: of its encoding
        raise StoreError(f"a store's answer cannot be read: {error}") from error
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root


def _error(answer: Answer) -> tuple[str, str]:
    """Its code and words; an upload may fail with 200."""
    if b"<Error" not in answer.body[:400]:
        return "", ""
    try:
        found = _document(answer.body)
    except StoreError:
        return "", ""
    return found.findtext("Code") or "", (found.findtext("Message") or "")[:300]
