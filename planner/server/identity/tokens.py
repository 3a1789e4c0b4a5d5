"""Judging a signed token (JWT) of a platform: which issuer, by which key, for whom, and when.  What its claims then mean is each platform's module.

Strict on purpose: RS256 and nothing else, whatever the token says; a key id is required; a token that names where its own key lies, or extensions that must
be understood, is refused; audience and issuer are compared whole; issue and end are required, and a life longer than the platform's own is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

import jwt

from planner.model.server import TokenIssuer
from planner.server.identity.keys import IssuerKeys
from planner.server.identity.port import SKEW_SECONDS, Fetch, refuse

MAX_TOKEN_BYTES: Final = 8 * 1024
MAX_KID: Final = 256
MAX_TEXT: Final = 512
#: a token may not say itself by which key it is to be believed
_FOREIGN: Final = frozenset({"jku", "jwk", "x5u", "x5c", "crit"})
_LATEST: Final = 253_402_300_799
"""The last second of the year 9999, which is as far as times go here."""

Claims = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """Claims that hold, and until when."""

    claims: Claims
    issuer: str
    expires_at: datetime


class TokenJudge:
    """Judges tokens of any of `issuers`.  `longest` is the longest life that this platform gives its tokens."""

    def __init__(self, issuers: Sequence[TokenIssuer], fetch: Fetch, *, longest: timedelta) -> None:
        self._issuers = [(issuer, IssuerKeys(url=issuer.keys_url, fetch=fetch)) for issuer in issuers]
        self._longest = longest

    def judged(self, value: Any, now: datetime) -> Verified:
        """The token's claims.  Raises Refused, Unavailable."""
        if not isinstance(value, str) or not value.isascii() or len(value) > MAX_TOKEN_BYTES:
            refuse(f"the proof is no token, or longer than {MAX_TOKEN_BYTES} bytes")
        kid, claimed = _peeked(value)
        issuer, keys = self._issuer(claimed.get("iss"), claimed.get("aud"))
        key = keys.key(kid, now)
        try:
            claims = jwt.decode(
                value,
                key,
                algorithms=["RS256"],
                audience=issuer.audience,
                issuer=issuer.issuer,
                # times are judged below, by the clock that is handed in
                options={
                    "require": ["exp", "iat", "aud", "iss"],
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                },
            )
        except jwt.InvalidSignatureError:
            refuse("the token's signature does not hold")
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            refuse(f"the token does not hold: {type(error).__name__}")
        if claims["aud"] != issuer.audience:
            refuse("the token is not for this service alone")
        return Verified(claims=claims, issuer=issuer.issuer, expires_at=self._timely(claims, now))

    def _issuer(self, iss: Any, aud: Any) -> tuple[TokenIssuer, IssuerKeys]:
        """Which of those believed the token says it is of; its keys then show whether that is so."""
        for issuer, keys in self._issuers:
            if iss == issuer.issuer and aud == issuer.audience:
                return issuer, keys
        known = any(iss == issuer.issuer for issuer, _ in self._issuers)
        return refuse("the token is for another service" if known else "the token's issuer is not believed here")

    def _timely(self, claims: Claims, now: datetime) -> datetime:
        issued, ends = _when(claims, "iat"), _when(claims, "exp")
        starts = _when(claims, "nbf") if "nbf" in claims else issued
        skew = timedelta(seconds=SKEW_SECONDS)
        if ends <= now - skew:
            refuse("the token has ended")
        if max(issued, starts) > now + skew:
            refuse("the token begins in the future: a clock is wrong")
        if ends - issued > self._longest + skew:
            refuse("the token lives longer than its platform lets one live")
        return ends


def _peeked(token: str) -> tuple[str, Claims]:
    """Key id and claims, believed in nothing but the choice of the key."""
    try:
        parts = jwt.decode_complete(token, options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        refuse("the proof is no token")
    header, claims = cast("Claims", parts["header"]), cast("Claims", parts["payload"])
    if header.get("alg") != "RS256":
        refuse("the token must be signed by RS256")
    if _FOREIGN & header.keys():
        refuse("the token brings its own key, or extensions")
    kid = header.get("kid")
    if not isinstance(kid, str) or not 0 < len(kid) <= MAX_KID:
        refuse("the token does not say by which key it is signed")
    return kid, claims


def _when(claims: Claims, name: str) -> datetime:
    seconds = claims.get(name)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= _LATEST:
        refuse(f"the token's `{name}` is no time")
    return datetime.fromtimestamp(seconds, UTC)


def text(claims: Claims, name: str) -> str:
    """A claim that has to be there, as short printable text.  Raises Refused."""
    found = claims.get(name)
    if not isinstance(found, str) or not 0 < len(found) <= MAX_TEXT or not found.isprintable():
        refuse(f"the token lacks `{name}`")
    return found
