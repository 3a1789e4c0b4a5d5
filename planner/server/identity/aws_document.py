"""`aws-iid`: the instance identity document with its base64 RSA-SHA256 signature: account, region, instance id.

The document never changes while the machine lives and is for nobody in particular: whoever saw it once may show it.  So it says which machine this is, and the key
that the record binds at the first join makes it that machine's own; the broker, which nobody joins, does not take it.  AWS publishes one certificate a region.
Never run against live AWS.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256

from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError
from planner.model.runtime import NodeIdentity
from planner.server.identity.port import SKEW_SECONDS, refuse

SCHEME: Final = "aws-iid"
MAX_DOCUMENT_BYTES: Final = 8 * 1024
MAX_SIGNATURE_BYTES: Final = 2 * 1024
_ACCOUNT: Final = re.compile(r"[0-9]{12}", re.ASCII)
_REGION: Final = re.compile(r"[a-z]{2,4}(-[a-z]{2,12}){1,3}-[0-9]{1,2}", re.ASCII)
INSTANCE: Final = re.compile(r"i-([0-9a-f]{8}|[0-9a-f]{17})", re.ASCII)


class AwsDocument:
    """See the module.  `certificates`: (region or `*`, PEM).  Raises InputError (SKY-RUN-520) for what is no RSA certificate."""

    def __init__(self, certificates: Sequence[tuple[str, str]]) -> None:
        self._certificates = [(region, _certificate(region, pem)) for region, pem in certificates]

    def verify(self, value: Any, now: datetime) -> NodeIdentity:
        """See `Verifier`."""
        document, signature = _parts(value)
        about = _read(document)
        region = _text(about, "region", _REGION)
        self._signed(document.encode(), signature, region, now)
        try:
            began = datetime.strptime(str(about.get("pendingTime")), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        except ValueError:
            refuse("the document does not say when its machine began")
        if began > now + timedelta(seconds=SKEW_SECONDS):
            refuse("the document's machine begins in the future: a clock is wrong")
        return NodeIdentity(
            scheme=SCHEME,
            cloud="aws",
            account=_text(about, "accountId", _ACCOUNT),
            instance_id=_text(about, "instanceId", INSTANCE),
            where=region,
        )

    def _signed(self, document: bytes, signature: bytes, region: str, now: datetime) -> None:
        """By a certificate of that region; by one for `*` only where the region has none of its own."""
        mine = [c for r, c in self._certificates if r == region] or [c for r, c in self._certificates if r == "*"]
        if not mine:
            refuse(f"no certificate is set up for {region}")
        for certificate in mine:
            if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
                continue
            try:
                cast("RSAPublicKey", certificate.public_key()).verify(signature, document, PKCS1v15(), SHA256())
            except InvalidSignature:
                continue
            return
        refuse(f"the document is not signed by a certificate of {region} that holds now")


def _certificate(region: str, pem: str) -> x509.Certificate:
    try:
        found = x509.load_pem_x509_certificate(pem.encode())
        good = isinstance(found.public_key(), RSAPublicKey)
    except ValueError:
        found, good = None, False
    if found is None or not good:
        summary = f"the AWS certificate for `{region}` is no RSA certificate in PEM"
        raise InputError([Diagnostic(code="SKY-RUN-520", summary=summary)])
    return found


def _parts(value: Any) -> tuple[str, bytes]:
    if not isinstance(value, dict):
        refuse("the proof must be an object with `document` and `signature`")
    given = cast("dict[str, Any]", value)
    document, signature = given.get("document"), given.get("signature")
    if not isinstance(document, str) or not isinstance(signature, str) or given.keys() != {"document", "signature"}:
        refuse("the proof must be an object with `document` and `signature`")
    if len(document) > MAX_DOCUMENT_BYTES or len(signature) > MAX_SIGNATURE_BYTES:
        refuse("the proof is too long")
    try:
        # IMDS breaks the signature into lines
        return document, base64.b64decode("".join(signature.split()), validate=True)
    except (ValueError, binascii.Error):
        refuse("the proof's signature is no base64")


def _read(document: str) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) != len(pairs):
            raise ValueError("a key stands twice")
        return dict(pairs)

    try:
        document.encode()
        found = json.loads(document, object_pairs_hook=once)
    except (ValueError, RecursionError):
        refuse("the document is no JSON")
    if not isinstance(found, dict):
        refuse("the document is no JSON object")
    return cast("dict[str, Any]", found)


def _text(about: dict[str, Any], name: str, form: re.Pattern[str]) -> str:
    found = about.get(name)
    if not isinstance(found, str) or not form.fullmatch(found):
        refuse(f"the document's `{name}` is missing or malformed")
    return found
