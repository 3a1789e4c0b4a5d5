"""Whose bearer token is it?  Sessions of nodes, remembered for a while, so that a report costs no look into the database.

The record knows a token by its SHA-256 only, and so does this memory.  A remembered session says who asks, never that the seat still may write: the record
looks at that itself in the transaction of every write.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from anyio import to_thread

from planner.model.runtime import Refusal, Refused, Seat, Session

MAX_REMEMBERED: Final = 65_536
REMEMBERED: Final = timedelta(seconds=30)
REPORTER_REMEMBERED: Final = timedelta(minutes=10)
"""For what looks at the seat's holder itself: each look here is by thousands of nodes."""
MAX_TOGETHER: Final = 1000
MAX_TOKEN: Final = 128


def digest(token: str) -> str:
    """As the record has it."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def bearer(header: str | None) -> str:
    """The token of an `Authorization` header.  Raises Refused."""
    scheme, _, token = (header or "").partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token or len(token) > MAX_TOKEN:
        raise Refused(Refusal.UNKNOWN, "send the session as a bearer token; join to get one")
    return token


Lookup = Callable[[Sequence[str], datetime], Mapping[str, Session]]


class Sessions:
    """`lookup` is the record's; called in a thread, for all that are asked for meanwhile together.

    A session is remembered for `REMEMBERED`: another replica may have given its seat away meanwhile.  For reports it is for `REPORTER_REMEMBERED`, as the
    record takes them of the seat's holder only.
    """

    def __init__(self, lookup: Lookup, clock: Callable[[], datetime], *, max_remembered: int = MAX_REMEMBERED) -> None:
        self._lookup = lookup
        self._clock = clock
        self._max_remembered = max_remembered
        self._known: OrderedDict[str, tuple[Session, datetime, datetime]] = OrderedDict()
        self._of: dict[Seat, set[str]] = {}
        self._taken: set[Seat] = set()  # since the look that is going on began
        self._wanted: dict[str, asyncio.Future[Session | None]] = {}
        self._looking: asyncio.Task[None] | None = None

    def remembered(self, token_sha256: str, now: datetime) -> Session | None:
        """Without asking the record."""
        found = self._known.get(token_sha256)
        return found[0] if found is not None and now < found[1] else None

    def reporter(self, token_sha256: str, now: datetime) -> Session | None:
        """The same, for a report whose holder is looked at when it is written."""
        found = self._known.get(token_sha256)
        return found[0] if found is not None and now < found[2] else None

    async def find(self, token_sha256: str, now: datetime) -> Session:
        """Ask the record where it is not remembered.  Raises Refused."""
        if found := self.remembered(token_sha256, now):
            return found
        wanted = self._wanted.get(token_sha256)
        if wanted is None:
            wanted = self._wanted[token_sha256] = asyncio.get_running_loop().create_future()
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        session = await asyncio.shield(wanted)
        if session is None:
            raise Refused(Refusal.UNKNOWN, "the session is not known or has ended: join again")
        return session

    async def _look(self) -> None:
        while self._wanted:
            tokens = list(self._wanted)[:MAX_TOGETHER]
            wanted = {token: self._wanted.pop(token) for token in tokens}
            now = self._clock()
            self._taken.clear()
            try:
                found = await to_thread.run_sync(self._lookup, tokens, now)
            except Exception as error:  # noqa: BLE001 - whoever asked is answered by it
                for future in wanted.values():
                    if not future.done():
                        future.set_exception(error)
                        future.exception()  # its caller may have gone
                continue
            for token, future in wanted.items():
                session = self._keep(token, found.get(token), now)
                if not future.done():
                    future.set_result(session)

    def _keep(self, token_sha256: str, session: Session | None, now: datetime) -> Session | None:
        self._drop(token_sha256)
        ends = datetime.fromisoformat(session.expires_at) if session else now
        if session is None or ends <= now:
            return None
        if session.seat in self._taken:
            return session  # what was read may be older than who sits there now
        self._known[token_sha256] = (session, min(ends, now + REMEMBERED), min(ends, now + REPORTER_REMEMBERED))
        self._of.setdefault(session.seat, set()).add(token_sha256)
        if len(self._known) > self._max_remembered:
            self._drop(next(iter(self._known)))
        return session

    def forget(self, seat: Seat) -> None:
        """Somebody has just taken the seat: its sessions are looked up anew."""
        self._taken.add(seat)
        for token_sha256 in tuple(self._of.get(seat, ())):
            self._drop(token_sha256)

    def _drop(self, token_sha256: str) -> None:
        found = self._known.pop(token_sha256, None)
        if found is None:
            return
        tokens = self._of.get(found[0].seat)
        if tokens is not None:
            tokens.discard(token_sha256)
            if not tokens:
                del self._of[found[0].seat]
