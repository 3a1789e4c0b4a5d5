"""A report that came whole is taken and answered by the connection itself, without a task and an application between: `report_route` in half the time.

Decides which requests those are: `POST /v1/report` in one piece, of a session that is remembered, within its rate, well-formed, with nothing else going on on
the connection.  All others go the ordinary way, as if they had not been looked at; so only an answer after the commit is made here, and a refusal is the
front's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, cast

from planner.model.runtime import MAX_REPORT_BYTES, Delivered, Refused
from planner.server import answers
from planner.server.answers import Busy, TooMany
from planner.server.connections import Connection
from planner.server.front import REPORT
from planner.server.report_route import encoded
from planner.server.reports import report_of
from planner.server.sessions import bearer, digest

if TYPE_CHECKING:
    from planner.model.runtime import Report
    from planner.server.front import Front

Pairs = list[tuple[bytes, bytes]]

_URL: Final = REPORT.encode()
_CLOSE: Final = (b"connection", b"close")


class Heads:
    """Heads of answers, in the order that the ordinary way has."""

    def __init__(self, front: Front) -> None:
        self._front = front
        self._first: list[tuple[bytes, bytes]] | None = None
        self._usual = (b"", b"")

    def usual(self, first: list[tuple[bytes, bytes]], length: int) -> bytes:
        """Of what was taken, on a connection that stays.  `first` is another list each second, with the time in it."""
        if first is not self._first:
            before, mark, after = self.of(200, 0, first, []).partition(b"\r\ncontent-length: ")
            self._first, self._usual = first, (before + mark, after.removeprefix(b"0"))
        before, after = self._usual
        return b"%s%d%s" % (before, length, after)

    def of(self, status: int, length: int, first: Pairs, more: Pairs) -> bytes:
        """Of any."""
        said = [(b"content-type", answers.JSON), (b"content-length", b"%d" % length), *more]
        lines = b"".join([b"%s: %s\r\n" % pair for pair in (*first, *said, *self._front.headers)])
        return b"HTTP/1.1 %d %s\r\n%s\r\n" % (status, HTTPStatus(status).phrase.encode(), lines)


class Direct(Connection):
    """`front`: what is before the ordinary route; `heads`: of all its connections."""

    def __init__(self, *given: Any, front: Front, heads: Heads, **named: Any) -> None:
        super().__init__(*given, **named)
        self._front = front
        self._heads = heads
        self._whole: bytes | None = None  # the body so far of what may be such a report, None where nothing may

    def on_headers_complete(self) -> None:
        """The library would begin a task now; a report's whole body may be among the bytes that are being read."""
        if self._possible():
            self._in_head = False
            self._whole = b""
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece."""
        if self._whole is None:
            super().on_body(body)
        else:
            self._whole += body

    def on_message_complete(self) -> None:
        """The end of a request."""
        if self._whole is None:
            super().on_message_complete()
        elif self._take(self._whole):
            self._whole = None
        else:
            self._give_back()
            super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        """Bytes of the client."""
        super().data_received(data)
        if self._whole is not None and not self.transport.is_closing():
            self._give_back()  # the rest will take its time

    def _possible(self) -> bool:
        # the library's own types leave out that there is no cycle at first, and say that there may be no parser
        cycle, parser = cast("Any", self.cycle), cast("Any", self.parser)
        return (
            self.url == _URL
            and (cycle is None or cycle.response_complete)
            and not self.expect_100_continue
            and not self.flow.write_paused
            and parser.get_method() == b"POST"
            and parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
            and not parser.should_upgrade()
            and (self.limit_concurrency is None or len(self.connections) < self.limit_concurrency)
        )

    def _give_back(self) -> None:
        body, self._whole = self._whole, None
        super().on_headers_complete()
        if body:
            super().on_body(body)

    def _take(self, body: bytes) -> bool:
        """Whether it is answered here."""
        began = perf_counter()
        held = self._front.held
        now = held.services.clock()
        header = b""
        for name, value in self.headers:
            if name == b"authorization":
                header = value
        try:
            session = held.sessions.reporter(digest(bearer(header.decode("latin-1"))), now)
            if session is None or len(body) > MAX_REPORT_BYTES:
                return False
            report = report_of(session, body, now)
            held.nodes.take(session.seat)
        except (Refused, TooMany):
            return False
        told = _Told(scope=self.scope, began=began)
        told.scope |= {"path": REPORT, "method": "POST"}
        self.cycle = told  # pyright: ignore[reportAttributeAccessIssue] - what the library asks of one it has
        self._submit(report, len(body), told)
        return True

    def _submit(self, report: Report, size: int, told: _Told) -> None:
        told.scope["skyplan.who"] = f"{report.seat.run}-r{report.seat.rank}"
        try:
            self._front.held.committer.put(report, size, partial(self._answer, told))
        except Busy as busy:
            self._answer(told, busy)

    def _answer(self, told: _Told, result: Delivered | Exception) -> None:
        front, first = self._front, self.server_state.default_headers
        status = 200
        if isinstance(result, Delivered) and result.refused is None:
            body = encoded(result)
            head = (
                self._heads.usual(first, len(body))
                if told.keep_alive
                else self._heads.of(200, len(body), first, [_CLOSE])
            )
        else:
            error = result.refused if isinstance(result, Delivered) else result
            assert error is not None  # noqa: S101 - one of the two it is
            status, body, more = front.refusal(told.scope, error)
            head = self._heads.of(status, len(body), first, more if told.keep_alive else [*more, _CLOSE])
        if not (told.disconnected or self.transport.is_closing()):
            self.transport.write(head + body)
            told.response_complete = True
            if not told.keep_alive:
                self.transport.close()
            self.on_response_complete()
        front.done(told.scope, status, perf_counter() - told.began)


class _Event:
    """Nobody waits for the rest of what is whole."""

    @staticmethod
    def set() -> None:
        """Nothing."""


_NOBODY: Final = _Event()


@dataclass(slots=True, eq=False, kw_only=True)
class _Told:
    """A report that waits for its commit, with what the library wants to know of a request."""

    scope: Any
    began: float
    response_complete: bool = False
    disconnected: bool = False
    keep_alive: bool = True
    more_body: bool = False
    message_event: _Event = _NOBODY
