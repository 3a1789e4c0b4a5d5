"""Signing people in: OpenID Connect's code flow with PKCE.  `/login` sends to the issuer, `/callback` takes the code, `/logout` lets the cookie go.

Decides what ties an answer to the browser that asked: a sealed cookie with state, nonce and verifier, ten minutes long.  A client secret, where the issuer
wants one, is read from the environment and sent to its token endpoint only.
"""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlencode

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from planner.server.answers import Answered
from planner.server.oidc import Issuer, NotBelieved
from planner.server.people import COOKIE_AGE, Denied, People, same_site

if TYPE_CHECKING:
    from planner.server.state import Held

CLIENT_SECRET: Final = "SKYPLAN_OIDC_CLIENT_SECRET"  # noqa: S105 - a name
FLOW_AGE: Final = timedelta(minutes=10)
_AUDIENCE: Final = "skyplan-signin"
routes = APIRouter(tags=["people"], include_in_schema=False)


@routes.get("/login")
async def login(request: Request, next: Annotated[str, Query(max_length=500)] = "/") -> Response:  # noqa: A002 - the word in the address
    """To the issuer."""
    people, issuer = _set_up(request)
    now = request.app.state.services.clock()
    where = await to_thread.run_sync(issuer.endpoint, "authorization_endpoint", limiter=_few(request))
    flow = {name: secrets.token_urlsafe(32) for name in ("state", "nonce", "verifier")}
    challenge = base64.urlsafe_b64encode(hashlib.sha256(flow["verifier"].encode()).digest()).rstrip(b"=").decode()
    asked = {
        "response_type": "code",
        "client_id": issuer.trust.client_id,
        "redirect_uri": _back(people),
        "scope": " ".join(issuer.trust.scopes),
        "state": flow["state"],
        "nonce": flow["nonce"],
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    response = RedirectResponse(f"{where}{'&' if '?' in where else '?'}{urlencode(asked)}", 303)
    body = {**flow, "next": _own(next), "aud": _AUDIENCE, "exp": now + FLOW_AGE}
    _put(response, people, _flow(people), people.seal(body), FLOW_AGE)
    return response


@routes.get("/callback")
async def callback(
    request: Request,
    code: Annotated[str, Query(max_length=4096)] = "",
    state: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """From the issuer, with a code."""
    people, issuer = _set_up(request)
    now = request.app.state.services.clock()
    try:
        flow = people.unseal(request.cookies.get(_flow(people), ""), _AUDIENCE, now)
    except NotBelieved:
        raise Denied("this sign-in was not begun here, or took too long: begin again") from None
    if not code or not secrets.compare_digest(state.encode(), str(flow["state"]).encode()):
        raise Denied("the issuer gave no code for this sign-in: begin again")
    claims = await to_thread.run_sync(_exchange, people, issuer, code, flow, now, limiter=_few(request))
    response = RedirectResponse(_own(str(flow["next"])), 303)
    _put(response, people, people.cookie, people.sealed(claims, now), COOKIE_AGE)
    response.delete_cookie(_flow(people), secure=people.secure, httponly=True)
    return response


@routes.post("/logout")
async def logout(request: Request) -> Response:
    """The cookie goes; the issuer's own session stays."""
    people, _ = _set_up(request)
    same_site(request, people)
    response = RedirectResponse("/", 303)
    response.delete_cookie(people.cookie, secure=people.secure, httponly=True)
    return response


def _exchange(people: People, issuer: Issuer, code: str, flow: dict[str, Any], now: datetime) -> dict[str, Any]:
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": _back(people),
        "client_id": issuer.trust.client_id,
        "code_verifier": str(flow["verifier"]),
    }
    if secret := os.environ.get(CLIENT_SECRET):
        form["client_secret"] = secret
    said = issuer.ask.post(issuer.endpoint("token_endpoint"), form)
    token = said.get("id_token")
    if not isinstance(token, str):
        raise NotBelieved("the issuer gave no ID token")
    claims = issuer.claims(token, issuer.trust.client_id, now)
    if claims.get("nonce") != flow["nonce"]:
        raise NotBelieved("the ID token is of another sign-in")
    return claims


def _set_up(request: Request) -> tuple[People, Issuer]:
    people: People = request.app.state.people
    if people.issuer is None:
        raise Answered("not-found", "people are not set up in server.yaml")
    return people, people.issuer


def _few(request: Request) -> CapacityLimiter:
    """An issuer that hangs must not hold the threads that nodes need."""
    held: Held = request.app.state.held
    return held.signing_in


def _own(where: str) -> str:
    """A path of this site and nothing else."""
    good = where.startswith("/") and not where.startswith(("//", "/\\")) and where.isprintable()
    return where if good else "/"


def _back(people: People) -> str:
    return f"{people.url.rstrip('/')}/callback"


def _flow(people: People) -> str:
    return f"{people.cookie}_flow"


def _put(response: Response, people: People, name: str, value: str, age: timedelta) -> None:
    response.set_cookie(
        name, value, max_age=int(age.total_seconds()), path="/", secure=people.secure, httponly=True, samesite="lax"
    )
