"""`skyplan broker` over HTTP: one route, `POST /v1/leases`, for nodes and nobody else.  See docs/node-protocol.md and docs/broker.md.

Decides the request's form, its limits, and the answer's; verifies the proof (`identity`) and lets `planner.app.mint` decide.  A process and an identity of its
own: it serves no people, keeps no sessions, and knows its plans from files.  One log line a lease, never its secret; an answer may not be stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Annotated, Any, Final, Literal

from anyio import CapacityLimiter, to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import Field
from sqlalchemy.exc import DBAPIError
from starlette.exceptions import HTTPException

from planner.app.mint import Asking, Broker, Lease
from planner.app.mint_rules import NotGranted, Wanted
from planner.clouds.mint.port import TooWide
from planner.model.errors import CloudError, SkyplanError, Unavailable
from planner.model.runtime import Refusal, Refused, Seat
from planner.server import answers, bodies
from planner.server.answers import TooMany
from planner.server.identity import Verifier
from planner.server.joining import proof_digest
from planner.server.limits import Limit
from planner.server.log import Log
from planner.server.trouble import unavailable

MAX_BODY_BYTES: Final = 32 * 1024
"""A signed request to STS with a large session token is 6 KiB, the longest token that is taken 8."""
MINTING: Final = 32
"""Requests that wait for a cloud at once."""
#: per address before its proof is looked at (many nodes may stand behind one), and per seat: a job's few prefixes, twice an hour each, and restarts
ADDRESS_RATE, ADDRESS_BURST = 10.0, 300.0
SEAT_RATE, SEAT_BURST = 1 / 20, 40.0
HEADERS: Final = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
REFUSALS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": bodies.Problem} for status in (400, 401, 403, 404, 405, 409, 410, 413, 425, 429, 500, 503)
}

AsgiScope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class LeaseBody(bodies.Body):
    """`POST /v1/leases`."""

    job: bodies.JobName
    generation: bodies.Generation
    rank: Annotated[int, Field(ge=0, le=bodies.MAX_RANK, strict=True)]
    proof: bodies.Proof
    key: Annotated[
        str, Field(pattern=r"^[\x21-\x7e]{16,128}$", description="The node's own random key, as it joined with.")
    ]
    uri: bodies.Uri
    access: Literal["read", "write"]


class LeaseAnswer(bodies.BaseModel):
    """A lease: one of `aws`, `gcp`, `azure`, `nebius` is there."""

    id: str
    store: str
    uri: str
    access: str
    issued_at: str
    expires_at: str
    aws: dict[str, str] | None = None
    gcp: dict[str, str] | None = None
    azure: dict[str, str] | None = None
    nebius: dict[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerServices:
    """What the route works with."""

    broker: Broker
    verifiers: Mapping[str, Verifier]
    clock: Callable[[], datetime]
    log: Log
    steady: Callable[[], float] = monotonic


def make_broker_app(services: BrokerServices) -> FastAPI:
    """The application."""
    app = FastAPI(title="skyplan broker", version="1", docs_url=None, redoc_url=None)
    addresses = Limit(ADDRESS_RATE, ADDRESS_BURST, services.steady)
    seats = Limit(SEAT_RATE, SEAT_BURST, services.steady)
    threads = CapacityLimiter(MINTING)

    @app.post("/v1/leases", responses=REFUSALS, response_model_exclude_none=True)
    async def leases(body: LeaseBody, request: Request) -> LeaseAnswer:
        """Mint a data credential for one granted prefix."""
        address = request.client.host if request.client else ""
        addresses.take(address)
        seat = Seat(job=body.job, generation=body.generation, rank=body.rank)
        seats.take((address, seat))
        try:
            lease = await to_thread.run_sync(_minted, services, body, seat, limiter=threads)
        except Exception as error:
            _told(services.log, error, body, seat, address)
            raise
        issue = lease.issue
        services.log.line(
            "lease",
            id=issue.id,
            seat=_named(seat),
            uri=issue.uri,
            access=issue.access,
            identity=issue.identity,
            until=issue.expires_at,
            client=address,
        )
        return _answer(lease)

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        """The process answers; whether the clouds do, shows in the log."""
        return {"status": "ok"}

    _refusing(app, services.log)
    app.add_middleware(_Bounded)
    return app


def _minted(services: BrokerServices, body: LeaseBody, seat: Seat) -> Lease:
    """Blocks.  Raises what `Broker.lease` does."""
    now = services.clock()
    verifier = services.verifiers.get(body.proof.scheme)
    if verifier is None:
        raise Refused(Refusal.IDENTITY, f"proofs by `{body.proof.scheme}` are not taken here")
    asking = Asking(
        wanted=Wanted(seat=seat, uri=body.uri, access=body.access),
        who=verifier.verify(body.proof.value, now),
        key_sha256=hashlib.sha256(body.key.encode()).hexdigest(),
        proof_sha256=proof_digest(body.proof.scheme, body.proof.value),
    )
    return services.broker.lease(asking, now)


def _answer(lease: Lease) -> LeaseAnswer:
    issue, minted = lease.issue, lease.minted
    return LeaseAnswer(
        id=issue.id,
        store=issue.store,
        uri=issue.uri,
        access=issue.access,
        issued_at=issue.issued_at,
        expires_at=issue.expires_at,
        **{minted.kind: dict(minted.secret)},
    )


def _named(seat: Seat) -> str:
    return f"{seat.run}-r{seat.rank}"


def _told(log: Log, error: Exception, body: LeaseBody, seat: Seat, address: str) -> None:
    """One line a refusal.  What a cloud said is for the operator: it names identities, no secrets."""
    if not isinstance(error, SkyplanError):
        log.error(error, seat=_named(seat))
        return
    word, code, _ = judged(error)
    log.line(
        "refused",
        word=word,
        code=code,
        why=str(error),
        seat=_named(seat),
        uri=body.uri,
        access=body.access,
        client=address,
    )


def judged(error: Exception) -> tuple[str, str, str]:  # noqa: PLR0911 - one line a kind
    """(word, code, reason for the node) of an error.  What a cloud or a database said stays here."""
    match error:
        case NotGranted():
            return error.word, "SKY-RUN-515", error.reason
        case TooWide():
            return Refusal.MALFORMED, "SKY-RUN-515", str(error)
        case Unavailable():
            return (
                "busy",
                answers.TABLE["busy"][1],
                "the record, the platform or the cloud does not answer; the broker's log says which",
            )
        case CloudError() | SkyplanError() if not isinstance(error, Refused):
            return "busy", "SKY-RUN-515", "the cloud gave no credential; the broker's log says why"
        case RequestValidationError():
            return Refusal.MALFORMED, answers.TABLE[Refusal.MALFORMED][1], _where(error)
        case HTTPException():
            word = {404: "not-found", 405: "wrong-method"}.get(error.status_code, Refusal.MALFORMED)
            return word, answers.TABLE[word][1], "the broker has `POST /v1/leases` and nothing else"
        case _ if unavailable(error):
            return "busy", answers.TABLE["busy"][1], "the record does not answer"
        case _:
            word, reason = answers.word_of(error)
            return word, answers.TABLE[word][1], reason


def _where(error: RequestValidationError) -> str:
    """Which fields are wrong, never what they held."""
    names = {".".join(str(part) for part in one["loc"][1:3]) or "body" for one in error.errors()}
    return f"malformed: {', '.join(sorted(names))[:200]}"


def _refusing(app: FastAPI, log: Log) -> None:
    async def refuse(_request: Request, error: Exception) -> JSONResponse:
        word, code, reason = judged(error)
        headers = dict(HEADERS)
        if after := answers.retry_after(word, error.after_seconds if isinstance(error, TooMany) else 0.0):
            headers["Retry-After"] = after
        body = {"error": str(word), "code": code, "reason": reason}
        return JSONResponse(body, status_code=answers.status_of(word), headers=headers)

    for kind in (SkyplanError, TooMany, RequestValidationError, HTTPException, DBAPIError):
        app.add_exception_handler(kind, refuse)

    async def failed(request: Request, error: Exception) -> JSONResponse:
        log.error(error, route=request.url.path[:50])
        return await refuse(request, error)

    app.add_exception_handler(Exception, failed)


class _Bounded:
    """Reads no body that is too long, and lets no answer be stored."""

    def __init__(self, app: Callable[[AsgiScope, Receive, Send], Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if len(body) > MAX_BODY_BYTES:
                answer = JSONResponse(
                    answers.document("too-large", f"a body here has at most {MAX_BODY_BYTES} bytes"),
                    status_code=413,
                    headers={**HEADERS, "Connection": "close"},
                )
                await answer(scope, receive, send)
                return
            if message["type"] != "http.request" or not message.get("more_body"):
                break
        given = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replayed() -> MutableMapping[str, Any]:
            return next(given, None) or await receive()

        async def sent(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                mine = [(k.lower().encode(), v.encode()) for k, v in HEADERS.items()]
                named = {name for name, _ in mine}
                message["headers"] = [*(h for h in message["headers"] if h[0].lower() not in named), *mine]
            await send(message)

        await self._app(scope, replayed, sent)
