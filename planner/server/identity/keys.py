"""The public keys of one token issuer (a JWKS document), kept for an hour.

Decides when they are fetched: a key id that is not known asks anew at most once a minute, so that strangers cannot make us hammer the issuer; where the issuer
does not answer, keys of the last day still hold.  RSA of 2,048 bits and more only.
"""

from __future__ import annotations

import base64
import binascii
import json
import threading
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, cast

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, RSAPublicNumbers

from planner.model.errors import Unavailable
from planner.server.identity.port import Asked, Fetch, refuse, unavailable

KEPT: Final = timedelta(hours=1)
STALE: Final = timedelta(days=1)
ASKED_AGAIN: Final = timedelta(seconds=60)
MAX_KEYS: Final = 100
MIN_BITS: Final = 2048
MAX_BITS: Final = 8192
_OK: Final = 200


@dataclass(slots=True, kw_only=True)
class IssuerKeys:
    """Keys at one URL.  Safe to use from several threads; one asks, the others wait for it."""

    url: str
    fetch: Fetch
    _keys: dict[str, RSAPublicKey] = field(default_factory=dict[str, RSAPublicKey])
    _read_at: datetime | None = None
    _asked_at: datetime | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def key(self, kid: str, now: datetime) -> RSAPublicKey:
        """The key of that id.  Raises Refused where the issuer has none, Unavailable where it cannot be asked."""
        with self._lock:
            fresh = self._read_at is not None and now - self._read_at < KEPT
            if not (fresh and kid in self._keys):
                self._renew(now)
            if self._read_at is None or now - self._read_at > STALE:
                raise unavailable("the issuer's keys cannot be read now")
            if kid not in self._keys:
                refuse("the token is signed with a key that its issuer does not publish")
            return self._keys[kid]

    def _renew(self, now: datetime) -> None:
        """At most once a minute; a failure leaves what is known."""
        if self._asked_at is not None and abs(now - self._asked_at) < ASKED_AGAIN:
            return
        self._asked_at = now
        try:
            answer = self.fetch(Asked(url=self.url))
            found = read_keys(answer.body) if answer.status == _OK else {}
        except Unavailable:
            return
        if found:
            self._keys, self._read_at = found, now


def read_keys(body: bytes) -> dict[str, RSAPublicKey]:
    """Keys for RS256 signatures by their ids; what is none of those is left out.  {} for what is no JWKS document."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    listed = cast("dict[str, Any]", document).get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        return {}
    found: dict[str, RSAPublicKey] = {}
    for one in cast("list[Any]", listed)[:MAX_KEYS]:
        jwk = cast("dict[str, Any]", one) if isinstance(one, dict) else {}
        if (key := _key(jwk)) is not None:
            found[str(jwk["kid"])] = key
    return found


def _key(jwk: dict[str, Any]) -> RSAPublicKey | None:
    kid = jwk.get("kid")
    if jwk.get("kty") != "RSA" or jwk.get("use", "sig") != "sig" or jwk.get("alg", "RS256") != "RS256":
        return None
    if not isinstance(kid, str) or not kid:
        return None
    try:
        modulus, exponent = _number(jwk.get("n")), _number(jwk.get("e"))
        if not MIN_BITS <= modulus.bit_length() <= MAX_BITS:
            return None
        return RSAPublicNumbers(exponent, modulus).public_key()
    except (ValueError, binascii.Error):
        return None


def _number(given: Any) -> int:
    text = given if isinstance(given, str) else ""
    return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), "big")
