"""The rules by which the nodes of one job's generation find each other.  State and judgement only: no socket, no clock of its own, no lock.

A node is heard when its name is expected, its proof holds, its clock is near ours and its nonce is new; the first key it gives is the one
it keeps.  The peer set is given out whole or not at all: all members or, after the timeout, the names of the missing.  Sending a request
again, byte for byte, is the same request: a lost reply must not lose a node.  Nothing secret is in any answer, so that a replay learns nothing.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from planner.server.peers_file import NAME, Expected, Member, endpoint_problem
from planner.server.proof import HMAC_SHA256, Claim, JoinSecret, Proof, answer_message

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_SKEW_SECONDS: Final = 300
_KEY_BYTES: Final = 32
_MAX_TIME: Final = 10**12
_NONCE: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
_PROOF: Final = re.compile(r"([a-z0-9-]{1,32}) ([\x21-\x7e]{1,2048})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """`wall` for what nodes say of the time, `steady` for what is measured here."""

    wall: Callable[[], float]
    steady: Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An HTTP status and its JSON body."""

    status: int
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A claim, the proof of it as it was sent (`SCHEME VALUE`)."""

    claim: Claim
    proof: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Joined:
    public_key: str
    endpoint: str


def refusal(status: int, error: str, reason: str, **more: Any) -> Answer:
    """An answer that says no: a stable word and a reason for people."""
    return Answer(status=status, body={"error": error, "reason": reason, **more})


class Rendezvous:
    """One generation's meeting.  Not safe for threads by itself: who serves it holds a lock."""

    def __init__(
        self, expected: Expected, *, clock: Clock, timeout_seconds: float, proofs: Mapping[str, Proof] | None = None
    ) -> None:
        self.expected = expected
        self._clock = clock
        self._ends = clock.steady() + timeout_seconds
        self._timeout_seconds = timeout_seconds
        self._proofs: Mapping[str, Proof] = proofs or {HMAC_SHA256: JoinSecret()}
        self._joined: dict[str, _Joined] = {}
        self._nonces: dict[tuple[str, str], Claim] = {}

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of those who have not joined, in rank order."""
        return tuple(m.name for m in self.expected.members if m.name not in self._joined)

    @property
    def timed_out(self) -> bool:
        """The time is over and somebody is missing.  A complete set stays complete."""
        return bool(self.missing) and self._clock.steady() >= self._ends

    @property
    def seconds_left(self) -> float:
        """Until the time is over."""
        return max(0.0, self._ends - self._clock.steady())

    def join(self, request: Request) -> Answer:
        """Take a node in, or say why not."""
        claim = request.claim
        if refused := _malformed(claim) or self._unproven(request) or self._replayed(claim):
            return refused
        if self.timed_out and claim.name not in self._joined:
            return self._over()
        if refused := self._conflict(claim):
            return refused
        self._joined.setdefault(claim.name, _Joined(public_key=claim.public_key, endpoint=claim.endpoint))
        member = self.expected.member(claim.name)
        assert member  # noqa: S101 - `_unproven` found it
        body = {"name": member.name, "tunnel_address": member.tunnel_address, "missing": list(self.missing)}
        return Answer(status=200, body=body)

    def admit(self, request: Request) -> Answer | None:
        """May this node ask for the peers?  None means yes."""
        claim = request.claim
        if refused := _malformed(claim) or self._unproven(request) or self._replayed(claim):
            return refused
        if claim.name not in self._joined and not self.timed_out:
            return refusal(
                409, "not-joined", f"{claim.name} has not joined (or the service was started anew): join first"
            )
        return None

    def peers(self) -> Answer:
        """The peer set as it stands: 200 whole, 202 not yet, 410 never."""
        if self.timed_out:
            return self._over()
        if self.missing:
            return Answer(status=202, body={"missing": list(self.missing), "seconds_left": round(self.seconds_left, 3)})
        peers = [
            {
                "name": m.name,
                "tunnel_address": m.tunnel_address,
                "public_key": self._joined[m.name].public_key,
                "endpoint": self._joined[m.name].endpoint,
            }
            for m in self.expected.members
        ]
        return Answer(status=200, body={"peers": peers})

    def seal(self, claim: Claim, status: int, body: bytes) -> str | None:
        """What proves an answer to the node that asked; None for a name nobody expects."""
        member = self.expected.member(claim.name)
        scheme = self._proofs.get(HMAC_SHA256)
        value = scheme.seal(member, answer_message(claim, status, body)) if member and scheme else None
        return f"{HMAC_SHA256} {value}" if value else None

    def _over(self) -> Answer:
        names = ", ".join(self.missing)
        reason = f"not all nodes came within {self._timeout_seconds:g} s; missing: {names}"
        return refusal(410, "timed-out", reason, missing=list(self.missing))

    def _unproven(self, request: Request) -> Answer | None:
        claim = request.claim
        if (claim.job, claim.generation) != (self.expected.job, self.expected.generation):
            return refusal(
                404, "unknown-rendezvous", f"nobody meets here for {claim.job} generation {claim.generation}"
            )
        member = self.expected.member(claim.name)
        if member is None:
            return refusal(404, "unknown-member", f"{claim.name} is not expected here")
        parts = _PROOF.fullmatch(request.proof)
        verifier = self._proofs.get(parts[1]) if parts else None
        if parts is None or verifier is None:
            return refusal(
                403, "wrong-proof", f"the proof must be `SCHEME VALUE`, SCHEME one of {', '.join(self._proofs)}"
            )
        if why := verifier.refuse(member, claim, parts[2]):
            return refusal(403, "wrong-proof", why)
        ahead = claim.time - self._clock.wall()
        if abs(ahead) > MAX_SKEW_SECONDS:
            words = f"the request's time is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} this clock"
            return refusal(
                403, "clock-skew", f"{words}; at most {MAX_SKEW_SECONDS} s are allowed: set the node's clock"
            )
        return self._unreserved(member, claim)

    @staticmethod
    def _unreserved(member: Member, claim: Claim) -> Answer | None:
        if claim.purpose == "join" and member.endpoint not in {None, claim.endpoint}:
            reason = f"{claim.endpoint} is not the endpoint reserved for {member.name} ({member.endpoint})"
            return refusal(403, "endpoint-not-reserved", reason)
        return None

    def _replayed(self, claim: Claim) -> Answer | None:
        """A nonce counts once.  Only proven claims are remembered, and only while their time would still be accepted."""
        oldest = self._clock.wall() - MAX_SKEW_SECONDS
        for key in [k for k, c in self._nonces.items() if c.time < oldest]:
            del self._nonces[key]
        before = self._nonces.get((claim.name, claim.nonce))
        if before is None:
            self._nonces[claim.name, claim.nonce] = claim
            return None
        if before == claim and claim.purpose == "join":
            return None
        return refusal(409, "replayed", f"this nonce was used by {claim.name} before")

    def _conflict(self, claim: Claim) -> Answer | None:
        mine = self._joined.get(claim.name)
        if mine and mine.public_key != claim.public_key:
            reason = f"{claim.name} has joined with another key; a node that lost its key needs a new generation"
            return refusal(409, "key-conflict", reason)
        if mine and mine.endpoint != claim.endpoint:
            return refusal(409, "endpoint-conflict", f"{claim.name} has joined with the endpoint {mine.endpoint}")
        for name, other in self._joined.items():
            if name != claim.name and other.public_key == claim.public_key:
                return refusal(409, "key-conflict", f"{name} has joined with this key")
            if name != claim.name and other.endpoint == claim.endpoint:
                return refusal(409, "endpoint-conflict", f"{name} has joined with this endpoint")
        return None


def _malformed(claim: Claim) -> Answer | None:
    wrong: list[str] = []
    if not NAME.fullmatch(claim.name):
        wrong.append("`name` must be like r00")
    if not _NONCE.fullmatch(claim.nonce):
        wrong.append("`nonce` must be 32 lower-case hex digits")
    if not 0 < claim.time < _MAX_TIME:
        wrong.append("`time` must be in seconds since 1970")
    if claim.purpose == "join":
        if not _is_key(claim.public_key):
            wrong.append("`public_key` must be 32 bytes in base64, not all zero")
        if problem := endpoint_problem(claim.endpoint):
            wrong.append(f"`endpoint`: {problem}")
    return refusal(400, "malformed", "; ".join(wrong)) if wrong else None


def _is_key(text: str) -> bool:
    try:
        raw = base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return False
    # decoding ignores the last character's low bits: only the canonical form may pass, or one key would have four texts
    return len(raw) == _KEY_BYTES and any(raw) and base64.b64encode(raw).decode() == text
