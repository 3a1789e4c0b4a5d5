"""The node's leases, in memory only: minted in the background, the newest served, the one before kept to its end.

What is due when is `timing`'s.  A broker that is away costs nothing until the last lease nears its end; then the job is asked for a checkpoint, and when
the broker is back everything goes on by itself.  A refusal that is final (fenced, ended) is handed on and asked about no more.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Protocol

from ..errors import Away, Denied  # noqa: TID252 - packed, there is no `modules` above
from . import timing
from .lease import Lease, Wanted, read
from .timing import CHECKPOINT, DEGRADED, MINT, Tried

LONGEST_SLEEP_SECONDS = 30.0
"""Asked anew at least so often: clocks are set, machines are suspended."""
AFTER_FAULT_SECONDS = 5.0


class Broker(Protocol):
    """Who mints."""

    def lease(self, uri: str, access: str) -> dict[str, Any]:
        """A lease's document.  Raises Away, Denied."""
        ...


class _Grant:
    """One grant's leases and what was tried.  Leases are replaced as a whole, so that readers need no lock."""

    def __init__(self, wanted: Wanted, jitter: float) -> None:
        self.wanted = wanted
        self.jitter = jitter
        self.leases: tuple[Lease, ...] = ()
        self.tried = Tried()
        self.refused = False

    @property
    def lasting(self) -> Lease | None:
        """The one that ends last."""
        return max(self.leases, key=lambda one: one.ends, default=None)


class Holder:
    """Keeps a lease of everything `wanted`.

    tell            a `credential` item for the control plane
    ask_checkpoint  reason, and when the job's credentials end
    final           the word of a refusal after which there is nothing to hold any more
    changed         a new lease is there: files are written by it
    """

    def __init__(
        self,
        client: Broker,
        wanted: Iterable[Wanted],
        clock: Callable[[], float] = time.time,
        *,
        tell: Callable[[dict[str, Any]], None] = lambda _body: None,
        ask_checkpoint: Callable[[str, float], None] = lambda _reason, _deadline: None,
        final: Callable[[str], None] = lambda _word: None,
        changed: Callable[[Wanted, Lease], None] = lambda _wanted, _lease: None,
        draw: Callable[[], float] = lambda: random.uniform(-1, 1),  # noqa: S311 - spreads load, hides nothing
    ) -> None:
        self._client, self._clock, self._draw = client, clock, draw
        self.tell, self.ask_checkpoint, self.final, self.changed = tell, ask_checkpoint, final, changed
        self._grants = {one.grant: _Grant(one, draw()) for one in wanted}
        self._over = False
        self._wake = threading.Event()
        self._stepping = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stop = False
        self._first = threading.Event()

    @property
    def wanted(self) -> tuple[Wanted, ...]:
        """All grants."""
        return tuple(one.wanted for one in self._grants.values())

    def now(self) -> float:
        """By this holder's clock."""
        return self._clock()

    def lease(self, grant: str) -> Lease | None:
        """The best there is, from memory.  None where there is none that holds.  Raises KeyError for no grant of this node."""
        return timing.choose(self._grants[grant].leases, self._clock())

    def source(self, uri: str, *, absent: Callable[[str], Exception] = Away) -> Callable[[str, str], dict[str, Any]]:
        """For the agent's own uploads: (access, id of a lease that the store just refused, or "") -> the newest lease's document.

        Each access by its own lease; where none is held for reading, what is lent for writing reads its prefix too.  Raises `absent` where there is no lease now; KeyError where none is held at all.
        """
        grants = {one.access: one.grant for one in self.wanted if one.uri == uri}
        grants = {"read": grants["write"] if "read" not in grants else grants["read"], **grants}

        def newest(access: str, refused: str = "") -> dict[str, Any]:
            if refused:
                self.distrust(refused)
                self.step()
            found = self.lease(grants[access])
            if found is None:
                raise absent(f"there is no credential for {uri} now")
            return dict(found.document)

        return newest

    def distrust(self, lease_id: str) -> None:
        """A store refused this lease before its end (it was revoked): serve it no more, mint anew at once."""
        for one in self._grants.values():
            kept = tuple(lease for lease in one.leases if lease.id != lease_id)
            if kept != one.leases:
                one.leases = kept
        self._wake.set()

    def start(self) -> None:
        """Begin minting."""
        self._thread = threading.Thread(target=self._run, name="leases", daemon=True)
        self._thread.start()

    def ready(self, seconds: float) -> bool:
        """Waits until every grant has a lease."""
        return self._first.wait(seconds)

    def stop(self) -> None:
        """End minting, and forget all leases."""
        self._stop = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout=5)
        for one in self._grants.values():
            one.leases = ()

    def step(self) -> float:
        """Do what is due; when to come back.  Telling comes first: an attempt may take long."""
        with self._stepping:
            due = [one for one in self._grants.values() if self._told(one)]
            for one in due:
                if self._over or self._stop:
                    break
                self._mint(one)
            now = self._clock()
            if self._over:
                return now + LONGEST_SLEEP_SECONDS
            if all(one.leases for one in self._grants.values()):
                self._first.set()
            actions = [timing.next_action(one.lasting, now, one.jitter, one.tried) for one in self._grants.values()]
            return min([now + LONGEST_SLEEP_SECONDS, *(action.until for action in actions)])

    def _run(self) -> None:
        while not self._stop:
            try:
                until = self.step()
            except Exception:  # noqa: BLE001 - a thread that ends would let every lease run out
                until = self._clock() + AFTER_FAULT_SECONDS
            self._wake.wait(max(until - self._clock(), 0.05))
            self._wake.clear()

    def _told(self, one: _Grant) -> bool:
        """Tells what is to be told of a grant; whether it is to be minted."""
        while True:
            now = self._clock()
            lease = one.lasting
            word = timing.next_action(lease, now, one.jitter, one.tried).word
            if word not in {DEGRADED, CHECKPOINT}:
                return word == MINT
            one.tried = replace(one.tried, told=word)
            state = "critical" if word == CHECKPOINT else "degraded"
            self.tell({"uri": one.wanted.uri, "state": state, **({"expires_at": lease.ends_text} if lease else {})})
            if word == CHECKPOINT and lease is not None:
                left = max(int(lease.left(now)), 0)
                self.ask_checkpoint(f"the credential for {one.wanted.uri} ends in {left} s", lease.ends)

    def _mint(self, one: _Grant) -> None:
        asked_at = self._clock()
        try:
            lease = read(self._client.lease(one.wanted.uri, one.wanted.access), asked_at)
        except Denied as denied:
            self._failed(one, asked_at)
            if denied.final:
                self._over = True
                self.final(denied.word)
            elif not one.refused:
                one.refused = True
                self.tell({"uri": one.wanted.uri, "state": "refused"})
        except Away as away:
            self._failed(one, asked_at, away.retry_after or 0.0)
        except (OSError, ValueError):
            self._failed(one, asked_at)
        else:
            now = self._clock()
            one.jitter, one.refused = self._draw(), False
            one.tried = Tried(0, asked_at, timing.told_after(one.tried.told, lease, now))
            one.leases = (*(old for old in one.leases if old.left(now) > 0), lease)
            self.tell({"uri": one.wanted.uri, "state": "minted", "expires_at": lease.ends_text})
            try:
                self.changed(one.wanted, lease)
            except OSError:  # no room for a file: whoever reads it has the old lease until the next
                self.tell({"uri": one.wanted.uri, "state": "degraded", "expires_at": lease.ends_text})

    def _failed(self, one: _Grant, asked_at: float, asked_wait: float = 0.0) -> None:
        one.tried = replace(one.tried, failures=one.tried.failures + 1, at=asked_at, asked_wait=asked_wait)
