"""Whose token is it?  Judges signed tokens of one OpenID Connect issuer, by the keys that the issuer publishes.

Decides which signatures and claims are enough.  Grants nothing: `people` turns claims into roles.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol

import jwt

from planner.server.outbound import Unanswered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.model.server import PeopleTrust

#: public-key signatures only: with HS256 the published key would be the secret
ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
KEYS_AGE: Final = timedelta(hours=1)
#: an unknown key's name makes us ask anew, but no more often than this: names are whatever a stranger writes
KEYS_PAUSE: Final = timedelta(seconds=60)
LEEWAY: Final = timedelta(seconds=60)
MAX_TOKEN: Final = 16 * 1024


class NotBelieved(Exception):
    """A token that does not hold.  Its words are for people and hold no part of it."""


class Ask(Protocol):
    """How the issuer is asked: `outbound.Outbound`."""

    def get(self, url: str) -> dict[str, Any]:
        """A JSON object.  Raises Unanswered."""
        ...

    def post(self, url: str, form: Mapping[str, str]) -> dict[str, Any]:
        """A JSON object.  Raises Unanswered."""
        ...


@dataclass(slots=True)
class _Keys:
    by_id: dict[str | None, jwt.PyJWK] = field(default_factory=dict[str | None, jwt.PyJWK])
    fetched: datetime | None = None
    tried: datetime | None = None


class Issuer:
    """One issuer's discovery document and keys, kept for an hour.  Threads may share it."""

    def __init__(self, trust: PeopleTrust, ask: Ask) -> None:
        self.trust = trust
        self.ask = ask
        self._lock = threading.Lock()
        self._keys = _Keys()
        self._said: dict[str, Any] | None = None

    def endpoint(self, name: str) -> str:
        """`authorization_endpoint` and the like.  Raises Unanswered."""
        found = self._discovery().get(name)
        if not isinstance(found, str):
            raise Unanswered(f"the issuer names no {name}")
        return found

    def claims(self, token: str, audience: str, now: datetime) -> dict[str, Any]:
        """What the token says, once it is known to hold.  Raises NotBelieved, Unanswered."""
        if len(token) > MAX_TOKEN:
            raise NotBelieved("the token is too long")
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            raise NotBelieved("this is no signed token") from None
        if header.get("alg") not in ALGORITHMS:
            raise NotBelieved("the token is not signed with a public key")
        key = self._key(header.get("kid"), now)
        try:
            # the time is ours to judge: the library would read the machine's clock
            found: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=[key.algorithm_name] if key.algorithm_name in ALGORITHMS else list(ALGORITHMS),
                audience=audience,
                issuer=self.trust.issuer,
                options={
                    "require": ["exp", "iat", "iss", "aud", "sub"],
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                },
            )
        except jwt.PyJWTError as error:
            raise NotBelieved(_why(error)) from None
        _in_time(found, now)
        return found

    def _discovery(self) -> dict[str, Any]:
        with self._lock:
            if self._said is None:
                said = self.ask.get(self.trust.issuer.rstrip("/") + "/.well-known/openid-configuration")
                if said.get("issuer") != self.trust.issuer:
                    raise Unanswered("the discovery document is of another issuer")
                self._said = said
            return self._said

    def _key(self, key_id: Any, now: datetime) -> jwt.PyJWK:
        name = key_id if isinstance(key_id, str) else None
        keys = self._keys
        old = keys.fetched is None or now - keys.fetched > KEYS_AGE
        if (old or name not in keys.by_id) and (keys.tried is None or now - keys.tried > KEYS_PAUSE):
            self._fetch(now)
        if self._keys.fetched is None:
            raise Unanswered("the issuer's keys are not known")
        found = self._keys.by_id.get(name)
        if found is None:
            raise NotBelieved("the token is signed with a key that the issuer does not publish")
        return found

    def _fetch(self, now: datetime) -> None:
        """What was fetched before holds on where the issuer does not answer."""
        self._keys.tried = now
        try:
            said = self.ask.get(self.endpoint("jwks_uri"))
            found = {key.key_id: key for key in jwt.PyJWKSet.from_dict(said).keys if key.key_type != "oct"}
        except (Unanswered, jwt.PyJWTError, AttributeError, TypeError):
            if self._keys.fetched is None:
                raise Unanswered("the issuer's keys cannot be fetched") from None
            return
        self._keys = _Keys(by_id=found, fetched=now, tried=now)


def _in_time(claims: Mapping[str, Any], now: datetime) -> None:
    at = now.timestamp()
    slack = LEEWAY.total_seconds()
    numbers = {name: claims.get(name, at) for name in ("exp", "iat", "nbf")}
    if any(isinstance(n, bool) or not isinstance(n, int | float) for n in numbers.values()):
        raise NotBelieved("the token's times are no numbers")
    if numbers["exp"] <= at - slack:
        raise NotBelieved("the token has expired")
    if max(numbers["iat"], numbers["nbf"]) > at + slack:
        raise NotBelieved("the token is of the future: are the clocks right?")


def _why(error: Exception) -> str:
    match error:
        case jwt.InvalidAudienceError():
            return "the token is for somebody else"
        case jwt.InvalidIssuerError():
            return "the token is of another issuer"
        case jwt.MissingRequiredClaimError():
            return "the token lacks a claim"
        case _:
            return "the token's signature does not hold"
