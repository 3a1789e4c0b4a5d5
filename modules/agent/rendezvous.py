"""The node's side of the rendezvous: join, wait for the others, give up when the time is over and say who is missing.

Retries what may pass (no connection, a service that starts or is overloaded) with growing pauses; ends at once where asking again cannot help
(a wrong proof, another key).  An answer counts only with the service's seal.  Follows no redirect and uses no proxy: a proof goes to one place.
"""

from __future__ import annotations

import http.client
import json
import random
import secrets
import ssl
import time
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlsplit

from . import proof
from .config import Meeting, Peer, TunnelConfig, peer
from .errors import MISSING, REFUSED, UNAVAILABLE, AgentError

POLL_SECONDS = 20.0
REPLY_SECONDS = 10.0
FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 15.0
MAX_ANSWER_BYTES = 1 << 20
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_SEALED = frozenset({200, 202, 410})


class Reply(NamedTuple):
    """An HTTP answer."""

    status: int
    seal: str
    body: bytes


if TYPE_CHECKING:
    from collections.abc import Callable

    Send = Callable[[str, str, "bytes | None", "dict[str, str]", float], Reply]


class _Passing(Exception):
    """A failure that may pass."""


class Client:
    """One node's meeting.  `send`, `clock`, `steady` and `sleep` are the world's; tests give their own."""

    def __init__(
        self,
        config: TunnelConfig,
        meeting: Meeting,
        key: bytes,
        public_key: str,
        *,
        send: Send | None = None,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._config = config
        self._key = key
        self._public_key = public_key
        self._send = send or over_http(meeting)
        self._clock, self._steady, self._sleep = clock, steady, sleep
        self._timeout_seconds = meeting.timeout_seconds
        self._ends = steady() + meeting.timeout_seconds
        self._base = f"/v1/rendezvous/{config.job}/{config.generation}"
        self._joined = False
        self._missing: list[str] = []

    def meet(self) -> tuple[Peer, ...]:
        """All members, this node included, in rank order.  Raises AgentError."""
        failures, problem = 0, "no attempt was made"
        while self._left() > 0:
            try:
                if not self._joined:
                    self._join()
                peers = self._peers()
                if peers is not None:
                    return peers
                failures = 0
            except _Passing as passing:
                problem, failures = str(passing), failures + 1
            self._sleep(min(pause(failures), self._left()))
        if self._missing:
            raise missing(self._missing, self._timeout_seconds)
        words = f"the rendezvous service did not answer within {self._timeout_seconds:g} s"
        raise AgentError(UNAVAILABLE, f"{words}: {problem}")

    def _left(self) -> float:
        return max(0.0, self._ends - self._steady())

    def _said(self, purpose: str) -> dict[str, Any]:
        c = self._config
        nonce = secrets.token_hex(16)
        return {"purpose": purpose, "job": c.job, "generation": c.generation, "name": c.name, "nonce": nonce}

    def _join(self) -> None:
        said, now = self._said("join"), int(self._clock())
        mine: dict[str, Any] = {"public_key": self._public_key, "endpoint": self._config.endpoint, "time": now}
        signed = proof.sign(self._key, proof.claim(**said, **mine))
        raw = json.dumps({**mine, "name": said["name"], "nonce": said["nonce"], "proof": signed}).encode()
        headers = {"Content-Type": "application/json"}
        reply = self._send("POST", self._base + "/join", raw, headers, min(REPLY_SECONDS, self._left() + 0.1))
        self._judge(reply, said)
        self._joined = True

    def _peers(self) -> tuple[Peer, ...] | None:
        """The members, or None while somebody is missing."""
        said, now = self._said("peers"), int(self._clock())
        headers = {
            "X-Skyplan-Name": said["name"],
            "X-Skyplan-Nonce": said["nonce"],
            "X-Skyplan-Time": str(now),
            "X-Skyplan-Proof": proof.sign(self._key, proof.claim(**said, time=now)),
        }
        wait = min(POLL_SECONDS, self._left())
        reply = self._send("GET", f"{self._base}/peers?wait={wait:.3f}", None, headers, wait + REPLY_SECONDS)
        document = self._judge(reply, said)
        if reply.status == 200:  # noqa: PLR2004 - OK
            return members(document.get("peers"), self._config, self._public_key)
        self._missing = _names(document)
        return None

    def _judge(self, reply: Reply, said: dict[str, Any]) -> dict[str, Any]:
        """The document of an answer that says yes or not yet.  Raises what any other means."""
        message = proof.answer(**said, status=reply.status, body=reply.body)
        if reply.status in _SEALED and not proof.holds(self._key, message, reply.seal):
            raise _Passing("the answer does not bear the service's seal")
        try:
            read = json.loads(reply.body)
        except ValueError:
            read = None
        document = cast("dict[str, Any]", read) if isinstance(read, dict) else {"reason": "no JSON"}
        if reply.status in {200, 202}:
            return document
        if reply.status == 410:  # noqa: PLR2004 - gone
            raise missing(_names(document), None)
        error = document.get("error")
        words = f"HTTP {reply.status}: {str(document.get('reason', ''))[:500]}"
        if error == "not-joined":  # the service was started anew and has forgotten us
            self._joined = False
        # `replayed`: a proxy sent our request a second time; the next one has a nonce of its own
        if reply.status in _PASSING or error in {"not-joined", "unknown-rendezvous", "replayed"}:
            raise _Passing(words)
        raise AgentError(REFUSED, f"the rendezvous refused {self._config.name}: {words}")


def missing(names: list[str], seconds: float | None) -> AgentError:
    """Not all came."""
    within = f" within {seconds:g} s" if seconds is not None else " in time"
    return AgentError(MISSING, "not all nodes came{}; missing: {}".format(within, ", ".join(names)))


def pause(failures: int) -> float:
    """Doubling, and random, so that nodes that failed together do not come back together."""
    longest = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(failures, 10))
    return longest * (0.5 + random.random() / 2)  # noqa: S311 - no secret


def members(rows: Any, config: TunnelConfig, public_key: str) -> tuple[Peer, ...]:
    """The members of an answer.  Raises AgentError where it cannot be this node's meeting."""
    listed = cast("list[Any]", rows) if isinstance(rows, list) else []
    found = [peer(row, f"peers[{at}]") for at, row in enumerate(listed)]
    wrong = [text for _, texts in found for text in texts]
    peers = [one for one, _ in found if one]
    me = [p for p in peers if p.name == config.name]
    if len(me) != 1 or (me[0].public_key, me[0].tunnel_address) != (public_key, config.tunnel_address):
        wrong.append(f"{config.name} is not among them with its own key and {config.tunnel_address}")
    unique = ("name", "public_key", "tunnel_address", "endpoint")
    wrong += [f"two have one {what}" for what in unique if len({getattr(p, what) for p in peers}) != len(peers)]
    if wrong:
        raise AgentError(REFUSED, "the peer set cannot be used: " + "; ".join(wrong))
    return tuple(peers)


def _names(document: dict[str, Any]) -> list[str]:
    names = document.get("missing")
    return [str(n)[:32] for n in cast("list[Any]", names)] if isinstance(names, list) else []


def over_http(meeting: Meeting) -> Send:
    """Sends over one fresh connection a request."""
    url = urlsplit(meeting.url)
    context = None
    if url.scheme == "https":
        context = ssl.create_default_context(cafile=meeting.ca_file)
        context.minimum_version = ssl.TLSVersion.TLSv1_2

    def send(method: str, path: str, body: bytes | None, headers: dict[str, str], seconds: float) -> Reply:
        host = url.hostname or ""
        if context:
            link = http.client.HTTPSConnection(host, url.port, timeout=seconds, context=context)
        else:
            link = http.client.HTTPConnection(host, url.port, timeout=seconds)
        try:
            link.request(method, path, body, headers)
            got = link.getresponse()
            return Reply(got.status, got.getheader("X-Skyplan-Seal", "") or "", got.read(MAX_ANSWER_BYTES))
        except (OSError, http.client.HTTPException) as error:
            raise _Passing(f"{meeting.url}: {error or type(error).__name__}") from error
        finally:
            link.close()

    return send
