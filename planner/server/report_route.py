"""`POST /v1/report`, as plain ASGI: the one route that thousands of nodes use every second.

Decides the order: whose session, how often, is it a report, then the committer.  An answer means that it is in the record.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from planner.server import answers
from planner.server.front import Receive, Scope, Send, address_of
from planner.server.reports import report_of
from planner.server.sessions import bearer, digest

if TYPE_CHECKING:
    from planner.model.runtime import Delivered, Session
    from planner.server.state import Held


class ReportRoute:
    """The route."""

    def __init__(self, held: Held) -> None:
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One report.  Raises what `front` answers."""
        header: bytes = dict(scope["headers"]).get(b"authorization", b"")
        session = await session_of(self._held, header.decode("latin-1"), address_of(scope))
        scope["skyplan.who"] = f"{session.seat.run}-r{session.seat.rank}"
        body: bytes = (await receive()).get("body", b"")
        report = report_of(session, body, self._held.services.clock())
        delivered = await self._held.committer.submit(report, len(body))
        if delivered.refused is not None:
            raise delivered.refused
        text = encoded(delivered)
        headers = [(b"content-type", answers.JSON), (b"content-length", str(len(text)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": text})


async def session_of(held: Held, header: str, address: str) -> Session:
    """Whose bearer token it is, counted against its rate.  Raises Refused, TooMany."""
    token_sha256 = digest(bearer(header))
    now = held.services.clock()
    session = held.sessions.remembered(token_sha256, now)
    if session is None:
        held.strangers.check(address)
        session = await held.sessions.find(token_sha256, now)
    held.nodes.take(session.seat)
    return session


def encoded(delivered: Delivered) -> bytes:
    """What a node is answered."""
    if not delivered.requests:
        return b'{"through":%d,"requests":[]}' % delivered.through
    requests = [
        {"id": r.id, "word": r.word, "reason": r.reason, "deadline": r.deadline or None} for r in delivered.requests
    ]
    return json.dumps({"through": delivered.through, "requests": requests}).encode()
