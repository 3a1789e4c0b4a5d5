"""The control plane as one ASGI application: nodes' routes, people's routes, health, metrics, around them the front.

Decides what is served at which path.  Holds nothing but what one process may lose: memory of sessions, rates, counters.  All else is in the record, so that
several replicas may stand before one PostgreSQL.
"""

from __future__ import annotations

import importlib
import os
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Annotated, Any, Final

from anyio import to_thread
from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError
from planner.model.server import Person
from planner.server import node_routes, signin
from planner.server.answers import encoded, status_of
from planner.server.front import REPORT, Front, Receive, Scope, Send
from planner.server.identity import Fetch
from planner.server.identity.fetch import fetcher
from planner.server.log import Log
from planner.server.metrics import CONTENT_TYPE
from planner.server.oidc import Issuer
from planner.server.outbound import Outbound
from planner.server.people import People, somebody
from planner.server.report_route import ReportRoute
from planner.server.services import Services
from planner.server.state import Held, held

#: shared by all replicas, at least 32 characters; unset: people sign in again after a restart
COOKIE_KEY: Final = "SKYPLAN_COOKIE_KEY"
_SHORTEST_KEY: Final = 32
_WORDS: Final[Mapping[int, str]] = {404: "not-found", 405: "wrong-method", 413: "too-large"}


class ControlPlane(FastAPI):
    """The application; reports go by a way of their own, past all that the framework puts before a route."""

    hot: Front | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if self.hot is not None and scope.get("path") == REPORT and scope.get("method") == "POST":
            await self.hot(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        """The framework's document, without the answer 422 that it believes in: what is malformed is 400 here."""
        if self.openapi_schema is None:
            document = super().openapi()
            for path in document["paths"].values():
                for operation in path.values():
                    operation["responses"].pop("422", None)
            for unused in ("HTTPValidationError", "ValidationError"):
                document.get("components", {}).get("schemas", {}).pop(unused, None)
            self.openapi_schema = document
        return self.openapi_schema


def make_app(services: Services, *, fetch: Fetch | None = None, log: Log | None = None) -> FastAPI:
    """The application.  `fetch`: how the people's issuer is asked.  Raises InputError for a cookie key that is too short."""
    holding = held(services, log or Log())

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncGenerator[None]:
        yield
        await to_thread.run_sync(holding.committer.stop)

    app = ControlPlane(
        title="skyplan",
        version="1",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _http)
    app.state.services = services
    app.state.held = holding
    app.state.people = _people(services, fetch)
    app.hot = Front(ReportRoute(holding), holding)
    app.include_router(node_routes.routes)
    app.include_router(signin.routes)
    _include_pages(app, services)
    app.add_api_route("/healthz", _health, methods=["GET"], responses=_UNWELL)
    app.add_api_route("/metrics", _metrics, methods=["GET"], include_in_schema=False)
    app.add_middleware(Front, held=holding)
    return app


def _people(services: Services, fetch: Fetch | None) -> People:
    settings = services.settings
    ask = Outbound(fetch or fetcher(settings.identity.ca_file)) if settings.people else None
    issuer = Issuer(settings.people, ask) if settings.people and ask else None
    given = os.environ.get(COOKIE_KEY, "")
    if given and len(given) < _SHORTEST_KEY:
        summary = f"{COOKIE_KEY} is shorter than {_SHORTEST_KEY} characters"
        raise InputError([Diagnostic(code="SKY-RUN-520", summary=summary, hint="make one by `openssl rand -hex 32`")])
    key = sha256(f"skyplan cookies {given}".encode()).digest() if given else secrets.token_bytes(32)
    return People(settings.people, issuer, url=settings.url, cookie_key=key)


def _include_pages(app: FastAPI, services: Services) -> None:
    try:
        pages: Any = importlib.import_module("planner.server.pages")
    except ModuleNotFoundError as error:
        if error.name != "planner.server.pages":
            raise
        return
    app.include_router(pages.router(services))


async def _health(request: Request) -> Response:
    """Alive, and the record answers."""
    holding: Held = request.app.state.held
    services = holding.services
    await to_thread.run_sync(services.runtime.session, "0" * 64, services.clock())
    return JSONResponse({"ok": True})


_UNWELL: Final[dict[int | str, dict[str, Any]]] = {503: {"description": "The record does not answer."}}


async def _metrics(request: Request, _person: Annotated[Person, Depends(somebody)]) -> Response:
    """Prometheus.  For whoever has a role at all."""
    holding: Held = request.app.state.held
    return Response(holding.metrics.text(), media_type=CONTENT_TYPE)


def _malformed(_request: Request, error: Exception) -> Response:
    """Where in the body, and what is wrong; never what was sent."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - what it is registered for
    wrong = [f"{'.'.join(str(part) for part in e['loc'] if part != 'body')[:100]}: {e['msg']}" for e in error.errors()]
    return _answer("malformed", "; ".join(wrong[:5]))


def _http(_request: Request, error: Exception) -> Response:
    """What the router itself says."""
    assert isinstance(error, HTTPException)  # noqa: S101 - what it is registered for
    word = _WORDS.get(error.status_code, "malformed")
    return _answer(word, "no such route" if word == "not-found" else str(error.detail), error.headers)


def _answer(word: str, reason: str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(encoded(word, reason), status_of(word), headers, "application/json")
