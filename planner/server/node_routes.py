"""What nodes ask, but for reports: join, session, the cut, the peers of a tunnel.  See docs/node-protocol.md.

Decides statuses and who may ask what (rank 0 alone cuts; a node speaks for its own rank only).  All that blocks runs in threads: joins in few of their own,
for their proofs may need a platform's answer, and strangers must not take the threads that nodes need.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

from anyio import to_thread
from fastapi import APIRouter, Depends, Query, Request, Response

from planner.model.runtime import Refusal, Refused, Seat, Session
from planner.server import bodies, cutting, joining
from planner.server.front import address_of
from planner.server.peers_file import endpoint_problem
from planner.server.report_route import session_of
from planner.server.sessions import bearer, digest
from planner.server.state import Held

if TYPE_CHECKING:
    from planner.model.runtime import Cut
    from planner.state.runtime import Runtime

MAX_WAIT_SECONDS: Final = 25.0
POLL_SECONDS: Final = 1.0
MAX_SKEW_SECONDS: Final = 300.0
ACCEPTED: Final = 202
#: refusals that any of these routes may give, for the OpenAPI
REFUSALS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": bodies.Problem}
    for status in (400, 401, 403, 404, 405, 408, 409, 410, 411, 413, 425, 429, 500, 503)
}

routes = APIRouter(responses=REFUSALS, tags=["nodes"])


def held_of(request: Request) -> Held:
    """The application's own."""
    held: Held = request.app.state.held
    return held


async def asking(request: Request) -> Session:
    """Whose session it is.  Raises Refused, TooMany."""
    address = address_of(request.scope)
    session = await session_of(held_of(request), request.headers.get("authorization", ""), address)
    request.scope["skyplan.who"] = f"{session.seat.run}-r{session.seat.rank}"
    return session


Asking = Annotated[Session, Depends(asking)]
Holding = Annotated[Held, Depends(held_of)]


@routes.post("/v1/join")
async def join(wanted: bodies.Join, held: Holding, request: Request) -> bodies.Joined:
    """Take a seat."""
    seat = Seat(job=wanted.job, generation=wanted.generation, rank=wanted.rank)
    request.scope["skyplan.who"] = f"{seat.run}-r{seat.rank}"
    address = address_of(request.scope)
    held.addresses.take(address)
    held.joins.take((address, seat))
    if (off := joining.skew_seconds(wanted.at, held.services.clock())) > MAX_SKEW_SECONDS:
        held.metrics.skewed.inc()
        held.log.line("skew", who=f"{seat.run}-r{seat.rank}", seconds=round(off))
    joined = await to_thread.run_sync(joining.join, held.services, wanted, seat, limiter=held.joining)
    held.sessions.forget(seat)
    return joined


@routes.post("/v1/session")
async def renew(session: Asking, held: Holding, request: Request) -> bodies.Joined:  # noqa: ARG001 - asking counts it
    """A new session for the old one, which holds until its own end."""
    token_sha256 = digest(bearer(request.headers.get("authorization")))
    return await to_thread.run_sync(joining.renew, held.services, token_sha256)


@routes.post("/v1/report")
async def report(body: bodies.ReportBody, session: Asking) -> bodies.Through:  # noqa: ARG001 - `report_route` answers
    """Items of one stream, in order.  Sending again what was taken changes nothing."""
    raise AssertionError


@routes.post("/v1/cut")
async def cut(
    wanted: bodies.Begin | bodies.Choose | bodies.Reject, session: Asking, held: Holding
) -> bodies.Begun | bodies.CutAnswer:
    """From where the generation starts."""
    if session.seat.rank != 0:
        raise Refused(Refusal.IDENTITY, "rank 0 alone makes the cut")
    match wanted:
        case bodies.Begin():
            return await to_thread.run_sync(cutting.begin, held.services, session)
        case bodies.Choose():
            return await to_thread.run_sync(cutting.choose, held.services, session, wanted)
        case bodies.Reject():
            return await to_thread.run_sync(cutting.reject, held.services, session, wanted)


@routes.get("/v1/cut", responses={ACCEPTED: {"model": bodies.CutAnswer}})
async def chosen(session: Asking, held: Holding, response: Response) -> bodies.CutAnswer:
    """The cut, or 202 while rank 0 has not chosen."""
    found = await to_thread.run_sync(_cut_of, held.services.runtime, session.seat)
    if found is not None:
        return cutting.answer(found)
    response.status_code = ACCEPTED
    return bodies.CutAnswer(cut=None)


@routes.post("/v1/peers")
async def meet(wanted: bodies.Meet, session: Asking, held: Holding) -> bodies.Peers:
    """Say this node's public key and endpoint; the first key stays."""
    if wanted.name != f"r{session.seat.rank:02d}":
        raise Refused(Refusal.IDENTITY, f"this session is of rank {session.seat.rank}, not of {wanted.name}")
    if problem := endpoint_problem(wanted.endpoint):
        raise Refused(Refusal.MALFORMED, f"`endpoint`: {problem}")
    said = (session.seat, wanted.name, wanted.public_key, wanted.endpoint, held.services.clock())
    await to_thread.run_sync(held.services.runtime.meet, *said)
    return await _peers(held, session)


@routes.get("/v1/peers", responses={ACCEPTED: {"model": bodies.Peers}})
async def peers(
    session: Asking, held: Holding, response: Response, wait: Annotated[float, Query(ge=0, le=3600)] = 0.0
) -> bodies.Peers:
    """All peers once all have come; 202 and who is missing until then."""
    until = time.monotonic() + min(wait, MAX_WAIT_SECONDS)
    # another replica may be told, so that the record is asked again and again
    while (found := await _peers(held, session)).missing and time.monotonic() < until:  # noqa: ASYNC110
        await asyncio.sleep(min(POLL_SECONDS, max(0.0, until - time.monotonic())))
    response.status_code = ACCEPTED if found.missing else 200
    return found


def _cut_of(runtime: Runtime, seat: Seat) -> Cut | None:
    """Nothing for who may not write any more: he would wait, or begin, in vain."""
    runtime.check(seat)
    return runtime.cut(seat.job, seat.generation)


def _met_by(runtime: Runtime, seat: Seat) -> tuple[Mapping[str, Any], ...]:
    runtime.check(seat)
    return runtime.met(seat.job, seat.generation)


async def _peers(held: Held, session: Session) -> bodies.Peers:
    met = await to_thread.run_sync(_met_by, held.services.runtime, session.seat)
    if not met:
        raise Refused(Refusal.EARLY, "nobody is expected to meet here yet")
    missing = [str(m["name"]) for m in met if not m.get("public_key")]
    rows = [] if missing else [bodies.Peer.model_validate(dict(m)) for m in met]
    return bodies.Peers(peers=rows, missing=missing)
