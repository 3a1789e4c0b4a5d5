"""`aws-sts`: a GetCallerIdentity that the node signed with its instance role and did not send: STS itself says whose signature that is.

Decides what may be sent on: this one action, to STS hosts that are listed, with the headers that a signature has, fresh, and signed for us: our audience is among
the signed headers, so a request made for another service is refused here and ours is of no use elsewhere.  Of an instance role, STS names the instance as
the session (EC2: roles for instances): only the EC2 service can begin such a session, where the role trusts it alone, as those of skyplan do.
Never run against live AWS: against ministack with real signatures.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any, Final, cast
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

from planner.model.record import stamp
from planner.model.runtime import NodeIdentity
from planner.server.identity.port import Asked, Fetch, refuse, unavailable

SCHEME: Final = "aws-sts"
BODY: Final = "Action=GetCallerIdentity&Version=2011-06-15"
AUDIENCE: Final = "x-skyplan-audience"
FRESH: Final = timedelta(minutes=5)
MAX_HEADER: Final = 4 * 1024
#: what a signer sends; `Content-Length` is ours to make
_HEADERS: Final = frozenset(
    {
        "accept",
        "authorization",
        "content-type",
        "host",
        "user-agent",
        "x-amz-content-sha256",
        "x-amz-date",
        "x-amz-security-token",
        AUDIENCE,
    }
)
_MUST_BE_SIGNED: Final = frozenset({"host", "x-amz-date", AUDIENCE})
#: whatever the list of hosts says, nothing else is ever asked
_STS: Final = re.compile(r"sts(\.[a-z0-9-]{1,32})?\.amazonaws\.com(\.cn)?", re.ASCII)
_AUTHORIZATION: Final = re.compile(
    r"AWS4-HMAC-SHA256 Credential=[A-Z0-9]{16,128}/([0-9]{8})/[a-z0-9-]{1,32}/sts/aws4_request, ?"
    r"SignedHeaders=([a-z0-9;-]{1,400}), ?Signature=[0-9a-f]{64}",
    re.ASCII,
)
_ARN: Final = re.compile(
    r"arn:(aws|aws-cn|aws-us-gov):sts::([0-9]{12}):assumed-role/([\w+=,.@-]{1,64})/(i-[0-9a-f]{8,17})", re.ASCII
)
_OK, _BROKEN, _BUSY = 200, 500, 429


class AwsSts:
    """See the module."""

    def __init__(self, hosts: Sequence[str], audience: str, fetch: Fetch) -> None:
        self._hosts = tuple(hosts)
        self._audience = audience
        self._fetch = fetch

    def verify(self, value: Any, now: datetime) -> NodeIdentity:
        """See `Verifier`."""
        url, headers = self._judged(value)
        signed_at = self._fresh(headers, now)
        answer = self._fetch(Asked(url=url, method="POST", headers=headers, body=BODY.encode()))
        if answer.status >= _BROKEN or answer.status == _BUSY:
            raise unavailable(f"STS answered {answer.status}")
        if answer.status != _OK:
            refuse(f"STS does not take the signature ({answer.status})")
        named = _ARN.fullmatch(_arn(answer.body))
        if named is None:
            refuse("the signature is of no instance role")
        partition, account, role, instance = named.groups()
        return NodeIdentity(
            scheme=SCHEME,
            cloud="aws",
            account=account,
            instance_id=instance,
            principal=f"arn:{partition}:iam::{account}:role/{role}",
            expires_at=stamp(signed_at + FRESH),
        )

    def _judged(self, value: Any) -> tuple[str, dict[str, str]]:
        if not isinstance(value, dict) or cast("dict[str, Any]", value).keys() != {"method", "url", "headers", "body"}:
            refuse("the proof must be an object with `method`, `url`, `headers` and `body`")
        given = cast("dict[str, Any]", value)
        if given["method"] != "POST" or given["body"] != BODY:
            refuse("the signed request must be a POST of GetCallerIdentity and nothing else")
        host = self._host(given["url"])
        headers = _headers(given["headers"])
        if headers.get("host", host) != host:
            refuse("the signed request's `Host` is not its URL's")
        if headers.get(AUDIENCE) != self._audience:
            refuse("the signed request is for another service")
        written = _AUTHORIZATION.fullmatch(headers.get("authorization", ""))
        if written is None:
            refuse("the signed request's `Authorization` is no signature of version 4 for STS")
        needed = _MUST_BE_SIGNED | ({"x-amz-security-token"} & headers.keys())
        if missing := needed - set(written[2].split(";")):
            refuse(f"these must be among the signed headers: {', '.join(sorted(missing))}")
        if not headers.get("x-amz-date", "").startswith(written[1]):
            refuse("the signature's day is not its `X-Amz-Date`")
        return f"https://{host}/", {**headers, "host": host}

    def _host(self, url: Any) -> str:
        if not isinstance(url, str) or len(url) > MAX_HEADER:
            refuse("the signed request's URL is none")
        host = url.removeprefix("https://").removesuffix("/")
        if url not in {f"https://{host}", f"https://{host}/"} or not _STS.fullmatch(host):
            refuse("the signed request must go to an STS host by https, and nowhere else")
        if not any(fnmatchcase(host, glob) for glob in self._hosts):
            refuse(f"{host} is not among the STS hosts that are asked here")
        return str(urlsplit(f"https://{host}/").hostname)

    def _fresh(self, headers: dict[str, str], now: datetime) -> datetime:
        try:
            at = datetime.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        except (KeyError, ValueError):
            refuse("the signed request has no `X-Amz-Date`")
        if abs(now - at) > FRESH:
            refuse(
                f"the request was signed {abs(now - at).total_seconds():.0f} s away from this clock, more than 300 s"
            )
        return at


def _headers(given: Any) -> dict[str, str]:
    """By lower-case name.  Raises Refused for what could smuggle something."""
    if not isinstance(given, dict):
        refuse("the signed request's headers must be an object")
    found: dict[str, str] = {}
    for name, value in cast("dict[Any, Any]", given).items():
        key = name.lower() if isinstance(name, str) else ""
        if key == "content-length":
            continue
        if key not in _HEADERS or key in found:
            refuse("the signed request has a header that a signature does not need, or one twice")
        if not isinstance(value, str) or len(value) > MAX_HEADER or not value.isascii() or not value.isprintable():
            refuse(f"the signed request's `{key}` is malformed")
        found[key] = value
    return found


def _arn(body: bytes) -> str:
    """What STS calls the signer.  An answer with a document type, which could make the parser work for hours, is none of STS's."""
    if b"<!" in body:
        refuse("STS's answer cannot be read")
    try:
        root = ET.fromstring(body)  # noqa: S314 - bounded, and without a document type
    except ET.ParseError:
        refuse("STS's answer cannot be read")
    found = [node.text or "" for node in root.iter() if node.tag.rpartition("}")[2] == "Arn"]
    if len(found) != 1:
        refuse("STS's answer names nobody")
    return found[0]
