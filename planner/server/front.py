"""What every request passes first and every answer last: body limits before anything is parsed, people's rates, headers, one log line, counters, refusals.

Decides nothing about who may do what.  Exceptions that routes raise become answers here, by the one table in `answers`; an unexpected one is a 500 without
its words.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from planner.model.runtime import MAX_REPORT_BYTES, Refusal
from planner.server import answers
from planner.server.answers import Answered, Busy
from planner.server.oidc import NotBelieved
from planner.server.outbound import Unanswered
from planner.server.people import Denied, NotSignedIn
from planner.server.trouble import unavailable

if TYPE_CHECKING:
    from planner.server.state import Held

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

REPORT: Final = "/v1/report"
BODY_SECONDS: Final = 30.0
MAX_BODY_BYTES: Final = 16 * 1024
MAX_UNFINISHED_BYTES: Final = 32 * 1024 * 1024
"""Of bodies that come in pieces, all together: whose they are is not known yet.  A report in one piece is not among them."""
_LARGER: Final = {REPORT: MAX_REPORT_BYTES, "/v1/cut": 1024 * 1024}
_OF_NODES: Final = frozenset({"/v1/join", "/v1/session", REPORT, "/v1/cut", "/v1/peers"})
_OF_PEOPLE: Final = frozenset({"/", "/v1/jobs", "/metrics"})
_QUIET: Final = frozenset({"/healthz", "/metrics", REPORT})
_HEADERS: Final[Mapping[bytes, bytes]] = {
    b"x-content-type-options": b"nosniff",
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"referrer-policy": b"no-referrer",
}
_SIGN_IN: Final = "/login"


class Front:
    """ASGI middleware, the outermost of ours."""

    def __init__(self, app: App, held: Held) -> None:
        self._app = app
        secure = held.services.settings.url.startswith("https:")
        more = {b"strict-transport-security": b"max-age=31536000"} if secure else {}
        self.headers = tuple((_HEADERS | more).items())
        self.held = held
        self._unfinished = _Unfinished()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = perf_counter()
        answer = _Sender(send, self.headers)
        try:
            self._limit(scope)
            body = await _body(scope, receive, _LARGER.get(scope["path"], MAX_BODY_BYTES), self._unfinished)
            await self._app(scope, _replayed(body, receive), answer)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - the last place: what is not answered here would be printed, words and all
            await self._refuse(scope, error, answer)
        self.done(scope, answer.status, perf_counter() - began)

    def _limit(self, scope: Scope) -> None:
        if scope["path"] in _OF_NODES:
            return
        address = address_of(scope)
        self.held.strangers.check(address)
        signed_in = scope["path"] in _OF_PEOPLE or scope["path"].startswith(("/v1/jobs/", "/jobs/"))
        # elsewhere nobody looks whether what is shown holds: a stranger could show another at each request
        shown = b"".join(v for name, v in scope["headers"] if signed_in and name in {b"authorization", b"cookie"})
        self.held.people.take((address, hashlib.sha256(shown).digest() if shown else b""))

    async def _refuse(self, scope: Scope, error: Exception, answer: _Sender) -> None:
        if answer.status:
            self.held.log.error(error, route=route_of(scope))
            return
        if isinstance(error, NotSignedIn) and _page(scope):
            where = f"{_SIGN_IN}?next={quote(scope['path'])}".encode()
            await answer.whole(303, b"", (b"location", where))
            return
        status, body, more = self.refusal(scope, error)
        await answer.whole(status, body, *more)

    def refusal(self, scope: Scope, error: Exception) -> tuple[int, bytes, list[tuple[bytes, bytes]]]:
        """Status, body and headers that an exception becomes; counted."""
        word, reason = self._words(error)
        if word in {Refusal.UNKNOWN, "unsigned"}:
            self.held.strangers.spend(address_of(scope))
        if word == "failed":
            self.held.log.error(error, route=route_of(scope))
        self.held.metrics.refused(word)
        scope["skyplan.word"] = word
        more: list[tuple[bytes, bytes]] = []
        if after := answers.retry_after(word, getattr(error, "after_seconds", 0.0)):
            more.append((b"retry-after", after.encode()))
        if word in {Refusal.UNKNOWN, "unsigned"}:
            more.append((b"www-authenticate", b"Bearer"))
        if word in {"too-large", "no-length", "slow"}:
            more.append((b"connection", b"close"))
        return answers.status_of(word), answers.encoded(word, reason), more

    @staticmethod
    def _words(error: Exception) -> tuple[str, str]:
        match error:
            case NotSignedIn() | NotBelieved():
                return "unsigned", str(error)
            case Denied():
                return "denied", str(error)
            case Unanswered():
                return "busy", f"the issuer of people's tokens cannot be asked: {error}"
            case _ if unavailable(error):
                return "busy", "the database does not answer"
            case _:
                return answers.word_of(error)

    def done(self, scope: Scope, status: int, seconds: float) -> None:
        """Count an answer, and tell it unless it is one of thousands."""
        route = route_of(scope)
        self.held.metrics.answered(route, status, seconds)
        if status < 400 and scope["path"] in _QUIET:  # noqa: PLR2004 - thousands a second, counted and not told
            return
        self.held.log.line(
            "request",
            method=scope["method"],
            route=route,
            status=status,
            word=scope.get("skyplan.word"),
            ms=round(seconds * 1000, 1),
            client=address_of(scope),
            who=scope.get("skyplan.who"),
        )


class _Sender:
    """Sends on, adds headers that the route did not set, and remembers the status."""

    def __init__(self, send: Send, headers: tuple[tuple[bytes, bytes], ...]) -> None:
        self._send = send
        self._headers = headers
        self.status = 0

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            found = list(message.get("headers", ()))
            names = {name for name, _ in found}
            message["headers"] = [*found, *(pair for pair in self._headers if pair[0] not in names)]
        await self._send(message)

    async def whole(self, status: int, body: bytes, *more: tuple[bytes, bytes]) -> None:
        """An answer of our own."""
        headers = [(b"content-type", answers.JSON), (b"content-length", str(len(body)).encode()), *more]
        await self({"type": "http.response.start", "status": status, "headers": headers})
        await self({"type": "http.response.body", "body": body})


def address_of(scope: Scope) -> str:
    """The caller's address."""
    client = scope.get("client")
    return client[0] if client else ""


def route_of(scope: Scope) -> str:
    """The route's template: never the path, which is whatever a stranger writes."""
    if scope["path"] == REPORT:
        return REPORT
    return getattr(scope.get("route"), "path", None) or "other"


@dataclass(slots=True)
class _Unfinished:
    size: int = 0


async def _body(scope: Scope, receive: Receive, most: int, unfinished: _Unfinished) -> bytes:
    """All of it, before anything looks at it.  Raises Answered, Busy."""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    length = headers.get(b"content-length")
    if length is not None and (not length.isdigit() or int(length) > most):
        raise Answered("too-large", f"a body here has at most {most} bytes")
    if length is None and b"transfer-encoding" not in headers:
        return b""
    # what holds back its first byte holds no memory, and a timer for each report costs more than all else here
    message = _there(await receive())
    if not message.get("more_body"):
        return _part(message, most)
    parts = [_part(message, most)]
    size = len(parts[0])
    unfinished.size += size
    until = asyncio.get_running_loop().time() + BODY_SECONDS
    try:
        while message.get("more_body"):
            if unfinished.size > MAX_UNFINISHED_BYTES:
                raise Busy("too much is being sent at once")
            message = await _next(receive, until)
            parts.append(_part(message, most - size))
            size += len(parts[-1])
            unfinished.size += len(parts[-1])
    finally:
        unfinished.size -= size
    return b"".join(parts)


async def _next(receive: Receive, until: float) -> MutableMapping[str, Any]:
    try:
        async with asyncio.timeout_at(until):
            return _there(await receive())
    except TimeoutError:
        raise Answered("slow", "the body did not come in time") from None


def _there(message: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    if message["type"] == "http.disconnect":
        raise Answered("slow", "the caller went away")
    return message


def _part(message: MutableMapping[str, Any], most: int) -> bytes:
    part: bytes = message.get("body", b"")
    if len(part) > most:
        raise Answered("too-large", "the body is too large")
    return part


def _replayed(body: bytes, receive: Receive) -> Receive:
    given = False

    async def again() -> MutableMapping[str, Any]:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _page(scope: Scope) -> bool:
    """A browser that shows a page."""
    accepts = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    return scope["method"] == "GET" and b"text/html" in accepts and not scope["path"].startswith("/v1/")
