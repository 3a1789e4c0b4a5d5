"""What a connection may keep us waiting for: the head of a request is bounded in size, and head and body come in time or the connection ends.

Decides when a client is too slow.  The HTTP library has no clock for a request that does not come, and no bound for its head: strangers could hold every
place that there is, or all memory, with a few bytes each.  One look at all connections now and then; a timer for each would cost more than a report.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD_BYTES: Final = 16 * 1024
"""Beyond what the first piece of it brought, which is what the socket gives at once."""
LATE_SECONDS: Final = 45.0
"""Longer than `front` waits for the rest of a body: that one has an answer."""
LOOK_SECONDS: Final = 5.0

Waiting = tuple[str, object]


class Connection(HttpToolsProtocol):
    """The library's, which knows what it waits for."""

    _in_head = False
    _head_bytes = 0

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0

    def on_headers_complete(self) -> None:
        """It is whole."""
        self._in_head = False
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Bytes of the client."""
        within = self._in_head
        super().data_received(data)
        if not (within and self._in_head) or self.transport.is_closing():
            return
        self._head_bytes += len(data)
        if self._head_bytes > MAX_HEAD_BYTES:
            self.send_400_response("The head of the request is too large.")

    def waits_for(self) -> Waiting | None:
        """What the client has yet to send, equal for as long as it is the same; None where it is our turn, or the pause between two requests."""
        # the library's own type leaves out that there is none at first
        cycle: Any = self.cycle
        if cycle is None or cycle.response_complete:
            return None if self.timeout_keep_alive_task else ("head", cycle)
        return ("body", cycle) if cycle.more_body else None


class Look:
    """Remembers since when each connection is waited for."""

    def __init__(self, late_seconds: float = LATE_SECONDS) -> None:
        self._late_seconds = late_seconds
        self._since: dict[object, tuple[Waiting, float]] = {}

    def late(self, connections: Iterable[object], now: float) -> list[Connection]:
        """Those that are to end."""
        before, self._since = self._since, {}
        found: list[Connection] = []
        for one in connections:
            if not isinstance(one, Connection) or (waiting := one.waits_for()) is None:
                continue
            known = before.get(one)
            since = known[1] if known and known[0] == waiting else now
            self._since[one] = (waiting, since)
            if now - since >= self._late_seconds:
                found.append(one)
        return found
