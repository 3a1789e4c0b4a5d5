"""What this node asks of the control plane and of the broker, in the words of docs/node-protocol.md.  Holds the session; decides no pause and no retry.

    Plane.join() renew() report(stream, items) cut(document) chosen() meet(…) peers(…)      raise Away (may pass) or Denied (a word to act on)
    Broker.lease(uri, access)                                                         the same

A session that is known no more, or over, is `Away` with the word `unknown`, and the next question joins anew.  `memory`: where the session is kept over a
restart of this agent, for a seat whose proof may be gone by then: an operator's token.
"""

from __future__ import annotations

import calendar
import contextlib
import json
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from . import files
from .errors import Away, Denied

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from .link import Answer, Link
    from .settings import Seat

    Prove = Callable[[], "dict[str, Any]"]

AGENT = "1"
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_FEWEST_RENEW_SECONDS = 30.0


class Joined(NamedTuple):
    """What the control plane says when a node takes its seat."""

    manifest_key: bytes
    nodes: int
    stop_at: float | None
    stream: str
    through: int
    broker: str | None


class Plane:
    """The control plane, as this seat."""

    def __init__(
        self,
        link: Link,
        seat: Seat,
        *,
        instance_id: str,
        key: str,
        prove: Prove,
        memory: Path | None = None,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._link, self._seat, self._instance_id, self._key = link, seat, instance_id, key
        self._prove, self._steady = prove, steady
        self._one = threading.RLock()
        self._bearer = ""
        self._renew_at = 0.0
        self._memory = memory
        self.joined: Joined | None = None
        if memory is not None:
            self._recall(memory)

    def join(self) -> Joined:
        """Take the seat, with a fresh proof."""
        with self._one:
            seat = self._seat
            asked = {
                "job": seat.job,
                "generation": seat.generation,
                "rank": seat.rank,
                "instance_id": self._instance_id,
                "proof": self._prove(),
                "key": self._key,
                "agent": AGENT,
                "at": now(),
            }
            return self._taken(judged(self._link.ask("POST", "/v1/join", asked)))

    def renew(self) -> Joined:
        """A new session for the old one."""
        return self._taken(self._ask("POST", "/v1/session", {}))

    def keep(self) -> Joined:
        """Join where there is no session, renew where half of it is over; else nothing."""
        with self._one:
            if not self._bearer or self.joined is None:
                return self.join()
            if self._steady() >= self._renew_at:
                return self.renew()
            return self.joined

    def report(self, stream: str, items: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """`{"through", "requests"}`."""
        return self._ask("POST", "/v1/report", {"stream": stream, "items": list(items)})

    def cut(self, document: dict[str, Any]) -> dict[str, Any]:
        """POST /v1/cut: the phases `begin`, `choose`, `reject`."""
        return self._ask("POST", "/v1/cut", document)

    def chosen(self) -> dict[str, Any] | None:
        """GET /v1/cut; None while rank 0 has not chosen."""
        answer = self._ask("GET", "/v1/cut", None, later=True)
        return None if answer.get("cut") is None else answer

    def meet(self, name: str, public_key: str, endpoint: str) -> dict[str, Any]:
        """POST /v1/peers: `{"peers", "missing"}`."""
        return self._ask("POST", "/v1/peers", {"name": name, "public_key": public_key, "endpoint": endpoint})

    def peers(self, wait_seconds: float) -> dict[str, Any]:
        """GET /v1/peers: the same, held back until all have come, or so long."""
        return self._ask("GET", f"/v1/peers?wait={wait_seconds:.3f}", None, later=True)

    def close(self) -> None:
        """Let the connection go."""
        self._link.close()

    def _ask(self, method: str, path: str, document: Any, *, later: bool = False) -> dict[str, Any]:
        with self._one:
            if not self._bearer:
                self.join()
            bearer = self._bearer
        answer = self._link.ask(method, path, document, bearer=bearer)
        if later and answer.status == 202:  # noqa: PLR2004 - accepted, not there yet
            return answer.document
        try:
            return judged(answer)
        except Denied as denied:
            if denied.word != "unknown":
                raise
            with self._one:
                if self._bearer == bearer:
                    self._bearer = ""
            raise Away(str(denied), word="unknown") from denied

    def _recall(self, memory: Path) -> None:
        """The last session, renewed at once: whoever has one needs no proof.  One that ran out is refused, and the token taken again, by this key."""
        with contextlib.suppress(Away, Denied):  # Denied: this node was set up for another project since
            self._taken(files.recall(memory))
            self._renew_at = self._steady()

    def _taken(self, document: dict[str, Any]) -> Joined:
        theirs = document.get("project", self._seat.project)
        if theirs != self._seat.project:  # its checkpoints would be signed under a name that the record does not know
            words = f"the control plane serves the project `{theirs}`, this node is set up for `{self._seat.project}`"
            raise Denied("project", words)
        try:
            bearer, key = str(document["session"]), bytes.fromhex(document["manifest_key"])
            renew = float(document["renew_after_seconds"])
            stop_at = document.get("stop_at")
            joined = Joined(
                manifest_key=key,
                nodes=int(document["nodes"]),
                stop_at=None if stop_at is None else epoch(stop_at),
                stream=str(document.get("stream") or ""),
                through=int(document.get("through") or 0),
                broker=document.get("broker"),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise Away(f"the control plane's answer cannot be read: {error!r}") from error
        with self._one:
            self._bearer = bearer
            self._renew_at = self._steady() + max(renew, _FEWEST_RENEW_SECONDS)
            self.joined = joined
        if self._memory is not None:
            files.write(self._memory, json.dumps(document))
        return joined


class Broker:
    """The broker, as this seat.  It keeps no sessions: each lease takes a fresh proof."""

    def __init__(self, link: Link, seat: Seat, *, key: str, prove: Prove) -> None:
        self._link, self._seat, self._key, self._prove = link, seat, key, prove

    def lease(self, uri: str, access: str) -> dict[str, Any]:
        """The lease's document.  Raises Away, Denied."""
        seat = self._seat
        asked = {"job": seat.job, "generation": seat.generation, "rank": seat.rank, "proof": self._prove()}
        return judged(self._link.ask("POST", "/v1/leases", {**asked, "key": self._key, "uri": uri, "access": access}))


def judged(answer: Answer) -> dict[str, Any]:
    """The document of an answer that says yes.  Raises what any other means."""
    if answer.status == 200:  # noqa: PLR2004 - OK
        return answer.document
    word = str(answer.document.get("error", ""))[:40]
    words = f"HTTP {answer.status} {word}: {str(answer.document.get('reason', ''))[:500]}"
    if answer.status in _PASSING or word == "early":
        raise Away(words, word=word, retry_after=answer.retry_after)
    if not word:  # a proxy's page, another service: nothing that this run's fate should hang on
        raise Away(words, word={400: "malformed", 413: "malformed", 401: "unknown"}.get(answer.status, ""))
    raise Denied(word, words, code=str(answer.document.get("code", ""))[:20])


def now() -> str:
    """As all times of a report are."""
    return stamp(time.time())


def stamp(seconds: float) -> str:
    """UTC ISO text."""
    whole = int(seconds // 1)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{int((seconds - whole) * 1e6):06d}Z"


def epoch(text: str) -> float:
    """Seconds since 1970 of UTC ISO text, with or without fractions.  Raises ValueError."""
    whole, _, fraction = text.rstrip("Z").partition("+00:00")[0].partition(".")
    if fraction and not fraction.isdigit():
        raise ValueError(text)
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float("0." + (fraction or "0"))
