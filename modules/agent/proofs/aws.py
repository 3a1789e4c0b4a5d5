"""What AWS says of this machine: its identity document as AWS signed it, or a signed question to STS who asks (SigV4, by the instance's role).

The question is never sent by this node: whoever verifies sends it, and STS answers with role and instance id.  The audience is among what is signed, so
that a proof made for one control plane is none for another.  Never run against the live AWS.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any

from . import metadata
from .metadata import NoAnswer

BODY = "Action=GetCallerIdentity&Version=2011-06-15"
AUDIENCE_HEADER = "x-skyplan-audience"
_ROLE = "meta-data/iam/security-credentials/"


def document() -> dict[str, Any]:
    """The `aws-iid` proof.  Raises NoAnswer."""
    session = metadata.aws_session()
    text = metadata.aws("dynamic/instance-identity/document", session)
    # /signature is of SHA-256 with RSA in base64 and wrapped; /pkcs7 and /rsa2048 are other wrappings of the same
    signature = "".join(metadata.aws("dynamic/instance-identity/signature", session).split())
    return {"scheme": "aws-iid", "value": {"document": text, "signature": signature}}


def caller(audience: str, region: str | None = None, now: float | None = None) -> dict[str, Any]:
    """The `aws-sts` proof, by a session and keys asked for anew each time.  Raises NoAnswer, also where the machine has no role."""
    session = metadata.aws_session()
    role = metadata.aws(_ROLE, session).split("\n")[0].strip()
    try:
        keys: dict[str, str] = json.loads(metadata.aws(_ROLE + role, session)) if role else {}
        where = region or metadata.aws("meta-data/placement/region", session).strip()
        value = signed(keys, where, audience, time.time() if now is None else now)
    except (ValueError, KeyError, TypeError):
        raise NoAnswer(_ROLE) from None
    return {"scheme": "aws-sts", "value": value}


def signed(keys: Mapping[str, str], region: str, audience: str, now: float) -> dict[str, Any]:
    """GetCallerIdentity, to be sent by somebody else within STS's 15 minutes."""
    host = f"sts.{region}.amazonaws.com" + (".cn" if region.startswith("cn-") else "")
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    headers = {
        "content-type": "application/x-www-form-urlencoded; charset=utf-8",
        "host": host,
        "x-amz-date": stamp,
        "x-amz-security-token": keys["Token"],
        AUDIENCE_HEADER: audience,
    }
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in sorted(headers))
    canonical = "\n".join(("POST", "/", "", lines, names, hashlib.sha256(BODY.encode()).hexdigest()))
    scope = f"{stamp[:8]}/{region}/sts/aws4_request"
    text = "\n".join(("AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{keys['SecretAccessKey']}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={keys['AccessKeyId']}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return {"method": "POST", "url": f"https://{host}/", "headers": headers, "body": BODY}
