"""Who of the people asks, and with what roles.  `current` is what every route for people depends on.

Known by a bearer token of the OIDC issuer or by the session cookie that `signin` set.  Without OIDC the server is on loopback only, and everybody there
is an operator: then only requests that come from loopback and were meant for it count (a page from elsewhere could otherwise have a browser ask).
Roles are worked out anew for each request: a binding that is taken away ends at the next start of the server, not when the cookie does.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import jwt
from fastapi import Request

from planner.model.server import PeopleTrust, Person, Role
from planner.server.oidc import Issuer, NotBelieved
from planner.server.reports import clean

if TYPE_CHECKING:
    from collections.abc import Mapping

COOKIE: Final = "skyplan_session"
COOKIE_AGE: Final = timedelta(hours=8)
_AUDIENCE: Final = "skyplan-session"
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_SAFE: Final = ("GET", "HEAD", "OPTIONS")


class NotSignedIn(Exception):
    """401, or on a page the way to the sign-in."""


class Denied(Exception):
    """403: known, and may not."""


class People:
    """What `current` needs.  `trust` None: everybody on loopback is an operator.  `cookie_key` is shared by all replicas."""

    def __init__(self, trust: PeopleTrust | None, issuer: Issuer | None, *, url: str, cookie_key: bytes) -> None:
        self.trust = trust
        self.issuer = issuer
        self.url = url
        self._cookie_key = cookie_key

    @property
    def secure(self) -> bool:
        """The cookie goes over TLS only."""
        return self.url.startswith("https:")

    @property
    def cookie(self) -> str:
        """Its name; with the prefix a browser takes it from this very host over TLS only."""
        return f"__Host-{COOKIE}" if self.secure else COOKIE

    def person(self, claims: Mapping[str, Any]) -> Person:
        """Claims -> roles by the bindings."""
        bindings = self.trust.bindings if self.trust else ()
        held = tuple((b.role, b.jobs) for b in bindings if b.value in _values(claims, b.claim))
        names = (claims.get(c) for c in ("email", "preferred_username", "name", "sub"))
        return Person(name=clean(next((n for n in names if isinstance(n, str) and n), "?")[:200]), held=held)

    def sealed(self, claims: Mapping[str, Any], now: datetime) -> str:
        """The session cookie's value: who it is, and of the claims only those that bindings look at."""
        wanted = {b.claim for b in self.trust.bindings} if self.trust else set[str]()
        kept = {c: _values(claims, c) for c in wanted}
        known = {b.value for b in self.trust.bindings} if self.trust else set[str]()
        said = {c: sorted(values & known) for c, values in kept.items() if values & known}
        return self.seal({"aud": _AUDIENCE, "name": self.person(claims).name, "said": said, "exp": now + COOKIE_AGE})

    def unsealed(self, value: str, now: datetime) -> Person:
        """The person of a session cookie.  Raises NotBelieved."""
        body = self.unseal(value, _AUDIENCE, now)
        return Person(name=body["name"], held=self.person(body["said"]).held)

    def seal(self, body: Mapping[str, Any]) -> str:
        """Sign what a browser keeps for us."""
        return jwt.encode(dict(body), self._cookie_key, algorithm="HS256")

    def unseal(self, value: str, audience: str, now: datetime) -> dict[str, Any]:
        """The inverse.  Raises NotBelieved."""
        options: Any = {"require": ["exp", "aud"], "verify_exp": False}
        try:
            body = jwt.decode(value, self._cookie_key, algorithms=["HS256"], audience=audience, options=options)
        except jwt.PyJWTError:
            raise NotBelieved("the cookie is not of this server") from None
        if body["exp"] <= now.timestamp():
            raise NotBelieved("the session has ended")
        return body


def current(request: Request) -> Person:
    """FastAPI dependency: who asks.  Raises NotSignedIn, Denied, Unanswered; `app` answers them."""
    people: People = request.app.state.people
    same_site(request, people)
    if people.trust is None or people.issuer is None:
        return _on_loopback(request, people)
    now = request.app.state.services.clock()
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    try:
        if scheme.lower() == "bearer" and token:
            return people.person(people.issuer.claims(token.strip(), people.trust.audience, now))
        if cookie := request.cookies.get(people.cookie):
            return people.unsealed(cookie, now)
    except NotBelieved as error:
        raise NotSignedIn(str(error)) from None
    raise NotSignedIn("sign in, or send a bearer token")


def somebody(request: Request) -> Person:
    """`current`, with a role for some job.  Raises Denied besides."""
    person = current(request)
    if not person.held:
        raise Denied(f"{person.name} has no role here")
    return person


def demand(person: Person, role: Role, job: str) -> None:
    """Raises Denied where the person does not hold the role for that job."""
    if not person.may(role, job):
        raise Denied(f"{person.name} does not have the role {role} for `{job}`")


def _on_loopback(request: Request, people: People) -> Person:
    host = _host(f"//{request.headers.get('host', '')}")
    if request.client is None or request.client.host not in LOOPBACK or host not in {*LOOPBACK, _host(people.url)}:
        raise Denied("people are not set up in server.yaml: only this machine itself is answered")
    return Person(name="local", held=((Role.OPERATOR, ("*",)),))


def same_site(request: Request, people: People) -> None:
    """What changes something must not come from a page of another site."""
    if request.method in _SAFE:
        return
    origin = request.headers.get("origin")
    here = {people.url, f"{request.url.scheme}://{request.headers.get('host', '')}"}
    if origin is not None and origin not in here:
        raise Denied("this request comes from a page of another site")
    if request.headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}:
        raise Denied("this request comes from a page of another site")


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:  # a bracket that nothing closes
        return None


def _values(claims: Mapping[str, Any], claim: str) -> set[str]:
    """A claim's values.  An address that the issuer has not verified is nobody's."""
    # some issuers write it as a text
    if claim == "email" and claims.get("email_verified", True) not in (True, "true"):
        return set()
    found = claims.get(claim)
    many = cast("list[Any]", found) if isinstance(found, list) else [found]
    return {value for value in many if isinstance(value, str)}
